//! The end of a connection: open calls finish on it, then its processes and sessions end.

use std::{sync::Arc, time::Duration};

use narthex_upstream::{Ended, Link};
use tokio::{task::JoinSet, time::timeout};

use super::Connection;
use crate::{ServerEvent, registry::Shared};

/// The longest that any call can take (E86): a caller that holds a link for longer does so by
/// mistake.
const DRAIN_MAX: Duration = Duration::from_secs(600);

impl Connection {
    /// Resolves when the connection is to end, at once or after its open calls.
    pub(crate) async fn ending(&self) {
        tokio::select! {
            () = self.retired.cancelled() => {}
            () = self.cut.cancelled() => {}
        }
    }

    /// Ends the link and all further ones side by side, each after its own open calls.
    pub(super) async fn end(self: &Arc<Self>, shared: &Arc<Shared>, link: Option<Arc<Link>>) {
        let mut ending = JoinSet::new();
        for link in link.into_iter().chain(self.further()) {
            let connection = self.clone();
            ending.spawn(async move { connection.end_link(&link).await });
        }
        let mut how = Ended::Gracefully;
        while let Some(ended) = ending.join_next().await {
            if matches!(ended, Ok(Ended::Killed)) {
                how = Ended::Killed;
            }
        }
        if how == Ended::Killed {
            shared.event(ServerEvent::Killed { alias: self.alias().clone() });
        }
        self.ended.send_replace(Some(how));
    }

    pub(super) async fn end_link(&self, link: &Arc<Link>) -> Ended {
        let draining = timeout(DRAIN_MAX, link.drained());
        tokio::select! {
            biased;
            () = self.cut.cancelled() => if let Some(reason) = self.off.get() {
                link.cut(reason);
            },
            drained = draining => {
                if drained.is_err() {
                    tracing::warn!(
                        server.name = link.name(),
                        "ended, although calls still used it"
                    );
                }
            }
        }
        link.stop().await
    }
}
