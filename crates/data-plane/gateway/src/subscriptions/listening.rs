//! `subscriptions/listen` where the gateway answers itself.

use std::sync::Arc;

use bytes::Bytes;
use narthex_model::{Alias, CallErrorKind};
use narthex_policy::{Item, Request};
use narthex_registry::ServerKey;
use narthex_wire::{
    Message, Notification, Payload, Raw, Rewrite,
    json::encode_string,
    meta_key, method,
    notification::{Filter as Member, RESOURCES_FILTER, TASKS_FILTER},
    rpc,
};
use tokio::{sync::broadcast, task::JoinSet};

use super::{Change, FollowKey, Following, Seen, Subject};
use crate::view::Handling;
use crate::{
    Answer, Answering, Caller, Place, RunView, Step,
    call::{
        authorize::{Over, Standing},
        identify::own_alias,
        refusal::Refusal,
        route::declares_tasks,
    },
    gateway::Shared,
    links::LinkKind,
    runs::run::Held,
};

/// Number of single resources that one listener may follow, and of tasks.
const FOLLOWED_MAX: usize = 1000;

impl Shared {
    /// `subscriptions/listen` of a modern client.
    pub(crate) async fn listen(
        self: &Arc<Self>,
        caller: &Caller,
        request: Message,
    ) -> Result<Answering, Refusal> {
        let place = self.place_to_listen(caller, &request)?;
        let is_server = |alias: &&Alias| !caller.run.is_built_in(alias);
        if let Some(alias) = own_alias(caller).filter(is_server) {
            let row = self.settled(&caller.run, alias).await?;
            let is_modern = row.facts.as_ref().is_some_and(|facts| facts.revision.is_modern());
            // A pinned server has more changes than the server itself knows of.
            if is_modern && !row.is_pinned() {
                let answered = self.call_server(caller, Handling::Listen, request).await;
                return Ok(answered?.with_place(place));
            }
        }
        let filter = Filter::read(&request)?;
        if !filter.tasks.is_empty() {
            declares_tasks(&request)?;
        }
        // Before any subject is followed, so that no change is missed.
        let held = Held::of(&caller.run);
        let changes = self.hub.changes.subscribe();
        let (followed, standing) = self.follow_all(caller, &request, &filter).await;
        Ok(Answering::listening(Listening {
            shared: self.clone(),
            id: Bytes::copy_from_slice(request.id().map_or(b"null", Raw::as_bytes)),
            run: caller.run.clone(),
            seen: Seen::by(&caller.run, &caller.endpoint),
            changes,
            filter,
            followed,
            is_acknowledged: false,
            over: self.over(caller, standing, &caller.run.ended),
            _held: held,
        })
        .with_place(place))
    }

    /// A place for a stream of changes, and for each single resource or task that it shall report.
    fn place_to_listen(&self, caller: &Caller, request: &Message) -> Result<Place, Refusal> {
        let wanted = request.get("notifications");
        // Names beyond the number of possible places are not counted.
        let most = self.followed.of_run();
        let named = |member: &str| {
            let names = wanted.and_then(|wanted| wanted.get(member));
            names.map_or(Some(0), |names| names.count_up_to(most)).unwrap_or(most)
        };
        let single: usize = Member::naming().map(named).sum();
        self.place_to_follow(caller, 1 + single)
    }

    /// Takes places for `amount` followed subjects.
    pub(super) fn place_to_follow(&self, caller: &Caller, amount: usize) -> Result<Place, Refusal> {
        self.followed.take(&caller.run, amount).map_err(|full| {
            let full = full.told("change streams and subscribed objects");
            let text = format!("{full}; close some and try again");
            Refusal::call(CallErrorKind::LimitExceeded, text)
        })
    }

