//! Cuts: cleared secrets and switched-off servers, which active runs lose (D10).
//!
//! Each cut is written with the change that causes it, and read by all daemons.

use narthex_model::{SecretName, WorkspaceId};

use super::workspace;
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

/// Before each cut, which gets the new number.
const COUNT: Statement =
    Statement { name: "cuts.count", sql: "UPDATE cut_changes SET n = n + 1 WHERE id = 1" };
const SERVER: Statement = Statement {
    name: "cuts.server",
    sql: "INSERT INTO cuts (workspace, kind, name, version, change) \
          SELECT $1, 'server', $2, 0, n FROM cut_changes WHERE id = 1 \
          ON CONFLICT (workspace, kind, name) DO UPDATE SET change = excluded.change",
};
const SECRET: Statement = Statement {
    name: "cuts.secret",
    sql: "INSERT INTO cuts (workspace, kind, name, version, change) \
          SELECT $1, 'secret', $2, secrets.last_version, cut_changes.n FROM secrets, cut_changes \
          WHERE secrets.workspace = $1 AND secrets.name = $2 AND cut_changes.id = 1 \
          ON CONFLICT (workspace, kind, name) DO UPDATE SET version = excluded.version, \
          change = excluded.change",
};
const SINCE: Statement = Statement {
    name: "cuts.since",
    sql: "SELECT workspace, kind, name, version, change FROM cuts WHERE change > $1 \
          ORDER BY change",
};
const LAST: Statement =
    Statement { name: "cuts.last", sql: "SELECT n FROM cut_changes WHERE id = 1" };

/// A server or a secret that active runs lose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cut {
    /// A server of the catalog, by its id.
    Server(String),
    /// The values of a secret up to this version.
    Secret(SecretName, u64),
}

/// The cuts after a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutChanges {
    /// The cuts with their workspaces, in order.
    pub cuts: Vec<(WorkspaceId, Cut)>,
    /// The number of the last cut, for the next call.
    pub last: i64,
}

/// Access to cuts.
#[derive(Debug, Clone, Copy)]
pub struct CutRows<'a> {
    database: &'a Database,
}

impl<'a> CutRows<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// The number of the last cut; 0 if there was none.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn last(&self) -> Result<i64, StatementError> {
        let rows = self.database.read(LAST, &[]).await?;
        rows.first().map_or(Ok(0), |row| row.integer("n"))
    }

    /// All cuts after this number, of all workspaces.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn since(&self, last: i64) -> Result<CutChanges, StatementError> {
        let rows = self.database.read(SINCE, &[Value::Integer(last)]).await?;
        let newest = rows.last().map(|row| row.integer("change")).transpose()?;
        let cuts = rows.iter().map(cut).collect::<Result<_, _>>()?;
        Ok(CutChanges { cuts, last: newest.unwrap_or(last) })
    }
}

/// The steps that disable a server for the runs that there are.
pub(super) fn of_server<'v>(workspace: &'v WorkspaceId, id: &'v str) -> [Step<'v>; 2] {
    steps(SERVER, workspace, id)
}

/// The steps that take a secret's values away from the runs that there are.
pub(super) fn of_secret<'v>(workspace: &'v WorkspaceId, name: &'v SecretName) -> [Step<'v>; 2] {
    steps(SECRET, workspace, name.as_str())
}

fn steps<'v>(of: Statement, workspace: &'v WorkspaceId, name: &'v str) -> [Step<'v>; 2] {
    let values = vec![Value::Text(workspace.as_str()), Value::Text(name)];
    [Step::new(COUNT, Vec::new()), Step::new(of, values)]
}

fn cut(row: &Row) -> Result<(WorkspaceId, Cut), StatementError> {
    let name = row.text("name")?;
    let cut = match &*row.text("kind")? {
        "server" => Cut::Server(name),
        "secret" => {
            let name = SecretName::new(&name).map_err(|_invalid| row.damaged())?;
            Cut::Secret(name, u64::try_from(row.integer("version")?).unwrap_or(u64::MAX))
        }
        _ => return Err(row.damaged()),
    };
    Ok((workspace(row)?, cut))
}
