//! What a run is made of, found and mounted before it begins: all that is wrong is told at once.

use std::{collections::BTreeMap, mem::take, sync::atomic::Ordering};

use narthex_audit::ActorKind;
use narthex_control::{CatalogError, Control, ControlError};
use narthex_model::{
    AgentEnv, AgentName, CatalogKind, EnvName, SecretName, SessionId, command::narthex,
    did_you_mean,
};
use narthex_policy::RunPolicy;
use narthex_registry::MountSet;
use narthex_resolve::{Agent, RunKind};
use narthex_traffic::RunMeters;

use crate::{
    RunError, Runs, asked,
    create::Draft,
    frozen::{FrozenAgent, Made},
    prepare::{self, Failed, Of, Opened, Prepared},
};

/// How many agents a misspelt name is compared with.
const NAMES_MAX: u32 = 500;

/// What a run would consist of, before any of it is started.
pub(crate) struct Ready {
    prepared: Prepared,
    meters: RunMeters,
    made: Made,
    agent_env: AgentEnv,
}

/// What a run consists of before it begins.
pub(crate) struct Making {
    pub(crate) set: MountSet,
    /// Without what is mounted.
    pub(crate) prepared: Prepared,
    pub(crate) meters: RunMeters,
    pub(crate) made: Made,
    pub(crate) agent_env: AgentEnv,
}

impl Runs {
    /// Has everything ready that the run needs, with its servers mounted.
    pub(crate) async fn making(&self, draft: &Draft) -> Result<Making, RunError> {
        let Ready { mut prepared, meters, made, agent_env } = self.ready(draft).await?;
        // A session that goes on does without a server that does not start (R-D5).
        let is_strict = !draft.is_tolerant();
        let set = self.mount(&draft.workspace, take(&mut prepared.servers), is_strict).await?;
        Ok(Making { set, prepared, meters, made, agent_env })
    }

    /// Finds all that is wrong with a run before anything of it is started.
    pub(crate) async fn ready(&self, draft: &Draft) -> Result<Ready, RunError> {
        let isolation = self.shared.numbers.fetch_add(1, Ordering::Relaxed);
        let (mut prepared, made, agent_env) = match draft.own_servers() {
            Some(text) => self.own(draft, text, isolation)?,
            None => self.of_agent(draft, isolation).await?,
        };
        let may_fail = |server: &Failed| server.is_optional || draft.is_tolerant();
        let (optional, failed): (Vec<_>, Vec<_>) =
            take(&mut prepared.failed).into_iter().partition(may_fail);
        if !failed.is_empty() {
            return Err(RunError::Entries(failed.iter().map(Failed::fault).collect()));
        }
        prepared.skipped.extend(optional.iter().map(Failed::fault));
        let agent = made.agent().map(|agent| agent.name.as_str());
        let counted = take(&mut prepared.counted);
        let limits = self.control().run_limits(&draft.workspace, agent, counted).await?;
        let (meters, budget) = limits;
        let servers = prepared.servers.iter().map(|server| &*server.definition);
        budget.check(servers).map_err(RunError::OverBudget)?;
        Ok(Ready { prepared, meters, made, agent_env })
    }

    fn own(
        &self,
        draft: &Draft,
        text: &str,
        isolation: u64,
    ) -> Result<(Prepared, Made, AgentEnv), RunError> {
        let snapshot = self.shared.gateway.registry().snapshot();
        let options = &self.shared.options;
        // A session that goes on keeps its names, also those that all share since.
        let taken = draft.former.is_none().then_some(&*snapshot);
        let prepared = asked::read(text, options, taken, isolation)?;
        if prepared.policy != RunPolicy::default() && !self.is_home(&draft.workspace) {
            let text = "`tools` names servers of the local configuration, which other workspaces \
                        do not have; give the run servers of its own";
            return Err(RunError::Malformed(text.to_owned()));
        }
        Ok((prepared, Made::Own(text.to_owned()), AgentEnv::default()))
    }

