//! Further rounds of a call whose server answers with a state or with questions (2026-07-28).
//!
//! A client of the older revisions does not know rounds. The gateway makes them for it, on the same
//! link and within the time of the call. Policy decides on each round anew.

mod questions;

use std::{collections::VecDeque, fmt, pin::Pin, sync::Arc, time::Duration};

use narthex_model::CallErrorKind;
use narthex_policy::{Payment, Request};
use narthex_registry::ServerRow;
use narthex_upstream::{Forwarded, Frame, Hop, Link};
use narthex_wire::{Era, Message, Payload};
use tokio::time::sleep;

use self::questions::{Asking, Given, Wanted, state_of, wanted};
use crate::{
    Caller,
    call::{finish::Finish, record::CallRecord, routed::Routed},
    refusal::Refusal,
    shared::Shared,
    view::has_rounds,
};

/// Number of further rounds that one call may have.
const ROUNDS_MAX: u32 = 10;
/// The pause before the second further round; it doubles with each round. The first round has no
/// pause, nor has a round with answers.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// The members of `params` in a further round.
pub(crate) const REQUEST_STATE: &str = "requestState";
pub(crate) const INPUT_RESPONSES: &str = "inputResponses";

/// Future of a further round's first frame.
type Sending = Pin<Box<dyn Future<Output = (Payment, Result<Forwarded, Refusal>)> + Send>>;

/// The parts from which further rounds of one call are made.
pub(crate) struct Rounds {
    shared: Arc<Shared>,
    caller: Caller,
    row: Arc<ServerRow>,
    link: Arc<Link>,
    /// The request as the caller sent it, for this server.
    request: Request,
    hop: Hop,
    /// The grants for a single call that earlier rounds have used up.
    payment: Payment,
    made: u32,
    /// The questions that the caller has to answer before the next round.
    asking: Option<Asking>,
    sending: Option<Sending>,
    /// The messages that the caller gets before any other.
    said: VecDeque<Payload>,
    /// The reason why the call ends, once the caller has got these messages.
    end: Option<Refusal>,
}

impl fmt::Debug for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rounds").field("made", &self.made).finish_non_exhaustive()
    }
}

impl Rounds {
    /// The parts for further rounds of a call; `None` if the call can have none. Only calls of a
    /// legacy client to a modern server have further rounds, by one of the methods of
    /// [`has_rounds`].
    pub(crate) fn of(
        shared: &Arc<Shared>,
        caller: &Caller,
        routed: &Routed,
        link: &Arc<Link>,
        hop: &Hop,
    ) -> Option<Box<Self>> {
        let is_modern = link.facts().revision.is_modern();
        let is_bridged = caller.era() == Era::Legacy && is_modern;
        if !is_bridged || !has_rounds(routed.request.message.method()) {
            return None;
        }
        Some(Box::new(Self {
            shared: shared.clone(),
            caller: caller.clone(),
            row: Arc::clone(&routed.row),
            link: link.clone(),
            request: routed.request.clone(),
            hop: hop.clone(),
            payment: Payment::default(),
            made: 0,
            asking: None,
            sending: None,
            said: VecDeque::new(),
            end: None,
        }))
    }

    /// Sets the grants for a single call that the call has used up.
    pub(crate) fn paid(mut self: Box<Self>, payment: Payment) -> Box<Self> {
        self.payment = payment;
        self
    }

    /// Takes the used grants back, unless a further round has started.
    pub(crate) fn unbegun(&mut self) -> Option<Payment> {
        (self.made == 0).then(|| std::mem::take(&mut self.payment))
    }

    /// Continues after an answer that does not end the call: makes a further round within the same
    /// record, or asks the caller first.
    ///
    /// # Errors
    /// When the call has had [`ROUNDS_MAX`] rounds, or its caller cannot be asked.
    pub(crate) fn go_on(&mut self, answer: &Message, finish: &mut Finish) -> Result<(), Refusal> {
        if self.made == ROUNDS_MAX {
            let text = format!("the server asked for more than {ROUNDS_MAX} further rounds");
            return Err(Refusal::call(CallErrorKind::ServerError, text));
        }
        let pause = match self.made {
            0 => Duration::ZERO,
            made => PAUSE.saturating_mul(1 << (made - 1)).min(PAUSE_MAX),
        };
        self.made += 1;
        if wanted(answer) == Some(Wanted::Again) {
            let state = state_of(answer).map(<[u8]>::to_vec);
            self.send(pause, Given { state, answers: None }, &mut finish.record)?;
            return Ok(());
        }
        let Some(call) = &finish.open_call else {
            let text = "the client has no session, so it cannot be asked";
            return Err(Refusal::call(CallErrorKind::ServerError, text));
        };
        let limits = &self.shared.options.limits;
        let (asking, said) = Asking::begin(call, &self.row.name, answer, limits)?;
        (self.asking, self.said) = (Some(asking), said);
        Ok(())
    }

