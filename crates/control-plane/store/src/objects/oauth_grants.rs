//! Grants of narthex at the authorization servers of others, and the leases of their renewal.
//!
//! The tokens are sealed, and nothing in this module opens them. Each write of a row is numbered,
//! so that other daemons on the store find it. A number is given once, also after a removal: a
//! late write of an earlier grant never replaces a later one.
//!
//! The caller passes the times of leases. It takes them from [`Store::now`](crate::Store::now), the
//! one clock of all daemons on a store, so that their own clocks may differ.

mod reading;

use std::time::{Duration, SystemTime};

use narthex_model::WorkspaceId;

pub use self::reading::OAuthChanges;
use super::{ms, now_ms};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Statement, Value},
};

/// Before each write of a row, which gets the new number.
const COUNT: Statement = Statement {
    name: "oauth_grants.count",
    sql: "UPDATE oauth_changes SET n = n + 1 WHERE id = 1",
};
/// With each removal.
const COUNT_DROP: Statement = Statement {
    name: "oauth_grants.count_drop",
    sql: "UPDATE oauth_changes SET n = n + 1, dropped = n + 1 WHERE id = 1",
};
const PUT: Statement = Statement {
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
const LEASE: Statement = Statement {
    name: "oauth_grants.lease",
    sql: "UPDATE oauth_grants SET lease_owner = $4, lease_until = $5 \
          WHERE workspace = $1 AND server = $2 AND subject = $3 \
          AND (lease_owner = $4 OR lease_until <= $6)",
};
const RENEW: Statement = Statement {
    name: "oauth_grants.renew",
    sql: "UPDATE oauth_grants SET generation = (SELECT n FROM oauth_changes WHERE id = 1), \
          sealed = $5, issuer = $6, scopes = $7, expires_at = $8, can_renew = $9, \
          succeeded_at = $10, failed_at = $11, failure = $12, lease_owner = '', lease_until = 0, \
          updated_at = $13, change = (SELECT n FROM oauth_changes WHERE id = 1) \
          WHERE workspace = $1 AND server = $2 AND subject = $3 AND generation = $4",
};
/// A lease of another owner, who took it when the caller's was over, stays.
const NOTE_FAILURE: Statement = Statement {
    name: "oauth_grants.note_failure",
    sql: "UPDATE oauth_grants SET issuer = $6, scopes = $7, expires_at = $8, can_renew = $9, \
          succeeded_at = $10, failed_at = $11, failure = $12, \
          lease_until = CASE WHEN lease_owner = $5 THEN 0 ELSE lease_until END, \
          lease_owner = CASE WHEN lease_owner = $5 THEN '' ELSE lease_owner END, \
          updated_at = $13, change = (SELECT n FROM oauth_changes WHERE id = 1) \
          WHERE workspace = $1 AND server = $2 AND subject = $3 AND generation = $4",
};
const REMOVE: Statement = Statement {
    name: "oauth_grants.remove",
    sql: "DELETE FROM oauth_grants WHERE workspace = $1 AND server = $2 AND subject = $3",
};
const REMOVE_GENERATION: Statement = Statement {
    name: "oauth_grants.remove_generation",
    sql: "DELETE FROM oauth_grants \
          WHERE workspace = $1 AND server = $2 AND subject = $3 AND generation = $4",
};
const DROP_USER: Statement = Statement {
    name: "oauth_grants.drop_user",
    sql: "DELETE FROM oauth_grants WHERE subject = $1 AND subject <> ''",
};
const DROP_ATTEMPTS_OF_USER: Statement = Statement {
    name: "oauth_attempts.drop_user",
    sql: "DELETE FROM oauth_attempts WHERE subject = $1 AND subject <> ''",
};
const DROP_MEMBER: Statement = Statement {
    name: "oauth_grants.drop_member",
    sql: "DELETE FROM oauth_grants WHERE workspace = $1 AND subject = $2 AND subject <> ''",
};
const DROP_ATTEMPTS_OF_MEMBER: Statement = Statement {
    name: "oauth_attempts.drop_member",
    sql: "DELETE FROM oauth_attempts WHERE workspace = $1 AND subject = $2 AND subject <> ''",
};
const DROP_SERVER: Statement = Statement {
    name: "oauth_grants.drop_server",
    sql: "DELETE FROM oauth_grants WHERE workspace = $1 AND server = $2",
};
const DROP_ATTEMPTS_OF_SERVER: Statement = Statement {
    name: "oauth_attempts.drop_server",
    sql: "DELETE FROM oauth_attempts WHERE workspace = $1 AND server = $2",
};

/// The key of a grant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OAuthGrantKey {
    pub workspace: WorkspaceId,
    /// The server: an alias of the live configuration, or an id of the catalog.
    pub server: String,
    /// The human, never empty; `None` for a grant that all share.
    pub user: Option<String>,
}

