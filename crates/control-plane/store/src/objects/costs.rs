//! Token usage and costs of sessions, as their runs reported them.

use std::time::SystemTime;

use narthex_model::{SessionId, WorkspaceId};

use super::ms;
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

const CREATE: Statement = Statement {
    name: "costs.create",
    sql: "INSERT INTO session_costs (workspace, session, id, model, input_tokens, output_tokens, \
          cost, currency, reported_at, reported_by) \
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
};
const FIND: Statement = Statement {
    name: "costs.find",
    sql: "SELECT id, model, input_tokens, output_tokens, cost, currency FROM session_costs \
          WHERE workspace = $1 AND session = $2 AND id = $3",
};
const COUNT: Statement = Statement {
    name: "costs.count",
    sql: "SELECT COUNT(*) AS reports FROM session_costs WHERE workspace = $1 AND session = $2",
};
const OF_SESSION: Statement = Statement {
    name: "costs.of_session",
    sql: "SELECT model, currency, CAST(SUM(input_tokens) AS BIGINT) AS input_tokens, \
          CAST(SUM(output_tokens) AS BIGINT) AS output_tokens, CAST(SUM(cost) AS BIGINT) AS cost \
          FROM session_costs WHERE workspace = $1 AND session = $2 \
          GROUP BY model, currency ORDER BY model, currency",
};
/// Costs of a session and of all sessions below it.
const OF_TREE: Statement = Statement {
    name: "costs.of_tree",
    sql: "WITH RECURSIVE tree (session) AS (SELECT id FROM sessions \
          WHERE workspace = $1 AND id = $2 UNION SELECT sessions.id FROM tree \
          JOIN runs ON runs.workspace = $1 AND runs.session = tree.session \
          JOIN sessions ON sessions.workspace = $1 AND sessions.parent = runs.id) \
          SELECT model, currency, CAST(SUM(input_tokens) AS BIGINT) AS input_tokens, \
          CAST(SUM(output_tokens) AS BIGINT) AS output_tokens, CAST(SUM(cost) AS BIGINT) AS cost \
          FROM session_costs JOIN tree ON tree.session = session_costs.session \
          WHERE workspace = $1 GROUP BY model, currency ORDER BY model, currency",
};
const OF_AGENT: Statement = Statement {
    name: "costs.of_agent",
    sql: "SELECT model, currency, CAST(SUM(input_tokens) AS BIGINT) AS input_tokens, \
          CAST(SUM(output_tokens) AS BIGINT) AS output_tokens, CAST(SUM(cost) AS BIGINT) AS cost \
          FROM session_costs JOIN sessions ON sessions.workspace = session_costs.workspace \
          AND sessions.id = session_costs.session \
          WHERE session_costs.workspace = $1 AND agent = $2 AND reported_at >= $3 \
          GROUP BY model, currency ORDER BY model, currency",
};

/// Maximum number of reports of a session.
pub const REPORTS_MAX: u64 = 10_000;

/// Access to reported costs.
#[derive(Debug, Clone, Copy)]
pub struct CostRows<'a> {
    database: &'a Database,
}

/// A report of usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// The id of the report, by which a repeated report is recognised.
    pub id: String,
    /// The model.
    pub model: String,
    /// Number of tokens that the model read.
    pub input_tokens: u64,
    /// Number of tokens that the model wrote.
    pub output_tokens: u64,
    /// The cost in millionths of the currency.
    pub cost: u64,
    /// The currency's three letters.
    pub currency: String,
}

/// The usage of one model in one currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostSum {
    /// The model.
    pub model: String,
    /// The currency's three letters.
    pub currency: String,
    /// Number of tokens that the model read.
    pub input_tokens: u64,
    /// Number of tokens that the model wrote.
    pub output_tokens: u64,
    /// The cost in millionths of the currency.
    pub cost: u64,
}

impl<'a> CostRows<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Stores a report of usage.
    ///
    /// # Errors
    /// `Exists` if the session has a report of this id, `OwnerMissing` if there is no such session,
    /// or when the statement fails.
    pub async fn create(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        cost: &Cost,
        by: &str,
    ) -> Result<(), StatementError> {
        let session = session.to_text();
        let values = vec![
            Value::Text(workspace.as_str()),
            Value::Text(&session),
            Value::Text(&cost.id),
            Value::Text(&cost.model),
            number(cost.input_tokens),
            number(cost.output_tokens),
            number(cost.cost),
            Value::Text(&cost.currency),
            Value::Integer(ms(SystemTime::now())),
            Value::Text(by),
        ];
        self.database.write_steps(&[Step::new(CREATE, values)]).await.map(drop)
    }

    /// The report of this id, if the session has it.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        id: &str,
    ) -> Result<Option<Cost>, StatementError> {
        let session = session.to_text();
        let values = [Value::Text(workspace.as_str()), Value::Text(&session), Value::Text(id)];
        let rows = self.database.read(FIND, &values).await?;
        let cost = |row: &Row| {
            let CostSum { model, currency, input_tokens, output_tokens, cost } = sum(row)?;
            let id = row.text("id")?;
            Ok(Cost { id, model, input_tokens, output_tokens, cost, currency })
        };
        rows.first().map(cost).transpose()
    }

    /// Number of reports of a session.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn count(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
    ) -> Result<u64, StatementError> {
        let session = session.to_text();
        let values = [Value::Text(workspace.as_str()), Value::Text(&session)];
        let rows = self.database.read(COUNT, &values).await?;
        rows.first().map_or(Ok(0), |row| whole(row, "reports"))
    }

    /// Returns the usage of a session.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn of_session(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
    ) -> Result<Vec<CostSum>, StatementError> {
        self.sums(OF_SESSION, &[workspace.as_str(), &session.to_text()], None).await
    }

    /// Returns the usage of a session and of all sessions below it.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn of_tree(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
    ) -> Result<Vec<CostSum>, StatementError> {
        self.sums(OF_TREE, &[workspace.as_str(), &session.to_text()], None).await
    }

    /// Returns the usage of an agent's sessions that was reported since a time.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn of_agent(
        &self,
        workspace: &WorkspaceId,
        agent: &str,
        since: SystemTime,
    ) -> Result<Vec<CostSum>, StatementError> {
        self.sums(OF_AGENT, &[workspace.as_str(), agent], Some(since)).await
    }

    async fn sums(
        &self,
        statement: Statement,
        texts: &[&str],
        since: Option<SystemTime>,
    ) -> Result<Vec<CostSum>, StatementError> {
        let mut values: Vec<_> = texts.iter().map(|text| Value::Text(text)).collect();
        values.extend(since.map(|since| Value::Integer(ms(since))));
        self.database.read(statement, &values).await?.iter().map(sum).collect()
    }
}

fn number(amount: u64) -> Value<'static> {
    Value::Integer(i64::try_from(amount).unwrap_or(i64::MAX))
}

fn whole(row: &Row, column: &'static str) -> Result<u64, StatementError> {
    u64::try_from(row.integer(column)?).map_err(|_negative| row.damaged())
}

fn sum(row: &Row) -> Result<CostSum, StatementError> {
    Ok(CostSum {
        model: row.text("model")?,
        currency: row.text("currency")?,
        input_tokens: whole(row, "input_tokens")?,
        output_tokens: whole(row, "output_tokens")?,
        cost: whole(row, "cost")?,
    })
}
