//! Holds calls to the limits of traffic (O100), and reports reached limits to callers.

use narthex_model::{Alias, CallError, CallErrorKind, TrafficLimits};
use narthex_policy::{Item, Request};
use narthex_traffic::{Admission, Exceeded, LimitScope};
use narthex_wire::method;
use serde_json::json;

use crate::{
    Caller,
    call::{record::unrecorded, refusal::Refusal, route::Routed},
    gateway::Shared,
};

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

impl Shared {
    /// Counts a routed call against the limits of traffic, before the call is sent (O100).
    ///
    /// # Errors
    /// When a limit is reached. The refused call is in the record, under its server.
    pub(crate) fn admitted(&self, caller: &Caller, routed: &Routed) -> Result<Admission, Unfound> {
        // A stream has no end of its own, and would never free its place.
        let is_stream = routed.request.message.method() == method::SUBSCRIPTIONS_LISTEN;
        let row = &routed.row;
        let configured = || row.definition.as_ref().map(|one| one.traffic).unwrap_or_default();
        self.admit(caller, row.alias.as_ref(), configured, !is_stream).map_err(|refusal| {
            let Request { alias, item, message, .. } = &routed.request;
            let is_shaped = matches!(item, Item::Tool(name) if row.is_shaped(name));
            let refusal = refusal.shaped(is_shaped);
            let item = self.clean_item(caller, item);
            let refusal = match self.begin_record(caller, Some(alias.clone()), message, item, None)
            {
                Ok(mut record) => {
                    record.refused(&refusal);
                    refusal
                }
                Err(full) => unrecorded(full).shaped(is_shaped),
            };
            Unfound { refusal: Box::new(refusal), is_recorded: true }
        })
    }

    /// Counts a call that goes to a server; `configured` gives the server's own limits. `has_place`
    /// is true if the call counts as an open one: a stream does not.
    ///
    /// # Errors
    /// When a limit of the server, the agent or the workspace is reached: then no limit counts the
    /// call.
    pub(crate) fn admit(
        &self,
        caller: &Caller,
        alias: Option<&Alias>,
        configured: impl Fn() -> TrafficLimits,
        has_place: bool,
    ) -> Result<Admission, Refusal> {
        let (meters, of_run) = (&self.options.meters, &caller.run.meters);
        let own = alias.and_then(|alias| of_run.server(alias));
        let shared = alias.filter(|_| own.is_none()).map(|alias| meters.local(alias));
        let server = own.or(shared.as_ref()).map(|meter| (meter, meter.limits_or(configured)));
        let [workspace, agent] = [&of_run.workspace, &of_run.agent]
            .map(|meter| meter.as_ref().map(|meter| (meter, meter.limits())));
        meters.admit([server, agent, workspace], has_place).map_err(|exceeded| {
            self.metrics.limited(exceeded.scope(), exceeded.kind);
            Refusal::Call(error(alias, &exceeded))
        })
    }
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
