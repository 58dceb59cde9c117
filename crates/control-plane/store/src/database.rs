//! Runs statements: on SQLite in a file, or on a PostgreSQL server.
//!
//! A caller with a [`Database`] passes a [`Statement`] and values, and gets rows from either. Each
//! database has one connection that writes, so that writes queue in order, a few that read, and a
//! deadline for each statement. An error names the statement, and shows neither SQL nor a value.
//!
//! The lowest layer of the crate: imports no other module, and knows no object.

mod counted;
pub(crate) mod postgres;
pub(crate) mod sqlite;
pub(crate) mod statement;
pub(crate) mod times;

use std::time::{Duration, SystemTime};

use futures_core::future::BoxFuture;
use sqlx::{Encode, Type, query::Query};
use tokio::time::{error::Elapsed, timeout};

pub use counted::statements_of;
use postgres::PostgresServer;
use sqlite::SqliteFile;

use crate::database::statement::{AnyRow, Row, Statement, StatementError, Value};

/// Longest time for a statement, its waiting included.
const STATEMENT_LIMIT: Duration = Duration::from_secs(10);
/// Longest wait for another process's transaction; less than a statement may take, so that the
/// error says who was in the way.
pub(crate) const BUSY_LIMIT: Duration = Duration::from_secs(5);
/// Longest time by which running statements delay the end.
const CLOSE_LIMIT: Duration = Duration::from_secs(12);
/// Most connections that read.
const READERS_MAX: u32 = 4;

/// The clock of a server, in milliseconds since 1970. No file is asked for it.
const NOW: Statement = Statement {
    name: "database.now",
    sql: "SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT) AS now_ms",
};

/// An open database. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) enum Database {
    /// A file.
    Sqlite(SqliteFile),
    /// A server.
    Postgres(PostgresServer),
}

/// One of several statements that run together: all of them or none.
#[derive(Debug)]
pub(crate) struct Step<'a> {
    statement: Statement,
    values: Vec<Value<'a>>,
    must_change: bool,
}

impl<'a> Step<'a> {
    /// A statement with its parameters, in their order.
    #[must_use]
    pub(crate) fn new(statement: Statement, values: Vec<Value<'a>>) -> Self {
        Self { statement, values, must_change: false }
    }

    /// A statement that must change at least one row.
    #[must_use]
    pub(crate) fn must_change(statement: Statement, values: Vec<Value<'a>>) -> Self {
        Self { statement, values, must_change: true }
    }
}

