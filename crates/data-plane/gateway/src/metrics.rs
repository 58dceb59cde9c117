//! Counters of the gateway's work, as Prometheus text.
//!
//! Every label has a bounded set of values: values that clients choose are counted as `other`. A
//! call is counted through counters that were resolved when its server was first seen, without a
//! lock and without formatting.
//!
//! This module is a layer of its own: it imports no other module of this crate, and knows no call.

mod counted;
mod process;
mod servers;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU64},
    time::{Duration, SystemTime},
};

use narthex_audit::{Audit, Outcome};
use narthex_model::Alias;
use narthex_traffic::{LimitKind, LimitScope};
use prometheus_client::{
    collector::Collector,
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, info::Info},
    registry::Registry,
};

pub use self::{counted::Labelled, process::ProcessNumbers};
use self::{
    counted::{Counted, LabelledCounter, LabelledGauge},
    process::ProcessCollector,
    servers::Servers,
};

/// The label of values outside of the bounded set.
const OTHER: &str = "_other";
/// Most servers with counters of their own; further servers share one set.
const SERVERS_MOST: usize = 1000;

/// The counters. Clones are handles to the same counters.
#[derive(Clone)]
pub struct Metrics {
    shared: Arc<Shared>,
}

/// Counts an open object until this value is dropped.
#[derive(Debug)]
#[must_use = "dropping it counts the thing as closed"]
pub struct OpenCount(Gauge);

/// The numbers of open objects, and the resources of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Number of open sessions of legacy clients.
    pub sessions_open: u64,
    /// Number of open streams to clients and pages.
    pub streams_open: u64,
    /// Number of calls that wait for their client.
    pub calls_parked: u64,
    /// Bytes of the audit that are not in the store yet; `None` without an audit.
    pub audit_waiting_bytes: Option<u64>,
    /// True if the last attempt to move events of the audit into the store failed.
    pub audit_is_stuck: bool,
    /// Resources of the process; `None` where the system does not count them.
    pub process: Option<ProcessNumbers>,
}