/// The public facts of a grant. Times are seconds since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthFacts {
    /// The authorization server.
    pub issuer: String,
    /// The granted scopes, with blanks between them.
    pub scopes: String,
    /// The end of the access token.
    pub expires_at: Option<u64>,
    /// True if the grant can be renewed without a human.
    pub can_renew: bool,
    /// The last request for tokens that succeeded.
    pub succeeded_at: Option<u64>,
    /// The last request for tokens that failed.
    pub failed_at: Option<u64>,
    /// The reason for the last failure, if no request succeeded since.
    pub failure: Option<String>,
}

/// A stored grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthGrantRow {
    pub key: OAuthGrantKey,
    /// The number of the last write of the tokens. A failure that is noted does not change it.
    pub generation: u64,
    /// The tokens, sealed.
    pub sealed: String,
    pub facts: OAuthFacts,
    /// The owner of the lease, and its end; `None` if no process has asked for one since the last
    /// write.
    pub lease: Option<(String, SystemTime)>,
}

/// Access to grants.
#[derive(Debug, Clone, Copy)]
pub struct OAuthGrants<'a> {
    database: &'a Database,
}

impl OAuthGrantKey {
    fn values(&self) -> [Value<'_>; 3] {
        [
            Value::Text(self.workspace.as_str()),
            Value::Text(&self.server),
            Value::Text(self.user.as_deref().unwrap_or_default()),
        ]
    }
}

impl OAuthFacts {
    fn values(&self) -> [Value<'_>; 7] {
        [
            Value::Text(&self.issuer),
            Value::Text(&self.scopes),
            Value::Integer(self.expires_at.map_or(0, number)),
            Value::Integer(self.can_renew.into()),
            Value::Integer(self.succeeded_at.map_or(0, number)),
            Value::Integer(self.failed_at.map_or(0, number)),
            Value::Text(self.failure.as_deref().unwrap_or_default()),
        ]
    }
}

