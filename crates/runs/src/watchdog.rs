//! Children of which nothing is heard: the agent above is told, and a worker that says nothing for
//! too long ends (X-E89, X-E90). One task looks at all of them.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use narthex_control::{By, ControlError};
use narthex_gateway::RunView;
use narthex_model::{AgentType, ChildLimits, RunEnd, SessionId, WorkspaceId};
use narthex_store::QuietChild;
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

use crate::{RunError, Runs, seen::Ending};

/// How often it looks.
const EVERY: Duration = Duration::from_secs(60);
/// After how many minutes of silence the agent above is told (X-D10).
const LADDER: [u64; 5] = [5, 10, 20, 40, 60];
/// The longest time that may be expected to be quiet.
pub const QUIET_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How many rows are read at a time.
const BATCH: u32 = 500;

pub(crate) type Key = (WorkspaceId, SessionId);

/// What is known of the quiet, in this process alone (X-E91).
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    /// Until when sessions expect to say nothing.
    hints: Mutex<HashMap<Key, SystemTime>>,
    /// When runs of sessions were seen to be used.
    used: Mutex<HashMap<Key, SystemTime>>,
}

impl Quiet {
    fn hints(&self) -> MutexGuard<'_, HashMap<Key, SystemTime>> {
        self.hints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn used(&self) -> MutexGuard<'_, HashMap<Key, SystemTime>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a session was used at a time.
    pub(crate) fn note_used(&self, key: Key, at: SystemTime) {
        let mut used = self.used();
        let last = used.entry(key).or_insert(at);
        *last = at.max(*last);
    }

    /// Since when nothing is heard, for all that is known.
    fn since(&self, key: &Key, own_at: SystemTime) -> SystemTime {
        let hint = self.hints().get(key).copied();
        let used = self.used().get(key).copied();
        [hint, used].into_iter().flatten().fold(own_at, SystemTime::max)
    }

    /// Forgets what is of no session that goes on.
    fn keep_only(&self, living: &HashSet<Key>) {
        self.hints().retain(|key, _| living.contains(key));
        self.used().retain(|key, _| living.contains(key));
    }
}

/// How far somebody who has been silent for so long is up the ladder, in minutes.
fn rung(silent: Duration) -> Option<u64> {
    LADDER.into_iter().rev().find(|minutes| silent.as_secs() >= minutes * 60)
}

impl Runs {
    /// Notes that nothing will be heard of the session of a run for so long; `None` takes that
    /// back. The newest note counts. Gives until when.
    ///
    /// # Errors
    /// When the run is of no session that another one began.
    pub async fn expect_quiet(
        &self,
        run: &RunView,
        lasts: Option<Duration>,
    ) -> Result<Option<SystemTime>, RunError> {
        let own = self.session_of(run).ok_or(RunError::NoCaller)?;
        let (session, _) = self.session(&run.workspace, &own.to_text()).await?;
        session.parent.ok_or(RunError::NoCaller)?;
        let key = (run.workspace.clone(), own);
        let until = lasts.map(|lasts| SystemTime::now() + lasts.min(QUIET_MAX));
        let mut hints = self.shared.quiet.hints();
        match until {
            Some(until) => _ = hints.insert(key, until),
            None => _ = hints.remove(&key),
        }
        Ok(until)
    }

