//! Reads the audit: pages of events, chains, and settings.

use std::time::{SystemTime, UNIX_EPOCH};

use super::{Audit, AuditChain, AuditRow, number};
use crate::{
    StatementError,
    objects::{ms, time},
    statement::{Row, Statement, Value},
};

macro_rules! page {
    ($name:literal, $of:literal, $beyond:literal, $order:literal) => {
        Statement {
            name: $name,
            sql: concat!(
                "SELECT workspace, writer, seq, happened_at, kind, actor, resource, run, document ",
                "FROM audit_events WHERE ",
                $of,
                " AND ($2 = '' OR actor = $2) AND ($3 = '' OR resource = $3) ",
                "AND substr(kind, 1, length($5)) = $5 ",
                "AND happened_at >= $6 AND happened_at < $7 AND (happened_at ",
                $beyond,
                " $8 OR (happened_at = $8 AND (writer ",
                $beyond,
                " $9 OR (writer = $9 AND seq ",
                $beyond,
                " $10)))) ORDER BY happened_at ",
                $order,
                ", writer ",
                $order,
                ", seq ",
                $order,
                " LIMIT $11"
            ),
        }
    };
}

const OLDER: Statement = page!("audit.older", "workspace = $1 AND $4 = ''", "<", "DESC");
const NEWER: Statement = page!("audit.newer", "workspace = $1 AND $4 = ''", ">", "ASC");
/// The events of one run, by the index that begins with the run. An expression about the workspace
/// is no part of an index: with the column itself, SQLite reads the events of all runs by time.
pub(in crate::objects) const OLDER_OF_RUN: Statement =
    page!("audit.older_of_run", "run = $4 AND workspace || '' = $1", "<", "DESC");
pub(in crate::objects) const NEWER_OF_RUN: Statement =
    page!("audit.newer_of_run", "run = $4 AND workspace || '' = $1", ">", "ASC");
const CHAIN: Statement = Statement {
    name: "audit.chain",
    sql: "SELECT workspace, writer, base_seq, base_hash, head_seq, head_hash, key_id, seal \
          FROM audit_chains WHERE workspace = $1 AND writer = $2",
};
const CHAINS: Statement = Statement {
    name: "audit.chains",
    sql: "SELECT workspace, writer, base_seq, base_hash, head_seq, head_hash, key_id, seal \
          FROM audit_chains WHERE workspace = $1 ORDER BY writer",
};
const OWNERS: Statement =
    Statement { name: "audit.owners", sql: "SELECT DISTINCT workspace FROM audit_chains" };
const OF_CHAIN: Statement = Statement {
    name: "audit.of_chain",
    sql: "SELECT workspace, writer, seq, happened_at, kind, actor, resource, run, document \
          FROM audit_events WHERE workspace = $1 AND writer = $2 AND seq > $3 AND seq <= $4 \
          ORDER BY seq LIMIT $5",
};
const FIRST_SINCE: Statement = Statement {
    name: "audit.first_since",
    sql: "SELECT COALESCE(MIN(seq), 0) AS seq FROM audit_events \
          WHERE workspace = $1 AND writer = $2 AND happened_at >= $3",
};
const NTH_NEWEST: Statement = Statement {
    name: "audit.nth_newest",
    sql: "SELECT happened_at FROM audit_events WHERE workspace = $1 \
          ORDER BY happened_at DESC LIMIT 1 OFFSET $2",
};
const SETTINGS: Statement = Statement {
    name: "audit.settings",
    sql: "SELECT kept_days, kept_events FROM audit_settings WHERE workspace = $1",
};
const SET: Statement = Statement {
    name: "audit.set",
    sql: "INSERT INTO audit_settings (workspace, kept_days, kept_events) VALUES ($1, $2, $3) \
          ON CONFLICT (workspace) DO UPDATE \
          SET kept_days = excluded.kept_days, kept_events = excluded.kept_events",
};

/// Selects events. An empty text matches all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditFilter<'f> {
    /// The workspace; an empty text selects the installation.
    pub workspace: &'f str,
    /// The actor.
    pub actor: &'f str,
    /// The resource that the actor acted on.
    pub resource: &'f str,
    /// The run.
    pub run: &'f str,
    /// The beginning of the event's kind.
    pub kind: &'f str,
    /// The earliest time, inclusive.
    pub since: SystemTime,
    /// The latest time, exclusive.
    pub until: Option<SystemTime>,
}

/// The position of an event among those of a workspace, by time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPlace {
    /// Time of the event.
    pub happened_at: SystemTime,
    /// The writer of the event.
    pub writer: String,
    /// Number of the event in the writer's chain.
    pub seq: u64,
}

/// Retention of a workspace's events; 0 stands for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditSettings {
    /// Maximum age in days.
    pub kept_days: u64,
    /// Maximum number of events.
    pub kept_events: u64,
}

