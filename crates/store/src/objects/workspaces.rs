//! Workspaces: the tenants, of which `default` exists from the start.

use narthex_model::WorkspaceId;

use crate::{
    StatementError,
    database::Database,
    statement::{Row, Statement, Value},
};

const CREATE: Statement = Statement {
    name: "workspaces.create",
    sql: "INSERT INTO workspaces (id, name) VALUES ($1, $2)",
};
const FIND: Statement =
    Statement { name: "workspaces.find", sql: "SELECT id, name FROM workspaces WHERE id = $1" };
const ALL: Statement = Statement { name: "workspaces.all", sql: "SELECT id, name FROM workspaces" };

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    pub id: WorkspaceId,
    /// For people.
    pub name: String,
}

/// Access to workspaces.
#[derive(Debug, Clone, Copy)]
pub struct Workspaces<'a> {
    database: &'a Database,
}

impl<'a> Workspaces<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Makes a new one.
    ///
    /// # Errors
    /// `Exists` if the id is taken, or when the statement fails.
    pub async fn create(&self, workspace: &Workspace) -> Result<(), StatementError> {
        let Workspace { id, name } = workspace;
        let values = [Value::Text(id.as_str()), Value::Text(name)];
        self.database.write(CREATE, &values).await
    }

    /// The one of this id, if there is one.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(&self, id: &WorkspaceId) -> Result<Option<Workspace>, StatementError> {
        let rows = self.database.read(FIND, &[Value::Text(id.as_str())]).await?;
        rows.first().map(workspace).transpose()
    }

    /// All, in the order of their ids.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn all(&self) -> Result<Vec<Workspace>, StatementError> {
        let rows = self.database.read(ALL, &[]).await?;
        let mut all: Vec<_> = rows.iter().map(workspace).collect::<Result<_, _>>()?;
        // Here, since databases differ in how they order texts.
        all.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(all)
    }
}

fn workspace(row: &Row) -> Result<Workspace, StatementError> {
    let id = WorkspaceId::new(&row.text("id")?).map_err(|_invalid| row.damaged())?;
    Ok(Workspace { id, name: row.text("name")? })
}
