//! Registered clients to which a human consents at the door: their approval, and the end of their
//! runs.

use narthex_control::{
    AccessError, By, ControlError, DoorChoice, DoorDesk, DoorFault, DoorHuman, KnownClient,
    McpClientToken, NewConnection, Sees,
};
use narthex_model::{AgentName, RunEnd, Secret, WorkspaceId};
use narthex_oauth::server::{PendingConsent, Redirect};
use serde_json::json;

use crate::{Creator, RunError, Runs};

impl Runs {
    /// Approves a client's request as a human chose, and registers the client unless the human let
    /// it act in the same way before. All conditions of a run are checked. Returns the address to
    /// which the human's browser is sent.
    ///
    /// # Errors
    /// When the human may not let a client act there, a run of the client could not be created now,
    /// the request is too old, or the store or the vault fails.
    pub async fn door_approve(
        &self,
        pending: PendingConsent,
        human: &DoorHuman,
        choice: DoorChoice,
    ) -> Result<Redirect, RunError> {
        let desk = self.desk()?;
        desk.may_choose(human, &choice)?;
        if let Some(known) = desk.connection(&human.id, &pending, &choice) {
            return Ok(desk.approve_again(pending, human, &known).await?);
        }
        let generated = McpClientToken::generate().map_err(AccessError::Randomness);
        let (token, id) = generated.map_err(ControlError::from)?;
        let DoorChoice { workspace, sees } = choice;
        let sealed = match &sees {
            Sees::Agent(agent) => {
                let asked = self.door_run(&workspace, agent, human).await?;
                self.seal(&workspace, &super::place(&id), &asked).await?
            }
            Sees::Profile(profile) => {
                self.check_profile(&workspace, profile)?;
                String::new()
            }
            Sees::Live if self.is_home(&workspace) => String::new(),
            Sees::Live => return Err(ControlError::from(DoorFault::Unfit).into()),
        };
        let name = pending.client_name.as_str().to_owned();
        let new = NewConnection { id, token, sees, workspace, sealed, name };
        Ok(desk.approve(pending, human, new).await?)
    }

    fn desk(&self) -> Result<DoorDesk<'_>, ControlError> {
        DoorDesk::of(self.control()).ok_or_else(|| DoorFault::Off.into())
    }

    /// The request for the runs of a client, after all checks of a creation that come before
    /// servers are started.
    async fn door_run(
        &self,
        workspace: &WorkspaceId,
        agent: &AgentName,
        human: &DoorHuman,
    ) -> Result<Secret, RunError> {
        let asked = json!({ "agent_name": agent.as_str() }).to_string();
        let by = Creator::Member(human.by.clone(), Some(human.id.clone()));
        self.check(workspace, asked.clone(), by).await?;
        Ok(Secret::new(asked))
    }

    /// Ends the run of a client whose tokens are revoked: its sessions, streams and open calls end.
    /// The client's next token opens another run.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn door_ended(&self, client: &KnownClient) -> Result<(), RunError> {
        match (&client.row.agent, client.row.run) {
            (None, _) => self.shared.gateway.end_client_run(&client.row.id).await,
            (Some(_), Some(run)) => {
                let workspace = &client.row.workspace;
                self.end_stored(workspace, run, RunEnd::Ended, By::system(), None).await?;
            }
            (Some(_), None) => {}
        }
        Ok(())
    }
}
