//! Runs that wait until a platform carries them out: one claims each, for a while, and gets a token
//! of its own. Whoever held it before is shut out.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use narthex_audit::{AuditEvent, kind};
use narthex_control::{By, ControlError};
use narthex_gateway::{RunToken, RunView};
use narthex_model::{ExecutorName, PrincipalId, RunId, Timestamp, WorkspaceId, json::shortened};
use narthex_resolve::ClaimRequest;
use narthex_store::{Claim, RunRow, StatementError, Waiting};
use serde_json::{Map, Value};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    Creator, DirectServers, RunError, Runs,
    frozen::{Frozen, FrozenAgent},
    prepare::Failed,
};

/// How many random bytes the id of a claim has.
const CLAIM_BYTES: usize = 12;
/// Why a run that waits is not to be had.
const CLAIMED: &str = "somebody else has claimed it";

/// How often it is looked whether a run was claimed or ended elsewhere.
const EVERY: Duration = Duration::from_secs(5);

/// The runs that go on here and that somebody has claimed: the token that opens each here may have
/// been replaced by a claim at another daemon.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    tokens: Mutex<HashMap<RunId, String>>,
}

impl Claims {
    /// Notes what opens a run here.
    pub(crate) fn note(&self, run: RunId, token: &str) {
        self.tokens().insert(run, token.to_owned());
    }

    fn tokens(&self) -> MutexGuard<'_, HashMap<RunId, String>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The runs that go on here and are in the store, from when they are in it.
#[derive(Debug, Default)]
pub(crate) struct StoredRuns(Mutex<HashSet<RunId>>);

impl StoredRuns {
    /// Notes a run that is stored and goes on here.
    pub(crate) fn note(&self, run: RunId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run);
    }

    /// Notes that a run does not go on here any more.
    pub(crate) fn forget(&self, run: RunId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
    }

    fn all(&self) -> Vec<RunId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}

/// Who claims a run, for the record and for the store.
pub(crate) struct Claimer {
    pub(crate) by: By,
    /// As whom the claim is kept.
    pub(crate) holder: String,
    /// As what of the daemon.
    pub(crate) executor: Option<ExecutorName>,
    /// Whether they are told the values of its servers.
    pub(crate) is_direct: bool,
}

/// A run that somebody carries out from now on.
#[derive(Debug)]
pub struct Claimed {
    /// The run as it is stored.
    pub row: RunRow,
    /// The run as the data plane sees it.
    pub run: Arc<RunView>,
    /// What opens it; kept nowhere else.
    pub token: RunToken,
    /// By what the claim is known to be the same when it is to last longer.
    pub claim: String,
    /// Until when nobody else claims it.
    pub until: SystemTime,
    /// What it is carried out with.
    pub brief: Brief,
}

/// What whoever carries a run out is told of it.
#[derive(Debug, Clone, Default)]
pub struct Brief {
    /// What the model is told.
    pub prompt: Option<String>,
    /// The agent's parameters, which its model sees.
    pub params: Map<String, Value>,
    /// The text of the agent that its model sees.
    pub system_prompt: Option<String>,
    /// The servers with all values, if that was asked for.
    pub direct: Option<DirectServers>,
}

impl Brief {
    fn of(frozen: &Frozen, direct: Option<DirectServers>) -> Self {
        let agent = frozen.of.agent();
        Self {
            prompt: frozen.prompt.clone(),
            params: agent.map(|agent| agent.inputs.params.clone()).unwrap_or_default(),
            system_prompt: agent.and_then(FrozenAgent::system_prompt),
            direct,
        }
    }
}

/// What comes of a claim.
#[derive(Debug)]
pub enum Claiming {
    /// The run is whose it is that asked.
    New(Box<Claimed>),
    /// It was before, and is for longer.
    Held {
        /// The claim.
        claim: String,
        /// Until when nobody else claims it.
        until: SystemTime,
    },
}

impl Runs {
    /// Gives a run that waits to whoever claims it, for as long as a document says; it is claimed
    /// once at a time, also where several daemons are on one store. Who names a claim has it last
    /// so long from now on.
    ///
    /// # Errors
    /// When the document is faulty, there is no such run, it waits for nobody, the claim is over or
    /// another one, whoever asks may not have it, or the store fails.
    pub async fn claim(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        text: &[u8],
        by: &Creator,
    ) -> Result<Claiming, RunError> {
        let row = self.found(workspace, id).await?;
        let by = claimer(&row, by)?;
        let asked = ClaimRequest::parse(text).map_err(RunError::Refused)?.value;
        let ClaimRequest { claim, lasts, is_direct } = asked;
        match claim {
            Some(claim) => self.hold(row, claim, lasts).await,
            None => Ok(Claiming::New(Box::new(self.take(row, (lasts, is_direct), by).await?))),
        }
    }

