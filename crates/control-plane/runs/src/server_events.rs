//! States of a run's own servers, as events of its session: started, lost, connected again, and
//! released (R-E31 to R-E42).
//!
//! An event is sent after the change that it reports, and no call waits for one. A healthy server
//! has one event at each end and none in between.

use std::time::{Duration, SystemTime};

use narthex_events::{EventKind, EventPlace, EventsError};
use narthex_model::{Pid, RunId, ServerState};
use narthex_registry::{Found, MountFault, MountSet, WatchedMount};
use narthex_store::RunRow;
use narthex_upstream::Ended;
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::{RunFault, Runs, create::request::Requested, frozen::ResumedFrom};

/// Time for which a stopping daemon waits for the end of a server that was released before.
const END_LIMIT: Duration = Duration::from_secs(15);

/// The servers of a new run, before the run has them.
pub(crate) struct StartedServers {
    started: Vec<StartedServer>,
    failed: Vec<(String, Value)>,
}

struct StartedServer {
    watched: WatchedMount,
    /// True if another run had the server before.
    is_reused: bool,
    seen: Seen,
}

/// The state of a server that was reported last.
#[derive(Clone, Copy)]
struct Seen {
    losses: u64,
    reconnects: u64,
    is_down: bool,
}

/// The reason why a run gets its servers.
#[derive(Clone, Copy, Default)]
pub(crate) struct StartReason {
    /// The last run of its session, if the session resumes with it.
    former: Option<Pid>,
    /// True if the daemon has stopped since the servers belonged to the run, or to its session.
    is_recovery: bool,
}

impl StartedServers {
    pub(crate) fn of(set: &MountSet) -> Self {
        let started = set.mounts().iter().map(|mount| {
            let watched = mount.watched();
            let seen = Seen::of(&watched.found());
            StartedServer { watched, is_reused: mount.count() > 1, seen }
        });
        let failed = set.faults().iter().map(of_fault).collect();
        Self { started: started.collect(), failed }
    }

    /// Adds the servers that are not mounted at all, with the reasons.
    pub(crate) fn without(mut self, skipped: &[RunFault]) -> Self {
        self.failed.extend(skipped.iter().map(|fault| {
            let reason = json!({ "kind": fault.kind, "reason": fault.message });
            (fault.server.clone(), reason)
        }));
        self
    }

    /// Replaces the failures by these.
    pub(crate) fn failing(self, failed: &[MountFault]) -> Self {
        Self { failed: failed.iter().map(of_fault).collect(), ..self }
    }
}

fn of_fault(fault: &MountFault) -> (String, Value) {
    let MountFault { alias, error, .. } = fault;
    (alias.to_string(), json!({ "kind": error.kind.as_str(), "reason": error.operator_cause() }))
}

impl Seen {
    fn of(found: &Found) -> Self {
        let is_down = found.state == ServerState::Error;
        Self { losses: found.losses, reconnects: found.reconnects, is_down }
    }

    /// The events since the last call. Repeated changes in between are not lost.
    fn look(&mut self, server: &str, found: &Found) -> Vec<(EventKind, Value)> {
        let now = Self::of(found);
        let before = std::mem::replace(self, now);
        let mut told = Vec::new();
        if now.losses > before.losses {
            let reason = found.loss.as_deref().unwrap_or("the connection ended");
            let payload = json!({ "server": server, "kind": "transport_error", "reason": reason });
            told.push((EventKind::McpError, payload));
        }
        if now.reconnects > before.reconnects {
            let payload = json!({
                "server": server,
                "reconnect_count": found.reconnects,
                "attempt": found.reconnected_by,
            });
            told.push((EventKind::McpReconnect, payload));
        }
        if now.is_down && !before.is_down {
            let error = found.error.as_ref();
            let kind = error.map_or("transport_error", |error| error.kind.as_str());
            let reason = error.map_or("it has ended", |error| error.operator_cause());
            let payload = json!({ "server": server, "kind": kind, "reason": reason });
            told.push((EventKind::McpError, payload));
        }
        told
    }
}

impl StartReason {
    /// Adds the reason to the payload of an event.
    fn add(self, payload: &mut Value, (pid, server): (Pid, &str)) {
        if let Some(former) = self.former {
            payload["source"] = "resume".into();
            payload["pid"] = pid.get().into();
            payload["former_pid"] = former.get().into();
            payload["former_path"] = path(former, server).into();
        }
        if self.is_recovery {
            payload["daemon_restart_recovery"] = true.into();
        }
    }
}

impl Runs {
    /// The reason why a new run gets its servers.
    pub(crate) fn start_reason(&self, requested: &Requested) -> StartReason {
        requested.resumed_from().map(|from| self.reason_from(from)).unwrap_or_default()
    }

