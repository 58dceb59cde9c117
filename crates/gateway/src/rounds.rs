//! Further rounds of a call whose server has given a state and asks nothing (2026-07-28).
//!
//! A client of the older revisions does not know of rounds, so they are made here, on the same link
//! and within the time of the call. Each is decided on anew.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use narthex_model::{CallErrorKind, GrantId};
use narthex_policy::{Payment, Request, Verdict};
use narthex_registry::ServerRow;
use narthex_upstream::{Booked, Forwarded, Hop, Link};
use narthex_wire::{Era, Message, MessageKind, Raw, method};
use tokio::time::sleep;

use crate::{Caller, gateway::Shared, grants::Target, refusal::Refusal, route::Routed};

/// How many further rounds one call may have.
const ROUNDS_MAX: u32 = 10;
/// The pause before the second further round; it doubles with each. The first is made at once.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A further round on its way to its first frame.
type Sending = Pin<Box<dyn Future<Output = (Payment, Result<Forwarded, Refusal>)> + Send>>;

/// What further rounds of one call are made from.
pub(crate) struct Rounds {
    shared: Arc<Shared>,
    caller: Caller,
    row: Arc<ServerRow>,
    link: Arc<Link>,
    /// As the caller sent it, for this server.
    request: Request,
    hop: Hop,
    /// What earlier rounds have of grants for a single call.
    payment: Payment,
    made: u32,
    sending: Option<Sending>,
}

impl fmt::Debug for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rounds").field("made", &self.made).finish_non_exhaustive()
    }
}

impl Shared {
    /// What further rounds of a call may need: of a legacy client to a modern server, by one of the
    /// methods that have them.
    pub(crate) fn rounds(
        self: &Arc<Self>,
        caller: &Caller,
        routed: &Routed,
        link: &Arc<Link>,
        hop: &Hop,
    ) -> Option<Box<Rounds>> {
        let has_rounds = matches!(
            routed.request.message.method(),
            method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ
        );
        let is_modern = link.facts().revision.is_modern();
        if caller.era() == Era::Modern || !is_modern || !has_rounds {
            return None;
        }
        Some(Box::new(Rounds {
            shared: self.clone(),
            caller: caller.clone(),
            row: Arc::clone(&routed.row),
            link: link.clone(),
            request: routed.request.clone(),
            hop: hop.clone(),
            payment: Payment::default(),
            made: 0,
            sending: None,
        }))
    }

    async fn send_round(
        &self,
        caller: &Caller,
        row: &ServerRow,
        mut request: Request,
        (link, hop, booked): (&Link, Hop, Booked),
        payment: &mut Payment,
    ) -> Result<Forwarded, Refusal> {
        self.prepare(caller, &mut request, link.facts().revision, payment)?;
        let target = Target::of(Some(row));
        let decide = |paid: &[GrantId]| self.decide(caller, target, request, paid);
        let permitted = match caller.run.unused.lend(payment, decide)? {
            Verdict::Permit(permitted) => permitted,
            Verdict::Unpaid(unpaid) => {
                Box::pin(self.settle(caller, target, unpaid, &payment.grants)).await?
            }
        };
        payment.uses(permitted.basis());
        Ok(link.forward(permitted, hop, booked).await?)
    }
}

impl Rounds {
    /// The same for a call that has this of grants for a single call.
    pub(crate) fn paid(mut self: Box<Self>, payment: Payment) -> Box<Self> {
        self.payment = payment;
        self
    }

    /// What the call has of grants for a single call, unless a further round was begun.
    pub(crate) fn unbegun(&mut self) -> Option<Payment> {
        (self.made == 0).then(|| std::mem::take(&mut self.payment))
    }

    /// Begins a further round with the state in an answer, as a part of the same call in the
    /// record.
    ///
    /// # Errors
    /// When the call has had as many as it may have.
    pub(crate) fn begin(&mut self, answer: &Message, booked: Booked) -> Result<(), Refusal> {
        if self.made == ROUNDS_MAX {
            let text = format!("the server wanted more than {ROUNDS_MAX} further rounds");
            return Err(Refusal::call(CallErrorKind::ServerError, text));
        }
        let pause = match self.made {
            0 => Duration::ZERO,
            made => PAUSE.saturating_mul(1 << (made - 1)).min(PAUSE_MAX),
        };
        self.made += 1;
        let (shared, caller, row) = (self.shared.clone(), self.caller.clone(), self.row.clone());
        let (link, hop, mut request) = (self.link.clone(), self.hop.clone(), self.request.clone());
        let state = answer.get("requestState").map(Raw::as_bytes).unwrap_or_default();
        request.rewrite.body.set("requestState", state.to_vec());
        let mut payment = std::mem::take(&mut self.payment);
        self.sending = Some(Box::pin(async move {
            sleep(pause).await;
            let link = (&*link, hop, booked);
            let sending = shared.send_round(&caller, &row, request, link, &mut payment);
            let sent = sending.await;
            (payment, sent)
        }));
        Ok(())
    }

    /// Waits for a round that was begun; `None` if there is none. Safe to drop and call again.
    pub(crate) async fn begun(&mut self) -> Option<Result<Forwarded, Refusal>> {
        let (payment, sent) = self.sending.as_mut()?.await;
        self.payment = payment;
        self.sending = None;
        Some(sent)
    }
}

/// Whether an answer gives a state and asks nothing: the same call is to be made again with it.
pub(crate) fn asks_nothing(answer: &Message) -> bool {
    let is_interim = answer.kind() == MessageKind::Result
        && answer.get("resultType").is_some_and(|kind| kind.as_bytes() == br#""input_required""#);
    let asks = |all: Raw<'_>| all.is_object() && !all.entries().is_empty();
    is_interim
        && answer.get("requestState").is_some_and(|state| state.as_str().is_some())
        && !answer.get("inputRequests").is_some_and(asks)
}

#[cfg(test)]
mod tests {
    use narthex_wire::Limits;

    use super::*;

    #[test]
    fn only_a_state_without_questions_asks_nothing() {
        let asks_nothing = |body: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{body}}}"#);
            asks_nothing(&Message::parse(text.into(), &Limits::default()).unwrap())
        };
        let kind = r#""resultType":"input_required""#;
        for more in ["", r#","inputRequests":{}"#, r#","inputRequests":null"#] {
            assert!(asks_nothing(&format!(r#"{{{kind},"requestState":"s"{more}}}"#)), "{more}");
        }
        assert!(!asks_nothing(&format!(
            r#"{{{kind},"requestState":"s","inputRequests":{{"a":1}}}}"#
        )));
        assert!(!asks_nothing(&format!("{{{kind}}}")));
        assert!(!asks_nothing(&format!(r#"{{{kind},"requestState":7}}"#)));
        assert!(!asks_nothing(r#"{"resultType":"complete","requestState":"s"}"#));
        assert!(!asks_nothing(r#"{"requestState":"s","content":[]}"#));
    }
}
