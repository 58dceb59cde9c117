//! Live runs that hold a value of a secret. A caller finds them before the secret is cleared, from
//! the frozen configuration of each run.

use narthex_catalog::{Plan, Surroundings};
use narthex_control::ControlError;
use narthex_model::{Alias, EnvName, Pid, RunId, SecretName, SessionId, WorkspaceId};
use narthex_store::{RunFilter, RunRow};

use crate::{RunError, Runs, frozen::FrozenAgent};

/// A live run that holds a value of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRun {
    /// The run.
    pub id: RunId,
    /// The run's number in the workspace.
    pub pid: Pid,
    /// The run's session.
    pub session: SessionId,
    /// The name of the run's agent.
    pub agent: String,
    /// The run's servers that hold the value: clearing the secret ends them in this run.
    pub servers: Vec<Alias>,
    /// The variables by which the run's agent got the value: clearing the secret takes the value
    /// from none of them.
    pub env: Vec<EnvName>,
}

impl Runs {
    /// The live runs of a workspace that hold a value of a secret, in the order of their numbers.
    /// The result includes the runs of all daemons on the store. The call opens the frozen
    /// configuration of each live run of an agent.
    ///
    /// # Errors
    /// When there is no store, no vault or no such workspace, or the store fails.
    pub async fn secret_runs(
        &self,
        workspace: &WorkspaceId,
        name: &SecretName,
    ) -> Result<Vec<SecretRun>, RunError> {
        let store = self.control().catalog_store(workspace).await?;
        let living = RunFilter { status: Some(None), ..RunFilter::default() };
        let rows = store.runs().all(workspace, living).await.map_err(ControlError::Store)?;
        let mut found = Vec::new();
        // A run with servers of its own has no secrets of the workspace.
        for row in rows.iter().filter(|row| !row.agent.is_empty()) {
            // A run that ends meanwhile, or that this version cannot read, holds nothing any more.
            let Ok(frozen) = self.frozen(row).await else { continue };
            found.extend(frozen.of.agent().and_then(|agent| self.holder(row, agent, name)));
        }
        Ok(found)
    }

    /// The run as a holder of a secret, if it holds the secret.
    fn holder(&self, row: &RunRow, agent: &FrozenAgent, name: &SecretName) -> Option<SecretRun> {
        agent.secrets.get(name)?;
        let bound = agent.env.iter().filter(|(_, secret)| *secret == name);
        let env = bound.map(|(variable, _)| variable.clone()).collect();
        let servers = self.servers_with(row, agent, name);
        let (id, pid, session, agent) = (row.id, row.pid, row.session, row.agent.clone());
        Some(SecretRun { id, pid, session, agent, servers, env })
    }

    /// The servers of a run that need a secret, by alias.
    fn servers_with(&self, row: &RunRow, agent: &FrozenAgent, name: &SecretName) -> Vec<Alias> {
        let Some(parts) = agent.parts() else { return Vec::new() };
        let variables = self.control().variables();
        let surroundings = Surroundings {
            workspace: &row.workspace,
            env: &|name: &str| variables.find(name),
            allowing: &|names| variables.allowing(names),
            is_secret_set: &|_| true,
        };
        let needed = Plan::new(&parts.catalog, &parts.agent, surroundings).secrets();
        let mut servers: Vec<_> =
            needed.into_iter().filter(|one| one.name == *name).map(|one| one.alias).collect();
        servers.dedup();
        servers
    }
}
