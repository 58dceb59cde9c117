//! A run's creation: all faults are reported at once, and a refused run leaves nothing.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use narthex_catalog::{Parsed, RunKind, RunRequest};
use narthex_control::{By, ControlError};
use narthex_gateway::{RunToken, RunView};
use narthex_model::{AgentEnv, Alias, Pid, PrincipalId, UnmatchedGate, WorkspaceId};
use narthex_registry::{FirstLists, HeldBack, KeptFurther, MountFault, MountSet};
use narthex_store::{RunRow, SessionRow};

use crate::{
    DirectServers, OpenSockets, RUNS_MAX, RunError, RunFault, Runs,
    definitions::LookedAt,
    driver::{Awaited, Creator, Place},
    family::Parent,
    frozen::{Frozen, FrozenAgent, Inputs, run_place},
    instant,
    keep::{Told, begun},
    making::Making,
    mounting::Mounting,
    prepare::{self, OmittedKey, Prepared},
    suspending::Former,
};

/// Lifetime of a run whose request gives none.
pub(crate) const LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// Number of tries to make a run whose parts are removed meanwhile.
pub(crate) const ATTEMPTS: usize = 3;

/// A gate of a server of a run that gates nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedOf {
    /// The server.
    pub server: Alias,
    /// The gate.
    pub gate: UnmatchedGate,
}

impl UnmatchedOf {
    /// A sentence; with `is_for_model` without a word of the server, such as the probably meant
    /// name.
    #[must_use]
    pub fn told(&self, is_for_model: bool) -> String {
        let gate = if is_for_model { self.gate.plain() } else { self.gate.to_string() };
        format!("server `{}`: {gate}", self.server)
    }
}

/// A warning of a run that was created. No word of a server is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunWarning {
    text: String,
    for_models: Option<String>,
}

impl RunWarning {
    /// A warning of the request itself, which its sender reads, human or model.
    pub(crate) fn of_request(text: String) -> Self {
        Self { for_models: Some(text.clone()), text }
    }

    /// A warning of a text by operators and authors: it names their keys, servers or commands, so
    /// models read nothing of it (D28).
    pub(crate) fn of_operators(text: String) -> Self {
        Self { text, for_models: None }
    }

    /// The same warning, of which models read these words.
    pub(crate) fn or_for_models(self, words: String) -> Self {
        Self { for_models: Some(words), ..self }
    }

    /// The words for a reader; `None` if a model reads nothing of it.
    #[must_use]
    pub fn read_by(&self, is_model: bool) -> Option<&str> {
        if is_model { self.for_models.as_deref() } else { Some(&self.text) }
    }
}

/// A run that was created.
#[derive(Debug)]
pub struct Created {
    /// The run as it is stored.
    pub row: RunRow,
    /// The run as the data plane sees it.
    pub run: Arc<RunView>,
    /// The token that opens it; stored nowhere else.
    pub token: RunToken,
    /// The optional servers that did not start.
    pub faults: Vec<MountFault>,
    /// The optional servers whose configuration could not be made.
    pub skipped: Vec<RunFault>,
    /// Warnings, in words for humans and for models.
    pub warnings: Vec<RunWarning>,
    /// Gates of its servers that match nothing in the servers' lists (D14).
    pub unmatched: Vec<UnmatchedOf>,
    /// Optional keys of its servers that it does without.
    pub omitted: Vec<OmittedKey>,
    /// The shared servers that the run asks for and that do not exist.
    pub missing: Vec<Alias>,
    /// The servers with all values, if the request asked for them.
    pub direct: Option<DirectServers>,
    /// Its Unix sockets, if the request asked for them (D2).
    pub sockets: Option<OpenSockets>,
    /// The values for the agent's own environment; empty for a run that was created by another.
    pub agent_env: AgentEnv,
    /// The numbers of the earlier runs of its session, the oldest first: paths with them mean its
    /// servers as well (R-D1).
    pub former_pids: Vec<Pid>,
}

