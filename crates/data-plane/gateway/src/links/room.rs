//! Makes room for one more process of a server: ends links of sessions whose clients are absent.

use std::{sync::Arc, time::Duration};

use narthex_model::{Alias, CallErrorKind};
use narthex_registry::{Registry, ServerKey};
use narthex_upstream::Link;

use super::{bridge::Bridge, stop_all};
use crate::{
    RunTable, RunView, Session, refusal::Refusal, runs::run::RunRow, session::table::SessionTable,
};

/// The parts that decide whether one more process of a server has room.
pub(super) struct Room<'a> {
    pub(super) registry: &'a Registry,
    pub(super) sessions: &'a SessionTable,
    pub(super) runs: &'a RunTable,
}

impl Room<'_> {
    /// Makes sure that a session's run may have one more process of a server. If the run has the
    /// most processes, ends an own link that no client of the run uses now.
    ///
    /// # Errors
    /// When the run has the most processes, and all of their links are in use.
    pub(super) async fn of_run(&self, session: &Session, row: &RunRow) -> Result<(), Refusal> {
        let most = self.registry.processes_of_run();
        let server = session.run.key(row.alias());
        let sessions = self.sessions.of(session.run.id);
        let open = sessions.iter().filter(|one| one.has_own_process(row.alias()));
        if open.count() < most || reclaim(&sessions, &server).await {
            return Ok(());
        }
        let text = format!(
            "this run has {most} processes of server `{}`, which is the limit; end a session and \
             try again",
            row.name
        );
        Err(Refusal::call(CallErrorKind::LimitExceeded, text))
    }

    /// Ends the own link, of any run's session, to a server that has been idle for longest. `false`
    /// if all such links are in use.
    pub(super) async fn of_all(&self, server: &ServerKey) -> bool {
        reclaim(&self.sessions.all(), server).await
            || Box::pin(self.reclaim_any_bridge(server)).await
    }

    /// Makes room for one more link of a run: ends an unused link if the run has the most links.
    pub(super) async fn of_bridge(&self, run: &RunView, server: &ServerKey) -> Result<(), Refusal> {
        let most = self.registry.processes_of_run();
        if run.bridges.of(server).len() < most || reclaim_bridge(run, server).await {
            return Ok(());
        }
        let text = format!(
            "this run has {most} connections to server `{}` for clients that answer questions, \
             which is the limit; try again later",
            server.alias
        );
        Err(Refusal::call(CallErrorKind::LimitExceeded, text))
    }

    /// As [`reclaim_bridge`], for a link of any run.
    async fn reclaim_any_bridge(&self, server: &ServerKey) -> bool {
        for run in self.runs.all() {
            if reclaim_bridge(&run, server).await {
                return true;
            }
        }
        false
    }
}

/// Ends the own link to a server that has been idle for longest. A client that is present or waits
/// for an answer keeps its link. A client that returns gets another link with its next call.
async fn reclaim(sessions: &[Arc<Session>], server: &ServerKey) -> bool {
    let idle = |session: &Arc<Session>| {
        let is_its = session.run.key(&server.alias) == *server;
        let link = session.reclaimable(&server.alias).filter(|_| is_its)?;
        Some((link.idle()?.min(session.last_used().elapsed()), link))
    };
    let mut idle: Vec<(Duration, Arc<Link>)> = sessions.iter().filter_map(idle).collect();
    idle.sort_by_key(|(since, _)| std::cmp::Reverse(*since));
    for (since, link) in idle {
        if link.retire_unused() {
            tracing::info!(
                server.name = link.name(),
                idle_s = since.as_secs(),
                "ended the process of a session without a connected client, to start one for \
                 another session"
            );
            stop_all(vec![link]).await;
            return true;
        }
    }
    false
}

/// Ends the link of a run to a server that has been idle for longest; `false` if all links are in
/// use.
async fn reclaim_bridge(run: &RunView, server: &ServerKey) -> bool {
    let idle = |bridge: Arc<Bridge>| Some((bridge.link().idle()?, bridge));
    let mut idle: Vec<_> = run.bridges.of(server).into_iter().filter_map(idle).collect();
    idle.sort_by_key(|(since, _)| std::cmp::Reverse(*since));
    let Some((_, bridge)) = idle.into_iter().find(|(_, one)| one.link().retire_unused()) else {
        return false;
    };
    stop_all(vec![bridge.link().clone()]).await;
    true
}

impl Session {
    /// True if the session has a live link of its own to a server.
    fn has_own_process(&self, alias: &Alias) -> bool {
        self.own_links().iter().any(|link| link.alias() == alias && !link.closed().is_cancelled())
    }

    /// The session's own link to a server, if the client is absent and neither side waits for the
    /// other.
    fn reclaimable(&self, alias: &Alias) -> Option<Arc<Link>> {
        if self.is_attended() || self.has_open_call() || self.is_asked_by(alias) {
            return None;
        }
        let link = self.own_links().into_iter().find(|link| link.alias() == alias)?;
        (!link.closed().is_cancelled()).then_some(link)
    }
}
