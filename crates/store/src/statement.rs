//! A statement with its name, the values that go in and come out, and why it failed.

use std::fmt;

use narthex_model::ErrorKind;
use sqlx::{Row as _, sqlite::SqliteRow};
use thiserror::Error;

/// SQL under a name. Parameters are `$1`, `$2` and so on, which SQLite and Postgres both know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statement {
    /// `object.function`, for errors and logs.
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
}

/// A parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Text(&'a str),
    Integer(i64),
    Boolean(bool),
}

/// A row of the answer.
#[derive(Debug)]
pub(crate) struct Row {
    statement: Statement,
    row: SqliteRow,
}

/// A statement that failed. Nothing of it was stored.
#[derive(Debug, Error)]
pub enum StatementError {
    /// Another process kept the database to itself for too long.
    #[error("another process has kept the store busy for too long (`{statement}`); try again")]
    Busy { statement: &'static str },
    /// The deadline of every statement passed.
    #[error("the store took too long (`{statement}`); look at the load of its disk")]
    Timeout { statement: &'static str },
    /// The database contradicts itself.
    #[error(
        "the store is damaged (`{statement}`); stop narthex, and restore a copy of it or move it \
         away to begin anew"
    )]
    Damaged { statement: &'static str },
    /// No room on the disk.
    #[error("the disk of the store is full (`{statement}`); free some space")]
    DiskFull { statement: &'static str },
    /// There is one of that name.
    #[error("`{statement}`: there is one already; choose another name")]
    Exists { statement: &'static str },
    /// What it belongs to does not exist.
    #[error("`{statement}`: what it belongs to does not exist; create that first")]
    OwnerMissing { statement: &'static str },
    /// A text that not every database can hold.
    #[error("`{statement}`: a text with a zero byte cannot be stored; remove the byte")]
    ZeroByte { statement: &'static str },
    /// The store was closed before.
    #[error("the store is closed (`{statement}`)")]
    Closed { statement: &'static str },
    /// The operating system refused to read or write.
    #[error("the store cannot be read or written (`{statement}`); look at its disk and its mode")]
    Unavailable {
        statement: &'static str,
        #[source]
        source: Cause,
    },
    /// A fault of our own.
    #[error("the statement `{statement}` does not fit the store; please report this")]
    Bug {
        statement: &'static str,
        #[source]
        source: Cause,
    },
}

/// What the database said, as a code: its words may quote SQL.
#[derive(Debug)]
pub struct Cause(sqlx::Error);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            sqlx::Error::Database(error) => {
                write!(f, "SQLite answered with code {}", error.code().unwrap_or_default())
            }
            sqlx::Error::Io(error) => write!(f, "{error}"),
            sqlx::Error::ColumnNotFound(column) => write!(f, "there is no column `{column}`"),
            sqlx::Error::ColumnDecode { index, .. } => write!(f, "{index} has an unknown form"),
            _ => f.write_str("the library of the database failed"),
        }
    }
}

impl std::error::Error for Cause {}

impl StatementError {
    /// What kind of failure this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::Busy { .. }
            | Self::Damaged { .. }
            | Self::Closed { .. }
            | Self::Unavailable { .. } => ErrorKind::Unavailable,
            Self::DiskFull { .. } => ErrorKind::Exhausted,
            Self::Exists { .. } => ErrorKind::Conflict,
            Self::OwnerMissing { .. } => ErrorKind::NotFound,
            Self::ZeroByte { .. } => ErrorKind::Invalid,
            Self::Bug { .. } => ErrorKind::Bug,
        }
    }

    /// Says what an error of the library means.
    pub(crate) fn new(statement: &'static str, source: sqlx::Error) -> Self {
        match &source {
            sqlx::Error::PoolTimedOut => return Self::Timeout { statement },
            sqlx::Error::PoolClosed => return Self::Closed { statement },
            sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed => {
                return Self::Unavailable { statement, source: Cause(source) };
            }
            _ => {}
        }
        match primary_code(&source) {
            Some(code::BUSY | code::LOCKED) => Self::Busy { statement },
            Some(code::INTERRUPT) => Self::Timeout { statement },
            Some(code::CORRUPT | code::NOTADB) => Self::Damaged { statement },
            Some(code::FULL) => Self::DiskFull { statement },
            Some(code::READONLY | code::IOERR | code::CANTOPEN | code::NOMEM | code::PERM) => {
                Self::Unavailable { statement, source: Cause(source) }
            }
            Some(code::CONSTRAINT) => Self::constraint(statement, source),
            Some(_) | None => Self::Bug { statement, source: Cause(source) },
        }
    }

    fn constraint(statement: &'static str, source: sqlx::Error) -> Self {
        match source.as_database_error() {
            Some(error) if error.is_unique_violation() => Self::Exists { statement },
            Some(error) if error.is_foreign_key_violation() => Self::OwnerMissing { statement },
            Some(_) | None => Self::Bug { statement, source: Cause(source) },
        }
    }
}

/// SQLite's primary result codes, see <https://sqlite.org/rescode.html>.
pub(crate) mod code {
    pub(crate) const PERM: u32 = 3;
    pub(crate) const BUSY: u32 = 5;
    pub(crate) const LOCKED: u32 = 6;
    pub(crate) const NOMEM: u32 = 7;
    pub(crate) const READONLY: u32 = 8;
    pub(crate) const INTERRUPT: u32 = 9;
    pub(crate) const IOERR: u32 = 10;
    pub(crate) const CORRUPT: u32 = 11;
    pub(crate) const FULL: u32 = 13;
    pub(crate) const CANTOPEN: u32 = 14;
    pub(crate) const CONSTRAINT: u32 = 19;
    pub(crate) const NOTADB: u32 = 26;
}

/// The lowest byte of SQLite's code, which says the kind of error.
pub(crate) fn primary_code(error: &sqlx::Error) -> Option<u32> {
    let code = error.as_database_error()?.code()?;
    code.parse::<u32>().ok().map(|code| code & 0xff)
}

impl Row {
    pub(crate) fn new(statement: Statement, row: SqliteRow) -> Self {
        Self { statement, row }
    }

    pub(crate) fn text(&self, column: &'static str) -> Result<String, StatementError> {
        self.row.try_get(column).map_err(|error| self.unfit(error))
    }

    pub(crate) fn integer(&self, column: &'static str) -> Result<i64, StatementError> {
        self.row.try_get(column).map_err(|error| self.unfit(error))
    }

    /// Whether there is a value.
    pub(crate) fn has(&self, column: &'static str) -> Result<bool, StatementError> {
        let value = self.row.try_get_raw(column).map_err(|error| self.unfit(error))?;
        Ok(!sqlx::ValueRef::is_null(&value))
    }

    fn unfit(&self, error: sqlx::Error) -> StatementError {
        StatementError::Bug { statement: self.statement.name, source: Cause(error) }
    }

    /// What a value that breaks its own rule is: somebody else wrote it.
    pub(crate) fn damaged(&self) -> StatementError {
        StatementError::Damaged { statement: self.statement.name }
    }
}
