//! MCP clients of a workspace: registers, shows and revokes them.

use std::sync::Arc;

use http::{Method, StatusCode};
use narthex_control::{CreatedClient, KnownClient};
use narthex_model::{ErrorKind, WorkspaceId};
use narthex_runs::SeenClient;
use serde_json::Value;

use super::{Answered, Asked, access::created, ok};
use crate::{
    body::RequestBody,
    problem::Problem,
    respond,
    routes::Target,
    shapes::{ClientEntry, McpClient, McpClientMade},
};

impl Asked<'_> {
    /// Lists the clients of a workspace page by page, registers one, or handles one of them.
    pub(super) async fn of_clients(&self, body: RequestBody) -> Answered {
        match self.parts.method {
            _ if matches!(self.target, Target::Client) => self.mcp_client().await,
            Method::POST => self.register_client(body).await,
            _ => {
                let workspace = self.workspace()?;
                let all = self.control()?.clients(&workspace)?;
                let all = self.known_runs()?.seen_clients(&workspace, all).await?;
                self.page(all, |one| one.known.row.id.as_str(), client)
            }
        }
    }

    /// Shows or revokes one client.
    async fn mcp_client(&self) -> Answered {
        self.query(&[])?;
        let (here, id) = (self.workspace()?, self.segment(1));
        if self.parts.method == Method::DELETE {
            self.known_runs()?.client_revoke(&here, &id, &self.by()).await?;
            return Ok(respond::empty(StatusCode::NO_CONTENT));
        }
        let known = self.control()?.client(&here, &id)?;
        Ok(ok(&self.shown_client(&here, known).await?))
    }

    async fn shown_client(
        &self,
        workspace: &WorkspaceId,
        known: Arc<KnownClient>,
    ) -> Result<McpClient, Problem> {
        let id = known.row.id.clone();
        let seen = self.known_runs()?.seen_clients(workspace, vec![known]).await?;
        seen.first()
            .map(client)
            .ok_or_else(|| Problem::new(ErrorKind::NotFound, format!("there is no client `{id}`")))
    }

    async fn register_client(&self, body: RequestBody) -> Answered {
        self.query(&[])?;
        let (runs, here) = (self.known_runs()?, self.workspace()?);
        let text = self.entry(body, &[]).await?;
        // Such a client sees the live configuration, as the holder of the daemon's own token does.
        let sent: Value = serde_json::from_str(&text).unwrap_or_default();
        if sent.get("profile").is_some() && !self.principal.is_operator() {
            let text = "only an operator may register a client for a profile; ask an operator, or \
                        name an agent";
            return Err(Problem::new(ErrorKind::Denied, text));
        }
        let made = runs.client_register(&here, &text, &self.by()).await?;
        let CreatedClient { token, known } = made;
        let id = known.row.id.clone();
        let entry = ClientEntry::new(&self.endpoint(), token.expose());
        let shown = McpClientMade {
            known: self.shown_client(&here, known).await?,
            token: token.expose().to_owned(),
            servers: [("narthex", entry)].into(),
        };
        let place = format!("/api/workspaces/{here}/mcp-clients/{id}");
        Ok(created(&shown, &place))
    }
}

fn client(client: &SeenClient) -> McpClient {
    let SeenClient { known, is_live, closed } = client;
    let row = &known.row;
    McpClient {
        id: (&row.id).into(),
        client: (&known.account.name).into(),
        agent_name: row.agent.as_ref().map(Into::into),
        profile: row.profile.as_ref().map(Into::into),
        acts_for: known.acts_for().map(Into::into),
        program: known
            .connection
            .as_ref()
            .map(|connection| connection.consent.client_id.as_str().to_owned()),
        origins: row.origins.iter().copied().map(Into::into).collect(),
        is_live: *is_live,
        closed_because: closed.map(Into::into),
        session_id: row.session.map(|id| id.to_text().into()),
        run_id: row.run.map(|id| id.to_text().into()),
        created_at: row.created_at.into(),
        created_by: row.created_by.clone(),
        expires_at: row.expires_at.map(Into::into),
        revoked_at: row.revoked_at.map(Into::into),
    }
}
