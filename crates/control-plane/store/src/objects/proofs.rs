//! Proofs of humans: passkeys, and their identities at OpenID providers.

use std::time::SystemTime;

use narthex_model::{PrincipalId, Roles, WorkspaceId};

use super::{
    maybe_time, now_ms,
    principals::{CHANGED, create, grants, id},
    time,
};
use crate::{
    NewPrincipal, StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

const ADD: Statement = Statement {
    name: "passkeys.add",
    sql: "INSERT INTO passkeys (id, principal, label, document, enrolled_by, created_at) \
          VALUES ($1, $2, $3, $4, $5, $6)",
};
const ADD_FIRST: Statement = Statement {
    name: "passkeys.add_first",
    sql: "INSERT INTO passkeys (id, principal, label, document, enrolled_by, created_at) \
          SELECT $1, $2, $3, $4, $5, $6 WHERE NOT EXISTS (SELECT 1 FROM passkeys)",
};
/// The method of a session that an invitation began is `invitation` until it has added its passkey,
/// and then `link`.
const ACCEPT: Statement = Statement {
    name: "login_sessions.accept",
    sql: "UPDATE login_sessions SET method = 'link' WHERE hash = $1 AND method = 'invitation'",
};
const ANY: Statement = Statement { name: "passkeys.any", sql: "SELECT id FROM passkeys LIMIT 1" };
const FIND: Statement = Statement {
    name: "passkeys.find",
    sql: "SELECT id, principal, label, document, enrolled_by, created_at, used_at FROM passkeys \
          WHERE id = $1",
};
const OF: Statement = Statement {
    name: "passkeys.of",
    sql: "SELECT id, principal, label, document, enrolled_by, created_at, used_at FROM passkeys \
          WHERE principal = $1",
};
const USED: Statement = Statement {
    name: "passkeys.used",
    sql: "UPDATE passkeys SET document = $3, used_at = $4 WHERE id = $1 AND document = $2",
};
const REMOVE: Statement = Statement {
    name: "passkeys.remove",
    sql: "DELETE FROM passkeys WHERE principal = $1 AND id = $2",
};
const IDENTITY: Statement = Statement {
    name: "oidc_identities.find",
    sql: "SELECT principal FROM oidc_identities WHERE issuer = $1 AND subject = $2",
};
const KNOW: Statement = Statement {
    name: "oidc_identities.know",
    sql: "INSERT INTO oidc_identities (issuer, subject, principal, created_at) \
          VALUES ($1, $2, $3, $4)",
};

/// A passkey's public half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasskeyRow {
    /// Id of the passkey, unique among all.
    pub id: String,
    pub principal: PrincipalId,
    /// Name of the passkey's device, for people.
    pub label: String,
    /// Public half and counter of the passkey, as received.
    pub document: String,
    /// The principal's method of sign-in when the passkey was added.
    pub enrolled_by: String,
    pub created_at: SystemTime,
    pub used_at: Option<SystemTime>,
}

/// Access to the proofs of humans.
#[derive(Debug, Clone, Copy)]
pub struct Proofs<'a> {
    database: &'a Database,
}

