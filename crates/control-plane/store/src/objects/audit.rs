//! The audit's tables: events as written, the ends of their chains, and their retention. The audit
//! crate reads the events and verifies the chains.

mod reading;

use std::{sync::LazyLock, time::SystemTime};

pub use self::reading::{AuditFilter, AuditPlace, AuditSettings};
#[cfg(test)]
pub(super) use self::reading::{NEWER_OF_RUN, OLDER_OF_RUN};
use super::ms;
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Statement, Value},
};

const BEGIN: Statement = Statement {
    name: "audit.begin_chain",
    sql: "INSERT INTO audit_chains \
          (workspace, writer, base_seq, base_hash, head_seq, head_hash, key_id, seal) \
          VALUES ($1, $2, 0, '', 0, '', '', '') ON CONFLICT (workspace, writer) DO NOTHING",
};
const GROW: Statement = Statement {
    name: "audit.grow_chain",
    sql: "UPDATE audit_chains SET head_seq = $4, head_hash = $5, key_id = $6, seal = $7 \
          WHERE workspace = $1 AND writer = $2 AND head_seq = $3 AND base_seq = $8",
};
/// Numbers of events that one statement adds, the largest that fits first. Running a statement
/// takes longer than its work for one event.
const AT_ONCE: [usize; 3] = [64, 8, 1];
/// For SQLite, which looks for a numbered parameter among all that come before it.
static ADDING_TO_FILE: LazyLock<[String; 3]> =
    LazyLock::new(|| AT_ONCE.map(|rows| adding(rows, |_| "?".to_owned())));
/// For PostgreSQL, whose parameters all have numbers.
static ADDING_AT_SERVER: LazyLock<[String; 3]> =
    LazyLock::new(|| AT_ONCE.map(|rows| adding(rows, |at| format!("${at}"))));
const TRIM: Statement = Statement {
    name: "audit.trim_chain",
    sql: "UPDATE audit_chains SET base_seq = $5, base_hash = $6, key_id = $7, seal = $8 \
          WHERE workspace = $1 AND writer = $2 AND base_seq = $3 AND head_seq = $4",
};
const FORGET: Statement = Statement {
    name: "audit.forget",
    sql: "DELETE FROM audit_events WHERE workspace = $1 AND writer = $2 AND seq <= $3",
};
const RESEAL: Statement = Statement {
    name: "audit.reseal",
    sql: "UPDATE audit_chains SET key_id = $5, seal = $6 \
          WHERE workspace = $1 AND writer = $2 AND base_seq = $3 AND head_seq = $4",
};

/// Access to the audit. An empty workspace stands for the installation.
#[derive(Debug, Clone, Copy)]
pub struct Audit<'a> {
    database: &'a Database,
}

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// The workspace that owns the event; empty for the installation.
    pub workspace: String,
    /// The writer of the event.
    pub writer: String,
    /// Number of the event in the writer's chain.
    pub seq: u64,
    /// Time of the event, to the millisecond.
    pub happened_at: SystemTime,
    /// The event's kind.
    pub kind: String,
    /// The actor.
    pub actor: String,
    /// The resource that the actor acted on; may be empty.
    pub resource: String,
    /// The run of the event; may be empty.
    pub run: String,
    /// The event as written.
    pub document: String,
}

/// The two ends of a writer's chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditChain {
    /// The workspace that owns the chain; empty for the installation.
    pub workspace: String,
    /// The writer of the chain.
    pub writer: String,
    /// Number of the last event that was removed by retention; 0 if none was.
    pub base_seq: u64,
    /// Hash of that event.
    pub base_hash: String,
    /// Number of the last event.
    pub head_seq: u64,
    /// Hash of the last event.
    pub head_hash: String,
    /// Id of the key that seals these ends; empty without a seal.
    pub key_id: String,
    /// The seal of the ends by this key.
    pub seal: String,
}

