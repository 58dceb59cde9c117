//! Runs that wait for a platform to carry them out. A claim reserves a run for a time, and gets a
//! new token for it. The token of an earlier claim opens nothing after that.

pub(crate) mod costs;
pub(crate) mod executions;
mod inbox;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use narthex_audit::{AuditEvent, kind};
use narthex_catalog::ClaimRequest;
use narthex_control::{By, ControlError};
use narthex_gateway::{RunToken, RunView};
use narthex_model::{ExecutorName, PrincipalId, RunId, Timestamp, WorkspaceId, json::shortened};
use narthex_store::{Claim, RunRow, StatementError, Waiting};
use serde_json::{Map, Value};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::{
    Creator, DirectServers, RunError, Runs,
    create::servers::UnopenedServer,
    frozen::{Frozen, FrozenAgent},
};

/// Number of random bytes in the id of a claim.
const CLAIM_BYTES: usize = 12;
/// The reason why a claimed run cannot be claimed.
const CLAIMED: &str = "another client has claimed it";

/// Pause between two checks for runs that were claimed or ended by other daemons.
const EVERY: Duration = Duration::from_secs(5);
/// Pause between two comparisons of this daemon's runs with all active runs in the store.
const ALL_EVERY: Duration = Duration::from_secs(60);
/// Largest difference between the clocks of two daemons at which the checks between two comparisons
/// find all ends.
const CLOCK_SKEW: Duration = Duration::from_secs(30);

/// The last comparison of this daemon's runs with all active runs in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compared {
    at: Instant,
    /// Number of changes of principals and workspaces before the comparison: the deletion of a
    /// workspace deletes its runs.
    changes: i64,
}

/// The claiming actor, for the audit and for the store.
pub(crate) struct Claimer {
    pub(crate) by: By,
    /// The holder of the claim, as it is stored.
    pub(crate) holder: String,
    /// The executor of the daemon, if an executor makes the claim.
    pub(crate) executor: Option<ExecutorName>,
    /// True if the claimer gets the values of its servers.
    pub(crate) is_direct: bool,
}

/// A claimed run.
#[derive(Debug)]
pub struct Claimed {
    /// The run as it is stored.
    pub row: RunRow,
    /// The run as the data plane sees it.
    pub run: Arc<RunView>,
    /// The token that opens the run; stored nowhere else.
    pub token: RunToken,
    /// The id of the claim, by which a later request extends the claim.
    pub claim: String,
    /// The time until which no other client can claim it.
    pub until: SystemTime,
    /// The data for carrying out the run.
    pub brief: Brief,
}

/// The part of a run that its claimer gets.
#[derive(Debug, Clone, Default)]
pub struct Brief {
    /// The prompt for the model.
    pub prompt: Option<String>,
    /// The agent's parameters, which its model sees.
    pub params: Map<String, Value>,
    /// The text of the agent that its model sees.
    pub system_prompt: Option<String>,
    /// The servers with all values, if the claim asked for them.
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

/// The result of a claim.
#[derive(Debug)]
pub enum Claiming {
    /// The caller has claimed the run.
    New(Box<Claimed>),
    /// The caller's claim is extended.
    Held {
        /// The claim.
        claim: String,
        /// The time until which no other client can claim it.
        until: SystemTime,
    },
}

impl Runs {
    /// Claims a waiting run for the caller, for the time that a document names. A run has one claim
    /// at a time, also where several daemons use one store. A document that names a claim extends
    /// that claim by this time, counted from now.
    ///
    /// # Errors
    /// When the document is faulty, there is no such run, the run cannot be claimed, the named
    /// claim is over or is not the run's, the caller may not have the run, or the store fails.
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

    /// Checks for runs that other daemons claimed or ended, for as long as the future is polled.
    pub(crate) async fn watch_claims(&self) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut compared = None;
        loop {
            ticks.tick().await;
            let looked = async {
                compared = self.look_at_ends(compared.take()).await?;
                self.look_at_claims().await
            };
            if let Err(error) = looked.await {
                tracing::warn!("changes of runs cannot be read from the store: {error}");
            }
        }
    }

