//! The load of a workspace's runs: one document per interval, for as long as the client reads.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, SystemTime},
};

use narthex_control::FieldError;
use narthex_gateway::{Gateway, RunView};
use narthex_model::{RunId, WorkspaceId};
use narthex_registry::{ServerRow, TreeUse, trees};
use narthex_run_events::{Counted, Counting};
use narthex_runs::{RunFilter, RunStatus, Runs, SeenRun};
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep},
};

use super::super::{Answered, Asked, Query, events::STREAM_LIFE, ok, query::refused};
use crate::{
    feed::Events,
    post::prefers_stream,
    problem::Problem,
    shapes::{RunsTop, RunsTopRow, RunsTopServer},
};

/// Maximum number of runs in one document.
const RUNS_MAX: u32 = 1000;
/// Seconds between two documents, by default and at most.
const INTERVAL: u64 = 1;
const INTERVAL_MAX: u64 = 60;

impl Asked<'_> {
    /// Shows the load of a workspace's active runs: once, or after each interval if the caller
    /// prefers a stream.
    pub(super) async fn top(&self) -> Answered {
        let interval = interval(&self.query(&["interval"])?)?;
        let workspace = self.workspace()?;
        let gateway = self.door.gateway.clone();
        let runs = self.known_runs()?.clone();
        let mut top = Top {
            counting: gateway.tap().count(),
            gateway,
            runs,
            workspace,
            last: HashMap::new(),
            at: None,
        };
        // An absent workspace gets an error, not a stream that ends at once.
        let first = top.look().await?;
        if !prefers_stream(&self.parts.headers) {
            return Ok(ok(&first));
        }
        let place = self.stream_place()?;
        Ok(self.stream(async move |events: Events| {
            let _place = place;
            tokio::select! {
                biased;
                () = sleep(STREAM_LIFE) => {}
                () = put_all(&mut top, &first, interval, &events) => {}
            }
        }))
    }
}

/// Puts a document into the stream after each interval, until reading the runs fails.
async fn put_all(top: &mut Top, first: &RunsTop, interval: Duration, events: &Events) {
    events.put(first).await;
    loop {
        sleep(interval).await;
        match top.look().await {
            Ok(document) => events.put(&document).await,
            // The reader asks again, and then receives the problem as the answer.
            Err(problem) => {
                tracing::warn!("runs cannot be read: {}", problem.detail());
                return;
            }
        }
    }
}

/// The watched workspace, and the counters at its last reading.
struct Top {
    gateway: Gateway,
    runs: Runs,
    workspace: WorkspaceId,
    counting: Counting,
    last: HashMap<RunId, Found>,
    at: Option<Instant>,
}

/// The resources that process trees use, by the pid of their first process.
type Trees = HashMap<u32, TreeUse>;

impl Top {
    async fn look(&mut self) -> Result<RunsTop, Problem> {
        let filter = RunFilter { status: Some(None), ..RunFilter::default() };
        let page = self.runs.list(&self.workspace, filter, 0, RUNS_MAX).await?;
        let living = page.items.iter().filter(|run| run.status() == RunStatus::Running);
        let living: Vec<_> = living.map(|run| (run, self.servers(run.view.as_ref()))).collect();
        let leaders = living.iter().flat_map(|(_, servers)| servers);
        let leaders: BTreeSet<_> = leaders.filter_map(|row| leader(row)).collect();
        let trees = match spawn_blocking(move || trees(&leaders)).await {
            Ok(Ok(trees)) => Some(trees),
            Ok(Err(error)) => {
                tracing::debug!(%error, "the memory and CPU use of servers is unknown");
                None
            }
            Err(error) => {
                tracing::error!(%error, "the memory and CPU use of servers could not be read");
                None
            }
        };
        let now = Instant::now();
        let passed = self.at.replace(now).map(|before| now.duration_since(before));
        let mut last = HashMap::new();
        let mut shown = Vec::new();
        for (run, servers) in &living {
            let Some(id) = run.id() else { continue };
            let found = (self.counting.of(id), computed(servers, trees.as_ref()));
            let before = self.last.get(&id).zip(passed);
            let of = (id, *run, servers.as_slice());
            shown.push(row(of, trees.as_ref(), &found, before));
            last.insert(id, found);
        }
        self.last = last;
        Ok(RunsTop {
            at: SystemTime::now().into(),
            interval_ms: passed.map(|passed| whole(passed.as_millis())),
            runs: shown,
            has_more: page.next.is_some(),
        })
    }