    /// Looks whether runs were claimed or ended elsewhere, for as long as it is polled.
    pub(crate) async fn watch_claims(&self) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let looked = async {
                self.look_at_ends().await?;
                self.look_at_claims().await
            };
            if let Err(error) = looked.await {
                tracing::warn!("runs cannot be compared with the store: {error}");
            }
        }
    }

    /// Has tokens open nothing any more that a claim at another daemon has replaced. A run whose
    /// claim is over, and that nobody uses, leaves the memory until somebody does, or claims it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn look_at_claims(&self) -> Result<(), RunError> {
        let runs = self.store()?.runs();
        let here: Vec<_> = self.shared.claimed.tokens().clone().into_iter().collect();
        for (id, token) in here {
            let _turn = self.kept_turn(id).await;
            let row = runs.find(id).await.map_err(of)?;
            let row = row.filter(|row| row.ended.is_none() && row.token == token);
            let is_known = self.shared.claimed.tokens().get(&id) == Some(&token);
            if !is_known || row.is_some_and(|row| self.is_held(&row)) {
                continue;
            }
            self.shared.claimed.tokens().remove(&id);
            self.end_view(id).await;
        }
        Ok(())
    }

    /// Ends what goes on here of runs that have ended at other daemons, or are gone with their
    /// workspace.
    ///
    /// It asks for each run that is here, so that nothing is missed for good, however long the
    /// store could not be asked.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn look_at_ends(&self) -> Result<(), RunError> {
        let here = self.shared.stored.all();
        let living = self.store()?.runs().living(&here).await.map_err(of)?;
        for id in here.into_iter().filter(|id| !living.contains(id)) {
            self.end_view(id).await;
        }
        Ok(())
    }

    /// Whether somebody has a claim of a run, or uses it all the same.
    fn is_held(&self, row: &RunRow) -> bool {
        let is_claimed = |waiting: &Waiting| !waiting.is_free(SystemTime::now());
        row.waiting.as_ref().is_none_or(is_claimed)
            || self.shared.gateway.runs().get(row.id).is_some_and(|run| run.is_watched())
    }

    async fn take(
        &self,
        row: RunRow,
        (lasts, is_direct): (Duration, bool),
        by: &By,
    ) -> Result<Claimed, RunError> {
        is_free(&row)?;
        let (runs, by) = (self.clone(), by.clone());
        // To its end: a run that is claimed and whose token nobody has would wait for nothing.
        let claimer = Claimer { holder: by.id.to_string(), by, executor: None, is_direct };
        let claiming = async move { runs.claim_row(row, lasts, claimer).await };
        let claimed = self.control().spawn(claiming).await;
        claimed.unwrap_or_else(|error| Err(ControlError::Bug(error).into()))
    }

    async fn hold(
        &self,
        row: RunRow,
        claim: String,
        lasts: Duration,
    ) -> Result<Claiming, RunError> {
        let until = (SystemTime::now() + lasts).min(row.expires_at);
        let held = self.store()?.runs().hold(&row.workspace, row.id, &claim, until).await;
        match held.map_err(ControlError::Store)? {
            true => Ok(Claiming::Held { claim, until }),
            false => Err(RunError::NotPending(row.id, "this claim is over, or another one")),
        }
    }

    async fn found(&self, workspace: &WorkspaceId, id: &str) -> Result<RunRow, RunError> {
        self.control().catalog_store(workspace).await?;
        let unknown = || RunError::Unknown(shortened(id));
        let id = RunId::parse(id).ok_or_else(unknown)?;
        self.stored(workspace, id).await?.ok_or_else(unknown)
    }

    pub(crate) async fn claim_row(
        &self,
        row: RunRow,
        lasts: Duration,
        claimer: Claimer,
    ) -> Result<Claimed, RunError> {
        let Claimer { by, holder, executor, is_direct } = claimer;
        let RunRow { id, workspace, expires_at, .. } = row;
        let _turn = self.kept_turn(id).await;
        let until = (SystemTime::now() + lasts).min(expires_at);
        let event = AuditEvent::new(kind::RUN_CLAIMED, by.clone()).in_workspace(&workspace);
        let event = event.of_run(id.to_text()).of_session(row.session.to_text());
        let noted = self
            .control()
            .note(event.with("until", Timestamp::new(until).to_string()))
            .await
            .map_err(RunError::Control)?;
        let token = RunToken::of_run(id).map_err(RunError::Randomness)?;
        let mut bytes = [0; CLAIM_BYTES];
        getrandom::fill(&mut bytes).map_err(RunError::Randomness)?;
        let (claim, hash) = (format!("clm_{}", hex::encode(bytes)), hex::encode(token.hash()));
        let executor = executor.as_ref();
        let turn = row.turn.number;
        let taken = Claim { id: &claim, by: &holder, executor, until, token: &hash, turn };
        let taken = self.store()?.runs().claim(&workspace, id, taken).await;
        if !taken.map_err(ControlError::Store)? {
            return Err(RunError::NotPending(id, CLAIMED));
        }
        // What the token of an earlier claim opens ends here.
        self.end_view(id).await;
        let begun = self.begun_for_claim(&workspace, id, is_direct.then_some(by)).await;
        let (row, run, brief) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                self.unclaim(&workspace, id, &claim).await;
                return Err(error);
            }
        };
        if let Some(events) = self.control().events() {
            events.attended(&row.workspace, row.session).await;
        }
        noted.done().await;
        Ok(Claimed { row, run, token, claim, until, brief })
    }

    async fn begun_for_claim(
        &self,
        workspace: &WorkspaceId,
        id: RunId,
        direct_to: Option<By>,
    ) -> Result<(RunRow, Arc<RunView>, Brief), RunError> {
        let row = self.stored(workspace, id).await?.ok_or(RunError::HasEnded(id))?;
        let run = self.begin_again_if_living(&row).await?.ok_or(RunError::HasEnded(id))?;
        let frozen = self.frozen(&row).await?;
        let direct = match direct_to {
            Some(by) => Some(self.told_directly(&row, &frozen, by).await?),
            None => None,
        };
        Ok((row, run, Brief::of(&frozen, direct)))
    }

    /// The servers of a run with all values, for whoever claims it; the audit says that they were
    /// told.
    async fn told_directly(
        &self,
        row: &RunRow,
        frozen: &Frozen,
        by: By,
    ) -> Result<DirectServers, RunError> {
        let prepared = self.prepared_again(row, frozen, true).await?;
        let Some(direct) = prepared.direct else {
            let message = "the run has servers of its own, and none of an agent".to_owned();
            return Err(RunError::Denied { field: "direct", message });
        };
        if !prepared.failed.is_empty() {
            return Err(RunError::Entries(prepared.failed.iter().map(Failed::fault).collect()));
        }
        let event = AuditEvent::new(kind::RUN_DIRECT, by).in_workspace(&row.workspace);
        let event = event.on("agent", row.agent.clone()).of_run(row.id.to_text());
        let event = event.of_session(row.session.to_text()).with("servers", direct.aliases());
        self.control().note(event).await?.done().await;
        Ok(direct)
    }

    /// Gives a run back that was claimed and does not begin: else nobody could claim it until the
    /// claim is over, of which nobody knows.
    pub(crate) async fn unclaim(&self, workspace: &WorkspaceId, id: RunId, claim: &str) {
        self.shared.claimed.tokens().remove(&id);
        self.end_view(id).await;
        let given =
            async { self.store()?.runs().give_back(workspace, id, claim).await.map_err(of) };
        if let Err(error) = given.await {
            tracing::warn!(run.id = %id, "a claim of which nothing came lasts on: {error}");
        }
    }
}

