//! Makes a request ready for its server: reads the parts that its answer will need, and rewrites it
//! for the server's era (the `prepare` step).

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use narthex_policy::{Origin, Paid, Payment, Permitted, Request, bound_arguments};
use narthex_upstream::{Booked, ClientIdentity, Hop, InUse, Link};
use narthex_wire::{
    Era, Revision, Rewrite,
    json::encode_string,
    method,
    translate::{self, ClientStamp},
};

use crate::{
    Caller, RunId, Session, TraceContext,
    call::{
        again::Tried,
        connect::Target,
        identify::Call,
        parked::Asking,
        record::CallRecord,
        request_facts::{RequestFacts, Sources},
        rounds::{INPUT_RESPONSES, REQUEST_STATE, Rounds},
        routed::Routed,
    },
    clock::CallLimit,
    lists::pages::was_led,
    refusal::Refusal,
    runs::run::RunRow,
    seal::state_binding,
    shared::Shared,
    standing::Standing,
    trace,
    trace::TracedCall,
    view::has_rounds,
};

/// Longest time of a task's result (2025-11-25): servers answer when the task has ended.
const TASK_RESULT_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// A call whose request waits for policy's decision.
pub(crate) struct Prepared {
    pub(crate) row: RunRow,
    pub(crate) link: InUse,
    pub(crate) hop: Hop,
    pub(crate) booked: Booked,
    /// The facts that the answer will need.
    pub(crate) facts: RequestFacts,
    /// The parts with which the server can ask the client.
    pub(crate) asking: Option<Box<Asking>>,
    /// Makes further rounds for a caller that cannot make them.
    pub(crate) rounds: Option<Box<Rounds>>,
    /// The permission for the resources of a stream of changes.
    pub(crate) listening: Standing,
    /// The deadline of the call; `None` for streams, which stay open until they are closed.
    pub(crate) limit: Option<CallLimit>,
}

impl Shared {
    /// Prepares a request for its server: adds the trace context, reads the parts that the answer
    /// will need, and rewrites the request for the server's era.
    ///
    /// # Errors
    /// When the request has a state that the gateway did not give it.
    pub(crate) fn prepare(
        self: &Arc<Self>,
        call: &Call<'_>,
        target: Target,
        tried: &mut Tried,
    ) -> Result<(Prepared, Request), Refusal> {
        let (caller, Target { mut routed, link, mut hop }) = (call.caller, target);
        self.trace(caller, &link, &mut routed.request, &mut hop, &mut tried.record);
        // The call counts as sent until it is known to be unsent, also if its caller gives it up
        // meanwhile.
        tried.record.set_sent(true);
        let rounds = Rounds::of(self, caller, &routed, &link, &hop);
        let booked = tried.record.booked()?;
        let limit = self.limit(call, &routed);
        let up = link.facts().revision;
        let facts = RequestFacts::read(self.fact_sources(), caller, &routed, up);
        let turn = routed.turn.take();
        let asking = turn.map(|(answerable, turn)| {
            Box::new(Asking::new(self, caller, &routed.request, answerable, turn))
        });
        let Routed { row, mut request, listening, .. } = routed;
        self.rewrite(caller, &mut request, up, &mut tried.payment)?;
        let prepared = Prepared { row, link, hop, booked, facts, asking, rounds, listening, limit };
        Ok((prepared, request))
    }

