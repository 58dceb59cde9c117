//! Servers that each person signs in to, in runs that no person drives (X-E122).

use narthex_catalog::ResolvedServer;
use narthex_control::AgentParts;
use narthex_model::{AgentType, CallErrorKind, OauthOnOrchestrators, PrincipalId, ServerFailure};
use narthex_registry::MountFault;

const NO_DRIVER: &str = "it needs a sign-in of each person, and no person drives this run; a \
                         person must create the run, or an admin of the workspace must set \
                         `oauth_on_orchestrators` to `on`";

/// The reason why a run that `driver` drives does not get a server; `None` if the run may have it.
pub(crate) fn withheld(
    parts: &AgentParts,
    driver: Option<&PrincipalId>,
    server: &ResolvedServer,
) -> Option<MountFault> {
    let needs_driver = match (parts.agent.agent_type, parts.catalog.oauth_on_orchestrators) {
        (AgentType::Worker, _) | (_, OauthOnOrchestrators::On) => false,
        // Under `Off`, an earlier step has refused the run or left the server out.
        (_, OauthOnOrchestrators::Off | OauthOnOrchestrators::OnAttended) => true,
    };
    let is_withheld = needs_driver
        && driver.is_none()
        && server.is_per_user()
        // A server that is disabled is reported as such.
        && !server.settings.disabled;
    is_withheld.then(|| {
        let error = ServerFailure::new(CallErrorKind::PermissionRequired, NO_DRIVER);
        let (alias, error) = (server.alias.clone(), error.telling_runs(NO_DRIVER));
        MountFault { alias, error, lines: Vec::new() }
    })
}

#[cfg(test)]
mod tests {
    use narthex_catalog::{
        Agent, Catalog, EnvValue, Plan, ResolvedRun, RunInputs, ServerEntry, Surroundings,
    };
    use narthex_model::{AgentName, RunScope, WorkspaceId};
    use serde_json::{Map, Value, json};

    use super::*;

    fn parts(agent_type: AgentType, allowed: OauthOnOrchestrators, is_off: bool) -> AgentParts {
        let agent = json!({ "agent_type": agent_type, "mcpServers": {
            "mail": { "ref": "mail" }, "open": { "ref": "open" } } });
        let mail = json!({ "id": "mail", "kind": "remote_oauth", "url": "https://mail.test/mcp",
                           "disabled": is_off });
        let open = json!({ "id": "open", "url": "https://open.test/mcp" });
        let name = AgentName::new("lead").unwrap();
        let agent = Agent::parse(agent.to_string().as_bytes(), Some(&name)).unwrap().value;
        let entry = |value: Value| {
            let entry = ServerEntry::parse(value.to_string().as_bytes(), None).unwrap().value;
            (entry.id.clone(), entry)
        };
        let servers = [mail, open].map(entry).into();
        let catalog = Catalog { servers, oauth_on_orchestrators: allowed, ..Catalog::default() };
        AgentParts { agent, catalog }
    }

    fn resolved(parts: &AgentParts) -> ResolvedRun {
        let workspace = WorkspaceId::default();
        let surroundings = Surroundings {
            workspace: &workspace,
            env: &|_| EnvValue::NotAllowed,
            allowing: &|_| String::new(),
            is_secret_set: &|_| false,
        };
        let inputs = RunInputs {
            run_id: "run_0a1b2c3d4e5f",
            session_id: "ses_0a1b2c3d4e5f",
            project_dir: None,
            params: &Map::new(),
            scope: &RunScope::default(),
        };
        Plan::new(&parts.catalog, &parts.agent, surroundings).resolve(inputs).unwrap()
    }

    /// The aliases of the servers that a run does not have.
    fn without(parts: &AgentParts, driver: Option<&PrincipalId>) -> Vec<String> {
        let run = resolved(parts);
        let faults = run.servers.values().filter_map(|server| withheld(parts, driver, server));
        let told = faults.map(|fault| {
            assert_eq!(fault.error.kind, CallErrorKind::PermissionRequired);
            assert!(fault.error.operator_cause().contains("`oauth_on_orchestrators`"));
            fault.alias.to_string()
        });
        told.collect()
    }

    /// X-E122: only under `on_attended`, in runs without a driver of agents that are no workers,
    /// and only servers that a person signs in to.
    #[test]
    fn x_e122_a_run_without_a_driver_has_no_personal_servers_under_on_attended() {
        use OauthOnOrchestrators::{Off, On, OnAttended};
        for kind in [AgentType::Orchestrator, AgentType::Scheduled] {
            let attended = parts(kind, OnAttended, false);
            assert_eq!(without(&attended, None), ["mail"]);
            assert!(
                without(&attended, Some(&PrincipalId::new("prn_0011223344556677").unwrap()))
                    .is_empty()
            );
            assert!(without(&parts(kind, On, false), None).is_empty());
            // A server that is disabled is reported as such.
            assert!(without(&parts(kind, OnAttended, true), None).is_empty());
        }
        for allowed in [Off, OnAttended, On] {
            assert!(without(&parts(AgentType::Worker, allowed, false), None).is_empty());
        }
    }
}
