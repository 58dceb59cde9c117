//! One request from a door to a server, in named steps.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use http::HeaderValue;
use narthex_model::Alias;
use narthex_policy::{Item, Permitted, Request, RunPolicy};
use narthex_registry::{ServerRow, Snapshot};
use narthex_upstream::{ClientIdentity, Hop, Link, LinkError};
use narthex_wire::{
    Era, Message, Raw, Revision, Rewrite, json::encode_string, meta_key, method, rpc, translate,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    Answering, AuditRecord, Caller, Endpoint, RunId, RunView, TracedCall,
    answering::ForwardedCall,
    finish::{Finish, StateSeal, TaskOwner},
    gateway::Shared,
    links::Chosen,
    log_level::LogLevel,
    method::{Handling, ListKind, handling, known_name},
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
        let (id, name) = (id_of(&request), name_of(&request));
        let refuse = |refusal: Refusal| refusal.into_answering(Raw::new(&id), &name, era);
        let Some(handling) = handling(&name, era) else {
            return refuse(Refusal::unknown_method(&name));
        };
        let is_aggregated = caller.endpoint == Endpoint::Aggregated;
        let answered = match handling {
            Handling::List(_) if is_aggregated => {
                self.answer_itself(caller, handling, request).await
            }
            Handling::List(_)
            | Handling::Tool
            | Handling::Prompt
            | Handling::Resource
            | Handling::Complete
            | Handling::Task
            | Handling::Vendor => self.forward(caller, handling, request).await,
            Handling::Ping
            | Handling::Discover
            | Handling::SetLevel
            | Handling::Subscribe { .. }
            | Handling::Listen => self.answer_itself(caller, handling, request).await,
        };
        answered.unwrap_or_else(refuse)
    }

    /// Answers what the gateway knows itself. Boxed: a call that is forwarded should not carry the
    /// room that these need.
    fn answer_itself<'a>(
        self: &'a Arc<Self>,
        caller: &'a Caller,
        handling: Handling,
        request: Message,
    ) -> Boxed<'a, Result<Answering, Refusal>> {
        Box::pin(async move {
            match handling {
                Handling::Ping => Ok(result(&request, &Bytes::from_static(b"{}"))),
                Handling::Discover => self.discover(caller, &request).await,
                Handling::List(kind) => self.list(caller, kind, &request).await,
                Handling::SetLevel => self.set_level(caller, request).await,
                Handling::Subscribe { is_start } => self.subscribe(caller, is_start, request).await,
                Handling::Listen => self.listen(caller, request).await,
                Handling::Tool
                | Handling::Prompt
                | Handling::Resource
                | Handling::Complete
                | Handling::Task
                | Handling::Vendor => self.forward(caller, handling, request).await,
            }
        })
    }

    /// Routes, authorizes, prepares and forwards one request.
    pub(crate) async fn forward(
        self: &Arc<Self>,
        caller: &Caller,
        handling: Handling,
        request: Message,
    ) -> Result<Answering, Refusal> {
        let routed = self.route(caller, handling, request).await?;
        let chosen = self.choose_link(caller, &routed.row).await?;
        // A server that forgot its session did not see the request: one more try, on a new link.
        let has_session =
            !chosen.link.is_one_channel() && !chosen.link.facts().revision.is_modern();
        let spare = has_session.then(|| routed.clone());
        match self.forward_on(caller, handling, routed, chosen).await {
            Err(Refusal::Unsent(_)) if spare.is_some() => {
                Box::pin(self.forward_again(caller, handling, spare)).await
            }
            forwarded => forwarded,
        }
    }

    async fn forward_again(
        self: &Arc<Self>,
        caller: &Caller,
        handling: Handling,
        spare: Option<Routed>,
    ) -> Result<Answering, Refusal> {
        let Some(mut routed) = spare else { return Err(Refusal::Cancelled) };
        routed.row = self.settled(&routed.request.alias.clone()).await?;
        let chosen = self.choose_link(caller, &routed.row).await?;
        self.forward_on(caller, handling, routed, chosen).await
    }

    async fn forward_on(
        self: &Arc<Self>,
        caller: &Caller,
        handling: Handling,
        routed: Routed,
        chosen: Chosen,
    ) -> Result<Answering, Refusal> {
        let Routed { row, mut request } = routed;
        let mut hop = hop(&chosen, handling, &request)?;
        let mut record = self.record(caller, &request)?;
        self.trace(caller, &mut request, &mut hop, &mut record);
        match self.send(caller, &row, chosen.link, request, hop).await {
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

    /// Prepares, authorizes and sends. What is done before anything is awaited is done in
    /// [`Shared::seal`], so that the request is not kept beside its sealed form.
    async fn send(
        self: &Arc<Self>,
        caller: &Caller,
        row: &ServerRow,
        link: Arc<Link>,
        request: Request,
        hop: Hop,
    ) -> Result<Sent, Refusal> {
        let is_stream = request.message.method() == method::SUBSCRIPTIONS_LISTEN;
        let timeout = (!is_stream).then(|| self.timeout(row));
        let (finish, permitted) = self.seal(caller, request, &link)?;
        let deadline = Instant::now() + timeout.unwrap_or_default();
        let forwarding = link.forward(permitted, hop);
        let forwarded = match timeout {
            None => Box::pin(forwarding).await,
            Some(timeout) => {
                let cancelled = finish.open_call.as_ref().map(|call| call.cancelled.clone());
                tokio::select! {
                    biased;
                    () = given_up(cancelled) => return Err(Refusal::Cancelled),
                    got = tokio::time::timeout_at(deadline, forwarding) => {
                        got.unwrap_or_else(|_late| Err(LinkError::Deadline(timeout.as_millis())))
                    }
                }
            }
        };
        let down = caller.session.as_ref().map_or(Revision::LATEST, |session| session.revision);
        let stop = is_stream.then(|| self.shutdown.clone());
        Ok(Sent { forwarded: forwarded?, finish, link, down, timeout, deadline, stop })
    }

    fn seal(
        self: &Arc<Self>,
        caller: &Caller,
        mut request: Request,
        link: &Link,
    ) -> Result<(FinishParts, Permitted<Request>), Refusal> {
        let up = link.facts().revision;
        let finish = FinishParts::read(self, caller, &request, up)?;
        self.prepare(caller, &mut request, up)?;
        let permitted = caller.run.policy.authorize(request).map_err(|denial| {
            Refusal::Kind(denial.kind(), "there is no such server here".to_owned())
        })?;
        Ok((finish, permitted))
    }

    fn timeout(&self, row: &ServerRow) -> std::time::Duration {
        let configured = row.definition.as_ref().and_then(|definition| definition.timeout);
        configured.unwrap_or(self.options.call_timeout)
    }

    fn record(&self, caller: &Caller, request: &Request) -> Result<CallRecord, Refusal> {
        let is_stream = request.message.method() == method::SUBSCRIPTIONS_LISTEN;
        let record = AuditRecord {
            run: caller.run.id,
            session: caller.session.as_ref().map(|session| session.id.clone()),
            endpoint: caller.endpoint.clone(),
            server: Some(request.alias.clone()),
            method: name_of(&request.message),
            item: request.item.clone(),
        };
        // Streams have no end of their own, so nobody waits for it.
        let open = (!is_stream).then(|| self.calls.token());
        CallRecord::begin(&self.audit, &self.metrics, record, open)
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
        let binding = binding(caller.run.id, request);
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
            None => self.run_view(&caller.run, &snapshot),
            Some(session) => Box::pin(self.session_view(session, &snapshot)).await,
        }
    }

    /// What a run sees: lists and calls ask the same view (D5).
    pub(crate) fn run_view(&self, run: &RunView, snapshot: &Snapshot) -> Arc<View> {
        if run.policy == RunPolicy::AllAttached {
            return self.live_view(snapshot);
        }
        if let Some(view) = run.view.load_full().filter(|view| view.seq == snapshot.seq) {
            return view;
        }
        let view = Arc::new(self.build_view(snapshot.seq, &parts(snapshot, &run.policy)));
        run.view.store(Some(view.clone()));
        view
    }

    pub(crate) fn live_view(&self, snapshot: &Snapshot) -> Arc<View> {
        if let Some(view) = self.live_view.load_full().filter(|view| view.seq == snapshot.seq) {
            return view;
        }
        let parts = parts(snapshot, &RunPolicy::AllAttached);
        let view = Arc::new(self.build_view(snapshot.seq, &parts));
        self.live_view.store(Some(view.clone()));
        view
    }

    pub(crate) fn build_view(&self, seq: u64, parts: &[crate::view::Part]) -> View {
        View::build(seq, parts, self.options.name_limit, &self.options.server_info)
    }
}

