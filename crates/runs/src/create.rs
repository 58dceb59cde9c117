//! A run's creation: all that is wrong is told at once, and a run that is refused leaves nothing.

use std::{
    collections::BTreeMap,
    mem::take,
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime},
};

use narthex_audit::ActorKind;
use narthex_control::{By, CatalogError, Control, ControlError};
use narthex_gateway::{RunToken, RunView};
use narthex_model::{
    AgentEnv, AgentName, Alias, EnvName, ErrorKind, PrincipalId, SecretName, WorkspaceId,
};
use narthex_policy::RunPolicy;
use narthex_registry::{FirstLists, HeldBack, KeptFurther, MountFault, MountSet};
use narthex_resolve::{Agent, Parsed, RunKind, RunRequest};
use narthex_store::{RunRow, SessionRow};
use narthex_traffic::RunMeters;

use crate::{
    DirectServers, OpenSockets, RUNS_MAX, RunError, RunFault, Runs, asked,
    definitions::LookedAt,
    driver::{Awaited, Creator, Place},
    family::Parent,
    frozen::{Frozen, FrozenAgent, Inputs, Made, run_place},
    instant,
    keep::Told,
    prepare::{self, Failed, Of, Opened, Prepared},
};

/// How long a run lives whose creator does not say.
pub(crate) const LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a run is made anew because what it is made of was taken away meanwhile.
pub(crate) const ATTEMPTS: usize = 3;

/// A run that has begun.
#[derive(Debug)]
pub struct Created {
    /// The run as it is stored.
    pub row: RunRow,
    /// The run as the data plane sees it.
    pub run: Arc<RunView>,
    /// What opens it; kept nowhere else.
    pub token: RunToken,
    /// The optional servers that did not start.
    pub faults: Vec<MountFault>,
    /// The optional servers whose configuration could not be made.
    pub skipped: Vec<RunFault>,
    /// What a person should know.
    pub warnings: Vec<String>,
    /// The shared servers that the run asks for and that there are none of.
    pub missing: Vec<Alias>,
    /// The servers with all values, if that was asked for (C19).
    pub direct: Option<DirectServers>,
    /// Its Unix sockets, if that was asked for (D2).
    pub sockets: Option<OpenSockets>,
    /// The values for the agent's own environment; empty for a run that was created by another.
    pub agent_env: AgentEnv,
}

/// What is to be created.
pub(crate) struct Draft {
    pub(crate) workspace: WorkspaceId,
    pub(crate) request: RunRequest,
    /// As it was sent.
    pub(crate) text: String,
    pub(crate) by: By,
    pub(crate) driver: Option<PrincipalId>,
    pub(crate) awaited: Option<Awaited>,
    pub(crate) parent: Option<Parent>,
    pub(crate) token: RunToken,
    pub(crate) session: SessionRow,
    pub(crate) inputs: Inputs,
    pub(crate) expires_at: SystemTime,
    /// Whether it begins because its session is noted to go on by itself.
    pub(crate) is_owed: bool,
}

/// What a run would consist of, before any of it is started.
pub(crate) struct Ready {
    prepared: Prepared,
    meters: RunMeters,
    made: Made,
    agent_env: AgentEnv,
}

/// What a run consists of before it begins.
struct Making {
    set: MountSet,
    /// Without what is mounted.
    prepared: Prepared,
    meters: RunMeters,
    made: Made,
    agent_env: AgentEnv,
}

impl Runs {
    /// Creates a run as a JSON document asks for it, and lets it begin. Waits until every server is
    /// ready or has failed. Whoever goes away meanwhile does not leave half a run.
    ///
    /// # Errors
    /// When the document or what it refers to is faulty, its creator may not have what it asks for,
    /// a secret is not set, a server that is not optional does not start, or the store or the vault
    /// fails: then nothing is left, and everything of one kind that is wrong is told at once (D9).
    pub async fn create(
        &self,
        workspace: &WorkspaceId,
        text: &str,
        by: Creator,
    ) -> Result<Created, RunError> {
        let (runs, workspace, text) = (self.clone(), workspace.clone(), text.to_owned());
        let making = async move { Box::pin(runs.make(workspace, text, by)).await };
        let made = self.control().spawn(making).await;
        made.unwrap_or_else(|error| Err(ControlError::Bug(error).into()))
    }

