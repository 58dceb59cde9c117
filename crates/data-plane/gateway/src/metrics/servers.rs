//! Counters per server: resolved once, then found by alias without a lock.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use narthex_audit::Outcome;
use narthex_model::Alias;
use narthex_wire::method;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::{Family, MetricConstructor},
        gauge::Gauge,
        histogram::Histogram,
    },
    registry::{Registry, Unit},
};

use super::{OTHER, SERVERS_MOST};

/// Methods that are counted by name, the most frequent first.
const METHODS: [&str; 24] = [
    method::TOOLS_CALL,
    method::TOOLS_LIST,
    method::RESOURCES_READ,
    method::RESOURCES_LIST,
    method::RESOURCES_TEMPLATES_LIST,
    method::PROMPTS_GET,
    method::PROMPTS_LIST,
    method::COMPLETION_COMPLETE,
    method::INITIALIZE,
    method::PING,
    method::SERVER_DISCOVER,
    method::SUBSCRIPTIONS_LISTEN,
    method::RESOURCES_SUBSCRIBE,
    method::RESOURCES_UNSUBSCRIBE,
    method::RESOURCES_DIRECTORY_READ,
    method::SKILLS_LIST,
    method::SKILLS_GET,
    method::LOGGING_SET_LEVEL,
    method::TASKS_GET,
    method::TASKS_UPDATE,
    method::TASKS_CANCEL,
    method::TASKS_RESULT,
    method::TASKS_LIST,
    OTHER,
];
/// Upper ends of the buckets of durations, in seconds.
const BUCKETS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 120.0];

/// The counters of all servers.
pub(crate) struct Servers {
    families: Families,
    by_alias: ArcSwap<HashMap<Alias, Arc<ServerMetrics>>>,
    other: ServerMetrics,
    /// Held while a server is added.
    adding: Mutex<()>,
}

/// The counters of one server.
pub(crate) struct ServerMetrics {
    label: Arc<str>,
    families: Families,
    /// The counters by method, then by outcome; made when first needed.
    calls: Box<[OnceLock<Counter>]>,
    duration: OnceLock<Histogram>,
    up: OnceLock<Gauge>,
    succeeded: OnceLock<Gauge>,
    failed: OnceLock<Gauge>,
    restarts: OnceLock<Counter>,
    cuts: OnceLock<Counter>,
}

#[derive(Clone)]
struct Families {
    calls: Family<CallLabels, Counter>,
    duration: Family<ServerLabel, Histogram, Durations>,
    up: Family<ServerLabel, Gauge>,
    succeeded: Family<ServerLabel, Gauge>,
    failed: Family<ServerLabel, Gauge>,
    restarts: Family<ServerLabel, Counter>,
    cuts: Family<ServerLabel, Counter>,
}

#[derive(Clone)]
struct Durations;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServerLabel {
    server: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    server: Arc<str>,
    method: &'static str,
    outcome: &'static str,
}

impl MetricConstructor<Histogram> for Durations {
    fn new_metric(&self) -> Histogram {
        Histogram::new(BUCKETS)
    }
}

