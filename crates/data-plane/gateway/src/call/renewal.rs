//! Sends levels and subscriptions to a server again when a link takes the place of another.

use std::{sync::Arc, time::Duration};

use narthex_policy::{Item, Request};
use narthex_registry::ServerKey;
use narthex_upstream::{Asking, Link};
use narthex_wire::{Limits, LogLevel, Message, Raw, json::encode_string, rpc};
use tokio::time::timeout;

use crate::{
    Caller, Endpoint, Session,
    call::internal_request::Errand,
    links::{LinkKind, bridge::Bridge, link_kind},
    refusal::Refusal,
    shared::Shared,
    subscriptions::is_at,
};

/// Longest wait of a call until its server has taken the level that it names.
const LEVEL_PATIENCE: Duration = Duration::from_secs(1);

impl Shared {
    /// Sends to a link that several share the lowest level that sessions which use it have set,
    /// also from before the server was there.
    pub(crate) fn tell_new_link(
        self: &Arc<Self>,
        link: &Arc<Link>,
        server: &ServerKey,
        kind: LinkKind,
    ) {
        // The link is noted before the sessions are read: a session that sets its level from now on
        // sends the level itself.
        if !self.hub.is_new(link, server, kind) {
            return;
        }
        let wanted = self.sessions.all().into_iter().filter_map(|session| {
            let level = session.log_level()?;
            self.hears(&session, server, kind).then_some((level, session))
        });
        if let Some((level, session)) = wanted.min_by_key(|(level, _)| *level)
            && let Some(level) = self.hub.lowers(link, server, kind, level)
        {
            self.tell_level(&session, link, level);
        }
    }

    /// True if a session hears a server's log messages on links of this kind.
    fn hears(&self, session: &Session, server: &ServerKey, kind: LinkKind) -> bool {
        let is_here = is_at(session, &server.alias) || session.endpoint == Endpoint::Aggregated;
        is_here && self.uses(session, server, kind)
    }

    /// True if a session may see a server, and uses links of this kind to it.
    pub(crate) fn uses(&self, session: &Session, server: &ServerKey, kind: LinkKind) -> bool {
        let (run, alias) = (&session.run, &server.alias);
        if !run.policy.is_attached(alias) || run.key(alias) != *server {
            return false;
        }
        let snapshot = self.snapshot(run);
        let row = snapshot.get(alias.as_str());
        let shared = row.as_ref().and_then(|row| Some((row, row.link.as_ref()?)));
        shared.is_some_and(|(row, link)| link_kind(session, row, link.facts()) == kind)
    }

    /// Sends a session's level to a new link.
    pub(crate) fn tell_level(
        self: &Arc<Self>,
        session: &Arc<Session>,
        link: &Arc<Link>,
        level: LogLevel,
    ) {
        if !crate::links::has_levels(link) {
            return;
        }
        let members = format!(r#""level":"{}""#, level.as_str());
        self.tell_again(session, link, Asking::SetLevel, vec![(Item::Server, members)]);
    }

    /// Makes the subscriptions of a session's own link again on one that takes its place.
    pub(crate) fn subscribe_again(self: &Arc<Self>, session: &Arc<Session>, link: &Arc<Link>) {
        let uris = session.own_subscriptions(link.alias());
        let all = uris.into_iter().map(|uri| {
            let quoted = encode_string(&uri);
            let members = format!(r#""uri":{}"#, String::from_utf8_lossy(&quoted));
            (Item::Resource(uri), members)
        });
        self.tell_again(session, link, Asking::Subscribe, all.collect());
    }

    /// Sends a server a session's request from an earlier link: decided on and recorded anew, since
    /// policy may have changed.
    fn tell_again(
        self: &Arc<Self>,
        session: &Arc<Session>,
        link: &Arc<Link>,
        asking: Asking,
        all: Vec<(Item, String)>,
    ) {
        if all.is_empty() {
            return;
        }
        let (shared, session, link) = (self.clone(), session.clone(), link.clone());
        self.spawn(async move {
            let telling = async {
                for (item, members) in all {
                    shared.tell_one(&session, &link, asking, item, &members).await;
                }
            };
            tokio::select! {
                biased;
                () = shared.shutdown.cancelled() => {}
                () = session.closed().cancelled() => {}
                () = telling => {}
            }
        });
    }

    async fn tell_one(
        &self,
        session: &Arc<Session>,
        link: &Link,
        asking: Asking,
        item: Item,
        members: &str,
    ) {
        let (run, endpoint) = (session.run.clone(), session.endpoint.clone());
        let caller = Caller::new(run, endpoint, Some(session.clone()));
        let name = asking.method();
        let done = match self.errand_again(&caller, link, name, item, members).await {
            Ok(errand) => errand.end(
                self.ask(&session.run.key(link.alias()), link, asking, members.as_bytes()).await,
            ),
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = done {
            tracing::debug!(
                server.name = link.name(),
                ?refusal,
                "{name} failed on a new connection"
            );
        }
    }

    /// Sends a legacy server the level that one modern call names. Sends nothing if another caller
    /// on the same link, the shared one or `bridge`, asked for one as low before. The call does not
    /// wait long for the answer.
    pub(crate) async fn lower_for(
        &self,
        caller: &Caller,
        link: &Arc<Link>,
        level: LogLevel,
        bridge: Option<&Bridge>,
    ) {
        if !crate::links::has_levels(link) {
            return;
        }
        let server = caller.run.key(link.alias());
        let needed = match bridge {
            Some(bridge) => bridge.lowers(level),
            None => self.hub.lowers(link, &server, LinkKind::Shared, level),
        };
        let Some(level) = needed else { return };
        let members = format!(r#""level":"{}""#, level.as_str());
        let name = Asking::SetLevel.method();
        let done = match self.errand_again(caller, link, name, Item::Server, &members).await {
            Ok(errand) => {
                let telling = self.ask(&server, link, Asking::SetLevel, members.as_bytes());
                match timeout(LEVEL_PATIENCE, telling).await {
                    Ok(told) => errand.end(told),
                    // The server has the request. Later calls do not wait for it again.
                    Err(_late) => return drop(errand.end::<()>(Err(Refusal::Cancelled))),
                }
            }
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = done {
            match bridge {
                Some(bridge) => bridge.forget_level(level),
                None => self.hub.forget_level(link, &server, LinkKind::Shared, level),
            }
            tracing::debug!(server.name = link.name(), ?refusal, "a log level could not be set");
        }
    }

    async fn errand_again(
        &self,
        caller: &Caller,
        link: &Link,
        name: &str,
        item: Item,
        members: &str,
    ) -> Result<Errand, Refusal> {
        let params = format!("{{{members}}}");
        let text = rpc::request(Raw::new(b"0"), name, Some(params.as_bytes())).into_bytes();
        let message = Message::parse(text, &Limits::default())
            .map_err(|error| Refusal::rpc(rpc::code::INTERNAL_ERROR, error.to_string()))?;
        self.errand(caller, Request::new(link.alias().clone(), message, item)).await
    }
}