    async fn make(
        &self,
        workspace: WorkspaceId,
        text: String,
        by: Creator,
    ) -> Result<Created, RunError> {
        self.control().catalog_store(&workspace).await?;
        let parsed = RunRequest::parse(text.as_bytes()).map_err(RunError::Refused)?;
        let Parsed { value: request, warnings } = parsed;
        if self.shared.gateway.runs().len() >= RUNS_MAX {
            return Err(RunError::TooMany(RUNS_MAX));
        }
        let draft = self.draft(workspace, request, text, by).await?;
        for _ in 0..ATTEMPTS {
            let cuts = self.control().cuts();
            let making = match self.making(&draft).await {
                Ok(making) => making,
                Err(error) => {
                    self.note_refused(&draft, &error).await;
                    return Err(error);
                }
            };
            // What was cut off before it was mounted here was not cut off here.
            if self.control().cuts() == cuts {
                let warnings = warnings.iter().map(|one| one.message.clone());
                return Box::pin(self.begin(draft, making, warnings.collect())).await;
            }
            making.set.unmount().await;
        }
        Err(RunError::Changed)
    }

    pub(crate) async fn draft(
        &self,
        workspace: WorkspaceId,
        request: RunRequest,
        text: String,
        by: Creator,
    ) -> Result<Draft, RunError> {
        let parent = self.parent(&workspace, &request, &by).await?;
        let driver = self.driver(&workspace, &request, &by, parent.as_ref())?;
        let awaited = by.awaited().cloned();
        let is_owed = matches!(by, Creator::Platform(..));
        let by = by.by();
        let token = RunToken::generate().map_err(RunError::Randomness)?;
        let life = request.expires_in.map_or(LIFE, Duration::from_secs);
        let mut expires_at = SystemTime::now() + life;
        if let Some(parent) = &parent {
            expires_at = expires_at.min(parent.row.expires_at);
        }
        let (session, inputs) = match request.kind {
            RunKind::StartSession => (self.new_session(&workspace, &request, &by.id)?, None),
            RunKind::ResumeSession => {
                let (session, inputs) = self.resumed(&workspace, &request).await?;
                (session, Some(inputs))
            }
        };
        let parent_id = parent.as_ref().map(|parent| parent.row.id);
        let depth = parent.as_ref().map_or(session.depth, |parent| parent.depth + 1);
        let session = match inputs {
            None => SessionRow { parent: parent_id, depth, ..session },
            Some(_) => session,
        };
        let inputs = inputs.unwrap_or_default();
        Ok(Draft {
            workspace,
            request,
            text,
            by,
            driver,
            awaited,
            parent,
            token,
            session,
            inputs,
            expires_at,
            is_owed,
        })
    }

    /// Has everything ready that the run needs, with its servers mounted.
    async fn making(&self, draft: &Draft) -> Result<Making, RunError> {
        let Ready { mut prepared, meters, made, agent_env } = self.ready(draft).await?;
        let set = self.mount(take(&mut prepared.servers), true).await?;
        Ok(Making { set, prepared, meters, made, agent_env })
    }

