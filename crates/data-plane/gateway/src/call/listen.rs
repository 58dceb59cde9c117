//! `subscriptions/listen` where the gateway answers itself.

use std::sync::Arc;

use bytes::Bytes;
use narthex_model::{Alias, CallErrorKind};
use narthex_policy::{Item, Request};
use narthex_wire::{Message, Raw, notification::Filter as Member};
use tokio::task::JoinSet;

use crate::{
    Answering, Caller, Place,
    call::route::{declares_tasks, own_tasks::know_origin},
    links::LinkKind,
    names::own_alias,
    refusal::Refusal,
    runs::run::Held,
    shared::Shared,
    standing::Standing,
    subscriptions::{
        FollowKey, Following, Listening, Seen, Subject,
        listening::{Filter, Heard},
    },
    view::Handling,
};

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
        // The listener subscribes before any subject is followed, so that no change is missed.
        let held = Held::of(&caller.run);
        let changes = self.hub.changes.subscribe();
        let (followed, standing) = self.follow_all(caller, &request, &filter).await;
        Ok(Answering::listening(Listening {
            stopping: self.stopping.clone(),
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
            know_origin(&self.tasks, caller, &mut wanted);
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