struct Shared {
    registry: Mutex<Registry>,
    servers: Servers,
    sessions_open: Gauge,
    streams_open: Gauge,
    calls_parked: Gauge,
    audit_free: Gauge,
    audit_waiting: Gauge,
    /// A number of seconds with decimals.
    audit_lag: Gauge<f64, AtomicU64>,
    audit_stuck: Gauge,
    audit: Audit,
    refused: Family<ReasonLabel, Counter>,
    limited: Family<LimitLabels, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabels {
    scope: &'static str,
    limit: &'static str,
}

impl Metrics {
    /// Counters that begin at zero. `audit` is asked how much room it has.
    #[must_use]
    pub fn new(audit: &Audit) -> Self {
        let mut all = Registry::default();
        all.register_collector(Box::new(ProcessCollector));
        let registry = all.sub_registry_with_prefix("narthex");
        let version = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The running version of narthex", version);
        let servers = Servers::register(registry);
        let sessions_open = Gauge::default();
        registry.register("sessions_open", "Sessions of legacy clients", sessions_open.clone());
        let streams_open = Gauge::default();
        registry.register("sse_streams_open", "Streams open to clients", streams_open.clone());
        let calls_parked = Gauge::default();
        let help = "Calls of modern clients that wait for answers to questions of a legacy server";
        registry.register("calls_parked", help, calls_parked.clone());
        let audit_free = Gauge::default();
        let help = "Further calls that can be open or waiting to be recorded";
        registry.register("audit_queue_free", help, audit_free.clone());
        let audit_waiting = Gauge::default();
        let help = "Bytes of the audit on the disk that are not in the store yet";
        registry.register("audit_spool_bytes", help, audit_waiting.clone());
        let audit_lag = Gauge::default();
        let help = "Age of the oldest audit event that is not in the store yet";
        registry.register("audit_lag_seconds", help, Gauge::clone(&audit_lag));
        let audit_stuck = Gauge::default();
        let help = "1 if the last attempt to move audit events into the store failed";
        registry.register("audit_spool_stuck", help, audit_stuck.clone());
        let refused = Family::default();
        registry.register("refused", "Messages refused before they became calls", refused.clone());
        let limited = Family::default();
        let help = "Calls refused because a limit of traffic was reached";
        registry.register("calls_limited", help, limited.clone());
        let registry = Mutex::new(all);
        let audit = audit.clone();
        let shared = Shared {
            registry,
            servers,
            sessions_open,
            streams_open,
            calls_parked,
            audit_free,
            audit_waiting,
            audit_lag,
            audit_stuck,
            audit,
            refused,
            limited,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Shows a counter of another crate under this name from now on.
    pub fn count(
        &self,
        name: &'static str,
        help: &'static str,
        read: impl Fn() -> u64 + Send + Sync + 'static,
    ) {
        self.collect(Counted { name, help, read: Box::new(read) });
    }

    /// Shows counters of another crate from now on, one for each value of a label.
    pub fn count_each(&self, counters: Labelled<u64>) {
        self.collect(LabelledCounter(counters));
    }

    /// Shows gauges of another crate from now on, one for each value of a label.
    pub fn measure_each(&self, gauges: Labelled<i64>) {
        self.collect(LabelledGauge(gauges));
    }

    fn collect(&self, collector: impl Collector) {
        let mut registry = self.shared.registry.lock().unwrap_or_else(PoisonError::into_inner);
        registry.register_collector(Box::new(collector));
    }

    /// Counts a call that has ended. `alias` is the configured server it went to, if it was one.
    pub fn call_finished(
        &self,
        alias: Option<&Alias>,
        method: &str,
        outcome: Outcome,
        took: Duration,
    ) {
        self.shared.servers.with(alias, |server| server.call_finished(method, outcome, took));
    }

    /// Notes whether a server can be called.
    pub fn upstream_up(&self, alias: &Alias, is_up: bool) {
        self.shared.servers.with(Some(alias), |server| server.set_up(is_up));
    }

    /// Notes when a server last answered, and when it last failed.
    pub fn upstream_seen(
        &self,
        alias: &Alias,
        succeeded: Option<SystemTime>,
        failed: Option<SystemTime>,
    ) {
        self.shared.servers.with(Some(alias), |server| server.set_seen(succeeded, failed));
    }

    /// Counts a server that was started again after it had run.
    pub fn upstream_restarted(&self, alias: &Alias) {
        self.shared.servers.with(Some(alias), |server| server.count_restart());
    }

    /// Counts a result that was longer than the limits of its server and was cut.
    pub fn result_cut(&self, alias: Option<&Alias>) {
        self.shared.servers.with(alias, |server| server.count_cut());
    }

    /// Counts a message that was refused before it became a call. The reason is one of the
    /// program's own words, never text of a client.
    pub fn refused(&self, reason: &'static str) {
        self.shared.refused.get_or_create(&ReasonLabel { reason }).inc();
    }

    /// Counts a call that was refused because a limit was reached.
    pub fn limited(&self, scope: LimitScope, limit: LimitKind) {
        let labels = LimitLabels { scope: scope.as_str(), limit: limit.as_str() };
        self.shared.limited.get_or_create(&labels).inc();
    }

    /// Counts a legacy session as open.
    pub fn session_opened(&self) -> OpenCount {
        OpenCount::new(&self.shared.sessions_open)
    }

    /// Counts an SSE stream to a client as open.
    pub fn stream_opened(&self) -> OpenCount {
        OpenCount::new(&self.shared.streams_open)
    }

    /// Counts a call as one that waits for its client.
    pub fn call_parked(&self) -> OpenCount {
        OpenCount::new(&self.shared.calls_parked)
    }

    /// A few of the numbers, as they are now.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        let open = |gauge: &Gauge| u64::try_from(gauge.get()).unwrap_or_default();
        let Shared { sessions_open, streams_open, calls_parked, audit, .. } = &*self.shared;
        Numbers {
            sessions_open: open(sessions_open),
            streams_open: open(streams_open),
            calls_parked: open(calls_parked),
            audit_waiting_bytes: audit.waiting().map(|(bytes, _)| bytes),
            audit_is_stuck: audit.is_stuck(),
            process: process::numbers(),
        }
    }

    /// All metrics, in the `OpenMetrics` text format (`application/openmetrics-text; version=1.0.0;
    /// charset=utf-8`).
    #[must_use]
    pub fn render(&self) -> String {
        if let Some(free) = self.shared.audit.free() {
            self.shared.audit_free.set(i64::try_from(free).unwrap_or(i64::MAX));
        }
        if let Some((bytes, lag)) = self.shared.audit.waiting() {
            self.shared.audit_waiting.set(i64::try_from(bytes).unwrap_or(i64::MAX));
            self.shared.audit_lag.set(lag.as_secs_f64());
            self.shared.audit_stuck.set(i64::from(self.shared.audit.is_stuck()));
        }
        let mut text = String::new();
        let registry = self.shared.registry.lock().unwrap_or_else(PoisonError::into_inner);
        // Writing to a string fails only if a metric refuses to be written.
        if let Err(error) = encode(&mut text, &registry) {
            tracing::error!(%error, "the metrics cannot be written");
        }
        text
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(&Audit::disabled())
    }
}

impl OpenCount {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for OpenCount {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}