    /// The reason why a run that begins again gets its servers. A run that waits for a platform
    /// gets its servers only when the platform begins it: then its session resumes with it.
    pub(crate) fn restart_reason(&self, row: &RunRow, from: Option<ResumedFrom>) -> StartReason {
        let is_first = row.waiting.as_ref().is_some_and(|waiting| waiting.attempts <= 1);
        let from = from.filter(|_| is_first);
        let reason = from.map(|from| self.reason_from(from)).unwrap_or_default();
        let is_recovery = reason.is_recovery || row.created_at < self.shared.began;
        StartReason { is_recovery, ..reason }
    }

    fn reason_from(&self, from: ResumedFrom) -> StartReason {
        let ResumedFrom { pid, suspended_ms } = from;
        let suspended_at =
            suspended_ms.map(|ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms));
        let is_recovery = suspended_at.is_some_and(|at| at < self.shared.began);
        StartReason { former: Some(Pid::new(pid)), is_recovery }
    }

    /// Reports to the session of a run its start (`begun`), if it is new, and its present and
    /// omitted servers; then watches the states of the servers.
    pub(crate) async fn report_servers(
        &self,
        row: &RunRow,
        begun: Option<(EventKind, Value)>,
        (servers, reason): (StartedServers, StartReason),
    ) {
        let Some(events) = self.control().events() else { return };
        let place = EventPlace {
            workspace: row.workspace.clone(),
            session: row.session,
            run: Some(row.id),
        };
        let mut told: Vec<_> = begun.into_iter().collect();
        for (server, mut payload) in servers.failed {
            payload["server"] = server.as_str().into();
            payload["path"] = path(row.pid, &server).into();
            reason.add(&mut payload, (row.pid, &server));
            told.push((EventKind::McpError, payload));
        }
        for one in &servers.started {
            let server = one.watched.alias().as_str();
            let path = path(row.pid, server);
            let mut payload = json!({ "server": server, "path": path, "auto": true });
            if one.is_reused {
                payload["reused"] = true.into();
            }
            reason.add(&mut payload, (row.pid, server));
            told.push((EventKind::McpMount, payload));
        }
        events.note_all(&place, &told).await;
        if servers.started.is_empty() {
            return;
        }
        let held = watch::Sender::new(());
        for one in servers.started {
            let path = path(row.pid, one.watched.alias().as_str());
            let watching = self.clone().watch_server(place.clone(), path, one, held.subscribe());
            self.control().spawn(watching);
        }
        self.shared.watched.held().insert(row.id, held);
    }

    /// Removes a run from the gateway's table: its token opens nothing there any more, and its
    /// servers are released.
    pub(crate) async fn release(&self, id: RunId) {
        self.shared.gateway.end_run(id).await;
        self.shared.stored.forget(id);
        self.shared.watched.held().remove(&id);
        self.shared.resting.ends.forget(id);
    }

    /// Reports the states of a server until the run releases the server, and then the release.
    async fn watch_server(
        self,
        place: EventPlace,
        path: String,
        server: StartedServer,
        mut held: watch::Receiver<()>,
    ) {
        let StartedServer { mut watched, mut seen, .. } = server;
        let closing = self.control().closing();
        loop {
            tokio::select! {
                biased;
                // The sender never sends: it is dropped with the run.
                _gone = held.changed() => break,
                // The run continues with the next daemon. A server that was released before is
                // still reported.
                () = closing.cancelled() => return,
                () = watched.changed() => {
                    let server = watched.alias().clone();
                    for (kind, payload) in seen.look(server.as_str(), &watched.found()) {
                        self.report_server(&place, kind, &payload).await;
                    }
                }
            }
        }
        let since = Instant::now();
        // A server that other runs use stays connected.
        let is_used = watched.is_held();
        let ended = async {
            tokio::select! {
                ended = watched.ended() => ended == Ended::Killed,
                // A server that does not end in time ends with the daemon.
                () = async { closing.cancelled().await; sleep(END_LIMIT).await } => true,
            }
        };
        let is_forced = !is_used && ended.await;
        let mut payload = json!({
            "server": watched.alias().as_str(),
            "path": path,
            "auto": true,
            "duration_ms": u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        if is_used {
            payload["still_used"] = true.into();
        }
        if is_forced {
            payload["forced"] = true.into();
            payload["reason"] = "sigterm_ignored".into();
        }
        self.report_server(&place, EventKind::McpUnmount, &payload).await;
    }

    async fn report_server(&self, place: &EventPlace, kind: EventKind, payload: &Value) {
        let Some(events) = self.control().events() else { return };
        // The future is boxed: it is large, and the watcher of each server waits with one.
        match Box::pin(events.append(place, kind, payload, None)).await {
            // The session was deleted with its workspace.
            Ok(_) | Err(EventsError::NoSession(_)) => {}
            Err(error) => events.missed(place, kind, &error),
        }
    }
}

/// The path of a run's server in the namespace of mounts (D20).
fn path(pid: Pid, server: &str) -> String {
    format!("/mnt/mcp/{}-{server}", pid.get())
}
