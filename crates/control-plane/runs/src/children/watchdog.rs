//! Silent children (X-E89, X-E90): one task checks all children. It notifies the parent agent, and
//! ends a worker that is silent for too long.

use std::time::{Duration, SystemTime};

use narthex_control::{By, ControlError};
use narthex_gateway::RunView;
use narthex_model::{AgentType, ChildLimits, RunEnd, WorkspaceId};
use narthex_store::QuietChild;
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

use crate::{RunError, Runs, end::Ending};

/// Pause between two checks of the children.
const EVERY: Duration = Duration::from_secs(60);
/// Minutes of silence after which the parent agent is notified (X-D10).
const LADDER: [u64; 5] = [5, 10, 20, 40, 60];
/// The longest silence that a run may announce.
pub const QUIET_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Longest time until the acts of a child at any daemon are stored: two checks.
const STORED: Duration = Duration::from_secs(2 * 60);
/// Number of rows read at a time.
const BATCH: u32 = 500;

/// The last step of the ladder that a silence has reached, in minutes.
fn rung(silent: Duration) -> Option<u64> {
    LADDER.into_iter().rev().find(|minutes| silent.as_secs() >= minutes * 60)
}

impl Runs {
    /// Notes that the session of a run will be silent for `lasts`; `None` removes the note. A new
    /// note replaces the earlier one. Returns the end of the announced silence.
    ///
    /// # Errors
    /// When the run belongs to no child session.
    pub async fn expect_quiet(
        &self,
        run: &RunView,
        lasts: Option<Duration>,
    ) -> Result<Option<SystemTime>, RunError> {
        let own = self.session_of(run).ok_or(RunError::NoCaller)?;
        let (session, _) = self.session(&run.workspace, &own.to_text()).await?;
        session.parent.ok_or(RunError::NoCaller)?;
        let until = lasts.map(|lasts| SystemTime::now() + lasts.min(QUIET_MAX));
        let noted = self.store()?.sessions().expects_quiet(&run.workspace, own, until).await;
        noted.map_err(ControlError::Store)?;
        Ok(until)
    }

    /// Checks all children again and again, for as long as the future is polled.
    pub(crate) async fn watch_children(&self) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.look_at_children(SystemTime::now()).await {
                tracing::warn!("child sessions cannot be checked: {error}");
            }
            if let Err(error) = Box::pin(self.end_done(SystemTime::now())).await {
                tracing::warn!("finished sessions cannot be read: {error}");
            }
        }
    }

    /// Checks once, as of the time `now`, all children, and all orchestrators that have a
    /// heartbeat. A failure for one session or workspace is logged, and does not stop the other
    /// checks.
    ///
    /// # Errors
    /// When the store cannot list the workspaces.
    pub async fn look_at_children(&self, now: SystemTime) -> Result<(), RunError> {
        let workspaces = self.store()?.workspaces().all().await.map_err(ControlError::Store)?;
        for workspace in workspaces {
            let id = workspace.id;
            let looks = [
                ("silent children", self.look_at_children_of(&id, now).await),
                ("stopped children", self.check_abandoned(&id, now).await),
                ("sessions below cancelled ones", self.cancel_left(&id).await),
                ("heartbeats", self.beat(&id, now).await),
            ];
            for (whom, looked) in looks {
                if let Err(error) = looked {
                    tracing::warn!(workspace = %id, "{whom} cannot be checked: {error}");
                }
            }
        }
        Ok(())
    }

    async fn look_at_children_of(
        &self,
        workspace: &WorkspaceId,
        now: SystemTime,
    ) -> Result<(), RunError> {
        let limits = self.control().child_limits(workspace).await?;
        // The acts are stored first: a session may have several runs, and the checks read the
        // stored acts.
        self.note_acts(workspace, now).await?;
        for child in self.quiet_children(workspace, now).await? {
            if let Err(error) = self.look_at_child(workspace, &child, &limits, now).await {
                let session = child.session;
                tracing::warn!(session.id = %session, "a child session cannot be checked: {error}");
            }
        }
        Ok(())
    }

    async fn quiet_children(
        &self,
        workspace: &WorkspaceId,
        now: SystemTime,
    ) -> Result<Vec<QuietChild>, RunError> {
        let mut children: Vec<QuietChild> = Vec::new();
        loop {
            let after = children.last().map(|last| last.run.to_text()).unwrap_or_default();
            let page = self.store()?.sessions().children(workspace, &after, (now, BATCH)).await;
            let page = page.map_err(ControlError::Store)?;
            if page.is_empty() {
                return Ok(children);
            }
            children.extend(page);
        }
    }

    /// Stores the acts of runs that this process has seen. Other daemons on the store learn of the
    /// acts only from there, as does this daemon after a restart.
    async fn note_acts(&self, workspace: &WorkspaceId, now: SystemTime) -> Result<(), RunError> {
        let children = self.quiet_children(workspace, now).await?;
        let act = |child: &QuietChild| {
            let at = self.shared.gateway.runs().get(child.run)?.last_act(now)?;
            (at > child.own_at).then_some((child.session, at))
        };
        let acts = children.iter().filter_map(act);
        Ok(self.store()?.sessions().acted(workspace, acts).await.map_err(ControlError::Store)?)
    }

    async fn look_at_child(
        &self,
        workspace: &WorkspaceId,
        child: &QuietChild,
        limits: &ChildLimits,
        now: SystemTime,
    ) -> Result<(), RunError> {
        let since = child.since();
        // No child could act while there was no daemon.
        let watched = now.duration_since(since.max(self.shared.began)).unwrap_or_default();
        if !child.is_waiting(now)
            && watched >= limits.silence() + STORED
            && self.type_of((workspace, &child.agent), child.agent_type).await? == AgentType::Worker
        {
            tracing::info!(session.id = %child.session, "a silent child session was ended");
            let (by, how, first) = (By::system(), RunEnd::Expired, None);
            let ending = Ending { by, how, first };
            self.end_session(workspace, child.session, ending).await?;
            return Ok(());
        }
        self.check_up(workspace, child, (now, watched)).await?;
        let Some(minutes) = rung(watched) else { return Ok(()) };
        let payload = json!({
            "kind": "watchdog",
            "child_session_id": child.session.to_text(),
            "child_agent_id": child.agent,
            "silent_minutes": minutes,
        });
        let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
        // The id makes equal wakes of several daemons count as one, also those of a restarted
        // daemon.
        let id = format!("watchdog-{}-{since}-{minutes}", child.session);
        self.wake(workspace, child.above, payload, (&id, None)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X-D10, X-E88: 5, 10, 20, 40 and 60 minutes.
    #[test]
    fn x_d10_stages_of_the_watchdog_follow_at_5_10_20_40_and_60_minutes() {
        let at = |minutes: u64| rung(Duration::from_secs(minutes * 60));
        assert_eq!(rung(Duration::from_secs(299)), None);
        let rungs = [5, 9, 10, 19, 20, 39, 40, 59, 60, 600].map(at);
        assert_eq!(rungs, [5, 5, 10, 10, 20, 20, 40, 40, 60, 60].map(Some));
    }
}
