//! Opens a file of this program's version by its path.

use std::{
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use fs_err as fs;
use narthex_model::{ErrorKind, command::quoted};
use sqlx::SqliteConnection;
use thiserror::Error;
use tokio::time::{Instant, sleep, timeout};

use super::{fault::Fault, migrations};
use crate::database::{
    Database,
    sqlite::{BEGIN, Lease, SqliteFile},
    statement::{StatementError, code, primary_code},
};

/// Longest time for opening, migrations and other processes that open it at once included.
pub(crate) const OPEN_LIMIT: Duration = Duration::from_secs(60);
/// Longest time by which the search for damage delays the start. It reads some 250 MB in this time;
/// of a larger file it sees a part.
const CHECK_LIMIT: Duration = Duration::from_secs(2);
/// Pause between two attempts at an operation that SQLite does not wait for by itself.
const AGAIN: Duration = Duration::from_millis(10);
/// `nrtx`, in the header of each of narthex's files, and in a table of each database.
pub(crate) const APPLICATION_ID: i64 = 0x6e72_7478;

/// The reason why a file was not opened. The file is unchanged.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The file cannot be created or inspected.
    #[error(
        "cannot create the store `{}`; check its folder, or name another folder with --data",
        .path.display()
    )]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The path is a folder, a device or the like.
    #[error(
        "the store `{}` is not a regular file; move it away, or name another folder with --data",
        .path.display()
    )]
    NoFile { path: PathBuf },
    /// Other users can read or write the file.
    #[error(
        "the store `{0}` has the mode {mode:04o}, so others may have changed it; make it private \
         with `chmod 600 {1}`, or delete it to start with an empty one",
        .path.display(),
        quoted(&.path.to_string_lossy())
    )]
    NotPrivate { path: PathBuf, mode: u32 },
    /// Another user can change the file.
    #[error(
        "the store `{}` belongs to another user; name another folder with --data",
        .path.display()
    )]
    OtherUser { path: PathBuf },
    /// The file is a database of another program.
    #[error(
        "`{}` is the database of another program; move it away, or name another folder with --data",
        .path.display()
    )]
    Foreign { path: PathBuf },
    /// A later version of this program has written the file.
    #[error(
        "a newer narthex has written the store `{}` (version {version}; this one knows versions up \
         to {latest}); update narthex, or name another folder with --data",
        .path.display()
    )]
    Newer { path: PathBuf, version: i64, latest: i64 },
    /// A step of the file's history differs from this program's: it is from an unpublished build.
    #[error(
        "another build of narthex has written the store `{}` (its version {version} is not the \
         published one); use that build, or move the file away to start with an empty one",
        .path.display()
    )]
    OtherBuild { path: PathBuf, version: i64 },
    /// The content contradicts itself, or is no database.
    #[error(
        "the store `{}` is damaged; restore a copy, or move it away, with the files of this name \
         that end in -wal and -shm, to start with an empty one",
        .path.display()
    )]
    Damaged { path: PathBuf },
    /// The file system does not let two processes share the file.
    #[error(
        "the file system of the store `{}` does not support shared memory; name a folder on a \
         local disk with --data",
        .path.display()
    )]
    NotShared { path: PathBuf },
    /// A statement failed for another reason.
    #[error("cannot open the store `{}`", .path.display())]
    Statement {
        path: PathBuf,
        #[source]
        source: StatementError,
    },
}

