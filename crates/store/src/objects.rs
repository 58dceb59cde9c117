//! The objects, each with its queries.

pub(crate) mod secrets;
pub(crate) mod seeded_defaults;
pub(crate) mod server_flags;
pub(crate) mod trusted_files;
pub(crate) mod workspaces;

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, as it is stored: milliseconds since 1970.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
