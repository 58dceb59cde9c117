//! The catalog of workspaces: servers, capabilities and agents, one table each, of the same shape.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use narthex_model::{CatalogKind, SharedGrant, WorkspaceId};

use super::{cuts, grants, now_ms, oauth_grants, time};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

/// The statements of one table.
#[derive(Debug, Clone, Copy)]
struct Statements {
    find: Statement,
    all: Statement,
    page: Statement,
    create: Statement,
    replace: Statement,
    delete: Statement,
}

macro_rules! statements {
    ($table:literal) => {
        Statements {
            find: Statement {
                name: concat!($table, ".find"),
                sql: concat!(
                    "SELECT id, document, revision, created_at, updated_at, updated_by FROM ",
                    $table,
                    " WHERE workspace = $1 AND id = $2"
                ),
            },
            all: Statement {
                name: concat!($table, ".all"),
                sql: concat!(
                    "SELECT id, document, revision, created_at, updated_at, updated_by FROM ",
                    $table,
                    " WHERE workspace = $1"
                ),
            },
            page: Statement {
                name: concat!($table, ".page"),
                sql: concat!(
                    "SELECT id, document, revision, created_at, updated_at, updated_by FROM ",
                    $table,
                    " WHERE workspace = $1 AND id > $2 ORDER BY id LIMIT $3"
                ),
            },
            create: Statement {
                name: concat!($table, ".create"),
                sql: concat!(
                    "INSERT INTO ",
                    $table,
                    " (workspace, id, document, revision, created_at, updated_at, updated_by)",
                    " VALUES ($1, $2, $3, 1, $4, $4, $5)"
                ),
            },
            replace: Statement {
                name: concat!($table, ".replace"),
                sql: concat!(
                    "UPDATE ",
                    $table,
                    " SET document = $5, revision = $4 + 1, updated_at = $6, updated_by = $7",
                    " WHERE workspace = $1 AND id = $2 AND created_at = $3 AND revision = $4"
                ),
            },
            delete: Statement {
                name: concat!($table, ".delete"),
                sql: concat!(
                    "DELETE FROM ",
                    $table,
                    " WHERE workspace = $1 AND id = $2 AND created_at = $3 AND revision = $4"
                ),
            },
        }
    };
}

const SERVERS: Statements = statements!("mcp_servers");
const CAPABILITIES: Statements = statements!("capabilities");
const AGENTS: Statements = statements!("agents");

/// Access to the objects of one kind.
#[derive(Debug, Clone, Copy)]
pub struct CatalogRows<'a> {
    database: &'a Database,
    kind: CatalogKind,
    statements: &'static Statements,
    is_cutting: bool,
}

/// A stored object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogRow {
    /// Id of the object, unique among those of its kind in the workspace.
    pub id: String,
    /// The object's JSON.
    pub document: String,
    /// Number of writes of the object. With `created_at` it distinguishes all states of this id.
    pub revision: u64,
    pub created_at: SystemTime,
    /// Time of the last write.
    pub updated_at: SystemTime,
    /// The principal of the last write.
    pub updated_by: String,
}

/// One step of a change that is made as a whole.
#[derive(Debug, Clone, Copy)]
pub struct CatalogStep<'a> {
    pub kind: CatalogKind,
    pub id: &'a str,
    /// The row as it was read; `None` if there was none.
    pub before: Option<&'a CatalogRow>,
    pub document: &'a str,
    /// True if active runs lose the object: a server that is disabled.
    pub is_cut: bool,
}

/// Makes several changes, all of them or none: Returns `false` and changes nothing if any object is
/// not as it was read.
pub(crate) async fn change(
    database: &Database,
    workspace: &WorkspaceId,
    steps: &[CatalogStep<'_>],
    by: &str,
) -> Result<bool, StatementError> {
    let now = now_ms();
    let mut all = Vec::with_capacity(steps.len());
    for step in steps {
        let statements = statements(step.kind);
        all.push(match step.before {
            Some(read) => {
                let mut values = known(workspace, read);
                values.extend([Value::Text(step.document), Value::Integer(now), Value::Text(by)]);
                Step::must_change(statements.replace, values)
            }
            None => {
                let values = vec![
                    Value::Text(workspace.as_str()),
                    Value::Text(step.id),
                    Value::Text(step.document),
                    Value::Integer(now),
                    Value::Text(by),
                ];
                Step::must_change(statements.create, values)
            }
        });
        if step.is_cut {
            all.extend(cuts::of_server(workspace, step.id));
        }
    }
    match database.write_steps(&all).await {
        // Another writer has created one of the objects meanwhile.
        Err(StatementError::Exists { .. }) => Ok(false),
        done => done,
    }
}

fn statements(kind: CatalogKind) -> &'static Statements {
    match kind {
        CatalogKind::Server => &SERVERS,
        CatalogKind::Capability => &CAPABILITIES,
        CatalogKind::Agent => &AGENTS,
    }
}

impl<'a> CatalogRows<'a> {
    pub(crate) fn new(database: &'a Database, kind: CatalogKind) -> Self {
        Self { database, kind, statements: statements(kind), is_cutting: false }
    }

