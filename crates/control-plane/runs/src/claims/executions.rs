//! Runs that an executor of this daemon carries out: the executor looks for waiting runs, claims
//! each, and reports the outcome.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use narthex_catalog::Agent;
use narthex_control::{By, ControlError};
use narthex_events::EventKind;
use narthex_gateway::{RunToken, RunView};
use narthex_model::{AgentEnv, Alias, ExecutorName, RunEnd, RunId, SessionId, WorkspaceId};
use narthex_store::RunRow;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    RunError, Runs,
    claims::{Brief, Claimed, Claimer},
    create::{parent::Parent, request::Requested, servers::OpenedSecrets},
    end::{Ending, completed::COMPLETED},
    frozen::{FrozenAgent, Inputs},
};

/// Number of runs without an executor that are read together.
const UNSERVED: u32 = 100;

/// A run that an executor has taken over.
#[derive(Debug)]
pub struct Execution {
    /// The run as it is stored.
    pub row: RunRow,
    /// The run as the data plane sees it.
    pub run: Arc<RunView>,
    /// The token that opens the run; stored nowhere else.
    pub token: RunToken,
    /// The id of the claim, by which a later request extends the claim.
    pub claim: String,
    /// The data for carrying out the run.
    pub brief: Brief,
    /// The folder that the agent works in.
    pub folder: PathBuf,
    /// The values for the agent's own environment.
    pub agent_env: AgentEnv,
}

/// Outcome of a run that an executor carried out.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The run completed.
    Completed,
    /// The run failed; with the payload for readers of the session.
    Failed(Value),
}

impl Runs {
    /// Returns a receiver that changes whenever a run may wait for an executor.
    #[must_use]
    pub fn awaited(&self) -> watch::Receiver<()> {
        self.shared.awaited.subscribe()
    }

    /// Wakes all executors to look for waiting runs.
    pub fn call_executors(&self) {
        self.shared.awaited.send_replace(());
    }