impl<'a> Proofs<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Stores a new passkey. Ignores the times of creation and use in the row.
    ///
    /// # Errors
    /// `Exists` if any principal has the passkey already, `OwnerMissing` if there is no such
    /// principal, or when the statement fails.
    pub async fn add_passkey(&self, passkey: &PasskeyRow) -> Result<(), StatementError> {
        self.database.write_steps(&[add(ADD, passkey)]).await.map(drop)
    }

    /// Stores a passkey that must be the first of all. Returns `false` and changes nothing if any
    /// principal has a passkey.
    ///
    /// # Errors
    /// As [`add_passkey`](Self::add_passkey).
    pub async fn add_first_passkey(&self, passkey: &PasskeyRow) -> Result<bool, StatementError> {
        self.database.write_steps(&[add(ADD_FIRST, passkey)]).await
    }

    /// Stores a passkey that an invitation adds, in the session of this hash. Returns `false` and
    /// changes nothing if the invitation has added a passkey already, or the session is over.
    ///
    /// # Errors
    /// As [`add_passkey`](Self::add_passkey).
    pub async fn add_invited_passkey(
        &self,
        passkey: &PasskeyRow,
        session: &str,
    ) -> Result<bool, StatementError> {
        let steps = [
            Step::must_change(ACCEPT, vec![Value::Text(session)]),
            add(ADD, passkey),
            Step::new(CHANGED, Vec::new()),
        ];
        self.database.write_steps(&steps).await
    }

    /// The passkey of an id, if it exists.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find_passkey(&self, id: &str) -> Result<Option<PasskeyRow>, StatementError> {
        let rows = self.database.read(FIND, &[Value::Text(id)]).await?;
        rows.first().map(passkey).transpose()
    }

    /// True if any principal has a passkey.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn has_passkeys(&self) -> Result<bool, StatementError> {
        Ok(!self.database.read(ANY, &[]).await?.is_empty())
    }

    /// The passkeys of a principal, the oldest first.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn passkeys(
        &self,
        principal: &PrincipalId,
    ) -> Result<Vec<PasskeyRow>, StatementError> {
        let rows = self.database.read(OF, &[Value::Text(principal.as_str())]).await?;
        let mut all: Vec<_> = rows.iter().map(passkey).collect::<Result<_, _>>()?;
        all.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(all)
    }

    /// Stores a passkey's document after a use. Returns `false` if the stored passkey has changed
    /// since it was read: it was used or removed meanwhile.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn passkey_used(
        &self,
        before: &PasskeyRow,
        document: &str,
    ) -> Result<bool, StatementError> {
        let values = vec![
            Value::Text(&before.id),
            Value::Text(&before.document),
            Value::Text(document),
            Value::Integer(now_ms()),
        ];
        self.database.write_steps(&[Step::must_change(USED, values)]).await
    }

    /// Removes a passkey. Returns `false` if the principal has none of this id.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn remove_passkey(
        &self,
        principal: &PrincipalId,
        id: &str,
    ) -> Result<bool, StatementError> {
        let values = vec![Value::Text(principal.as_str()), Value::Text(id)];
        self.database.write_steps(&[Step::must_change(REMOVE, values)]).await
    }

    /// Returns the principal of an identity at a provider, if the identity is known.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find_identity(
        &self,
        issuer: &str,
        subject: &str,
    ) -> Result<Option<PrincipalId>, StatementError> {
        let rows = self.database.read(IDENTITY, &[Value::Text(issuer), Value::Text(subject)]).await;
        rows?.first().map(|row| id(row, "principal")).transpose()
    }

    /// Creates a human for an identity at a provider.
    ///
    /// # Errors
    /// `Exists` if the name is taken or the identity is known, or when a statement fails.
    pub async fn admit(
        &self,
        issuer: &str,
        subject: &str,
        new: NewPrincipal<'_>,
        roles: &[(WorkspaceId, Roles)],
    ) -> Result<(), StatementError> {
        let values = vec![
            Value::Text(issuer),
            Value::Text(subject),
            Value::Text(new.id.as_str()),
            Value::Integer(now_ms()),
        ];
        let mut steps = vec![create(new), Step::new(KNOW, values)];
        for (workspace, roles) in roles {
            steps.extend(grants(workspace, new.id, roles, new.by));
        }
        steps.push(Step::new(CHANGED, Vec::new()));
        self.database.write_steps(&steps).await.map(drop)
    }
}

fn add(statement: Statement, passkey: &PasskeyRow) -> Step<'_> {
    let PasskeyRow { id, principal, label, document, enrolled_by, .. } = passkey;
    let values = vec![
        Value::Text(id),
        Value::Text(principal.as_str()),
        Value::Text(label),
        Value::Text(document),
        Value::Text(enrolled_by),
        Value::Integer(now_ms()),
    ];
    Step::must_change(statement, values)
}

fn passkey(row: &Row) -> Result<PasskeyRow, StatementError> {
    Ok(PasskeyRow {
        id: row.text("id")?,
        principal: id(row, "principal")?,
        label: row.text("label")?,
        document: row.text("document")?,
        enrolled_by: row.text("enrolled_by")?,
        created_at: time(row, "created_at")?,
        used_at: maybe_time(row, "used_at")?,
    })
}
