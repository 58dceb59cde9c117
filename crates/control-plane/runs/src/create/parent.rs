//! Inheritance between runs: a child takes its parent's scope, and the next run of a session its
//! parameters.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, SystemTime},
};

use narthex_catalog::{RunKind, RunRequest};
use narthex_control::{CatalogError, ControlError};
use narthex_gateway::{DoneAlike, RunView};
use narthex_model::{
    AgentName, AgentType, CatalogKind, ChildLimits, RunId, RunScope, SessionId, WorkspaceId,
};
use narthex_policy::{SpawnPermit, SpawnRefusal, Spawning};
use narthex_store::{RunRow, SessionRow, Spawned};
use serde_json::{Map, Value, json};

use crate::{
    RunError, Runs,
    create::creator::{Awaited, Creator},
    frozen::{Frozen, ServerSource, run_place},
};

/// The tool by which a run creates another one.
const SPAWN: &str = "spawn_session";
/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;

/// The parent of a new run.
pub(crate) struct Parent {
    pub(crate) row: RunRow,
    /// Number of sessions above the parent's session.
    pub(crate) depth: u32,
    pub(crate) scope: RunScope,
    /// The folder that the parent was given.
    pub(crate) project_dir: Option<String>,
    /// True if the parent creates the run by itself; false if an operator names the parent.
    is_spawner: bool,
    /// True if the parent's session may have one child of the agent at a time (X-E85).
    is_single: bool,
    /// The workspace's limits for children.
    limits: ChildLimits,
    /// The grant that permits the creation; `None` if the parent's agent permits it.
    pub(crate) permit: Option<SpawnPermit>,
}

impl Parent {
    /// The scope that a parent run hands on to a run that it creates by itself.
    pub(crate) fn own_scope(&self) -> Option<Map<String, Value>> {
        self.is_spawner.then(|| self.scope.values().clone())
    }

    /// The conditions that must still hold when the new run is stored.
    pub(crate) fn spawned(&self) -> Option<Spawned> {
        let grant = self.permit.as_ref().and_then(SpawnPermit::single);
        let (session, children_max) = (self.row.session, self.limits.per_session());
        let day = (today(), self.limits.per_day());
        let is_single = self.is_single;
        self.is_spawner.then_some(Spawned { session, children_max, day, is_single, grant })
    }
}

/// Start of the current day, in UTC.
fn today() -> SystemTime {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(now.as_secs() / DAY * DAY)
}

fn denied(field: &'static str, message: &str) -> RunError {
    RunError::Denied { field, message: message.to_owned() }
}

/// Refuses fields that only operators may set (S2). A request's own servers run commands of the
/// request on this host, with its variables, and a folder of the host may belong to another human.
fn check_member(request: &RunRequest) -> Result<(), RunError> {
    if request.has_own_servers {
        return Err(denied(
            "servers",
            "only an operator can give a run servers of its own; name an agent with `agent_name`",
        ));
    }
    if request.project_dir.is_some() {
        return Err(denied(
            "project_dir",
            "only an operator can choose a folder; leave it out, or ask an operator to create the \
             run",
        ));
    }
    Ok(())
}

/// The agents that a run's agent may start, as frozen when the run was created.
fn spawnable(frozen: &Frozen) -> BTreeSet<AgentName> {
    let parts = frozen.of.agent().and_then(|of| of.parts());
    parts.map(|parts| parts.agent.spawnable_agents).unwrap_or_default()
}

impl Runs {
    /// The parent of a new run: the run whose token was shown, or the one that an operator names
    /// (O75, O78).
    pub(crate) async fn parent(
        &self,
        workspace: &WorkspaceId,
        request: &RunRequest,
        by: &Creator,
    ) -> Result<Option<Parent>, RunError> {
        let named = request.parent_run_id.as_deref();
        if let Creator::Member(..) | Creator::Unproved { is_operator: false, .. } = by {
            check_member(request)?;
        }
        match by {
            Creator::Run(run) | Creator::Spawner(run, _) => {
                self.of_token(workspace, request, run, by.awaited()).await.map(Some)
            }
            Creator::Platform(..) => Ok(None),
            Creator::Operator(..) | Creator::Member(..) | Creator::Unproved { .. } => match named {
                None => Ok(None),
                Some(id) => {
                    let id = RunId::parse(id).ok_or(RunError::NoParent)?;
                    let (parent, _) = self.living(workspace, id).await?;
                    Ok(Some(parent))
                }
            },
        }
    }

