//! Streams of server rows as they change, tests of servers, and logs of servers.

use std::sync::Arc;

use narthex_control::{Control, StageOutcome};
use narthex_gateway::{Gateway, RunView};
use narthex_model::{Alias, ErrorKind, Pid, WorkspaceId, command::narthex, json::shortened};
use narthex_registry::{LogPart, ServerRow, Snapshot};
use narthex_runs::{RunFilter, SeenRun};
use narthex_vfs::MountName;

use super::{Answered, Asked, ok, unknown};
use crate::{
    auth::Principal,
    feed::{Events, FeedStream},
    post::prefers_stream,
    problem::Problem,
    respond::{Response, event_stream},
    rows,
    shapes::{self, LogEvent, Logs, Probe, ProbeEvent, ServersEvent, Stage},
};

/// Number of runs in one page of the search for a server.
const RUNS: u32 = 100;

impl Asked<'_> {
    /// Streams every state of the rows that the caller may see, from the current state until the
    /// daemon stops.
    pub(super) fn events(&self) -> Answered {
        let gateway = self.door.gateway.clone();
        let control = self.door.options.control.clone();
        let (principal, has_tools) = (self.principal.clone(), self.has_tools()?);
        Ok(self.stream(move |events| async move {
            let watching = Watching { gateway, control, principal, has_tools };
            match watching.principal.clone() {
                Principal::Run(run) => watching.run(&run, &events).await,
                Principal::Known(_) | Principal::Human(_) | Principal::LocalAdmin => {
                    watching.everything(&events).await
                }
            }
        }))
    }

    /// Tests a server. A caller that prefers a stream gets each stage as it ends. If the name is
    /// that of a mount, it means a server of a run. The test then uses a connection of its own,
    /// besides the run's.
    pub(super) async fn test(&self) -> Answered {
        let query = self.query(&["workspace"])?;
        let (name, control) = (self.name()?, self.control()?);
        let probing = match MountName::parse(&name).filter(|mount| mount.pid != Pid::OWN) {
            None => control.probe(&name)?,
            Some(mount) => {
                let workspace = match query.text("workspace") {
                    "" => control.home().clone(),
                    text => WorkspaceId::new(text).map_err(|_unfit| unknown(&name))?,
                };
                let (_, row) = self.row_of_run(&mount, &workspace).await?;
                let definition = row.definition.clone().ok_or_else(|| {
                    let text = format!(
                        "`{name}` failed to start for its run, so there is no connection to test; \
                         correct the server, then create another run"
                    );
                    Problem::new(ErrorKind::Conflict, text)
                })?;
                control.probe_beside(definition)
            }
        };
        if !prefers_stream(&self.parts.headers) {
            return Ok(ok(&probed(probing.run(|_stage| {}).await)));
        }
        Ok(self.stream(async move |events: Events| {
            let told = |one: &_| events.put_now(&ProbeEvent::Stage(stage(one)));
            let probe = probing.run(told).await;
            events.put(&ProbeEvent::Result(probed(probe))).await;
        }))
    }

    /// Shows the last log lines; a caller that prefers a stream also gets further lines. If the
    /// name is that of a mount, it means a server of a run (R-C2). With `workspace` in the query,
    /// every name does.
    pub(super) async fn logs(&self) -> Answered {
        let query = self.query(&["workspace"])?;
        let (name, control) = (self.name()?, self.control()?);
        let workspace = query.text("workspace");
        if !workspace.is_empty() {
            return self.logs_in(&name, workspace).await;
        }
        let name = match MountName::parse(&name) {
            Some(mount) if mount.pid == Pid::OWN => mount.alias.to_string(),
            Some(mount) => return self.logs_of_run(&mount, control.home()).await,
            None => name,
        };
        if !prefers_stream(&self.parts.headers) {
            let lines = control.logs(&name)?;
            return Ok(ok(&Logs { name, lines, is_failed_start: None }));
        }
        let mut follower = control.follow_logs(&name)?;
        Ok(self.stream(async move |events: Events| {
            while let Some(part) = follower.next().await {
                put_lines(&events, part).await;
            }
        }))
    }

    /// The log of a server of a workspace's runs. The name is that of a mount, or that of a server:
    /// then the log is of the last start for a run, also if it failed.
    async fn logs_in(&self, name: &str, workspace: &str) -> Answered {
        let runs = self.known_runs()?;
        let unknown_here = || {
            let list = narthex("runs list", &[]).in_workspace(workspace);
            let text = format!(
                "no run of the workspace `{}` has a server `{}`; `{list}` lists its runs",
                shortened(workspace),
                shortened(name),
            );
            Problem::new(ErrorKind::NotFound, text)
        };
        let workspace = WorkspaceId::new(workspace).map_err(|_unfit| unknown_here())?;
        if let Some(mount) = MountName::parse(name) {
            return self.logs_of_run(&mount, &workspace).await;
        }
        if let Some(lines) = runs.failed_start(&workspace, name) {
            return Ok(match prefers_stream(&self.parts.headers) {
                false => ok(&Logs { name: name.to_owned(), lines, is_failed_start: Some(true) }),
                true => self.stream(async move |events: Events| {
                    put_lines(&events, LogPart { missed: 0, lines, next: 0 }).await;
                }),
            });
        }
        let living = RunFilter { status: Some(None), ..RunFilter::default() };
        let (mut newest, mut after) = (None, Some(0));
        while let Some(from) = after {
            let page = runs.list(&workspace, living, from, RUNS).await?;
            for run in page.items {
                let view = run.view.as_ref();
                let snapshot = view.map(|view| self.door.gateway.snapshot(view));
                if snapshot.is_some_and(|rows| rows.get(name).is_some()) {
                    newest = run.row.map(|row| row.pid).or(newest);
                }
            }
            after = page.next;
        }
        let (pid, alias) = newest.zip(Alias::new(name).ok()).ok_or_else(unknown_here)?;
        self.logs_of_run(&MountName { pid, alias }, &workspace).await
    }

    /// The log of a server of an active run, until the run ends.
    async fn logs_of_run(&self, mount: &MountName, workspace: &WorkspaceId) -> Answered {
        let (run, row) = self.row_of_run(mount, workspace).await?;
        let (name, log) = (mount.to_string(), row.log.clone());
        if !prefers_stream(&self.parts.headers) {
            return Ok(ok(&Logs { name, lines: log.tail(), is_failed_start: None }));
        }
        Ok(self.stream(async move |events: Events| {
            let (mut added, mut next) = (log.subscribe(), 0);
            loop {
                let part = log.read_from(next);
                next = part.next;
                put_lines(&events, part).await;
                tokio::select! {
                    biased;
                    // The signal only wakes the loop: missed lines are in the ring buffer, or are
                    // counted.
                    _line = added.recv() => {}
                    () = run.ended() => return,
                }
            }
        }))
    }

    /// An active run, and its row of a server.
    async fn row_of_run(
        &self,
        mount: &MountName,
        workspace: &WorkspaceId,
    ) -> Result<(Arc<RunView>, Arc<ServerRow>), Problem> {
        let living = RunFilter { status: Some(None), ..RunFilter::default() };
        let unknown = || unknown(&mount.to_string());
        let before = mount.pid.get().saturating_sub(1);
        let page = self.known_runs()?.list(workspace, living, before, 1).await?;
        let is_it = |run: &SeenRun| run.row.as_ref().is_some_and(|row| row.pid == mount.pid);
        let run = page.items.into_iter().find(is_it).and_then(|run| run.view);
        let run = run.ok_or_else(unknown)?;
        let row = self.door.gateway.snapshot(&run).get(mount.alias.as_str()).cloned();
        Ok((run, row.ok_or_else(unknown)?))
    }

    pub(super) fn stream<F>(&self, work: impl FnOnce(Events) -> F) -> Response
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let options = &self.door.options;
        let end = Box::pin(options.closing.clone().cancelled_owned());
        let open = self.door.gateway.metrics().stream_opened();
        event_stream(FeedStream::new(work, end, options.keep_alive, open))
    }
}

