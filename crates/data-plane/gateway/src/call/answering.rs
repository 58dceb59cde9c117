//! A call on its way back to the caller: the `finish` half of the pipeline.

use std::time::Duration;

use futures_core::future::BoxFuture;
use narthex_model::CallErrorKind;
use narthex_policy::Payment;
use narthex_upstream::{Forwarded, Frame, LinkError};
use narthex_wire::{Message, Payload, method};
use tokio::{
    task::coop::consume_budget,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Answer, Place, RefusedCall, Step,
    call::{
        again::{Again, SecondTry, Unseen},
        finish::Finish,
        parked::Asking,
        rounds::{Rounds, wants_more},
    },
    clock::{CallClock, CallLimit},
    refusal::Refusal,
    runs::run::Act,
    session::ASK_TIMEOUT,
    standing::Over,
    subscriptions::{Ear, Listening},
};

/// Longest wait of an answer for log messages that its server sent before it on another stream.
const TAIL: Duration = Duration::from_millis(20);

/// A call whose answer is on its way. A caller that drops this value before the answer gives up the
/// call: the server gets a cancellation, and the record says "abandoned".
#[derive(Debug)]
pub struct Answering {
    state: State,
    /// The call's act of its run, released with the answer.
    act: Option<Act>,
    /// The call's place among streams of changes.
    _place: Option<Box<Place>>,
}

#[derive(Debug)]
enum State {
    Ready(Option<Answer>),
    /// A message for the caller, and the known answer that follows it.
    Preceded(Payload, Answer),
    Forwarded(Box<ForwardedCall>),
    /// A second try of the call, since its server did not see the first.
    Again(SecondTry),
    Listening(Box<Listening>),
    Done,
}

/// A forwarded call, and the parts that turn the server's frames into the caller's.
#[derive(Debug)]
pub(crate) struct ForwardedCall {
    pub(crate) forwarded: Forwarded,
    pub(crate) finish: Finish,
    /// The deadline of the call; `None` for streams, which stay open until they are closed.
    pub(crate) limit: Option<CallLimit>,
    /// Tokens that end a stream: it has no end of its own, and either token ends it.
    pub(crate) stop: Option<[CancellationToken; 2]>,
    /// Makes further rounds for a caller that cannot make them.
    pub(crate) rounds: Option<Box<Rounds>>,
    /// Asks the client the questions of its server (legacy server, modern client).
    pub(crate) asking: Option<Box<Asking>>,
    /// Receives the server's log messages from another stream, if `asking` is `None`. `asking`
    /// receives them as well.
    pub(crate) ear: Option<Box<Ear>>,
    /// The answer, and the time until which it waits for the last log messages.
    pub(crate) tail: Option<Box<(Message, Instant)>>,
    /// The time since which the call is open.
    pub(crate) clock: CallClock,
    /// Grants for a single call that this call has used up, if `rounds` does not have them.
    pub(crate) payment: Payment,
    /// Tries the call once more if its server certainly did not see it.
    pub(crate) again: Option<Box<Again>>,
    /// True if the last frame was a message that the server sent before its answer.
    pub(crate) has_talked: bool,
    pub(crate) _over: Option<Over>,
}

impl From<State> for Answering {
    fn from(state: State) -> Self {
        Self { state, act: None, _place: None }
    }
}

impl Answering {
    /// Returns an answer that is known at once; `status` is its HTTP status.
    #[must_use]
    pub fn ready(payload: Payload, status: u16) -> Self {
        State::Ready(Some(Answer::new(payload, status))).into()
    }

    /// Counts the call as an act of its run until the answer.
    pub(crate) fn with_act(self, act: Option<Act>) -> Self {
        Self { act, ..self }
    }

    /// Keeps a place among streams of changes until the call ends.
    pub(crate) fn with_place(self, place: Place) -> Self {
        Self { _place: Some(Box::new(place)), ..self }
    }

    /// Sets the time after which the caller may try again.
    pub(crate) fn retry_after(mut self, wait: Option<Duration>) -> Self {
        if let State::Ready(Some(answer)) = &mut self.state {
            answer.retry_after = wait;
        }
        self
    }

    /// Sets the failure of a call that the gateway itself refused.
    pub(crate) fn refused(mut self, refused: Option<RefusedCall>) -> Self {
        if let State::Ready(Some(answer)) = &mut self.state {
            answer.refused = refused;
        }
        self
    }

    /// Puts a message to the caller before an answer that is known at once.
    pub(crate) fn after(mut self, first: Option<Payload>) -> Self {
        if let Some(first) = first
            && let Some(answer) = self.take_answer()
        {
            self.state = State::Preceded(first, answer);
        }
        self
    }

