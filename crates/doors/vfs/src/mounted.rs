//! One mount.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio_util::sync::CancellationToken;

use crate::{Device, MountName};

/// A server at its path.
#[derive(Debug)]
pub(crate) struct Mount {
    pub(crate) name: MountName,
    pub(crate) device: Arc<dyn Device>,
    /// Cancelled once it is unmounted.
    pub(crate) gone: CancellationToken,
    /// Number of servers that were behind the mount before.
    turn: AtomicU64,
}

impl Mount {
    pub(crate) fn new(name: MountName, device: Arc<dyn Device>) -> Self {
        Self { name, device, gone: CancellationToken::new(), turn: AtomicU64::new(0) }
    }

    pub(crate) fn turn(&self) -> u64 {
        self.turn.load(Ordering::Acquire)
    }

    /// Another server is behind it from here on.
    pub(crate) fn next_turn(&self) {
        self.turn.fetch_add(1, Ordering::AcqRel);
    }
}