async fn put_lines(events: &Events, part: LogPart) {
    if part.missed > 0 {
        events.put(&LogEvent::Missed(part.missed)).await;
    }
    for line in part.lines {
        events.put(&LogEvent::Line(line)).await;
    }
}

/// Streams the rows of servers to one caller.
struct Watching {
    gateway: Gateway,
    control: Option<Control>,
    principal: Principal,
    has_tools: bool,
}

impl Watching {
    /// Streams every state of the shared rows.
    async fn everything(&self, events: &Events) {
        let mut updates = self.gateway.registry().subscribe();
        let mut shown = Shown::default();
        while let Some(update) = updates.next().await {
            self.put(&update.snapshot, &mut shown, events).await;
        }
    }

    /// Streams the servers that a run sees, until it ends. States that follow each other fast may
    /// be sent as one.
    async fn run(&self, run: &RunView, events: &Events) {
        let mut changes = self.gateway.changes(run);
        let mut shown = Shown::default();
        loop {
            changes.mark_seen();
            let snapshot = self.gateway.snapshot(run);
            self.put(&snapshot, &mut shown, events).await;
            let is_over = tokio::select! {
                biased;
                () = run.ended() => true,
                has_changed = changes.next() => !has_changed,
            };
            if is_over {
                return;
            }
        }
    }

    /// Sends the rows if they differ from the last rows sent. So a change of a server that the
    /// caller may not see has no effect (D5).
    async fn put(&self, snapshot: &Snapshot, shown: &mut Shown, events: &Events) {
        let settled = snapshot.is_settled();
        let control = self.control.as_ref();
        let servers = rows::all(snapshot, &self.principal, control, self.has_tools);
        if shown.last.as_ref().is_some_and(|(was, rows)| *was == settled && *rows == servers) {
            return;
        }
        events.put(&ServersEvent { seq: shown.seq, settled, servers: &servers }).await;
        shown.last = Some((settled, servers));
        shown.seq += 1;
    }
}

/// The rows that were sent last, with true if all servers had settled.
#[derive(Default)]
struct Shown {
    last: Option<(bool, Vec<shapes::ServerRow>)>,
    seq: u64,
}

fn probed(probe: narthex_control::Probe) -> Probe {
    let narthex_control::Probe {
        name,
        ok,
        needs_sign_in,
        stages,
        server_name,
        server_version,
        revision,
    } = probe;
    let stages = stages.iter().map(stage).collect();
    Probe { name, ok, needs_sign_in, stages, server_name, server_version, revision }
}

fn stage(stage: &narthex_control::Stage) -> Stage {
    let narthex_control::Stage { name, outcome, duration_ms } = stage;
    let (name, duration_ms) = ((*name).into(), *duration_ms);
    match outcome {
        StageOutcome::Ok { count } => Stage::Ok { name, count: *count, duration_ms },
        StageOutcome::Failed { reason } => {
            Stage::Failed { name, reason: reason.clone(), duration_ms }
        }
        StageOutcome::Timeout { after_ms } => {
            Stage::Timeout { name, after_ms: *after_ms, duration_ms }
        }
        StageOutcome::NotSupported => Stage::NotSupported { name, duration_ms },
    }
}
