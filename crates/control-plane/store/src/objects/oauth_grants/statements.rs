//! The statements of grants of narthex at the authorization servers of others.

use crate::statement::Statement;

pub(super) const FIND: Statement = Statement {
    name: "oauth_grants.find",
    sql: "SELECT workspace, server, subject, generation, sealed, issuer, scopes, expires_at, \
          can_renew, succeeded_at, failed_at, failure, lease_owner, lease_until \
          FROM oauth_grants WHERE workspace = $1 AND server = $2 AND subject = $3",
};
pub(super) const OF_WORKSPACE: Statement = Statement {
    name: "oauth_grants.of_workspace",
    sql: "SELECT workspace, server, subject, issuer, scopes, expires_at, can_renew, \
          succeeded_at, failed_at, failure FROM oauth_grants WHERE workspace = $1",
};
pub(super) const OF_USER: Statement = Statement {
    name: "oauth_grants.of_user",
    sql: "SELECT workspace, server, subject, issuer, scopes, expires_at, can_renew, \
          succeeded_at, failed_at, failure FROM oauth_grants \
          WHERE workspace = $1 AND subject = $2",
};
pub(super) const CHANGES: Statement = Statement {
    name: "oauth_grants.changes",
    sql: "SELECT n, dropped FROM oauth_changes WHERE id = 1",
};
pub(super) const CHANGED_SINCE: Statement = Statement {
    name: "oauth_grants.changed_since",
    sql: "SELECT workspace, server, subject, change FROM oauth_grants WHERE change > $1",
};
/// Before each write of a row, which gets the new number.
pub(super) const COUNT: Statement = Statement {
    name: "oauth_grants.count",
    sql: "UPDATE oauth_changes SET n = n + 1 WHERE id = 1",
};
/// With each removal.
pub(super) const COUNT_DROP: Statement = Statement {
    name: "oauth_grants.count_drop",
    sql: "UPDATE oauth_changes SET n = n + 1, dropped = n + 1 WHERE id = 1",
};
pub(super) const PUT: Statement = Statement {
    name: "oauth_grants.put",
    sql: "INSERT INTO oauth_grants (workspace, server, subject, generation, sealed, issuer, \
          scopes, expires_at, can_renew, succeeded_at, failed_at, failure, lease_owner, \
          lease_until, created_at, updated_at, change) \
          SELECT $1, $2, $3, n, $4, $5, $6, $7, $8, $9, $10, $11, '', 0, $12, $12, n \
          FROM oauth_changes WHERE id = 1 \
          ON CONFLICT (workspace, server, subject) DO UPDATE SET \
          generation = excluded.generation, sealed = excluded.sealed, issuer = excluded.issuer, \
          scopes = excluded.scopes, expires_at = excluded.expires_at, \
          can_renew = excluded.can_renew, succeeded_at = excluded.succeeded_at, \
          failed_at = excluded.failed_at, failure = excluded.failure, lease_owner = '', \
          lease_until = 0, updated_at = excluded.updated_at, change = excluded.change",
};
/// One statement decides between several owners, and no transaction is open while the tokens are
/// renewed.
pub(super) const LEASE: Statement = Statement {
    name: "oauth_grants.lease",
    sql: "UPDATE oauth_grants SET lease_owner = $4, lease_until = $5 \
          WHERE workspace = $1 AND server = $2 AND subject = $3 \
          AND (lease_owner = $4 OR lease_until <= $6)",
};
pub(super) const RENEW: Statement = Statement {
    name: "oauth_grants.renew",
    sql: "UPDATE oauth_grants SET generation = (SELECT n FROM oauth_changes WHERE id = 1), \
          sealed = $5, issuer = $6, scopes = $7, expires_at = $8, can_renew = $9, \
          succeeded_at = $10, failed_at = $11, failure = $12, lease_owner = '', lease_until = 0, \
          updated_at = $13, change = (SELECT n FROM oauth_changes WHERE id = 1) \
          WHERE workspace = $1 AND server = $2 AND subject = $3 AND generation = $4",
};
/// A lease of another owner, who took it when the caller's was over, stays.
pub(super) const NOTE_FAILURE: Statement = Statement {
    name: "oauth_grants.note_failure",
    sql: "UPDATE oauth_grants SET issuer = $6, scopes = $7, expires_at = $8, can_renew = $9, \
          succeeded_at = $10, failed_at = $11, failure = $12, \
          lease_until = CASE WHEN lease_owner = $5 THEN 0 ELSE lease_until END, \
          lease_owner = CASE WHEN lease_owner = $5 THEN '' ELSE lease_owner END, \
          updated_at = $13, change = (SELECT n FROM oauth_changes WHERE id = 1) \
          WHERE workspace = $1 AND server = $2 AND subject = $3 AND generation = $4",
};
pub(super) const REMOVE: Statement = Statement {
    name: "oauth_grants.remove",
    sql: "DELETE FROM oauth_grants WHERE workspace = $1 AND server = $2 AND subject = $3",
};
pub(super) const REMOVE_GENERATION: Statement = Statement {
    name: "oauth_grants.remove_generation",
    sql: "DELETE FROM oauth_grants \
          WHERE workspace = $1 AND server = $2 AND subject = $3 AND generation = $4",
};
pub(super) const DROP_USER: Statement = Statement {
    name: "oauth_grants.drop_user",
    sql: "DELETE FROM oauth_grants WHERE subject = $1 AND subject <> ''",
};
pub(super) const DROP_ATTEMPTS_OF_USER: Statement = Statement {
    name: "oauth_attempts.drop_user",
    sql: "DELETE FROM oauth_attempts WHERE subject = $1 AND subject <> ''",
};
pub(super) const DROP_MEMBER: Statement = Statement {
    name: "oauth_grants.drop_member",
    sql: "DELETE FROM oauth_grants WHERE workspace = $1 AND subject = $2 AND subject <> ''",
};
pub(super) const DROP_ATTEMPTS_OF_MEMBER: Statement = Statement {
    name: "oauth_attempts.drop_member",
    sql: "DELETE FROM oauth_attempts WHERE workspace = $1 AND subject = $2 AND subject <> ''",
};
pub(super) const DROP_SERVER: Statement = Statement {
    name: "oauth_grants.drop_server",
    sql: "DELETE FROM oauth_grants WHERE workspace = $1 AND server = $2",
};
pub(super) const DROP_ATTEMPTS_OF_SERVER: Statement = Statement {
    name: "oauth_attempts.drop_server",
    sql: "DELETE FROM oauth_attempts WHERE workspace = $1 AND server = $2",
};