/// A run to create.
pub(crate) struct Draft {
    pub(crate) workspace: WorkspaceId,
    pub(crate) request: RunRequest,
    /// The text of the request, as it was sent.
    pub(crate) text: String,
    pub(crate) by: By,
    pub(crate) driver: Option<PrincipalId>,
    pub(crate) awaited: Option<Awaited>,
    pub(crate) parent: Option<Parent>,
    pub(crate) token: RunToken,
    pub(crate) session: SessionRow,
    pub(crate) inputs: Inputs,
    pub(crate) expires_at: SystemTime,
    /// True if it begins because its session is noted to resume by itself.
    pub(crate) is_owed: bool,
    /// The earlier run that the session resumes from, if there is one.
    pub(crate) former: Option<Former>,
}

impl Runs {
    /// Creates a run from a JSON document, and starts it. Waits until every server is ready or has
    /// failed. A caller that disconnects meanwhile does not leave half a run.
    ///
    /// # Errors
    /// When the document or an object that it refers to is faulty, its creator may not have what it
    /// asks for, a secret is not set, a server that is not optional does not start, or the store or
    /// the vault fails: then nothing is left, and all faults of one kind are reported at once (D9).
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
        // First: a forbidden request has no effect, and not even an answer that reveals whether it
        // would work.
        let decided = self.decided(&workspace, &request, &by).await?;
        let said = warnings.into_iter().map(|one| RunWarning::of_request(one.message)).collect();
        let made = Box::pin(self.make_as(workspace, (request, text), by, said)).await;
        if let Some(decided) = decided {
            decided.ended(made.as_ref().err().map(|error| error.kind().into()));
        }
        made
    }

    async fn make_as(
        &self,
        workspace: WorkspaceId,
        (request, text): (RunRequest, String),
        by: Creator,
        warnings: Vec<RunWarning>,
    ) -> Result<Created, RunError> {
        let draft = self.draft(workspace, request, text, by).await?;
        for _ in 0..ATTEMPTS {
            self.control().look_at_cuts().await?;
            let cuts = self.control().cuts();
            let making = match self.making(&draft).await {
                Ok(making) => making,
                Err(error) => {
                    self.note_refused(&draft, &error).await;
                    return Err(error);
                }
            };
            // A cut that came before a server was mounted here has not reached it.
            if self.control().cuts() == cuts {
                return Box::pin(self.begin(draft, making, warnings)).await;
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
        let token = RunToken::generate().map_err(RunError::Randomness)?;
        let life = request.expires_in.map_or(LIFE, Duration::from_secs);
        let mut expires_at = SystemTime::now() + life;
        if let Some(parent) = &parent {
            expires_at = expires_at.min(parent.row.expires_at);
        }
        let (session, inputs, former) = match request.kind {
            RunKind::StartSession => {
                let who = by.clone().by().id;
                (self.new_session(&workspace, &request, &who)?, None, None)
            }
            RunKind::ResumeSession => {
                let (session, inputs, former) = self.resumed(&workspace, &request, &by).await?;
                (session, Some(inputs), Some(former))
            }
        };
        let by = by.by();
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
            former,
        })
    }

    /// Starts the run and stores it. The row comes last: a run without a row has never existed.
    async fn begin(
        &self,
        draft: Draft,
        making: Making,
        mut warnings: Vec<RunWarning>,
    ) -> Result<Created, RunError> {
        let Making { set, prepared, meters, made, agent_env } = making;
        let Prepared { policy, skipped, direct, built_in, secrets, withheld, omitted, .. } =
            prepared;
        warnings.extend(prepared.warnings);
        let unmatched = unmatched(&set);
        warnings.extend(omitted.iter().map(|one| RunWarning::of_operators(one.to_string())));
        let id = draft.token.run_id();
        let inputs = made.inputs().text();
        let tools = made.built_in_tools(draft.session.parent.is_some());
        let agent_type = made.agent().map(FrozenAgent::agent_type);
        let executor = made.agent().and_then(FrozenAgent::executor);
        let mounting = Mounting::of(&set).without(&skipped);
        let first = FirstLists::of(&set);
        let looked = self.look_at_all((&draft.workspace, id), &prepared.pinned, first).await?;
        let LookedAt { first, lists, held, warnings: found } = looked;
        warnings.extend(found);
        let (prompt, further, from) =
            (draft.prompt(), KeptFurther::default(), draft.goes_on_from());
        let frozen = Frozen { prompt, of: made, lists, further, held: held.clone(), from };
        let sealed = self.seal(&draft.workspace, &run_place(id), &frozen.text()).await?;
        let session = self.sealed_session(&draft, inputs, agent_type).await?;
        let faults = set.faults().to_vec();
        let missing = prepare::missing(&policy, &self.shared.gateway.registry().snapshot());
        let run = RunView::with_servers(&draft.token, draft.workspace.clone(), policy, set);
        let run = run.with_built_in(built_in).with_built_in_tools(tools).with_failed(withheld);
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
        let told = Told { direct: direct.as_ref(), env: &agent_env, omitted: &omitted, executor };
        let (row, sockets) = self.open_and_keep(&run, &draft, (&session, &sealed), told).await?;
        self.shared.stored.note(id);
        self.shared.expiries.add(instant(row.expires_at), id);
        self.settle(&draft, (&row, &run), mounting).await;
        if let Some(permit) = draft.parent.and_then(|parent| parent.permit) {
            permit.used();
        }
        Ok(Created {
            row,
            run,
            token: draft.token,
            faults,
            skipped,
            warnings,
            unmatched,
            omitted,
            missing,
            direct,
            sockets,
            agent_env,
            former_pids: draft.former.map(|former| former.pids).unwrap_or_default(),
        })
    }

    /// Opens the sockets of a started run and stores its row. If either fails, the run ends.
    async fn open_and_keep(
        &self,
        run: &Arc<RunView>,
        draft: &Draft,
        (session, sealed): (&SessionRow, &str),
        told: Told<'_>,
    ) -> Result<(RunRow, Option<OpenSockets>), RunError> {
        let opening = async {
            let sockets = self.open_sockets(run, draft.request.has_sockets)?;
            let row = self.keep_noted(draft, session, sealed, told).await?;
            Ok((row, sockets))
        };
        match opening.await {
            Ok(opened) => Ok(opened),
            Err(error) => {
                self.let_go(draft.token.run_id()).await;
                Err(error)
            }
        }
    }

    /// Finishes the creation of a stored run.
    async fn settle(&self, draft: &Draft, (row, run): (&RunRow, &Arc<RunView>), of: Mounting) {
        let (kind, payload) = begun(draft, row);
        if row.waiting.is_some() {
            self.tell(&row.workspace, row.session, Some(row.id), (kind, payload)).await;
            // It begins again when a client claims it.
            self.let_go(row.id).await;
            self.call_executors();
            return;
        }
        let source = self.source(draft);
        self.tell_mounted(row, Some((kind, payload)), (of, source)).await;
        if let Err(error) = self.take_turns(run, row).await {
            tracing::warn!(
                run.id = %row.id,
                "a run was created, but could not be prepared; it starts when its token is first \
                 used: {error}"
            );
        }
    }
}

/// Gates of its servers that match nothing in the servers' lists (D14).
fn unmatched(set: &MountSet) -> Vec<UnmatchedOf> {
    let found = set.mounts().iter().flat_map(|mount| {
        let of = |gate: &UnmatchedGate| UnmatchedOf {
            server: mount.alias().clone(),
            gate: gate.clone(),
        };
        mount.found().unmatched.iter().map(of).collect::<Vec<_>>()
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D14: a human reads which name was probably meant by a gate for nothing, and a model no word
    /// of the server.
    #[test]
    fn d14_a_gate_for_nothing_is_told_to_humans_with_what_was_meant() {
        let gate = UnmatchedGate {
            field: "tool_scopes",
            name: "ecko".to_owned(),
            nearest: Some("echo".to_owned()),
        };
        let one = UnmatchedOf { server: Alias::new("demo").unwrap(), gate };
        let plain = "server `demo`: `tool_scopes` names `ecko`, which the server does not list, so \
                     it has no effect";
        assert_eq!(one.told(true), plain);
        assert_eq!(one.told(false), format!("{plain}; did you mean `echo`?"));
    }
}
