//! Programs that ask the door for tokens, their requests that wait for a human, and the consents of
//! humans.

use std::time::SystemTime;

use narthex_model::{McpClientId, PrincipalId};

use super::{
    ms, now_ms, optional_time,
    principals::{CHANGED, id},
    time,
};
use crate::{
    StatementError,
    database::{Database, Step},
    objects::door_tokens,
    statement::{Row, Statement, Value},
};

const FIND: Statement = Statement {
    name: "door_clients.find",
    sql: "SELECT id, kind, document, created_at, used_at FROM door_clients WHERE id = $1",
};
const PUT: Statement = Statement {
    name: "door_clients.put",
    sql: "INSERT INTO door_clients (id, kind, document, created_at, used_at) \
          VALUES ($1, $2, $3, $4, $5) \
          ON CONFLICT (id) DO UPDATE SET document = excluded.document",
};
const USED: Statement = Statement {
    name: "door_clients.used",
    sql: "UPDATE door_clients SET used_at = $2 WHERE id = $1",
};
const COUNT: Statement = Statement {
    name: "door_clients.count",
    sql: "SELECT COUNT(*) AS n FROM door_clients WHERE kind = $1 AND created_at > $2",
};
const FORGET: Statement = Statement {
    name: "door_clients.forget",
    sql: "DELETE FROM door_clients WHERE kind = $1 AND (used_at = 0 AND created_at <= $2 \
          OR used_at > 0 AND used_at <= $3)",
};
const BEGIN: Statement = Statement {
    name: "door_requests.begin",
    sql: "INSERT INTO door_requests (hash, browser, document, expires_at) VALUES ($1, $2, $3, $4)",
};
const LOOK: Statement = Statement {
    name: "door_requests.look",
    sql: "SELECT browser, document FROM door_requests WHERE hash = $1 AND expires_at > $2",
};
const BIND: Statement = Statement {
    name: "door_requests.bind",
    sql: "UPDATE door_requests SET browser = $2 WHERE hash = $1 AND browser = ''",
};
const TAKE: Statement = Statement {
    name: "door_requests.take",
    sql: "DELETE FROM door_requests WHERE hash = $1 AND browser = $2",
};
const WAITING: Statement =
    Statement { name: "door_requests.count", sql: "SELECT COUNT(*) AS n FROM door_requests" };
const FORGET_REQUESTS: Statement = Statement {
    name: "door_requests.forget",
    sql: "DELETE FROM door_requests WHERE expires_at <= $1",
};
const CONNECTIONS: Statement = Statement {
    name: "door_connections.all",
    sql: "SELECT id, acts_for, client, consent FROM door_connections",
};
const CONNECT: Statement = Statement {
    name: "door_connections.create",
    sql: "INSERT INTO door_connections (id, acts_for, client, consent) VALUES ($1, $2, $3, $4)",
};
const CONSENT: Statement = Statement {
    name: "door_connections.consent",
    sql: "UPDATE door_connections SET consent = $2 WHERE id = $1",
};

/// A program that may ask for tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoorClientRow {
    pub id: String,
    /// The way in which the program became known, as a word.
    pub kind: String,
    /// The program as JSON.
    pub document: String,
    pub created_at: SystemTime,
    /// Time of the last use; `None` before the first.
    pub used_at: Option<SystemTime>,
}

/// A request that waits for a human.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoorRequestRow {
    /// Hash of the browser that may answer; empty before one has seen the page.
    pub browser: String,
    /// The request as JSON.
    pub document: String,
}

/// The consent of a human to a program, which is a registered client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoorConnectionRow {
    /// The registered client.
    pub id: McpClientId,
    /// The human.
    pub acts_for: PrincipalId,
    /// The program.
    pub client: String,
    /// The consent as JSON.
    pub consent: String,
}

/// Access to programs, requests and consents.
#[derive(Debug, Clone, Copy)]
pub struct DoorRows<'a> {
    database: &'a Database,
}

