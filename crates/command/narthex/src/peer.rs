//! The peer that answers this process's own requests: its own gateway, or the daemon.

use std::path::Path;

use narthex_gateway::{Endpoint, Step};
use narthex_model::{
    Alias, CallError, CallErrorKind, ErrorKind, command::narthex, json::with_whole_pairs,
};
use narthex_wire::{
    Era, Limits, Message, MessageKind, Pages, Raw, Revision, meta_key, method, rpc,
};
use serde_json::{Map, Value, json};

use crate::{App, Failure, daemon_client::DaemonClient};

/// The receiver of requests.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Peer<'a> {
    /// The gateway of this process.
    Local(&'a App),
    /// The daemon of the data directory.
    Daemon(&'a DaemonClient),
}

/// A tool as its server lists it.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) definition: Value,
}

impl Tool {
    pub(crate) fn input_schema(&self) -> Option<&Value> {
        self.definition.get("inputSchema")
    }

    pub(crate) fn description(&self) -> &str {
        self.definition.get("description").and_then(Value::as_str).unwrap_or_default()
    }
}

/// The tools with a similar name, or else the command that lists those of the server. `config` is
/// the file of the server, if it runs in this process.
pub(crate) fn near_names(
    alias: &Alias,
    tool: &str,
    tools: &[Tool],
    config: Option<&Path>,
) -> String {
    let near = narthex_model::near(tool, tools.iter().map(|tool| tool.name.as_str()));
    let list = || narthex("tools {}", &[alias]);
    match (&near[..], config) {
        ([], None) => format!("list them with `{}`", list()),
        ([], Some(file)) => {
            format!("list them with `{}`", list().option("--config", file.display()))
        }
        (near, _) => format!("did you mean {}?", near.join(", ")),
    }
}

impl Peer<'_> {
    /// Calls a tool of one server under its own name.
    pub(crate) async fn call(
        &self,
        alias: &Alias,
        tool: &Tool,
        arguments: Map<String, Value>,
    ) -> Result<Message, Failure> {
        let params = json!({ "name": tool.name, "arguments": arguments });
        self.request(alias, method::TOOLS_CALL, params, Some(tool)).await
    }

    /// All tools of one server.
    pub(crate) async fn tools(&self, alias: &Alias) -> Result<Vec<Tool>, Failure> {
        let mut tools = Vec::new();
        let mut pages = Pages::new(Era::Modern);
        loop {
            let params = [b"{", &pages.members()[..], b"}"].concat();
            let params = serde_json::from_slice(&params)
                .map_err(|error| Failure::new(ErrorKind::Bug, format!("bad cursor: {error}")))?;
            let answer = self.request(alias, method::TOOLS_LIST, params, None).await?;
            let result = result(&answer)?;
            for definition in result["tools"].as_array().into_iter().flatten() {
                let name = definition["name"].as_str().unwrap_or_default().to_owned();
                tools.push(Tool { name, definition: definition.clone() });
            }
            match pages.turn(&answer) {
                Ok(true) => {}
                Ok(false) => return Ok(tools),
                Err(error) => {
                    let text = format!("`{alias}` cannot be listed: tools/list {error}");
                    return Err(Failure::new(ErrorKind::Exhausted, text));
                }
            }
        }
    }

    async fn request(
        &self,
        alias: &Alias,
        method: &str,
        mut params: Value,
        tool: Option<&Tool>,
    ) -> Result<Message, Failure> {
        params["_meta"] = meta();
        let params = params.to_string();
        let request = rpc::request(Raw::new(b"1"), method, Some(params.as_bytes()));
        match self {
            Self::Local(app) => {
                let request = parse(request, app.gateway().limits())?;
                // Boxed, since these are large and everything that asks would carry them.
                Box::pin(ask_gateway(app, alias, request)).await
            }
            Self::Daemon(client) => {
                let request = parse(request, client.limits())?;
                let schema = tool.and_then(Tool::input_schema).map(Value::to_string);
                Box::pin(client.ask(alias, request, schema.as_deref())).await
            }
        }
    }
}

async fn ask_gateway(app: &App, alias: &Alias, request: Message) -> Result<Message, Failure> {
    let caller = app.local_caller(Endpoint::Transparent(alias.clone()));
    let mut answering = app.gateway().call(&caller, request).await;
    while let Some(step) = answering.next().await {
        match step {
            Step::Answer(answer) => return parse(answer.payload, app.gateway().limits()),
            Step::Message(_) | Step::Break { .. } => {}
        }
    }
    Err(Failure::new(ErrorKind::Bug, "the gateway gave no answer"))
}

/// The `_meta` of a client of the modern era that offers nothing.
fn meta() -> Value {
    json!({
        meta_key::PROTOCOL_VERSION: Revision::LATEST.as_str(),
        meta_key::CLIENT_CAPABILITIES: {},
        meta_key::CLIENT_INFO: { "name": "narthex", "version": env!("CARGO_PKG_VERSION") },
    })
}

fn parse(payload: narthex_wire::Payload, limits: &Limits) -> Result<Message, Failure> {
    Message::parse(payload.into_bytes(), limits)
        .map_err(|error| Failure::new(ErrorKind::Bug, format!("not a valid message: {error}")))
}

/// The result of an answer to any request but a tool call, or the protocol's error.
fn result(answer: &Message) -> Result<Value, Failure> {
    if answer.kind() == MessageKind::Error {
        return Err(protocol_failure(answer));
    }
    let raw = answer.body_raw().map_or(&b"{}"[..], Raw::as_bytes);
    serde_json::from_slice(&with_whole_pairs(raw))
        .map_err(|error| Failure::new(ErrorKind::Bug, format!("not a valid result: {error}")))
}

/// The failure that a JSON-RPC error reports.
pub(crate) fn protocol_failure(answer: &Message) -> Failure {
    let read = |member: Raw<'_>| serde_json::from_slice(&with_whole_pairs(member.as_bytes())).ok();
    let message = answer.get("message").and_then(read);
    let message = message.as_ref().and_then(Value::as_str).unwrap_or_default();
    let code = answer.error_code().unwrap_or_default();
    let details = answer.get("data").and_then(read);
    // Ours come first in the table; the protocol's own codes mean that the request was wrong.
    let ours = ErrorKind::ALL.into_iter().filter(|kind| *kind != ErrorKind::Bug);
    let kind = ours.into_iter().find(|kind| rpc::code_for(*kind) == code);
    let is_protocols = matches!(
        code,
        rpc::code::PARSE_ERROR | rpc::code::INVALID_REQUEST | rpc::code::METHOD_NOT_FOUND
    );
    match kind.or(is_protocols.then_some(ErrorKind::Invalid)) {
        Some(kind) => Failure::new(kind, message).with_details(details),
        // The failure has the server's own words.
        None => Failure::call(server_error(code, message.to_owned(), details)),
    }
}

/// The failure of a call whose server answered with an error of JSON-RPC.
fn server_error(code: i64, message: String, data: Option<Value>) -> CallError {
    let (code, data) = rpc::own_error(code, data);
    let mut details = json!({ "code": code });
    if let Some(data) = data {
        details["data"] = data;
    }
    CallError { details: Some(details), ..CallError::new(CallErrorKind::ServerError, message) }
}
