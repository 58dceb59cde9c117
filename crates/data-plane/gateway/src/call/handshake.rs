//! The endpoint's description of itself: `initialize` for legacy clients, `server/discover` for
//! modern.

use std::sync::Arc;

use bytes::Bytes;
use narthex_model::{CallErrorKind, ErrorKind, Reader, ServerState};
use narthex_registry::{ServerRow, Snapshot};
use narthex_upstream::{ClientIdentity, ServerCapabilities, ServerFacts};
use narthex_wire::{
    Era, Limits, Message, Patch, Raw, Revision, Rewrite, json::encode_string, meta_key, rpc,
    supported_versions,
};

use crate::{
    Answering, Caller, Endpoint, RunView, Session,
    built_in::BUILT_IN,
    call::{own_answer::result, task_list::has_tasks},
    links::{LinkKind, link_kind},
    lists::exposure::may_be_told,
    names::own_alias,
    refusal::{Refusal, withheld},
    runs::run::{RunRow, RunRows},
    shared::Shared,
    view::{Handling, View, check_capabilities},
};

/// The time for which clients may cache the endpoint's description.
const DISCOVER_TTL_MS: u32 = 10_000;

/// The task capabilities of a client of 2025-11-25, and the end of the object.
const LEGACY_TASKS: &str = r#","tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}"#;

impl Shared {
    pub(crate) async fn initialize(
        self: &Arc<Self>,
        run: &Arc<RunView>,
        endpoint: &Endpoint,
        request: &Message,
    ) -> (Answering, Option<Arc<Session>>) {
        match self.open_session(run, endpoint, request).await {
            Ok((body, session)) => {
                self.arrived(run, Raw::new(&session.client.info));
                (result(request, &body), Some(session))
            }
            Err(refusal) => {
                let id = request.id().unwrap_or(Raw::new(b"null"));
                let to = (Era::Legacy, run.reader());
                (refusal.into_answering(id, request.method(), to), None)
            }
        }
    }

    /// Notes a client that has described itself.
    fn arrived(&self, run: &RunView, info: Raw<'_>) {
        self.arrivals.note(info, &run.workspace, run.authority.actors().user.clone());
    }

    async fn open_session(
        self: &Arc<Self>,
        run: &Arc<RunView>,
        endpoint: &Endpoint,
        request: &Message,
    ) -> Result<(Bytes, Arc<Session>), Refusal> {
        let client = identity(request)?;
        // The place is reserved before any link or stream is opened for the session.
        let place = self.sessions.reserve(run).map_err(|full| {
            let full = full.told("sessions");
            let text =
                format!("too many sessions are open: {full}; end some, or raise limits.sessions");
            Refusal::Kind(ErrorKind::Exhausted, text)
        })?;
        let count = self.metrics.session_opened();
        let node_id = &self.options.node_id;
        let (run, endpoint, tasks) = (run.clone(), endpoint.clone(), self.tasks.clone());
        let session = Session::open(node_id, run, endpoint, client, tasks, count)
            .map_err(|error| Refusal::rpc(rpc::code::INTERNAL_ERROR, error.to_string()))?;
        // A session that is not completed leaves nothing open.
        let unopened = session.closed.clone().drop_guard();
        let body = self.introduce(&session).await?;
        self.sessions.insert(place, session.clone());
        // A session that ends with its run, or with the gateway, must not begin after it.
        if self.shutdown.is_cancelled() || session.run.has_ended() {
            self.sessions.remove(&session.id);
            return Err(Refusal::Cancelled);
        }
        unopened.disarm();
        Ok((body, session))
    }

    /// The description of a new session's endpoint.
    async fn introduce(self: &Arc<Self>, session: &Arc<Session>) -> Result<Bytes, Refusal> {
        let (run, endpoint) = (&session.run, &session.endpoint);
        Ok(match endpoint {
            Endpoint::Aggregated => {
                let snapshot = self.snapshot(run);
                let has_tasks = session.revision == Revision::LEGACY_LATEST
                    && snapshot.servers().any(|row| may_have_tasks(session, &row));
                let view = self.run_view(run, &snapshot);
                let has = aggregated(view.capabilities, &snapshot);
                let text = instructions(&view, &snapshot, run.reader());
                self.own_result(&has, text.as_deref(), session.revision, has_tasks)
            }
            Endpoint::Transparent(alias) if run.is_built_in(alias) => {
                let caller = Caller::new(run.clone(), endpoint.clone(), Some(session.clone()));
                let offered = self.offered_at(&caller, alias);
                let instructions = offered.as_ref().and_then(|offered| offered.instructions());
                self.own_result(&BUILT_IN, instructions, session.revision, false)
            }
            Endpoint::Transparent(alias) => {
                let row = self.settled(run, alias).await?;
                let caller = Caller::new(run.clone(), endpoint.clone(), Some(session.clone()));
                let shared =
                    self.enter(&row).await.ok_or_else(|| crate::refusal::unusable(&row))?;
                // The server's description may depend on the revision. A session's own link is
                // opened when it is first needed, unless its revision or era is another.
                let kind = link_kind(session, &row, shared.facts());
                let is_same = shared.facts().revision == session.revision;
                let facts = match kind == LinkKind::Shared || is_same {
                    true => shared.facts().clone(),
                    false => self.choose_link(&caller, &row).await?.link.facts().clone(),
                };
                let told = facts.instructions();
                match told.is_none_or(|told| may_be_told(run, &row, &told)) {
                    true => self.server_result(&facts, session.revision),
                    false => self.server_result(&facts.without_instructions(), session.revision),
                }
            }
        })
    }

