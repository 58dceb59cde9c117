//! Rows of grants of narthex at the authorization servers of others.

use std::time::SystemTime;

use narthex_model::WorkspaceId;

use crate::{
    StatementError,
    database::times::time,
    objects::workspace,
    statement::{Row, Value},
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

/// The numbers of the last changes of grants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OAuthChanges {
    /// The last write or removal.
    pub last: i64,
    /// The last removal.
    pub dropped: i64,
}

impl OAuthGrantKey {
    pub(super) fn values(&self) -> [Value<'_>; 3] {
        [
            Value::Text(self.workspace.as_str()),
            Value::Text(&self.server),
            Value::Text(self.user.as_deref().unwrap_or_default()),
        ]
    }
}

impl OAuthFacts {
    pub(super) fn values(&self) -> [Value<'_>; 7] {
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

pub(super) fn grant(row: &Row) -> Result<OAuthGrantRow, StatementError> {
    let owner = row.text("lease_owner")?;
    let until = time(row, "lease_until")?;
    Ok(OAuthGrantRow {
        key: key(row)?,
        generation: read_number(row, "generation")?,
        sealed: row.text("sealed")?,
        facts: facts(row)?,
        lease: (!owner.is_empty()).then_some((owner, until)),
    })
}

pub(in crate::objects) fn key(row: &Row) -> Result<OAuthGrantKey, StatementError> {
    Ok(OAuthGrantKey {
        workspace: workspace(row)?,
        server: row.text("server")?,
        user: Some(row.text("subject")?).filter(|user| !user.is_empty()),
    })
}

pub(super) fn facts(row: &Row) -> Result<OAuthFacts, StatementError> {
    let at = |column| read_number(row, column).map(|at| Some(at).filter(|at| *at > 0));
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

fn read_number(row: &Row, column: &'static str) -> Result<u64, StatementError> {
    u64::try_from(row.integer(column)?).map_err(|_negative| row.damaged())
}

/// The number as the store holds it: at most [`i64::MAX`].
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
