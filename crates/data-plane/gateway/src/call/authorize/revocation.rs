//! Closes open streams and subscriptions when the permission for them ends (D5).

use std::{
    future::pending,
    sync::Arc,
    time::{Duration, SystemTime},
};

use narthex_policy::{Item, Permitted, Request, Verdict};
use narthex_registry::ServerRow;
use narthex_upstream::Asking;
use narthex_wire::{Raw, json::encode_string, notification::RESOURCES_FILTER};
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Target;
use crate::{
    Caller, Session,
    lists::exposure::{hide_from_listening, rules},
    shared::Shared,
    standing::{Over, Standing},
    subscriptions::FollowKey,
    view::exposed,
};

/// Longest wait for a time that grants or rules name, since the clock may be set meanwhile.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

impl Shared {
    /// True if the whole permission still holds: its grants count, also in this turn, and the rules
    /// of the workspace allow each request.
    fn stands(&self, caller: &Caller, standing: &Standing) -> bool {
        if !standing.basis.counts(&caller.run.authority.actors(), SystemTime::now()) {
            return false;
        }
        if caller.run.authority.rules.is_empty() {
            return true;
        }
        let paid: Vec<_> = standing.basis.single().collect();
        let snapshot = self.snapshot(&caller.run);
        standing.requests.iter().all(|request| {
            let row = snapshot.get(request.alias.as_str());
            let target = Target::of(row.as_ref().map(|row| &***row));
            match self.decide(caller, target, request.clone(), &paid) {
                Ok(Verdict::Permit(_)) => true,
                // A stream that stays open uses no further grants up.
                Ok(Verdict::Unpaid(unpaid)) => {
                    drop(unpaid.put_back());
                    false
                }
                Err(_) => false,
            }
        })
    }

    /// Waits until a part of the permission has ended.
    async fn until_over(&self, caller: &Caller, standing: &Standing) {
        let authority = &caller.run.authority;
        let (mut removals, mut changes) = (authority.grants.removals(), authority.rules.changes());
        let mut turns = authority.acting().changes();
        loop {
            removals.mark_unchanged();
            changes.mark_unchanged();
            turns.mark_unchanged();
            if !self.stands(caller, standing) {
                return;
            }
            let ends_at = standing.basis.ends_at();
            let left = ends_at.and_then(|end| end.duration_since(SystemTime::now()).ok());
            let is_timed = left.is_some() || !authority.rules.is_empty();
            let time = async {
                match is_timed {
                    true => sleep(left.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN)).await,
                    false => pending().await,
                }
            };
            // The senders exist as long as the run.
            tokio::select! {
                biased;
                _ = removals.changed() => {}
                _ = changes.changed() => {}
                _ = turns.changed() => {}
                () = time => {}
            }
        }
    }

    /// Runs `then` once when the permission has ended. It does not run after `ended`, nor after the
    /// returned guard was dropped. `None` if no part of the permission can be refused later.
    fn when_over(
        self: &Arc<Self>,
        caller: &Caller,
        standing: Standing,
        ended: &CancellationToken,
        then: impl Future<Output = ()> + Send + 'static,
    ) -> Option<DropGuard> {
        if standing.requests.is_empty() {
            return None;
        }
        let gone = CancellationToken::new();
        let kept = gone.clone().drop_guard();
        let (shared, caller, ended) = (self.clone(), caller.clone(), ended.clone());
        self.spawn(async move {
            tokio::select! {
                biased;
                () = gone.cancelled() => return,
                () = shared.shutdown.cancelled() => return,
                () = ended.cancelled() => return,
                () = shared.until_over(&caller, &standing) => {}
            }
            then.await;
        });
        Some(kept)
    }

    /// Cancels a child token of `ended` when an open stream is not allowed any more.
    pub(crate) fn over(
        self: &Arc<Self>,
        caller: &Caller,
        standing: Standing,
        ended: &CancellationToken,
    ) -> Option<Over> {
        let token = ended.child_token();
        let over = token.clone();
        let kept = self.when_over(caller, standing, ended, async move { over.cancel() })?;
        Some(Over { token, _kept: kept })
    }

    /// Ends a session's subscription when the subscription is not allowed any more.
    pub(crate) fn unsubscribe_when_over(
        self: &Arc<Self>,
        caller: &Caller,
        session: &Arc<Session>,
        key: FollowKey,
        standing: Standing,
    ) {
        let (of, what) = (session.clone(), key.clone());
        let then = async move { of.unsubscribe(&what) };
        if let Some(watch) = self.when_over(caller, standing, session.closed(), then) {
            session.watch(&key, watch);
        }
    }

    /// As [`Self::unsubscribe_when_over`], for a subscription on a link of the session alone.
    pub(crate) fn unsubscribe_own_when_over(
        self: &Arc<Self>,
        caller: &Caller,
        session: &Arc<Session>,
        permitted: &Permitted<Request>,
    ) {
        let (alias, uri): (_, Arc<str>) = (permitted.alias.clone(), permitted.item.name().into());
        let (shared, of, server, what) =
            (self.clone(), session.clone(), alias.clone(), uri.clone());
        let then = async move {
            of.note_own_subscription(&server, &what, false);
            // A newer link may have replaced the one of the subscription.
            let link = of.own_links().into_iter().find(|link| *link.alias() == server);
            let Some(link) = link else { return };
            let key = of.run.key(&server);
            let members = [br#""uri":"#, &encode_string(&what)[..]].concat();
            let asked = shared.ask(&key, &link, Asking::Unsubscribe, &members).await;
            if let Err(refusal) = asked {
                // The server still sends updates; these say only that the resource has changed.
                let kind = refusal.call_kind().map(|kind| kind.as_str());
                tracing::warn!(
                    server.name = link.name(),
                    error.kind = kind,
                    "the server did not end a subscription, and still sends its updates"
                );
            }
        };
        let watched = self.when_over(caller, Standing::of(permitted), session.closed(), then);
        if let Some(watch) = watched {
            session.watch_own(&alias, uri, watch);
        }
    }

    /// Removes the forbidden resources from a request for changes, and returns the permission for
    /// the others. Each resource is decided on and recorded like a subscription of its own.
    pub(crate) async fn permit_listening(
        &self,
        caller: &Caller,
        row: &ServerRow,
        request: &mut Request,
    ) -> Standing {
        let mut all = Standing::default();
        let mut refused = Vec::new();
        let gates = rules(Some(row)).gates;
        let wanted = request.message.get("notifications");
        let uris = wanted.and_then(|wanted| wanted.get(RESOURCES_FILTER));
        for uri in uris.map(Raw::items).unwrap_or_default() {
            let Some(text) = uri.as_str() else { continue };
            let is_free =
                gates.of_resource(&text).is_empty() && caller.run.authority.rules.is_empty();
            if !exposed(row).resources.lets(&text) {
                continue;
            }
            let item = Item::Resource(text.as_ref().into());
            let one = Request::new(request.alias.clone(), request.message.clone(), item);
            if is_free {
                // The workspace may get rules later.
                all.requests.push(one);
                continue;
            }
            match self.part_of_errand(caller, one).await {
                Ok(errand) => {
                    all.join(errand.standing());
                    errand.done();
                }
                Err(_) => refused.push(text.into_owned()),
            }
        }
        hide_from_listening(request, row, |uri| !refused.iter().any(|one| one == uri));
        all
    }
}
