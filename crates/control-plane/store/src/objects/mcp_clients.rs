//! The registered MCP clients, with the hashes of their tokens.

use std::{collections::BTreeSet, time::SystemTime};

use narthex_model::{
    AgentName, ClientOrigin, McpClientId, PrincipalId, ProfileName, RunId, SessionId, WorkspaceId,
};

use super::{door, ms, now_ms, optional_time, principals, principals::CHANGED, time, workspace};
use crate::{
    DoorConnectionRow, StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

const CREATE: Statement = Statement {
    name: "mcp_clients.create",
    sql: "INSERT INTO mcp_clients (id, workspace, principal, hash, agent, sealed, origins, \
          session, run, created_at, created_by, expires_at, revoked_at, profile) \
          VALUES ($1, $2, $3, $4, $5, $6, $7, '', '', $8, $9, $10, 0, $11)",
};
const ALL: Statement = Statement {
    name: "mcp_clients.all",
    sql: "SELECT id, workspace, principal, hash, agent, origins, session, run, created_at, \
          created_by, expires_at, revoked_at, profile FROM mcp_clients",
};
const SEALED: Statement = Statement {
    name: "mcp_clients.sealed",
    sql: "SELECT sealed FROM mcp_clients WHERE workspace = $1 AND id = $2 AND revoked_at = 0",
};
const REVOKE: Statement = Statement {
    name: "mcp_clients.revoke",
    sql: "UPDATE mcp_clients SET revoked_at = $3, sealed = '' \
          WHERE workspace = $1 AND id = $2 AND revoked_at = 0",
};
const BIND: Statement = Statement {
    name: "mcp_clients.bind",
    sql: "UPDATE mcp_clients SET session = $4, run = $5 \
          WHERE workspace = $1 AND id = $2 AND run = $3 AND revoked_at = 0",
};

/// A client, without its token and its sealed data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpClientRow {
    pub id: McpClientId,
    pub workspace: WorkspaceId,
    /// The client's principal.
    pub principal: PrincipalId,
    /// SHA-256 of the client's token, in hexadecimal.
    pub hash: String,
    /// The agent of the client's runs; `None` for a client that sees the live configuration.
    pub agent: Option<AgentName>,
    /// The profile through which a client without an agent sees the live configuration; `None` for
    /// all of its servers.
    pub profile: Option<ProfileName>,
    /// The origins that the client may give for content.
    pub origins: BTreeSet<ClientOrigin>,
    /// The session of its runs; `None` before the first run.
    pub session: Option<SessionId>,
    /// The client's last run.
    pub run: Option<RunId>,
    pub created_at: SystemTime,
    pub created_by: String,
    pub expires_at: Option<SystemTime>,
    pub revoked_at: Option<SystemTime>,
}

/// Access to registered clients.
#[derive(Debug, Clone, Copy)]
pub struct McpClients<'a> {
    database: &'a Database,
}