    /// Finds all that is wrong with a run before anything of it is started.
    pub(crate) async fn ready(&self, draft: &Draft) -> Result<Ready, RunError> {
        let isolation = self.shared.numbers.fetch_add(1, Ordering::Relaxed);
        let (mut prepared, made, agent_env) = match draft.request.has_own_servers {
            true => self.own(draft, isolation)?,
            false => self.of_agent(draft, isolation).await?,
        };
        let (optional, failed): (Vec<_>, Vec<_>) =
            take(&mut prepared.failed).into_iter().partition(|server| server.is_optional);
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

    fn own(&self, draft: &Draft, isolation: u64) -> Result<(Prepared, Made, AgentEnv), RunError> {
        let snapshot = self.shared.gateway.registry().snapshot();
        let options = &self.shared.options;
        let prepared = asked::read(&draft.text, options, Some(&snapshot), isolation)?;
        if prepared.policy != RunPolicy::default() && !self.is_home(&draft.workspace) {
            let text = "`tools` names servers of the local configuration, which other workspaces \
                        do not have; give the run servers of its own";
            return Err(RunError::Malformed(text.to_owned()));
        }
        Ok((prepared, Made::Own(draft.text.clone()), AgentEnv::default()))
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
        let parts = Control::agent_parts(self.store()?, workspace, &name).await.map_err(
            |error| match error.kind() {
                ErrorKind::NotFound if is_unknown_object(&error) => RunError::NoAgent(name),
                _ => error.into(),
            },
        )?;
        self.check_executor(draft, &parts.agent)?;
        let inputs = match request.kind {
            RunKind::StartSession => self.inputs(draft, &parts.agent).await?,
            RunKind::ResumeSession => draft.inputs.clone(),
        };
        let scope = match &draft.parent {
            Some(parent) => parent.scope.of_child(&request.scope),
            None => request.scope.clone(),
        };
        let vault = self.vault()?;
        let variables = self.control().variables();
        let env = self.bound_env(draft, &parts.agent).await?;
        let opened = Opened::newest(vault, workspace, &parts, variables, &env).await;
        let opened = opened.map_err(ControlError::from)?;
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
            variables,
            driver: draft.driver.as_ref(),
            env: env_names,
            is_direct,
            built_in_url,
        };
        let prepared = prepare::agent(of, &parts, &opened, isolation)?;
        let agent_env = opened.agent_env(&env);
        let frozen = FrozenAgent::new(&parts, inputs.clone(), scope, opened.versions(), env);
        Ok((prepared, Made::Agent(Box::new(frozen)), agent_env))
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

    /// Lets the run begin and keeps it. The row comes last: what it is not in has never been.
    async fn begin(
        &self,
        draft: Draft,
        making: Making,
        mut warnings: Vec<String>,
    ) -> Result<Created, RunError> {
        let Making { set, prepared, meters, made, agent_env } = making;
        let Prepared { policy, skipped, direct, built_in, secrets, withheld, .. } = prepared;
        warnings.extend(prepared.warnings);
        let id = draft.token.run_id();
        let inputs = made.agent().map(|agent| agent.inputs.text());
        let agent_type = made.agent().map(FrozenAgent::agent_type);
        let executor = made.agent().and_then(FrozenAgent::executor);
        let first = FirstLists::of(&set);
        let looked = self.look_at_all((&draft.workspace, id), &prepared.pinned, first).await?;
        let LookedAt { first, lists, held, warnings: found } = looked;
        warnings.extend(found);
        let (prompt, further) = (draft.request.prompt.clone(), KeptFurther::default());
        let frozen = Frozen { prompt, of: made, lists, further, held: held.clone() };
        let sealed = self.seal(&draft.workspace, &run_place(id), &frozen.text()).await?;
        let session = self.sealed_session(&draft, inputs).await?;
        let faults = set.faults().to_vec();
        let missing = prepare::missing(&policy, &self.shared.gateway.registry().snapshot());
        let run = RunView::with_servers(&draft.token, draft.workspace.clone(), policy, set);
        let run = run.with_built_in(built_in).with_failed(withheld);
        let run = run.frozen_to(first).with_held_back(HeldBack::new(prepared.pinned, held));
        let place = Place {
            run: id,
            session: draft.session.id,
            agent: &draft.session.agent,
            agent_type,
            is_child: draft.session.parent.is_some(),
        };
        let run = run.with_authority(self.authority(&draft.workspace, place, draft.driver.clone()));
        let run = Arc::new(run.with_meters(meters).with_secrets(secrets));
        self.shared.gateway.begin_run(&run).map_err(RunError::Record)?;
        let executor = executor.as_ref();
        let told = Told { direct: direct.as_ref(), env: &agent_env, executor };
        let beginning = async {
            let sockets = self.open_sockets(&run, draft.request.has_sockets)?;
            let row = self.keep_noted(&draft, &session, &sealed, told).await?;
            Ok((row, sockets))
        };
        let (row, sockets) = match beginning.await {
            Ok(begun) => begun,
            Err(error) => {
                self.shared.gateway.end_run(id).await;
                return Err(error);
            }
        };
        self.shared.expiries.add(instant(row.expires_at), id);
        if row.waiting.is_some() {
            // It begins again for whoever claims it.
            self.shared.gateway.end_run(id).await;
            self.call_executors();
        } else if let Err(error) = self.take_turns(&run, &row).await {
            tracing::warn!(run.id = %id, "a run begins once its token is shown: {error}");
        }
        if let Some(permit) = draft.parent.and_then(|parent| parent.permit) {
            permit.used();
        }
        let token = draft.token;
        Ok(Created {
            row,
            run,
            token,
            faults,
            skipped,
            warnings,
            missing,
            direct,
            sockets,
            agent_env,
        })
    }
}

/// Why a session without an agent does not go on.
pub(crate) const OWN_SERVERS: &str = "its run had servers of its own; create a new one";

fn is_unknown_object(error: &ControlError) -> bool {
    matches!(error, ControlError::Catalog(CatalogError::Unknown { .. }))
}
