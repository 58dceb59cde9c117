//! The hub of changes: the followers of each resource or task, and the level that each link was
//! sent.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use narthex_registry::ServerKey;
use narthex_upstream::Link;
use narthex_wire::{
    LogLevel, Message, Notification, Raw,
    json::encode_string,
    notification::{RESOURCES_FILTER, TASKS_FILTER},
};
use tokio::sync::broadcast;

use super::{
    ears::Ears,
    followed::{Followed, Following, State},
};
use crate::{
    Endpoint, RunId, RunView,
    links::{LinkKind, SentLevel},
    refusal::Refusal,
    tasks::has_ended,
};

/// Number of changes that wait for a slow listener before it misses some.
const CHANGES: usize = 1024;

/// A change that listeners may want to know.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// Lists of an endpoint differ: those of the notification.
    List(Seen, &'static Notification),
    /// A resource has changed, by its server's report.
    Resource(ServerKey, Arc<str>),
    /// The status of a task has changed, by a modern server's report. The text of the report may be
    /// long, so the hub stores it once for all listeners.
    Task(ServerKey, Arc<str>),
}

/// The endpoint at which callers see lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// At the aggregated endpoint, by every run that sees exactly the shared servers.
    Everything,
    /// At the aggregated endpoint of one run.
    Run(RunId),
    /// At the endpoint of one server.
    Server(ServerKey),
}

impl Seen {
    /// The endpoint of a caller's lists.
    pub(crate) fn by(run: &RunView, endpoint: &Endpoint) -> Self {
        match endpoint {
            Endpoint::Transparent(alias) => Self::Server(run.key(alias)),
            Endpoint::Aggregated if run.is_plain() => Self::Everything,
            Endpoint::Aggregated => Self::Run(run.id),
        }
    }
}

/// The followers of resources and tasks, per server.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) changes: broadcast::Sender<Change>,
    followed: Mutex<HashMap<FollowKey, Arc<Followed>>>,
    levels: Mutex<HashMap<(ServerKey, LinkKind), Told>>,
    pub(crate) ears: Arc<Ears>,
}

/// The resource or task that is followed over a link which several callers share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FollowKey {
    pub(crate) server: ServerKey,
    pub(crate) subject: Subject,
    pub(crate) kind: LinkKind,
}

/// A changing object of a server, under the server's own name for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    /// A resource, by URI.
    Resource(Arc<str>),
    /// A modern task, by id.
    Task(Arc<str>),
}

/// The lowest level that any caller asked a server for, and the link on which it was sent.
#[derive(Debug, Default)]
struct Told {
    level: SentLevel,
    link: Weak<Link>,
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self {
            changes: broadcast::Sender::new(CHANGES),
            followed: Mutex::default(),
            levels: Mutex::default(),
            ears: Arc::default(),
        }
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<FollowKey, Arc<Followed>>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The level to send on a link that several share when a caller asks for one; `None` if a level
    /// as low was sent before.
    pub(crate) fn lowers(
        &self,
        link: &Arc<Link>,
        server: &ServerKey,
        kind: LinkKind,
        level: LogLevel,
    ) -> Option<LogLevel> {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        let told = levels.entry((server.clone(), kind)).or_default();
        told.follow(link);
        told.level.lower_to(level)
    }

    /// Forgets a level that a link could not set; see [`SentLevel::forget`].
    pub(crate) fn forget_level(
        &self,
        link: &Arc<Link>,
        server: &ServerKey,
        kind: LinkKind,
        level: LogLevel,
    ) {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(told) = levels.get_mut(&(server.clone(), kind))
            && told.is_on(link)
        {
            told.level.forget(level);
        }
    }

    /// True if a server has got another link than before. A further call for the same link gives
    /// `false`.
    pub(crate) fn is_new(&self, link: &Arc<Link>, server: &ServerKey, kind: LinkKind) -> bool {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        let told = levels.entry((server.clone(), kind)).or_default();
        told.follow(link)
    }

