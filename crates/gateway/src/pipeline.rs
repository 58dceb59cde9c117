//! One request from a door to a server, in named steps.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use http::HeaderValue;
use narthex_model::Alias;
use narthex_policy::{Item, Request};
use narthex_registry::{ServerRow, Snapshot};
use narthex_upstream::{ClientIdentity, Hop, LinkError};
use narthex_wire::{
    Era, Message, Raw, Revision, Rewrite, json::encode_string, meta_key, method, rpc, translate,
};
use tokio::time::Instant;

use crate::{
    Answering, AuditRecord, Caller, Endpoint, TracedCall,
    answering::ForwardedCall,
    finish::{Finish, StateSeal, TaskOwner},
    gateway::Shared,
    links::Chosen,
    log_level::LogLevel,
    method::{Handling, ListKind, handling},
    record::CallRecord,
    refusal::Refusal,
    route::{Routed, not_found},
    view::{View, parts},
};

impl Shared {
    /// Answers one request: classify, route, authorize, prepare, forward; finish and record
    /// happen as the [`Answering`] is polled.
    pub(crate) async fn call(self: &Arc<Self>, caller: &Caller, request: Message) -> Answering {
        let era = caller.era();
        let id = Bytes::copy_from_slice(request.id().map_or(b"null", Raw::as_bytes));
        let name: Box<str> = request.method().into();
        let Some(handling) = handling(&name, era) else {
            return Refusal::unknown_method(&name).into_answering(Raw::new(&id), &name, era);
        };
        match self.answer(caller, handling, request).await {
            Ok(answering) => answering,
            Err(refusal) => refusal.into_answering(Raw::new(&id), &name, era),
        }
    }

    async fn answer(
        self: &Arc<Self>,
        caller: &Caller,
        handling: Handling,
        request: Message,
    ) -> Result<Answering, Refusal> {
        let is_aggregated = caller.endpoint == Endpoint::Aggregated;
        match handling {
            Handling::Ping => Ok(result(&request, &Bytes::from_static(b"{}"))),
            Handling::Discover => self.discover(caller, &request).await,
            Handling::List(kind) if is_aggregated => self.list(caller, kind, &request).await,
            Handling::SetLevel => self.set_level(caller, request).await,
            Handling::Subscribe { is_start } => self.subscribe(caller, is_start, request).await,
            Handling::Listen => self.listen(caller, request).await,
            Handling::List(_)
            | Handling::Tool
            | Handling::Prompt
            | Handling::Resource
            | Handling::Complete
            | Handling::Task
            | Handling::Vendor => self.forward(caller, handling, request).await,
        }
    }

    /// Routes, authorizes, prepares and forwards one request.
    pub(crate) async fn forward(
        self: &Arc<Self>,
        caller: &Caller,
        handling: Handling,
        request: Message,
    ) -> Result<Answering, Refusal> {
        let Routed { row, mut request } = self.route(caller, handling, request).await?;
        let chosen = self.choose_link(caller, &row).await?;
        let mut hop = hop(&chosen, handling, &request)?;
        let mut record = self.record(caller, &request)?;
        self.trace(caller, &mut request, &mut hop, &mut record);
        match self.send(caller, &row, chosen, request, hop).await {
            Ok(sent) => Ok(Answering::forwarded(sent.into_call(record))),
            Err(refusal) => {
                record.finish(crate::finish::outcome_of_refusal(&refusal));
                Err(refusal)
            }
        }
    }

