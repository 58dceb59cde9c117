//! Looks for waiting runs, and carries each of them out to its end.

use std::{sync::Arc, time::Duration};

use narthex_control::ControlError;
use narthex_model::ExecutorName;
use narthex_runs::{Execution, Outcome, RunError, RunRow};
use serde_json::{Value, json};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};

use crate::{
    CommandExecutor, LEASE, RENEWED, RETRY_AFTER, Work,
    failures::{TRIES_MAX, pause},
    program::Ended,
};

/// Time between two looks without a notification: runs of other daemons on the store may wait.
const EVERY: Duration = Duration::from_secs(5);

impl Work {
    /// Carries out runs of an executor, until the control plane closes.
    pub(crate) async fn look(self: Arc<Self>, name: ExecutorName, of: Arc<CommandExecutor>) {
        let places = Arc::new(Semaphore::new(of.at_once));
        let (mut awaited, closing) = (self.runs.awaited(), self.control.closing());
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            awaited.borrow_and_update();
            if let Err(error) = self.begin_some(&name, &of, &places).await {
                tracing::warn!(executor = %name, "waiting runs cannot be read: {error}");
            }
            let next = self.failures().next(Instant::now());
            let next = async {
                match next {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = closing.cancelled() => return,
                changed = awaited.changed() => if changed.is_err() {
                    return;
                },
                _ = ticks.tick() => {}
                () = next => {}
            }
        }
    }

    async fn begin_some(
        self: &Arc<Self>,
        name: &ExecutorName,
        of: &Arc<CommandExecutor>,
        places: &Arc<Semaphore>,
    ) -> Result<(), RunError> {
        let free = places.available_permits();
        if free == 0 {
            return Ok(());
        }
        let limit = free + self.taken().len() + self.failures().len();
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let rows = self.runs.awaiting(name, &of.workspaces, limit).await?;
        for row in rows {
            if self.failures().is_paused(row.id, Instant::now()) {
                continue;
            }
            let Ok(place) = places.clone().try_acquire_owned() else { return Ok(()) };
            if self.taken().insert(row.id) {
                self.control.spawn(self.clone().see_through(row, of.clone(), place));
            }
        }
        Ok(())
    }

    async fn see_through(
        self: Arc<Self>,
        row: RunRow,
        of: Arc<CommandExecutor>,
        place: OwnedSemaphorePermit,
    ) {
        let id = row.id;
        match Box::pin(self.carry(row.clone(), &of)).await {
            Ok(()) => self.failures().forget(id),
            Err(error) => self.failed(&row, &error).await,
        }
        drop(place);
        self.taken().remove(&id);
        self.runs.call_executors();
    }

    /// Makes a run that was not started wait before it is tried again; after too many attempts it
    /// has failed.
    async fn failed(&self, row: &RunRow, error: &RunError) {
        let id = row.id;
        // Another daemon has claimed the run before.
        if matches!(error, RunError::NotPending(..)) {
            return;
        }
        let times = self.failures().note(id, Instant::now(), jitter());
        tracing::warn!(run.id = %id, times, "a run could not be executed: {error}");
        // A store that cannot be reached now is no fault of the run.
        let is_of_store = matches!(error, RunError::Control(ControlError::Store(_)));
        if times < TRIES_MAX || is_of_store {
            return;
        }
        let reason = format!("it could not be started: {error}");
        let told = json!({ "reason": reason, "attempts": attempts(row) });
        match self.runs.executed(row, Outcome::Failed(told)).await {
            Ok(()) => self.failures().forget(id),
            Err(error) => {
                tracing::warn!(run.id = %id, "the end of a run could not be stored: {error}");
            }
        }
    }

