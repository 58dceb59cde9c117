//! Runs that wait until a platform carries them out: one claims each, for a while, and gets a token
//! of its own. Whoever held it before is shut out.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use narthex_audit::{AuditEvent, kind};
use narthex_control::{By, ControlError};
use narthex_gateway::{RunToken, RunView};
use narthex_model::{ExecutorName, RunId, Timestamp, WorkspaceId, json::shortened};
use narthex_resolve::ClaimRequest;
use narthex_store::{Claim, RunRow, Waiting};

use crate::{Creator, RunError, Runs};

/// How many random bytes the id of a claim has.
const CLAIM_BYTES: usize = 12;
/// Why a run that waits is not to be had.
const CLAIMED: &str = "somebody else has claimed it";

/// Who claims a run, for the record and for the store.
pub(crate) struct Claimer {
    pub(crate) by: By,
    /// As whom the claim is kept.
    pub(crate) holder: String,
    /// As what of the daemon.
    pub(crate) executor: Option<ExecutorName>,
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
    /// What the model is told.
    pub prompt: Option<String>,
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
        let ClaimRequest { claim, lasts } = asked;
        match claim {
            Some(claim) => self.hold(row, claim, lasts).await,
            None => Ok(Claiming::New(Box::new(self.take(row, lasts, by).await?))),
        }
    }

    async fn take(&self, row: RunRow, lasts: Duration, by: &By) -> Result<Claimed, RunError> {
        is_free(&row)?;
        let (runs, by) = (self.clone(), by.clone());
        // To its end: a run that is claimed and whose token nobody has would wait for nothing.
        let claimer = Claimer { holder: by.id.to_string(), by, executor: None };
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
        let Claimer { by, holder, executor } = claimer;
        let RunRow { id, workspace, expires_at, .. } = row;
        let _turn = self.kept_turn(id).await;
        let until = (SystemTime::now() + lasts).min(expires_at);
        let event = AuditEvent::new(kind::RUN_CLAIMED, by).in_workspace(&workspace);
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
        let taken = Claim { id: &claim, by: &holder, executor, until, token: &hash };
        let taken = self.store()?.runs().claim(&workspace, id, taken).await;
        if !taken.map_err(ControlError::Store)? {
            return Err(RunError::NotPending(id, CLAIMED));
        }
        // What the token of an earlier claim opens ends here.
        self.end_view(id).await;
        let row = self.stored(&workspace, id).await?.ok_or(RunError::HasEnded(id))?;
        let run = self.begin_again_if_living(&row).await?.ok_or(RunError::HasEnded(id))?;
        let prompt = self.frozen(&row).await?.prompt;
        noted.done().await;
        Ok(Claimed { row, run, token, claim, until, prompt })
    }
}

/// Who claims a run. Its token is worth what was granted to whoever drives it, so no other human
/// gets it, unless they are an operator; services carry out what anybody drives (X-E81).
fn claimer<'b>(row: &RunRow, by: &'b Creator) -> Result<&'b By, RunError> {
    let denied = |message: &str| RunError::Denied { field: "user", message: message.to_owned() };
    match by {
        Creator::Operator(by, _) | Creator::Member(by, None) => Ok(by),
        Creator::Member(by, Some(human)) if row.driver.as_ref().is_none_or(|one| one == human) => {
            Ok(by)
        }
        Creator::Member(_, Some(_)) => {
            Err(denied("another person drives this run; they, a service or an operator claims it"))
        }
        Creator::Unproved { by, .. } if row.driver.is_none() => Ok(by),
        Creator::Unproved { .. } => Err(denied(
            "a human drives this run, and only who has proved to be one, or a service, claims it \
             (`grants.require_proof`)",
        )),
        Creator::Run(_) | Creator::Spawner(..) => Err(denied("a run claims no others")),
    }
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