    /// Asks policy whether a run may create another run by its token, as for a call of the tool
    /// `spawn_session` (D5, S14). `None` for other creators, and where the run has called that
    /// tool.
    ///
    /// # Errors
    /// When policy denies it, or the request sets a field that no run may set.
    pub(crate) async fn permit_spawn(
        &self,
        workspace: &WorkspaceId,
        request: &RunRequest,
        by: &Creator,
    ) -> Result<Option<DoneAlike>, RunError> {
        let Creator::Run(run) = by else { return Ok(None) };
        let agent = self.check_own(workspace, request, run).await?;
        let mut arguments = json!({ "child_agent_id": agent });
        let params = Some(&request.params).filter(|params| !params.is_empty());
        for (name, value) in [("prompt", json!(request.prompt)), ("params", json!(params))] {
            if !value.is_null() {
                arguments[name] = value;
            }
        }
        let gateway = &self.shared.gateway;
        Ok(Some(gateway.permit_alike(run, SPAWN, &arguments).await?))
    }

    /// The agent that a run asks for by its own token, if it sets no field that no run may set.
    async fn check_own<'a>(
        &self,
        workspace: &WorkspaceId,
        request: &'a RunRequest,
        run: &RunView,
    ) -> Result<&'a AgentName, RunError> {
        if request.has_scope {
            let text = "a run passes on its own scope and no other; leave it out";
            return Err(denied("scope", text));
        }
        if request.parent_run_id.as_ref().is_some_and(|id| *id != run.id.to_text()) {
            let text = "the parent is the run of this token; leave it out";
            return Err(denied("parent_run_id", text));
        }
        if request.kind == RunKind::ResumeSession {
            return Err(denied("type", "a run can create new sessions only"));
        }
        if request.is_direct {
            let text = "a run never gets the values of its servers; leave it out";
            return Err(denied("direct", text));
        }
        if request.builtin.is_some() {
            let text = "the definition of the child's agent sets its built-in tools; leave it out";
            return Err(denied("builtin", text));
        }
        check_member(request)?;
        let Some(agent) = &request.agent_name else {
            return Err(denied("agent_name", "name the agent to start"));
        };
        if self.is_local(run) && self.is_home(workspace) {
            return Err(denied("agent_name", "this run has no agent that could start others"));
        }
        if self.stored(workspace, run.id).await?.is_none() {
            // A workspace other than the run's own is treated as absent.
            let absent = CatalogError::NoWorkspace(workspace.clone());
            return Err(ControlError::from(absent).into());
        }
        Ok(agent)
    }

    /// The parent of a run that another run creates by itself: a new session of an agent that the
    /// parent's agent may start, with exactly the parent's scope (O22, O76).
    async fn of_token(
        &self,
        workspace: &WorkspaceId,
        request: &RunRequest,
        run: &Arc<RunView>,
        awaited: Option<&Awaited>,
    ) -> Result<Parent, RunError> {
        let agent = self.check_own(workspace, request, run).await?;
        let (parent, frozen) = self.living(workspace, run.id).await?;
        let permit = match spawnable(&frozen).contains(agent) {
            true => None,
            false => Some(self.granted(run, agent, awaited)?),
        };
        let agent_type = self.agent_type(workspace, agent.as_str()).await?;
        let is_single = agent_type == AgentType::Orchestrator;
        Ok(Parent { is_spawner: true, is_single, permit, ..parent })
    }

    /// The grant by which a run may start an agent that its own agent does not name.
    fn granted(
        &self,
        run: &RunView,
        child: &AgentName,
        awaited: Option<&Awaited>,
    ) -> Result<SpawnPermit, RunError> {
        let model = awaited.and_then(|awaited| awaited.model.as_deref());
        let runtime = awaited.and_then(|awaited| awaited.runtime.as_deref());
        let wanted = Spawning { child, model, runtime };
        let grants = self.control().grants_of(&run.workspace);
        let taken = grants.take_spawn(&run.authority.actors(), wanted, SystemTime::now());
        taken.map_err(|refusal| match refusal {
            SpawnRefusal::NotGranted => RunError::NotSpawnable(child.clone()),
            SpawnRefusal::OtherModels => RunError::OtherModels(child.clone()),
        })
    }

    /// The agents that a run may start, by its own agent and by grants.
    ///
    /// # Errors
    /// When the run is not active, or the store fails.
    pub async fn spawnable(&self, run: &RunView) -> Result<Vec<AgentName>, RunError> {
        let grants = self.control().grants_of(&run.workspace);
        let mut names = grants.spawnable(&run.authority.actors(), SystemTime::now());
        if let Some(row) = self.stored(&run.workspace, run.id).await? {
            names.extend(spawnable(&self.frozen(&row).await?));
        }
        let store = self.store()?;
        let mut there = Vec::new();
        for name in names {
            let found = store.catalog(CatalogKind::Agent).find(&run.workspace, name.as_str()).await;
            if found.map_err(ControlError::Store)?.is_some() {
                there.push(name);
            }
        }
        Ok(there)
    }

    /// The reason why the run that a parent was to create was not stored.
    pub(crate) async fn child_refused(
        &self,
        workspace: &WorkspaceId,
        parent: &Parent,
        agent: &str,
    ) -> RunError {
        match self.why_child_refused(workspace, parent, agent).await {
            Ok(why) | Err(why) => why,
        }
    }

    async fn why_child_refused(
        &self,
        workspace: &WorkspaceId,
        parent: &Parent,
        agent: &str,
    ) -> Result<RunError, RunError> {
        let row = self.stored(workspace, parent.row.id).await?;
        if row.is_none_or(|row| row.ended.is_some()) {
            return Ok(RunError::NoParent);
        }
        let (sessions, above) = (self.store()?.sessions(), parent.row.session);
        if parent.is_single {
            let single = sessions.live_child_of(workspace, above, agent).await;
            if let Some(id) = single.map_err(ControlError::Store)? {
                return Ok(RunError::SingleChild(id));
            }
        }
        let children = sessions.live_children(workspace, above).await;
        let most = parent.limits.per_session();
        if children.map_err(ControlError::Store)? >= most.into() {
            return Ok(RunError::TooManyChildren(most));
        }
        let most = parent.limits.per_day();
        let begun = self.store()?.sessions().children_since(workspace, today()).await;
        if begun.map_err(ControlError::Store)? >= most.into() {
            return Ok(RunError::TooManyToday(most));
        }
        // Another caller has just consumed or revoked a grant.
        Ok(parent.permit.as_ref().map_or(RunError::NoParent, |_| RunError::Changed))
    }

    /// An active run of the workspace, and its frozen configuration.
    async fn living(
        &self,
        workspace: &WorkspaceId,
        id: RunId,
    ) -> Result<(Parent, Frozen), RunError> {
        let row = self.stored(workspace, id).await?.filter(|row| row.ended.is_none());
        let row = row.ok_or(RunError::NoParent)?;
        let frozen = self.frozen(&row).await?;
        let of_agent = frozen.of.agent();
        let scope = of_agent.map(|agent| agent.scope()).unwrap_or_default();
        let sessions = self.store()?.sessions();
        let session = sessions.find(workspace, row.session).await.map_err(ControlError::Store)?;
        let depth = session.map_or(0, |session| session.depth);
        let limits = self.control().child_limits(workspace).await?;
        if depth >= limits.depth() {
            return Err(RunError::TooDeep(limits.depth()));
        }
        let project_dir = match &frozen.of {
            ServerSource::Agent(of) if of.inputs.has_own_folder => None,
            ServerSource::Agent(of) => of.inputs.project_dir.clone(),
            ServerSource::Own(_) => None,
        };
        let (is_spawner, is_single, permit) = (false, false, None);
        let parent =
            Parent { row, depth, scope, project_dir, is_spawner, is_single, limits, permit };
        Ok((parent, frozen))
    }

    /// A new session.
    pub(crate) fn new_session(
        &self,
        workspace: &WorkspaceId,
        request: &RunRequest,
        by: &str,
    ) -> Result<SessionRow, RunError> {
        let id = match &request.session_id {
            Some(text) => SessionId::parse(text).ok_or_else(|| {
                let text = "`session_id` is not the id of a session, such as ses_0a1b2c3d4e5f; \
                            leave it out to get a new one";
                RunError::Malformed(text.to_owned())
            })?,
            None => {
                let mut bytes = [0; SessionId::BYTES];
                getrandom::fill(&mut bytes).map_err(RunError::Randomness)?;
                SessionId::new(bytes)
            }
        };
        let agent = request.agent_name.as_ref().map(ToString::to_string).unwrap_or_default();
        Ok(SessionRow {
            workspace: workspace.clone(),
            id,
            agent,
            parent: None,
            depth: 0,
            sealed: String::new(),
            created_at: SystemTime::now(),
            created_by: by.to_owned(),
            ended_at: None,
            how: None,
            agent_type: None,
        })
    }

    /// The frozen configuration of an active run.
    pub(crate) async fn frozen(&self, row: &RunRow) -> Result<Frozen, RunError> {
        let place = run_place(row.id);
        let opened = self.vault()?.open_document(&row.workspace, &place, &row.sealed).await;
        Frozen::read(&opened.map_err(ControlError::from)?).ok_or(RunError::HasEnded(row.id))
    }
}
