//! Calls of modern clients that wait for a legacy server's questions to their client (decision
//! 100).
//!
//! The call stays open toward its server, with its link, its place in the record and its used
//! grants. The client gets a result that asks for input. The client's retry finds the call by a
//! sealed state, and policy decides on the retry anew.

mod asking;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use narthex_model::CallErrorKind;
use narthex_policy::{Paid, Payment, Request, StateId, bound_arguments};
use narthex_upstream::Link;
use narthex_wire::{LogLevel, Message, Raw, meta_key, unanswered};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::asking::Answered;
pub(crate) use self::asking::Asking;
use crate::{
    Answering, Caller, Step,
    call::{answering::ForwardedCall, routed::Routed},
    metrics::OpenCount,
    names::id_of,
    refusal::Refusal,
    shared::Shared,
    view::has_rounds,
};

/// Longest time for notifying a server that its question gets no answer.
const CANCEL_DEADLINE: Duration = Duration::from_secs(5);
/// First byte of a state that names a parked call.
const PARKED: u8 = b'p';
/// First byte of a state with which the client sends its call again.
const AGAIN: u8 = b'u';

/// The id of a parked call: random, so that callers cannot guess it.
pub(crate) type ParkedId = [u8; 16];

/// The parked calls of all runs.
#[derive(Debug, Default)]
pub(crate) struct ParkedCalls(Mutex<HashMap<ParkedId, Parked>>);

/// A call that waits for its client.
#[derive(Debug)]
struct Parked {
    call: Box<ForwardedCall>,
    since: Instant,
    until: Instant,
    _count: OpenCount,
    /// Stops the task that would end the call.
    _taken: DropGuard,
}

/// The reason why a parked call ends without its client.
enum End {
    Expired(Duration),
    Lost,
    /// The run or the gateway ends.
    Over,
    Refused(Refusal),
}

impl ParkedCalls {
    fn all(&self) -> MutexGuard<'_, HashMap<ParkedId, Parked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, id: &ParkedId) -> Option<Parked> {
        self.all().remove(id)
    }

    /// Takes a parked call and the client's answers out of its retry. A retry that cannot be read
    /// leaves the call parked.
    fn take_answered(
        &self,
        id: &ParkedId,
        retry: &Message,
    ) -> Result<(Parked, Vec<Answered>), Refusal> {
        let gone = || {
            Refusal::invalid(
                "the call of `params.requestState` is not open any more: it was answered, ended, \
                 or waited too long; call again without it",
            )
        };
        let mut all = self.all();
        let waiting = all.get(id).filter(|parked| Instant::now() < parked.until);
        let asking = waiting.and_then(|parked| parked.call.asking.as_ref());
        let answers = asking.ok_or_else(gone)?.answers(retry);
        all.remove(id).map(|parked| (parked, answers)).ok_or_else(gone)
    }
}

impl End {
    /// The reason in words, for the server.
    fn told(&self) -> &'static str {
        match self {
            Self::Expired(_) => "the client did not answer in time",
            Self::Lost | Self::Over => "the client has gone",
            Self::Refused(_) => "the call is not allowed any more",
        }
    }

    fn refusal(self) -> Refusal {
        match self {
            Self::Expired(after) => {
                let text = format!(
                    "the client did not answer the server's question within {} s; call again",
                    after.as_secs()
                );
                Refusal::call(CallErrorKind::Timeout, text)
            }
            Self::Lost => {
                let text = "the connection to the server was lost while its question waited for \
                            the client; call again";
                Refusal::call(CallErrorKind::TransportError, text)
            }
            Self::Over => Refusal::Cancelled,
            Self::Refused(refusal) => refusal,
        }
    }
}

