//! The parts of a run, found and mounted before it begins: all faults are reported at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::take,
    sync::atomic::Ordering,
};

use narthex_audit::ActorKind;
use narthex_catalog::{Agent, EnvValue, Plan, RunKind, Surroundings};
use narthex_control::{CatalogError, Control, ControlError};
use narthex_model::{
    AgentEnv, AgentName, CatalogKind, EnvName, PrincipalId, SecretName, SessionId, WorkspaceId,
    command::narthex, did_you_mean,
};
use narthex_policy::RunPolicy;
use narthex_registry::{Holder, MountError, MountOptions, MountSet, Mountable};
use narthex_traffic::RunMeters;

use crate::{
    RunError, Runs,
    create::{
        own_servers,
        request::Requested,
        servers,
        servers::{OpenedSecrets, RunServers, ServerInputs, UnopenedServer},
    },
    frozen::{FrozenAgent, ServerSource},
};

/// Number of agents that a misspelt name is compared with.
const NAMES_MAX: u32 = 500;
/// Largest number of descendants of an agent whose keys of the scope are read.
const FAMILY_MAX: usize = 50;

/// The parts of a run before any server is started.
pub(crate) struct Resolved {
    resolved: RunServers,
    meters: RunMeters,
    source: ServerSource,
    agent_env: AgentEnv,
}

/// The parts of a run before it begins, with its servers.
pub(crate) struct Started {
    pub(crate) set: MountSet,
    /// The rest of the preparation, without the mounted servers.
    pub(crate) resolved: RunServers,
    pub(crate) meters: RunMeters,
    pub(crate) source: ServerSource,
    pub(crate) agent_env: AgentEnv,
}

/// The human as whom a run acts at servers to which humans sign in (X-M14). It stays the same for
/// the run's whole life, also while another human has the turn. `None` if no human drives the run.
pub(crate) fn holder(workspace: &WorkspaceId, driver: Option<&PrincipalId>) -> Option<Holder> {
    let user = driver?.as_str().to_owned();
    Some(Holder { workspace: workspace.as_str().to_owned(), user })
}

impl Runs {
    /// Prepares all parts of the run, with its servers mounted.
    pub(crate) async fn resolve_and_start(
        &self,
        requested: &Requested,
    ) -> Result<Started, RunError> {
        let Resolved { mut resolved, meters, source, agent_env } = self.resolve(requested).await?;
        // A resumed session begins without servers that do not start (R-D5).
        let is_strict = !requested.is_tolerant();
        let servers = take(&mut resolved.servers);
        let holder = holder(&requested.workspace, requested.driver.as_ref());
        let set = self.start_servers(&requested.workspace, servers, is_strict, holder).await?;
        Ok(Started { set, resolved, meters, source, agent_env })
    }

    /// Finds all faults of a run before any server of it is started.
    pub(crate) async fn resolve(&self, requested: &Requested) -> Result<Resolved, RunError> {
        let isolation = self.shared.numbers.fetch_add(1, Ordering::Relaxed);
        let (mut resolved, source, agent_env) = match requested.own_servers() {
            Some(text) => self.own(requested, text, isolation)?,
            None => self.of_agent(requested, isolation).await?,
        };
        let may_fail = |server: &UnopenedServer| server.is_optional || requested.is_tolerant();
        let (optional, failed): (Vec<_>, Vec<_>) =
            take(&mut resolved.failed).into_iter().partition(may_fail);
        if !failed.is_empty() {
            return Err(RunError::Entries(failed.iter().map(UnopenedServer::fault).collect()));
        }
        resolved.skipped.extend(optional.iter().map(UnopenedServer::fault));
        let agent = source.agent().map(|agent| agent.name.as_str());
        let counted = take(&mut resolved.counted);
        let limits = self.control().run_limits(&requested.workspace, agent, counted).await?;
        let (meters, budget) = limits;
        let servers = resolved.servers.iter().map(|server| &*server.definition);
        budget.check(servers).map_err(RunError::OverBudget)?;
        Ok(Resolved { resolved, meters, source, agent_env })
    }

    /// The last lines on stderr of a server whose last start for a run of the workspace, in this
    /// process, failed. `None` if it did not fail, or other failures have replaced it.
    #[must_use]
    pub fn failed_start(&self, workspace: &WorkspaceId, alias: &str) -> Option<Vec<String>> {
        self.shared.failed_starts.lines(workspace, alias)
    }

