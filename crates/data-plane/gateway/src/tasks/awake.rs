//! Active tasks: each keeps its server from being stopped as idle, also if no client follows it.

use std::{sync::Arc, time::Duration};

use narthex_model::RunId;
use narthex_upstream::{KeptAwake, Link};
use narthex_wire::Raw;
use tokio::time::Instant;

/// Time that a task keeps its server awake after its last report. It is bounded, as the server may
/// never report an end.
const AWAKE_MAX: Duration = Duration::from_secs(60 * 60);

/// An active task.
#[derive(Debug)]
pub(crate) struct Awake {
    /// The run that owns the task.
    pub(crate) run: RunId,
    link: KeptAwake,
    /// The time at which the server may forget the task; `None` if it never does.
    expires: Option<Instant>,
    until: Instant,
}

impl Awake {
    /// Reads the object with which a server on this link started the task.
    pub(crate) fn new(run: RunId, task: Raw<'_>, link: &Arc<Link>) -> Self {
        let now = Instant::now();
        // Each revision has its own name for the lifetime; both count milliseconds.
        let ttl = ["ttlMs", "ttl"].into_iter().find_map(|name| task.get(name)?.as_u64());
        let expires = ttl.and_then(|ttl| now.checked_add(Duration::from_millis(ttl)));
        let mut awake = Self { run, link: link.keep_awake(), expires, until: now };
        awake.renew();
        awake
    }

    /// Renews the time: the task is still active.
    pub(crate) fn renew(&mut self) {
        let most = Instant::now() + AWAKE_MAX;
        self.until = self.expires.map_or(most, |expires| expires.min(most));
    }

    /// True if the task does not keep its server awake any more.
    pub(crate) fn is_over(&self) -> bool {
        self.until <= Instant::now() || self.link.closed().is_cancelled()
    }
}

/// True if a task with this status will not change any more.
#[must_use]
pub(crate) fn has_ended(status: Option<Raw<'_>>) -> bool {
    let status = status.and_then(Raw::as_str);
    matches!(status.as_deref(), Some("completed" | "failed" | "cancelled"))
}
