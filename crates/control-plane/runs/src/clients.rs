//! Registered MCP clients connect without an operator who creates a run for them: each acts for a
//! run of its own session. A client that connects while none of its runs is active gets a new one.

mod at_the_door;
mod of_live;
pub(crate) mod tokens;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use narthex_catalog::RunRequest;
use narthex_control::{
    AccessError, By, ClientRequest, Control, ControlError, CreatedClient, KnownClient, Sees,
};
use narthex_gateway::RunView;
use narthex_model::{ErrorKind, McpClientId, PrincipalId, RunEnd, Secret, SessionId, WorkspaceId};
use serde_json::{Map, Value, json};

use crate::{Creator, RunError, Runs, create::request::LIFE};

impl Runs {
    /// Registers a client by `{"client": …, "agent_name": …, "params": {…}, "scope": {…}, …}`. No
    /// run begins, but all conditions of a run are checked.
    ///
    /// # Errors
    /// When a field is wrong, a run of the client could not be created now, the name is taken,
    /// there is no such workspace, or the store or the vault fails.
    pub async fn client_register(
        &self,
        workspace: &WorkspaceId,
        text: &str,
        by: &By,
    ) -> Result<CreatedClient, RunError> {
        self.control().catalog_store(workspace).await?;
        let request = ClientRequest::read(workspace, text.as_bytes())?;
        if let Sees::Profile(profile) = &request.sees {
            self.check_profile(workspace, profile)?;
            let new = request.with_token()?;
            return Ok(self.control().client_register(workspace, new, by).await?);
        }
        let run = Value::from(request.run.clone()).to_string();
        self.check(workspace, run.clone(), Creator::Member(by.clone(), None)).await?;
        let mut new = request.with_token()?;
        new.sealed = self.seal(workspace, &place(&new.id), &Secret::new(run)).await?;
        Ok(self.control().client_register(workspace, new, by).await?)
    }

    /// Revokes a client's token, and ends its session with its run.
    ///
    /// # Errors
    /// When there is no client with this id that may connect, or the store fails.
    pub async fn client_revoke(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        by: &By,
    ) -> Result<(), RunError> {
        let (runs, workspace, id, by) =
            (self.clone(), workspace.clone(), id.to_owned(), by.clone());
        // The task completes also if the caller disconnects.
        let revoking = async move |control: Control| {
            let revoked = control.client_revoke(&workspace, &id, &by).await?;
            Ok(match revoked.row.session {
                Some(session) => runs.end_of_client(&workspace, session, &by).await,
                None => Ok(()),
            })
        };
        self.control().to_the_end(revoking).await?
    }