impl<'a> OAuthGrants<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Stores a grant in place of any other of its key, and ends the lease of that one. Returns the
    /// stored row.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such workspace, or when a statement fails.
    pub async fn put(
        &self,
        key: &OAuthGrantKey,
        sealed: &str,
        facts: &OAuthFacts,
    ) -> Result<OAuthGrantRow, StatementError> {
        let mut values = key.values().to_vec();
        values.push(Value::Text(sealed));
        values.extend(facts.values());
        values.push(Value::Integer(now_ms()));
        let steps = [Step::new(COUNT, Vec::new()), Step::must_change(PUT, values)];
        let stored = self.write_then_find(&steps, key).await?;
        // Only a store without its number changes nothing.
        stored.ok_or(StatementError::Damaged { statement: PUT.name })
    }

    /// Takes the lease of a grant from `now` on, if it is free or `owner` has it already. Returns
    /// the row with the lease that counts; `None` if there is no such grant. `owner` is never
    /// empty.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn lease(
        &self,
        key: &OAuthGrantKey,
        owner: &str,
        now: SystemTime,
        length: Duration,
    ) -> Result<Option<OAuthGrantRow>, StatementError> {
        let until = now.checked_add(length).unwrap_or(now);
        let mut values = key.values().to_vec();
        values.extend([Value::Text(owner), Value::Integer(ms(until)), Value::Integer(ms(now))]);
        self.write_then_find(&[Step::new(LEASE, values)], key).await
    }

    /// Stores a renewed grant, and ends its lease. Returns the stored row. Returns `None` and
    /// changes nothing if the grant no longer has this generation.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn renew(
        &self,
        key: &OAuthGrantKey,
        generation: u64,
        sealed: &str,
        facts: &OAuthFacts,
    ) -> Result<Option<OAuthGrantRow>, StatementError> {
        let mut values = key.values().to_vec();
        values.extend([Value::Integer(number(generation)), Value::Text(sealed)]);
        values.extend(facts.values());
        values.push(Value::Integer(now_ms()));
        let steps = [Step::new(COUNT, Vec::new()), Step::must_change(RENEW, values)];
        self.write_then_find(&steps, key).await
    }

    /// Stores the facts of a failed renewal, and ends the lease if `owner` has it. Does nothing if
    /// the grant no longer has this generation.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn note_failure(
        &self,
        key: &OAuthGrantKey,
        generation: u64,
        facts: &OAuthFacts,
        owner: &str,
    ) -> Result<(), StatementError> {
        let mut values = key.values().to_vec();
        values.extend([Value::Integer(number(generation)), Value::Text(owner)]);
        values.extend(facts.values());
        values.push(Value::Integer(now_ms()));
        let steps = [Step::new(COUNT, Vec::new()), Step::must_change(NOTE_FAILURE, values)];
        self.database.write_steps(&steps).await.map(drop)
    }

    /// Removes a grant, if it has this generation; any if `None`. Returns `false` and changes
    /// nothing if there is none.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn remove(
        &self,
        key: &OAuthGrantKey,
        generation: Option<u64>,
    ) -> Result<bool, StatementError> {
        let mut values = key.values().to_vec();
        let statement = match generation {
            None => REMOVE,
            Some(generation) => {
                values.push(Value::Integer(number(generation)));
                REMOVE_GENERATION
            }
        };
        let steps = [Step::must_change(statement, values), Step::new(COUNT_DROP, Vec::new())];
        self.database.write_steps(&steps).await
    }

    /// Removes the grants and open attempts of a human in a workspace.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn drop_user(
        &self,
        workspace: &WorkspaceId,
        user: &str,
    ) -> Result<(), StatementError> {
        let values = vec![Value::Text(workspace.as_str()), Value::Text(user)];
        let steps = drops([DROP_ATTEMPTS_OF_MEMBER, DROP_MEMBER], &values);
        self.database.write_steps(&steps).await.map(drop)
    }

    /// Removes the grants and open attempts of a server: the shared one, and those of all humans.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn drop_server(
        &self,
        workspace: &WorkspaceId,
        server: &str,
    ) -> Result<(), StatementError> {
        let steps = drop_server(Value::Text(workspace.as_str()), Value::Text(server));
        self.database.write_steps(&steps).await.map(drop)
    }

    async fn write_then_find(
        &self,
        steps: &[Step<'_>],
        key: &OAuthGrantKey,
    ) -> Result<Option<OAuthGrantRow>, StatementError> {
        let values = key.values().to_vec();
        let rows = self.database.write_then_read(steps, reading::FIND, values).await?;
        let rows = rows.unwrap_or_default();
        rows.first().map(reading::grant).transpose()
    }
}

/// The steps that remove the grants and open attempts of a human in all workspaces.
pub(super) fn drop_user(user: Value<'_>) -> [Step<'_>; 3] {
    drops([DROP_ATTEMPTS_OF_USER, DROP_USER], &[user])
}

/// The steps that remove the grants and open attempts of a server.
pub(super) fn drop_server<'v>(workspace: Value<'v>, server: Value<'v>) -> [Step<'v>; 3] {
    drops([DROP_ATTEMPTS_OF_SERVER, DROP_SERVER], &[workspace, server])
}

/// The step that tells other daemons of grants that went with their workspace.
pub(super) fn workspace_gone<'v>() -> Step<'v> {
    Step::new(COUNT_DROP, Vec::new())
}

fn drops<'v>(statements: [Statement; 2], values: &[Value<'v>]) -> [Step<'v>; 3] {
    let [attempts, grants] = statements.map(|one| Step::new(one, values.to_vec()));
    [attempts, grants, Step::new(COUNT_DROP, Vec::new())]
}

/// A number as the store holds it: at most [`i64::MAX`].
fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
