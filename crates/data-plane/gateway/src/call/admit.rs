//! Holds calls to the limits of traffic (O100), and reports reached limits to callers.

use narthex_model::{Alias, CallError, CallErrorKind, TrafficLimits};
use narthex_traffic::{Admission, Exceeded, LimitScope, Meters};
use serde_json::json;

use crate::{Caller, metrics::Metrics, refusal::Refusal};

/// The reason why a call finds no server.
pub(crate) struct Unfound {
    pub(crate) refusal: Box<Refusal>,
    /// True if the refusal is in the record.
    pub(crate) is_recorded: bool,
}

impl From<Refusal> for Unfound {
    fn from(refusal: Refusal) -> Self {
        Self { refusal: Box::new(refusal), is_recorded: false }
    }
}

/// Counts a call that goes to a server; `configured` gives the server's own limits. `has_place`
/// is true if the call counts as an open one: a stream does not.
///
/// # Errors
/// When a limit of the server, the agent or the workspace is reached: then no limit counts the
/// call.
pub(crate) fn admit(
    meters: &Meters,
    metrics: &Metrics,
    caller: &Caller,
    alias: Option<&Alias>,
    configured: impl Fn() -> TrafficLimits,
    has_place: bool,
) -> Result<Admission, Refusal> {
    let (meters, of_run) = (meters, &caller.run.meters);
    let own = alias.and_then(|alias| of_run.server(alias));
    let shared = alias.filter(|_| own.is_none()).map(|alias| meters.local(alias));
    let server = own.or(shared.as_ref()).map(|meter| (meter, meter.limits_or(configured)));
    let [workspace, agent] = [&of_run.workspace, &of_run.agent]
        .map(|meter| meter.as_ref().map(|meter| (meter, meter.limits())));
    meters.admit([server, agent, workspace], has_place).map_err(|exceeded| {
        metrics.limited(exceeded.scope(), exceeded.kind);
        Refusal::Call(error(alias, &exceeded))
    })
}

/// The caller's error for a reached limit (D16).
fn error(alias: Option<&Alias>, exceeded: &Exceeded) -> CallError {
    let (scope, wait) = (exceeded.scope(), exceeded.retry_after_ms);
    let whose = match (scope, alias) {
        (LimitScope::Workspace, _) => "this workspace".to_owned(),
        (LimitScope::Agent, _) => "this agent".to_owned(),
        (LimitScope::Server, Some(alias)) => format!("server `{alias}`"),
        (LimitScope::Server, None) => "this server".to_owned(),
    };
    let most = exceeded.most();
    let message = format!("{whose} is limited to {most}; try again in {wait} ms");
    let details = json!({
        "limit": exceeded.kind.as_str(),
        "scope": scope.as_str(),
        "retry_after_ms": wait,
    });
    CallError { kind: CallErrorKind::LimitExceeded, message, details: Some(details) }
}
