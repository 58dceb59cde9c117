//! A routed request on its way to its server: prepared, decided on, sealed and sent.

use std::{sync::Arc, time::Duration};

use narthex_model::GrantId;
use narthex_policy::{Payment, Verdict};
use narthex_upstream::{Booked, Hop, InUse, Link, LinkError};
use narthex_wire::{Revision, method, rpc};

use crate::{
    Caller,
    clock::CallClock,
    finish::Held,
    gateway::Shared,
    grants::Target,
    parked::Asking,
    refusal::Refusal,
    route::Routed,
    sent::{FinishParts, Sent},
};

/// Longest time of a task's result (2025-11-25): servers answer when the task has ended.
const TASK_RESULT_TIMEOUT: Duration = Duration::from_secs(60 * 60);

impl Shared {
    /// Prepares, authorizes and sends. The work before the first await is done in [`Shared::seal`],
    /// so that the request is not held besides its sealed form.
    pub(crate) async fn send(
        self: &Arc<Self>,
        caller: &Caller,
        routed: Routed,
        (link, mut hop, booked): (InUse, Hop, Booked),
        clock: CallClock,
        payment: &mut Payment,
    ) -> Result<Sent, Refusal> {
        let (row, listening) = (routed.row.clone(), routed.listening.clone());
        let method = routed.request.message.method();
        let is_stream = method == method::SUBSCRIPTIONS_LISTEN;
        let each = match method {
            method::TASKS_RESULT => self.timeout(&row).max(TASK_RESULT_TIMEOUT),
            _ => self.timeout(&row),
        };
        let most = row.definition.as_ref().and_then(|definition| definition.progress_extends);
        let limit = (!is_stream).then(|| clock.limit(each, most));
        let (mut finish, verdict) = self.seal(caller, routed, &link, payment)?;
        let permitted = match verdict {
            Verdict::Permit(permitted) => permitted,
            Verdict::Unpaid(unpaid) => {
                let target = Target::of(Some(&row));
                Box::pin(self.settle(caller, target, unpaid, &payment.grants)).await?
            }
        };
        finish.allowed(&permitted);
        payment.uses(permitted.basis());
        let is_subscription = permitted.message.method() == method::RESOURCES_SUBSCRIBE;
        if let Some(session) = caller.session.as_ref().filter(|_| is_subscription) {
            self.unsubscribe_own_when_over(caller, session, &permitted);
        }
        if let Some(level) = finish.named_level() {
            hop.wants_log = true;
            let bridge = finish.asking.as_ref().map(|asking| asking.bridge());
            Box::pin(self.lower_for(caller, &link, level, bridge)).await;
            if bridge.is_none() && !link.is_one_channel() && crate::inbound::has_levels(&link) {
                finish.ear = Some(Box::new(self.hub.ears.listen(&link)));
            }
        }
        if let Some(session) = &caller.session
            && link.is_one_channel()
            && session.can_be_asked()
            && !session.has_stream()
        {
            finish.ear = Some(Box::new(self.hub.ears.listen(&link)));
        }
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
        let down = caller.session.as_ref().map_or(Revision::LATEST, |session| session.revision);
        let over = is_stream.then(|| self.over(caller, listening, &caller.run.ended)).flatten();
        let ended = over.as_ref().map_or(&caller.run.ended, |over| &over.token);
        let stop = is_stream.then(|| [self.stopping.clone(), ended.clone()]);
        let link = match is_stream {
            true => Held::Awake(link.keep_awake()),
            false => Held::InUse(link),
        };
        Ok(Sent { forwarded, finish, link, down, limit, stop, over })
    }

    fn seal(
        self: &Arc<Self>,
        caller: &Caller,
        mut routed: Routed,
        link: &Link,
        payment: &mut Payment,
    ) -> Result<(FinishParts, Verdict), Refusal> {
        let up = link.facts().revision;
        let mut finish = FinishParts::read(self, caller, &routed, up);
        let asking = |turn| Box::new(Asking::new(self, caller, &routed.request, turn));
        finish.asking = routed.turn.take().map(asking);
        self.prepare(caller, &mut routed.request, up, payment)?;
        let (target, request) = (Target::of(Some(&routed.row)), routed.request);
        let decide = |paid: &[GrantId]| self.decide(caller, target, request, paid);
        let verdict = caller.run.unused.lend(payment, decide)?;
        Ok((finish, verdict))
    }
}