/// Statements are boxed, so that crates that await an object of the store do not compile the way
/// of a statement again.
impl Database {
    /// All rows that a statement answers with.
    pub(crate) fn read<'a>(
        &'a self,
        statement: Statement,
        values: &'a [Value<'a>],
    ) -> BoxFuture<'a, Result<Vec<Row>, StatementError>> {
        Box::pin(async move {
            counted::note(statement);
            let rows: Vec<AnyRow> = match self {
                Self::Sqlite(file) => file.read(statement, values).await?,
                Self::Postgres(server) => server.read(statement, values).await?,
            };
            Ok(rows.into_iter().map(|row| Row::new(statement, row)).collect())
        })
    }

    /// The time by the clock that all processes on this database share.
    pub(crate) async fn now(&self) -> Result<SystemTime, StatementError> {
        match self {
            Self::Sqlite(_) => Ok(SystemTime::now()),
            Self::Postgres(_) => {
                let rows = self.read(NOW, &[]).await?;
                let row = rows.first().ok_or(StatementError::Damaged { statement: NOW.name })?;
                times::time(row, "now_ms")
            }
        }
    }

    /// Runs a statement that writes; the change is stored when this returns.
    pub(crate) fn write<'a>(
        &'a self,
        statement: Statement,
        values: &'a [Value<'a>],
    ) -> BoxFuture<'a, Result<(), StatementError>> {
        Box::pin(async move {
            match self {
                Self::Sqlite(file) => {
                    counted::note(statement);
                    file.write(statement, values).await
                }
                // Every write there is a transaction, since it has a lock to hold.
                Self::Postgres(_) => self.write_each(statement, &[values.to_vec()]).await,
            }
        })
    }

    /// Runs a statement for each of these, all of them or none.
    pub(crate) async fn write_each(
        &self,
        statement: Statement,
        all: &[Vec<Value<'_>>],
    ) -> Result<(), StatementError> {
        let steps = all.iter().map(|values| Step::new(statement, values.clone()));
        self.write_steps(&steps.collect::<Vec<_>>()).await.map(drop)
    }

    /// Runs several statements, all of them or none. Returns `false` and stores nothing if a step
    /// that must change rows changes none.
    pub(crate) async fn write_steps(&self, steps: &[Step<'_>]) -> Result<bool, StatementError> {
        self.write_steps_and(steps, None).await.map(|rows| rows.is_some())
    }

    /// Runs several statements, and then `statement` before any other writer changes anything;
    /// returns the rows of `statement`. Returns `None` and stores nothing where
    /// [`Database::write_steps`] returns `false`.
    pub(crate) async fn write_then_read(
        &self,
        steps: &[Step<'_>],
        statement: Statement,
        values: Vec<Value<'_>>,
    ) -> Result<Option<Vec<Row>>, StatementError> {
        let rows = self.write_steps_and(steps, Some(&Step::new(statement, values))).await?;
        Ok(rows.map(|rows| rows.into_iter().map(|row| Row::new(statement, row)).collect()))
    }

    fn write_steps_and<'a>(
        &'a self,
        steps: &'a [Step<'a>],
        last: Option<&'a Step<'a>>,
    ) -> BoxFuture<'a, Result<Option<Vec<AnyRow>>, StatementError>> {
        Box::pin(async move {
            let Some(first) = steps.first() else { return Ok(Some(Vec::new())) };
            steps.iter().chain(last).for_each(|step| counted::note(step.statement));
            match self {
                Self::Sqlite(file) => file.write_steps(first, steps, last).await,
                Self::Postgres(server) => server.write_steps(first, steps, last).await,
            }
        })
    }

    /// Waits for running statements. Later statements fail.
    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(file) => file.close().await,
            Self::Postgres(server) => server.close().await,
        }
    }
}

async fn within<T>(
    limit: Duration,
    statement: Statement,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, StatementError> {
    finish(timeout(limit, work).await, statement)
}

/// Turns the end of a statement into its result.
fn finish<T>(
    done: Result<Result<T, sqlx::Error>, Elapsed>,
    running: Statement,
) -> Result<T, StatementError> {
    match done {
        Ok(done) => done.map_err(|error| StatementError::new(running.name, error)),
        Err(_elapsed) => Err(StatementError::Timeout { statement: running.name }),
    }
}

type Bound<D> = Query<'static, D, <D as sqlx::Database>::Arguments>;

fn query<D>(statement: Statement, values: &[Value<'_>]) -> Result<Bound<D>, StatementError>
where
    D: sqlx::Database,
    String: Encode<'static, D> + Type<D>,
    i64: Encode<'static, D> + Type<D>,
    bool: Encode<'static, D> + Type<D>,
{
    let mut query = sqlx::query(statement.sql);
    for value in values {
        query = match *value {
            // SQLite would take it, Postgres would not.
            Value::Text(text) if text.contains('\0') => {
                return Err(StatementError::ZeroByte { statement: statement.name });
            }
            Value::Text(text) => query.bind(text.to_owned()),
            Value::Integer(number) => query.bind(number),
            Value::Boolean(is_so) => query.bind(is_so),
        };
    }
    Ok(query)
}

/// Each step with its query.
fn queries<'a, D>(steps: &'a [Step<'a>]) -> Result<Vec<(&'a Step<'a>, Bound<D>)>, StatementError>
where
    D: sqlx::Database,
    String: Encode<'static, D> + Type<D>,
    i64: Encode<'static, D> + Type<D>,
    bool: Encode<'static, D> + Type<D>,
{
    let bound = |step: &'a Step<'a>| Ok((step, query(step.statement, &step.values)?));
    steps.iter().map(bound).collect()
}

#[cfg(test)]
mod tests;
