//! The objects, each with its queries.

pub(crate) mod audit;
pub(crate) mod catalog;
pub(crate) mod children;
pub(crate) mod costs;
pub(crate) mod cuts;
pub(crate) mod definitions;
pub(crate) mod door;
pub(crate) mod door_tokens;
pub(crate) mod env_bindings;
pub(crate) mod events;
pub(crate) mod grant_requests;
pub(crate) mod grants;
pub(crate) mod heartbeats;
pub(crate) mod inboxes;
pub(crate) mod kept_answers;
pub(crate) mod logins;
pub(crate) mod mcp_clients;
pub(crate) mod oauth_attempts;
pub(crate) mod oauth_clients;
pub(crate) mod oauth_grants;
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

use narthex_model::WorkspaceId;

use crate::{
    StatementError,
    database::times::{maybe_time, ms, now_ms, optional_time, time},
    statement::Row,
};

/// An id of some kind.
fn id<T>(
    row: &Row,
    column: &'static str,
    parse: fn(&str) -> Option<T>,
) -> Result<T, StatementError> {
    parse(&row.text(column)?).ok_or_else(|| row.damaged())
}

/// The workspace that owns a row.
fn workspace(row: &Row) -> Result<WorkspaceId, StatementError> {
    WorkspaceId::new(&row.text("workspace")?).map_err(|_invalid| row.damaged())
}

#[cfg(test)]
mod tests;
