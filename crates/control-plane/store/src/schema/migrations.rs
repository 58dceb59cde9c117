//! The steps from an empty database to the present version, each a file of `migrations/`.
//!
//! A published step never changes again: databases store its checksum.

use sqlx::{
    SqlSafeStr,
    migrate::{Migration, MigrationType, Migrator},
};

use crate::schema::fault::Fault;

/// Version, name, SQL. The SQL is built in, so that no file is looked for when it runs.
const STEPS: &[(i64, &str, &str)] = &[
    (1, "workspaces", include_str!("../../migrations/0001_workspaces.sql")),
    (2, "servers", include_str!("../../migrations/0002_servers.sql")),
    (3, "trusted files", include_str!("../../migrations/0003_trusted_files.sql")),
    (4, "secrets", include_str!("../../migrations/0004_secrets.sql")),
    (5, "catalog", include_str!("../../migrations/0005_catalog.sql")),
    (6, "audit", include_str!("../../migrations/0006_audit.sql")),
    (7, "principals", include_str!("../../migrations/0007_principals.sql")),
    (8, "runs", include_str!("../../migrations/0008_runs.sql")),
    (10, "logins", include_str!("../../migrations/0010_logins.sql")),
    (11, "traffic", include_str!("../../migrations/0011_traffic.sql")),
    (12, "sockets of runs", include_str!("../../migrations/0012_run_sockets.sql")),
    (13, "env bindings", include_str!("../../migrations/0013_env_bindings.sql")),
    (14, "kept answers", include_str!("../../migrations/0014_kept_answers.sql")),
    (15, "audit contents", include_str!("../../migrations/0015_audit_contents.sql")),
    (18, "grants", include_str!("../../migrations/0018_grants.sql")),
    (
        19,
        "oauth on orchestrators",
        include_str!("../../migrations/0019_oauth_on_orchestrators.sql"),
    ),
    (20, "events", include_str!("../../migrations/0020_events.sql")),
    (
        22,
        "names of grant requests",
        include_str!("../../migrations/0022_names_of_grant_requests.sql"),
    ),
    (23, "definitions", include_str!("../../migrations/0023_definitions.sql")),
    (24, "children", include_str!("../../migrations/0024_children.sql")),
    (25, "shares", include_str!("../../migrations/0025_shares.sql")),
    (26, "mcp clients", include_str!("../../migrations/0026_mcp_clients.sql")),
    (27, "workspace rules", include_str!("../../migrations/0027_workspace_rules.sql")),
    (28, "outbound", include_str!("../../migrations/0028_outbound.sql")),
    (29, "executors", include_str!("../../migrations/0029_executors.sql")),
    (30, "models", include_str!("../../migrations/0030_models.sql")),
    (31, "runtime requests", include_str!("../../migrations/0031_runtime_requests.sql")),
    (32, "inboxes", include_str!("../../migrations/0032_inboxes.sql")),
    (33, "turns", include_str!("../../migrations/0033_turns.sql")),
    (34, "resting sessions", include_str!("../../migrations/0034_resting_sessions.sql")),
    (35, "live definitions", include_str!("../../migrations/0035_live_definitions.sql")),
    (36, "given messages", include_str!("../../migrations/0036_given_messages.sql")),
    (37, "suspended sessions", include_str!("../../migrations/0037_suspended_sessions.sql")),
    (38, "lives of sessions", include_str!("../../migrations/0038_lives_of_sessions.sql")),
    (39, "tokens and requests", include_str!("../../migrations/0039_tokens_and_requests.sql")),
    (40, "arguments of requests", include_str!("../../migrations/0040_arguments_of_requests.sql")),
    (41, "names of definitions", include_str!("../../migrations/0041_names_of_definitions.sql")),
    (44, "cuts", include_str!("../../migrations/0044_cuts.sql")),
    (46, "invitations", include_str!("../../migrations/0046_invitations.sql")),
    (
        47,
        "runs by session and end",
        include_str!("../../migrations/0047_runs_by_session_and_end.sql"),
    ),
    (48, "profiles of clients", include_str!("../../migrations/0048_profiles_of_clients.sql")),
    (49, "oauth", include_str!("../../migrations/0049_oauth.sql")),
    (50, "door", include_str!("../../migrations/0050_door.sql")),
    (51, "audit by run", include_str!("../../migrations/0051_audit_by_run.sql")),
];

/// The version that this program writes.
pub(crate) const LATEST: i64 = STEPS[STEPS.len() - 1].0;

/// The first version with approvals of files, which have been the same since.
const TRUSTED_FILES: i64 = 3;

/// Runs the steps that a database has not had yet.
pub(crate) fn migrator() -> Migrator {
    let migrations = STEPS.iter().map(|&(version, name, sql)| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    Migrator::with_migrations(migrations.collect())
}

/// True if a database of this version, if it has had any step, has the table of approvals. A newer
/// one is a fault.
pub(crate) fn has_approvals(version: Option<i64>) -> Result<bool, Fault> {
    match version {
        Some(version) if version > LATEST => Err(Fault::Version(version)),
        version => Ok(version >= Some(TRUSTED_FILES)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Versions count up, so that the last is the latest.
    #[test]
    fn versions_are_in_order() {
        assert!(STEPS.is_sorted_by(|a, b| a.0 < b.0));
    }
}