    /// Ends the sessions of all clients of a principal that is disabled, or that act for it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn clients_disabled(&self, of: &PrincipalId, by: &By) -> Result<(), RunError> {
        let workspaces = self.store()?.workspaces().all().await.map_err(ControlError::Store)?;
        for workspace in workspaces {
            for client in self.control().clients(&workspace.id)? {
                if (client.account.id == *of || client.acts_for() == Some(of))
                    && let Some(session) = client.row.session
                {
                    self.end_of_client(&workspace.id, session, by).await?;
                }
            }
        }
        Ok(())
    }

    async fn end_of_client(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        by: &By,
    ) -> Result<(), RunError> {
        match self.session_end(workspace, &session.to_text(), by).await {
            // The session has ended before.
            Err(RunError::SessionOver { .. } | RunError::UnknownSession(_)) => Ok(()),
            ended => ended,
        }
    }

    /// The active run of a client in this process. Reads only the memory.
    #[must_use]
    pub fn live_run_of(&self, client: &KnownClient) -> Option<Arc<RunView>> {
        if client.row.agent.is_none() {
            return self.shared.gateway.client_run(&client.row.id);
        }
        self.shared.gateway.runs().get(client.row.run?)
    }

    /// The run of a client, which begins if none is active. Callers at the same time get one run.
    /// `None` if the client may not connect any more.
    ///
    /// # Errors
    /// When the run cannot begin.
    pub async fn run_of(&self, client: &KnownClient) -> Result<Option<Arc<RunView>>, RunError> {
        if client.row.agent.is_none() {
            return self.begin_in_live(client).map(Some);
        }
        let (runs, workspace) = (self.clone(), client.row.workspace.clone());
        let id = client.row.id.clone();
        // The task completes also if the caller disconnects: other callers wait for the run.
        let begun = self.control().spawn(async move { runs.begun_of(&workspace, &id).await }).await;
        let begun = begun.unwrap_or_else(|error| Err(ControlError::Bug(error).into()));
        if let Ok(Some(run)) = &begun
            && client.connection.is_some()
        {
            self.end_with(client, run);
        }
        begun
    }

    async fn begun_of(
        &self,
        workspace: &WorkspaceId,
        id: &McpClientId,
    ) -> Result<Option<Arc<RunView>>, RunError> {
        let _turn = self.shared.clients.take(id).await;
        let Some(client) = self.live_client(workspace, id)? else { return Ok(None) };
        if let Some(run) = self.again_of(&client).await? {
            return Ok(Some(run));
        }
        let sealed = self.store()?.mcp_clients().sealed(workspace, id).await;
        let Some(sealed) = sealed.map_err(ControlError::Store)? else { return Ok(None) };
        let opened = self.vault()?.open_document(workspace, &place(id), &sealed).await;
        let asked: Map<String, Value> =
            serde_json::from_str(opened.map_err(ControlError::from)?.expose())
                .map_err(|error| RunError::Malformed(error.to_string()))?;
        let created = self.next_of(&client, asked).await?;
        let (session, run) = (created.row.session, created.row.id);
        if self.control().client_bind(&client, session, run).await? {
            return Ok(Some(created.run));
        }
        // The client was revoked meanwhile, or another daemon has created a run for it.
        let by = By::system();
        match client.row.session == Some(session) {
            true => _ = self.end_stored(workspace, run, RunEnd::Ended, by, None).await?,
            false => self.end_of_client(workspace, session, &by).await?,
        }
        match self.live_client(workspace, id)? {
            Some(client) => self.again_of(&client).await,
            None => Ok(None),
        }
    }

    /// A client as this daemon knows it now, if the client may connect.
    fn live_client(
        &self,
        workspace: &WorkspaceId,
        id: &McpClientId,
    ) -> Result<Option<Arc<KnownClient>>, RunError> {
        match self.control().client(workspace, id.as_str()) {
            Ok(client) => Ok(Some(client).filter(|client| client.is_live(SystemTime::now()))),
            // The client's workspace is deleted, or is about to be.
            Err(ControlError::Access(AccessError::UnknownClient(_))) => Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The last run of a client, if that run has not ended.
    async fn again_of(&self, client: &KnownClient) -> Result<Option<Arc<RunView>>, RunError> {
        match client.row.run {
            Some(id) => self.restart_by_id(id).await,
            None => Ok(None),
        }
    }

    /// A run in the active session of a client, or else in a new one.
    async fn next_of(
        &self,
        client: &KnownClient,
        mut asked: Map<String, Value>,
    ) -> Result<crate::Created, RunError> {
        let workspace = &client.row.workspace;
        if let Some(end) = client.row.expires_at {
            let left = end.duration_since(SystemTime::now()).unwrap_or_default();
            let left = left.clamp(Duration::from_secs(1), LIFE);
            asked.insert("expires_in".to_owned(), json!(left.as_secs()));
        }
        // The human who consented at the door drives the run.
        let by = || Creator::Member(client.account.actor(), client.acts_for().cloned());
        if let Some(session) = client.row.session {
            self.check_goes_on(workspace, session).await?;
            let mut again = asked.clone();
            again.remove("params");
            again.remove("builtin");
            again.insert("type".to_owned(), json!("resume_session"));
            again.insert("session_id".to_owned(), json!(session.to_text()));
            match self.create(workspace, &Value::from(again).to_string(), by()).await {
                // The session may have been suspended meanwhile: then no run begins in a new
                // session.
                Err(RunError::SessionOver { .. } | RunError::UnknownSession(_)) => {
                    self.check_goes_on(workspace, session).await?;
                }
                created => return created,
            }
        }
        self.create(workspace, &Value::from(asked).to_string(), by()).await
    }

    /// Refuses a suspended session: a caller with permission resumes it, and a client's call does
    /// not.
    async fn check_goes_on(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
    ) -> Result<(), RunError> {
        match self.suspended(workspace, session).await? {
            Some(_) => Err(RunError::Suspended(session)),
            None => Ok(()),
        }
    }

    /// Makes all checks of a creation that come before servers are started.
    async fn check(
        &self,
        workspace: &WorkspaceId,
        text: String,
        by: Creator,
    ) -> Result<(), RunError> {
        let request = RunRequest::parse(text.as_bytes()).map_err(RunError::Refused)?.value;
        let requested = self.requested(workspace.clone(), request, text, by).await?;
        self.resolve(&requested).await.map(drop)
    }
}

/// The place to which the vault binds the sealed request of a client's runs.
fn place(id: &McpClientId) -> String {
    format!("client {id}")
}
