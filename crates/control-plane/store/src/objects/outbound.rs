//! Channels that agents post messages to, and webhooks that report decisions of humans.

mod webhooks;

use std::time::SystemTime;

use narthex_model::{ChannelName, SecretName, WorkspaceId};

pub use webhooks::{DeliveryRow, NewWebhook, Told, WebhookRow, Webhooks};

use super::{id, now_ms, time};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

const ALL: Statement = Statement {
    name: "channels.all",
    sql: "SELECT name, provider, url, signing_key, updated_at, updated_by FROM channels \
          WHERE workspace = $1 ORDER BY name",
};
const FIND: Statement = Statement {
    name: "channels.find",
    sql: "SELECT name, provider, url, signing_key, updated_at, updated_by FROM channels \
          WHERE workspace = $1 AND name = $2",
};
const SET: Statement = Statement {
    name: "channels.set",
    sql: "INSERT INTO channels (workspace, name, provider, url, signing_key, updated_at, \
          updated_by) VALUES ($1, $2, $3, $4, $5, $6, $7) \
          ON CONFLICT (workspace, name) DO UPDATE SET provider = $3, url = $4, signing_key = $5, \
          updated_at = $6, updated_by = $7",
};
const DELETE: Statement = Statement {
    name: "channels.delete",
    sql: "DELETE FROM channels WHERE workspace = $1 AND name = $2",
};

/// A stored channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelRow {
    pub name: ChannelName,
    /// The provider that carries its messages.
    pub provider: String,
    /// The secret with the address of its messages, if the provider needs an address.
    pub url: Option<SecretName>,
    /// The secret that signs its messages, if they are signed.
    pub signing_key: Option<SecretName>,
    /// Time of the last write, and its principal. Ignored when the channel is stored.
    pub updated_at: SystemTime,
    pub updated_by: String,
}

/// Access to channels.
#[derive(Debug, Clone, Copy)]
pub struct Channels<'a> {
    database: &'a Database,
}

impl<'a> Channels<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// All channels of a workspace, in the order of their names.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn all(&self, workspace: &WorkspaceId) -> Result<Vec<ChannelRow>, StatementError> {
        let rows = self.database.read(ALL, &[Value::Text(workspace.as_str())]).await?;
        let mut all: Vec<_> = rows.iter().map(channel).collect::<Result<_, _>>()?;
        // Sorted here, since databases order texts in different ways.
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// The channel of this name, if it exists.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(
        &self,
        workspace: &WorkspaceId,
        name: &ChannelName,
    ) -> Result<Option<ChannelRow>, StatementError> {
        let rows = self.database.read(FIND, &place(workspace, name)).await?;
        rows.first().map(channel).transpose()
    }

    /// Stores a channel, and replaces the channel of its name.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such workspace, or when the statement fails.
    pub async fn set(
        &self,
        workspace: &WorkspaceId,
        row: &ChannelRow,
        by: &str,
    ) -> Result<(), StatementError> {
        let mut values = place(workspace, &row.name);
        values.push(Value::Text(&row.provider));
        values.extend([named(row.url.as_ref()), named(row.signing_key.as_ref())]);
        values.extend([Value::Integer(now_ms()), Value::Text(by)]);
        self.database.write(SET, &values).await
    }

    /// Removes a channel. Returns `false` if it does not exist.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn delete(
        &self,
        workspace: &WorkspaceId,
        name: &ChannelName,
    ) -> Result<bool, StatementError> {
        self.database.write_steps(&[Step::must_change(DELETE, place(workspace, name))]).await
    }
}

fn place<'v>(workspace: &'v WorkspaceId, name: &'v ChannelName) -> Vec<Value<'v>> {
    vec![Value::Text(workspace.as_str()), Value::Text(name.as_str())]
}

/// The name of a secret as a value; the empty text if there is none.
fn named(name: Option<&SecretName>) -> Value<'_> {
    Value::Text(name.map_or("", SecretName::as_str))
}

fn maybe_secret(row: &Row, column: &'static str) -> Result<Option<SecretName>, StatementError> {
    match &*row.text(column)? {
        "" => Ok(None),
        text => SecretName::new(text).map(Some).map_err(|_invalid| row.damaged()),
    }
}

fn secret(row: &Row, column: &'static str) -> Result<SecretName, StatementError> {
    maybe_secret(row, column)?.ok_or_else(|| row.damaged())
}

fn name(text: &str) -> Option<ChannelName> {
    ChannelName::new(text).ok()
}

fn channel(row: &Row) -> Result<ChannelRow, StatementError> {
    Ok(ChannelRow {
        name: id(row, "name", name)?,
        provider: row.text("provider")?,
        url: maybe_secret(row, "url")?,
        signing_key: maybe_secret(row, "signing_key")?,
        updated_at: time(row, "updated_at")?,
        updated_by: row.text("updated_by")?,
    })
}