    /// The description of an endpoint that belongs to no server.
    fn own_result(
        &self,
        has: &ServerCapabilities,
        instructions: Option<&[u8]>,
        revision: Revision,
        has_tasks: bool,
    ) -> Bytes {
        let mut capabilities = capabilities(has, Era::Legacy);
        if has_tasks {
            capabilities.truncate(capabilities.len() - 1);
            capabilities.push_str(LEGACY_TASKS);
        }
        let text = format!(
            r#"{{"protocolVersion":"{revision}","capabilities":{capabilities},"serverInfo":"#
        );
        let mut text = [text.as_bytes(), &self.options.server_info].concat();
        add_instructions(&mut text, instructions);
        text.push(b'}');
        text.into()
    }

    /// A server's description of itself, in the revision of this session.
    fn server_result(&self, facts: &ServerFacts, revision: Revision) -> Bytes {
        if facts.revision.is_modern() {
            return self.discovered(facts, revision);
        }
        let mut patch = Patch::default();
        patch.set("protocolVersion", encode_string(revision.as_str()));
        patched(&facts.result, patch)
    }

    /// The result of `initialize` for a server that knows only `server/discover`.
    fn discovered(&self, facts: &ServerFacts, revision: Revision) -> Bytes {
        let result = Raw::new(&facts.result);
        let info = result.get("_meta").and_then(|meta| meta.get(meta_key::SERVER_INFO));
        let info = info.map_or(&self.options.server_info[..], Raw::as_bytes);
        let capabilities = capabilities(&plain(facts.capabilities), Era::Legacy);
        let mut text = format!(
            r#"{{"protocolVersion":"{revision}","capabilities":{capabilities},"serverInfo":"#
        )
        .into_bytes();
        text.extend_from_slice(info);
        add_instructions(&mut text, result.get("instructions").map(Raw::as_bytes));
        text.push(b'}');
        text.into()
    }

    pub(crate) async fn discover(
        self: &Arc<Self>,
        caller: &Caller,
        request: &Message,
    ) -> Result<Answering, Refusal> {
        if let Some(info) = request.get("_meta").and_then(|meta| meta.get(meta_key::CLIENT_INFO)) {
            self.arrived(&caller.run, info);
        }
        let Some(alias) = own_alias(caller) else {
            let view = self.view(caller).await;
            let snapshot = self.snapshot(&caller.run);
            let text = instructions(&view, &snapshot, caller.run.reader());
            let has = aggregated(view.capabilities, &snapshot);
            let body = self.own_discover(&has, &self.options.server_info, text.as_deref());
            return Ok(result(request, &body));
        };
        let row = self.settled(&caller.run, alias).await?;
        // A sleeping server has facts as well.
        let facts = row.facts.as_ref().ok_or_else(|| crate::refusal::unusable(&row))?;
        if facts.revision.is_modern() {
            // The server describes itself anew: its description may depend on the caller's
            // capabilities.
            return self.call_server(caller, Handling::Vendor, request.clone()).await;
        }
        let own = Raw::new(&facts.result);
        let info = own.get("serverInfo").map_or(&self.options.server_info[..], Raw::as_bytes);
        let instructions = own.get("instructions").map(Raw::as_bytes);
        let body = self.own_discover(&plain(facts.capabilities), info, instructions);
        Ok(result(request, &body))
    }

