//! The meanings of both databases' error codes.

use sqlx::postgres::PgDatabaseError;

/// The reason for which a statement failed, whatever the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Busy,
    Timeout,
    Damaged,
    DiskFull,
    Exists,
    OwnerMissing,
    Closed,
    Unavailable,
    Bug,
}

impl Meaning {
    pub(super) fn of(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::PoolTimedOut => return Self::Timeout,
            sqlx::Error::PoolClosed => return Self::Closed,
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::WorkerCrashed => {
                return Self::Unavailable;
            }
            _ => {}
        }
        match (sqlstate(error), primary_code(error)) {
            (Some(state), _) => Self::of_sqlstate(state),
            (None, Some(code::CONSTRAINT)) => Self::of_constraint(error),
            (None, Some(code)) => Self::of_code(code),
            (None, None) => Self::Bug,
        }
    }

    fn of_code(code: u32) -> Self {
        match code {
            code::BUSY | code::LOCKED => Self::Busy,
            code::INTERRUPT => Self::Timeout,
            code::CORRUPT | code::NOTADB => Self::Damaged,
            code::FULL => Self::DiskFull,
            code::READONLY | code::IOERR | code::CANTOPEN | code::NOMEM | code::PERM => {
                Self::Unavailable
            }
            _ => Self::Bug,
        }
    }

    fn of_constraint(error: &sqlx::Error) -> Self {
        match error.as_database_error() {
            Some(error) if error.is_unique_violation() => Self::Exists,
            Some(error) if error.is_foreign_key_violation() => Self::OwnerMissing,
            Some(_) | None => Self::Bug,
        }
    }

    /// Reads an SQLSTATE (<https://www.postgresql.org/docs/current/errcodes-appendix.html>): five
    /// characters, of which the first two are the class.
    fn of_sqlstate(state: &str) -> Self {
        match state {
            "23505" => Self::Exists,
            "23503" => Self::OwnerMissing,
            // No lock in time, a deadlock, or two that cannot both have come first.
            "55P03" | "40P01" | "40001" => Self::Busy,
            "57014" | "25P03" | "25P04" => Self::Timeout,
            "53100" => Self::DiskFull,
            "XX001" | "XX002" => Self::Damaged,
            "25006" | "42501" | "3D000" | "3F000" => Self::Unavailable,
            _ => match state.get(..2) {
                // The connection, its permission, its resources, its operator, its system.
                Some("08" | "28" | "53" | "57" | "58") => Self::Unavailable,
                _ => Self::Bug,
            },
        }
    }
}

/// Advice to a person, for codes that are no words themselves.
pub(super) fn words(state: &str) -> Option<&'static str> {
    match state {
        "28P01" | "28000" => Some("the server refuses this user, or the password is wrong"),
        "3D000" => Some("there is no such database; create it first"),
        "3F000" => Some("there is no schema for the tables"),
        "42501" => Some("its user lacks a privilege"),
        "25006" => Some("it is read-only"),
        "53300" => Some("it has too many connections"),
        "57P01" | "57P02" | "57P03" => Some("it is starting or stopping"),
        _ => None,
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

/// The lowest byte of SQLite's code, which is the kind of error.
pub(crate) fn primary_code(error: &sqlx::Error) -> Option<u32> {
    let code = error.as_database_error()?.code()?;
    code.parse::<u32>().ok().map(|code| code & 0xff)
}

/// The code of an error that PostgreSQL gave.
pub(super) fn sqlstate(error: &sqlx::Error) -> Option<&str> {
    let error = error.as_database_error()?.try_downcast_ref::<PgDatabaseError>()?;
    Some(error.code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_code_of_postgres_has_a_meaning() {
        let expected = [
            ("23505", Meaning::Exists),
            ("23503", Meaning::OwnerMissing),
            ("23502", Meaning::Bug),
            ("55P03", Meaning::Busy),
            ("57014", Meaning::Timeout),
            ("57P01", Meaning::Unavailable),
            ("53100", Meaning::DiskFull),
            ("53300", Meaning::Unavailable),
            ("XX001", Meaning::Damaged),
            ("XX000", Meaning::Bug),
            ("28P01", Meaning::Unavailable),
            ("42P01", Meaning::Bug),
            ("", Meaning::Bug),
        ];
        for (state, meaning) in expected {
            assert_eq!(Meaning::of_sqlstate(state), meaning, "{state}");
        }
    }
}
