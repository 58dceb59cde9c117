//! The gateway: the methods that doors call.

use std::{
    collections::HashMap,
    num::NonZeroU64,
    sync::{Arc, Mutex, OnceLock, Weak},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use narthex_audit::Audit;
use narthex_model::QUALIFIED_NAME_MAX;
use narthex_registry::{Registry, ServerKey, ServerRow};
use narthex_traffic::Meters;
use narthex_upstream::Inventory;
use narthex_wire::{Limits, Message, Raw, Revision, headers::HeaderParams, method};
use tokio::{
    sync::OnceCell,
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::metrics::Metrics;
use crate::tasks::TaskRoutes;
use crate::view::{View, exposed};
use crate::{
    Answering, Caller, Endpoint, GrantLedger, Places, RunSource, RunTable, RunView, Session,
    Tracer,
    built_in::{BuiltIn, BuiltInServer},
    call::{parked::ParkedCalls, seal::Sealer},
    links::{OwnLink, STOP_DEADLINE, stop_all},
    lists::views::Kept,
    session::table::SessionTable,
    subscriptions::Hub,
};

/// Options of a gateway.
#[derive(Debug, Clone)]
pub struct GatewayOptions {
    /// Limits of single messages.
    pub limits: Limits,
    /// The name of this process among replicas, which session and event ids contain (D26).
    pub node_id: String,
    /// Longest time of a call if the server's configuration sets none (E44).
    pub call_timeout: Duration,
    /// Longest wait of a call for a server that is still starting.
    pub settle_timeout: Duration,
    /// The most sessions at one time.
    pub sessions_max: usize,
    /// Number of bytes of long bodies of requests that are held at one time. `None`: four of the
    /// longest messages, and no less than 256 MiB.
    pub body_bytes_max: Option<usize>,
    /// Number of resources and tasks that are followed, and streams of changes open, at one time.
    pub followed_max: usize,
    /// Number of questions of servers that may wait for answers of clients at one time.
    pub questions_max: usize,
    /// Largest number of calls of modern clients that wait for answers to questions of legacy
    /// servers.
    pub parked_max: usize,
    /// Longest wait of such a call for its client.
    pub input_timeout: Duration,
    /// Idle time after which a session without any sign of its client ends.
    pub session_idle: Duration,
    /// Idle time after which a run's view and task end.
    pub run_idle: Duration,
    /// Largest number of tokens of one result at aggregated endpoints, if the server's
    /// configuration sets none (R-E20). `None`: no limit.
    pub output_tokens: Option<NonZeroU64>,
    /// True if aggregated endpoints offer the gateway's tools for resources and prompts (E19).
    pub synthetic_tools: bool,
    /// Largest length of a name at aggregated endpoints, 64 to 128 bytes (D1).
    pub name_limit: usize,
    /// The gateway's own description, a JSON object (`name`, `version`).
    pub server_info: Bytes,
    /// Longest time that open calls get to finish when the gateway stops.
    pub drain_timeout: Duration,
    /// Counts calls against limits (O100).
    pub meters: Meters,
    /// Makes spans of calls, if tracing is on.
    pub tracer: Option<Arc<dyn Tracer>>,
    /// Reports the calls of a run to its watchers.
    pub tap: narthex_run_events::Tap,
}

impl Default for GatewayOptions {
    fn default() -> Self {
        let version = env!("CARGO_PKG_VERSION");
        Self {
            limits: Limits::default(),
            node_id: "n0".to_owned(),
            call_timeout: Duration::from_secs(30),
            settle_timeout: Duration::from_secs(30),
            sessions_max: 10_000,
            body_bytes_max: None,
            followed_max: 20_000,
            questions_max: 10_000,
            parked_max: 1_000,
            input_timeout: Duration::from_secs(600),
            session_idle: Duration::from_secs(60 * 60),
            run_idle: Duration::from_secs(60),
            output_tokens: NonZeroU64::new(25_000),
            synthetic_tools: true,
            name_limit: QUALIFIED_NAME_MAX,
            server_info: format!(r#"{{"name":"narthex","version":"{version}"}}"#).into(),
            drain_timeout: Duration::from_secs(10),
            meters: Meters::default(),
            tracer: None,
            tap: narthex_run_events::Tap::default(),
        }
    }
}

/// The least room for long bodies of requests, in bytes.
const BODY_BYTES_MIN: usize = 256 << 20;

/// The room for long bodies: each run may have two of the longest messages.
fn body_bytes(options: &GatewayOptions) -> usize {
    let usual = options.limits.message_bytes.saturating_mul(4).max(BODY_BYTES_MIN);
    // Bodies take it in steps of 1 MiB, so half of it must be whole steps.
    options.body_bytes_max.unwrap_or(usual).next_multiple_of(2 << 20)
}

/// Links that all legacy sessions of one revision share.
type Pool = HashMap<(ServerKey, Revision), Arc<OnceCell<OwnLink>>>;

/// The data plane. All clones are one gateway.
#[derive(Debug, Clone)]
pub struct Gateway {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) registry: Registry,
    pub(crate) runs: RunTable,
    pub(crate) run_source: OnceLock<Arc<dyn RunSource>>,
    pub(crate) ledger: OnceLock<Arc<dyn GrantLedger>>,
    pub(crate) built_in: OnceLock<BuiltIn>,
    pub(crate) options: GatewayOptions,
    pub(crate) metrics: Metrics,
    pub(crate) audit: Audit,
    pub(crate) sessions: SessionTable,
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
    pub(crate) pool: Mutex<Pool>,
    pub(crate) live_view: ArcSwapOption<View>,
    pub(crate) kept_views: Mutex<Kept>,
    /// The gateway itself, for tasks that begin in a method which has only `&self`.
    pub(crate) this: Weak<Self>,
    /// Ends streams that have no end of their own; open calls continue.
    pub(crate) stopping: CancellationToken,
    /// Ends all tasks, streams and calls.
    pub(crate) shutdown: CancellationToken,
    /// Open calls, each as long as it lives.
    pub(crate) calls: TaskTracker,
    tracker: TaskTracker,
}

impl Gateway {
    /// Makes a gateway for the servers of a registry, and starts its tasks.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn new(
        registry: Registry,
        audit: Audit,
        options: GatewayOptions,
    ) -> Result<Self, getrandom::Error> {
        let sealer = Arc::new(Sealer::new(&options.node_id)?);
        let shared = Arc::new_cyclic(|this| Shared {
            sealer,
            sessions: SessionTable::new(options.sessions_max, options.questions_max),
            bodies: Places::new(body_bytes(&options)),
            followed: Places::new(options.followed_max),
            parked: ParkedCalls::default(),
            parked_places: Places::new(options.parked_max),
            registry,
            runs: RunTable::default(),
            run_source: OnceLock::new(),
            ledger: OnceLock::new(),
            built_in: OnceLock::new(),
            options,
            metrics: Metrics::new(&audit),
            audit,
            tasks: Arc::default(),
            hub: Hub::new(),
            pool: Mutex::default(),
            live_view: ArcSwapOption::empty(),
            kept_views: Mutex::default(),
            this: this.clone(),
            stopping: CancellationToken::new(),
            shutdown: CancellationToken::new(),
            calls: TaskTracker::new(),
            tracker: TaskTracker::new(),
        });
        shared.spawn(crate::subscriptions::watch_registry(shared.clone()));
        shared.spawn(crate::subscriptions::spread_notices(shared.clone()));
        shared.spawn(crate::session::table::expire(shared.clone()));
        Ok(Self { shared })
    }

    /// The live runs, by which doors identify callers.
    #[must_use]
    pub fn runs(&self) -> &RunTable {
        &self.shared.runs
    }

    /// Sets the ledger of grants for a single call; without a ledger, such grants permit nothing.
    /// Only the first call counts.
    pub fn set_ledger(&self, ledger: Arc<dyn GrantLedger>) {
        if self.shared.ledger.set(ledger).is_err() {
            tracing::error!("there is a ledger of grants already");
        }
    }

    /// The tools of the built-in server, if there are any.
    #[must_use]
    pub fn built_in_inventory(&self) -> Option<Arc<Inventory>> {
        self.shared.built_in.get().map(|built_in| built_in.inventory().clone())
    }

    /// The built-in server's tools for a run, one list for each of the server's names.
    #[must_use]
    pub fn built_in_of(&self, run: &RunView) -> Vec<Arc<Inventory>> {
        self.shared.built_in_of(run)
    }

    /// The built-in server of a run as rows, one for each of the server's names.
    #[must_use]
    pub fn built_in_rows(&self, run: &RunView) -> Vec<Arc<ServerRow>> {
        self.shared.built_in_rows(run)
    }

    /// The name at the caller's endpoint of the tool that asks for grants; `None` if the run has no
    /// such tool.
    #[must_use]
    pub fn asking_tool(&self, caller: &Caller) -> Option<String> {
        self.shared.asking_tool(caller)
    }

    /// A call of a built-in tool as rules see it: the tool's name, and its arguments. Each is
    /// `None` if rules see it as the caller wrote it.
    #[must_use]
    pub fn built_in_as_ruled(
        &self,
        tool: &str,
        arguments: Raw<'_>,
    ) -> (Option<&'static str>, Option<Vec<u8>>) {
        let Some(built_in) = self.shared.built_in.get() else { return (None, None) };
        match built_in.tools.meant(tool, Some(arguments)) {
            Some((ruled, written)) => {
                let shown = built_in.tools.shown(ruled, Some(Raw::new(&written)));
                (Some(ruled), Some(shown.unwrap_or(written)))
            }
            None => (None, built_in.tools.shown(tool, Some(arguments))),
        }
    }

    /// Gives the built-in server its tools; without this call it has none. Call this before clients
    /// are served.
    pub fn set_built_in_tools(&self, tools: Arc<dyn BuiltInServer>) {
        if self.shared.built_in.set(BuiltIn::new(&self.shared, tools)).is_err() {
            tracing::error!("the built-in server has its tools already");
        }
        // The view that was built before the tools were known.
        self.shared.live_view.store(None);
    }

    /// The servers.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    /// The limits of messages, which doors check before they buffer a message.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.shared.options.limits
    }

    /// The room for long bodies of requests, in bytes. Doors take room for the bodies that they
    /// read.
    #[must_use]
    pub fn bodies(&self) -> &Places {
        &self.shared.bodies
    }

    /// The name of this process among replicas.
    #[must_use]
    pub fn node_id(&self) -> &str {
        &self.shared.options.node_id
    }

    /// The record of all acts.
    #[must_use]
    pub fn audit(&self) -> &Audit {
        &self.shared.audit
    }

    /// The counters.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// The tap through which calls are watched.
    #[must_use]
    pub fn tap(&self) -> &narthex_run_events::Tap {
        &self.shared.options.tap
    }

    /// Number of open sessions.
    #[must_use]
    pub fn sessions_open(&self) -> usize {
        self.shared.sessions.len()
    }

    /// The tracker of tasks that outlive a door's request; [`Self::drain`] waits for these tasks.
    #[must_use]
    pub fn tasks(&self) -> &TaskTracker {
        &self.shared.tracker
    }

    /// Longest name of a tool at an aggregated endpoint.
    #[must_use]
    pub fn name_limit(&self) -> usize {
        self.shared.options.name_limit
    }

    /// Opens a session for a legacy client: answers its `initialize`. The session is `None` if
    /// the answer is an error.
    pub async fn initialize(
        &self,
        run: &Arc<RunView>,
        endpoint: &Endpoint,
        request: &Message,
    ) -> (Answering, Option<Arc<Session>>) {
        self.shared.initialize(run, endpoint, request).await
    }

    /// A live session by its id, if it belongs to this run and endpoint (S19).
    #[must_use]
    pub fn session(&self, run: &RunView, endpoint: &Endpoint, id: &str) -> Option<Arc<Session>> {
        let session = self.shared.sessions.get(id)?;
        (session.run.id == run.id && session.endpoint == *endpoint).then_some(session)
    }

    /// Ends a session: cancels its open calls and stops its own servers.
    pub async fn end_session(&self, session: &Arc<Session>) {
        self.shared.end_session(session).await;
    }

    /// Answers a request of either era. The HTTP door checks headers itself (see
    /// [`Gateway::header_params`]).
    pub async fn call(&self, caller: &Caller, request: Message) -> Answering {
        self.shared.call(caller, request).await
    }

    /// The arguments of a called tool that must be mirrored as headers, if there are any.
    #[must_use]
    pub fn header_params(&self, caller: &Caller, request: &Message) -> Option<Arc<HeaderParams>> {
        self.shared.header_params(caller, request)
    }

    /// Handles a client's notification.
    pub async fn notify(&self, caller: &Caller, notification: Message) {
        self.shared.notify(caller, notification).await;
    }

    /// Handles a client's response to a request of a server (legacy).
    pub async fn respond(&self, session: &Arc<Session>, response: Message) {
        self.shared.respond(session, &response).await;
    }

    /// Ends streams, lets open calls finish for [`GatewayOptions::drain_timeout`], then ends all
    /// sessions and stops every server. Each step has a deadline, so that this always ends.
    pub async fn drain(&self) {
        let shared = &self.shared;
        shared.stopping.cancel();
        shared.calls.close();
        let is_late = timeout(shared.options.drain_timeout, shared.calls.wait()).await.is_err();
        if is_late {
            tracing::warn!(
                open = shared.calls.len(),
                "calls were still open at the stop and are ended now"
            );
        }
        shared.shutdown.cancel();
        shared.tracker.close();
        let ending = async {
            shared.end_sessions().await;
            shared.tracker.wait().await;
        };
        if is_late {
            // Callers still wait: the end of the servers answers them.
            in_time("calls", async { _ = tokio::join!(ending, shared.registry.close()) }).await;
        } else {
            in_time("callers", Box::pin(ending)).await;
        }
        in_time("servers", Box::pin(shared.registry.close())).await;
        in_time("the audit record", shared.audit.close()).await;
    }
}

