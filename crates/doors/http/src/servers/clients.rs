//! MCP clients of a workspace: registered, seen and revoked.

use std::{fmt, sync::Arc, time::SystemTime};

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body::Body;
use narthex_control::{CreatedClient, KnownClient};
use narthex_model::{RunId, SessionId, Timestamp, WorkspaceId};
use narthex_runs::{ClientClosed, SeenClient, client_entry};
use serde_json::{Value, json};

use super::{Answered, Asked, access::created, ok};
use crate::{problem::Problem, respond, routes::Target};

impl Asked<'_> {
    /// All clients of a workspace, page by page, a new one, or one of them.
    pub(super) async fn of_clients<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
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

    /// One client: shown, or revoked.
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
    ) -> Result<Value, Problem> {
        let seen = self.known_runs()?.seen_clients(workspace, vec![known]).await?;
        Ok(seen.first().map(client).unwrap_or_default())
    }

    async fn register_client<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        self.query(&[])?;
        let (runs, here) = (self.known_runs()?, self.workspace()?);
        let text = self.entry(body, &[]).await?;
        let made = runs.client_register(&here, &text, &self.by()).await?;
        let CreatedClient { token, known } = made;
        let id = known.row.id.clone();
        let mut shown = self.shown_client(&here, known).await?;
        shown["token"] = json!(token.expose());
        let entry = client_entry(&self.endpoint(), token.expose());
        shown["mcpServers"] = json!({ "narthex": entry });
        let place = format!("/api/workspaces/{here}/mcp-clients/{id}");
        Ok(created(&shown, &place))
    }
}

fn client(client: &SeenClient) -> Value {
    let SeenClient { known, is_live, closed } = client;
    let row = &known.row;
    json!({
        "id": row.id,
        "client": known.account.name,
        "agent_name": row.agent,
        "origins": row.origins,
        "is_live": is_live,
        "closed_because": closed.map(ClientClosed::as_str),
        "session_id": row.session.map(SessionId::to_text),
        "run_id": row.run.map(RunId::to_text),
        "created_at": time(row.created_at),
        "created_by": row.created_by,
        "expires_at": row.expires_at.map(time),
        "revoked_at": row.revoked_at.map(time),
    })
}

fn time(time: SystemTime) -> String {
    Timestamp::new(time).to_string()
}