    /// The servers whose links have got a level.
    pub(crate) fn told(&self) -> Vec<ServerKey> {
        let levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        levels.keys().map(|(server, _)| server.clone()).collect()
    }

    /// Forgets the levels of the links of a server that is gone.
    pub(crate) fn forget_levels(&self, server: &ServerKey) {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        levels.retain(|(told, _), _| told != server);
    }

    pub(crate) fn announce(&self, change: Change) {
        if self.changes.send(change).is_err() {
            tracing::trace!("no stream receives changes");
        }
    }
}

impl Told {
    /// Begins anew if the server has got another link; true in this case.
    fn follow(&mut self, link: &Arc<Link>) -> bool {
        let is_new = !self.is_on(link);
        if is_new {
            *self = Self { level: SentLevel::default(), link: Arc::downgrade(link) };
        }
        is_new
    }

    fn is_on(&self, link: &Arc<Link>) -> bool {
        std::ptr::eq(self.link.as_ptr(), Arc::as_ptr(link))
    }
}

impl Hub {
    /// Counts one more follower. The second value is true for the first follower.
    pub(crate) fn join(&self, key: &FollowKey) -> (Following, bool) {
        let mut table = self.followed();
        let is_first = !table.contains_key(key);
        let followed = table.entry(key.clone()).or_default().clone();
        followed.count.send_modify(|count| *count += 1);
        (Following(followed), is_first)
    }

    /// Forgets a subject without followers; `false` if there are some.
    pub(crate) fn forget(&self, key: &FollowKey, followed: &Followed) -> bool {
        let mut table = self.followed();
        let is_over = !followed.is_wanted();
        if is_over {
            table.remove(key);
        }
        is_over
    }

    /// Stores the status of a task; `false` if it has no followers.
    pub(crate) fn keep_state(&self, key: &FollowKey, state: &Message, has_ended: bool) -> bool {
        let followed = self.followed().get(key).cloned();
        if let Some(followed) = &followed {
            *followed.state() = State { last: Some(state.clone()), has_ended };
        }
        followed.is_some()
    }

    /// Makes later followers wait for a new outcome, unless there still is a follower.
    pub(crate) fn leave(&self, followed: &Followed) -> bool {
        let _table = self.followed();
        let is_over = !followed.is_wanted();
        if is_over {
            followed.outcome.send_replace(None);
        }
        is_over
    }

    /// Reports to all waiting followers that a subject cannot be followed.
    pub(crate) fn fail(&self, key: &FollowKey, followed: &Followed, refusal: Refusal) {
        let mut table = self.followed();
        // Another follower may have started anew under the same key.
        if table.get(key).is_some_and(|entry| std::ptr::eq(Arc::as_ptr(entry), followed)) {
            table.remove(key);
        }
        followed.outcome.send_replace(Some(Err(refusal)));
    }

    /// Delivers a modern server's report on a task to its listeners.
    pub(crate) fn task_changed(&self, server: &ServerKey, state: &Message) {
        let Some(id) = state.get("taskId").and_then(Raw::as_str) else { return };
        let id: Arc<str> = id.as_ref().into();
        let subject = Subject::Task(id.clone());
        let key = FollowKey { server: server.clone(), subject, kind: LinkKind::Shared };
        if self.keep_state(&key, state, has_ended(state.get("status"))) {
            self.announce(Change::Task(server.clone(), id));
        }
    }
}

impl Subject {
    /// The subjects that a modern server shall report, as members of `params`.
    pub(crate) fn filter(&self) -> Vec<u8> {
        let (member, name) = match self {
            Self::Resource(uri) => (RESOURCES_FILTER, uri),
            Self::Task(id) => (TASKS_FILTER, id),
        };
        let head = format!(r#""notifications":{{"{member}":["#);
        [head.as_bytes(), &encode_string(name), b"]}"].concat()
    }
}
