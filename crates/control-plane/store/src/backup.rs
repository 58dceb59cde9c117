//! A copy of a store that is in use.

use std::{
    io,
    path::{Path, PathBuf},
};

use fs_err as fs;
use futures_core::future::BoxFuture;
use narthex_model::ErrorKind;
use sqlx::{ConnectOptions, Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use thiserror::Error;

use crate::schema::open::create_private;
use crate::{
    StatementError, Store,
    database::{BUSY_LIMIT, Database, sqlite},
};

const COPY: &str = "backup.copy";
const CHECK: &str = "backup.check";

/// A complete copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    /// Size of the copy in bytes.
    pub bytes: u64,
}

/// The reason why there is no copy.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The store is on a server, which copies its databases by its own tools.
    #[error(
        "this store is on a PostgreSQL server; make the copy there, for instance with \
         `pg_dump --format=custom --file FILE DATABASE`"
    )]
    OnServer,
    /// The file exists already.
    #[error("the file `{}` exists already, and is unchanged; name another file", .path.display())]
    Exists { path: PathBuf },
    /// The file of the copy cannot be made.
    #[error("cannot write the copy `{}`", .path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The store cannot be read, or the copy cannot be written.
    #[error("the store cannot be copied to `{}`", .path.display())]
    Statement {
        path: PathBuf,
        #[source]
        source: StatementError,
    },
    /// The copy contradicts itself, and so does the store.
    #[error(
        "the store is damaged ({found}), so a copy would be damaged too; restore an older copy, \
         and check the disk"
    )]
    Damaged { found: String },
}

impl BackupError {
    /// Returns the error's kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::OnServer | Self::Exists { .. } => ErrorKind::Conflict,
            Self::File { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => ErrorKind::Denied,
                io::ErrorKind::NotFound => ErrorKind::NotFound,
                _ => ErrorKind::Unavailable,
            },
            Self::Statement { source, .. } => source.kind(),
            Self::Damaged { .. } => ErrorKind::Unavailable,
        }
    }
}

impl Store {
    /// Copies the store's state of one moment into a new file that only its owner can read, and
    /// checks the copy for damage. Daemons can use the store meanwhile. If the copy fails, the file
    /// is removed, unless the process is killed meanwhile.
    ///
    /// # Errors
    /// When the store is on a server, the file exists, or a read or write fails.
    pub fn backup<'a>(&'a self, to: &'a Path) -> BoxFuture<'a, Result<Backup, BackupError>> {
        Box::pin(self.copy_to(to))
    }

    async fn copy_to(&self, to: &Path) -> Result<Backup, BackupError> {
        let Database::Sqlite(_) = self.database() else { return Err(BackupError::OnServer) };
        let path = to.to_owned();
        match create_private(to) {
            // SQLite writes into an empty file.
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(BackupError::Exists { path });
            }
            Err(source) => return Err(BackupError::File { path, source }),
        }
        let mut unfinished = Unfinished(Some(to));
        copy(Path::new(self.place()), to).await?;
        let file = fs::File::open(to).and_then(|file| {
            file.sync_all()?;
            Ok(file.metadata()?.len())
        });
        let bytes = file.map_err(|source| BackupError::File { path, source })?;
        unfinished.0 = None;
        Ok(Backup { bytes })
    }
}

/// Removes an unfinished copy when dropped.
struct Unfinished<'a>(Option<&'a Path>);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let Some(path) = self.0 else { return };
        if let Err(error) = fs::remove_file(path) {
            tracing::warn!("an unfinished copy could not be removed: {error}");
        }
    }
}

async fn copy(from: &Path, to: &Path) -> Result<(), BackupError> {
    let failed = |statement: &'static str| {
        move |error: sqlx::Error| BackupError::Statement {
            path: to.to_owned(),
            source: StatementError::new(statement, error),
        }
    };
    let name = to.to_str().ok_or_else(|| {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "its name is not UTF-8");
        BackupError::File { path: to.to_owned(), source }
    })?;
    let mut store = connect(from).await.map_err(failed(COPY))?;
    let copied = sqlx::query("VACUUM INTO $1").bind(name).execute(&mut store).await;
    let closed = store.close().await;
    copied.map(drop).and(closed).map_err(failed(COPY))?;
    let mut copy = connect(to).await.map_err(failed(CHECK))?;
    let found = sqlx::query_scalar("PRAGMA integrity_check(1)").fetch_one(&mut copy).await;
    let closed = copy.close().await;
    let found: String = found.map_err(failed(CHECK))?;
    closed.map_err(failed(CHECK))?;
    if found == "ok" { Ok(()) } else { Err(BackupError::Damaged { found }) }
}

/// Opens a connection outside of the store's pools, so that no other statement waits for it.
async fn connect(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    let options: SqliteConnectOptions = sqlite::options(path, BUSY_LIMIT);
    options.connect().await
}