    /// Begins the call's span and puts it in front of the server's, in `_meta` and as a header. Where
    /// nobody traces, the caller's context goes on as it came.
    fn trace(
        &self,
        caller: &Caller,
        request: &mut Request,
        hop: &mut Hop,
        record: &mut CallRecord,
    ) {
        let text = |key| request.message.meta_value(key).and_then(Raw::as_str);
        let own = text(meta_key::TRACEPARENT);
        let parent = own.as_deref().or(caller.trace_parent.as_deref());
        let Some(tracer) = &self.options.tracer else {
            hop.trace_parent = parent.and_then(|parent| HeaderValue::from_str(parent).ok());
            return;
        };
        let span = tracer.start(&TracedCall {
            parent,
            state: text(meta_key::TRACESTATE).as_deref(),
            server: &request.alias,
            method: request.message.method(),
            item: request.item.name(),
        });
        let ours = span.trace_parent();
        hop.trace_parent = HeaderValue::from_str(&ours).ok();
        request.rewrite.meta.set(meta_key::TRACEPARENT, encode_string(&ours));
        record.trace(span);
    }

    async fn send(
        self: &Arc<Self>,
        caller: &Caller,
        row: &Arc<ServerRow>,
        chosen: Chosen,
        mut request: Request,
        hop: Hop,
    ) -> Result<Sent, Refusal> {
        let link = chosen.link;
        let up = link.facts().revision;
        let down = caller.session.as_ref().map_or(Revision::LATEST, |session| session.revision);
        let is_stream = request.message.method() == method::SUBSCRIPTIONS_LISTEN;
        let finish = FinishParts::read(self, caller, &request, up)?;
        self.prepare(caller, &mut request, up)?;
        let timeout = match is_stream {
            true => None,
            false => Some(self.timeout(row)),
        };
        let permitted = caller.run.policy.authorize(request).map_err(|denial| {
            Refusal::Kind(denial.kind(), "there is no such server here".to_owned())
        })?;
        let started = Instant::now();
        let deadline = started + timeout.unwrap_or_default();
        let forwarding = link.forward(permitted, hop);
        let forwarded = match (timeout, finish.open_call.as_ref()) {
            (None, _) => forwarding.await,
            (Some(timeout), open_call) => {
                let cancelled = open_call.map(|call| call.cancelled.clone());
                let late = LinkError::Deadline(timeout.as_millis());
                tokio::select! {
                    biased;
                    () = given_up(cancelled) => return Err(Refusal::Cancelled),
                    got = tokio::time::timeout_at(deadline, forwarding) => {
                        got.unwrap_or(Err(late))
                    }
                }
            }
        }?;
        Ok(Sent { forwarded, finish, link, up, down, timeout, deadline })
    }

    fn timeout(&self, row: &ServerRow) -> std::time::Duration {
        let configured = row.definition.as_ref().and_then(|definition| definition.timeout);
        configured.unwrap_or(self.options.call_timeout)
    }

    fn record(&self, caller: &Caller, request: &Request) -> Result<CallRecord, Refusal> {
        let name = request.message.method();
        let record = AuditRecord {
            run: caller.run.id,
            session: caller.session.as_ref().map(|session| session.id.clone()),
            endpoint: caller.endpoint.clone(),
            server: Some(request.alias.clone()),
            method: match name {
                method::TOOLS_CALL => Cow::Borrowed(method::TOOLS_CALL),
                other => Cow::Owned(other.to_owned()),
            },
            item: request.item.clone(),
        };
        CallRecord::begin(&self.audit, &self.metrics, record)
            .map_err(|full| Refusal::Kind(full.kind(), full.to_string()))
    }

    /// Rewrites what the server's era needs, before the request is checked and sealed.
    fn prepare(&self, caller: &Caller, request: &mut Request, up: Revision) -> Result<(), Refusal> {
        match (caller.era(), up.era()) {
            (Era::Legacy, Era::Modern) => {
                let stamp = match &caller.session {
                    Some(session) => stamp_of(&session.client),
                    None => stamp_of(&self.own_identity()),
                };
                merge(&mut request.rewrite, stamp);
            }
            (Era::Modern, Era::Legacy) => {
                merge(&mut request.rewrite, translate::request_to_legacy());
            }
            (Era::Modern, Era::Modern) => self.open_state(caller, request)?,
            (Era::Legacy, Era::Legacy) => {}
        }
        Ok(())
    }

