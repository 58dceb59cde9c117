//! Unused runs: they cost next to nothing, and miss nothing.

use std::{sync::Arc, time::Duration};

use narthex_gateway::{Caller, Endpoint, GatewayOptions, RunToken, RunView};
use narthex_model::WorkspaceId;
use narthex_policy::RunPolicy;
use narthex_registry::{MountOptions, Mountable};
use narthex_testkit::fixture::{Options, Running};
use serde_json::json;
use tokio::time::timeout;

use super::world::{SOON, World, http_server, transparent};

/// A world, and a fixture that all runs share which [`Shared::begin`] begins.
struct Shared {
    world: World,
    fixture: Running,
}

impl Shared {
    async fn with(options: GatewayOptions) -> Self {
        let fixture = Running::http(Options::default()).await.unwrap();
        Self { world: World::settled(vec![], options).await, fixture }
    }

    async fn begin(&self) -> Arc<RunView> {
        let registry = self.world.gateway.registry();
        let options = MountOptions { timeout: SOON, ..MountOptions::default() };
        let mine = Mountable::new(Arc::new(http_server("mine", &self.fixture.url)));
        let set = registry.mount(vec![mine], &options).await.unwrap();
        let token = RunToken::generate().unwrap();
        let (workspace, policy) = (WorkspaceId::default(), RunPolicy::default());
        let run = Arc::new(RunView::with_servers(&token, workspace, policy, set));
        self.world.gateway.begin_run(&run).unwrap();
        run
    }

    async fn echoes(&self, run: &Arc<RunView>) {
        let seen = self.world.seen_by(run);
        for (endpoint, name) in [(Endpoint::Aggregated, "mcp__mine__echo"), (mine(), "echo")] {
            let params = json!({"name": name, "arguments": {"message": "x"}});
            let answer = seen.ask(&seen.modern_caller(endpoint), "tools/call", params).await;
            assert_eq!(answer["result"]["content"][0]["text"], "x", "{answer}");
        }
    }
}

fn mine() -> Endpoint {
    transparent("mine")
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, waiting).await.unwrap_or_else(|_late| panic!("{what}"));
}

/// The memory of this process that is not shared with files, in bytes.
fn memory() -> usize {
    let text = fs_err::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// An unused run has no task, no view and no list of its own, whatever its server lists: at most 16
/// KiB, also in a build without optimization.
#[tokio::test]
async fn an_unused_run_has_no_task_and_no_view_and_takes_at_most_16_kib() {
    const RUNS: usize = 2000;
    let shared = Shared::with(GatewayOptions::default()).await;
    let first = shared.begin().await;
    let gateway = &shared.world.gateway;
    let (tasks, before) = (gateway.tasks().len(), memory());
    let mut runs = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        runs.push(shared.begin().await);
    }
    let each = memory().saturating_sub(before) / RUNS;
    assert!(each <= 16 * 1024, "{each} bytes");
    assert_eq!(gateway.tasks().len(), tasks);
    let tools = first.tools().unwrap();
    assert!(!tools.tools.is_empty());
    for run in &runs {
        assert!(!run.is_watched() && Arc::ptr_eq(&run.tools().unwrap(), &tools));
    }
    // Showing a run is no use of it.
    assert_eq!(gateway.snapshot(&first).servers.len(), 1);
    assert!(!first.is_watched());
    // All runs share one connection, which ends with the last of them.
    shared.echoes(&first).await;
    assert!(first.is_watched() && !runs[0].is_watched());
    for run in runs {
        gateway.end_run(run.id).await.unwrap();
    }
    shared.echoes(&first).await;
    gateway.drain().await;
}

/// E20: a run that is not used for a while releases its view and its task. When it is used again,
/// it sees changes from meanwhile, and these are recorded.
#[tokio::test]
async fn e20_an_idle_run_sees_changes_when_it_is_used_again() {
    let idle = Duration::from_millis(5);
    let options = GatewayOptions { run_idle: idle, ..GatewayOptions::default() };
    let shared = Shared::with(options).await;
    let gateway = &shared.world.gateway;
    let (run, other) = (shared.begin().await, shared.begin().await);
    let tasks = gateway.tasks().len();
    let first = run.tools().unwrap();
    for _ in 0..3 {
        shared.echoes(&run).await;
        until("it is not given back", || !run.is_watched()).await;
    }
    until("a task is left", || gateway.tasks().len() == tasks).await;
    shared.fixture.fixture.toggle_dynamic_tool();
    let snapshot = || gateway.snapshot(&run).servers[0].inventory.clone();
    until("not listed", || snapshot().tool("dynamic_tool").is_some()).await;
    assert!(Arc::ptr_eq(&run.tools().unwrap(), &first));
    shared.echoes(&run).await;
    until("not recorded", || run.tools().unwrap().digest != first.digest).await;
    assert_eq!(run.tools().unwrap().tools.len(), first.tools.len() + 1);
    assert!(Arc::ptr_eq(&other.tools().unwrap(), &first));
    gateway.drain().await;
}

/// E7: a session keeps its run in use, however long the session is silent, and gets every change.
#[tokio::test]
async fn a_session_keeps_its_run_in_use() {
    let idle = Duration::from_millis(1);
    let options = GatewayOptions { run_idle: idle, ..GatewayOptions::default() };
    let shared = Shared::with(options).await;
    let run = shared.begin().await;
    let seen = shared.world.seen_by(&run);
    let session = seen.session(&Endpoint::Aggregated, json!({})).await;
    let mut outbox = session.take_outbox().unwrap();
    // Other runs begin and rest meanwhile.
    for _ in 0..5 {
        let other = shared.begin().await;
        shared.echoes(&other).await;
        until("it is not given back", || !other.is_watched()).await;
        assert!(run.is_watched());
    }
    shared.fixture.fixture.toggle_dynamic_tool();
    let told = timeout(SOON, outbox.recv()).await.expect("nothing comes").unwrap();
    let told = String::from_utf8(told.into_bytes().to_vec()).unwrap();
    assert!(told.contains("notifications/tools/list_changed"), "{told}");
    let caller = Caller::new(run.clone(), Endpoint::Aggregated, Some(session.clone()));
    let list = seen.ask(&caller, "tools/list", json!({})).await;
    assert!(list.to_string().contains("mcp__mine__dynamic_tool"), "{list}");
    drop(caller);
    shared.world.gateway.end_session(&session).await;
    drop(session);
    until("it is not given back", || !run.is_watched()).await;
    shared.world.gateway.drain().await;
}
