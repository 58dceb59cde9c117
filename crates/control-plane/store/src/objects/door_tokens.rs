//! Authorization codes, families of tokens, access tokens and used proofs of the door. Only hashes
//! are stored.

use std::time::SystemTime;

use narthex_model::McpClientId;

use super::{ms, now_ms, optional_time, principals::CHANGED, time};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

const PUT_CODE: Statement = Statement {
    name: "door_codes.create",
    sql: "INSERT INTO door_codes (hash, connection, state, document, expires_at) \
          VALUES ($1, $2, 'unused', $3, $4)",
};
const FIND_CODE: Statement = Statement {
    name: "door_codes.find",
    sql: "SELECT connection, document FROM door_codes WHERE hash = $1",
};
const END_CODE: Statement = Statement {
    name: "door_codes.end",
    sql: "UPDATE door_codes SET state = $2, document = $3 WHERE hash = $1 AND state = 'unused'",
};
const FORGET_CODES: Statement =
    Statement { name: "door_codes.forget", sql: "DELETE FROM door_codes WHERE expires_at <= $1" };
const PUT_FAMILY: Statement = Statement {
    name: "door_families.create",
    sql: "INSERT INTO door_families (id, connection, generation, document, expires_at, revoked_at) \
          VALUES ($1, $2, $3, $4, $5, 0)",
};
const FIND_FAMILY: Statement = Statement {
    name: "door_families.find",
    sql: "SELECT id, connection, generation, document, expires_at, revoked_at FROM door_families \
          WHERE id = $1",
};
const ROTATE: Statement = Statement {
    name: "door_families.rotate",
    sql: "UPDATE door_families SET generation = $2, document = $3, expires_at = $4 \
          WHERE id = $1 AND generation = $5 AND revoked_at = 0",
};
const IS_ALIVE: Statement = Statement {
    name: "door_families.is_alive",
    sql: "UPDATE door_families SET revoked_at = 0 WHERE id = $1 AND revoked_at = 0",
};
const REVOKE_FAMILY: Statement = Statement {
    name: "door_families.revoke",
    sql: "UPDATE door_families SET revoked_at = $2 WHERE id = $1 AND revoked_at = 0",
};
const ENDED_FAMILIES: Statement = Statement {
    name: "door_families.ended",
    sql: "SELECT connection, revoked_at FROM door_families WHERE revoked_at > $1",
};
const FORGET_FAMILIES: Statement = Statement {
    name: "door_families.forget",
    sql: "DELETE FROM door_families WHERE expires_at <= $1",
};
const PUT_TOKEN: Statement = Statement {
    name: "door_tokens.create",
    sql: "INSERT INTO door_tokens (hash, connection, family, document, expires_at, revoked_at) \
          VALUES ($1, $2, $3, $4, $5, 0)",
};
const FIND_TOKEN: Statement = Statement {
    name: "door_tokens.find",
    sql: "SELECT hash, connection, family, document, expires_at FROM door_tokens \
          WHERE hash = $1 AND revoked_at = 0 AND expires_at > $2",
};
const REVOKE_TOKEN: Statement = Statement {
    name: "door_tokens.revoke",
    sql: "UPDATE door_tokens SET revoked_at = $2 WHERE hash = $1 AND revoked_at = 0",
};
const REVOKE_TOKENS: Statement = Statement {
    name: "door_tokens.revoke_all",
    sql: "UPDATE door_tokens SET revoked_at = $2 WHERE family = $1 AND revoked_at = 0",
};
const ENDED_TOKENS: Statement = Statement {
    name: "door_tokens.ended",
    sql: "SELECT hash FROM door_tokens WHERE revoked_at > 0 AND expires_at > $1",
};
const FORGET_TOKENS: Statement =
    Statement { name: "door_tokens.forget", sql: "DELETE FROM door_tokens WHERE expires_at <= $1" };
const PUT_PROOF: Statement = Statement {
    name: "door_proofs.create",
    sql: "INSERT INTO door_proofs (hash, expires_at) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING",
};
const FORGET_PROOFS: Statement =
    Statement { name: "door_proofs.forget", sql: "DELETE FROM door_proofs WHERE expires_at <= $1" };

/// An authorization code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoorCodeRow {
    /// The registered client whose consent gave the code.
    pub connection: McpClientId,
    /// The code's record as JSON.
    pub document: String,
}

/// A family of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoorFamilyRow {
    pub id: String,
    /// The registered client that has the tokens.
    pub connection: McpClientId,
    /// Number of uses of a refresh token.
    pub generation: i64,
    /// The family's record as JSON.
    pub document: String,
    pub expires_at: SystemTime,
    pub revoked_at: Option<SystemTime>,
}

