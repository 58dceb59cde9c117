//! The gateway: the methods that doors call.

mod large;
mod profiled;
mod profiles;
mod runs;
mod tool_equivalents;

pub use self::profiled::LiveClient;
use self::profiles::ProfileRuns;
pub use self::tool_equivalents::{DoneAlike, NotAllowed};
use std::{
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use futures_core::future::BoxFuture;
use narthex_audit::Audit;
use narthex_registry::{Registry, ServerRow};
use narthex_upstream::Inventory;
use narthex_wire::{Limits, Message, Raw, headers::HeaderParams, method};
use tokio::{sync::watch, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Answering, Arrival, Caller, Endpoint, GatewayOptions, GrantLedger, Places, RunTable, RunView,
    Session,
    arrivals::Arrivals,
    built_in::{BuiltIn, BuiltInServer},
    call::parked::ParkedCalls,
    links::{LinkPool, STOP_DEADLINE},
    metrics::Metrics,
    options::body_bytes,
    runs::Source,
    seal::Sealer,
    session::table::SessionTable,
    shared::Shared,
    subscriptions::Hub,
    view::exposed,
};

/// Interval between searches for idle sessions, and for tasks that keep no server awake any more.
const SWEEP: Duration = Duration::from_secs(30);

/// The data plane. All clones are one gateway.
///
/// Methods that doors await are boxed, so that this crate compiles the path of a call, and its
/// callers do not compile the path again.
#[derive(Debug, Clone)]
pub struct Gateway {
    pub(crate) shared: Arc<Shared>,
    profiles: Arc<ProfileRuns>,
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
            arrivals: Arrivals::default(),
            bodies: Places::new(body_bytes(&options)),
            followed: Places::new(options.followed_max),
            parked: ParkedCalls::default(),
            parked_places: Places::new(options.parked_max),
            registry,
            runs: RunTable::default(),
            run_source: Source::default(),
            ledger: OnceLock::new(),
            built_in: OnceLock::new(),
            options,
            metrics: Metrics::new(&audit),
            audit,
            tasks: Arc::default(),
            hub: Hub::new(),
            pool: LinkPool::default(),
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
        shared.spawn(expire(shared.clone()));
        Ok(Self { shared, profiles: Arc::default() })
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
        if self.shared.built_in.set(BuiltIn::new(&self.shared.options, tools)).is_err() {
            tracing::error!("the built-in server has its tools already");
        }
        // Removes the view that was built before the tools were known.
        self.shared.live_view.store(None);
    }

    /// The registry of the servers.
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

    /// The audit record of all acts.
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

    /// The clients that described themselves last to this process, in their order.
    #[must_use]
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.shared.arrivals.all()
    }

    /// Changes when a client describes itself.
    #[must_use]
    pub fn arrivals_changed(&self) -> watch::Receiver<u64> {
        self.shared.arrivals.changes()
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
    pub fn initialize<'a>(
        &'a self,
        run: &'a Arc<RunView>,
        endpoint: &'a Endpoint,
        request: &'a Message,
    ) -> BoxFuture<'a, (Answering, Option<Arc<Session>>)> {
        Box::pin(self.shared.initialize(run, endpoint, request))
    }

    /// A live session by its id, if it belongs to this run and endpoint (S19).
    #[must_use]
    pub fn session(&self, run: &RunView, endpoint: &Endpoint, id: &str) -> Option<Arc<Session>> {
        let session = self.shared.sessions.get(id)?;
        (session.run.id == run.id && session.endpoint == *endpoint).then_some(session)
    }

    /// Ends a session: cancels its open calls and stops its own servers.
    pub fn end_session<'a>(&'a self, session: &'a Arc<Session>) -> BoxFuture<'a, ()> {
        Box::pin(self.shared.end_session(session))
    }

    /// Answers a request of either era. The HTTP door checks headers itself (see
    /// [`Gateway::header_params`]).
    pub fn call<'a>(&'a self, caller: &'a Caller, request: Message) -> BoxFuture<'a, Answering> {
        Box::pin(self.shared.call(caller, request))
    }

    /// The arguments of a called tool that must be mirrored as headers, if there are any.
    #[must_use]
    pub fn header_params(&self, caller: &Caller, request: &Message) -> Option<Arc<HeaderParams>> {
        let shared = &self.shared;
        if request.method() != method::TOOLS_CALL {
            return None;
        }
        let name = request.get("name")?.as_str()?;
        let snapshot = shared.snapshot(&caller.run);
        let (alias, original) = match &caller.endpoint {
            Endpoint::Transparent(alias) => (alias.clone(), Arc::from(name.as_ref())),
            Endpoint::Aggregated => {
                let view = shared.run_view(&caller.run, &snapshot);
                let (alias, original) = view.tool(&name)?;
                (alias.clone(), original.clone())
            }
        };
        let row = snapshot.get(alias.as_str())?;
        let is_shown = exposed(&row).tools.lets(&original);
        row.inventory.tool(&original).filter(|_| is_shown)?.header_params.clone()
    }

    /// Handles a client's notification.
    pub fn notify<'a>(&'a self, caller: &'a Caller, notification: Message) -> BoxFuture<'a, ()> {
        Box::pin(self.shared.notify(caller, notification))
    }

    /// Handles a client's response to a request of a server (legacy).
    pub fn respond<'a>(
        &'a self,
        session: &'a Arc<Session>,
        response: Message,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move { self.shared.respond(session, &response).await })
    }

    /// Ends streams, lets open calls finish for [`GatewayOptions::drain_timeout`], then ends all
    /// sessions and stops every server. Each step has a deadline, so that this always ends.
    pub fn drain(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.close())
    }

    async fn close(&self) {
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

/// Ends sessions whose clients were silent for too long. Lets servers sleep whose tasks have
/// expired without a report.
async fn expire(shared: Arc<Shared>) {
    let mut ticks = tokio::time::interval(SWEEP);
    loop {
        tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return,
            _ = ticks.tick() => {}
        }
        shared.forget_all_gone();
        shared.tasks.expire();
        for session in shared.sessions.all() {
            if session.last_used().elapsed() >= shared.options.session_idle {
                tracing::debug!(session.id = %session.id, "ended an idle session");
                // Each session ends in a task of its own: servers that end slowly delay no other
                // session.
                let ending = shared.clone();
                shared.spawn(async move { ending.end_session(&session).await });
            }
        }
    }
}

/// Waits for one step of the end, up to a deadline.
async fn in_time(what: &str, step: impl Future<Output = ()>) {
    if timeout(STOP_DEADLINE, step).await.is_err() {
        tracing::warn!("{what} did not end within {} s", STOP_DEADLINE.as_secs());
    }
}
