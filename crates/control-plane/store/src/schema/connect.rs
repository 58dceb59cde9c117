//! Opens a database of this program's version on a PostgreSQL server.

use narthex_model::ErrorKind;
use sqlx::{ConnectOptions, Connection, PgConnection, postgres::PgConnectOptions};
use thiserror::Error;

use super::{
    fault::Fault,
    migrations,
    open::{APPLICATION_ID, OPEN_LIMIT, in_time},
};
use crate::database::{
    Database,
    postgres::{Address, BEGIN, PostgresServer, UrlFault, lock, read_only, session},
    statement::StatementError,
};

const MARK: &str = "SELECT coalesce(max(application_id), 0) FROM narthex_store";
/// Counts the tables of the database's schema, of this program or of another.
const TABLES: &str = "SELECT count(*) FROM pg_catalog.pg_class \
     WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')";
/// Counts narthex's marking table: 1 if it exists.
const HAS_MARK: &str = "SELECT count(*) FROM pg_catalog.pg_class \
     WHERE relnamespace = current_schema()::regnamespace AND relname = 'narthex_store'";

/// The reason why a server's database is not used. The database is unchanged.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The URL is not valid.
    #[error("the URL of the store {0}; write it like postgres://user:password@host/database")]
    Url(UrlFault),
    /// The database has tables of another program.
    #[error(
        "the database `{place}` has tables of another program; make an empty one for narthex, and \
         name that in the URL of the store"
    )]
    Foreign { place: String },
    /// A later version of this program has written the database.
    #[error(
        "a newer narthex has written the store `{place}` (version {version}; this one knows \
         versions up to {latest}); update narthex, or name another database"
    )]
    Newer { place: String, version: i64, latest: i64 },
    /// A step of the database's history differs from this program's: it is from an unpublished
    /// build.
    #[error(
        "another build of narthex has written the store `{place}` (its version {version} is not \
         the published one); use that build, or name another database"
    )]
    OtherBuild { place: String, version: i64 },
    /// The database's encoding cannot store all texts.
    #[error(
        "the database `{place}` has the encoding {encoding}; make one with `createdb --encoding \
         UTF8 --template template0`, and name that in the URL of the store"
    )]
    Encoding { place: String, encoding: String },
    /// A connection or a statement failed for another reason.
    #[error("cannot use the store `{place}`")]
    Statement {
        place: String,
        #[source]
        source: StatementError,
    },
}

impl ConnectError {
    /// Returns the error's kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Url(_) | Self::Foreign { .. } | Self::Encoding { .. } => ErrorKind::Invalid,
            Self::Newer { .. } | Self::OtherBuild { .. } => ErrorKind::Conflict,
            Self::Statement { source, .. } => source.kind(),
        }
    }

    fn new(fault: Fault, place: String) -> Self {
        let latest = migrations::LATEST;
        match fault {
            Fault::Foreign => Self::Foreign { place },
            Fault::Encoding(encoding) => Self::Encoding { place, encoding },
            Fault::Version(version) if version > latest => Self::Newer { place, version, latest },
            Fault::Version(version) => Self::OtherBuild { place, version },
            Fault::Statement(source) => Self::Statement { place, source },
            Fault::Damaged | Fault::NotShared => {
                let source = StatementError::Damaged { statement: "open" };
                Self::Statement { place, source }
            }
        }
    }
}

/// Connects, brings the database up to this program's version, and returns its place.
pub(crate) async fn connect(url: &str) -> Result<(Database, String), ConnectError> {
    let Address { options, place } = Address::parse(url).map_err(ConnectError::Url)?;
    match in_time(first(&options, migrate)).await {
        Ok(()) => Ok((Database::Postgres(PostgresServer::new(&options)), place)),
        Err(fault) => Err(ConnectError::new(fault, place)),
    }
}

/// Connects to a database as it is, to be read; `None` if there is nothing in it yet.
pub(crate) async fn look(url: &str) -> Result<Option<(Database, String)>, ConnectError> {
    let Address { options, place } = Address::parse(url).map_err(ConnectError::Url)?;
    match in_time(first(&read_only(&options), examine)).await {
        Ok(true) => Ok(Some((Database::Postgres(PostgresServer::to_look(&options)), place))),
        Ok(false) => Ok(None),
        Err(fault) => Err(ConnectError::new(fault, place)),
    }
}

/// Runs work on a connection of its own before the pools connect: the work may take longer than
/// they allow, and an absent server is reported at once instead of waited for.
async fn first<T>(
    options: &PgConnectOptions,
    work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let failed = |error| Fault::new("open.connect", error);
    let mut connection =
        session(options, OPEN_LIMIT, OPEN_LIMIT).connect().await.map_err(failed)?;
    let done = work(&mut connection).await;
    let closed = connection.close().await.map_err(failed);
    done.and_then(|done| closed.map(|()| done))
}

/// True if the database has the table of approvals.
async fn examine(connection: &mut PgConnection) -> Result<bool, Fault> {
    if !is_ours(connection).await? {
        return Ok(false);
    }
    let version: Option<i64> = sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations")
        .fetch_one(connection)
        .await
        .map_err(|error| Fault::new("open.look", error))?;
    migrations::has_approvals(version)
}

/// Recognizes the database and brings it up to this program's version, in one transaction. So of
/// two processes the second finds the work done, and a refused database is left alone.
async fn migrate(connection: &mut PgConnection) -> Result<(), Fault> {
    let failed = |error| Fault::new("open.migrate", error);
    let encoding: String = sqlx::query_scalar("SHOW server_encoding")
        .fetch_one(&mut *connection)
        .await
        .map_err(failed)?;
    if encoding != "UTF8" {
        return Err(Fault::Encoding(encoding));
    }
    let mut transaction = connection.begin_with(BEGIN).await.map_err(failed)?;
    lock(&mut transaction).await.map_err(failed)?;
    recognize(&mut transaction).await?;
    let mut migrator = migrations::migrator();
    // The migrator would release its lock before the end of the transaction.
    migrator.set_locking(false);
    migrator.run(&mut *transaction).await.map_err(Fault::of_migration)?;
    transaction.commit().await.map_err(failed)
}

/// Recognizes narthex's databases, and marks an empty database as one of them.
async fn recognize(connection: &mut PgConnection) -> Result<(), Fault> {
    if is_ours(connection).await? {
        return Ok(());
    }
    let marked = sqlx::raw_sql(
        "CREATE TABLE narthex_store (application_id BIGINT NOT NULL PRIMARY KEY); \
         INSERT INTO narthex_store (application_id) VALUES (1852994680)",
    );
    let marked = marked.execute(connection).await;
    marked.map(drop).map_err(|error| Fault::new("open.recognize", error))
}

/// True if the database is narthex's, false if it is empty; any other database is a fault.
async fn is_ours(connection: &mut PgConnection) -> Result<bool, Fault> {
    let number = async |connection: &mut PgConnection, sql: &'static str| {
        let number = sqlx::query_scalar::<_, i64>(sql).fetch_one(connection).await;
        number.map_err(|error| Fault::new("open.recognize", error))
    };
    // The order matters: another process that sets the database up creates the mark and all tables
    // in one transaction.
    if number(connection, TABLES).await? == 0 {
        return Ok(false);
    }
    if number(connection, HAS_MARK).await? == 0 || number(connection, MARK).await? != APPLICATION_ID
    {
        return Err(Fault::Foreign);
    }
    Ok(true)
}