    /// What we say of ourselves where no client's words fit.
    pub(crate) fn own_identity(&self) -> ClientIdentity {
        ClientIdentity {
            info: self.options.server_info.clone(),
            capabilities: Bytes::from_static(b"{}"),
            revision: Revision::LEGACY_LATEST,
        }
    }

    /// Gives a server back its own request state, byte for byte (§1.3).
    fn open_state(&self, caller: &Caller, request: &mut Request) -> Result<(), Refusal> {
        let Some(state) = request.message.get("requestState") else { return Ok(()) };
        let binding = binding(caller, request);
        let opened = state.as_str().and_then(|text| self.sealer.open(&text, &binding));
        let Some(opened) = opened else {
            return Err(Refusal::invalid(
                "`params.requestState` is not one that this request was given, or has expired",
            ));
        };
        request.rewrite.body.set("requestState", opened);
        Ok(())
    }

    async fn list(
        self: &Arc<Self>,
        caller: &Caller,
        kind: ListKind,
        request: &Message,
    ) -> Result<Answering, Refusal> {
        let view = self.view(caller).await;
        let cursor = request.get("cursor").filter(|raw| raw.as_bytes() != b"null");
        let cursor = match cursor {
            None => None,
            Some(raw) => {
                Some(raw.as_str().ok_or_else(|| Refusal::invalid("`cursor` must be a string"))?)
            }
        };
        let page = view.page(kind, caller.era(), cursor.as_deref());
        let page = page.ok_or_else(|| Refusal::invalid("`cursor` is none of ours"))?;
        Ok(result(request, page))
    }

    /// What a caller of the aggregated endpoint sees. Built once per registry snapshot; clients
    /// that servers may ask something see what the servers list for their capabilities.
    pub(crate) async fn view(self: &Arc<Self>, caller: &Caller) -> Arc<View> {
        let snapshot = self.registry.snapshot();
        match caller.session.as_ref().filter(|session| session.can_be_asked()) {
            None => self.live_view(&snapshot),
            Some(session) => self.session_view(session, &snapshot).await,
        }
    }

    pub(crate) fn live_view(&self, snapshot: &Snapshot) -> Arc<View> {
        if let Some(view) = self.live_view.load_full().filter(|view| view.seq == snapshot.seq) {
            return view;
        }
        let parts = parts(snapshot, &narthex_policy::RunPolicy::AllAttached);
        let view = Arc::new(self.build_view(snapshot.seq, &parts));
        self.live_view.store(Some(view.clone()));
        view
    }

    pub(crate) fn build_view(&self, seq: u64, parts: &[crate::view::Part]) -> View {
        View::build(seq, parts, self.options.name_limit, &self.options.server_info)
    }
}

/// What is sent and waits to be finished.
struct Sent {
    forwarded: narthex_upstream::Forwarded,
    finish: FinishParts,
    link: Arc<narthex_upstream::Link>,
    up: Revision,
    down: Revision,
    timeout: Option<std::time::Duration>,
    deadline: Instant,
}

/// What is read from the request before it is given away.
struct FinishParts {
    id: Bytes,
    progress_token: Option<Bytes>,
    method: Box<str>,
    log_level: Option<LogLevel>,
    session: Option<Arc<crate::Session>>,
    open_call: Option<crate::session::OpenCall>,
    state: Option<StateSeal>,
    tasks: Option<TaskOwner>,
    server_info: Bytes,
}