    /// Starts the servers of a run of a workspace. At servers to which humans sign in, the run is
    /// the `holder`.
    pub(crate) async fn start_servers(
        &self,
        workspace: &WorkspaceId,
        servers: Vec<Mountable>,
        is_strict: bool,
        holder: Option<Holder>,
    ) -> Result<MountSet, RunError> {
        let timeout = self.shared.options.start_timeout;
        let options = MountOptions { timeout, is_strict, holder };
        let mounted = self.shared.gateway.registry().mount(servers, &options).await;
        let failed_starts = &self.shared.failed_starts;
        match mounted {
            Ok(set) => {
                failed_starts.started(workspace, &set);
                failed_starts.failed(workspace, set.faults());
                Ok(set)
            }
            Err(MountError { faults }) => {
                failed_starts.failed(workspace, &faults);
                Err(RunError::Mount { workspace: workspace.clone(), faults })
            }
        }
    }

    fn own(
        &self,
        requested: &Requested,
        text: &str,
        isolation: u64,
    ) -> Result<(RunServers, ServerSource, AgentEnv), RunError> {
        let snapshot = self.shared.gateway.registry().snapshot();
        let options = &self.shared.options;
        // A resumed session keeps its aliases, also those that shared servers have taken since.
        let taken = requested.former.is_none().then_some(&*snapshot);
        let resolved = own_servers::read(text, options, taken, isolation)?;
        if resolved.policy != RunPolicy::default() && !self.is_home(&requested.workspace) {
            let text = "`tools` names servers of the local configuration, which other workspaces \
                        do not have; give the run servers of its own";
            return Err(RunError::Malformed(text.to_owned()));
        }
        Ok((resolved, ServerSource::Own(text.to_owned()), AgentEnv::default()))
    }

    async fn of_agent(
        &self,
        requested: &Requested,
        isolation: u64,
    ) -> Result<(RunServers, ServerSource, AgentEnv), RunError> {
        let Requested { workspace, request, session, .. } = requested;
        let name = match &request.agent_name {
            Some(name) => name.clone(),
            None => AgentName::new(&session.agent)
                .map_err(|_unfit| RunError::over(session.id, OWN_SERVERS))?,
        };
        // The agent must exist also where a frozen one is used: an author who has removed the agent
        // meant this run, too.
        let now = match Control::agent_parts(self.store()?, workspace, &name).await {
            Ok(parts) => parts,
            Err(error) if is_unknown_agent(&error) => {
                return Err(self.no_agent(requested, name).await?);
            }
            Err(error) => return Err(error.into()),
        };
        let kept = requested.suspended_agent();
        if kept.is_some() && !now.agent.active {
            let why = "its agent is not active any more; an author must set `active`";
            return Err(RunError::over(session.id, why));
        }
        let mut parts = match kept {
            Some(kept) => kept.parts().ok_or(over(session.id))?,
            None => now,
        };
        self.check_executor(requested, &parts.agent)?;
        let inputs = match (kept, request.kind) {
            (Some(kept), _) => kept.inputs.clone(),
            (None, RunKind::StartSession) => self.inputs(requested, &parts.agent).await?,
            (None, RunKind::ResumeSession) => requested.inputs.clone(),
        };
        let scope = requested.scope();
        let vault = self.vault()?;
        let variables = self.control().variables();
        let env = self.bound_env(requested, &parts.agent).await?;
        let opened = match kept {
            Some(kept) => OpenedSecrets::newest_of(vault, workspace, &kept.secrets, &env).await,
            None => OpenedSecrets::newest(vault, workspace, &parts, variables, &env).await,
        };
        let opened = opened.map_err(ControlError::from)?;
        let mut versions = kept.map(|kept| kept.secrets.clone()).unwrap_or_default();
        versions.extend(opened.versions());
        let frozen = FrozenAgent::new(&parts, inputs.clone(), &scope, versions, env.clone());
        if kept.is_some() {
            // A server that is disabled now is off for this run as well, until it is enabled.
            self.control().switch_off(workspace, &mut parts).await?;
        }
        let (run, session) = (requested.token.run_id(), session.id);
        let (inputs, scope, is_direct) = (&inputs, &scope, request.is_direct);
        let built_in_url = self.shared.options.built_in_url.as_deref();
        let of_children = self.scope_of_children(requested, &parts.agent).await?;
        let env_names = &env;
        let of = ServerInputs {
            workspace,
            run,
            session,
            inputs,
            scope,
            given_scope: Some(&request.scope),
            of_children: &of_children,
            variables,
            driver: requested.driver.as_ref(),
            env: env_names,
            is_direct,
            built_in_url,
        };
        let resolved = servers::agent(of, &parts, &opened, isolation)?;
        let agent_env = opened.agent_env(&env);
        Ok((resolved, ServerSource::Agent(Box::new(frozen)), agent_env))
    }

