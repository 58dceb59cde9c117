//! A resource or task that callers follow, and the share of each.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use narthex_upstream::{Link, LinkError};
use narthex_wire::Message;
use tokio::sync::watch;

use crate::call::refusal::Refusal;

/// A resource or task that has followers.
#[derive(Debug, Default)]
pub(super) struct Followed {
    /// Number of followers. Rises only under the lock of the hub's table.
    pub(super) count: watch::Sender<usize>,
    /// The server's answer; `None` until it came.
    pub(super) outcome: watch::Sender<Option<Result<(), Refusal>>>,
    /// The status of a followed task; a later status replaces an unread one.
    pub(super) state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) last: Option<Message>,
    /// A task that has ended: a lost subscription needs not be made again.
    pub(super) has_ended: bool,
}

/// One follower's share of a followed subject: it follows until this is dropped.
#[derive(Debug)]
pub(crate) struct Following(pub(super) Arc<Followed>);

impl Following {
    /// The last reported status of the task that is followed.
    pub(super) fn state(&self) -> Option<Message> {
        self.0.state().last.clone()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// The reason why a subject is not followed on a link any more.
pub(super) enum End {
    /// No follower is left.
    Unwanted,
    /// The server refused, or the link was lost.
    Lost(Refusal),
}

/// The link ended.
pub(super) fn lost(link: &Link) -> End {
    End::Lost(Refusal::failed(&LinkError::Closed("it was lost".into()), link.name()))
}

impl Followed {
    pub(super) fn is_wanted(&self) -> bool {
        *self.count.borrow() > 0
    }

    /// Waits until no follower is left.
    pub(super) async fn unwanted(&self) {
        let mut count = self.count.subscribe();
        // This cannot fail: `self` holds the sender.
        drop(count.wait_for(|count| *count == 0).await);
    }

    /// Waits until no follower is left, or the link ends.
    pub(super) async fn unwanted_on(&self, link: &Link) -> End {
        tokio::select! {
            biased;
            () = self.unwanted() => End::Unwanted,
            () = link.closed().cancelled() => lost(link),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state().has_ended
    }

    pub(super) fn is_followed(&self) -> bool {
        matches!(*self.outcome.borrow(), Some(Ok(())))
    }
}
