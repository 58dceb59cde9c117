//! Claims of runs by the executors and platforms that carry them out.

use std::time::SystemTime;

use narthex_model::{ExecutorName, RunId, WorkspaceId};

use super::RunRows;
use crate::{
    StatementError,
    database::Step,
    objects::{children, ms, now_ms},
    statement::{Statement, Value},
};

const CLAIM: Statement = Statement {
    name: "runs.claim",
    sql: "UPDATE runs SET claim = $3, claimed_by = $4, claimed_until = $5, token = $6, \
          attempts = attempts + 1 \
          WHERE workspace = $1 AND id = $2 AND ended_at = 0 AND claimable = 1 \
          AND executor = $8 AND claimed_until <= $7 AND expires_at > $7 AND turn = $9",
};
const RELEASE: Statement = Statement {
    name: "runs.release",
    sql: "UPDATE runs SET claimed_until = $2 WHERE claimed_by = $1 AND executor <> '' \
          AND ended_at = 0 AND claimed_until > $2",
};
/// A claim of which nothing has come is no attempt.
const GIVE_BACK: Statement = Statement {
    name: "runs.give_back",
    sql: "UPDATE runs SET claim = '', claimed_until = $4, attempts = attempts - 1 \
          WHERE workspace = $1 AND id = $2 AND claim = $3 AND claim <> '' AND ended_at = 0",
};
const HOLD: Statement = Statement {
    name: "runs.hold",
    sql: "UPDATE runs SET claimed_until = $4 WHERE workspace = $1 AND id = $2 AND ended_at = 0 \
          AND claim = $3 AND claim <> '' AND claimed_until > $5",
};

/// A claim by a platform, and not by an executor of a daemon.
const CLAIMED_SINCE: Statement = Statement {
    name: "runs.claimed_since",
    sql: "SELECT id FROM runs WHERE workspace = $1 AND executor = '' AND claimed_by <> '' \
          AND claimed_until > $2 LIMIT 1",
};

/// The requirements for the claimant of a run.
#[derive(Debug, Clone, Copy)]
pub struct Awaited<'a> {
    /// The model; empty if the claimant chooses.
    pub model: &'a str,
    /// The runtime; empty if the claimant chooses.
    pub runtime: &'a str,
    /// The daemon's executor that must claim the run; `None` for a platform.
    pub executor: Option<&'a ExecutorName>,
}

/// The requirements and claims of a stored run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The model; empty if the claimant chooses.
    pub model: String,
    /// The runtime; empty if the claimant chooses.
    pub runtime: String,
    /// The daemon's executor that must claim the run; `None` for a platform.
    pub executor: Option<ExecutorName>,
    /// Number of claims.
    pub attempts: u32,
    /// The last claimant, and the end of its claim; `None` before the first claim.
    pub claim: Option<(String, SystemTime)>,
}

/// A claim of a run.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The id of the claim.
    pub id: &'a str,
    /// The claimant.
    pub by: &'a str,
    /// The daemon's executor that claims the run; `None` for a platform.
    pub executor: Option<&'a ExecutorName>,
    /// The end of the claim. No other claim is possible before.
    pub until: SystemTime,
    /// SHA-256 of the run's token from now on, in hexadecimal.
    pub token: &'a str,
    /// The number of the turn in which the claim was decided. In another turn the claim fails.
    pub turn: u64,
}

impl Waiting {
    /// True if the run has no claim, or its last claim is over.
    #[must_use]
    pub fn is_free(&self, now: SystemTime) -> bool {
        self.claim.as_ref().is_none_or(|(_, until)| *until <= now)
    }
}

impl RunRows<'_> {
    /// Gives a run to its claimant. Returns `false` and changes nothing if the run does not wait
    /// for this claim.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn claim(
        &self,
        workspace: &WorkspaceId,
        id: RunId,
        claim: Claim<'_>,
    ) -> Result<bool, StatementError> {
        let id = id.to_text();
        let values = vec![
            Value::Text(workspace.as_str()),
            Value::Text(&id),
            Value::Text(claim.id),
            Value::Text(claim.by),
            Value::Integer(ms(claim.until)),
            Value::Text(claim.token),
            Value::Integer(now_ms()),
            Value::Text(claim.executor.map_or("", ExecutorName::as_str)),
            Value::Integer(i64::try_from(claim.turn).unwrap_or(i64::MAX)),
        ];
        // The claim is also an act of its session.
        let acted = children::claimed(values[0], values[1], values[6]);
        self.database.write_steps(&[Step::must_change(CLAIM, values), acted]).await
    }

    /// True if a platform has held a claim of a run of a workspace since then.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn was_claimed_since(
        &self,
        workspace: &WorkspaceId,
        since: SystemTime,
    ) -> Result<bool, StatementError> {
        let values = [Value::Text(workspace.as_str()), Value::Integer(ms(since))];
        Ok(!self.database.read(CLAIMED_SINCE, &values).await?.is_empty())
    }

    /// Releases all runs that a claimant holds for its executors.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn release(&self, by: &str) -> Result<(), StatementError> {
        let values = vec![Value::Text(by), Value::Integer(now_ms())];
        self.database.write_steps(&[Step::new(RELEASE, values)]).await.map(drop)
    }

    /// Releases a claimed run that has not started: it waits as before, and the claim does not
    /// count. Returns `false` and changes nothing if the run has another claim by now.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn give_back(
        &self,
        workspace: &WorkspaceId,
        id: RunId,
        claim: &str,
    ) -> Result<bool, StatementError> {
        let id = id.to_text();
        let values = vec![
            Value::Text(workspace.as_str()),
            Value::Text(&id),
            Value::Text(claim),
            Value::Integer(now_ms()),
        ];
        self.database.write_steps(&[Step::must_change(GIVE_BACK, values)]).await
    }

    /// Extends a claim. Returns `false` and changes nothing if the claim is over, or the run has
    /// another one.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn hold(
        &self,
        workspace: &WorkspaceId,
        id: RunId,
        claim: &str,
        until: SystemTime,
    ) -> Result<bool, StatementError> {
        let id = id.to_text();
        let values = vec![
            Value::Text(workspace.as_str()),
            Value::Text(&id),
            Value::Text(claim),
            Value::Integer(ms(until)),
            Value::Integer(now_ms()),
        ];
        self.database.write_steps(&[Step::must_change(HOLD, values)]).await
    }
}
