//! Humans and services, and their roles in workspaces.

use std::time::SystemTime;

use narthex_model::{PrincipalId, PrincipalKind, PrincipalName, Role, Roles, WorkspaceId};

use super::{maybe_time, now_ms, oauth_grants, time};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

const CREATE: Statement = Statement {
    name: "principals.create",
    sql: "INSERT INTO principals \
          (id, kind, name, workspace, operator_since, created_at, created_by) \
          VALUES ($1, $2, $3, NULLIF($4, ''), NULLIF($5, 0), $6, $7)",
};
const ALL: Statement = Statement {
    name: "principals.all",
    sql: "SELECT id, kind, name, workspace, operator_since, created_at, created_by, disabled_at \
          FROM principals",
};
const DISABLE: Statement = Statement {
    name: "principals.disable",
    sql: "UPDATE principals SET disabled_at = COALESCE(disabled_at, $2) WHERE id = $1",
};
const ENABLE: Statement = Statement {
    name: "principals.enable",
    sql: "UPDATE principals SET disabled_at = NULL WHERE id = $1",
};
const PROMOTE: Statement = Statement {
    name: "principals.promote",
    sql: "UPDATE principals SET operator_since = COALESCE(operator_since, $2) WHERE id = $1",
};
const DEMOTE: Statement = Statement {
    name: "principals.demote",
    sql: "UPDATE principals SET operator_since = NULL WHERE id = $1",
};
const MEMBERSHIPS: Statement = Statement {
    name: "memberships.all",
    sql: "SELECT workspace, principal, role FROM memberships",
};
const FORGET_ROLES: Statement = Statement {
    name: "memberships.forget",
    sql: "DELETE FROM memberships WHERE workspace = $1 AND principal = $2",
};
const GRANT: Statement = Statement {
    name: "memberships.grant",
    sql: "INSERT INTO memberships (workspace, principal, role, granted_at, granted_by) \
          VALUES ($1, $2, $3, $4, $5)",
};
const CHANGES: Statement =
    Statement { name: "access_changes.read", sql: "SELECT n FROM access_changes WHERE id = 1" };
/// Counts a change of permissions.
pub(super) const CHANGED: Statement = Statement {
    name: "access_changes.count",
    sql: "UPDATE access_changes SET n = n + 1 WHERE id = 1",
};

/// A human, a service or an MCP client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrincipalRow {
    pub id: PrincipalId,
    pub kind: PrincipalKind,
    /// Unique name.
    pub name: PrincipalName,
    /// The workspace that owns the principal. Humans belong to none.
    pub workspace: Option<WorkspaceId>,
    /// Time since which the principal is an operator.
    pub operator_since: Option<SystemTime>,
    pub created_at: SystemTime,
    pub created_by: String,
    /// Time since which the principal is disabled.
    pub disabled_at: Option<SystemTime>,
}

/// One role of a principal in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    pub workspace: WorkspaceId,
    pub principal: PrincipalId,
    pub role: Role,
}

/// A principal to be created.
#[derive(Debug, Clone, Copy)]
pub struct NewPrincipal<'a> {
    pub id: &'a PrincipalId,
    pub name: &'a PrincipalName,
    pub kind: PrincipalKind,
    /// The workspace that owns the principal. Humans belong to none.
    pub workspace: Option<&'a WorkspaceId>,
    pub is_operator: bool,
    pub by: &'a str,
}

/// Access to principals and their roles.
#[derive(Debug, Clone, Copy)]
pub struct Principals<'a> {
    database: &'a Database,
}

