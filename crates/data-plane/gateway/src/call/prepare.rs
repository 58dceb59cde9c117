//! Makes a request ready for its server: reads the parts that its answer will need, and rewrites it
//! for the server's era (the `prepare` step).

use std::{borrow::Cow, sync::Arc, time::Duration};

use bytes::Bytes;
use narthex_model::{Alias, OutputLimits, Reader, ServerDefinition};
use narthex_policy::{Basis, Item, Origin, Paid, Payment, Permitted, Request, bound_arguments};
use narthex_registry::ServerRow;
use narthex_upstream::{Booked, ClientIdentity, Hop, InUse, Inventory};
use narthex_wire::{
    Era, LogLevel, Raw, Revision, Rewrite,
    json::encode_string,
    meta_key, method,
    translate::{self, ClientStamp},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Caller, Endpoint, RunId, RunView, Session,
    call::{
        authorize::Standing,
        clock::CallLimit,
        connect::Target,
        finish::StateSeal,
        identify::{Call, id_of, name_of},
        parked::Asking,
        refusal::Refusal,
        retry::Tried,
        rounds::{INPUT_RESPONSES, REQUEST_STATE, Rounds, has_rounds},
        route::Routed,
    },
    gateway::Shared,
    runs::run::RunRow,
    subscriptions::Ear,
    tasks::TaskOwner,
    view::{OwnCall, shown},
};

/// Longest time of a task's result (2025-11-25): servers answer when the task has ended.
const TASK_RESULT_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// A call whose request waits for policy's decision.
pub(crate) struct Prepared {
    pub(crate) row: RunRow,
    pub(crate) link: InUse,
    pub(crate) hop: Hop,
    pub(crate) booked: Booked,
    /// The parts that its answer will need.
    pub(crate) finish: FinishParts,
    /// Makes its further rounds, where its caller cannot.
    pub(crate) rounds: Option<Box<Rounds>>,
    /// The permission for the resources that a stream shall report.
    pub(crate) listening: Standing,
    /// The deadline of the call; `None` for streams that live until they are closed.
    pub(crate) limit: Option<CallLimit>,
}

impl Shared {
    /// Prepares a request for its server: puts the trace context into it, reads the parts that its
    /// answer will need, and rewrites it for the server's era.
    ///
    /// # Errors
    /// When it brings a state that it was not given.
    pub(crate) fn prepare(
        self: &Arc<Self>,
        call: &Call<'_>,
        target: Target,
        tried: &mut Tried,
    ) -> Result<(Prepared, Request), Refusal> {
        let (caller, Target { mut routed, link, mut hop }) = (call.caller, target);
        self.trace(caller, &link, &mut routed.request, &mut hop, &mut tried.record);
        // Until it is known to be unsent: a call that is given up meanwhile counts as made.
        tried.record.set_sent(true);
        let rounds = self.rounds(caller, &routed, &link, &hop);
        let booked = tried.record.booked()?;
        let limit = self.limit(call, &routed);
        let up = link.facts().revision;
        let mut finish = FinishParts::read(self, caller, &routed, up);
        let asking = |turn| Box::new(Asking::new(self, caller, &routed.request, turn));
        finish.asking = routed.turn.take().map(asking);
        let Routed { row, mut request, listening, .. } = routed;
        self.rewrite(caller, &mut request, up, &mut tried.payment)?;
        let prepared = Prepared { row, link, hop, booked, finish, rounds, listening, limit };
        Ok((prepared, request))
    }

    /// The deadline of a call to a server; `None` for a stream.
    fn limit(&self, call: &Call<'_>, routed: &Routed) -> Option<CallLimit> {
        let row = &routed.row;
        let each = match routed.request.message.method() {
            method::SUBSCRIPTIONS_LISTEN => return None,
            method::TASKS_RESULT => self.timeout(row).max(TASK_RESULT_TIMEOUT),
            _ => self.timeout(row),
        };
        let most = row.definition.as_ref().and_then(|definition| definition.progress_extends);
        Some(call.clock.limit(each, most))
    }