impl Parked {
    /// Reports to the server that its questions are not answered, and gives the call up.
    async fn end(self, why: End) {
        let told = why.told();
        let ForwardedCall { forwarded, mut finish, mut asking, .. } = *self.call;
        let pending = asking.as_mut().map(|asking| asking.take_pending()).unwrap_or_default();
        let link = finish.link().clone();
        let telling = async {
            for question in pending {
                let answer = unanswered(Raw::new(&question.id), &question.method, told);
                if let Err(error) = link.respond(answer).await {
                    tracing::debug!(
                        server.name = link.name(), %error,
                        "a server could not be notified of the end of a call"
                    );
                }
            }
            forwarded.give_up().await;
        };
        if timeout(CANCEL_DEADLINE, telling).await.is_err() {
            tracing::debug!(
                server.name = link.name(),
                "a server was not notified of the end of a call in time"
            );
        }
        // The client's answer, which is not sent, brings the outcome into the record.
        drop(finish.refused(why.refusal()));
    }
}

impl Shared {
    /// Parks a call until its client comes back, or the call ends.
    pub(crate) fn park(self: &Arc<Self>, id: ParkedId, mut call: Box<ForwardedCall>) {
        let Some(asking) = &call.asking else { return };
        let ttl = self.options.input_timeout;
        let until = Instant::now() + ttl;
        let (run, link) = (asking.run().clone(), asking.link().clone());
        // The parts of a second try are dropped: by now the server has seen the call.
        call.again = None;
        self.keep_parked(id, call, until, async move {
            tokio::select! {
                biased;
                () = run.ended.cancelled() => End::Over,
                () = link.closed().cancelled() => End::Lost,
                () = sleep_until(until) => End::Expired(ttl),
            }
        });
    }

    fn keep_parked(
        self: &Arc<Self>,
        id: ParkedId,
        call: Box<ForwardedCall>,
        until: Instant,
        end: impl Future<Output = End> + Send + 'static,
    ) {
        let taken = CancellationToken::new();
        let (_count, _taken) = (self.metrics.call_parked(), taken.clone().drop_guard());
        self.parked.all().insert(id, Parked { call, since: Instant::now(), until, _count, _taken });
        let shared = self.clone();
        self.spawn(async move {
            let why = tokio::select! {
                biased;
                () = taken.cancelled() => return,
                () = shared.stopping.cancelled() => End::Over,
                why = end => why,
            };
            if let Some(parked) = shared.parked.take(&id) {
                parked.end(why).await;
            }
        });
    }
}

impl Shared {
    /// The id of the parked call that a request's state names; `None` for a call that is new or
    /// sent again.
    ///
    /// # Errors
    /// When the gateway gave this request no such state.
    pub(crate) fn parked_call(
        &self,
        caller: &Caller,
        routed: &Routed,
    ) -> Result<Option<ParkedId>, Refusal> {
        let is_legacy = |link: &Arc<Link>| !link.facts().revision.is_modern();
        if caller.session.is_some() || !routed.row.link.as_ref().is_some_and(is_legacy) {
            return Ok(None);
        }
        let Some((_, _, tail)) = self.asking_state(caller, &routed.request)? else {
            return Ok(None);
        };
        match tail.split_first() {
            Some((&PARKED, id)) => Ok(ParkedId::try_from(id).ok()),
            _ => Ok(None),
        }
    }

    /// Adds the used grants of a call that its client sends again to a legacy server.
    pub(crate) fn bring_payment(
        &self,
        caller: &Caller,
        request: &Request,
        payment: &mut Payment,
    ) -> Result<(), Refusal> {
        if let Some((id, paid, _)) = self.asking_state(caller, request)?
            && !paid.grants.is_empty()
        {
            payment.bring((id, paid.grants), &self.sealer.spent, std::time::SystemTime::now());
        }
        Ok(())
    }

