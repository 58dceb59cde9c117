//! The clients as which narthex is registered at the authorization servers of others, sealed.

use narthex_model::WorkspaceId;

use super::now_ms;
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Statement, Value},
};

const FIND: Statement = Statement {
    name: "oauth_clients.find",
    sql: "SELECT sealed FROM oauth_clients \
          WHERE workspace = $1 AND issuer = $2 AND redirect_base = $3",
};
const ADD: Statement = Statement {
    name: "oauth_clients.add",
    sql: "INSERT INTO oauth_clients (workspace, issuer, redirect_base, sealed, created_at) \
          VALUES ($1, $2, $3, $4, $5) ON CONFLICT (workspace, issuer, redirect_base) DO NOTHING",
};
const REPLACE: Statement = Statement {
    name: "oauth_clients.replace",
    sql: "UPDATE oauth_clients SET sealed = $5, created_at = $6 \
          WHERE workspace = $1 AND issuer = $2 AND redirect_base = $3 AND sealed = $4",
};
const REMOVE: Statement = Statement {
    name: "oauth_clients.remove",
    sql: "DELETE FROM oauth_clients \
          WHERE workspace = $1 AND issuer = $2 AND redirect_base = $3",
};

/// The key of a client.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OAuthClientKey {
    pub workspace: WorkspaceId,
    /// The authorization server.
    pub issuer: String,
    /// The base of the redirect URIs.
    pub redirect_base: String,
}

/// Access to registered clients.
#[derive(Debug, Clone, Copy)]
pub struct OAuthClients<'a> {
    database: &'a Database,
}

impl OAuthClientKey {
    fn values(&self) -> [Value<'_>; 3] {
        [
            Value::Text(self.workspace.as_str()),
            Value::Text(&self.issuer),
            Value::Text(&self.redirect_base),
        ]
    }
}

impl<'a> OAuthClients<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// A client, sealed, if it exists.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(&self, key: &OAuthClientKey) -> Result<Option<String>, StatementError> {
        let rows = self.database.read(FIND, &key.values()).await?;
        rows.first().map(|row| row.text("sealed")).transpose()
    }

    /// Stores a new client. Returns `false` and changes nothing if its key has one.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such workspace, or when the statement fails.
    pub async fn add(&self, key: &OAuthClientKey, sealed: &str) -> Result<bool, StatementError> {
        let mut values = key.values().to_vec();
        values.extend([Value::Text(sealed), Value::Integer(now_ms())]);
        self.database.write_steps(&[Step::must_change(ADD, values)]).await
    }

    /// Stores a client in place of the one that was read. Returns `false` and changes nothing if
    /// that one is no longer stored.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn replace(
        &self,
        key: &OAuthClientKey,
        before: &str,
        sealed: &str,
    ) -> Result<bool, StatementError> {
        let mut values = key.values().to_vec();
        values.extend([Value::Text(before), Value::Text(sealed), Value::Integer(now_ms())]);
        self.database.write_steps(&[Step::must_change(REPLACE, values)]).await
    }

    /// Removes a client. Returns `false` if there is none.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn remove(&self, key: &OAuthClientKey) -> Result<bool, StatementError> {
        let values = key.values().to_vec();
        self.database.write_steps(&[Step::must_change(REMOVE, values)]).await
    }
}