    /// Closes tokens of this daemon that a claim at another daemon has replaced. A run whose claim
    /// is over and that no client uses leaves the memory until a client uses or claims it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn look_at_claims(&self) -> Result<(), RunError> {
        let runs = self.store()?.runs();
        let here: Vec<_> = self.shared.claimed.tokens().clone().into_iter().collect();
        for (id, token) in here {
            let _turn = self.restart_turn(id).await;
            let row = runs.find(id).await.map_err(of)?;
            let row = row.filter(|row| row.ended.is_none() && row.token == token);
            let is_known = self.shared.claimed.tokens().get(&id) == Some(&token);
            if !is_known || row.is_some_and(|row| self.is_held(&row)) {
                continue;
            }
            self.shared.claimed.tokens().remove(&id);
            self.release(id).await;
        }
        Ok(())
    }

    /// Ends runs of this daemon that ended at other daemons, or were deleted with their workspace.
    ///
    /// `last` is the result of the last check, and `None` after a failed one. Without runs in this
    /// daemon there is nothing to check, and the result is `None`. A check reads the runs that
    /// ended lately. It compares all runs of this daemon with all active ones if there is no
    /// `last`, when a workspace has changed, and once a minute. So every end is found at last,
    /// however long the store was unavailable, and however wrong a clock is.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn look_at_ends(&self, last: Option<Compared>) -> Result<Option<Compared>, RunError> {
        let here = self.shared.stored.all();
        if here.is_empty() {
            return Ok(None);
        }
        let (store, at) = (self.store()?, Instant::now());
        let changes = store.principals().changes().await.map_err(of)?;
        let last = last.filter(|last| last.changes == changes && last.at.elapsed() < ALL_EVERY);
        if let Some(last) = last {
            let since = SystemTime::now() - EVERY - CLOCK_SKEW;
            if let Some(ended) = store.runs().ended_since(since).await.map_err(of)? {
                for id in here.into_iter().filter(|id| ended.contains(id)) {
                    self.release(id).await;
                }
                return Ok(Some(last));
            }
        }
        let living = store.runs().living().await.map_err(of)?;
        for id in here.into_iter().filter(|id| !living.contains(id)) {
            self.release(id).await;
        }
        Ok(Some(Compared { at, changes }))
    }

    /// True if a client has a valid claim of a run, or uses the run without one.
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
        // The task completes also if the caller disconnects: no client would have the token of a
        // run whose claim stopped halfway.
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
            false => Err(RunError::NotPending(row.id, "this claim has ended, or does not exist")),
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
        let _turn = self.restart_turn(id).await;
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
        // The token of an earlier claim must open nothing from here on.
        self.release(id).await;
        let begun = self.restarted_for_claim(&workspace, id, is_direct.then_some(by)).await;
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

    async fn restarted_for_claim(
        &self,
        workspace: &WorkspaceId,
        id: RunId,
        direct_to: Option<By>,
    ) -> Result<(RunRow, Arc<RunView>, Brief), RunError> {
        let row = self.stored(workspace, id).await?.ok_or(RunError::HasEnded(id))?;
        let run = self.restart_if_active(&row).await?.ok_or(RunError::HasEnded(id))?;
        let frozen = self.frozen(&row).await?;
        let direct = match direct_to {
            Some(by) => Some(self.direct_servers(&row, &frozen, by).await?),
            None => None,
        };
        Ok((row, run, Brief::of(&frozen, direct)))
    }

    /// The servers of a run with all values, for the run's claimer. The audit records that the
    /// claimer got them.
    async fn direct_servers(
        &self,
        row: &RunRow,
        frozen: &Frozen,
        by: By,
    ) -> Result<DirectServers, RunError> {
        let resolved = self.resolved_again(row, frozen, true).await?;
        let Some(direct) = resolved.direct else {
            let message = "the run has only servers of its own, no servers of an agent".to_owned();
            return Err(RunError::Denied { field: "direct", message });
        };
        if !resolved.failed.is_empty() {
            return Err(RunError::Entries(
                resolved.failed.iter().map(UnopenedServer::fault).collect(),
            ));
        }
        let event = AuditEvent::new(kind::RUN_DIRECT, by).in_workspace(&row.workspace);
        let event = event.on("agent", row.agent.clone()).of_run(row.id.to_text());
        let event = event.of_session(row.session.to_text()).with("servers", direct.aliases());
        self.control().note(event).await?.done().await;
        Ok(direct)
    }

    /// Gives up the claim of a run that does not begin. Otherwise no client could claim the run
    /// until the claim is over, since no client has the id of that claim.
    pub(crate) async fn unclaim(&self, workspace: &WorkspaceId, id: RunId, claim: &str) {
        self.shared.claimed.tokens().remove(&id);
        self.release(id).await;
        let given =
            async { self.store()?.runs().give_back(workspace, id, claim).await.map_err(of) };
        if let Err(error) = given.await {
            tracing::warn!(
                run.id = %id,
                "a failed claim could not be given back, and lasts until its end: {error}"
            );
        }
    }
}

/// The actor that claims a run. The run's token has the grants of the driver and of the user whose
/// turn it is. So no other human may claim the run, unless they are an operator; services carry out
/// runs of any driver (X-E81).
fn claimer<'b>(row: &RunRow, by: &'b Creator) -> Result<&'b By, RunError> {
    let denied = |message: &str| RunError::Denied { field: "user", message: message.to_owned() };
    let is_for = |human: Option<&PrincipalId>| {
        let mut whose = row.driver.iter().chain(row.acts_for());
        whose.all(|one| Some(one) == human)
    };
    match by {
        Creator::Operator(by, _) | Creator::Member(by, None) => Ok(by),
        Creator::Member(by, Some(human)) if is_for(Some(human)) => Ok(by),
        Creator::Member(_, Some(_)) => Err(denied(
            "another person drives this run; only that person, a service or an operator can claim \
             it",
        )),
        Creator::Unproved { by, .. } if is_for(None) => Ok(by),
        Creator::Unproved { .. } => Err(denied(
            "a human drives this run: only a human who signed in with a passkey or at a provider, \
             or a service by a token of such a human, can claim it (`grants.require_proof`)",
        )),
        Creator::Run(_) | Creator::Spawner(..) | Creator::Platform(..) => {
            Err(denied("a run cannot claim runs"))
        }
    }
}

fn of(error: StatementError) -> RunError {
    ControlError::Store(error).into()
}

/// Returns the reason why a run cannot be claimed, as an error.
fn is_free(row: &RunRow) -> Result<(), RunError> {
    if row.ended.is_some() {
        return Err(RunError::HasEnded(row.id));
    }
    match &row.waiting {
        None => Err(RunError::NotPending(row.id, "its creator carries it out")),
        Some(Waiting { executor: Some(_), .. }) => {
            Err(RunError::NotPending(row.id, "an executor of a daemon carries it out"))
        }
        Some(waiting) if waiting.is_free(SystemTime::now()) => Ok(()),
        Some(_) => Err(RunError::NotPending(row.id, CLAIMED)),
    }
}