    /// Makes the round with the caller's answers, once all have arrived.
    ///
    /// # Errors
    /// When the record of the call has ended.
    pub(crate) fn give_answers(&mut self, record: &mut CallRecord) -> Result<(), Refusal> {
        match self.asking.take() {
            Some(asking) => self.send(Duration::ZERO, asking.given(), record),
            None => Ok(()),
        }
    }

    fn send(
        &mut self,
        pause: Duration,
        given: Given,
        record: &mut CallRecord,
    ) -> Result<(), Refusal> {
        let booked = record.booked()?;
        record.made_again();
        let (shared, caller, row) = (self.shared.clone(), self.caller.clone(), self.row.clone());
        let (link, hop, mut request) = (self.link.clone(), self.hop.clone(), self.request.clone());
        let Given { state, answers } = given;
        for (member, value) in [(REQUEST_STATE, state), (INPUT_RESPONSES, answers)] {
            if let Some(value) = value {
                request.rewrite.body.set(member, value);
            }
        }
        let mut payment = std::mem::take(&mut self.payment);
        self.sending = Some(Box::pin(async move {
            sleep(pause).await;
            let sent = async {
                shared.rewrite(&caller, &mut request, link.facts().revision, &mut payment)?;
                let permitted = shared.authorize(&caller, &row, request, &mut payment).await?;
                let sent = link.forward(permitted, hop, booked).await;
                sent.map_err(|error| Refusal::failed(&error, link.name()))
            };
            let sent = sent.await;
            (payment, sent)
        }));
        Ok(())
    }

    /// Returns the next frame of the latest round; `None` once the caller has answered all
    /// questions. Cancel safe.
    pub(crate) async fn next(
        &mut self,
        forwarded: &mut Forwarded,
    ) -> Result<Option<Frame>, Refusal> {
        if let Some(asking) = &mut self.asking {
            tokio::select! {
                biased;
                answered = asking.answered() => answered?,
                // No answer can reach the server any more.
                error = self.link.ended() => {
                    return Err(Refusal::failed(&error, self.link.name()));
                }
            }
            return Ok(None);
        }
        if let Some(sending) = &mut self.sending {
            let (payment, sent) = sending.await;
            (self.payment, self.sending) = (payment, None);
            *forwarded = sent?;
        }
        let next = forwarded.next().await;
        next.map(Some).map_err(|error| Refusal::failed(&error, self.link.name()))
    }

    /// True if the server's last message was read, and no round has started since.
    pub(crate) fn is_between(&self) -> bool {
        self.asking.is_some() || self.sending.is_some()
    }

    /// The refusal of a call that takes too long, if it waits for its caller.
    pub(crate) fn unanswered(&self) -> Option<Refusal> {
        self.asking.as_ref().map(Asking::late)
    }

    /// True if there are messages that the caller gets first.
    pub(crate) fn has_said(&self) -> bool {
        !self.said.is_empty()
    }

    /// The next message that the caller gets first.
    pub(crate) fn said(&mut self) -> Option<Payload> {
        self.said.pop_front()
    }

    /// The reason why the call has ended, after the messages that the caller gets first.
    pub(crate) fn end(&mut self) -> Option<Refusal> {
        self.end.take()
    }

    /// Takes questions back, as the call ends with a refusal. Returns the refusal if the caller
    /// needs no notification before it.
    pub(crate) fn withdraw(&mut self, refusal: Refusal) -> Option<Refusal> {
        let Some(asking) = self.asking.take() else { return Some(refusal) };
        self.said = asking.withdraw();
        if self.said.is_empty() {
            return Some(refusal);
        }
        self.end = Some(refusal);
        None
    }
}

/// True if an answer does not end its call, which needs a further round.
pub(crate) fn wants_more(answer: &Message) -> bool {
    wanted(answer).is_some()
}