impl<'a> Principals<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// All principals, in no order.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn all(&self) -> Result<Vec<PrincipalRow>, StatementError> {
        self.database.read(ALL, &[]).await?.iter().map(principal).collect()
    }

    /// All roles of all workspaces, in no order.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn memberships(&self) -> Result<Vec<Membership>, StatementError> {
        self.database.read(MEMBERSHIPS, &[]).await?.iter().map(membership).collect()
    }

    /// Number of changes of permissions: of workspaces, principals, roles and tokens.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn changes(&self) -> Result<i64, StatementError> {
        let rows = self.database.read(CHANGES, &[]).await?;
        rows.first().map_or(Ok(0), |row| row.integer("n"))
    }

    /// Creates a principal, with these roles in a workspace.
    ///
    /// # Errors
    /// `Exists` if the name is taken, `OwnerMissing` if there is no such workspace, or when a
    /// statement fails.
    pub async fn create(
        &self,
        new: NewPrincipal<'_>,
        roles: Option<(&WorkspaceId, &Roles)>,
    ) -> Result<(), StatementError> {
        let mut steps = vec![create(new)];
        if let Some((workspace, roles)) = roles {
            steps.extend(grants(workspace, new.id, roles, new.by));
        }
        steps.push(Step::new(CHANGED, Vec::new()));
        self.database.write_steps(&steps).await.map(drop)
    }

    /// Replaces the roles of a principal in a workspace. Returns `false` if the principal has no
    /// roles there and gets none.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such workspace or principal, or when a statement fails.
    pub async fn set_roles(
        &self,
        workspace: &WorkspaceId,
        principal: &PrincipalId,
        roles: &Roles,
        by: &str,
    ) -> Result<bool, StatementError> {
        let place = vec![Value::Text(workspace.as_str()), Value::Text(principal.as_str())];
        let mut steps = match roles.is_empty() {
            true => vec![Step::must_change(FORGET_ROLES, place)],
            false => vec![Step::new(FORGET_ROLES, place)],
        };
        steps.extend(grants(workspace, principal, roles, by));
        steps.push(Step::new(CHANGED, Vec::new()));
        self.database.write_steps(&steps).await
    }

    /// Disables a principal, or enables it again. Returns `false` if the id is unknown. The tokens
    /// of a disabled human at the authorization servers of others are removed.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn set_disabled(
        &self,
        id: &PrincipalId,
        is_disabled: bool,
    ) -> Result<bool, StatementError> {
        let ends = is_disabled.then(|| oauth_grants::drop_user(Value::Text(id.as_str())));
        let ends = ends.into_iter().flatten().collect();
        self.mark(id, is_disabled, [DISABLE, ENABLE], ends).await
    }

    /// Makes a principal an operator, or an ordinary principal. Returns `false` if the id is
    /// unknown.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn set_operator(
        &self,
        id: &PrincipalId,
        is_operator: bool,
    ) -> Result<bool, StatementError> {
        self.mark(id, is_operator, [PROMOTE, DEMOTE], Vec::new()).await
    }

    async fn mark(
        &self,
        id: &PrincipalId,
        is_set: bool,
        statements: [Statement; 2],
        also: Vec<Step<'_>>,
    ) -> Result<bool, StatementError> {
        let id = Value::Text(id.as_str());
        let [set, unset] = statements;
        let first = match is_set {
            true => Step::must_change(set, vec![id, Value::Integer(now_ms())]),
            false => Step::must_change(unset, vec![id]),
        };
        let mut steps = vec![first, Step::new(CHANGED, Vec::new())];
        steps.extend(also);
        self.database.write_steps(&steps).await
    }
}

pub(super) fn create(new: NewPrincipal<'_>) -> Step<'_> {
    let NewPrincipal { id, name, kind, workspace, is_operator, by } = new;
    let now = now_ms();
    let values = vec![
        Value::Text(id.as_str()),
        Value::Text(kind.as_str()),
        Value::Text(name.as_str()),
        Value::Text(workspace.map_or("", WorkspaceId::as_str)),
        Value::Integer(if is_operator { now } else { 0 }),
        Value::Integer(now),
        Value::Text(by),
    ];
    Step::new(CREATE, values)
}

pub(super) fn grants<'a>(
    workspace: &'a WorkspaceId,
    principal: &'a PrincipalId,
    roles: &Roles,
    by: &'a str,
) -> Vec<Step<'a>> {
    let grant = |role: &Role| {
        let values = vec![
            Value::Text(workspace.as_str()),
            Value::Text(principal.as_str()),
            Value::Text(role.as_str()),
            Value::Integer(now_ms()),
            Value::Text(by),
        ];
        Step::new(GRANT, values)
    };
    roles.iter().map(grant).collect()
}

fn principal(row: &Row) -> Result<PrincipalRow, StatementError> {
    let workspace = match row.has("workspace")? {
        true => Some(workspace(row)?),
        false => None,
    };
    Ok(PrincipalRow {
        id: id(row, "id")?,
        kind: PrincipalKind::parse(&row.text("kind")?).ok_or_else(|| row.damaged())?,
        name: PrincipalName::new(&row.text("name")?).map_err(|_invalid| row.damaged())?,
        workspace,
        operator_since: maybe_time(row, "operator_since")?,
        created_at: time(row, "created_at")?,
        created_by: row.text("created_by")?,
        disabled_at: maybe_time(row, "disabled_at")?,
    })
}

fn membership(row: &Row) -> Result<Membership, StatementError> {
    Ok(Membership {
        workspace: workspace(row)?,
        principal: id(row, "principal")?,
        role: Role::parse(&row.text("role")?).ok_or_else(|| row.damaged())?,
    })
}

pub(super) fn workspace(row: &Row) -> Result<WorkspaceId, StatementError> {
    WorkspaceId::new(&row.text("workspace")?).map_err(|_invalid| row.damaged())
}

pub(super) fn id(row: &Row, column: &'static str) -> Result<PrincipalId, StatementError> {
    PrincipalId::new(&row.text(column)?).map_err(|_invalid| row.damaged())
}