    /// Rewrites the request for the server's era, before it is checked and sealed. Grants that
    /// earlier rounds of the same call have used up are added to its own.
    pub(crate) fn rewrite(
        &self,
        caller: &Caller,
        request: &mut Request,
        up: Revision,
        payment: &mut Payment,
    ) -> Result<(), Refusal> {
        match (caller.era(), up.era()) {
            (Era::Legacy, Era::Modern) => {
                if let Some(session) = &caller.session {
                    merge(&mut request.rewrite, stamp_of(session));
                }
                without_claims(request);
            }
            (Era::Modern, Era::Legacy) => {
                merge(&mut request.rewrite, translate::request_to_legacy());
                return self.bring_payment(caller, request, payment);
            }
            (Era::Modern, Era::Modern) => return self.open_state(caller, request, payment),
            (Era::Legacy, Era::Legacy) => {}
        }
        Ok(())
    }

    /// The gateway's description of itself, for requests that carry no client's.
    pub(crate) fn own_identity(&self) -> ClientIdentity {
        ClientIdentity {
            info: self.options.server_info.clone(),
            capabilities: Bytes::from_static(b"{}"),
            revision: Revision::LEGACY_LATEST,
        }
    }

    /// Gives a server back its own request state, byte for byte (§1.3).
    fn open_state(
        &self,
        caller: &Caller,
        request: &mut Request,
        payment: &mut Payment,
    ) -> Result<(), Refusal> {
        let Some(state) = request.message.get("requestState") else { return Ok(()) };
        let binding = binding(caller.run.id, request);
        let opened = state.as_str().and_then(|text| self.sealer.open(&text, &binding));
        let read = opened.as_ref().and_then(|(id, state)| Some((*id, Paid::read(state)?)));
        let Some((id, (paid, state))) = read else {
            return Err(Refusal::invalid(
                "`params.requestState` is not one that this request was given, or has expired",
            ));
        };
        match state {
            Some(state) => request.rewrite.body.set("requestState", state.to_vec()),
            None => request.rewrite.body.remove("requestState"),
        }
        // Grants used up by the call count for these arguments, and for one further round.
        if !paid.grants.is_empty() && paid.arguments == bound_arguments(request) {
            let now = std::time::SystemTime::now();
            payment.bring((id, paid.grants), &self.sealer.spent, now);
        }
        Ok(())
    }
}

/// The parts of the request that are read before it is given away.
pub(crate) struct FinishParts {
    pub(super) id: Bytes,
    pub(super) progress_token: Option<Bytes>,
    pub(super) method: Cow<'static, str>,
    pub(super) log_level: Option<LogLevel>,
    pub(super) session: Option<Arc<Session>>,
    pub(super) state: Option<StateSeal>,
    pub(super) tasks: Option<TaskOwner>,
    pub(super) server_info: Bytes,
    pub(super) item: Item,
    pub(super) limits: OutputLimits,
    pub(super) is_aggregated: bool,
    pub(super) definition: Option<Arc<ServerDefinition>>,
    pub(super) own_call: Option<Box<OwnCall>>,
    pub(super) frozen: Option<Arc<Inventory>>,
    pub(super) told_by: Option<Box<(Arc<RunView>, Arc<ServerRow>)>>,
    pub(super) basis: Basis,
    pub(super) is_shaped: bool,
    pub(super) reader: Reader,
    pub(super) run_over: Option<CancellationToken>,
    /// The parts of the call that let its server ask its client.
    pub(crate) asking: Option<Box<Asking>>,
    /// The call's receiver of log messages on its server's own stream.
    pub(crate) ear: Option<Box<Ear>>,
}