impl<'a> DoorRows<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// The program with an id.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn client(&self, id: &str) -> Result<Option<DoorClientRow>, StatementError> {
        let rows = self.database.read(FIND, &[Value::Text(id)]).await?;
        rows.first().map(client).transpose()
    }

    /// Stores a program, or replaces the document of a known one.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn put_client(&self, row: &DoorClientRow) -> Result<(), StatementError> {
        let values = [
            Value::Text(&row.id),
            Value::Text(&row.kind),
            Value::Text(&row.document),
            Value::Integer(ms(row.created_at)),
            Value::Integer(row.used_at.map_or(0, ms)),
        ];
        self.database.write(PUT, &values).await
    }

    /// Stores the time of a program's use.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn client_used(&self, id: &str) -> Result<(), StatementError> {
        self.database.write(USED, &[Value::Text(id), Value::Integer(now_ms())]).await
    }

    /// Number of programs of a kind that were created after a time.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn clients_since(
        &self,
        kind: &str,
        since: SystemTime,
    ) -> Result<usize, StatementError> {
        let values = [Value::Text(kind), Value::Integer(ms(since))];
        count(&self.database.read(COUNT, &values).await?)
    }

    /// Removes programs of a kind that were created before a time and never used, or used last
    /// before another time.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn forget(
        &self,
        kind: &str,
        created: SystemTime,
        used: SystemTime,
    ) -> Result<(), StatementError> {
        let values = [Value::Text(kind), Value::Integer(ms(created)), Value::Integer(ms(used))];
        self.database.write(FORGET, &values).await
    }

    /// Stores a request, and removes all rows of the door whose time is over.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn begin_request(
        &self,
        hash: &str,
        row: &DoorRequestRow,
        expires_at: SystemTime,
    ) -> Result<(), StatementError> {
        let now = now_ms();
        let mut steps = vec![Step::new(FORGET_REQUESTS, vec![Value::Integer(now)])];
        steps.extend(door_tokens::forgets(now));
        let values = vec![
            Value::Text(hash),
            Value::Text(&row.browser),
            Value::Text(&row.document),
            Value::Integer(ms(expires_at)),
        ];
        steps.push(Step::new(BEGIN, values));
        self.database.write_steps(&steps).await.map(drop)
    }

    /// Number of stored requests.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn requests(&self) -> Result<usize, StatementError> {
        count(&self.database.read(WAITING, &[]).await?)
    }

    /// The request of a hash that still waits.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn request(&self, hash: &str) -> Result<Option<DoorRequestRow>, StatementError> {
        let values = [Value::Text(hash), Value::Integer(now_ms())];
        let rows = self.database.read(LOOK, &values).await?;
        rows.first().map(request).transpose()
    }

    /// Binds a request to a browser. Returns `false` if it is bound already, or gone.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn bind_request(&self, hash: &str, browser: &str) -> Result<bool, StatementError> {
        let values = vec![Value::Text(hash), Value::Text(browser)];
        self.database.write_steps(&[Step::must_change(BIND, values)]).await
    }

    /// Removes the request of a browser, so that it is answered once. Returns `false` if there is
    /// none.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn take_request(&self, hash: &str, browser: &str) -> Result<bool, StatementError> {
        let values = vec![Value::Text(hash), Value::Text(browser)];
        self.database.write_steps(&[Step::must_change(TAKE, values)]).await
    }

    /// All consents, in no order.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn connections(&self) -> Result<Vec<DoorConnectionRow>, StatementError> {
        self.database.read(CONNECTIONS, &[]).await?.iter().map(connection).collect()
    }

    /// Replaces a consent by a newer one of the same human to the same program.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn set_consent(&self, id: &McpClientId, consent: &str) -> Result<(), StatementError> {
        let values = vec![Value::Text(id.as_str()), Value::Text(consent)];
        let steps = [Step::new(CONSENT, values), Step::new(CHANGED, Vec::new())];
        self.database.write_steps(&steps).await.map(drop)
    }
}

/// The step that stores a consent beside its registered client.
pub(super) fn connect(row: &DoorConnectionRow) -> Step<'_> {
    let values = vec![
        Value::Text(row.id.as_str()),
        Value::Text(row.acts_for.as_str()),
        Value::Text(&row.client),
        Value::Text(&row.consent),
    ];
    Step::new(CONNECT, values)
}

fn count(rows: &[Row]) -> Result<usize, StatementError> {
    let count = rows.first().map_or(Ok(0), |row| row.integer("n"))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

fn client(row: &Row) -> Result<DoorClientRow, StatementError> {
    Ok(DoorClientRow {
        id: row.text("id")?,
        kind: row.text("kind")?,
        document: row.text("document")?,
        created_at: time(row, "created_at")?,
        used_at: optional_time(row, "used_at")?,
    })
}

fn request(row: &Row) -> Result<DoorRequestRow, StatementError> {
    Ok(DoorRequestRow { browser: row.text("browser")?, document: row.text("document")? })
}

fn connection(row: &Row) -> Result<DoorConnectionRow, StatementError> {
    Ok(DoorConnectionRow {
        id: McpClientId::new(&row.text("id")?).map_err(|_invalid| row.damaged())?,
        acts_for: id(row, "acts_for")?,
        client: row.text("client")?,
        consent: row.text("consent")?,
    })
}