impl OpenError {
    /// Returns the error's kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::File { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => ErrorKind::Denied,
                io::ErrorKind::NotFound => ErrorKind::NotFound,
                _ => ErrorKind::Unavailable,
            },
            Self::NoFile { .. } | Self::Foreign { .. } => ErrorKind::Invalid,
            Self::NotPrivate { .. } | Self::OtherUser { .. } => ErrorKind::Denied,
            Self::Newer { .. } | Self::OtherBuild { .. } => ErrorKind::Conflict,
            Self::Damaged { .. } | Self::NotShared { .. } => ErrorKind::Unavailable,
            Self::Statement { source, .. } => source.kind(),
        }
    }

    fn new(fault: Fault, path: &Path) -> Self {
        let path = path.to_owned();
        let latest = migrations::LATEST;
        match fault {
            Fault::Foreign => OpenError::Foreign { path },
            Fault::NotShared => OpenError::NotShared { path },
            // A file has no other encoding: this arm only completes the match.
            Fault::Damaged | Fault::Encoding(_) => OpenError::Damaged { path },
            Fault::Version(version) if version > latest => {
                OpenError::Newer { path, version, latest }
            }
            Fault::Version(version) => OpenError::OtherBuild { path, version },
            Fault::Statement(source) => OpenError::Statement { path, source },
        }
    }
}

/// Opens the file at this program's version; creates the file if there is none.
pub(crate) async fn open(path: &Path) -> Result<Database, OpenError> {
    make_private(path)?;
    let database = SqliteFile::new(path);
    if let Err(fault) = in_time(prepare(&database)).await {
        database.close().await;
        return Err(OpenError::new(fault, path));
    }
    Ok(Database::Sqlite(database))
}

/// Opens the file unchanged, for reading; `None` if there is no file, or it has no approvals.
pub(crate) async fn look(path: &Path) -> Result<Option<Database>, OpenError> {
    match see_private(path) {
        Err(OpenError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(None);
        }
        seen => seen?,
    }
    // A file in use has a journal; a file that no process uses is complete without one. Without
    // this flag the library would make a journal.
    let mut journal = path.as_os_str().to_owned();
    journal.push("-wal");
    let database = SqliteFile::to_look(path, !Path::new(&journal).exists());
    let looked = in_time(examine(&database)).await;
    if !matches!(looked, Ok(true)) {
        database.close().await;
    }
    let has_any = looked.map_err(|fault| OpenError::new(fault, path))?;
    Ok(has_any.then_some(Database::Sqlite(database)))
}

/// Gives work up that takes too long.
pub(crate) async fn in_time<T>(work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    let late = |_elapsed| Fault::Statement(StatementError::Timeout { statement: "open" });
    timeout(OPEN_LIMIT, work).await.map_err(late)?
}

/// Makes the file for its owner alone, or sees that it is so. SQLite gives its other files the mode
/// of this one.
///
/// A file that exists is not opened here: closing it would drop the locks that this process holds
/// on it through SQLite.
fn make_private(path: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::File { path: path.to_owned(), source };
    match create_private(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(error)),
    }
    see_private(path)
}

/// Makes an empty file for its owner alone, where none is.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    OpenOptionsExt::mode(options.options_mut(), 0o600);
    options.open(path).map(drop)
}

