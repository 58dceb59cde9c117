//! What ends with the grants that allow it (D5): streams and subscriptions that are open.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use narthex_policy::{Basis, Item, Request};
use narthex_registry::ServerRow;
use narthex_upstream::Link;
use narthex_wire::{Raw, json::encode_string, method};
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    Caller, Session,
    exposure::{exposed, hide_from_listening, rules},
    gateway::Shared,
    hub::FollowKey,
};

/// The longest wait for the time of a grant; the clock may be set meanwhile.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Tells when grants count no more, for as long as it is kept.
#[derive(Debug)]
pub(crate) struct Over {
    pub(crate) token: CancellationToken,
    _kept: DropGuard,
}

impl Shared {
    /// Waits until any of these grants counts no more.
    async fn until_over(&self, basis: &Basis) {
        let mut changes = self.grants_changed.subscribe();
        loop {
            changes.mark_unchanged();
            let now = SystemTime::now();
            if !basis.counts(now) {
                return;
            }
            let left = basis.ends_at().and_then(|end| end.duration_since(now).ok());
            tokio::select! {
                biased;
                changed = changes.changed() => if changed.is_err() { return },
                () = sleep(left.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN)) => {}
            }
        }
    }

    /// Cancels a token below `ended` when these grants are over. `None` where nothing was required.
    pub(crate) fn over(self: &Arc<Self>, basis: &Basis, ended: &CancellationToken) -> Option<Over> {
        if basis.is_empty() {
            return None;
        }
        let (token, gone) = (ended.child_token(), CancellationToken::new());
        let over = Over { token: token.clone(), _kept: gone.clone().drop_guard() };
        let (shared, basis) = (self.clone(), basis.clone());
        self.spawn(async move {
            tokio::select! {
                biased;
                () = gone.cancelled() => {}
                () = shared.shutdown.cancelled() => {}
                () = token.cancelled() => {}
                () = shared.until_over(&basis) => token.cancel(),
            }
        });
        Some(over)
    }

    /// Ends a session's subscription when the grants are over that allow it.
    pub(crate) fn unsubscribe_when_over(
        self: &Arc<Self>,
        session: &Arc<Session>,
        key: FollowKey,
        basis: &Basis,
    ) {
        let Some(over) = self.over(basis, session.closed()) else { return };
        let session = session.clone();
        self.spawn(async move {
            over.token.cancelled().await;
            session.unsubscribe(&key);
        });
    }

    /// The same where the subscription is on a link of the session's own.
    pub(crate) fn unsubscribe_own_when_over(
        self: &Arc<Self>,
        session: &Arc<Session>,
        link: Arc<Link>,
        uri: Arc<str>,
        basis: &Basis,
    ) {
        let Some(over) = self.over(basis, session.closed()) else { return };
        let (shared, session) = (self.clone(), session.clone());
        self.spawn(async move {
            over.token.cancelled().await;
            if session.closed().is_cancelled() {
                return;
            }
            session.note_own_subscription(link.alias(), &uri, false);
            let key = session.run.key(link.alias());
            let members = [br#""uri":"#, &encode_string(&uri)[..]].concat();
            let asked = shared.ask(&key, &link, method::RESOURCES_UNSUBSCRIBE, &members).await;
            if let Err(refusal) = asked {
                // It goes on telling; what it tells is no more than that something has changed.
                tracing::warn!(server.name = link.name(), ?refusal, "could not unsubscribe");
            }
        });
    }

    /// Takes out of a request for changes the resources that nobody has granted, and gives what
    /// allows the others. Each is decided on and recorded like a subscription of its own.
    pub(crate) async fn permit_listening(
        &self,
        caller: &Caller,
        row: &ServerRow,
        request: &mut Request,
    ) -> Basis {
        let mut all = Basis::default();
        let mut refused = Vec::new();
        let gates = rules(Some(row)).gates;
        let wanted = request.message.get("notifications");
        let uris = wanted.and_then(|wanted| wanted.get("resourceSubscriptions"));
        for uri in uris.map(Raw::items).unwrap_or_default() {
            let Some(text) = uri.as_str() else { continue };
            let is_free =
                gates.of_resource(&text).is_empty() && caller.run.authority.rules.is_empty();
            if is_free || !exposed(row).resources.lets_uri(&text) {
                continue;
            }
            let item = Item::Resource(text.as_ref().into());
            let one = Request::new(request.alias.clone(), request.message.clone(), item);
            match self.errand(caller, one).await {
                Ok(errand) => {
                    all.join(errand.basis());
                    errand.done();
                }
                Err(_) => refused.push(text.into_owned()),
            }
        }
        hide_from_listening(request, row, |uri| !refused.iter().any(|one| one == uri));
        all
    }
}
