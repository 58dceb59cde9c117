//! The objects, each with its queries.

pub(crate) mod catalog;
pub(crate) mod runs;
pub(crate) mod secrets;
pub(crate) mod seeded_defaults;
pub(crate) mod server_flags;
pub(crate) mod sessions;
pub(crate) mod traffic;
pub(crate) mod trusted_files;
pub(crate) mod workspaces;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use narthex_model::WorkspaceId;

use crate::{StatementError, statement::Row};

/// Now, as it is stored: milliseconds since 1970.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A time as it is stored.
fn time(row: &Row, column: &'static str) -> Result<SystemTime, StatementError> {
    let since = u64::try_from(row.integer(column)?).map_err(|_negative| row.damaged())?;
    Ok(UNIX_EPOCH + Duration::from_millis(since))
}

/// A time to be stored.
fn ms(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A time that may not have come.
fn optional_time(row: &Row, column: &'static str) -> Result<Option<SystemTime>, StatementError> {
    match row.integer(column)? {
        0 => Ok(None),
        _ => time(row, column).map(Some),
    }
}

/// An id of some kind.
fn id<T>(
    row: &Row,
    column: &'static str,
    parse: fn(&str) -> Option<T>,
) -> Result<T, StatementError> {
    parse(&row.text(column)?).ok_or_else(|| row.damaged())
}

/// Whose a row is.
fn workspace(row: &Row) -> Result<WorkspaceId, StatementError> {
    WorkspaceId::new(&row.text("workspace")?).map_err(|_invalid| row.damaged())
}

#[cfg(test)]
mod tests;
