//! Webhooks, how far each has come, and the outcomes of its deliveries.

use std::time::SystemTime;

use narthex_model::{ChannelName, SecretName, WorkspaceId};

use super::super::{id, ms, now_ms, time, workspace};
use super::{name, place, secret};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

const ALL: Statement = Statement {
    name: "webhooks.all",
    sql: "SELECT workspace, name, url, signing_key, kinds, position, attempts, due_at, updated_at, \
          updated_by FROM webhooks WHERE workspace = $1",
};
const FIND: Statement = Statement {
    name: "webhooks.find",
    sql: "SELECT workspace, name, url, signing_key, kinds, position, attempts, due_at, updated_at, \
          updated_by FROM webhooks WHERE workspace = $1 AND name = $2",
};
const DUE: Statement = Statement {
    name: "webhooks.due",
    sql: "SELECT webhooks.workspace, name, url, signing_key, kinds, position, attempts, due_at, \
          updated_at, updated_by FROM webhooks \
          JOIN event_totals ON event_totals.workspace = webhooks.workspace \
          WHERE due_at <= $1 AND position < last_number",
};
const SET: Statement = Statement {
    name: "webhooks.set",
    sql: "INSERT INTO webhooks (workspace, name, url, signing_key, kinds, position, attempts, \
          due_at, updated_at, updated_by) VALUES ($1, $2, $3, $4, $5, $6, 0, 0, $7, $8) \
          ON CONFLICT (workspace, name) DO UPDATE SET url = $3, signing_key = $4, kinds = $5, \
          attempts = 0, due_at = 0, updated_at = $7, updated_by = $8",
};
const DELETE: Statement = Statement {
    name: "webhooks.delete",
    sql: "DELETE FROM webhooks WHERE workspace = $1 AND name = $2",
};
const CLAIM: Statement = Statement {
    name: "webhooks.claim",
    sql: "UPDATE webhooks SET due_at = $8 \
          WHERE workspace = $1 AND name = $2 AND position = $3 AND due_at = $4 AND url = $5 \
          AND signing_key = $6 AND kinds = $7",
};
const MOVE: Statement = Statement {
    name: "webhooks.move",
    sql: "UPDATE webhooks SET position = $4, attempts = 0, due_at = 0 \
          WHERE workspace = $1 AND name = $2 AND position = $3",
};
/// Only as it was tried: one that is set anew is tried anew.
const GIVE_UP: Statement = Statement {
    name: "webhooks.give_up",
    sql: "UPDATE webhooks SET position = $7, attempts = 0, due_at = 0 \
          WHERE workspace = $1 AND name = $2 AND position = $3 AND url = $4 \
          AND signing_key = $5 AND kinds = $6 AND attempts = $8 AND updated_at = $9",
};
const PUT_OFF: Statement = Statement {
    name: "webhooks.put_off",
    sql: "UPDATE webhooks SET attempts = $7, due_at = $8 \
          WHERE workspace = $1 AND name = $2 AND position = $3 AND url = $4 \
          AND signing_key = $5 AND kinds = $6",
};
const LOG: Statement = Statement {
    name: "webhooks.log",
    sql: "INSERT INTO webhook_deliveries (workspace, webhook, number, kind, outcome, attempts, \
          detail, happened_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
};
const TRIM: Statement = Statement {
    name: "webhooks.trim",
    sql: "DELETE FROM webhook_deliveries WHERE workspace = $1 AND webhook = $2 AND number NOT IN \
          (SELECT number FROM webhook_deliveries WHERE workspace = $1 AND webhook = $2 \
          ORDER BY number DESC LIMIT $3)",
};
const DELIVERIES: Statement = Statement {
    name: "webhooks.deliveries",
    sql: "SELECT number, kind, outcome, attempts, detail, happened_at FROM webhook_deliveries \
          WHERE workspace = $1 AND webhook = $2 AND number < $3 ORDER BY number DESC LIMIT $4",
};
/// Most outcomes of one webhook that are stored.
const KEPT: i64 = 1000;