impl Audit<'_> {
    /// The newest events, or those before a place; the newest first.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn older(
        &self,
        filter: &AuditFilter<'_>,
        before: Option<&AuditPlace>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StatementError> {
        let newest =
            AuditPlace { happened_at: SystemTime::now(), writer: String::new(), seq: u64::MAX };
        let mut values = filter.values();
        let place = before.unwrap_or(&newest);
        let at = if before.is_some() { ms(place.happened_at) } else { i64::MAX };
        values.extend([Value::Integer(at), Value::Text(&place.writer), number(place.seq)]);
        let statement = if filter.run.is_empty() { OLDER } else { OLDER_OF_RUN };
        self.page(statement, values, limit).await
    }

    /// The oldest events, or those after a place; the oldest first.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn newer(
        &self,
        filter: &AuditFilter<'_>,
        after: Option<&AuditPlace>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StatementError> {
        let mut values = filter.values();
        let at = after.map_or(-1, |place| ms(place.happened_at));
        let writer = after.map_or("", |place| &place.writer);
        values.extend([Value::Integer(at), Value::Text(writer)]);
        values.push(number(after.map_or(0, |place| place.seq)));
        let statement = if filter.run.is_empty() { NEWER } else { NEWER_OF_RUN };
        self.page(statement, values, limit).await
    }

    async fn page(
        &self,
        statement: Statement,
        mut values: Vec<Value<'_>>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StatementError> {
        values.push(Value::Integer(limit.into()));
        let rows = self.database.read(statement, &values).await?;
        rows.iter().map(row).collect()
    }

    /// Returns the ends of a writer's chain.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn chain(
        &self,
        workspace: &str,
        writer: &str,
    ) -> Result<Option<AuditChain>, StatementError> {
        let values = [Value::Text(workspace), Value::Text(writer)];
        let rows = self.database.read(CHAIN, &values).await?;
        rows.first().map(chain).transpose()
    }

    /// All chains of a workspace.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn chains(&self, workspace: &str) -> Result<Vec<AuditChain>, StatementError> {
        let rows = self.database.read(CHAINS, &[Value::Text(workspace)]).await?;
        rows.iter().map(chain).collect()
    }

    /// Returns the owners of chains: workspaces, and the empty text for the installation.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn owners(&self) -> Result<Vec<String>, StatementError> {
        let rows = self.database.read(OWNERS, &[]).await?;
        rows.iter().map(|row| row.text("workspace")).collect()
    }

    /// Events of a chain with numbers above `after` and up to `to`, in their order.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn of_chain(
        &self,
        chain: &AuditChain,
        (after, to): (u64, u64),
        limit: u32,
    ) -> Result<Vec<AuditRow>, StatementError> {
        let values = [
            Value::Text(&chain.workspace),
            Value::Text(&chain.writer),
            number(after),
            number(to),
            Value::Integer(limit.into()),
        ];
        let rows = self.database.read(OF_CHAIN, &values).await?;
        rows.iter().map(row).collect()
    }

    /// Number of a chain's first event at or after this time; `None` if there is none.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn first_since(
        &self,
        chain: &AuditChain,
        since: SystemTime,
    ) -> Result<Option<u64>, StatementError> {
        let place = [Value::Text(&chain.workspace), Value::Text(&chain.writer)];
        let values = [place[0], place[1], Value::Integer(ms(since))];
        let rows = self.database.read(FIRST_SINCE, &values).await?;
        let seq = rows.first().map(|row| whole(row, "seq")).transpose()?;
        Ok(seq.filter(|seq| *seq > 0))
    }

    /// Time of the event of a workspace that has `count` newer ones; `None` if there are not so
    /// many.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn nth_newest(
        &self,
        workspace: &str,
        count: u64,
    ) -> Result<Option<SystemTime>, StatementError> {
        let rows = self.database.read(NTH_NEWEST, &[Value::Text(workspace), number(count)]).await?;
        rows.first().map(|row| time(row, "happened_at")).transpose()
    }

    /// Returns the retention of a workspace's events.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn settings(&self, workspace: &str) -> Result<AuditSettings, StatementError> {
        let rows = self.database.read(SETTINGS, &[Value::Text(workspace)]).await?;
        let Some(row) = rows.first() else { return Ok(AuditSettings::default()) };
        let (kept_days, kept_events) = (whole(row, "kept_days")?, whole(row, "kept_events")?);
        Ok(AuditSettings { kept_days, kept_events })
    }

    /// Changes the retention of a workspace's events.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn set(
        &self,
        workspace: &str,
        settings: AuditSettings,
    ) -> Result<(), StatementError> {
        let AuditSettings { kept_days, kept_events } = settings;
        let values = [Value::Text(workspace), number(kept_days), number(kept_events)];
        self.database.write(SET, &values).await
    }
}

impl AuditFilter<'_> {
    fn values(&self) -> Vec<Value<'_>> {
        let Self { workspace, actor, resource, run, kind, since, until } = self;
        vec![
            Value::Text(workspace),
            Value::Text(actor),
            Value::Text(resource),
            Value::Text(run),
            Value::Text(kind),
            Value::Integer(ms((*since).max(UNIX_EPOCH))),
            Value::Integer(until.map_or(i64::MAX, ms)),
        ]
    }
}

fn row(row: &Row) -> Result<AuditRow, StatementError> {
    Ok(AuditRow {
        workspace: row.text("workspace")?,
        writer: row.text("writer")?,
        seq: whole(row, "seq")?,
        happened_at: time(row, "happened_at")?,
        kind: row.text("kind")?,
        actor: row.text("actor")?,
        resource: row.text("resource")?,
        run: row.text("run")?,
        document: row.text("document")?,
    })
}

fn chain(row: &Row) -> Result<AuditChain, StatementError> {
    Ok(AuditChain {
        workspace: row.text("workspace")?,
        writer: row.text("writer")?,
        base_seq: whole(row, "base_seq")?,
        base_hash: row.text("base_hash")?,
        head_seq: whole(row, "head_seq")?,
        head_hash: row.text("head_hash")?,
        key_id: row.text("key_id")?,
        seal: row.text("seal")?,
    })
}

fn whole(row: &Row, column: &'static str) -> Result<u64, StatementError> {
    u64::try_from(row.integer(column)?).map_err(|_negative| row.damaged())
}