    pub(crate) fn own_discover(
        &self,
        has: &ServerCapabilities,
        info: &[u8],
        instructions: Option<&[u8]>,
    ) -> Bytes {
        let capabilities = capabilities(has, Era::Modern);
        let versions = supported_versions();
        let head = r#"{"resultType":"complete","supportedVersions":"#;
        let mut text = format!(r#"{head}{versions},"capabilities":{capabilities}"#).into_bytes();
        add_instructions(&mut text, instructions);
        let tail = format!(
            r#","ttlMs":{DISCOVER_TTL_MS},"cacheScope":"private","_meta":{{"{}":"#,
            meta_key::SERVER_INFO
        );
        text.extend_from_slice(tail.as_bytes());
        text.extend_from_slice(info);
        text.extend_from_slice(b"}}");
        text.into()
    }
}

/// The instructions of the servers, and the names of servers whose tools are missing: a person has
/// to sign in first (D17), or the run may not have them (X-E122). No list has these tools, so a
/// model learns here that they are missing. A JSON string.
fn instructions(view: &View, rows: &RunRows, reader: Reader) -> Option<Bytes> {
    let waiting = rows.servers().filter(|row| is_withheld(row));
    let note = |row: RunRow| {
        let what = withheld(&row, reader);
        format!("# {}\n\nIts tools are not available: {what}.", row.name)
    };
    let notes: Vec<_> = waiting.map(note).collect();
    if notes.is_empty() {
        return view.instructions.clone();
    }
    let own = view.instructions.as_ref().and_then(|own| Raw::new(own).as_str());
    let own = own.map(|own| format!("{own}\n\n")).unwrap_or_default();
    Some(encode_string(&format!("{own}{}", notes.join("\n\n"))).into())
}

fn is_withheld(row: &ServerRow) -> bool {
    let kind = row.error.as_ref().map(|error| error.kind);
    row.state == ServerState::Authenticating || kind == Some(CallErrorKind::PermissionRequired)
}

fn add_instructions(text: &mut Vec<u8>, instructions: Option<&[u8]>) {
    if let Some(instructions) = instructions {
        text.extend_from_slice(br#","instructions":"#);
        text.extend_from_slice(instructions);
    }
}

/// The legacy client's description of itself. An unknown revision is answered with the gateway's
/// latest legacy revision, as the handshake prescribes.
fn identity(request: &Message) -> Result<ClientIdentity, Refusal> {
    let object = |name: &str| {
        let found = request.get(name).filter(|raw| raw.is_object());
        let found = found.map(|raw| Bytes::copy_from_slice(raw.as_bytes()));
        found.ok_or_else(|| Refusal::invalid(format!("`params.{name}` must be an object")))
    };
    let proposed = request.get("protocolVersion").and_then(Raw::as_str);
    let Some(proposed) = proposed else {
        return Err(Refusal::invalid("`params.protocolVersion` must be a string"));
    };
    let revision = Revision::parse(&proposed).filter(|revision| !revision.is_modern());
    let capabilities = object("capabilities")?;
    check_capabilities(Raw::new(&capabilities))
        .map_err(|fault| Refusal::invalid(fault.to_string()))?;
    Ok(ClientIdentity {
        info: object("clientInfo")?,
        capabilities,
        revision: revision.unwrap_or(Revision::LEGACY_LATEST),
    })
}

/// The capabilities that cross the eras: no tasks yet.
fn plain(has: ServerCapabilities) -> ServerCapabilities {
    ServerCapabilities { tasks: false, ..has }
}

/// Servers may still be starting when a client asks. Their items are announced later, to clients
/// that got these capabilities and so know that there may be some.
pub(crate) fn aggregated(has: ServerCapabilities, snapshot: &Snapshot) -> ServerCapabilities {
    let logging = has.logging || !snapshot.is_settled();
    ServerCapabilities { tools: true, prompts: true, resources: true, logging, ..has }
}

/// True if a server has tasks for a legacy client, as far as is known: capabilities of a server
/// that is still starting cannot be declared later.
fn may_have_tasks(session: &Session, row: &RunRow) -> bool {
    match &row.facts {
        _ if !row.is_ready() => !row.state.is_settled(),
        None => false,
        // The capabilities of a both-era server in the other era are unknown before it is asked.
        Some(facts) if facts.revision.is_modern() => {
            facts.capabilities.tasks && link_kind(session, row, facts) != LinkKind::Shared
        }
        Some(facts) => has_tasks(facts, "requests"),
    }
}

/// The `capabilities` object of an endpoint.
fn capabilities(has: &ServerCapabilities, era: Era) -> String {
    let mut members = Vec::new();
    if has.tools {
        members.push(r#""tools":{"listChanged":true}"#.to_owned());
    }
    if has.prompts {
        members.push(r#""prompts":{"listChanged":true}"#.to_owned());
    }
    if has.resources {
        let subscribe = has.subscribe;
        members.push(format!(r#""resources":{{"listChanged":true,"subscribe":{subscribe}}}"#));
    }
    if has.completions {
        members.push(r#""completions":{}"#.to_owned());
    }
    if has.logging {
        members.push(r#""logging":{}"#.to_owned());
    }
    if has.tasks && era == Era::Modern {
        members.push(r#""extensions":{"io.modelcontextprotocol/tasks":{}}"#.to_owned());
    }
    format!("{{{}}}", members.join(","))
}

/// A result object with changed members.
fn patched(result: &Bytes, patch: Patch<'static>) -> Bytes {
    let whole = rpc::result_response(Raw::new(b"0"), result).into_bytes();
    let Ok(message) = Message::parse(whole, &Limits::default()) else { return result.clone() };
    let changed = Rewrite { body: patch, ..Rewrite::default() }.apply(&message).into_bytes();
    let limits = Limits::default();
    let body = Message::parse(changed, &limits).ok();
    let body = body.as_ref().and_then(Message::body_raw);
    body.map_or_else(|| result.clone(), |raw| Bytes::copy_from_slice(raw.as_bytes()))
}