    /// The keys of a scope that servers of an agent's descendants take: of agents that it may
    /// start, and of agents that these may start. Empty if the request gives no scope.
    async fn scope_of_children(
        &self,
        requested: &Requested,
        agent: &Agent,
    ) -> Result<BTreeSet<String>, RunError> {
        let mut keys = BTreeSet::new();
        if requested.request.scope.values().is_empty() {
            return Ok(keys);
        }
        let mut next: Vec<_> = agent.spawnable_agents.iter().cloned().collect();
        let mut seen = BTreeSet::new();
        while let Some(name) = next.pop() {
            if seen.len() >= FAMILY_MAX || !seen.insert(name.clone()) {
                continue;
            }
            // An agent that cannot be read cannot be started, either.
            let found = Control::agent_parts(self.store()?, &requested.workspace, &name).await;
            let Ok(parts) = found else { continue };
            let surroundings = Surroundings {
                workspace: &requested.workspace,
                env: &|_| EnvValue::Unset,
                allowing: &|_| String::new(),
                is_secret_set: &|_| true,
            };
            keys.extend(Plan::new(&parts.catalog, &parts.agent, surroundings).scope_keys());
            next.extend(parts.agent.spawnable_agents);
        }
        Ok(keys)
    }

    /// The error of an agent that the workspace does not have. Callers that may list the agents get
    /// the nearest name.
    async fn no_agent(&self, requested: &Requested, name: AgentName) -> Result<RunError, RunError> {
        let workspace = requested.workspace.clone();
        let is_outside =
            matches!(requested.by.kind, ActorKind::Run | ActorKind::Client | ActorKind::System);
        if is_outside || requested.parent.is_some() {
            return Ok(RunError::NoAgent { name, workspace, hint: String::new() });
        }
        let agents = self.store()?.catalog(CatalogKind::Agent);
        let some = agents.page(&workspace, "", NAMES_MAX).await.map_err(ControlError::Store)?;
        let hint = did_you_mean(name.as_str(), some.iter().map(|row| &*row.id));
        let hint = hint.unwrap_or_else(|| {
            let list = narthex("agents list", &[]).in_workspace(workspace.as_str());
            format!("`{list}` lists all agents")
        });
        let hint = format!("; {hint}");
        Ok(RunError::NoAgent { name, workspace, hint })
    }

    /// The variables for the agent's own environment. A creator that is itself a run gets no values
    /// (X-M32): it could give them to others.
    async fn bound_env(
        &self,
        requested: &Requested,
        agent: &Agent,
    ) -> Result<BTreeMap<EnvName, SecretName>, RunError> {
        match requested.by.kind {
            // Only the executor that carries out the run gets the values.
            _ if agent.executor.is_some() => {}
            // No client gets the values of a run that begins by itself.
            ActorKind::Run | ActorKind::Client | ActorKind::System => return Ok(BTreeMap::new()),
            _ => {}
        }
        Ok(self.control().env_names(&requested.workspace).await?.secrets(&agent.name))
    }
}

/// The reason why a session without an agent does not resume.
const OWN_SERVERS: &str =
    "its run had servers of its own, which are not stored; create a new session";

fn is_unknown_agent(error: &ControlError) -> bool {
    matches!(error, ControlError::Catalog(CatalogError::Unknown { kind: CatalogKind::Agent, .. }))
}

/// The error for a configuration that another version of the program has frozen.
fn over(id: SessionId) -> RunError {
    RunError::over(id, "its stored configuration cannot be read any more; end the session")
}