    /// Looks at all children, for as long as it is polled.
    pub(crate) async fn watch_children(&self) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.look_at_children(SystemTime::now()).await {
                tracing::warn!("children cannot be looked after: {error}");
            }
            if let Err(error) = Box::pin(self.end_done(SystemTime::now())).await {
                tracing::warn!("sessions that are done cannot be looked for: {error}");
            }
        }
    }

    /// Looks at all children once, and at all orchestrators that have a heartbeat, as if it were
    /// this time. What fails for one of them, or for a workspace, is logged, and keeps it from no
    /// other.
    ///
    /// # Errors
    /// When the store cannot say which workspaces there are.
    pub async fn look_at_children(&self, now: SystemTime) -> Result<(), RunError> {
        let mut living = HashSet::new();
        let workspaces = self.store()?.workspaces().all().await.map_err(ControlError::Store)?;
        let mut is_whole = true;
        for workspace in workspaces {
            let id = workspace.id;
            if let Err(error) = self.look_at_children_of(&id, now, &mut living).await {
                is_whole = false;
                tracing::warn!(workspace = %id, "its children cannot be looked after: {error}");
            }
            if let Err(error) = self.beat(&id, now).await {
                tracing::warn!(workspace = %id, "its heartbeats cannot be looked for: {error}");
            }
        }
        // Of whom nothing could be read, nothing is forgotten.
        if is_whole {
            self.shared.quiet.keep_only(&living);
        }
        Ok(())
    }

    async fn look_at_children_of(
        &self,
        workspace: &WorkspaceId,
        now: SystemTime,
        living: &mut HashSet<Key>,
    ) -> Result<(), RunError> {
        let mut after = String::new();
        let limits = self.control().child_limits(workspace).await?;
        loop {
            let page = self.store()?.sessions().children(workspace, &after, (now, BATCH)).await;
            let page = page.map_err(ControlError::Store)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.run.to_text();
            let key = |child: &QuietChild| (workspace.clone(), child.session);
            // First: one session may have several runs.
            for child in &page {
                if let Some(at) = self.view_of(child).and_then(|view| view.last_act(now)) {
                    self.shared.quiet.note_used(key(child), at);
                }
            }
            living.extend(page.iter().map(key));
            for child in &page {
                if let Err(error) = self.look_at_child(workspace, child, &limits, now).await {
                    let session = child.session;
                    tracing::warn!(session.id = %session, "a child is not looked after: {error}");
                }
            }
        }
    }

    /// The run, if it goes on in this process.
    fn view_of(&self, child: &QuietChild) -> Option<Arc<RunView>> {
        self.shared.gateway.runs().get(child.run)
    }

    async fn look_at_child(
        &self,
        workspace: &WorkspaceId,
        child: &QuietChild,
        limits: &ChildLimits,
        now: SystemTime,
    ) -> Result<(), RunError> {
        let key = (workspace.clone(), child.session);
        let since = self.shared.quiet.since(&key, child.own_at);
        let silent = now.duration_since(since).unwrap_or_default();
        // Another daemon may have the run; whoever waits to be claimed says nothing.
        let is_here = self.view_of(child).is_some() && !child.is_waiting(now);
        let type_of = async |agent: &str| self.agent_type(workspace, agent).await;
        if is_here
            && silent >= limits.silence()
            && type_of(&child.agent).await? == AgentType::Worker
        {
            tracing::info!(session.id = %child.session, "a child that said nothing has ended");
            let (by, how, first) = (By::system(), RunEnd::Expired, None);
            let ending = Ending { by, how, first };
            self.end_session(workspace, child.session, ending).await?;
            return Ok(());
        }
        self.check_up(workspace, child, (since, now)).await?;
        let Some(minutes) = rung(silent) else { return Ok(()) };
        let payload = json!({
            "kind": "watchdog",
            "child_session_id": child.session.to_text(),
            "child_agent_id": child.agent,
            "silent_minutes": minutes,
        });
        let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
        // The same of several daemons, and of one after a restart, is one.
        let id = format!("watchdog-{}-{since}-{minutes}", child.session);
        self.wake(workspace, child.above, payload, (&id, None)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X-D10: 5, 10, 20, 40 and 60 minutes.
    #[test]
    fn x_d10_the_ladder_grows() {
        let at = |minutes: u64| rung(Duration::from_secs(minutes * 60));
        assert_eq!(rung(Duration::from_secs(299)), None);
        let rungs = [5, 9, 10, 19, 20, 39, 40, 59, 60, 600].map(at);
        assert_eq!(rungs, [5, 5, 10, 10, 20, 20, 40, 40, 60, 60].map(Some));
    }

    /// X-E91: what is expected, and what is seen to be used, counts like what was told; what is of
    /// no session that goes on is forgotten.
    #[test]
    fn x_e91_silence_begins_with_the_last_that_is_known() {
        let (quiet, at) = (Quiet::default(), |s| SystemTime::UNIX_EPOCH + Duration::from_secs(s));
        let key = (WorkspaceId::default(), SessionId::new([1; 6]));
        assert_eq!(quiet.since(&key, at(5)), at(5));
        quiet.used().insert(key.clone(), at(7));
        quiet.hints().insert(key.clone(), at(90));
        assert_eq!((quiet.since(&key, at(5)), quiet.since(&key, at(99))), (at(90), at(99)));
        quiet.hints().remove(&key);
        assert_eq!(quiet.since(&key, at(5)), at(7));
        quiet.keep_only(&HashSet::new());
        assert_eq!(quiet.since(&key, at(5)), at(5));
    }
}