/// Checks that only the owner has access to the file and to SQLite's files beside it.
fn see_private(path: &Path) -> Result<(), OpenError> {
    see_one(path)?;
    for suffix in ["-wal", "-shm", "-journal"] {
        let mut beside = path.as_os_str().to_owned();
        beside.push(suffix);
        match see_one(Path::new(&beside)) {
            Err(OpenError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            seen => seen?,
        }
    }
    Ok(())
}

/// Checks that only the owner has access to one file. Refuses a link, which could lead to any file
/// of this user.
fn see_one(path: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::File { path: path.to_owned(), source };
    let metadata = fs::symlink_metadata(path).map_err(failed)?;
    let path = path.to_owned();
    let mode = metadata.mode() & 0o777;
    if !metadata.is_file() {
        Err(OpenError::NoFile { path })
    } else if metadata.uid() != rustix::process::geteuid().as_raw() {
        Err(OpenError::OtherUser { path })
    } else if mode & 0o077 != 0 {
        Err(OpenError::NotPrivate { path, mode })
    } else {
        Ok(())
    }
}

async fn prepare(database: &SqliteFile) -> Result<(), Fault> {
    let deadline = Instant::now() + OPEN_LIMIT;
    let connected = database.writer(deadline).await;
    let mut connection = connected.map_err(|error| Fault::new("open.connect", error))?;
    recognize(&mut connection).await?;
    share(&mut connection).await?;
    look_for_damage(&mut connection, CHECK_LIMIT).await?;
    connection.stop_at(deadline);
    migrate(&mut connection).await
}

/// True if the file is narthex's and of a version that has the table of approvals.
async fn examine(database: &SqliteFile) -> Result<bool, Fault> {
    let failed = |error| Fault::new("open.look", error);
    let connected = database.writer(Instant::now() + OPEN_LIMIT).await;
    let mut connection = connected.map_err(failed)?;
    match mark(&mut connection).await? {
        // Another process is creating the store.
        (APPLICATION_ID | 0, 0) => return Ok(false),
        (APPLICATION_ID, _) => {}
        _ => return Err(Fault::Foreign),
    }
    let version: Option<i64> = sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations")
        .fetch_one(&mut *connection)
        .await
        .map_err(failed)?;
    migrations::has_approvals(version)
}

/// Recognizes narthex's files, and marks a new file as one of them.
async fn recognize(connection: &mut SqliteConnection) -> Result<(), Fault> {
    match mark(connection).await? {
        (APPLICATION_ID, _) => Ok(()),
        (0, 0) => {
            let pragma = format!("PRAGMA application_id = {APPLICATION_ID}");
            let marked = sqlx::query(sqlx::AssertSqlSafe(pragma)).execute(connection).await;
            marked.map(drop).map_err(|error| Fault::new("open.recognize", error))
        }
        _ => Err(Fault::Foreign),
    }
}

/// The mark in a file, and how many tables and the like it has.
async fn mark(connection: &mut SqliteConnection) -> Result<(i64, i64), Fault> {
    let failed = |error| Fault::new("open.recognize", error);
    // The order matters: another process that makes the file marks it before it has tables.
    let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema")
        .fetch_one(&mut *connection)
        .await
        .map_err(failed)?;
    let mark: i64 = sqlx::query_scalar("PRAGMA application_id")
        .fetch_one(&mut *connection)
        .await
        .map_err(failed)?;
    Ok((mark, tables))
}

/// Has readers and a writer work side by side, in all processes, from now on.
async fn share(connection: &mut SqliteConnection) -> Result<(), Fault> {
    loop {
        let switched: Result<String, _> =
            sqlx::query_scalar("PRAGMA journal_mode = WAL").fetch_one(&mut *connection).await;
        match switched {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(_other) => return Err(Fault::NotShared),
            // SQLite does not wait for this lock by itself; the caller that opens the store ends
            // the loop.
            Err(error) if primary_code(&error) == Some(code::BUSY) => sleep(AGAIN).await,
            Err(error) => return Err(Fault::new("open.share", error)),
        }
    }
}

async fn look_for_damage(connection: &mut Lease, limit: Duration) -> Result<(), Fault> {
    let failed = |error| Fault::new("open.check", error);
    connection.stop_at(Instant::now() + limit);
    let found: Result<String, _> =
        sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(&mut **connection).await;
    match found {
        Ok(found) if found == "ok" => Ok(()),
        Ok(found) => {
            tracing::warn!(%found, "the store is damaged");
            Err(Fault::Damaged)
        }
        Err(error) if primary_code(&error) == Some(code::INTERRUPT) => {
            tracing::info!("the store is too large for a check at the start");
            Ok(())
        }
        Err(error) => Err(failed(error)),
    }
}

/// Brings the database up to this program's version in one transaction, so that of two processes
/// the second finds the work done.
async fn migrate(connection: &mut SqliteConnection) -> Result<(), Fault> {
    let failed = |error| Fault::new("open.migrate", error);
    let begun = sqlx::Connection::begin_with(connection, BEGIN).await;
    let mut transaction = begun.map_err(failed)?;
    migrations::migrator().run(&mut *transaction).await.map_err(Fault::of_migration)?;
    transaction.commit().await.map_err(failed)
}

#[cfg(test)]
mod tests;