    /// Begins the call's span and sends its context to the server, in `_meta` and as headers.
    /// Without a tracer, the caller's context passes unchanged; a context in headers also goes into
    /// `_meta` if `_meta` has none.
    fn trace(
        &self,
        caller: &Caller,
        link: &Link,
        request: &mut Request,
        hop: &mut Hop,
        record: &mut CallRecord,
    ) {
        let own = trace::own_context(request);
        let is_own = own.is_some();
        let mut context = own.or_else(|| caller.trace.as_deref().cloned());
        let mut in_meta = !is_own && link.is_one_channel();
        if let Some(tracer) = &self.options.tracer {
            let item = self.clean_found(caller, &request.item);
            let span = tracer.start(&TracedCall {
                parent: context.as_ref().map(|context| &*context.parent),
                state: context.as_ref().and_then(|context| context.state.as_deref()),
                server: &request.alias,
                method: request.message.method(),
                item: item.name(),
            });
            let parent = span.trace_parent().into();
            let (state, baggage) =
                context.map(|context| (context.state, context.baggage)).unwrap_or_default();
            context = Some(TraceContext { parent, state, baggage });
            in_meta = true;
            record.trace(span);
        }
        let Some(context) = context else { return };
        if in_meta {
            trace::write(&context, !is_own, request);
        }
        hop.trace = trace::headers(&context).map(Box::new);
    }

    fn fact_sources(&self) -> Sources<'_> {
        Sources { sealer: &self.sealer, tasks: &self.tasks, options: &self.options }
    }

    /// The deadline of a call to a server; `None` for a stream.
    fn limit(&self, call: &Call<'_>, routed: &Routed) -> Option<CallLimit> {
        let row = &routed.row;
        let each = match routed.request.message.method() {
            method::SUBSCRIPTIONS_LISTEN => return None,
            method::TASKS_RESULT => self.options.timeout(row).max(TASK_RESULT_TIMEOUT),
            _ => self.options.timeout(row),
        };
        let most = row.definition.as_ref().and_then(|definition| definition.progress_extends);
        Some(call.clock.limit(each, most))
    }

    /// Rewrites the request for the server's era, before policy and sealing. Adds to `payment` the
    /// grants that earlier rounds of the same call have used up.
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

    /// The gateway's description of itself, for requests without a client's description.
    pub(crate) fn own_identity(&self) -> ClientIdentity {
        ClientIdentity {
            info: self.options.server_info.clone(),
            capabilities: Bytes::from_static(b"{}"),
            revision: Revision::LEGACY_LATEST,
        }
    }

    /// Puts the server's own request state back into the request, byte for byte (§1.3).
    fn open_state(
        &self,
        caller: &Caller,
        request: &mut Request,
        payment: &mut Payment,
    ) -> Result<(), Refusal> {
        let Some(state) = request.message.get(REQUEST_STATE) else {
            // The answer to a question of narthex itself, which is no business of the server.
            if was_led(&request.message) {
                request.rewrite.body.remove(INPUT_RESPONSES);
            }
            return Ok(());
        };
        let binding = binding(caller.run.id, request);
        let opened = state.as_str().and_then(|text| self.sealer.open(&text, &binding));
        let read = opened.as_ref().and_then(|(id, state)| Some((*id, Paid::read(state)?)));
        let Some((id, (paid, state))) = read else {
            return Err(Refusal::invalid(
                "`params.requestState` was not given for this request, or has expired",
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

impl Prepared {
    /// Notes the grants of a permitted request for its task and its further rounds.
    pub(crate) fn allowed(&mut self, permitted: &Permitted<Request>) {
        if permitted.basis().is_empty() {
            return;
        }
        let paid: Vec<_> = permitted.basis().single().collect();
        let arguments = permitted.arguments_digest();
        let facts = &mut self.facts;
        if let Some(tasks) = facts.tasks.as_mut().filter(|_| facts.method == method::TOOLS_CALL) {
            let tool = facts.item.name().into();
            tasks.origin = Some(Arc::new(Origin { tool, arguments, paid: paid.clone() }));
        }
        if let Some(state) = &mut facts.state {
            state.paid = Paid { grants: paid, arguments: bound_arguments(permitted) };
        }
    }
}

/// The bytes that a sealed state is bound to.
fn binding(run: RunId, request: &Request) -> Vec<u8> {
    state_binding(run, &request.alias, request.message.method(), request.item.name())
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

/// Removes the members of a further round, which no legacy client may send.
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