    /// Follows the subjects that a listener names, as far as possible, and returns their
    /// permission. No server waits for another.
    async fn follow_all(
        self: &Arc<Self>,
        caller: &Caller,
        request: &Message,
        filter: &Filter,
    ) -> (Vec<Heard>, Standing) {
        let view = self.view(caller).await;
        let resource = |uri: &Arc<str>| {
            let routed = match own_alias(caller) {
                Some(alias) => Some((alias.clone(), uri.clone())),
                None => view.resource(uri),
            };
            routed.map(|(alias, original)| (uri.clone(), alias, Item::Resource(original)))
        };
        // A task of another caller looks like a task that never existed.
        let task = |shown: &Arc<str>| {
            let id = caller.run.id;
            let routed = match own_alias(caller) {
                Some(alias) => self
                    .tasks
                    .owns(id, &caller.run.key(alias), shown)
                    .then(|| (alias.clone(), shown.clone())),
                None => self.tasks.route(id, shown),
            };
            routed.map(|(alias, id)| (shown.clone(), alias, Item::Task(id)))
        };
        let resources = filter.resources.iter().filter_map(resource);
        let tasks = filter.tasks.iter().filter_map(task);
        let mut following = JoinSet::new();
        for (index, (shown, alias, item)) in resources.chain(tasks).enumerate() {
            let mut wanted = Request::new(alias, request.clone(), item);
            self.know_origin(caller, &mut wanted);
            let (shared, caller) = (self.clone(), caller.clone());
            following.spawn(async move {
                let (key, following, standing) = shared.follow_for(&caller, wanted).await?;
                Some((index, Heard { shown, key, following, told: None }, standing))
            });
        }
        let mut heard = Vec::new();
        while let Some(joined) = following.join_next().await {
            heard.extend(joined.ok().flatten());
        }
        heard.sort_by_key(|(index, ..)| *index);
        let mut all = Standing::default();
        let mut heard_with = |(_, heard, standing)| {
            all.join(standing);
            heard
        };
        (heard.into_iter().map(&mut heard_with).collect(), all)
    }
}

impl Shared {
    /// Follows one resource or task for a listener; `None` if it cannot be followed.
    async fn follow_for(
        self: &Arc<Self>,
        caller: &Caller,
        wanted: Request,
    ) -> Option<(FollowKey, Following, Standing)> {
        let row = self.settled(&caller.run, &wanted.alias).await.ok()?;
        if matches!(wanted.item, Item::Resource(_)) && row.inventory.withholds(wanted.item.name()) {
            return None;
        }
        let link = self.enter(&row).await?;
        let facts = link.facts();
        let (subject, has_it) = match &wanted.item {
            Item::Task(id) => (Subject::Task(id.clone()), false),
            item => (Subject::Resource(item.name().into()), facts.capabilities.subscribe),
        };
        if !has_it && !facts.revision.is_modern() {
            return None;
        }
        let server = caller.run.key(&wanted.alias);
        let key = FollowKey { server, subject, kind: LinkKind::Shared };
        let errand = self.errand(caller, wanted).await.ok()?;
        let following = self.follow(&errand, &key, Arc::clone(&link)).await;
        let standing = errand.standing();
        Some((key, errand.end(following).ok()?, standing))
    }
}

/// A resource or task of which a listener hears.
#[derive(Debug)]
struct Heard {
    /// The caller's URI or id.
    shown: Arc<str>,
    key: FollowKey,
    following: Following,
    /// The last status of a task that was reported.
    told: Option<Bytes>,
}

/// The changes that a listener wants to get.
#[derive(Debug)]
struct Filter {
    lists: Vec<&'static Notification>,
    resources: Vec<Arc<str>>,
    tasks: Vec<Arc<str>>,
}

impl Filter {
    fn read(request: &Message) -> Result<Self, Refusal> {
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
    shared: Arc<Shared>,
    id: Bytes,
    run: Arc<RunView>,
    seen: Seen,
    changes: broadcast::Receiver<Change>,
    filter: Filter,
    followed: Vec<Heard>,
    is_acknowledged: bool,
    /// Ends when the followed subjects are not allowed any more.
    over: Option<Over>,
    _held: Held,
}

impl Listening {
    pub(crate) async fn next(&mut self) -> Option<Step> {
        if !self.is_acknowledged {
            self.is_acknowledged = true;
            return Some(Step::Message(self.acknowledgement()));
        }
        // Ends with the run, or with the permission for the followed subjects.
        let ended = self.over.as_ref().map_or(&self.run.ended, |over| &over.token).clone();
        loop {
            let change = tokio::select! {
                biased;
                () = self.shared.stopping.cancelled() => return Some(Step::Answer(self.end())),
                () = ended.cancelled() => return Some(Step::Answer(self.end())),
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
                // Several changes may have met in one state.
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

    /// The graceful end: a normal result.
    fn end(&self) -> Answer {
        let body =
            format!(r#"{{"resultType":"complete","_meta":{{"{}":"#, meta_key::SUBSCRIPTION_ID);
        let body = [body.as_bytes(), &self.id, b"}}"].concat();
        let payload = rpc::result_response(Raw::new(&self.id), &body.into());
        Answer::new(payload, 200)
    }
}
