//! A resource or task that callers follow, and the share of each follower.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use narthex_upstream::{Link, LinkError};
use narthex_wire::Message;
use tokio::sync::watch;

use crate::refusal::Refusal;

/// A resource or task that has followers.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// Number of followers. Rises only under the lock of the hub's table.
    pub(crate) count: watch::Sender<usize>,
    /// The server's answer; `None` until it came.
    pub(crate) outcome: watch::Sender<Option<Result<(), Refusal>>>,
    /// The status of a followed task; a later status replaces an unread one.
    pub(crate) state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) last: Option<Message>,
    /// True for a task that has ended: a lost subscription needs not be made again.
    pub(crate) has_ended: bool,
}

/// One follower's share of a followed subject: the follower follows until this value is dropped.
#[derive(Debug)]
pub(crate) struct Following(pub(crate) Arc<Followed>);

impl Following {
    /// The last reported status of the task that is followed.
    pub(crate) fn state(&self) -> Option<Message> {
        self.0.state().last.clone()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// The reason why a subject is not followed on a link any more.
pub(crate) enum End {
    /// No follower is left.
    Unwanted,
    /// The server refused, or the link was lost.
    Lost(Refusal),
}

/// The link ended.
pub(crate) fn lost(link: &Link) -> End {
    End::Lost(Refusal::failed(&LinkError::Closed("it was lost".into()), link.name()))
}

impl Followed {
    pub(crate) fn is_wanted(&self) -> bool {
        *self.count.borrow() > 0
    }

    /// Waits until no follower is left.
    pub(crate) async fn unwanted(&self) {
        let mut count = self.count.subscribe();
        // This cannot fail: `self` holds the sender.
        drop(count.wait_for(|count| *count == 0).await);
    }

    /// Waits until no follower is left, or the link ends.
    pub(crate) async fn unwanted_on(&self, link: &Link) -> End {
        tokio::select! {
            biased;
            () = self.unwanted() => End::Unwanted,
            () = link.closed().cancelled() => lost(link),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state().has_ended
    }

    pub(crate) fn is_followed(&self) -> bool {
        matches!(*self.outcome.borrow(), Some(Ok(())))
    }
}