    /// The servers that a run has, each server once.
    fn servers(&self, view: Option<&Arc<RunView>>) -> Vec<Arc<ServerRow>> {
        let Some(view) = view else { return Vec::new() };
        let snapshot = self.gateway.snapshot(view);
        let has = |row: &&Arc<ServerRow>| {
            let alias = row.alias.as_ref().filter(|_| !row.is_overridden);
            alias.is_some_and(|alias| view.policy.is_attached(alias))
        };
        snapshot.servers.iter().filter(has).cloned().collect()
    }
}

/// The counters of a run, and the CPU time of its servers.
type Found = (Counted, Option<Duration>);

fn row(
    (id, run, servers): (RunId, &SeenRun, &[Arc<ServerRow>]),
    trees: Option<&Trees>,
    (counted, computed): &Found,
    before: Option<(&Found, Duration)>,
) -> RunsTopRow {
    let view = run.view.as_ref();
    let rates = before.map(|((earlier, _), passed)| (counted.since(earlier), passed));
    let per_second =
        |count: u64, passed: Duration| rounded(count as f64 / passed.as_secs_f64().max(0.001));
    let cpu = before.and_then(|((_, earlier), passed)| {
        let worked = computed.as_ref()?.saturating_sub((*earlier)?);
        Some(rounded(100.0 * worked.as_secs_f64() / passed.as_secs_f64().max(0.001)))
    });
    let row = run.row.as_ref();
    let agent = row.map(|row| &row.agent).filter(|name| !name.is_empty());
    RunsTopRow {
        run_id: id.to_text().into(),
        pid: row.map_or(0, |row| row.pid.get()),
        is_local: row.is_none(),
        agent_name: agent.map(Into::into),
        session_id: row.map(|row| row.session.to_text().into()),
        calls: rates.as_ref().map(|(rates, _)| rates.calls),
        calls_per_second: rates.as_ref().map(|(rates, passed)| per_second(rates.calls, *passed)),
        errors: rates.as_ref().map(|(rates, _)| rates.errors),
        p50_us: rates.as_ref().and_then(|(rates, _)| Some(whole(rates.p50?.as_micros()))),
        open_calls: view.map_or(0, |view| whole(view.open_calls())),
        memory_bytes: trees.map(|trees| sum(servers, trees, |tree| tree.memory_bytes)),
        cpu_percent: cpu,
        servers: servers.iter().map(|one| server(one, trees)).collect(),
    }
}

fn server(row: &ServerRow, trees: Option<&Trees>) -> RunsTopServer {
    let tree = leader(row).and_then(|leader| trees?.get(&leader));
    RunsTopServer {
        alias: row.alias.as_ref().map(Into::into),
        state: row.state.into(),
        is_asleep: row.is_asleep,
        processes: tree.map_or(0, |tree| whole(tree.processes)),
        memory_bytes: tree.map(|tree| tree.memory_bytes),
    }
}

/// A number as a `u64`, or the maximum if it does not fit.
fn whole<N: TryInto<u64>>(number: N) -> u64 {
    number.try_into().unwrap_or(u64::MAX)
}

/// The pid of the first process of a server that this daemon started.
fn leader(row: &ServerRow) -> Option<u32> {
    row.link.as_ref()?.process_id()
}

fn sum(servers: &[Arc<ServerRow>], trees: &Trees, of: impl Fn(&TreeUse) -> u64) -> u64 {
    let leaders: BTreeSet<_> = servers.iter().filter_map(|row| leader(row)).collect();
    leaders.iter().filter_map(|leader| trees.get(leader)).map(of).sum()
}

/// The total CPU time of the processes of these servers.
fn computed(servers: &[Arc<ServerRow>], trees: Option<&Trees>) -> Option<Duration> {
    let micros = |tree: &TreeUse| u64::try_from(tree.computed.as_micros()).unwrap_or(u64::MAX);
    Some(Duration::from_micros(sum(servers, trees?, micros)))
}

/// Rounds to one decimal place.
fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

fn interval(query: &Query) -> Result<Duration, Problem> {
    let text = query.text("interval");
    if text.is_empty() {
        return Ok(Duration::from_secs(INTERVAL));
    }
    let seconds = text.parse().ok().filter(|seconds| (1..=INTERVAL_MAX).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| {
        let remedy = format!("write a whole number of seconds from 1 to {INTERVAL_MAX}");
        refused(&[FieldError::invalid("interval", "this value is not valid", remedy)])
    })
}
