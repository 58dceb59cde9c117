//! PostgreSQL: writes in the same order as in a file, by a lock that all processes take.

mod address;

use std::time::Duration;

use sqlx::{
    ConnectOptions, PgConnection, PgPool, Postgres,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::timeout;

use super::{CLOSE_LIMIT, READERS_MAX, Step, query, within};
use crate::database::statement::{AnyRow, Statement, StatementError, Value};

pub(crate) use address::Address;
pub use address::UrlFault;

/// Each statement sees all earlier commits, whatever the server's own default is.
pub(crate) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
/// `nrtx`: the lock for writing and migrating. With it, several statements see what they would see
/// in SQLite, which has one writer at a time.
const LOCK: &str = "SELECT pg_advisory_xact_lock(1852994680)";

/// A server's database. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct PostgresServer {
    writer: PgPool,
    readers: PgPool,
    limit: Duration,
}

impl PostgresServer {
    /// Connects when the first statement runs.
    pub(crate) fn new(options: &PgConnectOptions) -> Self {
        Self::with_limits(options, super::STATEMENT_LIMIT, super::BUSY_LIMIT)
    }

    /// Connects to a database that is only read.
    pub(crate) fn to_look(options: &PgConnectOptions) -> Self {
        Self::new(&read_only(options))
    }

    pub(super) fn with_limits(
        options: &PgConnectOptions,
        limit: Duration,
        busy_limit: Duration,
    ) -> Self {
        let options = session(options, limit, busy_limit);
        let read_only = read_only(&options);
        let pool = |size, options| {
            let pool = PgPoolOptions::new().max_connections(size).acquire_timeout(limit);
            pool.connect_lazy_with(options)
        };
        Self { writer: pool(1, options), readers: pool(READERS_MAX, read_only), limit }
    }

    pub(super) async fn read(
        &self,
        statement: Statement,
        values: &[Value<'_>],
    ) -> Result<Vec<AnyRow>, StatementError> {
        let query = query::<Postgres>(statement, values)?;
        let rows = within(self.limit, statement, async {
            let mut connection = self.readers.acquire().await?;
            query.fetch_all(&mut *connection).await
        });
        Ok(rows.await?.into_iter().map(AnyRow::Postgres).collect())
    }

    pub(super) async fn write_steps(
        &self,
        first: &Step<'_>,
        steps: &[Step<'_>],
        last: Option<&Step<'_>>,
    ) -> Result<Option<Vec<AnyRow>>, StatementError> {
        let mut running = first.statement;
        let queries = super::queries::<Postgres>(steps)?;
        let last = last.map(|step| Ok((step, query::<Postgres>(step.statement, &step.values)?)));
        let last = last.transpose()?;
        let work = async {
            let mut connection = self.writer.acquire().await?;
            let mut transaction = sqlx::Connection::begin_with(&mut *connection, BEGIN).await?;
            lock(&mut transaction).await?;
            for (step, query) in queries {
                running = step.statement;
                let done = query.execute(&mut *transaction).await?;
                if step.must_change && done.rows_affected() == 0 {
                    transaction.rollback().await?;
                    return Ok(None);
                }
            }
            let mut rows = Vec::new();
            if let Some((step, query)) = last {
                running = step.statement;
                rows = query.fetch_all(&mut *transaction).await?;
            }
            transaction.commit().await?;
            Ok(Some(rows.into_iter().map(AnyRow::Postgres).collect()))
        };
        let done = timeout(self.limit, work).await;
        super::finish(done, running)
    }

    pub(super) async fn close(&self) {
        let closed = timeout(CLOSE_LIMIT, async {
            self.readers.close().await;
            self.writer.close().await;
        });
        if closed.await.is_err() {
            tracing::warn!("the connections of the store did not close in time");
        }
    }
}

/// The options of a connection that changes nothing.
pub(crate) fn read_only(options: &PgConnectOptions) -> PgConnectOptions {
    options.clone().options([("default_transaction_read_only", "on")])
}

/// Waits until no other process writes, up to the end of this transaction.
pub(crate) async fn lock(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query(LOCK).execute(connection).await.map(drop)
}

/// The options of a connection, whatever the defaults of the server, its database and its user are.
///
/// The server stops a statement that takes longer than `limit`, also if its client has gone:
/// dropping a future alone would leave the statement running.
pub(crate) fn session(
    options: &PgConnectOptions,
    limit: Duration,
    busy_limit: Duration,
) -> PgConnectOptions {
    let ms = |limit: Duration| limit.as_millis().to_string();
    // Longer than the daemon waits for a statement, so that the server ends only sessions whose
    // machine is gone: it ends such a session without an answer.
    let idle_limit = limit.max(2 * super::STATEMENT_LIMIT);
    options
        .clone()
        .application_name("narthex")
        .options([
            ("statement_timeout", ms(limit)),
            ("idle_in_transaction_session_timeout", ms(idle_limit)),
            ("lock_timeout", ms(busy_limit)),
            // A commit is on the disk when it returns, as in SQLite.
            ("synchronous_commit", "on".to_owned()),
            // Notices of existing objects are not worth a log line.
            ("client_min_messages", "warning".to_owned()),
        ])
        // The library logs SQL.
        .disable_statement_logging()
}
