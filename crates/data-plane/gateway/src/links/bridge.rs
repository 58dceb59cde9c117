//! Links to servers that speak only legacy, for modern requests whose client can be asked questions
//! (decision 100).
//!
//! A link was opened with the capabilities that the request declares. Over one channel it carries
//! one call at a time, so that a question belongs to that call. Over HTTP the stream of a question
//! identifies its call; a question on the server's own stream belongs to the only open call.

mod turn;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use narthex_registry::ServerKey;
use narthex_upstream::Link;
use narthex_wire::{Answerable, LogLevel, Message, method, rpc};
use tokio::{sync::Notify, time::sleep};

pub(crate) use self::turn::Turn;
pub(super) use self::turn::Turns;
use crate::links::{OwnLink, SentLevel};

/// The most links of one run to one server for one set of capabilities.
pub(super) const LINKS_MAX: usize = 4;
/// The time after which a link that no call uses is closed.
const IDLE: Duration = Duration::from_secs(300);

/// The bridged links of one run.
#[derive(Debug, Default)]
pub(crate) struct Bridges(Mutex<HashMap<GroupKey, Arc<Group>>>);

/// A server, and the questions that its clients can answer.
pub(super) type GroupKey = (ServerKey, Answerable);

/// The links of one run to one server for one set of capabilities.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) links: Mutex<Links>,
    /// Notified when a link was opened, became free, or ended.
    pub(super) changed: Notify,
    /// The server asks on its own stream while several calls are open: from then on, a link carries
    /// one call at a time.
    pub(super) asks_aside: AtomicBool,
}

#[derive(Debug, Default)]
pub(super) struct Links {
    open: Vec<Arc<Bridge>>,
    opening: usize,
}

/// One bridged link.
#[derive(Debug)]
pub(crate) struct Bridge {
    pub(super) own: OwnLink,
    pub(super) turns: Turns,
    /// The lowest level that was sent to the server.
    pub(super) level: Mutex<SentLevel>,
    pub(super) group: Arc<Group>,
}

/// The result of a search for a free link.
pub(super) enum Look {
    Free(Turn),
    /// The caller may open a link, whose place is reserved.
    Room,
    Full,
}

impl Bridges {
    pub(super) fn groups(&self) -> MutexGuard<'_, HashMap<GroupKey, Arc<Group>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn group(&self, key: &GroupKey) -> Arc<Group> {
        self.groups().entry(key.clone()).or_default().clone()
    }

    /// True if a group has the most links that it may have.
    pub(super) fn has_all(&self, key: &GroupKey) -> bool {
        self.groups().get(key).is_some_and(|group| group.links().live() >= LINKS_MAX)
    }

    /// The links to a server, for all sets of capabilities.
    pub(super) fn of(&self, server: &ServerKey) -> Vec<Arc<Bridge>> {
        let groups = self.groups();
        let its = groups.iter().filter(|((of, _), _)| of == server);
        its.flat_map(|(_, group)| group.links().open.clone()).collect()
    }

    /// Forgets a link that has ended, and its group if that was the last one.
    pub(super) fn forget(&self, key: &GroupKey, bridge: &Arc<Bridge>) {
        let mut groups = self.groups();
        let mut links = bridge.group.links();
        links.open.retain(|open| !Arc::ptr_eq(open, bridge));
        let is_last = links.open.is_empty() && links.opening == 0;
        drop(links);
        if is_last && groups.get(key).is_some_and(|group| Arc::ptr_eq(group, &bridge.group)) {
            groups.remove(key);
        }
        drop(groups);
        bridge.group.changed.notify_waiters();
    }
}

impl Group {
    pub(super) fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn look(&self) -> Look {
        let mut links = self.links();
        let asks_aside = self.asks_aside.load(Ordering::Relaxed);
        let is_free = |bridge: &&Arc<Bridge>| {
            let is_alone = asks_aside || bridge.link().is_one_channel();
            !bridge.own.is_over() && (!is_alone || bridge.turns.is_empty())
        };
        if let Some(free) = links.open.iter().find(is_free) {
            return Look::Free(Turn::of(free));
        }
        // Callers open one link at a time: this call may use the link that is being opened.
        if links.opening > 0 || links.live() >= LINKS_MAX {
            return Look::Full;
        }
        links.opening += 1;
        Look::Room
    }

    pub(super) fn opened(&self, bridge: Option<Arc<Bridge>>) {
        let mut links = self.links();
        links.opening = links.opening.saturating_sub(1);
        links.open.extend(bridge);
        drop(links);
        self.changed.notify_waiters();
    }
}

impl Links {
    pub(super) fn live(&self) -> usize {
        self.open.iter().filter(|bridge| !bridge.own.is_over()).count()
    }
}

impl Bridge {
    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.own.link
    }

    pub(crate) fn own(&self) -> &OwnLink {
        &self.own
    }

    /// The level to send on the link so that a call gets messages from `level` on; `None` if the
    /// server has got a level as low before.
    pub(crate) fn lowers(&self, level: LogLevel) -> Option<LogLevel> {
        self.level.lock().unwrap_or_else(PoisonError::into_inner).lower_to(level)
    }

    /// Forgets a level that the link could not set; see [`SentLevel::forget`].
    pub(crate) fn forget_level(&self, level: LogLevel) {
        self.level.lock().unwrap_or_else(PoisonError::into_inner).forget(level);
    }

    /// Brings a log message of the server's own stream to the only open call.
    pub(crate) fn tell(&self, message: &Message) {
        // On a link with one channel, the call gets the message in any case.
        if message.method() == method::MESSAGE && !self.link().is_one_channel() {
            self.turns.give(message);
        }
    }

    /// Brings a question outside of a call's stream to the only open call.
    pub(crate) async fn ask(&self, question: &Message) {
        let open = self.turns.len();
        if open > 1 {
            self.group.asks_aside.store(true, Ordering::Relaxed);
            let why =
                "several calls are open on this connection, and the question names none of them";
            self.link().refuse(question, rpc::code::INTERNAL_ERROR, why).await;
        } else if open == 0 {
            self.link().refuse_undeclared(question).await;
        } else if !self.turns.give(question) {
            let why = "too many requests to this client are open";
            self.link().refuse(question, rpc::code::INTERNAL_ERROR, why).await;
        }
    }

    /// Waits until no call has used the link for long. From then on no call can use it.
    pub(super) async fn idle(&self) {
        loop {
            let since = self.link().idle();
            if since.is_some_and(|since| since >= IDLE) && self.link().retire_unused() {
                return;
            }
            sleep(IDLE - since.unwrap_or_default().min(IDLE - Duration::from_millis(1))).await;
        }
    }
}
