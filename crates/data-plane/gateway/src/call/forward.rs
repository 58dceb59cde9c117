//! Sends a permitted request to its server, and makes the call that its answer ends (the `forward`
//! step).

use std::sync::Arc;

use narthex_policy::{Basis, Permitted, Request};
use narthex_upstream::{Forwarded, LinkError};
use narthex_wire::{method, rpc};
use tokio_util::sync::CancellationToken;

use crate::{
    Answering,
    call::{
        again::{Again, Tried},
        answering::ForwardedCall,
        finish::{Finish, Held},
        identify::Call,
        parked::Asking,
        prepare::Prepared,
        request_facts::RequestFacts,
        rounds::Rounds,
    },
    clock::CallLimit,
    links::has_levels,
    refusal::Refusal,
    shared::Shared,
    standing::Over,
    subscriptions::Ear,
};

/// A request that was sent and waits to be finished.
pub(crate) struct Sent {
    forwarded: Forwarded,
    facts: RequestFacts,
    basis: Basis,
    asking: Option<Box<Asking>>,
    ear: Option<Box<Ear>>,
    rounds: Option<Box<Rounds>>,
    link: Held,
    limit: Option<CallLimit>,
    stop: Option<[CancellationToken; 2]>,
    /// Watches the permission of a stream, for as long as the stream is open.
    over: Option<Over>,
}

impl Shared {
    /// Sends a request that policy has permitted. Ends with the first frame of the answer.
    pub(crate) async fn forward(
        self: &Arc<Self>,
        call: &Call<'_>,
        prepared: Prepared,
        permitted: Permitted<Request>,
    ) -> Result<Sent, Refusal> {
        let Prepared { link, mut hop, booked, facts, asking, rounds, listening, limit, .. } =
            prepared;
        let caller = call.caller;
        let mut ear = None;
        let is_subscription = permitted.message.method() == method::RESOURCES_SUBSCRIBE;
        if let Some(session) = caller.session.as_ref().filter(|_| is_subscription) {
            self.unsubscribe_own_when_over(caller, session, &permitted);
        }
        if let Some(level) = facts.named_level() {
            hop.wants_log = true;
            let bridge = asking.as_ref().map(|asking| asking.bridge());
            Box::pin(self.lower_for(caller, &link, level, bridge)).await;
            if bridge.is_none() && !link.is_one_channel() && has_levels(&link) {
                ear = Some(Box::new(self.hub.ears.listen(&link)));
            }
        }
        if let Some(session) = &caller.session
            && link.is_one_channel()
            && session.can_be_asked()
            && !session.has_stream()
        {
            ear = Some(Box::new(self.hub.ears.listen(&link)));
        }
        let basis = permitted.basis().clone();
        let forwarding = link.forward(permitted, hop, booked);
        let forwarded = match limit {
            None => forwarding.await,
            Some(limit) => {
                tokio::time::timeout_at(limit.deadline, forwarding).await.unwrap_or_else(|_late| {
                    link.note_silence(limit.each);
                    Err(LinkError::Deadline(limit.each.as_millis()))
                })
            }
        };
        let forwarded = forwarded.map_err(|error| Refusal::failed(&error, link.name()))?;
        if forwarded.error_code() == Some(rpc::code::HEADER_MISMATCH) && link.needs_headers() {
            return Err(Refusal::Mismatch);
        }
        let is_stream = limit.is_none();
        let over = is_stream.then(|| self.over(caller, listening, &caller.run.ended)).flatten();
        let ended = over.as_ref().map_or(&caller.run.ended, |over| &over.token);
        let stop = is_stream.then(|| [self.stopping.clone(), ended.clone()]);
        let link = match is_stream {
            true => Held::Awake(link.keep_awake()),
            false => Held::InUse(link),
        };
        Ok(Sent { forwarded, facts, basis, asking, ear, rounds, link, limit, stop, over })
    }

    /// The answering of a sent call. The call is tried once more if its server, such as a program,
    /// ends before it has read any of it.
    pub(crate) fn finish(self: &Arc<Self>, call: Call<'_>, tried: Tried, sent: Sent) -> Answering {
        let Call { caller, handling, asked, clock, open_call } = call;
        let Tried { mut record, mut payment, first, is_last } = tried;
        let Sent { forwarded, facts, basis, asking, ear, rounds, link, limit, stop, over } = sent;
        record.allowed(&basis);
        // A stream is opened anew by its client.
        let may_retry = !is_last && limit.is_some() && first.lost.is_one_channel();
        let again = may_retry.then(|| Box::new(Again::new(self, caller, handling, asked, first)));
        let finish = Finish { request: facts, link, open_call, record };
        let rounds = rounds.map(|rounds| rounds.paid(std::mem::take(&mut payment)));
        Answering::forwarded(ForwardedCall {
            forwarded,
            finish,
            limit,
            stop,
            rounds,
            asking,
            ear,
            tail: None,
            clock,
            payment,
            again,
            has_talked: false,
            _over: over,
        })
    }
}
