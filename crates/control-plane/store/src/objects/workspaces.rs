//! Workspaces: the tenants, of which `default` exists from the start.

use std::collections::BTreeMap;

use narthex_model::{EnabledModels, OauthOnOrchestrators, WorkspaceId};

use super::{oauth_grants, principals::CHANGED};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

const CREATE: Statement = Statement {
    name: "workspaces.create",
    sql: "INSERT INTO workspaces \
          (id, name, audits_contents, oauth_on_orchestrators, events_kept_days, \
          runtime_requests, models) VALUES ($1, $2, $3, $4, $5, $6, $7)",
};
const FIND: Statement = Statement {
    name: "workspaces.find",
    sql: "SELECT id, name, audits_contents, oauth_on_orchestrators, events_kept_days, \
          runtime_requests, models FROM workspaces WHERE id = $1",
};
const ALL: Statement = Statement {
    name: "workspaces.all",
    sql: "SELECT id, name, audits_contents, oauth_on_orchestrators, events_kept_days, \
          runtime_requests, models FROM workspaces",
};
const RENAME: Statement =
    Statement { name: "workspaces.rename", sql: "UPDATE workspaces SET name = $2 WHERE id = $1" };
const SWITCH_CONTENTS: Statement = Statement {
    name: "workspaces.switch_contents",
    sql: "UPDATE workspaces SET audits_contents = $2 WHERE id = $1",
};
const SET_OAUTH: Statement = Statement {
    name: "workspaces.set_oauth",
    sql: "UPDATE workspaces SET oauth_on_orchestrators = $2 WHERE id = $1",
};
const KEEP_EVENTS: Statement = Statement {
    name: "workspaces.keep_events",
    sql: "UPDATE workspaces SET events_kept_days = $2 WHERE id = $1",
};
const LET_ASK: Statement = Statement {
    name: "workspaces.let_ask",
    sql: "UPDATE workspaces SET runtime_requests = $2 WHERE id = $1",
};
const SET_MODELS: Statement = Statement {
    name: "workspaces.set_models",
    sql: "UPDATE workspaces SET models = $2 WHERE id = $1",
};
/// The key of the workspace's own documents, which is under a name of the vault, is not counted: no
/// person has set it or can clear it.
const CONTENTS: Statement = Statement {
    name: "workspaces.contents",
    sql: "SELECT (SELECT count(*) FROM mcp_servers WHERE workspace = $1) AS servers, \
          (SELECT count(*) FROM capabilities WHERE workspace = $1) AS capabilities, \
          (SELECT count(*) FROM agents WHERE workspace = $1) AS agents, \
          (SELECT count(*) FROM secret_versions WHERE workspace = $1 \
          AND name <> '_NARTHEX_DOCUMENTS') AS secret_values, \
          (SELECT count(*) FROM principals WHERE workspace = $1 AND EXISTS \
          (SELECT 1 FROM memberships WHERE memberships.principal = principals.id)) AS services, \
          (SELECT count(*) FROM runs WHERE workspace = $1 AND ended_at = 0) AS runs",
};
/// A workspace without objects has no row.
const COUNTS: Statement = Statement {
    name: "workspaces.counts",
    sql: "SELECT 'servers' AS what, workspace, count(*) AS n FROM mcp_servers GROUP BY workspace \
          UNION ALL SELECT 'runs' AS what, workspace, count(*) AS n FROM runs \
          WHERE ended_at = 0 GROUP BY workspace \
          UNION ALL SELECT 'calls' AS what, workspace, calls AS n FROM call_counts \
          WHERE day = $1 AND kind = 'workspace'",
};
const DELETE_EMPTY: Statement = Statement {
    name: "workspaces.delete_empty",
    sql: "DELETE FROM workspaces WHERE id = $1 \
          AND NOT EXISTS (SELECT 1 FROM mcp_servers WHERE workspace = $1) \
          AND NOT EXISTS (SELECT 1 FROM capabilities WHERE workspace = $1) \
          AND NOT EXISTS (SELECT 1 FROM agents WHERE workspace = $1) \
          AND NOT EXISTS (SELECT 1 FROM secret_versions WHERE workspace = $1 \
          AND name <> '_NARTHEX_DOCUMENTS') \
          AND NOT EXISTS (SELECT 1 FROM principals WHERE workspace = $1 AND EXISTS \
          (SELECT 1 FROM memberships WHERE memberships.principal = principals.id)) \
          AND NOT EXISTS (SELECT 1 FROM runs WHERE workspace = $1 AND ended_at = 0)",
};
/// Refuses to delete under active runs: no daemon would end them.
const DELETE: Statement = Statement {
    name: "workspaces.delete",
    sql: "DELETE FROM workspaces WHERE id = $1 \
          AND NOT EXISTS (SELECT 1 FROM runs WHERE workspace = $1 AND ended_at = 0)",
};

