//! Logins of humans: sessions, and the links that start one. Only hashes of their tokens are
//! stored.

use std::time::SystemTime;

use narthex_model::PrincipalId;

use super::{
    ms, now_ms,
    principals::{CHANGED, id},
    time,
};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

const SESSIONS: Statement = Statement {
    name: "login_sessions.all",
    sql: "SELECT hash, principal, method, created_at, seen_at FROM login_sessions \
          WHERE expires_at > $1",
};
const BEGIN: Statement = Statement {
    name: "login_sessions.begin",
    sql: "INSERT INTO login_sessions (hash, principal, method, created_at, seen_at, expires_at) \
          VALUES ($1, $2, $3, $4, $5, $6)",
};
const SEEN: Statement = Statement {
    name: "login_sessions.seen",
    sql: "UPDATE login_sessions SET seen_at = $2 WHERE hash = $1 AND seen_at < $2",
};
const END: Statement =
    Statement { name: "login_sessions.end", sql: "DELETE FROM login_sessions WHERE hash = $1" };
const END_ALL: Statement = Statement {
    name: "login_sessions.end_all",
    sql: "DELETE FROM login_sessions WHERE principal = $1",
};
const FORGET_SESSIONS: Statement = Statement {
    name: "login_sessions.forget",
    sql: "DELETE FROM login_sessions WHERE expires_at <= $1",
};
const MAKE_LINK: Statement = Statement {
    name: "sign_in_links.make",
    sql: "INSERT INTO sign_in_links \
          (hash, principal, created_at, created_by, expires_at, is_invitation) \
          VALUES ($1, $2, $3, $4, $5, $6)",
};
const FIND_LINK: Statement = Statement {
    name: "sign_in_links.find",
    sql: "SELECT principal, is_invitation FROM sign_in_links WHERE hash = $1 AND expires_at > $2",
};
const USE_LINK: Statement = Statement {
    name: "sign_in_links.use",
    sql: "DELETE FROM sign_in_links WHERE hash = $1 AND expires_at > $2",
};
const FORGET_LINKS: Statement = Statement {
    name: "sign_in_links.forget",
    sql: "DELETE FROM sign_in_links WHERE expires_at <= $1",
};
const FORGET_LINKS_OF: Statement = Statement {
    name: "sign_in_links.forget_of",
    sql: "DELETE FROM sign_in_links WHERE principal = $1",
};

/// A session, without its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginSessionRow {
    /// Hash of the session's token.
    pub hash: String,
    pub principal: PrincipalId,
    /// The method by which the principal signed in, as a word.
    pub method: String,
    pub created_at: SystemTime,
    /// Approximate time of the last use.
    pub seen_at: SystemTime,
}

/// A link to be stored, without its token.
#[derive(Debug, Clone, Copy)]
pub struct NewSignInLink<'a> {
    /// Hash of the link's token.
    pub hash: &'a str,
    /// The principal whom the link signs in.
    pub principal: &'a PrincipalId,
    pub by: &'a str,
    pub expires_at: SystemTime,
    /// True if a proved human creates the link.
    pub is_invitation: bool,
}

/// A valid link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLink {
    /// The principal whom the link signs in.
    pub principal: PrincipalId,
    /// True if a proved human has created the link.
    pub is_invitation: bool,
}

/// Access to sessions and links.
#[derive(Debug, Clone, Copy)]
pub struct Logins<'a> {
    database: &'a Database,
}

