//! Grants of narthex at the authorization servers of others, and the leases of their renewal.
//!
//! The tokens are sealed, and nothing in this module opens them. Each write of a row is numbered,
//! so that other daemons on the store find it. A number is given once, also after a removal: a
//! late write of an earlier grant never replaces a later one.
//!
//! The caller passes the times of leases. It takes them from [`Store::now`](crate::Store::now), the
//! one clock of all daemons on a store, so that their own clocks may differ.

mod rows;
mod statements;

use std::time::{Duration, SystemTime};

use narthex_model::WorkspaceId;

pub(super) use self::rows::key;
pub use self::rows::{OAuthChanges, OAuthFacts, OAuthGrantKey, OAuthGrantRow};
use self::{
    rows::{facts, grant, number},
    statements::{
        CHANGED_SINCE, CHANGES, COUNT, COUNT_DROP, DROP_ATTEMPTS_OF_MEMBER,
        DROP_ATTEMPTS_OF_SERVER, DROP_ATTEMPTS_OF_USER, DROP_MEMBER, DROP_SERVER, DROP_USER, FIND,
        LEASE, NOTE_FAILURE, OF_USER, OF_WORKSPACE, PUT, REMOVE, REMOVE_GENERATION, RENEW,
    },
};
use super::{ms, now_ms};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

/// Access to grants.
#[derive(Debug, Clone, Copy)]
pub struct OAuthGrants<'a> {
    database: &'a Database,
}

impl<'a> OAuthGrants<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// A grant, if it exists.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(&self, key: &OAuthGrantKey) -> Result<Option<OAuthGrantRow>, StatementError> {
        let rows = self.database.read(FIND, &key.values()).await?;
        rows.first().map(grant).transpose()
    }

    /// The grants of a workspace, and of one human if one is named, with their facts, in the order
    /// of their keys.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn all(
        &self,
        workspace: &WorkspaceId,
        user: Option<&str>,
    ) -> Result<Vec<(OAuthGrantKey, OAuthFacts)>, StatementError> {
        let here = Value::Text(workspace.as_str());
        let rows = match user {
            None => self.database.read(OF_WORKSPACE, &[here]).await?,
            Some(user) => self.database.read(OF_USER, &[here, Value::Text(user)]).await?,
        };
        let of_row = |row: &Row| Ok((key(row)?, facts(row)?));
        let mut all: Vec<_> = rows.iter().map(of_row).collect::<Result<_, StatementError>>()?;
        // Sorted here, since databases order texts in different ways.
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(all)
    }

    /// The numbers of the last changes.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn changes(&self) -> Result<OAuthChanges, StatementError> {
        let rows = self.database.read(CHANGES, &[]).await?;
        let Some(row) = rows.first() else { return Ok(OAuthChanges::default()) };
        Ok(OAuthChanges { last: row.integer("n")?, dropped: row.integer("dropped")? })
    }

    /// The keys of all grants that were written after this number, each with the number of its last
    /// write. Grants that were removed are not among them.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn changed_since(
        &self,
        last: i64,
    ) -> Result<Vec<(OAuthGrantKey, i64)>, StatementError> {
        let rows = self.database.read(CHANGED_SINCE, &[Value::Integer(last)]).await?;
        rows.iter().map(|row| Ok((key(row)?, row.integer("change")?))).collect()
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
        let rows = self.database.write_then_read(steps, FIND, values).await?;
        let rows = rows.unwrap_or_default();
        rows.first().map(grant).transpose()
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
