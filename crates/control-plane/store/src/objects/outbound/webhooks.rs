//! Webhooks, their positions in the events, and the outcomes of their deliveries.

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
/// Gives an event up only if the webhook is the one that was tried: a changed webhook gets the
/// event again.
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

/// A stored webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookRow {
    pub workspace: WorkspaceId,
    pub name: ChannelName,
    /// The secret with the address of the receiver.
    pub url: SecretName,
    /// The secret that signs the events.
    pub signing_key: SecretName,
    /// The kinds of events that are sent.
    pub kinds: Vec<String>,
    /// Number of the workspace's last event that was delivered or skipped.
    pub position: u64,
    /// Number of attempts to deliver the next event.
    pub attempts: u32,
    /// Time of the next attempt; 0 for now.
    pub due_at: SystemTime,
    pub updated_at: SystemTime,
    pub updated_by: String,
}

/// A webhook to be stored.
#[derive(Debug, Clone, Copy)]
pub struct NewWebhook<'w> {
    pub workspace: &'w WorkspaceId,
    pub name: &'w ChannelName,
    pub url: &'w SecretName,
    pub signing_key: &'w SecretName,
    pub kinds: &'w [&'w str],
    /// Position at which a new webhook starts.
    pub position: u64,
    pub by: &'w str,
}

/// The outcome of one event's delivery.
#[derive(Debug, Clone, Copy)]
pub struct Told<'t> {
    /// Number of the event in the workspace.
    pub number: u64,
    pub kind: &'t str,
    pub outcome: &'t str,
    pub attempts: u32,
    /// The reason why the event did not arrive; empty if it did.
    pub detail: &'t str,
}

/// The stored outcome of one event's delivery.
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

    /// All webhooks of a workspace, in the order of their names.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn all(&self, workspace: &WorkspaceId) -> Result<Vec<WebhookRow>, StatementError> {
        let rows = self.database.read(ALL, &[Value::Text(workspace.as_str())]).await?;
        let mut all: Vec<_> = rows.iter().map(webhook).collect::<Result<_, _>>()?;
        // Sorted here, since databases order texts in different ways.
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// The present state of the webhook of this name, if it exists.
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

    /// Stores a webhook. It replaces the webhook of its name, and keeps that position.
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

    /// Removes a webhook. Returns `false` if it does not exist.
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

    /// Claims a webhook, so that no other daemon delivers to it until `until`. Returns `false` if
    /// another daemon has the claim or has delivered, or the webhook was changed meanwhile.
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

    /// Moves a webhook past the event of this number, and stores the outcome of the event, if it
    /// was sent. Returns `false` if another daemon was faster.
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

    /// Moves a webhook past an event that could not be delivered. Returns `false`, and the event is
    /// still to be sent, if another daemon was faster, or the webhook was changed meanwhile: its
    /// new settings are untried.
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

    /// Postpones the next event of a webhook. Returns `false` if another daemon was faster, or the
    /// webhook was changed meanwhile: an attempt with the new settings may work at once.
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

    /// The outcomes of the newest events before the number `before`.
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
