//! Registered clients to which a human consents at the door: their approval, and the end of their
//! runs.

use std::sync::Arc;

use narthex_control::{
    AccessError, By, ControlError, DoorAnswer, DoorAsserted, DoorChoice, DoorDesk, DoorFault,
    DoorForeign, DoorHuman, KnownClient, McpClientToken, NewConnection, Sees,
};
use narthex_model::{AgentName, ErrorKind, RunEnd, Secret, WorkspaceId};
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
        let name = pending.client_name.as_str().to_owned();
        let new = self.new_connection(choice, human, name).await?;
        Ok(desk.approve(pending, human, new).await?)
    }

    /// The client of a person and a program whom an issuer of the company named. It is registered
    /// if it is new.
    ///
    /// # Errors
    /// When the person may not let a client act there, the client was revoked for the person, a run
    /// of the client could not be created now, or the store or the vault fails.
    pub async fn door_foreign(&self, foreign: &DoorForeign) -> Result<Arc<KnownClient>, RunError> {
        let desk = self.desk()?;
        if let Some(known) = desk.let_in_before(foreign)? {
            return Ok(known);
        }
        let _turn = desk.turn_of(foreign).await;
        if let Some(known) = desk.let_in_before(foreign)? {
            return Ok(known);
        }
        let (human, choice) = (desk.person_of(foreign)?, foreign.choice(self.control().home()));
        desk.may_choose(&human, &choice)?;
        let new = self.new_connection(choice, &human, foreign.name().to_owned()).await?;
        Ok(desk.let_in(foreign, &human, new).await?)
    }

    /// Answers a request with a good assertion: an access token for a client of its person.
    ///
    /// # Errors
    /// The errors of [`Self::door_foreign`], except that the person may not.
    pub async fn door_asserted(&self, asserted: DoorAsserted) -> Result<DoorAnswer, RunError> {
        let known = match self.door_foreign(&asserted.foreign).await {
            Ok(known) => known,
            Err(error) if error.kind() == ErrorKind::Denied => return Ok(DoorAnswer::not_let_in()),
            Err(error) => return Err(error),
        };
        Ok(self.desk()?.issue(asserted, &known).await?)
    }

    /// A client to be registered, after all checks of its choice.
    async fn new_connection(
        &self,
        choice: DoorChoice,
        human: &DoorHuman,
        name: String,
    ) -> Result<NewConnection, RunError> {
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
        Ok(NewConnection { id, token, sees, workspace, sealed, name })
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
