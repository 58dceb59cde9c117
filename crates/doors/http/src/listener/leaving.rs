//! The time before a shutdown in which no client loses a request: the listener accepts no
//! connection any more, and each open one ends with its next answer.
//!
//! A client may send a request while its idle connection is closed. So the listener tells clients
//! to open another connection, which waits for the next process at the same socket.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::timeout;
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TrackedFuture},
};

/// The leave of a listener's clients. Clones are of the same listener.
#[derive(Debug, Clone, Default)]
pub struct Leaving {
    /// Read for each request, so it is no token: that would have a lock.
    has_begun: Arc<AtomicBool>,
    begun: CancellationToken,
    connections: TaskTracker,
}

impl Leaving {
    /// Ends the acceptance of connections, and waits until the open ones have ended, for at most
    /// this time. Idle connections and streams may be left.
    pub async fn begin(&self, most: Duration) {
        self.has_begun.store(true, Ordering::Relaxed);
        self.begun.cancel();
        self.connections.close();
        if timeout(most, self.connections.wait()).await.is_err() {
            let count = self.connections.len();
            tracing::debug!(count, "connections are open still; they are closed");
        }
    }

    /// True if answers have to end their connections.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Waits for the end of the acceptance of connections.
    pub(super) async fn begun(&self) {
        self.begun.cancelled().await;
    }

    /// The future of a connection, which counts as open from now on until it ends.
    pub(super) fn track<F: Future>(&self, connection: F) -> TrackedFuture<F> {
        self.connections.track_future(connection)
    }
}