    /// Reports an answer that is known at once to the run's watchers.
    pub(crate) fn told(self, watched: Option<Box<narthex_run_events::Open>>, is_ok: bool) -> Self {
        if let (Some(mut watched), State::Ready(Some(answer))) = (watched, &self.state) {
            watched.answered(answer.payload.len());
            watched.end(if is_ok { "ok" } else { "rpc_error" });
        }
        self
    }

    /// Returns no answer: the caller has taken its request back.
    pub(crate) fn nothing() -> Self {
        State::Done.into()
    }

    /// Takes the answer out, if it is known at once.
    pub(crate) fn take_answer(&mut self) -> Option<Answer> {
        match &mut self.state {
            State::Ready(answer) => answer.take(),
            State::Preceded(..)
            | State::Forwarded(_)
            | State::Again(_)
            | State::Listening(_)
            | State::Done => None,
        }
    }

    pub(crate) fn forwarded(call: ForwardedCall) -> Self {
        State::Forwarded(Box::new(call)).into()
    }

    pub(crate) fn listening(listening: Listening) -> Self {
        State::Listening(Box::new(listening)).into()
    }

    /// Returns the next step, or `None` after the answer and for a call that its caller took back.
    /// Cancel safe: a dropped future loses no step.
    #[expect(clippy::should_implement_trait, reason = "steps are awaited, so this is no iterator")]
    pub fn next(&mut self) -> BoxFuture<'_, Option<Step>> {
        Box::pin(self.step())
    }

    async fn step(&mut self) -> Option<Step> {
        let step = loop {
            match &mut self.state {
                State::Ready(answer) => break answer.take().map(Step::Answer),
                State::Preceded(..) => break self.first(),
                State::Forwarded(call) => match call.next().await {
                    Ok(step) => break step,
                    Err(unread) => self.begin_again(*unread),
                },
                State::Again(again) => {
                    let Self { state, .. } = again.answering().await;
                    self.state = state;
                }
                State::Listening(listening) => break listening.next().await,
                State::Done => break None,
            }
        };
        if matches!(step, None | Some(Step::Answer(_))) {
            if let State::Forwarded(call) = std::mem::replace(&mut self.state, State::Done) {
                call.keep_if_asked();
            }
            self.act = None;
        }
        step
    }

    /// Starts the second try of a call.
    fn begin_again(&mut self, unread: Unread) {
        let Unread { again, payment, refusal } = unread;
        match std::mem::replace(&mut self.state, State::Done) {
            State::Forwarded(call) => {
                let ForwardedCall { finish, clock, .. } = *call;
                let Finish { request, open_call, mut record, .. } = finish;
                record.set_sent(false);
                let unseen = Unseen { refusal, record, open_call, clock, payment };
                self.state = State::Again(again.begin(unseen, request.id, request.method));
            }
            other => self.state = other,
        }
    }

    /// Returns the message that comes before the answer.
    fn first(&mut self) -> Option<Step> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Preceded(first, answer) => {
                self.state = State::Ready(Some(answer));
                Some(Step::Message(first))
            }
            other => {
                self.state = other;
                None
            }
        }
    }
}

/// A sent call that its server certainly did not see.
struct Unread {
    again: Box<Again>,
    payment: Payment,
    refusal: Refusal,
}

impl ForwardedCall {
    /// Returns the next step, or the parts from which a second try is made.
    async fn next(&mut self) -> Result<Option<Step>, Box<Unread>> {
        loop {
            if let Some(said) = self.rounds.as_mut().and_then(|rounds| rounds.said()) {
                return Ok(Some(Step::Message(said)));
            }
            let gathers_until = self.asking.as_ref().and_then(|asking| asking.gathers_until());
            let frame = match (&self.tail, gathers_until) {
                (None, None) => self.frame_in_time().await,
                (None, Some(until)) => {
                    match timeout_at(until, Box::pin(self.frame_in_time())).await {
                        Ok(frame) => frame,
                        Err(_quiet) => return Ok(self.ask_client()),
                    }
                }
                (Some(tail), _) => match timeout_at(tail.1, Box::pin(self.heard())).await {
                    Ok(frame) => Ok(Some(frame)),
                    Err(_quiet) => return Ok(self.answer_with_tail()),
                },
            };
            let frame = match frame {
                Ok(Some(frame)) => frame,
                Ok(None) => continue,
                Err(refusal) => {
                    let Some(refusal) = self.after_withdrawal(refusal) else { continue };
                    let refusal = self.unseen(refusal)?;
                    return Ok(self.finish.refused(refusal));
                }
            };
            match frame {
                Frame::Answer(message) if self.has_tail() => {
                    self.tail = Some(Box::new((message, Instant::now() + TAIL)));
                }
                Frame::Answer(message) => {
                    let led = self.lead_to_urls(&message);
                    return Ok(Some(led.unwrap_or_else(|| self.finish.answer(&message))));
                }
                Frame::Break { retry_ms } => return Ok(Some(Step::Break { retry_ms })),
                Frame::Notification(message) => {
                    self.extend(&message);
                    if let Some(asking) = &mut self.asking {
                        asking.taken_back(&message);
                    }
                    if let Some(payload) = self.finish.notification(&message) {
                        return Ok(Some(Step::Message(payload)));
                    }
                }
                Frame::Request(question) => {
                    if let Some(payload) = self.asked(&question).await {
                        return Ok(Some(Step::Message(payload)));
                    }
                }
            }
        }
    }