impl<'a> Audit<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Adds events and moves the ends of their chains. `chains` has each chain as it was read, and
    /// as it is to be. Returns `false` and changes nothing if one of them has changed since. An
    /// event that exists already does not change.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn append(
        &self,
        chains: &[(AuditChain, AuditChain)],
        rows: &[AuditRow],
    ) -> Result<bool, StatementError> {
        let mut steps = Vec::new();
        for (before, now) in chains {
            steps.push(Step::new(BEGIN, place(before).to_vec()));
            let mut values = place(before).to_vec();
            values.push(number(before.head_seq));
            values.extend([number(now.head_seq), Value::Text(&now.head_hash)]);
            values.extend([Value::Text(&now.key_id), Value::Text(&now.seal)]);
            values.push(number(before.base_seq));
            steps.push(Step::must_change(GROW, values));
        }
        let adding = match self.database {
            Database::Sqlite(_) => &*ADDING_TO_FILE,
            Database::Postgres(_) => &*ADDING_AT_SERVER,
        };
        let mut left = rows;
        for (most, sql) in AT_ONCE.into_iter().zip(adding) {
            let add = Statement { name: "audit.add", sql };
            let whole = left.chunks_exact(most);
            left = whole.remainder();
            steps.extend(whole.map(|rows| Step::new(add, rows.iter().flat_map(values).collect())));
        }
        self.database.write_steps(&steps).await
    }

    /// Removes the events up to the new start of a chain. Returns `false` and changes nothing if
    /// the chain has changed since it was read.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn trim(
        &self,
        before: &AuditChain,
        now: &AuditChain,
    ) -> Result<bool, StatementError> {
        let mut values = place(before).to_vec();
        values.extend([number(before.base_seq), number(before.head_seq)]);
        values.extend([number(now.base_seq), Value::Text(&now.base_hash)]);
        values.extend([Value::Text(&now.key_id), Value::Text(&now.seal)]);
        let mut forgotten = place(now).to_vec();
        forgotten.push(number(now.base_seq));
        let steps = [Step::must_change(TRIM, values), Step::new(FORGET, forgotten)];
        self.database.write_steps(&steps).await
    }

    /// Stores the seal of another key for a chain. Returns `false` and changes nothing if the chain
    /// has changed since it was read.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn reseal(&self, chain: &AuditChain) -> Result<bool, StatementError> {
        let mut values = place(chain).to_vec();
        values.extend([number(chain.base_seq), number(chain.head_seq)]);
        values.extend([Value::Text(&chain.key_id), Value::Text(&chain.seal)]);
        self.database.write_steps(&[Step::must_change(RESEAL, values)]).await
    }
}

/// The statement that adds `rows` events. `parameter` writes a parameter by its number, from 1.
fn adding(rows: usize, parameter: impl Fn(usize) -> String) -> String {
    let parameters = |row: usize| {
        let of_row = (row * COLUMNS + 1..=(row + 1) * COLUMNS).map(&parameter);
        format!("({})", of_row.collect::<Vec<_>>().join(", "))
    };
    let rows = (0..rows).map(parameters).collect::<Vec<_>>().join(", ");
    format!(
        "INSERT INTO audit_events \
         (workspace, writer, seq, happened_at, kind, actor, resource, run, document) \
         VALUES {rows} ON CONFLICT (workspace, writer, seq) DO NOTHING"
    )
}

/// Number of columns of an event.
const COLUMNS: usize = 9;

fn values(row: &AuditRow) -> [Value<'_>; COLUMNS] {
    [
        Value::Text(&row.workspace),
        Value::Text(&row.writer),
        number(row.seq),
        Value::Integer(ms(row.happened_at)),
        Value::Text(&row.kind),
        Value::Text(&row.actor),
        Value::Text(&row.resource),
        Value::Text(&row.run),
        Value::Text(&row.document),
    ]
}

impl AuditChain {
    /// The chain of a writer without events.
    #[must_use]
    pub fn empty(workspace: &str, writer: &str) -> Self {
        Self {
            workspace: workspace.to_owned(),
            writer: writer.to_owned(),
            base_seq: 0,
            base_hash: String::new(),
            head_seq: 0,
            head_hash: String::new(),
            key_id: String::new(),
            seal: String::new(),
        }
    }
}

fn place(chain: &AuditChain) -> [Value<'_>; 2] {
    [Value::Text(&chain.workspace), Value::Text(&chain.writer)]
}

/// A number as a value of the store, which holds at most [`i64::MAX`].
fn number(number: u64) -> Value<'static> {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}
