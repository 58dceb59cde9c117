//! Following single resources and tasks: one subscription at the server for all followers over one
//! link.
//!
//! Each followed subject has an actor of its own, so that no server waits for another.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use narthex_upstream::{Asking, Link, LinkError};
use narthex_wire::{Message, json::encode_string};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout},
};

use crate::{
    Answering, Caller, Place, Session,
    call::{internal_request::Errand, own_answer::result, routed::Routed},
    clock::CallClock,
    links::LinkKind,
    refusal::{Refusal, not_found},
    shared::Shared,
    subscriptions::{
        FollowKey, Subject,
        followed::{End, Followed, Following, lost},
    },
    view::Handling,
};

/// The shortest pause before a lost subscription is made again.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Longest wait for a modern server's acknowledgement; most resources change later anyway.
const ACKNOWLEDGE_DEADLINE: Duration = Duration::from_secs(1);

impl Shared {
    /// `resources/subscribe` and `resources/unsubscribe` of a legacy client.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        caller: &Caller,
        is_start: bool,
        request: Message,
    ) -> Result<Answering, Refusal> {
        let handling = Handling::Subscribe { is_start };
        let Routed { row, request: routed, .. } =
            self.routed(caller, handling, request.clone(), CallClock::start()).await?;
        let chosen = self.choose_link(caller, &row).await?;
        let Some(session) = &caller.session else {
            return Err(Refusal::unknown_method(request.method()));
        };
        if is_start && chosen.inventory.withholds(routed.item.name()) {
            return Err(not_found(handling, routed.item.name()));
        }
        if chosen.kind == LinkKind::Own {
            session.note_own_subscription(&routed.alias, routed.item.name(), is_start);
            return self.call_server(caller, handling, request).await;
        }
        if !chosen.link.facts().capabilities.subscribe {
            return Err(Refusal::unknown_method(request.method()));
        }
        let place = is_start.then(|| self.place_to_follow(caller, 1)).transpose()?;
        let subject = Subject::Resource(routed.item.name().into());
        let server = caller.run.key(&routed.alias);
        let key = FollowKey { server, subject, kind: chosen.kind };
        let errand = self.errand(caller, routed).await?;
        let standing = errand.standing();
        let done = match place {
            Some(place) => {
                let link = Arc::clone(&chosen.link);
                self.follow_in(session, place, &errand, &key, link).await
            }
            None => {
                session.unsubscribe(&key);
                Ok(())
            }
        };
        errand.end(done)?;
        if is_start {
            self.unsubscribe_when_over(caller, session, key, standing);
        }
        Ok(result(&request, &Bytes::from_static(b"{}")))
    }

    async fn follow_in(
        self: &Arc<Self>,
        session: &Session,
        place: Place,
        errand: &Errand,
        key: &FollowKey,
        link: Arc<Link>,
    ) -> Result<(), Refusal> {
        if session.subscribe(key, place) {
            let following = self.follow(errand, key, link).await;
            session.follows(key, following.inspect_err(|_| session.unsubscribe(key))?);
        }
        Ok(())
    }

    /// Has a server report changes of one resource or task, for as long as it has a follower.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        _errand: &Errand,
        key: &FollowKey,
        link: Arc<Link>,
    ) -> Result<Following, Refusal> {
        let (following, is_first) = self.hub.join(key);
        if is_first {
            let (shared, key, followed) = (self.clone(), key.clone(), following.0.clone());
            self.spawn(async move {
                tokio::select! {
                    biased;
                    () = shared.shutdown.cancelled() => {}
                    () = shared.keep_following(&key, &followed, link) => {}
                }
                if followed.outcome.borrow().is_none() {
                    shared.hub.fail(&key, &followed, Refusal::Cancelled);
                }
            });
        }
        let within = self.patience(&key.server);
        let mut outcome = following.0.outcome.subscribe();
        let waiting = timeout(within, outcome.wait_for(Option::is_some)).await;
        let told = waiting.ok().and_then(Result::ok).and_then(|outcome| outcome.clone());
        let late = || {
            let error = LinkError::Deadline(within.as_millis());
            Err(Refusal::failed(&error, key.server.alias.as_str()))
        };
        told.unwrap_or_else(late)?;
        Ok(following)
    }

    /// Follows a subject on one link of its server after another, until it has no follower.
    async fn keep_following(
        self: &Arc<Self>,
        key: &FollowKey,
        followed: &Followed,
        mut link: Arc<Link>,
    ) {
        let mut pause = PAUSE_MIN;
        loop {
            let since = Instant::now();
            // Followers wait for messages that the server sends by itself.
            let awake = link.keep_awake();
            let ended = match (link.facts().revision.is_modern(), &key.subject) {
                (true, _) => self.follow_modern(key, followed, &link).await,
                (false, Subject::Resource(uri)) => {
                    self.follow_legacy(key, uri, followed, &link).await
                }
                // The server now speaks another era than when it created the task.
                (false, Subject::Task(_)) => followed.unwanted_on(&link).await,
            };
            drop(awake);
            match ended {
                End::Unwanted if self.hub.forget(key, followed) => return,
                // A follower came while the server got the unsubscription.
                End::Unwanted => continue,
                End::Lost(refusal) if !followed.is_followed() => {
                    return self.hub.fail(key, followed, refusal);
                }
                End::Lost(_) if followed.has_ended() => {
                    followed.unwanted().await;
                    if self.hub.forget(key, followed) {
                        return;
                    }
                }
                End::Lost(_) => {}
            }
            if link.closed().is_cancelled() || since.elapsed() >= PAUSE_MAX {
                pause = PAUSE_MIN;
            }
            let again = async {
                if !link.closed().is_cancelled() {
                    sleep(pause).await;
                }
                Some(self.live_link(&key.server, key.kind).await)
            };
            let found = tokio::select! {
                biased;
                () = followed.unwanted() => None,
                found = again => found,
            };
            match found {
                Some(found) => link = found,
                None if self.hub.forget(key, followed) => return,
                // A follower has come meanwhile: the loop follows the subject on the next link.
                None => {}
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Subscribes at a legacy server, and unsubscribes when no follower is left.
    async fn follow_legacy(
        &self,
        key: &FollowKey,
        uri: &str,
        followed: &Followed,
        link: &Link,
    ) -> End {
        let members = [br#""uri":"#, &encode_string(uri)[..]].concat();
        if let Err(refusal) = self.ask(&key.server, link, Asking::Subscribe, &members).await {
            return End::Lost(refusal);
        }
        followed.outcome.send_replace(Some(Ok(())));
        loop {
            tokio::select! {
                biased;
                () = link.closed().cancelled() => return lost(link),
                () = followed.unwanted() => {}
            }
            if self.hub.leave(followed) {
                break;
            }
        }
        if let Err(refusal) = self.ask(&key.server, link, Asking::Unsubscribe, &members).await {
            tracing::debug!(
                ?refusal,
                "a server could not be notified of the end of a subscription"
            );
        }
        End::Unwanted
    }

    /// Asks for the status of a task that changed while there was no stream to its server. Reports
    /// the status as if the server had sent it.
    async fn catch_up(&self, link: &Link, key: &FollowKey, followed: &Followed) {
        let Subject::Task(id) = &key.subject else { return };
        let members = [br#""taskId":"#, &encode_string(id)[..]].concat();
        let state = match self.asked(&key.server, link, Asking::TaskState, &members).await {
            Ok(answer) => crate::subscriptions::tasks::state_of(&answer),
            Err(refusal) => {
                tracing::debug!(
                    server.name = link.name(),
                    ?refusal,
                    "did not report the state of a task"
                );
                None
            }
        };
        let Some(state) = state else { return };
        self.tasks.heard(&key.server, state.get("taskId"), state.get("status"));
        // A later state may have come on the stream.
        if !followed.has_ended() {
            self.hub.task_changed(&key.server, &state);
        }
    }

    /// Keeps a modern server's stream of one resource's or task's changes open.
    async fn follow_modern(&self, key: &FollowKey, followed: &Followed, link: &Link) -> End {
        let filter = key.subject.filter();
        let was_followed = followed.is_followed();
        let (acknowledged, acknowledgement) = oneshot::channel();
        let mut listening = Box::pin(link.listen(&filter, move || {
            if acknowledged.send(()).is_err() {
                tracing::trace!("the caller of the subscription has gone");
            }
        }));
        let ended = tokio::select! {
            biased;
            ended = &mut listening => Some(ended),
            _ = timeout(ACKNOWLEDGE_DEADLINE, acknowledgement) => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                followed.outcome.send_replace(Some(Ok(())));
                let mut is_behind = was_followed;
                loop {
                    tokio::select! {
                        biased;
                        ended = &mut listening => break ended,
                        () = followed.unwanted() => {}
                        () = self.catch_up(link, key, followed), if is_behind => {
                            is_behind = false;
                            continue;
                        }
                    }
                    if self.hub.leave(followed) {
                        return End::Unwanted;
                    }
                }
            }
        };
        let error = ended.err().unwrap_or_else(|| LinkError::Closed("the stream ended".into()));
        tracing::debug!(server.name = link.name(), %error, "a stream of changes ended");
        End::Lost(Refusal::failed(&error, link.name()))
    }
}