impl FinishParts {
    fn read(
        shared: &Arc<Shared>,
        caller: &Caller,
        request: &Request,
        up: Revision,
    ) -> Result<Self, Refusal> {
        let message = &request.message;
        let id = Bytes::copy_from_slice(message.id().map_or(b"null", Raw::as_bytes));
        let raw = |raw: Raw<'_>| Bytes::copy_from_slice(raw.as_bytes());
        let session = caller.session.clone();
        let open_call = match &session {
            None => None,
            Some(session) => {
                let open = session.open_call(id.clone());
                let code = rpc::code::INVALID_REQUEST;
                Some(open.ok_or_else(|| Refusal::rpc(code, "a request with this id is open"))?)
            }
        };
        let log_level = match &session {
            None => message.meta_value(meta_key::LOG_LEVEL).and_then(LogLevel::read),
            Some(session) => session.log_level(),
        };
        let is_call = message.method() == method::TOOLS_CALL;
        let is_modern_pair = up.is_modern() && session.is_none();
        Ok(Self {
            id,
            progress_token: message.meta_value(meta_key::PROGRESS_TOKEN).map(raw),
            method: message.method().into(),
            log_level,
            session,
            open_call,
            state: is_modern_pair.then(|| StateSeal {
                sealer: shared.sealer.clone(),
                binding: binding(caller, request),
            }),
            tasks: is_call.then(|| TaskOwner {
                routes: shared.tasks.clone(),
                alias: request.alias.clone(),
                run: caller.run.id,
            }),
            server_info: shared.options.server_info.clone(),
        })
    }
}

impl Sent {
    fn into_call(self, record: CallRecord) -> ForwardedCall {
        let Self { forwarded, finish, link, up, down, timeout, deadline } = self;
        let finish = Finish {
            id: finish.id,
            progress_token: finish.progress_token,
            method: finish.method,
            down,
            up,
            log_level: finish.log_level,
            link,
            session: finish.session,
            open_call: finish.open_call,
            record,
            state: finish.state,
            tasks: finish.tasks,
            server_info: finish.server_info,
        };
        ForwardedCall { forwarded, finish, timeout, deadline }
    }
}

/// What a sealed state is bound to.
fn binding(caller: &Caller, request: &Request) -> Vec<u8> {
    let run = caller.run.id.to_text();
    let parts = [&run, request.alias.as_str(), request.message.method(), request.item.name()];
    parts.map(str::as_bytes).join(&0)
}

/// Checks that the server has the tool, and finds what belongs to its hop.
fn hop(chosen: &Chosen, handling: Handling, request: &Request) -> Result<Hop, Refusal> {
    let Item::Tool(name) = &request.item else { return Ok(Hop::default()) };
    let Some(tool) = chosen.inventory.tool(name) else {
        return Err(not_found(handling, name));
    };
    Ok(Hop { header_params: tool.header_params.clone(), trace_parent: None })
}

/// What a legacy client's requests carry to a modern server. Until questions are bridged between
/// the eras, none of its capabilities is declared: a server must not ask what cannot be answered.
fn stamp_of(client: &ClientIdentity) -> Rewrite<'static> {
    let mut rewrite = Rewrite::default();
    let version = encode_string(Revision::LATEST.as_str());
    rewrite.meta.set(meta_key::PROTOCOL_VERSION, version);
    rewrite.meta.set(meta_key::CLIENT_CAPABILITIES, &b"{}"[..]);
    rewrite.meta.set(meta_key::CLIENT_INFO, client.info.to_vec());
    rewrite
}

fn merge(into: &mut Rewrite<'static>, from: Rewrite<'static>) {
    into.body.append(from.body);
    into.meta.append(from.meta);
}

async fn given_up(token: Option<tokio_util::sync::CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

pub(crate) fn result(request: &Message, body: &Bytes) -> Answering {
    let id = request.id().unwrap_or(Raw::new(b"null"));
    Answering::ready(rpc::result_response(id, body), 200)
}

/// The alias of a transparent endpoint.
pub(crate) fn own_alias(caller: &Caller) -> Option<&Alias> {
    match &caller.endpoint {
        Endpoint::Transparent(alias) => Some(alias),
        Endpoint::Aggregated => None,
    }
}