    /// Gives back the claims that an earlier process of this name has made for its executors.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn release_of(&self, holder: &str) -> Result<(), RunError> {
        Ok(self.store()?.runs().release(holder).await.map_err(ControlError::Store)?)
    }

    /// The oldest runs of some workspaces that wait for an executor.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn awaiting(
        &self,
        name: &ExecutorName,
        workspaces: &BTreeSet<WorkspaceId>,
        limit: u32,
    ) -> Result<Vec<RunRow>, RunError> {
        let mut all = Vec::new();
        for workspace in workspaces {
            let rows = self.store()?.runs().of_executor(name, workspace, limit).await;
            all.extend(rows.map_err(ControlError::Store)?);
        }
        all.sort_by_key(|row| (row.created_at, row.id));
        all.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(all)
    }

    /// Stores for `lasts` from now on which executors the daemon of this name has, and for which
    /// workspaces; its earlier list is replaced.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn serve(
        &self,
        holder: &str,
        all: &[(ExecutorName, WorkspaceId)],
        lasts: Duration,
    ) -> Result<(), RunError> {
        let served = self.store()?.runs().serve(holder, all, SystemTime::now() + lasts).await;
        Ok(served.map_err(ControlError::Store)?)
    }

    /// Fails the sessions of runs that wait for an executor which no daemon has for their
    /// workspace, for example after a change of a daemon's settings. A session that cannot be ended
    /// now is logged, and the next call finds it again.
    ///
    /// # Errors
    /// When the store cannot list the runs.
    pub async fn fail_unserved(&self) -> Result<(), RunError> {
        let rows = self.store()?.runs().unserved(UNSERVED).await.map_err(ControlError::Store)?;
        for row in rows {
            let Some(waiting) = &row.waiting else { continue };
            let Some(name) = &waiting.executor else { continue };
            let reason = format!(
                "no daemon has the executor `{name}` for the workspace `{}` any more; an operator \
                 must add the workspace to `executors.{name}.workspaces` in the settings",
                row.workspace
            );
            tracing::warn!(
                run.id = %row.id,
                "no executor carries out a run, so it fails: {reason}"
            );
            let told = json!({ "reason": reason, "attempts": waiting.attempts });
            if let Err(error) = self.executed(&row, Outcome::Failed(told)).await {
                tracing::warn!(
                    run.id = %row.id,
                    "the failure of a run could not be stored: {error}"
                );
            }
        }
        Ok(())
    }

    /// The largest number of times that a run may begin. A worker's run begins only once, since the
    /// progress of its session is unknown (X-E57).
    ///
    /// # Errors
    /// When the store fails, or the run has ended.
    pub async fn attempts_max(&self, row: &RunRow) -> Result<u32, RunError> {
        let frozen = self.frozen(row).await?;
        let is_worker = frozen.of.agent().is_none_or(|agent| agent.agent_type().is_worker());
        Ok(if is_worker { 1 } else { ATTEMPTS_MAX })
    }

    /// Takes over a run that waits for an executor, as `holder`.
    ///
    /// # Errors
    /// When another daemon has claimed the run meanwhile, the run has ended, or the store or the
    /// vault fails.
    pub async fn execute(
        &self,
        row: RunRow,
        holder: &str,
        lasts: Duration,
    ) -> Result<Execution, RunError> {
        let (runs, holder) = (self.clone(), holder.to_owned());
        // The task completes also if the caller is dropped: no executor would have the token of a
        // run whose claim stopped halfway.
        let executing = async move { Box::pin(runs.take_over(row, holder, lasts)).await };
        let taken = self.control().spawn(executing).await;
        taken.unwrap_or_else(|error| Err(ControlError::Bug(error).into()))
    }

    async fn take_over(
        &self,
        row: RunRow,
        holder: String,
        lasts: Duration,
    ) -> Result<Execution, RunError> {
        let executor = row.waiting.as_ref().and_then(|waiting| waiting.executor.clone());
        let claimer = Claimer { by: By::system(), holder, executor, is_direct: false };
        let claimed = self.claim_row(row, lasts, claimer).await?;
        let (row, claim) = (claimed.row.clone(), claimed.claim.clone());
        let execution = self.execution(claimed).await;
        if execution.is_err() {
            self.unclaim(&row.workspace, row.id, &claim).await;
        }
        execution
    }

    async fn execution(&self, claimed: Claimed) -> Result<Execution, RunError> {
        let Claimed { row, run, token, claim, brief, .. } = claimed;
        let frozen = self.frozen(&row).await?;
        let agent = frozen.of.agent().ok_or(RunError::HasEnded(row.id))?;
        let agent_env = self.own_env(&row, agent).await?;
        let inputs = &agent.inputs;
        let folder = match &inputs.project_dir {
            Some(given) if !inputs.has_own_folder => PathBuf::from(given),
            // The folder may have been removed, or the agent had no executor when the session
            // began.
            Some(_) | None => self.made_folder(&row.workspace, row.session).await?,
        };
        Ok(Execution { row, run, token, claim, brief, folder, agent_env })
    }

    async fn own_env(&self, row: &RunRow, agent: &FrozenAgent) -> Result<AgentEnv, RunError> {
        if agent.env.is_empty() {
            return Ok(AgentEnv::default());
        }
        let opened = OpenedSecrets::pinned(self.vault()?, &row.workspace, &agent.secrets).await;
        Ok(opened.map_err(ControlError::from)?.agent_env(&agent.env))
    }

    /// Extends an executor's claim by `lasts` from now on. `false` if the run has ended, or the
    /// claim is lost.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn keep_on(
        &self,
        workspace: &WorkspaceId,
        id: RunId,
        claim: &str,
        lasts: Duration,
    ) -> Result<bool, RunError> {
        let until = SystemTime::now() + lasts;
        let held = self.store()?.runs().hold(workspace, id, claim, until).await;
        Ok(held.map_err(ControlError::Store)?)
    }

    /// Ends the session of a run that was carried out, unless it has ended before.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn executed(&self, row: &RunRow, outcome: Outcome) -> Result<(), RunError> {
        let now = self.stored(&row.workspace, row.id).await?;
        if now.is_none_or(|now| now.ended.is_some()) {
            return Ok(());
        }
        if matches!(outcome, Outcome::Completed) && self.leaves_children(row).await? {
            return self.rest(row).await;
        }
        let (how, kind, payload, message) = match outcome {
            // A report that the agent has made by `end_session` stays the only one, since both have
            // one id.
            Outcome::Completed => {
                let payload = json!({ "summary": null, "by": "executor" });
                (RunEnd::Ended, EventKind::SessionCompleted, payload, Some(COMPLETED))
            }
            Outcome::Failed(payload) => (RunEnd::Failed, EventKind::SessionFailed, payload, None),
        };
        let ending = Ending { by: By::system(), how, first: Some((kind, payload, message)) };
        self.end_session(&row.workspace, row.session, ending).await.map(drop)
    }

    /// Ends a run, but not its session, which has active children.
    async fn rest(&self, row: &RunRow) -> Result<(), RunError> {
        let frozen = self.frozen(row).await?;
        let scope = frozen.of.agent().map(|agent| agent.scope().values().clone());
        // The last child may have ended just before, when the run was still active.
        let owed = self.owed_alone(row, scope.unwrap_or_default()).await?;
        let (how, by) = (RunEnd::Ended, By::system());
        self.end_stored(&row.workspace, row.id, how, by, Some(owed)).await.map(drop)
    }

    /// The inputs of a new session.
    pub(crate) async fn inputs(
        &self,
        requested: &Requested,
        agent: &Agent,
    ) -> Result<Inputs, RunError> {
        let params = requested.request.params_for(agent);
        // A child works in the folder of its parent.
        let inherited = requested.parent.as_ref().and_then(|one| one.project_dir.clone());
        let given = requested.request.project_dir.clone().or(inherited);
        let caller_scope = requested.parent.as_ref().and_then(Parent::own_scope);
        let builtin = requested.request.builtin.clone();
        let inputs = Inputs { params, caller_scope, builtin, ..Inputs::default() };
        if given.is_some() || agent.executor.is_none() {
            return Ok(Inputs { project_dir: given, ..inputs });
        }
        let own = self.made_folder(&requested.workspace, requested.session.id).await?;
        let project_dir = Some(own.to_string_lossy().into_owned());
        Ok(Inputs { project_dir, has_own_folder: true, ..inputs })
    }

    /// Returns the session's own folder, and creates it if it is missing.
    async fn made_folder(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
    ) -> Result<PathBuf, RunError> {
        let path = self.own_folder(workspace, session);
        let mut making = tokio::fs::DirBuilder::new();
        match making.recursive(true).mode(0o700).create(&path).await {
            Ok(()) => Ok(path),
            Err(source) => Err(RunError::Folder { path, source }),
        }
    }

    /// Refuses fields that exclude an executor, and an executor that this daemon does not have.
    pub(crate) fn check_executor(
        &self,
        requested: &Requested,
        agent: &Agent,
    ) -> Result<(), RunError> {
        let Some(name) = &agent.executor else { return Ok(()) };
        let denied = |field, message: &str| RunError::Denied { field, message: message.to_owned() };
        if requested.request.is_direct {
            let text = "an executor of the daemon carries out the agent's runs, and no other \
                        client gets the values of its servers; leave it out";
            return Err(denied("direct", text));
        }
        match self.control().executors().has(name, &requested.workspace) {
            true => Ok(()),
            false => Err(RunError::NoExecutor(name.clone())),
        }
    }

    /// The path of the session's own folder, for sessions without a given one.
    pub(crate) fn own_folder(&self, workspace: &WorkspaceId, session: SessionId) -> PathBuf {
        self.shared.options.folders.join(workspace.as_str()).join(session.to_text())
    }

    /// The addresses of a run's endpoints and its token, for the platform that carries it out.
    #[must_use]
    pub fn entries(&self, base: &str, run: &RunView, token: &RunToken) -> Value {
        let endpoints = self.endpoints(base, run);
        let entry = |url: &str| client_entry(url, token.expose());
        let own: BTreeMap<_, _> =
            endpoints.iter().map(|(alias, url)| (alias, entry(url))).collect();
        json!({
            "token": token.expose(),
            "endpoints": {
                "aggregated": base,
                "servers": &endpoints,
                "events": events_url(base, run),
            },
            "mcpServers": { "narthex": entry(base) },
            "mcpServersByAlias": own,
        })
    }

    /// The addresses of the endpoints of a run's servers, by alias.
    #[must_use]
    pub fn endpoints(&self, base: &str, run: &RunView) -> BTreeMap<String, String> {
        let endpoint = |alias: Alias| (alias.to_string(), format!("{base}/{alias}"));
        self.shared.gateway.aliases(run).into_iter().map(endpoint).collect()
    }
}

/// The address for reading and following the events of a run's session, if it has one.
#[must_use]
pub fn events_url(base: &str, run: &RunView) -> Option<String> {
    let (root, session) = (base.strip_suffix("/mcp")?, run.authority.actors().session?);
    Some(format!("{root}/api/workspaces/{}/sessions/{session}/events", run.workspace))
}

/// Largest number of times that a run of an agent other than a worker may begin (X-E57).
const ATTEMPTS_MAX: u32 = 6;

/// An entry of `mcpServers`, in the form that MCP clients read.
#[must_use]
pub fn client_entry(url: &str, token: &str) -> Value {
    let authorization = format!("Bearer {token}");
    json!({ "type": "http", "url": url, "headers": { "Authorization": authorization } })
}
