//! Following single resources: one subscription at the server for all who follow over one link.

use std::sync::Arc;

use bytes::Bytes;
use narthex_upstream::Link;
use narthex_wire::{Message, Raw, json::encode_string, method};
use tokio_util::sync::CancellationToken;

use super::{FollowKey, Followed};
use crate::{
    Answering, Caller, gateway::Shared, links::LinkKind, method::Handling, pipeline::result,
    refusal::Refusal, route::Routed,
};

impl Shared {
    /// `resources/subscribe` and `resources/unsubscribe` of a legacy client.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        caller: &Caller,
        is_start: bool,
        request: Message,
    ) -> Result<Answering, Refusal> {
        let handling = Handling::Subscribe { is_start };
        let Routed { row, request: routed } = self.route(caller, handling, request.clone()).await?;
        let chosen = self.choose_link(caller, &row).await?;
        if chosen.kind == LinkKind::Own {
            return self.forward(caller, handling, request).await;
        }
        let Some(session) = &caller.session else {
            return Err(Refusal::unknown_method(request.method()));
        };
        if !chosen.link.facts().capabilities.subscribe {
            return Err(Refusal::unknown_method(request.method()));
        }
        let uri = Arc::from(routed.item.name());
        let key = FollowKey { alias: routed.alias, uri, kind: chosen.kind };
        if is_start {
            if session.subscribe(key.clone())
                && let Err(refusal) = self.follow(&key, chosen.link).await
            {
                session.unsubscribe(&key);
                return Err(refusal);
            }
        } else if session.unsubscribe(&key) {
            self.release(&key).await;
        }
        Ok(result(&request, &Bytes::from_static(b"{}")))
    }

    /// Has a server report changes of one resource, for the first follower.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        key: &FollowKey,
        link: Arc<Link>,
    ) -> Result<(), Refusal> {
        let mut followed = self.hub.followed.lock().await;
        let live = followed.get_mut(key).filter(|entry| !entry.link.closed().is_cancelled());
        if let Some(entry) = live {
            entry.count += 1;
            return Ok(());
        }
        let stop = CancellationToken::new();
        if link.facts().revision.is_modern() {
            let listening = self.clone().follow_modern(link.clone(), key.uri.clone(), stop.clone());
            self.spawn(listening);
        } else {
            let members = [br#""uri":"#, &encode_string(&key.uri)[..]].concat();
            let answer = link.ask(method::RESOURCES_SUBSCRIBE, &members).await?;
            if let Some(code) = answer.error_code() {
                let text = answer.get("message").and_then(Raw::as_str).unwrap_or_default();
                return Err(Refusal::rpc(code, text));
            }
        }
        let earlier = followed.get(key).map_or(0, |entry| entry.count);
        followed.insert(key.clone(), Followed { count: earlier + 1, link, stop });
        Ok(())
    }

    /// Keeps a modern server's stream of one resource's changes open.
    async fn follow_modern(
        self: Arc<Self>,
        link: Arc<Link>,
        uri: Arc<str>,
        stop: CancellationToken,
    ) {
        let filter =
            [br#""notifications":{"resourceSubscriptions":["#, &encode_string(&uri)[..], b"]}"];
        let filter = filter.concat();
        let listening = link.listen(&filter, || {});
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.shutdown.cancelled() => {}
            ended = listening => {
                if let Err(error) = ended {
                    tracing::warn!(
                        server.name = link.name(),
                        %error,
                        "a resource is no longer followed"
                    );
                }
            }
        }
    }

    /// Ends what [`Shared::follow`] began, for the last follower.
    pub(crate) async fn release(&self, key: &FollowKey) {
        let mut followed = self.hub.followed.lock().await;
        let Some(entry) = followed.get_mut(key) else { return };
        entry.count = entry.count.saturating_sub(1);
        if entry.count > 0 {
            return;
        }
        let Some(Followed { link, stop, .. }) = followed.remove(key) else { return };
        drop(followed);
        stop.cancel();
        if !link.facts().revision.is_modern() && !link.closed().is_cancelled() {
            let members = [br#""uri":"#, &encode_string(&key.uri)[..]].concat();
            if let Err(error) = link.ask(method::RESOURCES_UNSUBSCRIBE, &members).await {
                tracing::debug!(%error, "a server was not told of the end of a subscription");
            }
        }
    }
}
