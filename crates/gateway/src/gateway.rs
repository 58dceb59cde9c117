//! The gateway: what doors call.

use std::sync::Arc;

use narthex_registry::Registry;
use narthex_wire::{Limits, Message, Payload};
use tokio_util::task::TaskTracker;

use crate::{Answering, Audit, Caller, Endpoint, Metrics, RunTable, RunView, Session};

/// What a gateway is made with.
#[derive(Debug, Clone)]
pub struct GatewayOptions {
    /// Limits of single messages.
    pub limits: Limits,
    /// Identifies this process among replicas, in session and event ids (D26).
    pub node_id: String,
}

/// The data plane. Clones are handles to the same one.
#[derive(Debug, Clone)]
pub struct Gateway {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    registry: Registry,
    runs: RunTable,
    options: GatewayOptions,
    metrics: Metrics,
    audit: Audit,
    tasks: TaskTracker,
}

impl Gateway {
    /// A gateway over a registry.
    #[must_use]
    pub fn new(registry: Registry, audit: Audit, options: GatewayOptions) -> Self {
        let tasks = TaskTracker::new();
        let runs = RunTable::default();
        let shared = Shared { registry, runs, options, metrics: Metrics::default(), audit, tasks };
        Self { shared: Arc::new(shared) }
    }

    /// The live runs; doors identify callers here.
    #[must_use]
    pub fn runs(&self) -> &RunTable {
        &self.shared.runs
    }

    /// The servers.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    /// The limits of messages; doors apply them before buffering.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.shared.options.limits
    }

    /// Identifies this process among replicas.
    #[must_use]
    pub fn node_id(&self) -> &str {
        &self.shared.options.node_id
    }

    /// The counters.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// The owner of tasks that outlive a door's request; drain waits for it.
    #[must_use]
    pub fn tasks(&self) -> &TaskTracker {
        &self.shared.tasks
    }

    /// Opens a session for a legacy client: answers its `initialize`. The session is `None` if
    /// the answer is an error.
    pub async fn initialize(
        &self,
        _run: &Arc<RunView>,
        _endpoint: &Endpoint,
        _request: &Message,
    ) -> (Answering, Option<Arc<Session>>) {
        (Answering::ready(Payload::default(), 500), None)
    }

    /// A live session by its id, if it belongs to this run and endpoint (S19).
    #[must_use]
    pub fn session(&self, _run: &RunView, _endpoint: &Endpoint, _id: &str) -> Option<Arc<Session>> {
        None
    }

    /// Ends a session: open calls are cancelled, its own servers are stopped.
    pub async fn end_session(&self, _session: &Arc<Session>) {}

    /// Answers one request, of either era. Header checks are the HTTP door's part (see
    /// [`Gateway::header_params`]).
    pub async fn call(&self, _caller: &Caller, _request: Message) -> Answering {
        Answering::ready(Payload::default(), 500)
    }

    /// The arguments of a called tool that must be mirrored as headers, if there are any.
    #[must_use]
    pub fn header_params(
        &self,
        _caller: &Caller,
        _request: &Message,
    ) -> Option<Arc<narthex_wire::headers::HeaderParams>> {
        None
    }

    /// Takes a notification.
    pub async fn notify(&self, _caller: &Caller, _notification: Message) {}

    /// Takes the client's response to a request of a server (legacy).
    pub async fn respond(&self, _session: &Arc<Session>, _response: Message) {}

    /// Ends all sessions and waits for open calls, up to a deadline given by the caller.
    pub async fn drain(&self) {}
}
