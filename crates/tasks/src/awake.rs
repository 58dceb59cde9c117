//! Tasks that run keep their server from being stopped as idle, also if nobody follows them.

use std::{sync::Arc, time::Duration};

use narthex_model::RunId;
use narthex_upstream::{KeptAwake, Link};
use narthex_wire::Raw;
use tokio::time::Instant;

/// How long after the last word of it a task keeps its server awake: not for ever, where the server
/// tells of no end and nobody asks.
const AWAKE_MAX: Duration = Duration::from_secs(60 * 60);

/// A task that runs.
#[derive(Debug)]
pub(crate) struct Awake {
    /// Whose it is.
    pub(crate) run: RunId,
    link: KeptAwake,
    /// When the server may forget it; `None` if it never does.
    expires: Option<Instant>,
    until: Instant,
}

impl Awake {
    /// From the words with which a server on this link started it.
    pub(crate) fn new(run: RunId, task: Raw<'_>, link: &Arc<Link>) -> Self {
        let now = Instant::now();
        // Each revision has a name of its own for it; both count milliseconds.
        let ttl = ["ttlMs", "ttl"].into_iter().find_map(|name| task.get(name)?.as_u64());
        let expires = ttl.and_then(|ttl| now.checked_add(Duration::from_millis(ttl)));
        let mut awake = Self { run, link: link.keep_awake(), expires, until: now };
        awake.renew();
        awake
    }

    /// It still runs.
    pub(crate) fn renew(&mut self) {
        let most = Instant::now() + AWAKE_MAX;
        self.until = self.expires.map_or(most, |expires| expires.min(most));
    }

    /// Whether it keeps nobody awake any more.
    pub(crate) fn is_over(&self) -> bool {
        self.until <= Instant::now() || self.link.closed().is_cancelled()
    }
}

/// Whether a task in this state will not change any more.
#[must_use]
pub fn has_ended(status: Option<Raw<'_>>) -> bool {
    let status = status.and_then(Raw::as_str);
    matches!(status.as_deref(), Some("completed" | "failed" | "cancelled"))
}