/// A webhook as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookRow {
    pub workspace: WorkspaceId,
    pub name: ChannelName,
    /// The secret with the address that events are sent to.
    pub url: SecretName,
    /// The secret that signs the events.
    pub signing_key: SecretName,
    /// The kinds of events that are sent.
    pub kinds: Vec<String>,
    /// The number of the last event of the workspace that it is done with.
    pub position: u64,
    /// Number of attempts to deliver the next event.
    pub attempts: u32,
    /// When that is tried again; 0 is now.
    pub due_at: SystemTime,
    pub updated_at: SystemTime,
    pub updated_by: String,
}

/// A webhook that is to be.
#[derive(Debug, Clone, Copy)]
pub struct NewWebhook<'w> {
    pub workspace: &'w WorkspaceId,
    pub name: &'w ChannelName,
    pub url: &'w SecretName,
    pub signing_key: &'w SecretName,
    pub kinds: &'w [&'w str],
    /// The position to begin at, if there is no webhook of its name.
    pub position: u64,
    pub by: &'w str,
}

/// The outcome of one event's delivery.
#[derive(Debug, Clone, Copy)]
pub struct Told<'t> {
    /// The event's number in the workspace.
    pub number: u64,
    pub kind: &'t str,
    pub outcome: &'t str,
    pub attempts: u32,
    /// The reason for which it did not arrive; empty if it did.
    pub detail: &'t str,
}

/// The outcome of one event's delivery, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRow {
    pub number: u64,
    pub kind: String,
    pub outcome: String,
    pub attempts: u32,
    pub detail: String,
    pub happened_at: SystemTime,
}

/// Access to webhooks.
#[derive(Debug, Clone, Copy)]
pub struct Webhooks<'a> {
    database: &'a Database,
}

impl<'a> Webhooks<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// All of a workspace, in the order of their names.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn all(&self, workspace: &WorkspaceId) -> Result<Vec<WebhookRow>, StatementError> {
        let rows = self.database.read(ALL, &[Value::Text(workspace.as_str())]).await?;
        let mut all: Vec<_> = rows.iter().map(webhook).collect::<Result<_, _>>()?;
        // Here, since databases differ in how they order texts.
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// One as it is now, or `None`.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(
        &self,
        workspace: &WorkspaceId,
        name: &ChannelName,
    ) -> Result<Option<WebhookRow>, StatementError> {
        let rows = self.database.read(FIND, &place(workspace, name)).await?;
        rows.first().map(webhook).transpose()
    }

    /// The webhooks of all workspaces that have events to deliver, and whose next attempt is due.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn due(&self, now: SystemTime) -> Result<Vec<WebhookRow>, StatementError> {
        let rows = self.database.read(DUE, &[Value::Integer(ms(now))]).await?;
        rows.iter().map(webhook).collect()
    }

    /// Stores a webhook, also in place of one of its name: the new one keeps the old position.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such workspace, or when the statement fails.
    pub async fn set(&self, new: NewWebhook<'_>) -> Result<(), StatementError> {
        let kinds = new.kinds.join(" ");
        let mut values = place(new.workspace, new.name);
        values.extend([
            Value::Text(new.url.as_str()),
            Value::Text(new.signing_key.as_str()),
            Value::Text(&kinds),
            Value::Integer(stored(new.position)),
            Value::Integer(now_ms()),
            Value::Text(new.by),
        ]);
        self.database.write(SET, &values).await
    }

    /// Removes one. `false` if there is none.
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

    /// Keeps other daemons from delivering to a webhook until `until`. `false` if another daemon
    /// does so, or has done so, or the webhook is set otherwise meanwhile.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn claim(&self, row: &WebhookRow, until: SystemTime) -> Result<bool, StatementError> {
        let kinds = row.kinds.join(" ");
        let mut values = at(row);
        values.push(Value::Integer(ms(row.due_at)));
        values.extend(set_to(row, &kinds));
        values.push(Value::Integer(ms(until)));
        self.database.write_steps(&[Step::must_change(CLAIM, values)]).await
    }

    /// Moves a webhook past the event of this number, and stores the outcome of that event, if it
    /// was sent. `false` if another daemon was faster.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn advance(
        &self,
        row: &WebhookRow,
        position: u64,
        told: Option<Told<'_>>,
    ) -> Result<bool, StatementError> {
        let mut values = at(row);
        values.push(Value::Integer(stored(position)));
        let mut steps = vec![Step::must_change(MOVE, values)];
        steps.extend(told.map(|told| log(row, told)).into_iter().flatten());
        self.database.write_steps(&steps).await
    }

    /// Moves a webhook past an event that did not arrive, however often it was tried. `false`, and
    /// the event is still to be sent, if another daemon was faster, or the webhook is set anew
    /// meanwhile: its new settings are untried.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn give_up(&self, row: &WebhookRow, told: Told<'_>) -> Result<bool, StatementError> {
        let kinds = row.kinds.join(" ");
        let mut values = at(row);
        values.extend(set_to(row, &kinds));
        values.extend([
            Value::Integer(stored(told.number)),
            Value::Integer(row.attempts.into()),
            Value::Integer(ms(row.updated_at)),
        ]);
        let [kept, trimmed] = log(row, told);
        self.database.write_steps(&[Step::must_change(GIVE_UP, values), kept, trimmed]).await
    }

    /// Puts off the next event of a webhook. `false` if another daemon was faster, or the webhook
    /// is set otherwise meanwhile: an attempt with the new settings may work at once.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn put_off(
        &self,
        row: &WebhookRow,
        attempts: u32,
        until: SystemTime,
    ) -> Result<bool, StatementError> {
        let kinds = row.kinds.join(" ");
        let mut values = at(row);
        values.extend(set_to(row, &kinds));
        values.extend([Value::Integer(attempts.into()), Value::Integer(ms(until))]);
        self.database.write_steps(&[Step::must_change(PUT_OFF, values)]).await
    }

    /// The outcomes of the newest events before the one of the number `before`.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn deliveries(
        &self,
        workspace: &WorkspaceId,
        name: &ChannelName,
        before: u64,
        limit: u32,
    ) -> Result<Vec<DeliveryRow>, StatementError> {
        let mut values = place(workspace, name);
        values.extend([Value::Integer(stored(before)), Value::Integer(limit.into())]);
        let rows = self.database.read(DELIVERIES, &values).await?;
        rows.iter().map(delivery).collect()
    }
}

