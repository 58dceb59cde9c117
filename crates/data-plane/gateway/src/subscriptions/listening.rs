//! An open `subscriptions/listen` that the gateway answers itself.

use std::sync::Arc;

use bytes::Bytes;
use narthex_registry::ServerKey;
use narthex_wire::{
    Message, Notification, Payload, Raw, Rewrite,
    json::encode_string,
    meta_key, method,
    notification::{RESOURCES_FILTER, TASKS_FILTER},
    rpc,
};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::{
    followed::Following,
    hub::{Change, FollowKey, Seen, Subject},
};
use crate::{Answer, RunView, Step, refusal::Refusal, runs::run::Held, standing::Over};

/// A resource or task that a listener follows.
#[derive(Debug)]
pub(crate) struct Heard {
    /// The caller's URI or id.
    pub(crate) shown: Arc<str>,
    pub(crate) key: FollowKey,
    pub(crate) following: Following,
    /// The last status of a task that was reported.
    pub(crate) told: Option<Bytes>,
}

/// The changes that a listener wants to get.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) lists: Vec<&'static Notification>,
    pub(crate) resources: Vec<Arc<str>>,
    pub(crate) tasks: Vec<Arc<str>>,
}

impl Filter {
    pub(crate) fn read(request: &Message) -> Result<Self, Refusal> {
        let Some(wanted) = request.get("notifications").filter(|raw| raw.is_object()) else {
            return Err(Refusal::invalid("`params.notifications` must be an object"));
        };
        let wants = |name| wanted.get(name).and_then(Raw::as_bool).unwrap_or_default();
        let is_wanted =
            |known: &&Notification| known.filter.is_some_and(|filter| wants(filter.member()));
        let lists = Notification::of_lists().filter(is_wanted).collect();
        let names = |member| {
            let all = wanted.get(member).map(Raw::items).unwrap_or_default();
            let mut names: Vec<Arc<str>> = Vec::new();
            for name in all.into_iter().filter_map(Raw::as_str) {
                if names.len() < FOLLOWED_MAX && !names.iter().any(|known| **known == *name) {
                    names.push(name.as_ref().into());
                }
            }
            names
        };
        let (resources, tasks) = (names(RESOURCES_FILTER), names(TASKS_FILTER));
        Ok(Self { lists, resources, tasks })
    }
}

/// An open `subscriptions/listen` that the gateway answers itself.
#[derive(Debug)]
pub(crate) struct Listening {
    /// Ends all streams when the gateway stops.
    pub(crate) stopping: CancellationToken,
    pub(crate) id: Bytes,
    pub(crate) run: Arc<RunView>,
    pub(crate) seen: Seen,
    pub(crate) changes: broadcast::Receiver<Change>,
    pub(crate) filter: Filter,
    pub(crate) followed: Vec<Heard>,
    pub(crate) is_acknowledged: bool,
    /// Ends when the followed subjects are not allowed any more.
    pub(crate) over: Option<Over>,
    pub(crate) _held: Held,
}

impl Listening {
    pub(crate) async fn next(&mut self) -> Option<Step> {
        if !self.is_acknowledged {
            self.is_acknowledged = true;
            return Some(Step::Message(self.acknowledgement()));
        }
        // The stream ends with the run, or with the permission for the followed subjects.
        let ended = self.over.as_ref().map_or(&self.run.ended, |over| &over.token).clone();
        loop {
            let change = tokio::select! {
                biased;
                () = self.stopping.cancelled() => return Some(Step::Answer(self.end())),
                () = ended.cancelled() => return Some(Step::Answer(self.end())),
                change = self.changes.recv() => change,
            };
            match change {
                Ok(change) => {
                    if let Some(payload) = self.notification(&change) {
                        return Some(Step::Message(payload));
                    }
                }
                // The listener has missed changes: any list may differ.
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    if let Some(known) = self.filter.lists.first() {
                        return Some(Step::Message(self.tagged(known.name, b"")));
                    }
                }
                Err(broadcast::error::RecvError::Closed) => return Some(Step::Answer(self.end())),
            }
        }
    }

    fn notification(&mut self, change: &Change) -> Option<Payload> {
        match change {
            Change::List(seen, known) => (*seen == self.seen && self.filter.lists.contains(known))
                .then(|| self.tagged(known.name, b"")),
            Change::Resource(server, uri) => {
                let heard = self.heard(server, &Subject::Resource(uri.clone()))?;
                let members = [br#""uri":"#, &encode_string(&heard.shown)[..]].concat();
                Some(self.tagged(method::RESOURCES_UPDATED, &members))
            }
            Change::Task(server, id) => {
                let heard = self.heard(server, &Subject::Task(id.clone()))?;
                let state = heard.following.state()?;
                let told = state.bytes();
                // Several changes may have led to one status.
                if heard.told.as_ref().is_some_and(|last| last.as_ptr() == told.as_ptr()) {
                    return None;
                }
                heard.told = Some(told.clone());
                let mut rewrite = Rewrite::default();
                if heard.shown != *id {
                    rewrite.body.set("taskId", encode_string(&heard.shown));
                }
                rewrite.meta.set(meta_key::SUBSCRIPTION_ID, self.id.to_vec());
                Some(rewrite.apply(&state))
            }
        }
    }

    fn heard(&mut self, server: &ServerKey, subject: &Subject) -> Option<&mut Heard> {
        let is_it =
            |heard: &&mut Heard| heard.key.server == *server && heard.key.subject == *subject;
        self.followed.iter_mut().find(is_it)
    }

    fn acknowledgement(&self) -> Payload {
        let flags = self.filter.lists.iter().filter_map(|known| known.filter);
        let mut honoured: Vec<_> =
            flags.map(|flag| format!(r#""{}":true"#, flag.member())).collect();
        let mut uris = Vec::new();
        let mut ids = Vec::new();
        for heard in &self.followed {
            let shown = String::from_utf8_lossy(&encode_string(&heard.shown)).into_owned();
            match &heard.key.subject {
                Subject::Resource(_) => uris.push(shown),
                Subject::Task(_) => ids.push(shown),
            }
        }
        for (name, names) in [(RESOURCES_FILTER, uris), (TASKS_FILTER, ids)] {
            if !names.is_empty() {
                honoured.push(format!(r#""{name}":[{}]"#, names.join(",")));
            }
        }
        let members = format!(r#""notifications":{{{}}}"#, honoured.join(","));
        self.tagged(method::SUBSCRIPTIONS_ACKNOWLEDGED, members.as_bytes())
    }

    /// A notification with the id of this subscription.
    fn tagged(&self, name: &str, members: &[u8]) -> Payload {
        let mut params = b"{".to_vec();
        params.extend_from_slice(members);
        if !members.is_empty() {
            params.push(b',');
        }
        params
            .extend_from_slice(format!(r#""_meta":{{"{}":"#, meta_key::SUBSCRIPTION_ID).as_bytes());
        params.extend_from_slice(&self.id);
        params.extend_from_slice(b"}}");
        rpc::notification(name, Some(&params))
    }

    /// The answer that ends the stream gracefully: a normal result.
    fn end(&self) -> Answer {
        let body =
            format!(r#"{{"resultType":"complete","_meta":{{"{}":"#, meta_key::SUBSCRIPTION_ID);
        let body = [body.as_bytes(), &self.id, b"}}"].concat();
        let payload = rpc::result_response(Raw::new(&self.id), &body.into());
        Answer::new(payload, 200)
    }
}

/// Number of single resources that one listener may follow, and of tasks.
const FOLLOWED_MAX: usize = 1000;