    /// Returns the refusal, unless the client must first be notified that questions are taken back.
    fn after_withdrawal(&mut self, refusal: Refusal) -> Option<Refusal> {
        match &mut self.rounds {
            Some(rounds) => rounds.withdraw(refusal),
            None => Some(refusal),
        }
    }

    /// Returns the refusal if it ends the call: this was the second try, or the server has seen a
    /// part of the call.
    fn unseen(&mut self, refusal: Refusal) -> Result<Refusal, Box<Unread>> {
        if !refusal.is_unseen() {
            return Ok(refusal);
        }
        let Some(again) = self.again.take() else { return Ok(refusal) };
        let payment = match &mut self.rounds {
            None => Some(std::mem::take(&mut self.payment)),
            Some(rounds) => rounds.unbegun(),
        };
        match payment {
            None => Ok(refusal),
            Some(payment) => Err(Box::new(Unread { again, payment, refusal })),
        }
    }

    /// Returns the next frame of a call within its time limit. A fast server starves no other task,
    /// and each of its frames but the answer is checked against the limit.
    async fn frame_in_time(&mut self) -> Result<Option<Frame>, Refusal> {
        if std::mem::take(&mut self.has_talked) {
            // The budget is consumed before a frame is taken: this future could lose a taken frame.
            consume_budget().await;
        }
        let frame = self.frame().await?;
        if matches!(frame, Some(Frame::Notification(_) | Frame::Request(_))) {
            self.has_talked = true;
            if self.limit.is_some_and(|limit| limit.is_over()) {
                still_asking(&self.finish, &mut self.limit, self.rounds.as_deref())?;
            }
        }
        Ok(frame)
    }

    /// Returns the next frame, unless the caller gives up or the call takes too long. `None` if a
    /// further round has a message for the caller.
    async fn frame(&mut self) -> Result<Option<Frame>, Refusal> {
        let Self { forwarded, finish, limit, stop, rounds, asking, ear, .. } = self;
        if let Some(end) = rounds.as_mut().and_then(|rounds| rounds.end()) {
            return Err(end);
        }
        let cancelled = finish.cancelled();
        let mut ends = cancelled.iter().chain(stop.iter().flatten());
        if !ends.any(CancellationToken::is_cancelled)
            && !rounds.as_ref().is_some_and(|rounds| rounds.is_between())
            && let Some(next) = forwarded.buffered()
        {
            match (next, rounds.as_mut()) {
                (Ok(Frame::Answer(answer)), Some(rounds)) if wants_more(&answer) => {
                    rounds.go_on(&answer, finish)?;
                }
                (next, _) => return next.map(Some).map_err(|error| finish.failed(&error)),
            }
        }
        loop {
            if rounds.as_ref().is_some_and(|rounds| rounds.has_said()) {
                return Ok(None);
            }
            let next = async {
                let failed = |error: LinkError| finish.failed(&error);
                match (limit.as_ref(), rounds.as_mut()) {
                    (Some(limit), Some(rounds)) => {
                        let next = Box::pin(rounds.next(forwarded));
                        timeout_at(limit.deadline, next).await
                    }
                    (Some(limit), None) if asking.is_some() || ear.is_some() => {
                        let next = Box::pin(next_or_heard(forwarded, (asking, ear)));
                        let next = timeout_at(limit.deadline, next).await;
                        next.map(|frame| frame.map_err(failed))
                    }
                    (Some(limit), None) => {
                        let next = timeout_at(limit.deadline, forwarded.next()).await;
                        next.map(|frame| frame.map(Some).map_err(failed))
                    }
                    (None, _) => Ok(forwarded.next().await.map(Some).map_err(failed)),
                }
            };
            let got = match (&cancelled, &*stop) {
                (None, None) => next.await,
                (Some(token), _) => tokio::select! {
                    biased;
                    () = token.cancelled() => return Err(Refusal::Cancelled),
                    got = next => got,
                },
                (None, Some([one, other])) => tokio::select! {
                    biased;
                    () = one.cancelled() => return Err(Refusal::Cancelled),
                    () = other.cancelled() => return Err(Refusal::Cancelled),
                    got = next => got,
                },
            };
            match got {
                Ok(frame) => match (frame, rounds.as_mut()) {
                    (Ok(Some(Frame::Answer(answer))), Some(rounds)) if wants_more(&answer) => {
                        rounds.go_on(&answer, finish)?;
                    }
                    (Ok(None), Some(rounds)) => {
                        limit.iter_mut().for_each(CallLimit::answered);
                        rounds.give_answers(&mut finish.record)?;
                    }
                    (frame, _) => return frame,
                },
                Err(_late) => still_asking(finish, limit, rounds.as_deref())?,
            }
        }
    }