/// Waits for one step of the end, but not for ever.
async fn in_time(what: &str, step: impl Future<Output = ()>) {
    if timeout(STOP_DEADLINE, step).await.is_err() {
        tracing::warn!("{what} did not end within {} s", STOP_DEADLINE.as_secs());
    }
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

    fn header_params(&self, caller: &Caller, request: &Message) -> Option<Arc<HeaderParams>> {
        if request.method() != method::TOOLS_CALL {
            return None;
        }
        let name = request.get("name")?.as_str()?;
        let snapshot = self.snapshot(&caller.run);
        let (alias, original) = match &caller.endpoint {
            Endpoint::Transparent(alias) => (alias.clone(), Arc::from(name.as_ref())),
            Endpoint::Aggregated => {
                let view = self.run_view(&caller.run, &snapshot);
                let (alias, original) = view.tool(&name)?;
                (alias.clone(), original.clone())
            }
        };
        let row = snapshot.get(alias.as_str())?;
        let is_shown = exposed(&row).tools.lets(&original);
        row.inventory.tool(&original).filter(|_| is_shown)?.header_params.clone()
    }

    pub(crate) async fn end_session(&self, session: &Arc<Session>) {
        self.sessions.remove(&session.id);
        session.close();
        session.end_subscriptions();
        stop_all(session.take_own_links()).await;
    }

    /// Ends all sessions side by side.
    async fn end_sessions(self: &Arc<Self>) {
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
