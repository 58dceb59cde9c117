//! Options of a gateway.

use std::{num::NonZeroU64, sync::Arc, time::Duration};

use bytes::Bytes;
use narthex_model::{OutputLimits, QUALIFIED_NAME_MAX};
use narthex_registry::ServerRow;
use narthex_traffic::Meters;
use narthex_wire::Limits;

use crate::{
    Endpoint, Tracer,
    view::{Part, View, ViewOptions},
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

impl GatewayOptions {
    /// The time that a call to a server may take.
    pub(crate) fn timeout(&self, row: &ServerRow) -> Duration {
        let configured = row.definition.as_ref().and_then(|definition| definition.timeout);
        configured.unwrap_or(self.call_timeout)
    }

    /// The limits on a result's length, from the server's entry. At the aggregated endpoint, where
    /// models read results, a default applies as well (R-E20). A transparent endpoint has only the
    /// entry's limits (D2).
    pub(crate) fn output_limits(&self, endpoint: &Endpoint, row: &ServerRow) -> OutputLimits {
        let own = row.definition.as_ref().map(|definition| definition.output).unwrap_or_default();
        let is_aggregated = *endpoint == Endpoint::Aggregated;
        let usual = self.output_tokens.filter(|_| is_aggregated);
        OutputLimits { tokens: own.tokens.or(usual), ..own }
    }

    /// A view of these parts of servers.
    pub(crate) fn view_of(&self, seq: u64, parts: &[Part]) -> View {
        let options = ViewOptions {
            name_limit: self.name_limit,
            server_info: &self.server_info,
            has_own_tools: self.synthetic_tools,
        };
        View::build(seq, parts, options)
    }
}

/// The least room for long bodies of requests, in bytes.
const BODY_BYTES_MIN: usize = 256 << 20;

/// The room for long bodies: each run may have two of the longest messages.
pub(crate) fn body_bytes(options: &GatewayOptions) -> usize {
    let usual = options.limits.message_bytes.saturating_mul(4).max(BODY_BYTES_MIN);
    // Bodies take it in steps of 1 MiB, so half of it must be whole steps.
    options.body_bytes_max.unwrap_or(usual).next_multiple_of(2 << 20)
}