    /// Makes active runs lose the stored objects: a server that is disabled.
    #[must_use]
    pub fn cutting(self, is_cutting: bool) -> Self {
        Self { is_cutting, ..self }
    }

    /// The object of this id, if it exists.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(
        &self,
        workspace: &WorkspaceId,
        id: &str,
    ) -> Result<Option<CatalogRow>, StatementError> {
        // No row has such an id, and not every database can be asked for it.
        if id.contains('\0') {
            return Ok(None);
        }
        let values = [Value::Text(workspace.as_str()), Value::Text(id)];
        let rows = self.database.read(self.statements.find, &values).await?;
        rows.first().map(row).transpose()
    }

    /// All objects of a workspace, in the order of their ids.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn all(&self, workspace: &WorkspaceId) -> Result<Vec<CatalogRow>, StatementError> {
        let values = [Value::Text(workspace.as_str())];
        let rows = self.database.read(self.statements.all, &values).await?;
        let mut all: Vec<_> = rows.iter().map(row).collect::<Result<_, _>>()?;
        // Sorted here, since databases order texts in different ways.
        all.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(all)
    }

    /// The first `limit` objects whose ids come after `after`, in the database's own order; an
    /// empty `after` is before all of them.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn page(
        &self,
        workspace: &WorkspaceId,
        after: &str,
        limit: u32,
    ) -> Result<Vec<CatalogRow>, StatementError> {
        let values =
            [Value::Text(workspace.as_str()), Value::Text(after), Value::Integer(limit.into())];
        let rows = self.database.read(self.statements.page, &values).await?;
        rows.iter().map(row).collect()
    }

    /// Stores a new object; returns its row.
    ///
    /// # Errors
    /// `Exists` if the id is taken, `OwnerMissing` if there is no such workspace, or when the
    /// statement fails.
    pub async fn create(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        document: &str,
        by: &str,
    ) -> Result<CatalogRow, StatementError> {
        let now = now_ms();
        let values = [
            Value::Text(workspace.as_str()),
            Value::Text(id),
            Value::Text(document),
            Value::Integer(now),
            Value::Text(by),
        ];
        let cut = self.is_cutting.then(|| cuts::of_server(workspace, id));
        let mut steps = vec![Step::must_change(self.statements.create, values.to_vec())];
        steps.extend(cut.into_iter().flatten());
        self.database.write_steps(&steps).await?;
        Ok(CatalogRow {
            id: id.to_owned(),
            document: document.to_owned(),
            revision: 1,
            created_at: of_ms(now),
            updated_at: of_ms(now),
            updated_by: by.to_owned(),
        })
    }

    /// Replaces the document of the row that was read; returns the new row. Returns `None` and
    /// changes nothing if the stored row has changed since.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn replace(
        &self,
        workspace: &WorkspaceId,
        read: &CatalogRow,
        document: &str,
        by: &str,
    ) -> Result<Option<CatalogRow>, StatementError> {
        let now = now_ms();
        let mut values = known(workspace, read);
        values.extend([Value::Text(document), Value::Integer(now), Value::Text(by)]);
        let cut = self.is_cutting.then(|| cuts::of_server(workspace, &read.id));
        let mut steps = vec![Step::must_change(self.statements.replace, values)];
        steps.extend(cut.into_iter().flatten());
        let is_done = self.database.write_steps(&steps).await?;
        Ok(is_done.then(|| CatalogRow {
            document: document.to_owned(),
            revision: read.revision.saturating_add(1),
            updated_at: of_ms(now),
            updated_by: by.to_owned(),
            ..read.clone()
        }))
    }

    /// Removes the row that was read. Returns `false` and changes nothing if the stored row has
    /// changed since.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn delete(
        &self,
        workspace: &WorkspaceId,
        read: &CatalogRow,
    ) -> Result<bool, StatementError> {
        let mut steps = vec![Step::must_change(self.statements.delete, known(workspace, read))];
        let (here, id) = (Value::Text(workspace.as_str()), Value::Text(&read.id));
        let grants_of = SharedGrant::name_of(&read.id);
        match self.kind {
            CatalogKind::Agent => steps.extend(grants::end_of_agent(here, id)),
            CatalogKind::Server => {
                steps.extend(oauth_grants::drop_server(here, Value::Text(&grants_of)));
            }
            CatalogKind::Capability => {}
        }
        self.database.write_steps(&steps).await
    }
}

/// The values that identify a row: its place and its state.
fn known<'v>(workspace: &'v WorkspaceId, read: &'v CatalogRow) -> Vec<Value<'v>> {
    let since = read.created_at.duration_since(UNIX_EPOCH).unwrap_or_default();
    vec![
        Value::Text(workspace.as_str()),
        Value::Text(&read.id),
        Value::Integer(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
        Value::Integer(i64::try_from(read.revision).unwrap_or(i64::MAX)),
    ]
}

fn of_ms(now: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(now).unwrap_or_default())
}

fn row(row: &Row) -> Result<CatalogRow, StatementError> {
    Ok(CatalogRow {
        id: row.text("id")?,
        document: row.text("document")?,
        revision: u64::try_from(row.integer("revision")?).map_err(|_negative| row.damaged())?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
        updated_by: row.text("updated_by")?,
    })
}
