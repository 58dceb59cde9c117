//! Runs statements on SQLite: one connection that writes, a few that read, a deadline for each.
//!
//! This file, `open` and `statement` are all that a second database has to be added to: objects
//! pass a `Statement` and values, and get rows.

use std::{path::Path, time::Duration};

use sqlx::{
    ConnectOptions, Sqlite, SqliteConnection, SqlitePool,
    pool::PoolConnection,
    query::Query,
    sqlite::{SqliteArguments, SqliteConnectOptions, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::time::{Instant, timeout};

use crate::statement::{Row, Statement, StatementError, Value};

/// How long a statement may take, its waiting included.
const STATEMENT_LIMIT: Duration = Duration::from_secs(10);
/// How long SQLite waits for another process's transaction; less than a statement may take, so
/// that the error says who was in the way.
const BUSY_LIMIT: Duration = Duration::from_secs(5);
/// How long statements that run may hold up the end.
const CLOSE_LIMIT: Duration = Duration::from_secs(12);
/// Readers are a thread each, started when they are first needed.
const READERS_MAX: u32 = 4;
/// How many steps of SQLite's machine pass between two looks at the clock: well below 1 ms.
const STEPS_PER_LOOK: i32 = 1000;
/// Takes the right to write at once: a transaction that reads first could not get it later.
pub(crate) const BEGIN: &str = "BEGIN IMMEDIATE";

/// An open database. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    /// SQLite has one writer at a time. Within this process they queue here, in order, instead of
    /// polling for its lock.
    writer: SqlitePool,
    readers: SqlitePool,
    limit: Duration,
}

/// One of several statements that belong together.
#[derive(Debug)]
pub(crate) struct Step<'a> {
    statement: Statement,
    values: Vec<Value<'a>>,
    must_change: bool,
}

impl<'a> Step<'a> {
    pub(crate) fn new(statement: Statement, values: Vec<Value<'a>>) -> Self {
        Self { statement, values, must_change: false }
    }

    /// One that must find something to change.
    pub(crate) fn must_change(statement: Statement, values: Vec<Value<'a>>) -> Self {
        Self { statement, values, must_change: true }
    }
}

impl Database {
    /// Connects to a file that exists when the first statement runs.
    pub(crate) fn new(path: &Path) -> Self {
        Self::with_limits(path, STATEMENT_LIMIT, BUSY_LIMIT)
    }

    /// Connects to a file that is only read. Where nobody else has it open, no file is made beside
    /// it.
    pub(crate) fn to_look(path: &Path, is_alone: bool) -> Self {
        let options = options(path, BUSY_LIMIT).read_only(true).immutable(is_alone);
        Self::over(options, STATEMENT_LIMIT)
    }

    fn with_limits(path: &Path, limit: Duration, busy_limit: Duration) -> Self {
        Self::over(options(path, busy_limit), limit)
    }

    fn over(options: SqliteConnectOptions, limit: Duration) -> Self {
        let pool = |size| {
            SqlitePoolOptions::new()
                .max_connections(size)
                .acquire_timeout(limit)
                // A connection to a file does not go stale.
                .test_before_acquire(false)
                // Except for one whose transaction SQLite has ended by itself, as it does at an
                // interruption or a full disk: the library cannot leave that transaction any more.
                .before_acquire(|connection, _| {
                    let is_free = !sqlx::Connection::is_in_transaction(connection);
                    Box::pin(std::future::ready(Ok(is_free)))
                })
                .max_lifetime(None)
                .idle_timeout(None)
        };
        let read_only = options.clone().pragma("query_only", "ON");
        Self {
            writer: pool(1).connect_lazy_with(options),
            readers: pool(READERS_MAX).connect_lazy_with(read_only),
            limit,
        }
    }

