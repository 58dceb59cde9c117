//! Children of which a session has one at a time (X-E85), and names of models (X-E87).

use narthex_control::ControlError;
use narthex_gateway::RunView;
use narthex_model::{AgentName, AgentType, SessionId};

use crate::{Child, RunError, Runs, create::creator::Awaited};

impl Runs {
    /// The active child of a session, if its agent is an orchestrator. A session may have one child
    /// at a time of each orchestrator, and any number of children of other agents.
    pub(crate) async fn orchestrator_child(
        &self,
        run: &RunView,
        own: SessionId,
        agent: &AgentName,
    ) -> Result<Option<Child>, RunError> {
        let workspace = &run.workspace;
        if self.agent_type(workspace, agent.as_str()).await? != AgentType::Orchestrator {
            return Ok(None);
        }
        let found = self.store()?.sessions().live_child_of(workspace, own, agent.as_str()).await;
        match found.map_err(ControlError::Store)? {
            Some(id) => Ok(Some(self.child(run, &id.to_text()).await?)),
            None => Ok(None),
        }
    }

    /// Returns the requirements with the model's name replaced by its id in the workspace.
    pub(crate) fn with_model(&self, run: &RunView, asked: Awaited) -> Result<Awaited, RunError> {
        let Some(name) = asked.model else { return Ok(asked) };
        let models = self.control().workspace(&run.workspace)?.models;
        match models.resolve(&name) {
            Some(id) => Ok(Awaited { model: Some(id.to_owned()), ..asked }),
            None => Err(RunError::ModelNotEnabled(name)),
        }
    }
}