    /// Opens the state of a request to a legacy server; `None` if the request has no state.
    fn asking_state(
        &self,
        caller: &Caller,
        request: &Request,
    ) -> Result<Option<(StateId, Paid, Vec<u8>)>, Refusal> {
        let message = &request.message;
        let Some(state) = message.get("requestState").filter(|_| has_rounds(message.method()))
        else {
            return Ok(None);
        };
        let binding = asking::binding(&caller.run, request);
        let opened = state.as_str().and_then(|text| self.sealer.open(&text, &binding));
        let read = opened.as_ref().and_then(|(id, state)| Some((*id, Paid::read(state)?)));
        let Some((id, (paid, Some(tail)))) = read else {
            return Err(Refusal::invalid(
                "`params.requestState` was not given for this request, or has expired",
            ));
        };
        if paid.arguments != bound_arguments(request) {
            let text = "`params.requestState` was given for other arguments; send the arguments of \
                        the first call, or call again without it";
            return Err(Refusal::invalid(text));
        }
        let tail = tail.to_vec();
        Ok(Some((id, paid, tail)))
    }

    /// Continues a parked call: sends the client's answers to the server, unless the call is not
    /// allowed any more. Questions without an answer are asked again.
    pub(crate) async fn resume(
        self: &Arc<Self>,
        caller: &Caller,
        routed: Routed,
        id: ParkedId,
    ) -> Result<Answering, Refusal> {
        let message = &routed.request.message;
        let (mut parked, answers) = self.parked.take_answered(&id, message)?;
        if let Err(refusal) = self.permit_again(caller, &routed, &mut parked.call).await {
            let finish = &parked.call.finish;
            let (method, refusal) =
                (finish.request.method.clone(), refusal.shaped(finish.request.is_shaped));
            parked.end(End::Refused(refusal.clone())).await;
            let to = (caller.era(), caller.run.reader());
            return Ok(refusal.into_answering(Raw::new(&id_of(message)), &method, to));
        }
        let Parked { mut call, since, .. } = parked;
        call.finish.record.made_again();
        call.is_retried_by(message);
        if let Some(limit) = &mut call.limit {
            limit.paused(since.elapsed());
        }
        if self.deliver(caller, &mut call, answers).await {
            return Ok(Answering::forwarded(*call));
        }
        let asked = call.ask_client();
        call.keep_if_asked();
        Ok(match asked {
            Some(Step::Answer(answer)) => Answering::ready(answer.payload, answer.status),
            _ => Answering::nothing(),
        })
    }

    /// Sends a client's answers to the server; `true` if no question is left.
    async fn deliver(
        &self,
        caller: &Caller,
        call: &mut ForwardedCall,
        answers: Vec<Answered>,
    ) -> bool {
        let deadline = call.limit.as_ref().map(|limit| limit.deadline);
        let Some(asking) = &mut call.asking else { return true };
        if let Some(level) = call.finish.request.log_level {
            self.lower_for(caller, asking.link(), level, Some(asking.bridge())).await;
        }
        // A call that has taken too long ends with its next step.
        let deadline = deadline.unwrap_or_else(|| Instant::now() + CANCEL_DEADLINE);
        if timeout_at(deadline, asking.answer(answers)).await.is_err() {
            tracing::debug!("a server did not accept an answer in time");
        }
        asking.is_answered()
    }

    /// Asks policy anew about a parked call, with the grants that the call has used up.
    async fn permit_again(
        &self,
        caller: &Caller,
        routed: &Routed,
        call: &mut ForwardedCall,
    ) -> Result<(), Refusal> {
        let (request, payment) = (routed.request.clone(), &mut call.payment);
        let permitted = self.authorize(caller, &routed.row, request, payment).await?;
        call.finish.record.allowed(permitted.basis());
        Ok(())
    }
}

impl ForwardedCall {
    /// Makes the call answer the retry instead of the first request.
    fn is_retried_by(&mut self, message: &Message) {
        let raw = |raw: Raw<'_>| message.bytes().slice_ref(raw.as_bytes());
        self.finish.request.id = id_of(message);
        self.finish.request.progress_token = message.meta_value(meta_key::PROGRESS_TOKEN).map(raw);
        self.finish.request.log_level =
            message.meta_value(meta_key::LOG_LEVEL).and_then(LogLevel::read);
    }
}