    /// All rows that a statement answers with.
    pub(crate) async fn read(
        &self,
        statement: Statement,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, StatementError> {
        let query = query(statement, values)?;
        let rows = self.within_limit(statement, async |deadline| {
            let mut connection = self.readers.acquire().await?;
            interrupt_at(&mut connection, deadline).await?;
            query.fetch_all(&mut *connection).await
        });
        Ok(rows.await?.into_iter().map(|row| Row::new(statement, row)).collect())
    }

    /// Changes something; it is stored when this returns.
    pub(crate) async fn write(
        &self,
        statement: Statement,
        values: &[Value<'_>],
    ) -> Result<(), StatementError> {
        let query = query(statement, values)?;
        let written = self.within_limit(statement, async |deadline| {
            let mut connection = self.writer(deadline).await?;
            query.execute(&mut *connection).await
        });
        written.await.map(drop)
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

    /// Runs several statements, all of them or none. `false`, and nothing is stored, if one that
    /// must change something finds nothing to change.
    pub(crate) async fn write_steps(&self, steps: &[Step<'_>]) -> Result<bool, StatementError> {
        let Some(first) = steps.first() else { return Ok(true) };
        // Whoever waits or begins does so for all of them.
        let mut running = first.statement;
        let queries: Vec<_> = steps
            .iter()
            .map(|step| Ok((step, query(step.statement, &step.values)?)))
            .collect::<Result<_, _>>()?;
        let work = async {
            let mut connection = self.writer(Instant::now() + self.limit).await?;
            let mut transaction = sqlx::Connection::begin_with(&mut *connection, BEGIN).await?;
            for (step, query) in queries {
                running = step.statement;
                let done = query.execute(&mut *transaction).await?;
                if step.must_change && done.rows_affected() == 0 {
                    transaction.rollback().await?;
                    return Ok(false);
                }
            }
            transaction.commit().await?;
            Ok(true)
        };
        let done = timeout(self.limit, work).await;
        match done {
            Ok(done) => done.map_err(|error| StatementError::new(running.name, error)),
            Err(_elapsed) => Err(StatementError::Timeout { statement: running.name }),
        }
    }

    /// The one connection that writes, whose statements are interrupted at the deadline.
    pub(crate) async fn writer(
        &self,
        deadline: Instant,
    ) -> Result<PoolConnection<Sqlite>, sqlx::Error> {
        let mut connection = self.writer.acquire().await?;
        interrupt_at(&mut connection, deadline).await?;
        Ok(connection)
    }

    /// Writes everything into the one file and lets go of it. Statements after this fail.
    pub(crate) async fn close(&self) {
        let closed = timeout(CLOSE_LIMIT, async {
            self.readers.close().await;
            // The last connection tidies up, and it must be one that may write.
            self.writer.close().await;
        });
        if closed.await.is_err() {
            tracing::warn!("the store did not close in time; the next start will tidy up");
        }
    }

    async fn within_limit<T>(
        &self,
        statement: Statement,
        work: impl AsyncFnOnce(Instant) -> Result<T, sqlx::Error>,
    ) -> Result<T, StatementError> {
        match timeout(self.limit, work(Instant::now() + self.limit)).await {
            Ok(done) => done.map_err(|error| StatementError::new(statement.name, error)),
            Err(_elapsed) => Err(StatementError::Timeout { statement: statement.name }),
        }
    }
}

/// How every connection to the file is made.
fn options(path: &Path, busy_limit: Duration) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .foreign_keys(true)
        .busy_timeout(busy_limit)
        // A commit is on the disk when it returns. Writes are rare, and some take rights away
        // (a server switched off): a loss of power must not give them back.
        .synchronous(SqliteSynchronous::Full)
        // What is deleted is overwritten: a secret that was cleared is gone from the file.
        .pragma("secure_delete", "ON")
        .thread_name(|number| format!("store-{number}"))
        // The library logs SQL.
        .disable_statement_logging()
}

/// Stops what the connection runs at this time. Dropping a future alone would leave the statement
/// running, and its connection out of use.
pub(crate) async fn interrupt_at(
    connection: &mut SqliteConnection,
    deadline: Instant,
) -> Result<(), sqlx::Error> {
    let mut handle = connection.lock_handle().await?;
    handle.set_progress_handler(STEPS_PER_LOOK, move || Instant::now() < deadline);
    Ok(())
}

fn query<'q>(
    statement: Statement,
    values: &[Value<'_>],
) -> Result<Query<'q, Sqlite, SqliteArguments>, StatementError> {
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

#[cfg(test)]
mod tests;