    /// Carries a run out, once.
    async fn carry(&self, row: RunRow, of: &CommandExecutor) -> Result<(), RunError> {
        let attempts = attempts(&row);
        let most = self.runs.attempts_max(&row).await?;
        if attempts >= most {
            let reason = "its program or daemon ended without a result";
            let failed = json!({ "reason": reason, "attempts": attempts });
            return self.runs.executed(&row, Outcome::Failed(failed)).await;
        }
        let execution = self.runs.execute(row, &self.holder, LEASE).await?;
        let attempt = attempts + 1;
        tracing::info!(run.id = %execution.row.id, attempt, "a run is carried out");
        let row = &execution.row;
        let failed = match self.carried(&execution, of, attempt).await {
            Ended::Well => {
                self.conclude(&execution, Outcome::Completed).await;
                return Ok(());
            }
            // Another executor has the run, or it has ended.
            Ended::Taken => return Ok(()),
            Ended::Closing if attempt < most => {
                return self.give_back(&execution).await;
            }
            Ended::Closing => json!({ "reason": "its daemon was stopped" }),
            Ended::Badly(told) if attempt < most => {
                tracing::warn!(run.id = %row.id, attempt, "a run will be started again: {told}");
                return self.rest(&execution, attempt).await;
            }
            Ended::Badly(told) | Ended::Missing(told) => told,
        };
        self.conclude(&execution, Outcome::Failed(with_attempts(failed, attempt))).await;
        Ok(())
    }

    /// Ends the session of a run whose program has ended. Where that cannot be stored it is tried
    /// again, with the claim held meanwhile: only this daemon knows the outcome. When the daemon
    /// stops it is tried for the last time.
    async fn conclude(&self, execution: &Execution, outcome: Outcome) {
        let (row, closing) = (&execution.row, self.control.closing());
        let mut times = 0_u32;
        loop {
            let is_last = closing.is_cancelled();
            let ended = self.runs.executed(row, outcome.clone()).await;
            let Err(error) = ended else { return };
            if is_last {
                tracing::error!(
                    run.id = %row.id,
                    "the outcome of a run is lost, because the daemon is stopping and cannot store \
                     it: {error}"
                );
                return;
            }
            times = times.saturating_add(1);
            tracing::warn!(
                run.id = %row.id, times, "the end of a run could not be stored yet: {error}"
            );
            tokio::select! {
                () = tokio::time::sleep(pause(times, jitter()).min(RENEWED)) => {}
                () = closing.cancelled() => {}
            }
            if !self.is_still_held(execution).await {
                tracing::warn!(run.id = %row.id, "another daemon or client executes the run now");
                return;
            }
        }
    }

    /// Extends the claim of a run. Returns `false` if another claim has followed; a claim that has
    /// run out but has no successor counts as held.
    async fn is_still_held(&self, execution: &Execution) -> bool {
        let row = &execution.row;
        match self.runs.keep_on(&row.workspace, row.id, &execution.claim, LEASE).await {
            Ok(true) => return true,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(run.id = %row.id, "a claim could not be renewed: {error}");
                return true;
            }
        }
        match self.runs.get(&row.workspace, &row.id.to_text()).await {
            Ok(now) => now.row.is_none_or(|now| attempts(&now) == attempts(row)),
            Err(error) => {
                tracing::warn!(run.id = %row.id, "a run could not be read: {error}");
                true
            }
        }
    }

    /// Waits before a run is started again.
    async fn rest(&self, execution: &Execution, attempt: u32) -> Result<(), RunError> {
        let pause = RETRY_AFTER * 2_u32.saturating_pow(attempt - 1);
        let closing = self.control.closing();
        tokio::select! {
            () = tokio::time::sleep(pause.min(LEASE / 2)) => {}
            () = execution.run.ended() => return Ok(()),
            () = closing.cancelled() => {}
        }
        self.give_back(execution).await
    }

    /// Makes the run wait again, for any executor.
    async fn give_back(&self, execution: &Execution) -> Result<(), RunError> {
        let row = &execution.row;
        let now = Duration::ZERO;
        self.runs.keep_on(&row.workspace, row.id, &execution.claim, now).await.map(drop)
    }
}

/// Number of claims of a run so far.
fn attempts(row: &RunRow) -> u32 {
    row.waiting.as_ref().map_or(0, |waiting| waiting.attempts)
}

/// A random byte, so that daemons that fail at the same moment try again at different ones. Without
/// randomness it is always the same.
fn jitter() -> u8 {
    let mut byte = [u8::MAX / 2];
    match getrandom::fill(&mut byte) {
        Ok(()) => {}
        Err(error) => tracing::debug!(%error, "a pause is not varied"),
    }
    byte[0]
}

fn with_attempts(mut told: Value, attempts: u32) -> Value {
    told["attempts"] = json!(attempts);
    told
}
