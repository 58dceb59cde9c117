//! The parts that all calls share.

use std::sync::{Arc, Mutex, OnceLock, Weak};

use arc_swap::ArcSwapOption;
use narthex_audit::Audit;
use narthex_registry::Registry;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    GatewayOptions, GrantLedger, Places, RunTable, Session,
    arrivals::Arrivals,
    built_in::BuiltIn,
    call::parked::ParkedCalls,
    links::{LinkPool, stop_all},
    lists::views::Kept,
    metrics::Metrics,
    runs::Source,
    seal::Sealer,
    session::table::SessionTable,
    subscriptions::Hub,
    tasks::TaskRoutes,
    view::View,
};

/// The parts of the data plane. Each part has a type of its own.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) registry: Registry,
    pub(crate) runs: RunTable,
    pub(crate) run_source: Source,
    pub(crate) ledger: OnceLock<Arc<dyn GrantLedger>>,
    pub(crate) built_in: OnceLock<BuiltIn>,
    pub(crate) options: GatewayOptions,
    pub(crate) metrics: Metrics,
    pub(crate) audit: Audit,
    pub(crate) sessions: SessionTable,
    /// The clients that described themselves last.
    pub(crate) arrivals: Arrivals,
    /// Bytes of long bodies of requests.
    pub(crate) bodies: Places,
    /// Resources and tasks that are followed, and streams of changes.
    pub(crate) followed: Places,
    /// Calls of modern clients that wait for answers to questions of legacy servers.
    pub(crate) parked: ParkedCalls,
    pub(crate) parked_places: Places,
    pub(crate) sealer: Arc<Sealer>,
    pub(crate) tasks: Arc<TaskRoutes>,
    pub(crate) hub: Hub,
    pub(crate) pool: LinkPool,
    pub(crate) live_view: ArcSwapOption<View>,
    pub(crate) kept_views: Mutex<Kept>,
    /// The gateway itself, for tasks that begin in a method which has only `&self`.
    pub(crate) this: Weak<Self>,
    /// Ends streams that have no end of their own; open calls continue.
    pub(crate) stopping: CancellationToken,
    /// Ends all tasks, streams and calls.
    pub(crate) shutdown: CancellationToken,
    /// Tracks open calls, each until its end.
    pub(crate) calls: TaskTracker,
    pub(crate) tracker: TaskTracker,
}

impl Shared {
    /// Runs a task that outlives a door's request; drain waits for it.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(task);
    }

    /// As [`Self::spawn`], for a task whose end the caller may wait for.
    pub(crate) fn spawn_awaited(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        self.tracker.spawn(task)
    }

    pub(crate) async fn end_session(&self, session: &Arc<Session>) {
        self.sessions.remove(&session.id);
        session.close();
        session.end_subscriptions();
        stop_all(session.take_own_links()).await;
    }

    /// Ends all sessions side by side.
    pub(crate) async fn end_sessions(self: &Arc<Self>) {
        let sessions = self.sessions.all();
        sessions.iter().for_each(|session| session.close());
        let mut ending = JoinSet::new();
        for session in sessions {
            let shared = self.clone();
            ending.spawn(async move { shared.end_session(&session).await });
        }
        while ending.join_next().await.is_some() {}
    }
}