impl<'a> McpClients<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// All clients of all workspaces, in no order.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn all(&self) -> Result<Vec<McpClientRow>, StatementError> {
        self.database.read(ALL, &[]).await?.iter().map(client).collect()
    }

    /// Stores a new client, with its sealed data. Ignores the session, the run and the revocation
    /// in the row.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such workspace or principal, or when a statement fails.
    pub async fn create(&self, row: &McpClientRow, sealed: &str) -> Result<(), StatementError> {
        self.create_with(row, sealed, None).await
    }

    /// Stores a new client to which a human has consented at the door, with the consent.
    ///
    /// # Errors
    /// The errors of [`McpClients::create`].
    pub async fn create_connected(
        &self,
        row: &McpClientRow,
        sealed: &str,
        connection: &DoorConnectionRow,
    ) -> Result<(), StatementError> {
        self.create_with(row, sealed, Some(connection)).await
    }

    async fn create_with(
        &self,
        row: &McpClientRow,
        sealed: &str,
        connection: Option<&DoorConnectionRow>,
    ) -> Result<(), StatementError> {
        let origins: Vec<_> = row.origins.iter().map(|origin| origin.as_str()).collect();
        let origins = origins.join(" ");
        let values = vec![
            Value::Text(row.id.as_str()),
            Value::Text(row.workspace.as_str()),
            Value::Text(row.principal.as_str()),
            Value::Text(&row.hash),
            Value::Text(row.agent.as_ref().map_or("", AgentName::as_str)),
            Value::Text(sealed),
            Value::Text(&origins),
            Value::Integer(ms(row.created_at)),
            Value::Text(&row.created_by),
            Value::Integer(row.expires_at.map_or(0, ms)),
            Value::Text(row.profile.as_ref().map_or("", ProfileName::as_str)),
        ];
        let mut steps = vec![Step::new(CREATE, values)];
        steps.extend(connection.map(door::connect));
        steps.push(Step::new(CHANGED, Vec::new()));
        self.database.write_steps(&steps).await.map(drop)
    }

    /// Returns the sealed data of a client; `None` if the client is unknown or revoked.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn sealed(
        &self,
        workspace: &WorkspaceId,
        id: &McpClientId,
    ) -> Result<Option<String>, StatementError> {
        let place = [Value::Text(workspace.as_str()), Value::Text(id.as_str())];
        let rows = self.database.read(SEALED, &place).await?;
        rows.first().map(|row| row.text("sealed")).transpose()
    }

    /// Revokes a client's token, and removes the sealed data. Returns `false` if no client with
    /// this id has a valid token.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn revoke(
        &self,
        workspace: &WorkspaceId,
        id: &McpClientId,
    ) -> Result<bool, StatementError> {
        let place = [Value::Text(workspace.as_str()), Value::Text(id.as_str())];
        let values = [&place[..], &[Value::Integer(now_ms())]].concat();
        let steps = [Step::must_change(REVOKE, values), Step::new(CHANGED, Vec::new())];
        self.database.write_steps(&steps).await
    }

    /// Gives a client this session and run in place of the run `before`. Returns `false` and
    /// changes nothing if the client has another run by now, or is revoked.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn bind(
        &self,
        workspace: &WorkspaceId,
        id: &McpClientId,
        before: Option<RunId>,
        (session, run): (SessionId, RunId),
    ) -> Result<bool, StatementError> {
        let before = before.map(RunId::to_text).unwrap_or_default();
        let (session, run) = (session.to_text(), run.to_text());
        let values = vec![
            Value::Text(workspace.as_str()),
            Value::Text(id.as_str()),
            Value::Text(&before),
            Value::Text(&session),
            Value::Text(&run),
        ];
        let steps = [Step::must_change(BIND, values), Step::new(CHANGED, Vec::new())];
        self.database.write_steps(&steps).await
    }
}

fn client(row: &Row) -> Result<McpClientRow, StatementError> {
    let optional = |column| row.text(column).map(|text| Some(text).filter(|text| !text.is_empty()));
    let origins = row.text("origins")?;
    let origins = origins.split_whitespace().map(ClientOrigin::parse);
    let session = optional("session")?.map(|text| SessionId::parse(&text));
    let run = optional("run")?.map(|text| RunId::parse(&text));
    let agent = optional("agent")?.map(|text| AgentName::new(&text));
    let profile = optional("profile")?.map(|text| ProfileName::new(&text));
    Ok(McpClientRow {
        id: McpClientId::new(&row.text("id")?).map_err(|_invalid| row.damaged())?,
        workspace: workspace(row)?,
        principal: principals::id(row, "principal")?,
        hash: row.text("hash")?,
        agent: agent.transpose().map_err(|_invalid| row.damaged())?,
        profile: profile.transpose().map_err(|_invalid| row.damaged())?,
        origins: origins.collect::<Option<_>>().ok_or_else(|| row.damaged())?,
        session: session.map(|id| id.ok_or_else(|| row.damaged())).transpose()?,
        run: run.map(|id| id.ok_or_else(|| row.damaged())).transpose()?,
        created_at: time(row, "created_at")?,
        created_by: row.text("created_by")?,
        expires_at: optional_time(row, "expires_at")?,
        revoked_at: optional_time(row, "revoked_at")?,
    })
}
