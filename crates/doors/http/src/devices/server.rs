//! One server of a run, presented as a device of the file layer.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use narthex_gateway::{Caller, Endpoint, Gateway, RefusedCall, RunView};
use narthex_model::{Alias, CallError, CallErrorKind, ServerState};
use narthex_run_events::inside;
use narthex_vfs::{Answer, Code, Device, Failure, Kind};
use narthex_wire::{json::encode_string, method, rpc};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use crate::devices::{ProtocolError, Reply, ask, mounts::over, request};

/// The name and version that the file layer sends to servers as its `clientInfo`.
const CLIENT: &str =
    concat!(r#"{"name":"narthex-vfs","version":""#, env!("CARGO_PKG_VERSION"), "\"}");

/// The maximum size of one list in bytes, all pages together.
const LIST_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The maximum number of pages of one list.
const PAGES_MAX: usize = 10_000;

/// One server, used with the rights of one run. The device allows exactly what the run's endpoint
/// of the server allows.
#[derive(Debug)]
pub(crate) struct ServerDevice {
    gateway: Gateway,
    run: Arc<RunView>,
    alias: Alias,
}

/// One page of a list.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
    #[serde(borrow, default)]
    resources: Option<&'a RawValue>,
    #[serde(borrow, default)]
    prompts: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "nextCursor")]
    next_cursor: Option<Cow<'a, str>>,
}

impl ServerDevice {
    /// Creates the device for the server with this alias.
    #[must_use]
    pub(crate) fn new(gateway: Gateway, run: Arc<RunView>, alias: Alias) -> Self {
        Self { gateway, run, alias }
    }

    async fn ask(&self, method: &str, members: &[(&str, &[u8])]) -> Result<Bytes, Asked> {
        let message = request(method, members, CLIENT, self.gateway.limits());
        let message = message.map_err(|error| {
            let text = format!("the request cannot be sent: {error}");
            Asked::Ours(Failure::new(Code::ResourceExhausted, "limit_exceeded", text))
        })?;
        let endpoint = Endpoint::Transparent(self.alias.clone());
        let caller = Caller::new(self.run.clone(), endpoint, None);
        let reply = inside(ask(&self.gateway, caller, message)).await;
        // If the run's end broke the call off, the failure is not the server's.
        if self.run.has_ended() && reply.as_ref().is_none_or(|reply| reply.outcome.is_err()) {
            return Err(Asked::Ours(over()));
        }
        let reply = reply.ok_or_else(|| {
            let text = "the daemon is stopping";
            Asked::Ours(Failure::new(Code::DeviceDisconnected, "transport_error", text))
        })?;
        of_reply(reply)
    }

