//! Reads grants of narthex, and their changes.

use narthex_model::WorkspaceId;

use super::{OAuthFacts, OAuthGrantKey, OAuthGrantRow, OAuthGrants};
use crate::{
    StatementError,
    objects::{time, workspace},
    statement::{Row, Statement, Value},
};

pub(super) const FIND: Statement = Statement {
    name: "oauth_grants.find",
    sql: "SELECT workspace, server, subject, generation, sealed, issuer, scopes, expires_at, \
          can_renew, succeeded_at, failed_at, failure, lease_owner, lease_until \
          FROM oauth_grants WHERE workspace = $1 AND server = $2 AND subject = $3",
};
const OF_WORKSPACE: Statement = Statement {
    name: "oauth_grants.of_workspace",
    sql: "SELECT workspace, server, subject, issuer, scopes, expires_at, can_renew, \
          succeeded_at, failed_at, failure FROM oauth_grants WHERE workspace = $1",
};
const OF_USER: Statement = Statement {
    name: "oauth_grants.of_user",
    sql: "SELECT workspace, server, subject, issuer, scopes, expires_at, can_renew, \
          succeeded_at, failed_at, failure FROM oauth_grants \
          WHERE workspace = $1 AND subject = $2",
};
const CHANGES: Statement = Statement {
    name: "oauth_grants.changes",
    sql: "SELECT n, dropped FROM oauth_changes WHERE id = 1",
};
const CHANGED_SINCE: Statement = Statement {
    name: "oauth_grants.changed_since",
    sql: "SELECT workspace, server, subject, change FROM oauth_grants WHERE change > $1",
};

/// The numbers of the last changes of grants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OAuthChanges {
    /// The last write or removal.
    pub last: i64,
    /// The last removal.
    pub dropped: i64,
}

impl OAuthGrants<'_> {
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
}

pub(super) fn grant(row: &Row) -> Result<OAuthGrantRow, StatementError> {
    let owner = row.text("lease_owner")?;
    let until = time(row, "lease_until")?;
    Ok(OAuthGrantRow {
        key: key(row)?,
        generation: number(row, "generation")?,
        sealed: row.text("sealed")?,
        facts: facts(row)?,
        lease: (!owner.is_empty()).then_some((owner, until)),
    })
}

fn key(row: &Row) -> Result<OAuthGrantKey, StatementError> {
    Ok(OAuthGrantKey {
        workspace: workspace(row)?,
        server: row.text("server")?,
        user: Some(row.text("subject")?).filter(|user| !user.is_empty()),
    })
}

fn facts(row: &Row) -> Result<OAuthFacts, StatementError> {
    let at = |column| number(row, column).map(|at| Some(at).filter(|at| *at > 0));
    Ok(OAuthFacts {
        issuer: row.text("issuer")?,
        scopes: row.text("scopes")?,
        expires_at: at("expires_at")?,
        can_renew: row.integer("can_renew")? != 0,
        succeeded_at: at("succeeded_at")?,
        failed_at: at("failed_at")?,
        failure: Some(row.text("failure")?).filter(|failure| !failure.is_empty()),
    })
}

fn number(row: &Row, column: &'static str) -> Result<u64, StatementError> {
    u64::try_from(row.integer(column)?).map_err(|_negative| row.damaged())
}