impl<'a> Logins<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// All sessions that have not expired, in no order.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn sessions(&self) -> Result<Vec<LoginSessionRow>, StatementError> {
        let rows = self.database.read(SESSIONS, &[Value::Integer(now_ms())]).await?;
        rows.iter().map(session).collect()
    }

    /// Stores a new session, and removes expired ones.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such principal, or when a statement fails.
    pub async fn begin(
        &self,
        session: &LoginSessionRow,
        expires_at: SystemTime,
    ) -> Result<(), StatementError> {
        let steps = begin(session, expires_at);
        self.database.write_steps(&steps).await.map(drop)
    }

    /// Stores the times of sessions' last uses. Does not count as a change of permissions.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn seen(&self, sessions: &[(String, SystemTime)]) -> Result<(), StatementError> {
        let values = |(hash, at): &'_ (String, SystemTime)| (hash.clone(), ms(*at));
        let all: Vec<_> = sessions.iter().map(values).collect();
        let all: Vec<_> =
            all.iter().map(|(hash, at)| vec![Value::Text(hash), Value::Integer(*at)]).collect();
        self.database.write_each(SEEN, &all).await
    }

    /// Ends a session. Returns `false` if it does not exist.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn end(&self, hash: &str) -> Result<bool, StatementError> {
        let steps =
            [Step::must_change(END, vec![Value::Text(hash)]), Step::new(CHANGED, Vec::new())];
        self.database.write_steps(&steps).await
    }

    /// Ends all sessions of a principal, and removes all links that could start one.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn end_all(&self, principal: &PrincipalId) -> Result<(), StatementError> {
        let steps = [
            Step::new(END_ALL, vec![Value::Text(principal.as_str())]),
            Step::new(FORGET_LINKS_OF, vec![Value::Text(principal.as_str())]),
            Step::new(CHANGED, Vec::new()),
        ];
        self.database.write_steps(&steps).await.map(drop)
    }

    /// Stores a link, and removes expired ones.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such principal, or when a statement fails.
    pub async fn make_link(&self, link: NewSignInLink<'_>) -> Result<(), StatementError> {
        let NewSignInLink { hash, principal, by, expires_at, is_invitation } = link;
        let values = vec![
            Value::Text(hash),
            Value::Text(principal.as_str()),
            Value::Integer(now_ms()),
            Value::Text(by),
            Value::Integer(ms(expires_at)),
            Value::Integer(is_invitation.into()),
        ];
        let forget = Step::new(FORGET_LINKS, vec![Value::Integer(now_ms())]);
        self.database.write_steps(&[forget, Step::new(MAKE_LINK, values)]).await.map(drop)
    }

    /// The link of a hash, if it is valid. The link stays valid.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find_link(&self, hash: &str) -> Result<Option<FoundLink>, StatementError> {
        let values = [Value::Text(hash), Value::Integer(now_ms())];
        let rows = self.database.read(FIND_LINK, &values).await?;
        rows.first().map(link).transpose()
    }

    /// Uses a link up and starts its session. Returns `false` and starts no session if the link was
    /// used already or has expired.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn use_link(
        &self,
        hash: &str,
        session: &LoginSessionRow,
        expires_at: SystemTime,
    ) -> Result<bool, StatementError> {
        let values = vec![Value::Text(hash), Value::Integer(now_ms())];
        let mut steps = vec![Step::must_change(USE_LINK, values)];
        steps.extend(begin(session, expires_at));
        self.database.write_steps(&steps).await
    }
}

fn begin(session: &LoginSessionRow, expires_at: SystemTime) -> [Step<'_>; 3] {
    let LoginSessionRow { hash, principal, method, created_at, seen_at } = session;
    let values = vec![
        Value::Text(hash),
        Value::Text(principal.as_str()),
        Value::Text(method),
        Value::Integer(ms(*created_at)),
        Value::Integer(ms(*seen_at)),
        Value::Integer(ms(expires_at)),
    ];
    [
        Step::new(FORGET_SESSIONS, vec![Value::Integer(now_ms())]),
        Step::new(BEGIN, values),
        Step::new(CHANGED, Vec::new()),
    ]
}

fn link(row: &Row) -> Result<FoundLink, StatementError> {
    Ok(FoundLink {
        principal: id(row, "principal")?,
        is_invitation: row.integer("is_invitation")? != 0,
    })
}

fn session(row: &Row) -> Result<LoginSessionRow, StatementError> {
    Ok(LoginSessionRow {
        hash: row.text("hash")?,
        principal: id(row, "principal")?,
        method: row.text("method")?,
        created_at: time(row, "created_at")?,
        seen_at: time(row, "seen_at")?,
    })
}