    async fn list_all(&self, kind: Kind) -> Result<Bytes, Failure> {
        let method = match kind {
            Kind::Tools => method::TOOLS_LIST,
            Kind::Resources => method::RESOURCES_LIST,
            Kind::Prompts => method::PROMPTS_LIST,
        };
        let mut pages: Vec<Bytes> = Vec::new();
        let (mut size, mut cursor) = (0, None::<Vec<u8>>);
        while pages.len() < PAGES_MAX {
            let member = cursor.as_deref().map(|cursor| [("cursor", cursor)]);
            let page = self.ask(method, member.as_ref().map_or(&[], |member| &member[..])).await;
            let page = match page {
                Ok(page) => page,
                // A server that lacks this kind has an empty list.
                Err(Asked::Protocol(error)) if error.code == rpc::code::METHOD_NOT_FOUND => {
                    return Ok(Bytes::from(format!(r#"{{"{}":[]}}"#, kind.as_str())));
                }
                Err(asked) => return Err(asked.into_failure()),
            };
            size += page.len();
            if size > LIST_BYTES_MAX {
                let text = format!("the list has more than {LIST_BYTES_MAX} bytes");
                return Err(Failure::new(Code::ResourceExhausted, "limit_exceeded", text));
            }
            let next = parsed(kind, &page)?.next_cursor.as_deref().map(encode_string);
            pages.push(page);
            match next {
                None => return joined(kind, &pages),
                Some(next) if cursor.as_ref() == Some(&next) => break,
                Some(next) => cursor = Some(next),
            }
        }
        let text = format!("the server's list of {} has no end", kind.as_str());
        Err(Failure::new(Code::Driver, "server_error", text))
    }

    /// True if the server lists this name; false if the list cannot be read.
    async fn has(&self, kind: Kind, name: &str) -> bool {
        let list = self.list_all(kind).await;
        let names = list.and_then(|list| narthex_vfs::names(kind, &list));
        names.is_ok_and(|names| names.iter().any(|one| one == name))
    }

    fn status_now(&self) -> Bytes {
        let snapshot = self.gateway.snapshot(&self.run);
        let row = snapshot.get(self.alias.as_str());
        let state = row.map_or(ServerState::Ready, |row| row.state);
        let reader = self.run.reader();
        let failure = row.and_then(|row| row.error.as_ref());
        let error = failure.map(|failure| failure.read_by(reader).for_models());
        let error = error.map(|error| json!({ "kind": error.kind, "message": error.message }));
        let status = json!({
            "server": self.alias.as_str(),
            "state": state.as_str(),
            "activity": row.and_then(|row| row.activity),
            "error": error,
        });
        Bytes::from(format!("{status}\n"))
    }

    /// Returns the server's log to operators only (A-9). A run that has all shared servers and no
    /// others belongs to the user who runs the daemon, and may read it too.
    fn logs_now(&self) -> Result<Bytes, Failure> {
        if !self.run.is_plain() {
            let text = "what a server writes to standard error is for operators; ask one for it";
            return Err(Failure::new(Code::Permission, "denied", text));
        }
        let snapshot = self.gateway.snapshot(&self.run);
        let row = snapshot.get(self.alias.as_str());
        let mut text = row.map(|row| row.log.tail()).unwrap_or_default().join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        Ok(Bytes::from(text))
    }
}

/// The reason why a request has no result.
#[derive(Debug)]
enum Asked {
    /// The gateway refused the request, or could not send it.
    Ours(Failure),
    /// An error of the protocol, usually from the server.
    Protocol(ProtocolError),
}

impl Asked {
    fn into_failure(self) -> Failure {
        let error = match self {
            Self::Ours(failure) => return failure,
            Self::Protocol(error) => error,
        };
        let (code, kind) = match error.code {
            rpc::code::INVALID_PARAMS => (Code::Invalid, "invalid_arguments"),
            rpc::code::LEGACY_RESOURCE_NOT_FOUND => (Code::NotFound, "not_found"),
            rpc::code::UNAUTHENTICATED | rpc::code::DENIED => (Code::Permission, "denied"),
            rpc::code::EXHAUSTED => (Code::ResourceExhausted, "limit_exceeded"),
            rpc::code::UNAVAILABLE => (Code::ServiceUnavailable, "transport_error"),
            rpc::code::TIMEOUT => (Code::Timeout, "timeout"),
            _ => (Code::Driver, "server_error"),
        };
        let mut failure = Failure::new(code, kind, error.message);
        let (own, data) = rpc::own_error(error.code, error.data);
        let details = json!({ "code": own, "data": data });
        failure.details = Some(details.to_string());
        failure
    }

    /// True if the parameters name nothing that exists, or are invalid.
    fn is_invalid(&self) -> bool {
        match self {
            Self::Ours(_) => false,
            Self::Protocol(error) => error.code == rpc::code::INVALID_PARAMS,
        }
    }

    fn into_not_found(self) -> Failure {
        Failure { code: Code::NotFound, kind: "not_found".to_owned(), ..self.into_failure() }
    }
}

fn parsed(kind: Kind, page: &[u8]) -> Result<Page<'_>, Failure> {
    let none = |what: String| {
        let text = format!("the server's list of {} is not valid: {what}", kind.as_str());
        Failure::new(Code::Driver, "server_error", text)
    };
    // `serde` would read an array as the members in order.
    if !page.starts_with(b"{") {
        return Err(none("it is not an object".to_owned()));
    }
    serde_json::from_slice(page).map_err(|error| none(error.to_string()))
}

fn of_reply(reply: Reply) -> Result<Bytes, Asked> {
    match (reply.refused, reply.outcome) {
        (None, Ok(result)) => Ok(result),
        (None, Err(error)) => Err(Asked::Protocol(error)),
        (Some(refused), Ok(result)) => Err(Asked::Ours(of_result(refused, &result))),
        (Some(refused), Err(error)) => {
            let mut failure = of_call(refused, error.message);
            let details = error.data.as_ref().and_then(|data| data.get("details"));
            failure.details = details.map(ToString::to_string);
            Err(Asked::Ours(failure))
        }
    }
}

/// Reads the failure from a result that the gateway itself made.
fn of_result(refused: RefusedCall, result: &[u8]) -> Failure {
    #[derive(Deserialize)]
    struct Told {
        #[serde(rename = "structuredContent")]
        structured: Option<Structured>,
        #[serde(rename = "_meta")]
        meta: Option<Meta>,
    }
    #[derive(Deserialize)]
    struct Structured {
        error: CallError,
    }
    // Errors are here, under `meta_key::ERROR`, if the tool has an output schema of its own.
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "narthex/error")]
        error: CallError,
    }
    let told: Option<Told> = serde_json::from_slice(result).ok();
    let told = told.and_then(|Told { structured, meta }| {
        structured.map(|told| told.error).or_else(|| meta.map(|told| told.error))
    });
    let Some(error) = told else {
        return of_call(refused, refused.kind.as_str().to_owned());
    };
    let mut failure = of_call(refused, error.message);
    failure.details = error.details.map(|details| details.to_string());
    failure
}

/// The failure of a refused call. If the call was not sent, since the server was known to be
/// unreachable or was reconnecting, the code differs from that of a server that failed during the
/// call.
fn of_call(RefusedCall { kind, is_unsent }: RefusedCall, message: String) -> Failure {
    let mut failure = Failure::of_call(kind, message);
    if kind == CallErrorKind::TransportError && is_unsent {
        failure.code = Code::DeviceDisconnected;
    }
    failure
}