/// A webhook, as far as it has come.
fn at(row: &WebhookRow) -> Vec<Value<'_>> {
    let mut values = place(&row.workspace, &row.name);
    values.push(Value::Integer(stored(row.position)));
    values
}

/// The webhook's address, signing key and kinds of events.
fn set_to<'r>(row: &'r WebhookRow, kinds: &'r str) -> [Value<'r>; 3] {
    [Value::Text(row.url.as_str()), Value::Text(row.signing_key.as_str()), Value::Text(kinds)]
}

/// The steps that store the outcome of an event, and remove the oldest ones beyond the limit.
fn log<'v>(row: &'v WebhookRow, told: Told<'v>) -> [Step<'v>; 2] {
    let Told { number, kind, outcome, attempts, detail } = told;
    let mut values = place(&row.workspace, &row.name);
    values.extend([
        Value::Integer(stored(number)),
        Value::Text(kind),
        Value::Text(outcome),
        Value::Integer(attempts.into()),
        Value::Text(detail),
        Value::Integer(now_ms()),
    ]);
    let mut kept = place(&row.workspace, &row.name);
    kept.push(Value::Integer(KEPT));
    [Step::new(LOG, values), Step::new(TRIM, kept)]
}

fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn count<T: TryFrom<i64>>(row: &Row, column: &'static str) -> Result<T, StatementError> {
    T::try_from(row.integer(column)?).map_err(|_unfit| row.damaged())
}

fn webhook(row: &Row) -> Result<WebhookRow, StatementError> {
    Ok(WebhookRow {
        workspace: workspace(row)?,
        name: id(row, "name", name)?,
        url: secret(row, "url")?,
        signing_key: secret(row, "signing_key")?,
        kinds: row.text("kinds")?.split_whitespace().map(str::to_owned).collect(),
        position: count(row, "position")?,
        attempts: count(row, "attempts")?,
        due_at: time(row, "due_at")?,
        updated_at: time(row, "updated_at")?,
        updated_by: row.text("updated_by")?,
    })
}

fn delivery(row: &Row) -> Result<DeliveryRow, StatementError> {
    Ok(DeliveryRow {
        number: count(row, "number")?,
        kind: row.text("kind")?,
        outcome: row.text("outcome")?,
        attempts: count(row, "attempts")?,
        detail: row.text("detail")?,
        happened_at: time(row, "happened_at")?,
    })
}
