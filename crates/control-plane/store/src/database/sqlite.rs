//! SQLite: one connection that writes, and a few that read. Each is a thread that starts at its
//! first use.

mod connections;

use std::{path::Path, time::Duration};

use sqlx::{
    ConnectOptions, Sqlite,
    sqlite::{SqliteConnectOptions, SqliteSynchronous},
};
use tokio::time::{Instant, timeout};

use super::{CLOSE_LIMIT, READERS_MAX, Step, query, within};
use crate::database::statement::{AnyRow, Statement, StatementError, Value};

use self::connections::Connections;
pub(crate) use self::connections::Lease;

/// Takes the right to write at once: a transaction that reads first could not get it later.
pub(crate) const BEGIN: &str = "BEGIN IMMEDIATE";

/// An open file. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct SqliteFile {
    /// SQLite has one writer at a time. Writers of this process queue here, in order, instead of
    /// polling for SQLite's lock.
    writer: Connections,
    readers: Connections,
    limit: Duration,
}

impl SqliteFile {
    /// Connects to a file that exists when the first statement runs.
    pub(crate) fn new(path: &Path) -> Self {
        Self::with_limits(path, super::STATEMENT_LIMIT, super::BUSY_LIMIT)
    }

    /// Connects to a file that is only read. With `is_alone`, no other process has it open, and no
    /// file is made beside it.
    pub(crate) fn to_look(path: &Path, is_alone: bool) -> Self {
        let options = options(path, super::BUSY_LIMIT).read_only(true).immutable(is_alone);
        Self::over(options, super::STATEMENT_LIMIT)
    }

    pub(super) fn with_limits(path: &Path, limit: Duration, busy_limit: Duration) -> Self {
        Self::over(options(path, busy_limit), limit)
    }

    fn over(options: SqliteConnectOptions, limit: Duration) -> Self {
        let read_only = options.clone().pragma("query_only", "ON");
        Self {
            writer: Connections::new(options, 1),
            readers: Connections::new(read_only, READERS_MAX),
            limit,
        }
    }

    pub(super) async fn read(
        &self,
        statement: Statement,
        values: &[Value<'_>],
    ) -> Result<Vec<AnyRow>, StatementError> {
        let query = query::<Sqlite>(statement, values)?;
        let deadline = Instant::now() + self.limit;
        let rows = within(self.limit, statement, async {
            let mut connection = self.readers.take(deadline).await?;
            let rows = query.fetch_all(&mut *connection).await?;
            connection.rest();
            Ok(rows)
        });
        Ok(rows.await?.into_iter().map(AnyRow::Sqlite).collect())
    }

    pub(super) async fn write(
        &self,
        statement: Statement,
        values: &[Value<'_>],
    ) -> Result<(), StatementError> {
        let query = query::<Sqlite>(statement, values)?;
        let deadline = Instant::now() + self.limit;
        let written = within(self.limit, statement, async {
            let mut connection = self.writer(deadline).await?;
            query.execute(&mut *connection).await?;
            connection.rest();
            Ok(())
        });
        written.await
    }

    pub(super) async fn write_steps(
        &self,
        first: &Step<'_>,
        steps: &[Step<'_>],
        last: Option<&Step<'_>>,
    ) -> Result<Option<Vec<AnyRow>>, StatementError> {
        // In errors of waiting and beginning, the first statement represents all of them.
        let mut running = first.statement;
        let work = async {
            let of = |statement: Statement| move |error| StatementError::new(statement.name, error);
            let connected = self.writer(Instant::now() + self.limit).await;
            let mut connection = connected.map_err(of(running))?;
            let begun = sqlx::Connection::begin_with(&mut *connection, BEGIN).await;
            let mut transaction = begun.map_err(of(running))?;
            for step in steps {
                running = step.statement;
                // Bound one after the other: binding copies the values.
                let bound = query::<Sqlite>(running, &step.values)?;
                let done = bound.execute(&mut *transaction).await.map_err(of(running))?;
                if step.must_change && done.rows_affected() == 0 {
                    transaction.rollback().await.map_err(of(running))?;
                    connection.rest();
                    return Ok(None);
                }
            }
            let mut rows = Vec::new();
            if let Some(step) = last {
                running = step.statement;
                let bound = query::<Sqlite>(running, &step.values)?;
                rows = bound.fetch_all(&mut *transaction).await.map_err(of(running))?;
            }
            transaction.commit().await.map_err(of(running))?;
            connection.rest();
            Ok(Some(rows.into_iter().map(AnyRow::Sqlite).collect()))
        };
        let done = timeout(self.limit, work).await;
        done.unwrap_or_else(|_elapsed| Err(StatementError::Timeout { statement: running.name }))
    }

    /// The one connection that writes, whose statements are interrupted at the deadline.
    pub(crate) async fn writer(&self, deadline: Instant) -> Result<Lease, sqlx::Error> {
        self.writer.take(deadline).await
    }

    /// Writes everything into the one file and lets go of it.
    pub(crate) async fn close(&self) {
        let closed = timeout(CLOSE_LIMIT, async {
            self.readers.close().await;
            // The last connection to close moves the journal into the file, so it must be a writer.
            self.writer.close().await;
        });
        if closed.await.is_err() {
            tracing::warn!("the store did not close in time; the next start repairs it");
        }
    }
}

/// The options of every connection to the file.
pub(crate) fn options(path: &Path, busy_limit: Duration) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .foreign_keys(true)
        .busy_timeout(busy_limit)
        // A commit is on the disk when it returns. Writes are rare, and some take rights away
        // (a server was disabled): a loss of power must not give them back.
        .synchronous(SqliteSynchronous::Full)
        // Deleted data is overwritten: a secret that was cleared is gone from the file.
        .pragma("secure_delete", "ON")
        .thread_name(|number| format!("store-{number}"))
        // The library logs SQL.
        .disable_statement_logging()
}