impl FinishParts {
    pub(crate) fn read(
        shared: &Arc<Shared>,
        caller: &Caller,
        routed: &Routed,
        up: Revision,
    ) -> Self {
        let Routed { row, request, own_tool, frozen, listening: _, turn: _, is_shaped } = routed;
        let message = &request.message;
        let id = id_of(message);
        let raw = |raw: Raw<'_>| message.bytes().slice_ref(raw.as_bytes());
        let session = caller.session.clone();
        let log_level = match &session {
            None => message.meta_value(meta_key::LOG_LEVEL).and_then(LogLevel::read),
            Some(session) => session.log_level(),
        };
        let method = message.method();
        let has_tasks = method == method::TOOLS_CALL || method.starts_with("tasks/");
        let is_modern_pair = up.is_modern() && session.is_none();
        Self {
            id,
            progress_token: message.meta_value(meta_key::PROGRESS_TOKEN).map(raw),
            method: match own_tool {
                Some(_) => method::TOOLS_CALL.into(),
                None => name_of(message),
            },
            log_level,
            session,
            state: is_modern_pair.then(|| StateSeal {
                sealer: shared.sealer.clone(),
                run: caller.run.id,
                alias: request.alias.clone(),
                paid: Paid::default(),
            }),
            tasks: has_tasks.then(|| TaskOwner {
                routes: shared.tasks.clone(),
                server: caller.run.key(&request.alias),
                run: caller.run.id,
                is_aggregated: caller.endpoint == Endpoint::Aggregated,
                tool: match &request.item {
                    Item::Tool(name) => Some(name.clone()),
                    Item::Prompt(_) | Item::Resource(_) | Item::Task(_) | Item::Server => None,
                },
                origin: None,
            }),
            server_info: shared.options.server_info.clone(),
            item: request.item.clone(),
            limits: shared.output_limits(caller, row),
            is_aggregated: caller.endpoint == Endpoint::Aggregated,
            definition: row.definition.clone(),
            own_call: own_tool.map(|tool| Box::new(OwnCall { tool, inventory: shown(row) })),
            frozen: frozen.clone(),
            told_by: (method == method::SERVER_DISCOVER)
                .then(|| Box::new((caller.run.clone(), Arc::clone(row)))),
            basis: Basis::default(),
            is_shaped: *is_shaped,
            reader: caller.run.reader(),
            run_over: match message.method() {
                method::SUBSCRIPTIONS_LISTEN => None,
                _ => caller.session.is_none().then(|| caller.run.calls_end().clone()),
            },
            asking: None,
            ear: None,
        }
    }

    /// The level from which on a modern call wants log messages, if it names one.
    pub(crate) fn named_level(&self) -> Option<LogLevel> {
        self.log_level.filter(|_| self.session.is_none())
    }

    /// Notes by which grants the request goes, for what comes of it: its task, and its further
    /// rounds.
    pub(crate) fn allowed(&mut self, permitted: &Permitted<Request>) {
        if permitted.basis().is_empty() {
            return;
        }
        self.basis = permitted.basis().clone();
        let paid: Vec<_> = self.basis.single().collect();
        let arguments = permitted.arguments_digest();
        if let Some(tasks) = self.tasks.as_mut().filter(|_| self.method == method::TOOLS_CALL) {
            let tool = self.item.name().into();
            tasks.origin = Some(Arc::new(Origin { tool, arguments, paid: paid.clone() }));
        }
        if let Some(state) = &mut self.state {
            state.paid = Paid { grants: paid, arguments: bound_arguments(permitted) };
        }
    }

    pub(crate) fn basis(&self) -> &Basis {
        &self.basis
    }
}

/// The bytes that a sealed state is bound to.
fn binding(run: RunId, request: &Request) -> Vec<u8> {
    state_binding(run, &request.alias, request.message.method(), request.item.name())
}

/// The bytes that a sealed state is bound to: run, server, method and item.
pub(crate) fn state_binding(run: RunId, alias: &Alias, method: &str, item: &str) -> Vec<u8> {
    let run = run.to_text();
    [&run, alias.as_str(), method, item].map(str::as_bytes).join(&0)
}

/// The description of a legacy client in its requests to a modern server: its identity, its
/// capabilities, and the level of log messages that its session has set.
fn stamp_of(session: &Session) -> Rewrite<'static> {
    let level = session.log_level();
    translate::request_to_modern(ClientStamp {
        info: Some(session.client.info.to_vec().into()),
        capabilities: session.declared.to_vec().into(),
        log_level: level.map(|level| encode_string(level.as_str()).into()),
    })
}

/// Takes out what only a further round may bring: a legacy client knows of none.
fn without_claims(request: &mut Request) {
    if !has_rounds(request.message.method()) {
        return;
    }
    for member in [REQUEST_STATE, INPUT_RESPONSES] {
        let is_brought = request.rewrite.body.get(member).is_some();
        if !is_brought && request.message.get(member).is_some() {
            request.rewrite.body.remove(member);
        }
    }
}

fn merge(into: &mut Rewrite<'static>, from: Rewrite<'static>) {
    into.body.append(from.body);
    into.meta.append(from.meta);
}