/// The counted contents of a workspace, by column in `CONTENTS`, with the words for one and many.
const LIVING: [(&str, &str, &str); 6] = [
    ("servers", "server", "servers"),
    ("capabilities", "capability", "capabilities"),
    ("agents", "agent", "agents"),
    ("secret_values", "value of a secret", "values of secrets"),
    ("services", "service", "services"),
    ("runs", "active run", "active runs"),
];

/// [`WorkspaceSettings::events_kept_days`] of a workspace without a setting of its own.
const EVENTS_KEPT_DAYS: u32 = 30;

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    pub id: WorkspaceId,
    /// Display name.
    pub name: String,
    /// The settings, which the workspace's admins may change.
    pub settings: WorkspaceSettings,
    /// The models that runs may ask for.
    pub models: EnabledModels,
}

/// The settings that a workspace's admins may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkspaceSettings {
    /// True if the audit includes the contents of calls: their arguments and answers.
    pub audits_contents: bool,
    /// The agents, besides workers, that may have servers with a sign-in per person.
    pub oauth_on_orchestrators: OauthOnOrchestrators,
    /// Number of days for which events are stored after the end of their session; 0 for ever.
    pub events_kept_days: u32,
    /// True if runs may ask humans for grants (X-E80).
    pub runtime_requests: bool,
}

impl Default for WorkspaceSettings {
    fn default() -> Self {
        Self {
            audits_contents: false,
            oauth_on_orchestrators: OauthOnOrchestrators::default(),
            events_kept_days: EVENTS_KEPT_DAYS,
            runtime_requests: true,
        }
    }
}

/// Changes to a workspace. A field that is `None` does not change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceChange {
    /// The new display name.
    pub name: Option<String>,
    /// [`WorkspaceSettings::audits_contents`].
    pub audits_contents: Option<bool>,
    /// [`WorkspaceSettings::oauth_on_orchestrators`].
    pub oauth_on_orchestrators: Option<OauthOnOrchestrators>,
    /// [`WorkspaceSettings::events_kept_days`].
    pub events_kept_days: Option<u32>,
    /// [`WorkspaceSettings::runtime_requests`].
    pub runtime_requests: Option<bool>,
    /// [`Workspace::models`].
    pub models: Option<EnabledModels>,
}

impl Workspace {
    /// A workspace with the default settings.
    #[must_use]
    pub fn new(id: WorkspaceId, name: impl Into<String>) -> Self {
        let (settings, models) = (WorkspaceSettings::default(), EnabledModels::default());
        Self { id, name: name.into(), settings, models }
    }
}