/// A future of its own.
type Boxed<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What is sent and waits to be finished.
struct Sent {
    forwarded: narthex_upstream::Forwarded,
    finish: FinishParts,
    link: Arc<Link>,
    down: Revision,
    timeout: Option<std::time::Duration>,
    deadline: Instant,
    stop: Option<CancellationToken>,
}

/// What is read from the request before it is given away.
struct FinishParts {
    id: Bytes,
    progress_token: Option<Bytes>,
    method: Cow<'static, str>,
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
        let id = id_of(message);
        let raw = |raw: Raw<'_>| message.bytes().slice_ref(raw.as_bytes());
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
            method: name_of(message),
            log_level,
            session,
            open_call,
            state: is_modern_pair.then(|| StateSeal {
                sealer: shared.sealer.clone(),
                run: caller.run.id,
                alias: request.alias.clone(),
                item: request.item.clone(),
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
        let Self { forwarded, finish, link, down, timeout, deadline, stop } = self;
        let up = link.facts().revision;
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
        ForwardedCall { forwarded, finish, timeout, deadline, stop }
    }
}

/// What a sealed state is bound to.
fn binding(run: RunId, request: &Request) -> Vec<u8> {
    state_binding(run, &request.alias, request.message.method(), request.item.name())
}

/// What a sealed state is bound to: run, server, method and item.
pub(crate) fn state_binding(run: RunId, alias: &Alias, method: &str, item: &str) -> Vec<u8> {
    let run = run.to_text();
    [&run, alias.as_str(), method, item].map(str::as_bytes).join(&0)
}

/// The caller's id, as JSON, shared with the message.
fn id_of(message: &Message) -> Bytes {
    let id = message.id().map(|id| message.bytes().slice_ref(id.as_bytes()));
    id.unwrap_or_else(|| Bytes::from_static(b"null"))
}

/// The method's name, without an allocation where it is a known one.
fn name_of(message: &Message) -> Cow<'static, str> {
    match known_name(message.method()) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(message.method().to_owned()),
    }
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

async fn given_up(token: Option<CancellationToken>) {
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