impl Servers {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let families = Families {
            calls: Family::default(),
            duration: Family::new_with_constructor(Durations),
            up: Family::default(),
            succeeded: Family::default(),
            failed: Family::default(),
            restarts: Family::default(),
            cuts: Family::default(),
        };
        registry.register("calls", "Calls that have ended", families.calls.clone());
        let help = "Duration of calls";
        let duration = families.duration.clone();
        registry.register_with_unit("call_duration", help, Unit::Seconds, duration);
        registry.register("upstream_up", "1 if a server can be called", families.up.clone());
        let name = "upstream_last_success_timestamp_seconds";
        let help = "Unix time of a server's last answer to a call or a check";
        registry.register(name, help, families.succeeded.clone());
        let name = "upstream_last_failure_timestamp_seconds";
        let help = "Unix time of the last failure of a call, a check or an attempt to connect";
        registry.register(name, help, families.failed.clone());
        let help = "Starts of a server after its first";
        registry.register("upstream_restarts", help, families.restarts.clone());
        let help = "Results that were longer than their limit and were cut";
        registry.register("results_cut", help, families.cuts.clone());
        let other = ServerMetrics::new(OTHER.into(), families.clone());
        Self { families, by_alias: ArcSwap::default(), other, adding: Mutex::new(()) }
    }

    /// Passes the counters of a server to `count`. Passes the counters of [`OTHER`] without a
    /// server, or for a server beyond the limit.
    pub(crate) fn with(&self, alias: Option<&Alias>, count: impl FnOnce(&ServerMetrics)) {
        let Some(alias) = alias else { return count(&self.other) };
        let by_alias = self.by_alias.load();
        match by_alias.get(alias) {
            Some(server) => count(server),
            None if by_alias.len() >= SERVERS_MOST => count(&self.other),
            None => match self.add(alias) {
                Some(server) => count(&server),
                None => count(&self.other),
            },
        }
    }

    fn add(&self, alias: &Alias) -> Option<Arc<ServerMetrics>> {
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let by_alias = self.by_alias.load();
        if let Some(server) = by_alias.get(alias) {
            return Some(server.clone());
        }
        if by_alias.len() >= SERVERS_MOST {
            return None;
        }
        let server = ServerMetrics::new(alias.as_str().into(), self.families.clone());
        let server = Arc::new(server);
        let mut more = HashMap::clone(&by_alias);
        more.insert(alias.clone(), server.clone());
        self.by_alias.store(Arc::new(more));
        Some(server)
    }
}

impl ServerMetrics {
    fn new(label: Arc<str>, families: Families) -> Self {
        let calls = (0..METHODS.len() * Outcome::COUNT).map(|_| OnceLock::new()).collect();
        let (duration, up) = (OnceLock::new(), OnceLock::new());
        let (succeeded, failed) = (OnceLock::new(), OnceLock::new());
        let (restarts, cuts) = (OnceLock::new(), OnceLock::new());
        Self { label, families, calls, duration, up, succeeded, failed, restarts, cuts }
    }

    fn server(&self) -> ServerLabel {
        ServerLabel { server: self.label.clone() }
    }

    pub(crate) fn call_finished(&self, method: &str, outcome: Outcome, took: Duration) {
        let row = METHODS.iter().position(|known| *known == method).unwrap_or(METHODS.len() - 1);
        let counter = &self.calls[row * Outcome::COUNT + outcome.index()];
        let resolve = || {
            let (server, method) = (self.label.clone(), METHODS[row]);
            let labels = CallLabels { server, method, outcome: outcome.as_str() };
            self.families.calls.get_or_create_owned(&labels)
        };
        counter.get_or_init(resolve).inc();
        let resolve = || self.families.duration.get_or_create_owned(&self.server());
        self.duration.get_or_init(resolve).observe(took.as_secs_f64());
    }

    pub(crate) fn set_up(&self, is_up: bool) {
        let resolve = || self.families.up.get_or_create_owned(&self.server());
        self.up.get_or_init(resolve).set(is_up.into());
    }

    pub(crate) fn set_seen(&self, succeeded: Option<SystemTime>, failed: Option<SystemTime>) {
        let of = |cell: &OnceLock<Gauge>, family: &Family<ServerLabel, Gauge>, at: SystemTime| {
            let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
            let gauge = cell.get_or_init(|| family.get_or_create_owned(&self.server()));
            gauge.set(i64::try_from(since).unwrap_or(i64::MAX));
        };
        if let Some(at) = succeeded {
            of(&self.succeeded, &self.families.succeeded, at);
        }
        if let Some(at) = failed {
            of(&self.failed, &self.families.failed, at);
        }
    }

    pub(crate) fn count_restart(&self) {
        let resolve = || self.families.restarts.get_or_create_owned(&self.server());
        self.restarts.get_or_init(resolve).inc();
    }

    pub(crate) fn count_cut(&self) {
        let resolve = || self.families.cuts.get_or_create_owned(&self.server());
        self.cuts.get_or_init(resolve).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::METHODS;
    use crate::view::method_names;

    /// A method without a name of its own here is counted as `_other`, with all unknown ones.
    #[test]
    fn every_known_method_is_counted_by_its_name() {
        for name in method_names() {
            assert!(METHODS.contains(&name), "{name}");
        }
    }
}