/// Numbers of objects of one workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkspaceCounts {
    /// Number of servers of the catalog.
    pub servers: u64,
    /// Number of active runs, at all daemons on the store.
    pub runs: u64,
    /// Number of stored calls of the day, of all daemons on the store.
    pub calls: u64,
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

    /// Creates a workspace.
    ///
    /// # Errors
    /// `Exists` if the id is taken, or when the statement fails.
    pub async fn create(&self, workspace: &Workspace) -> Result<(), StatementError> {
        let Workspace { id, name, settings, models } = workspace;
        let contents = Value::Integer(settings.audits_contents.into());
        let oauth = Value::Text(settings.oauth_on_orchestrators.as_str());
        let kept_days = Value::Integer(settings.events_kept_days.into());
        let asking = Value::Integer(settings.runtime_requests.into());
        let (id, name, models) = (Value::Text(id.as_str()), Value::Text(name), models.text());
        let values = vec![id, name, contents, oauth, kept_days, asking, Value::Text(&models)];
        let steps = [Step::new(CREATE, values), Step::new(CHANGED, Vec::new())];
        self.database.write_steps(&steps).await.map(drop)
    }

    /// Changes a workspace. Returns `false` if the id is unknown.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn change(
        &self,
        id: &WorkspaceId,
        change: &WorkspaceChange,
    ) -> Result<bool, StatementError> {
        let step =
            |statement, value| Step::must_change(statement, vec![Value::Text(id.as_str()), value]);
        let number = |statement, value: i64| step(statement, Value::Integer(value));
        let models = change.models.as_ref().map(EnabledModels::text);
        let all = [
            change.name.as_deref().map(|name| step(RENAME, Value::Text(name))),
            change.audits_contents.map(|is_on| number(SWITCH_CONTENTS, is_on.into())),
            change.oauth_on_orchestrators.map(|one| step(SET_OAUTH, Value::Text(one.as_str()))),
            change.events_kept_days.map(|days| number(KEEP_EVENTS, days.into())),
            change.runtime_requests.map(|is_on| number(LET_ASK, is_on.into())),
            models.as_deref().map(|text| step(SET_MODELS, Value::Text(text))),
            Some(Step::new(CHANGED, Vec::new())),
        ];
        let steps: Vec<_> = all.into_iter().flatten().collect();
        self.database.write_steps(&steps).await
    }

    /// Returns the number of a workspace's objects by kind, without empty kinds.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn contents(
        &self,
        id: &WorkspaceId,
    ) -> Result<Vec<(&'static str, i64)>, StatementError> {
        let rows = self.database.read(CONTENTS, &[Value::Text(id.as_str())]).await?;
        let mut living = Vec::new();
        for row in &rows {
            for (column, one, many) in LIVING {
                let count = row.integer(column)?;
                living.push((if count == 1 { one } else { many }, count));
            }
        }
        living.retain(|(_, count)| *count > 0);
        Ok(living)
    }

    /// Returns the numbers of objects of all workspaces that have any, and the calls of a day,
    /// counted from 1970 in UTC.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn counts(
        &self,
        day: u32,
    ) -> Result<BTreeMap<WorkspaceId, WorkspaceCounts>, StatementError> {
        let rows = self.database.read(COUNTS, &[Value::Integer(day.into())]).await?;
        let mut all: BTreeMap<WorkspaceId, WorkspaceCounts> = BTreeMap::new();
        for row in &rows {
            let of = all.entry(super::workspace(row)?).or_default();
            let count = u64::try_from(row.integer("n")?).unwrap_or_default();
            match row.text("what")?.as_str() {
                "servers" => of.servers = count,
                "runs" => of.runs = count,
                _ => of.calls = count,
            }
        }
        Ok(all)
    }

    /// Deletes a workspace with all its objects, unless a run of it is active. Without `is_forced`,
    /// only an empty workspace is deleted. Returns `false` and changes nothing if the id is
    /// unknown, or objects or runs prevent this. Its audit stays.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn delete(&self, id: &WorkspaceId, is_forced: bool) -> Result<bool, StatementError> {
        let statement = if is_forced { DELETE } else { DELETE_EMPTY };
        let first = Step::must_change(statement, vec![Value::Text(id.as_str())]);
        let changed = Step::new(CHANGED, Vec::new());
        self.database.write_steps(&[first, changed, oauth_grants::workspace_gone()]).await
    }

    /// The workspace of this id, if it exists.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(&self, id: &WorkspaceId) -> Result<Option<Workspace>, StatementError> {
        let rows = self.database.read(FIND, &[Value::Text(id.as_str())]).await?;
        rows.first().map(workspace).transpose()
    }

    /// All workspaces, in the order of their ids.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn all(&self) -> Result<Vec<Workspace>, StatementError> {
        let rows = self.database.read(ALL, &[]).await?;
        let mut all: Vec<_> = rows.iter().map(workspace).collect::<Result<_, _>>()?;
        // Sorted here, since databases order texts in different ways.
        all.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(all)
    }
}

fn workspace(row: &Row) -> Result<Workspace, StatementError> {
    let id = WorkspaceId::new(&row.text("id")?).map_err(|_invalid| row.damaged())?;
    let oauth = OauthOnOrchestrators::parse(&row.text("oauth_on_orchestrators")?);
    let settings = WorkspaceSettings {
        audits_contents: row.integer("audits_contents")? == 1,
        oauth_on_orchestrators: oauth.ok_or_else(|| row.damaged())?,
        events_kept_days: u32::try_from(row.integer("events_kept_days")?)
            .map_err(|_unfit| row.damaged())?,
        runtime_requests: row.integer("runtime_requests")? == 1,
    };
    let models = EnabledModels::parse(&row.text("models")?).ok_or_else(|| row.damaged())?;
    Ok(Workspace { id, name: row.text("name")?, settings, models })
}