/// An access token that is not revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoorTokenRow {
    pub hash: String,
    /// The registered client that has the token.
    pub connection: McpClientId,
    /// The token's family; empty for a token without one.
    pub family: String,
    /// The token's record as JSON.
    pub document: String,
    pub expires_at: SystemTime,
}

/// The use of a code.
#[derive(Debug, Clone, Copy)]
pub struct UsedCode<'a> {
    pub hash: &'a str,
    /// The code's record after the use, as JSON.
    pub document: &'a str,
}

/// The use of a proof that counts once.
#[derive(Debug, Clone, Copy)]
pub struct UsedProof<'a> {
    pub hash: &'a str,
    /// Time after which the proof proves nothing.
    pub forget_at: SystemTime,
}

/// Access to codes, families and tokens.
#[derive(Debug, Clone, Copy)]
pub struct DoorTokens<'a> {
    database: &'a Database,
}

impl<'a> DoorTokens<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Stores a code until a time after which no second use matters.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such client, or when the statement fails.
    pub async fn put_code(
        &self,
        hash: &str,
        row: &DoorCodeRow,
        forget_at: SystemTime,
    ) -> Result<(), StatementError> {
        let values = [
            Value::Text(hash),
            Value::Text(row.connection.as_str()),
            Value::Text(&row.document),
            Value::Integer(ms(forget_at)),
        ];
        self.database.write(PUT_CODE, &values).await
    }

    /// The code of a hash, also a used one.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn code(&self, hash: &str) -> Result<Option<DoorCodeRow>, StatementError> {
        let rows = self.database.read(FIND_CODE, &[Value::Text(hash)]).await?;
        rows.first().map(code).transpose()
    }

    /// Uses a code up without tokens. Returns `false` if it was used before.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn spend_code(&self, code: UsedCode<'_>) -> Result<bool, StatementError> {
        self.database.write_steps(&[end_code(code, "spent")]).await
    }

    /// Uses a code up, and stores the first tokens of a family. Returns `false` and stores nothing
    /// if the code was used before.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn redeem(
        &self,
        code: UsedCode<'_>,
        family: &DoorFamilyRow,
        token: &DoorTokenRow,
    ) -> Result<bool, StatementError> {
        let values = vec![
            Value::Text(&family.id),
            Value::Text(family.connection.as_str()),
            Value::Integer(family.generation),
            Value::Text(&family.document),
            Value::Integer(ms(family.expires_at)),
        ];
        let steps = [end_code(code, "used"), Step::new(PUT_FAMILY, values), put(token)];
        self.database.write_steps(&steps).await
    }

    /// The family of an id, also a revoked one.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn family(&self, id: &str) -> Result<Option<DoorFamilyRow>, StatementError> {
        let rows = self.database.read(FIND_FAMILY, &[Value::Text(id)]).await?;
        rows.first().map(family).transpose()
    }

    /// Stores the next generation of a family with an access token. Returns `false` and stores
    /// nothing if the stored one is not the generation before, or is revoked.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn rotate(
        &self,
        family: &DoorFamilyRow,
        token: &DoorTokenRow,
    ) -> Result<bool, StatementError> {
        let values = vec![
            Value::Text(&family.id),
            Value::Integer(family.generation),
            Value::Text(&family.document),
            Value::Integer(ms(family.expires_at)),
            Value::Integer(family.generation.saturating_sub(1)),
        ];
        self.database.write_steps(&[Step::must_change(ROTATE, values), put(token)]).await
    }

    /// Stores a further access token of a family. Returns `false` and stores nothing if the family
    /// is revoked.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn add(&self, token: &DoorTokenRow) -> Result<bool, StatementError> {
        if token.family.is_empty() {
            // The token of an assertion has no family that could have ended.
            return self.database.write_steps(&[put(token)]).await;
        }
        let alive = Step::must_change(IS_ALIVE, vec![Value::Text(&token.family)]);
        self.database.write_steps(&[alive, put(token)]).await
    }

    /// Stores an access token for a proof, and uses the proof up. Returns `false` and stores
    /// nothing if the proof was used before.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn add_once(
        &self,
        proof: UsedProof<'_>,
        token: &DoorTokenRow,
    ) -> Result<bool, StatementError> {
        let [forget, use_up] = proof_steps(proof);
        self.database.write_steps(&[forget, use_up, put(token)]).await
    }

    /// The access token of a hash, if it is valid.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn token(&self, hash: &str) -> Result<Option<DoorTokenRow>, StatementError> {
        let values = [Value::Text(hash), Value::Integer(now_ms())];
        let rows = self.database.read(FIND_TOKEN, &values).await?;
        rows.first().map(token).transpose()
    }

    /// Revokes a family with all its access tokens. Returns `false` if it was revoked before.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn revoke_family(&self, id: &str) -> Result<bool, StatementError> {
        let values = vec![Value::Text(id), Value::Integer(now_ms())];
        let steps = [
            Step::must_change(REVOKE_FAMILY, values.clone()),
            Step::new(REVOKE_TOKENS, values),
            Step::new(CHANGED, Vec::new()),
        ];
        self.database.write_steps(&steps).await
    }

    /// Revokes one access token. Returns `false` if it was revoked before.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn revoke(&self, hash: &str) -> Result<bool, StatementError> {
        let values = vec![Value::Text(hash), Value::Integer(now_ms())];
        let steps = [Step::must_change(REVOKE_TOKEN, values), Step::new(CHANGED, Vec::new())];
        self.database.write_steps(&steps).await
    }

    /// Uses the proof of a program up, until a time after which it proves nothing. Returns `false`
    /// if it was used before.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn use_proof(
        &self,
        hash: &str,
        forget_at: SystemTime,
    ) -> Result<bool, StatementError> {
        self.database.write_steps(&proof_steps(UsedProof { hash, forget_at })).await
    }

    /// The hashes of revoked access tokens whose time is not over.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn ended(&self) -> Result<Vec<String>, StatementError> {
        let rows = self.database.read(ENDED_TOKENS, &[Value::Integer(now_ms())]).await?;
        rows.iter().map(|row| row.text("hash")).collect()
    }

    /// The clients of families that were revoked after a time, with the time of the revocation.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn ended_families(
        &self,
        since: SystemTime,
    ) -> Result<Vec<(McpClientId, SystemTime)>, StatementError> {
        let rows = self.database.read(ENDED_FAMILIES, &[Value::Integer(ms(since))]).await?;
        rows.iter().map(|row| Ok((connection(row)?, time(row, "revoked_at")?))).collect()
    }
}

