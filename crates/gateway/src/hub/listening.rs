//! `subscriptions/listen` where the gateway answers itself.

use std::sync::Arc;

use bytes::Bytes;
use narthex_model::Alias;
use narthex_wire::{Message, Payload, Raw, json::encode_string, meta_key, method, rpc};
use tokio::sync::broadcast;

use super::{Change, FollowKey, LISTS};
use crate::{
    Answer, Answering, Caller, Step,
    gateway::Shared,
    links::LinkKind,
    method::{Handling, ListKind},
    pipeline::own_alias,
    refusal::Refusal,
};

/// How many single resources one listener may follow.
const RESOURCES_MAX: usize = 1000;

impl Shared {
    /// `subscriptions/listen` of a modern client.
    pub(crate) async fn listen(
        self: &Arc<Self>,
        caller: &Caller,
        request: Message,
    ) -> Result<Answering, Refusal> {
        if let Some(alias) = own_alias(caller) {
            let row = self.settled(&caller.run, alias).await?;
            if row.link.as_ref().is_some_and(|link| link.facts().revision.is_modern()) {
                return self.forward(caller, Handling::Listen, request).await;
            }
        }
        let filter = Filter::read(&request)?;
        let mut resources = Vec::new();
        let view = self.view(caller).await;
        for uri in filter.resources.iter().take(RESOURCES_MAX) {
            let route = match own_alias(caller) {
                Some(alias) => Some((alias.clone(), uri.clone())),
                None => view.resource(uri),
            };
            let Some((alias, original)) = route else { continue };
            let Ok(row) = self.settled(&caller.run, &alias).await else { continue };
            let Some(link) = row.link.clone() else { continue };
            let key = FollowKey { alias, uri: original, kind: LinkKind::Shared };
            let can_follow =
                link.facts().capabilities.subscribe || link.facts().revision.is_modern();
            if can_follow && self.follow(&key, link).await.is_ok() {
                resources.push((uri.clone(), key));
            }
        }
        Ok(Answering::listening(Listening {
            shared: self.clone(),
            id: Bytes::copy_from_slice(request.id().map_or(b"null", Raw::as_bytes)),
            alias: own_alias(caller).cloned(),
            changes: self.hub.changes.subscribe(),
            filter,
            resources,
            is_acknowledged: false,
        }))
    }
}

/// What a listener wants to know.
#[derive(Debug)]
struct Filter {
    lists: Vec<ListKind>,
    resources: Vec<Arc<str>>,
}

impl Filter {
    fn read(request: &Message) -> Result<Self, Refusal> {
        let Some(wanted) = request.get("notifications").filter(|raw| raw.is_object()) else {
            return Err(Refusal::invalid("`params.notifications` must be an object"));
        };
        let wants = |name| wanted.get(name).and_then(Raw::as_bool).unwrap_or_default();
        let mut lists = Vec::new();
        if wants("toolsListChanged") {
            lists.push(ListKind::Tools);
        }
        if wants("promptsListChanged") {
            lists.push(ListKind::Prompts);
        }
        if wants("resourcesListChanged") {
            lists.extend([ListKind::Resources, ListKind::Templates]);
        }
        let resources = wanted.get("resourceSubscriptions").map(Raw::items).unwrap_or_default();
        let resources = resources.into_iter().filter_map(|uri| Some(uri.as_str()?.as_ref().into()));
        Ok(Self { lists, resources: resources.collect() })
    }
}

/// An open `subscriptions/listen` that the gateway answers itself.
#[derive(Debug)]
pub(crate) struct Listening {
    shared: Arc<Shared>,
    id: Bytes,
    alias: Option<Alias>,
    changes: broadcast::Receiver<Change>,
    filter: Filter,
    /// The caller's URI, and what is followed for it.
    resources: Vec<(Arc<str>, FollowKey)>,
    is_acknowledged: bool,
}

impl Listening {
    pub(crate) async fn next(&mut self) -> Option<Step> {
        if !self.is_acknowledged {
            self.is_acknowledged = true;
            return Some(Step::Message(self.acknowledgement()));
        }
        loop {
            let change = tokio::select! {
                biased;
                () = self.shared.stopping.cancelled() => return Some(Step::Answer(self.end())),
                change = self.changes.recv() => change,
            };
            match change {
                Ok(change) => {
                    if let Some(payload) = self.notification(&change) {
                        return Some(Step::Message(payload));
                    }
                }
                // Missed changes: any list may differ.
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    if let Some(kind) = self.filter.lists.first() {
                        return Some(Step::Message(self.list_changed(*kind)));
                    }
                }
                Err(broadcast::error::RecvError::Closed) => return Some(Step::Answer(self.end())),
            }
        }
    }

    fn notification(&self, change: &Change) -> Option<Payload> {
        match change {
            Change::List(alias, kind) => (*alias == self.alias && self.filter.lists.contains(kind))
                .then(|| self.list_changed(*kind)),
            Change::Resource(alias, uri) => {
                let is_it = |key: &FollowKey| key.alias == *alias && key.uri == *uri;
                let (shown, _) = self.resources.iter().find(|(_, key)| is_it(key))?;
                let members = [br#""uri":"#, &encode_string(shown)[..]].concat();
                Some(self.tagged(method::RESOURCES_UPDATED, &members))
            }
        }
    }

    fn list_changed(&self, kind: ListKind) -> Payload {
        let found = LISTS.iter().find(|(other, _)| *other == kind);
        self.tagged(found.map_or(method::TOOLS_LIST_CHANGED, |(_, name)| name), b"")
    }

    fn acknowledgement(&self) -> Payload {
        let has = |kind| self.filter.lists.contains(&kind);
        let mut honoured = Vec::new();
        for (kind, name) in [
            (ListKind::Tools, "toolsListChanged"),
            (ListKind::Prompts, "promptsListChanged"),
            (ListKind::Resources, "resourcesListChanged"),
        ] {
            if has(kind) {
                honoured.push(format!(r#""{name}":true"#));
            }
        }
        if !self.resources.is_empty() {
            let uris = self.resources.iter().map(|(uri, _)| encode_string(uri));
            let uris = uris.collect::<Vec<_>>().join(&b","[..]);
            let uris = String::from_utf8_lossy(&uris).into_owned();
            honoured.push(format!(r#""resourceSubscriptions":[{uris}]"#));
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

    /// The graceful end: a normal result.
    fn end(&self) -> Answer {
        let body =
            format!(r#"{{"resultType":"complete","_meta":{{"{}":"#, meta_key::SUBSCRIPTION_ID);
        let body = [body.as_bytes(), &self.id, b"}}"].concat();
        Answer { payload: rpc::result_response(Raw::new(&self.id), &body.into()), status: 200 }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let resources = std::mem::take(&mut self.resources);
        if !resources.is_empty() {
            let shared = self.shared.clone();
            self.shared.spawn(async move {
                for (_, key) in resources {
                    shared.release(&key).await;
                }
            });
        }
    }
}