    /// True if log messages that the server sent before its answer may still arrive on another
    /// stream.
    fn has_tail(&self) -> bool {
        let hears = self.asking.is_some() || self.ear.is_some();
        hears && self.finish.request.log_level.is_some() && self.finish.link().logs_aside()
    }

    async fn heard(&mut self) -> Frame {
        heard((&mut self.asking, &mut self.ear)).await
    }

    fn answer_with_tail(&mut self) -> Option<Step> {
        let (answer, _) = *self.tail.take()?;
        let led = self.lead_to_urls(&answer);
        Some(led.unwrap_or_else(|| self.finish.answer(&answer)))
    }

    fn extend(&mut self, message: &Message) {
        if let Some(limit) = &mut self.limit
            && message.method() == method::PROGRESS
        {
            limit.progressed();
        }
    }

    async fn asked(&mut self, question: &Message) -> Option<Payload> {
        if let Some(asking) = &mut self.asking {
            if let Err((code, why)) = asking.take(question) {
                Box::pin(self.finish.link().refuse(question, code, why)).await;
            }
            return None;
        }
        match self.finish.question(question) {
            Ok(payload) => Some(payload),
            Err(refusal) => {
                // The future is boxed, since it is large and rare.
                let refusing = Box::pin(self.finish.link().respond(refusal));
                if let Err(error) = refusing.await {
                    tracing::debug!(%error, "could not refuse a server's question");
                }
                None
            }
        }
    }
}

/// Returns the next frame of a call, or the server's next message on another stream. Cancel safe.
async fn next_or_heard(
    forwarded: &mut Forwarded,
    aside: (&mut Option<Box<Asking>>, &mut Option<Box<Ear>>),
) -> Result<Option<Frame>, LinkError> {
    tokio::select! {
        biased;
        heard = heard(aside) => Ok(Some(heard)),
        next = forwarded.next() => Ok(Some(next?)),
    }
}

/// Returns the server's next message about a call on another stream. Cancel safe.
async fn heard(aside: (&mut Option<Box<Asking>>, &mut Option<Box<Ear>>)) -> Frame {
    match aside {
        (Some(asking), _) => asking.heard().await,
        (None, Some(ear)) => ear.heard().await,
        (None, None) => std::future::pending().await,
    }
}

/// Stops the clock of a call while a person is asked.
///
/// # Errors
/// When no person is asked, or a person has had the longest time for a question: the call is late.
fn still_asking(
    finish: &Finish,
    limit: &mut Option<CallLimit>,
    rounds: Option<&Rounds>,
) -> Result<(), Refusal> {
    let elapsed = finish.elapsed();
    if finish.waits_for_client() && elapsed < ASK_TIMEOUT {
        limit.iter_mut().for_each(CallLimit::stand_still);
        return Ok(());
    }
    if let Some(unanswered) = rounds.and_then(Rounds::unanswered) {
        return Err(unanswered);
    }
    if finish.waits_for_client() {
        return Err(late(elapsed));
    }
    let waited = limit.as_ref().map(|limit| limit.each).unwrap_or_default();
    finish.link().note_silence(waited);
    Err(late(waited))
}

fn late(after: Duration) -> Refusal {
    let error = LinkError::Deadline(after.as_millis());
    Refusal::call(CallErrorKind::Timeout, error.to_string())
}