    async fn of_agent(
        &self,
        draft: &Draft,
        isolation: u64,
    ) -> Result<(Prepared, Made, AgentEnv), RunError> {
        let Draft { workspace, request, session, .. } = draft;
        let name = match &request.agent_name {
            Some(name) => name.clone(),
            None => AgentName::new(&session.agent)
                .map_err(|_unfit| RunError::SessionOver { id: session.id, why: OWN_SERVERS })?,
        };
        // Also where another one is used: whoever has taken it away has meant this.
        let now = match Control::agent_parts(self.store()?, workspace, &name).await {
            Ok(parts) => parts,
            Err(error) if is_unknown_agent(&error) => {
                return Err(self.no_agent(draft, name).await?);
            }
            Err(error) => return Err(error.into()),
        };
        let kept = draft.kept_agent();
        if kept.is_some() && !now.agent.active {
            let why = "its agent is not active any more; an author sets `active`";
            return Err(RunError::SessionOver { id: session.id, why });
        }
        let mut parts = match kept {
            Some(kept) => kept.parts().ok_or(over(session.id))?,
            None => now,
        };
        self.check_executor(draft, &parts.agent)?;
        let inputs = match (kept, request.kind) {
            (Some(kept), _) => kept.inputs.clone(),
            (None, RunKind::StartSession) => self.inputs(draft, &parts.agent).await?,
            (None, RunKind::ResumeSession) => draft.inputs.clone(),
        };
        let scope = draft.scope();
        let vault = self.vault()?;
        let variables = self.control().variables();
        let env = self.bound_env(draft, &parts.agent).await?;
        let opened = match kept {
            Some(kept) => Opened::newest_of(vault, workspace, &kept.secrets, &env).await,
            None => Opened::newest(vault, workspace, &parts, variables, &env).await,
        };
        let opened = opened.map_err(ControlError::from)?;
        let mut versions = kept.map(|kept| kept.secrets.clone()).unwrap_or_default();
        versions.extend(opened.versions());
        let frozen = FrozenAgent::new(&parts, inputs.clone(), &scope, versions, env.clone());
        if kept.is_some() {
            // What is off now is off for it as well, for as long as that is so.
            self.control().switch_off(workspace, &mut parts).await?;
        }
        let (run, session) = (draft.token.run_id(), session.id);
        let (inputs, scope, is_direct) = (&inputs, &scope, request.is_direct);
        let built_in_url = self.shared.options.built_in_url.as_deref();
        let env_names = &env;
        let of = Of {
            workspace,
            run,
            session,
            inputs,
            scope,
            given_scope: Some(&request.scope),
            variables,
            driver: draft.driver.as_ref(),
            env: env_names,
            is_direct,
            built_in_url,
        };
        let prepared = prepare::agent(of, &parts, &opened, isolation)?;
        let agent_env = opened.agent_env(&env);
        Ok((prepared, Made::Agent(Box::new(frozen)), agent_env))
    }

    /// The error of an agent that the workspace does not have, with the nearest name for those who
    /// may list the agents.
    async fn no_agent(&self, draft: &Draft, name: AgentName) -> Result<RunError, RunError> {
        let workspace = draft.workspace.clone();
        let is_outside =
            matches!(draft.by.kind, ActorKind::Run | ActorKind::Client | ActorKind::System);
        if is_outside || draft.parent.is_some() {
            return Ok(RunError::NoAgent { name, workspace, hint: String::new() });
        }
        let agents = self.store()?.catalog(CatalogKind::Agent);
        let some = agents.page(&workspace, "", NAMES_MAX).await.map_err(ControlError::Store)?;
        let hint = did_you_mean(name.as_str(), some.iter().map(|row| &*row.id));
        let hint = hint.unwrap_or_else(|| {
            let list = narthex("agents list", &[]).in_workspace(workspace.as_str());
            format!("`{list}` shows those that there are")
        });
        let hint = format!("; {hint}");
        Ok(RunError::NoAgent { name, workspace, hint })
    }

    /// What the agent gets into its own environment. A run that creates another is told no values
    /// (X-M32): it could hand them on to whom they are not meant for.
    async fn bound_env(
        &self,
        draft: &Draft,
        agent: &Agent,
    ) -> Result<BTreeMap<EnvName, SecretName>, RunError> {
        match draft.by.kind {
            // Only the program that carries it out is told.
            _ if agent.executor.is_some() => {}
            // And nobody is told of what begins by itself.
            ActorKind::Run | ActorKind::Client | ActorKind::System => return Ok(BTreeMap::new()),
            _ => {}
        }
        Ok(self.control().env_names(&draft.workspace).await?.secrets(&agent.name))
    }
}

/// Why a session without an agent does not go on.
const OWN_SERVERS: &str = "its run had servers of its own, of which nothing is kept; create a new \
                           one";

fn is_unknown_agent(error: &ControlError) -> bool {
    matches!(error, ControlError::Catalog(CatalogError::Unknown { kind: CatalogKind::Agent, .. }))
}

/// What it was made of is of another version of the program.
fn over(id: SessionId) -> RunError {
    RunError::SessionOver { id, why: "what it was made of cannot be read any more; end it" }
}
