//! A statement with its name, its values and rows, and its errors.

mod meaning;

use std::fmt;

use narthex_model::ErrorKind;
use sqlx::{Decode, Row as _, Type, ValueRef, postgres::PgRow, sqlite::SqliteRow};
use thiserror::Error;

use meaning::{Meaning, sqlstate, words};
pub(crate) use meaning::{code, primary_code};

/// SQL under a name. Parameters are `$1`, `$2` and so on, which SQLite and Postgres both know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statement {
    /// Name as `object.function`, for errors and logs.
    pub name: &'static str,
    /// The SQL, in the form that both databases understand.
    pub sql: &'static str,
}

/// A parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    /// A text without a zero byte.
    Text(&'a str),
    /// A number.
    Integer(i64),
    /// A truth value.
    Boolean(bool),
}

/// A row of the answer.
#[derive(Debug)]
pub(crate) struct Row {
    statement: Statement,
    row: AnyRow,
}

/// A row as its database gave it.
#[derive(Debug)]
pub(crate) enum AnyRow {
    /// A row of a file.
    Sqlite(SqliteRow),
    /// A row of a server.
    Postgres(PgRow),
}

/// A statement that failed. None of its changes were stored.
#[derive(Debug, Error)]
pub enum StatementError {
    /// Another process held the database for too long.
    #[error("another process has kept the store busy for too long (`{statement}`); try again")]
    Busy { statement: &'static str },
    /// The statement took longer than its deadline.
    #[error("the store took too long (`{statement}`); check the load of its disk or server")]
    Timeout { statement: &'static str },
    /// The database contradicts itself.
    #[error(
        "the store is damaged (`{statement}`); stop narthex, then restore a copy, or move the \
         store away to start with an empty one"
    )]
    Damaged { statement: &'static str },
    /// The disk is full.
    #[error("the disk of the store is full (`{statement}`); free some space")]
    DiskFull { statement: &'static str },
    /// An object with this key exists.
    #[error("the name exists already (`{statement}`); choose another name")]
    Exists { statement: &'static str },
    /// The owner of the new row does not exist.
    #[error("its parent object does not exist (`{statement}`); create that object first")]
    OwnerMissing { statement: &'static str },
    /// A text has a zero byte, which PostgreSQL cannot store.
    #[error("a text with a zero byte cannot be stored (`{statement}`); remove the byte")]
    ZeroByte { statement: &'static str },
    /// The store was closed.
    #[error("the store is closed (`{statement}`)")]
    Closed { statement: &'static str },
    /// The operating system refused to read or write, or the server refuses or cannot be reached.
    #[error(
        "the store cannot be read or written (`{statement}`); check its disk and its file mode, or \
         its database server"
    )]
    Unavailable {
        statement: &'static str,
        #[source]
        source: Cause,
    },
    /// A fault of narthex.
    #[error("the statement `{statement}` does not fit the store; please report this")]
    Bug {
        statement: &'static str,
        #[source]
        source: Cause,
    },
}

/// The database's error as a code, since its text may quote SQL.
#[derive(Debug)]
pub struct Cause(sqlx::Error);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(state) = sqlstate(&self.0) {
            write!(f, "PostgreSQL answered with code {state}")?;
            return words(state).map_or(Ok(()), |words| write!(f, " ({words})"));
        }
        match &self.0 {
            sqlx::Error::Database(error) => {
                write!(f, "SQLite answered with code {}", error.code().unwrap_or_default())
            }
            sqlx::Error::Io(error) => write!(f, "{error}"),
            sqlx::Error::Tls(error) => write!(f, "TLS failed: {error}"),
            sqlx::Error::ColumnNotFound(column) => write!(f, "there is no column `{column}`"),
            sqlx::Error::ColumnDecode { index, .. } => write!(f, "{index} has an unknown form"),
            _ => f.write_str("the library of the database failed"),
        }
    }
}

impl std::error::Error for Cause {}

impl StatementError {
    /// Returns the error's kind.
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

    /// Turns an error of the database library into one of this crate.
    #[must_use]
    pub fn new(statement: &'static str, source: sqlx::Error) -> Self {
        match Meaning::of(&source) {
            Meaning::Busy => Self::Busy { statement },
            Meaning::Timeout => Self::Timeout { statement },
            Meaning::Damaged => Self::Damaged { statement },
            Meaning::DiskFull => Self::DiskFull { statement },
            Meaning::Exists => Self::Exists { statement },
            Meaning::OwnerMissing => Self::OwnerMissing { statement },
            Meaning::Closed => Self::Closed { statement },
            Meaning::Unavailable => Self::Unavailable { statement, source: Cause(source) },
            Meaning::Bug => Self::Bug { statement, source: Cause(source) },
        }
    }
}

impl AnyRow {
    fn get<T>(&self, column: &str) -> Result<T, sqlx::Error>
    where
        T: for<'r> Decode<'r, sqlx::Sqlite> + Type<sqlx::Sqlite>,
        T: for<'r> Decode<'r, sqlx::Postgres> + Type<sqlx::Postgres>,
    {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }
    }

    fn is_null(&self, column: &str) -> Result<bool, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get_raw(column).map(|value| value.is_null()),
            Self::Postgres(row) => row.try_get_raw(column).map(|value| value.is_null()),
        }
    }
}

impl Row {
    /// A row that a statement has given.
    #[must_use]
    pub(crate) fn new(statement: Statement, row: AnyRow) -> Self {
        Self { statement, row }
    }

    /// The text of a column.
    ///
    /// # Errors
    /// When there is no such column, or it is none.
    pub(crate) fn text(&self, column: &'static str) -> Result<String, StatementError> {
        self.row.get(column).map_err(|error| self.unfit(error))
    }

    /// The number of a column.
    ///
    /// # Errors
    /// When there is no such column, or it is none.
    pub(crate) fn integer(&self, column: &'static str) -> Result<i64, StatementError> {
        self.row.get(column).map_err(|error| self.unfit(error))
    }

    /// True if a column has a value.
    ///
    /// # Errors
    /// When there is no such column.
    pub(crate) fn has(&self, column: &'static str) -> Result<bool, StatementError> {
        let is_null = self.row.is_null(column).map_err(|error| self.unfit(error))?;
        Ok(!is_null)
    }

    fn unfit(&self, error: sqlx::Error) -> StatementError {
        StatementError::Bug { statement: self.statement.name, source: Cause(error) }
    }

    /// The error for a value that breaks its own rule: another program wrote it.
    #[must_use]
    pub(crate) fn damaged(&self) -> StatementError {
        StatementError::Damaged { statement: self.statement.name }
    }
}