/// Who claims a run. Its token is worth what was granted to who drives it and to whose turn it is,
/// so no other human gets it, unless they are an operator; services carry out what anybody drives
/// (X-E81).
fn claimer<'b>(row: &RunRow, by: &'b Creator) -> Result<&'b By, RunError> {
    let denied = |message: &str| RunError::Denied { field: "user", message: message.to_owned() };
    let is_for = |human: Option<&PrincipalId>| {
        let mut whose = row.driver.iter().chain(row.acts_for());
        whose.all(|one| Some(one) == human)
    };
    match by {
        Creator::Operator(by, _) | Creator::Member(by, None) => Ok(by),
        Creator::Member(by, Some(human)) if is_for(Some(human)) => Ok(by),
        Creator::Member(_, Some(_)) => {
            Err(denied("another person drives this run; they, a service or an operator claims it"))
        }
        Creator::Unproved { by, .. } if is_for(None) => Ok(by),
        Creator::Unproved { .. } => Err(denied(
            "a human drives this run, and only who has proved to be one, or a service by a token \
             that such a human has made, claims it (`grants.require_proof`)",
        )),
        Creator::Run(_) | Creator::Spawner(..) | Creator::Platform(..) => {
            Err(denied("a run claims no others"))
        }
    }
}

fn of(error: StatementError) -> RunError {
    ControlError::Store(error).into()
}

/// Says why a run is not to be had.
fn is_free(row: &RunRow) -> Result<(), RunError> {
    if row.ended.is_some() {
        return Err(RunError::HasEnded(row.id));
    }
    match &row.waiting {
        None => Err(RunError::NotPending(row.id, "whoever created it carries it out")),
        Some(Waiting { executor: Some(_), .. }) => {
            Err(RunError::NotPending(row.id, "an executor of a daemon carries it out"))
        }
        Some(waiting) if waiting.is_free(SystemTime::now()) => Ok(()),
        Some(_) => Err(RunError::NotPending(row.id, CLAIMED)),
    }
}
