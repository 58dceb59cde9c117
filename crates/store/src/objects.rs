//! The objects, each with its queries.

pub(crate) mod audit;
pub(crate) mod catalog;
pub(crate) mod costs;
pub(crate) mod definitions;
pub(crate) mod env_bindings;
pub(crate) mod events;
pub(crate) mod grant_requests;
pub(crate) mod grants;
pub(crate) mod heartbeats;
pub(crate) mod inboxes;
pub(crate) mod kept_answers;
pub(crate) mod logins;
pub(crate) mod mcp_clients;
pub(crate) mod outbound;
pub(crate) mod principals;
pub(crate) mod proofs;
pub(crate) mod resting;
pub(crate) mod rules;
pub(crate) mod runs;
pub(crate) mod secrets;
pub(crate) mod seeded_defaults;
pub(crate) mod server_flags;
pub(crate) mod service_tokens;
pub(crate) mod sessions;
pub(crate) mod shares;
pub(crate) mod suspended;
pub(crate) mod traffic;
pub(crate) mod trusted_files;
pub(crate) mod workspaces;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use narthex_model::WorkspaceId;

use crate::{StatementError, statement::Row};

/// Now, as it is stored: milliseconds since 1970.
fn now_ms() -> i64 {
    ms(SystemTime::now())
}

/// A time as it is stored.
fn time(row: &Row, column: &'static str) -> Result<SystemTime, StatementError> {
    let since = u64::try_from(row.integer(column)?).map_err(|_negative| row.damaged())?;
    Ok(UNIX_EPOCH + Duration::from_millis(since))
}

/// The same, where there may be none.
fn maybe_time(row: &Row, column: &'static str) -> Result<Option<SystemTime>, StatementError> {
    row.has(column)?.then(|| time(row, column)).transpose()
}

/// A time that comes in, as it is stored.
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