/// The steps that remove rows whose time is over.
pub(super) fn forgets<'a>(now: i64) -> [Step<'a>; 3] {
    [FORGET_CODES, FORGET_FAMILIES, FORGET_TOKENS]
        .map(|statement| Step::new(statement, vec![Value::Integer(now)]))
}

fn end_code<'a>(code: UsedCode<'a>, state: &'a str) -> Step<'a> {
    let values = vec![Value::Text(code.hash), Value::Text(state), Value::Text(code.document)];
    Step::must_change(END_CODE, values)
}

/// The steps that use a proof up, if it was not used before.
fn proof_steps(proof: UsedProof<'_>) -> [Step<'_>; 2] {
    let UsedProof { hash, forget_at } = proof;
    let values = vec![Value::Text(hash), Value::Integer(ms(forget_at))];
    let forget = Step::new(FORGET_PROOFS, vec![Value::Integer(now_ms())]);
    [forget, Step::must_change(PUT_PROOF, values)]
}

fn put(token: &DoorTokenRow) -> Step<'_> {
    let values = vec![
        Value::Text(&token.hash),
        Value::Text(token.connection.as_str()),
        Value::Text(&token.family),
        Value::Text(&token.document),
        Value::Integer(ms(token.expires_at)),
    ];
    Step::new(PUT_TOKEN, values)
}

fn connection(row: &Row) -> Result<McpClientId, StatementError> {
    McpClientId::new(&row.text("connection")?).map_err(|_invalid| row.damaged())
}

fn code(row: &Row) -> Result<DoorCodeRow, StatementError> {
    Ok(DoorCodeRow { connection: connection(row)?, document: row.text("document")? })
}

fn family(row: &Row) -> Result<DoorFamilyRow, StatementError> {
    Ok(DoorFamilyRow {
        id: row.text("id")?,
        connection: connection(row)?,
        generation: row.integer("generation")?,
        document: row.text("document")?,
        expires_at: time(row, "expires_at")?,
        revoked_at: optional_time(row, "revoked_at")?,
    })
}

fn token(row: &Row) -> Result<DoorTokenRow, StatementError> {
    Ok(DoorTokenRow {
        hash: row.text("hash")?,
        connection: connection(row)?,
        family: row.text("family")?,
        document: row.text("document")?,
        expires_at: time(row, "expires_at")?,
    })
}