/// Joins the entries of all pages into one result, and drops the other members of the pages.
fn joined(kind: Kind, pages: &[Bytes]) -> Result<Bytes, Failure> {
    let mut all = format!(r#"{{"{}":["#, kind.as_str()).into_bytes();
    let mut is_first = true;
    for page in pages {
        let page = parsed(kind, page)?;
        let list = match kind {
            Kind::Tools => page.tools,
            Kind::Resources => page.resources,
            Kind::Prompts => page.prompts,
        };
        let list = list.map_or("", RawValue::get).trim();
        let items = list.strip_prefix('[').and_then(|list| list.strip_suffix(']'));
        let items = items.unwrap_or_default().trim();
        if !items.is_empty() {
            if !is_first {
                all.push(b',');
            }
            is_first = false;
            all.extend_from_slice(items.as_bytes());
        }
    }
    all.extend_from_slice(b"]}");
    Ok(all.into())
}

impl Device for ServerDevice {
    fn list(&self, kind: Kind) -> Answer<'_> {
        Box::pin(self.list_all(kind))
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: Bytes) -> Answer<'a> {
        Box::pin(async move {
            let name = encode_string(tool);
            let members: [(&str, &[u8]); 2] = [("name", &name), ("arguments", &arguments)];
            self.ask(method::TOOLS_CALL, &members).await.map_err(Asked::into_failure)
        })
    }

    fn read<'a>(&'a self, uri: &'a str) -> Answer<'a> {
        Box::pin(async move {
            let uri = encode_string(uri);
            let read = self.ask(method::RESOURCES_READ, &[("uri", &uri)]).await;
            read.map_err(|asked| match asked.is_invalid() {
                true => asked.into_not_found(),
                false => asked.into_failure(),
            })
        })
    }

    fn prompt<'a>(&'a self, name: &'a str, arguments: Bytes) -> Answer<'a> {
        Box::pin(async move {
            let text = encode_string(name);
            let members: [(&str, &[u8]); 2] = [("name", &text), ("arguments", &arguments)];
            match self.ask(method::PROMPTS_GET, &members).await {
                Ok(result) => Ok(result),
                // Either the arguments are wrong, or the run sees no prompt of this name.
                Err(asked) if asked.is_invalid() && !self.has(Kind::Prompts, name).await => {
                    Err(asked.into_not_found())
                }
                Err(asked) => Err(asked.into_failure()),
            }
        })
    }

    fn status(&self) -> Answer<'_> {
        Box::pin(std::future::ready(Ok(self.status_now())))
    }

    fn logs(&self) -> Answer<'_> {
        Box::pin(std::future::ready(self.logs_now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(all: &[&'static str]) -> Vec<Bytes> {
        all.iter().map(|page| Bytes::from_static(page.as_bytes())).collect()
    }

    #[test]
    fn r_o13_pages_of_a_list_are_joined_into_one_list() {
        let one = r#"{"tools":[{"name":"a"}],"_meta":{"x":1}}"#;
        let single = joined(Kind::Tools, &pages(&[one])).expect("it is a list");
        assert_eq!(single, r#"{"tools":[{"name":"a"}]}"#, "what stands beside it is no entry");
        let all = pages(&[
            r#"{"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"1"}"#,
            r#"{"tools":[],"nextCursor":"2"}"#,
            r#"{"tools":[ {"name":"c"} ]}"#,
        ]);
        let joined = joined(Kind::Tools, &all).expect("they are lists");
        assert_eq!(joined, r#"{"tools":[{"name":"a"},{"name":"b"},{"name":"c"}]}"#);
    }

    #[test]
    fn r_o7_an_unsent_call_of_a_lost_server_is_a_disconnected_device() {
        let of = |kind, is_unsent| of_call(RefusedCall { kind, is_unsent }, "no".to_owned()).code;
        assert_eq!(of(CallErrorKind::TransportError, true), Code::DeviceDisconnected);
        assert_eq!(of(CallErrorKind::TransportError, false), Code::ServiceUnavailable);
        assert_eq!(of(CallErrorKind::Timeout, true), Code::Timeout);
        assert_eq!(of(CallErrorKind::PermissionRequired, true), Code::Permission);
    }

    #[test]
    fn errors_of_the_protocol_have_codes_of_the_namespace() {
        let of = |code| {
            let error = ProtocolError { code, message: "no".to_owned(), data: None };
            Asked::Protocol(error).into_failure().code
        };
        assert_eq!(of(rpc::code::INVALID_PARAMS), Code::Invalid);
        assert_eq!(of(rpc::code::DENIED), Code::Permission);
        assert_eq!(of(rpc::code::TIMEOUT), Code::Timeout);
        assert_eq!(of(rpc::code::INTERNAL_ERROR), Code::Driver);
        assert_eq!(of(-1), Code::Driver);
    }
}
