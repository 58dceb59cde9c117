//! Decides which agents may have servers with a sign-in per person (X-M15, X-E31).

use narthex_model::OauthOnOrchestrators;

use super::{
    Catalog, PlannedServer,
    merge::{Use, reference_place},
};
use crate::{
    agent::Agent,
    fault::{Fault, FaultCode},
};

/// The faults of attachments of such a server, if the agent acts for no one person and the
/// workspace does not allow it.
pub(super) fn refused(
    catalog: &Catalog,
    agent: &Agent,
    server: &PlannedServer<'_>,
    uses: &[Use<'_>],
) -> Vec<Fault> {
    let is_allowed = match catalog.oauth_on_orchestrators {
        OauthOnOrchestrators::Off => agent.agent_type.is_worker(),
        OauthOnOrchestrators::OnAttended | OauthOnOrchestrators::On => true,
    };
    let Some(entry) = server.entry.filter(|entry| entry.auth.is_per_user() && !is_allowed) else {
        return Vec::new();
    };
    let fault = |(origin, _): &Use<'_>| {
        let message = format!(
            "the server `{}` (`{}`) needs a sign-in of each person, but agent `{}` of the type \
             `{}` does not act for one person, and the setting `oauth_on_orchestrators` of the \
             workspace is `{}`",
            entry.id, server.alias, agent.name, agent.agent_type, catalog.oauth_on_orchestrators,
        );
        let remedy = "remove the server from the agent, make the agent a `worker`, or ask an admin \
                      of the workspace to set `oauth_on_orchestrators` to `on_attended` or `on`";
        let at = reference_place(origin, &server.alias);
        Fault::new(at, FaultCode::OauthNotAllowed, message, remedy).of(&server.alias, None)
    };
    uses.iter().map(fault).collect()
}
