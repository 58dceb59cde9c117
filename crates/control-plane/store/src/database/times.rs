//! Times in their stored form: milliseconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::database::statement::{Row, StatementError};

/// Now, as it is stored: milliseconds since 1970.
#[must_use]
pub(crate) fn now_ms() -> i64 {
    ms(SystemTime::now())
}

/// A time as it is stored.
///
/// # Errors
/// When the column is not there, or before 1970.
pub(crate) fn time(row: &Row, column: &'static str) -> Result<SystemTime, StatementError> {
    let since = u64::try_from(row.integer(column)?).map_err(|_negative| row.damaged())?;
    Ok(UNIX_EPOCH + Duration::from_millis(since))
}

/// Reads a time of a column, which may have none.
///
/// # Errors
/// As [`time`].
pub(crate) fn maybe_time(
    row: &Row,
    column: &'static str,
) -> Result<Option<SystemTime>, StatementError> {
    row.has(column)?.then(|| time(row, column)).transpose()
}

/// A time that comes in, as it is stored.
#[must_use]
pub(crate) fn ms(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A time that may not have come.
///
/// # Errors
/// As [`time`].
pub(crate) fn optional_time(
    row: &Row,
    column: &'static str,
) -> Result<Option<SystemTime>, StatementError> {
    match row.integer(column)? {
        0 => Ok(None),
        _ => time(row, column).map(Some),
    }
}
