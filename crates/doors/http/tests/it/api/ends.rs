//! Tests of ends of runs and sessions that cannot be stored at once. No end is lost, none delays
//! another one, and a run's token expires anyway.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime},
};

use http::StatusCode;
use narthex_events::EventKind;
use narthex_executor::{CommandExecutor, ExecutorOptions, Executors};
use narthex_model::{ExecutorName, RunId, SessionId, WorkspaceId};
use narthex_store::{Awaited, NewRun, SessionRow, Store};
use narthex_supervisor::BaseEnvironment;
use narthex_vault::Vault;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    built_in::{Run, with_tools},
    kin::{HERE, start, text},
    lives::Failing,
    world::Api,
};
use crate::world::Stream;

const HOUR: Duration = Duration::from_secs(3600);

/// A program that reports its start, and then exits with the code that the test sends.
const WORK: &str = r#"cat > prompt; echo yes > begun; read code < go; exit "$code""#;

/// The state before the tested daemon starts: the orchestrator `chief` has started a child of an
/// agent. The child's end cannot be stored while secrets cannot be opened. The data for resuming
/// its parent at that end is sealed with a key that no caller has requested yet.
struct Before {
    store: Store,
    failing: Arc<Failing>,
    child: RunId,
    session: SessionId,
}

impl Before {
    async fn new(place: &TempDir, agent: &str, lasts: Duration) -> Self {
        let store = Store::open(&place.path().join("store.db")).await.unwrap();
        let failing = Failing::over(&store, place).await;
        let vault = Vault::new(failing.clone());
        let api = Api::with_vault(store.clone(), vault.clone()).await;
        for (name, agent) in [
            ("reader", json!({})),
            ("hand", json!({ "executor": "crew" })),
            ("lead", json!({ "spawnable_agents": ["reader"] })),
            (
                "chief",
                json!({ "agent_type": "orchestrator", "executor": "crew",
                        "spawnable_agents": ["reader", "hand"] }),
            ),
        ] {
            api.send("PUT", &format!("{HERE}/agents/{name}"), with_tools(agent)).await.succeeded();
        }
        let chief = chief(&api).await;
        let begun = start(&chief, agent).await;
        let run = RunId::parse(&text(&begun["session"], "run_id")).unwrap();
        let (child, session) = twin(&store, &vault, run, lasts).await;
        let asked = json!({ "child_session_id": begun["session"]["id"] });
        chief.called("cancel_session", asked).await;
        Self { store, failing, child, session }
    }

    /// A daemon with this state.
    async fn daemon(&self) -> Api {
        Api::with_vault(self.store.clone(), Vault::new(self.failing.clone())).await
    }

    fn fails(&self, does: bool) {
        self.failing.fails.store(does, Ordering::SeqCst);
    }

    fn refused(&self) -> usize {
        self.failing.refused.load(Ordering::SeqCst)
    }
}

/// A run of `chief`, claimed by an executor.
async fn chief(api: &Api) -> Run<'_> {
    let asked = json!({ "agent_name": "chief", "expires_in": 36000 }).to_string();
    let made = api.send("POST", &format!("{HERE}/runs"), asked).await.succeeded();
    let (crew, here) = (ExecutorName::new("crew").unwrap(), WorkspaceId::default());
    let row = api.runs.awaiting(&crew, &[here].into(), 9).await.unwrap().pop().unwrap();
    let execution = api.runs.execute(row, "somebody", HOUR).await.unwrap();
    let (token, session) = (execution.token.expose().to_owned(), text(&made, "session_id"));
    Run { api, token, session }
}

/// A copy of a run, in a session whose parameters are sealed with a key that does not exist.
async fn twin(store: &Store, vault: &Vault, of: RunId, lasts: Duration) -> (RunId, SessionId) {
    let here = WorkspaceId::default();
    // These ids come before all others in any list.
    let (run, session) = (RunId::new([0; 6]), SessionId::new([0; 6]));
    let row = store.runs().find(of).await.unwrap().unwrap();
    let opened = vault.open_document(&here, &format!("run {of}"), &row.sealed).await.unwrap();
    let sealed = vault.seal_document(&here, &format!("run {run}"), &opened).await.unwrap();
    let first = store.sessions().find(&here, row.session).await.unwrap().unwrap();
    let twin = SessionRow { id: session, sealed: "9.AAAA".to_owned(), ..first };
    let waiting = row.waiting.unwrap();
    let new = NewRun {
        id: run,
        workspace: &here,
        session,
        agent: &row.agent,
        parent: row.parent,
        agent_env: &[],
        token: &row.token,
        sealed: &sealed,
        created_by: "admin",
        expires_at: SystemTime::now() + lasts,
        has_sockets: false,
        driver: None,
        awaited: Some(Awaited { model: "", runtime: "", executor: waiting.executor.as_ref() }),
        spawned: None,
        is_owed: false,
        suspended_at: None,
        agent_type: None,
    };
    assert!(store.runs().create(new, Some(&twin)).await.unwrap().is_some());
    (run, session)
}

/// Claims a child's run for an executor, and returns the run's token.
async fn claimed(api: &Api, run: RunId) -> Option<String> {
    let path = format!("{HERE}/runs/{run}/claim");
    let claim = api.send("POST", &path, r#"{"lease_seconds": 36000}"#).await;
    claim.status.is_success().then(|| text(&claim.json()["run"], "token"))
}

async fn status(api: &Api, run: RunId) -> String {
    text(&api.get(&format!("{HERE}/runs/{run}")).await, "status")
}

/// The outcome in the event of a session's end.
async fn end_of(api: &Api, session: SessionId) -> Value {
    let (events, kinds) = (api.control.events().unwrap(), vec![EventKind::SessionEnded]);
    let mut story = events.follow(&WorkspaceId::default(), session, 0, kinds);
    let ended = story.next().await.unwrap().expect("it has ended");
    ended[0].envelope()["payload"]["how"].clone()
}

fn in_minutes(minutes: u64) -> SystemTime {
    SystemTime::now() + Duration::from_secs(minutes * 60)
}

async fn executor_at(api: &Api, folder: &Path) {
    let crew = CommandExecutor {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), WORK.to_owned()],
        cwd: Some(folder.to_owned()),
        env: BTreeMap::new(),
        workspaces: BTreeSet::from([WorkspaceId::default()]),
        at_once: 2,
        stop_grace: HOUR,
    };
    let options = ExecutorOptions {
        executors: Executors { all: [(ExecutorName::new("crew").unwrap(), crew)].into() },
        environment: BaseEnvironment::from_process(),
        url: "http://127.0.0.1:9/mcp".to_owned(),
        place: folder.join("executors"),
    };
    narthex_executor::start(api.runs.clone(), api.control.clone(), options).await.unwrap();
}

/// X-E57: the outcome of a run is stored as soon as that is possible, and the run is not carried
/// out twice. This also holds for a worker whose program ended well while the keys were
/// unavailable.
#[tokio::test]
async fn x_e57_the_end_of_a_run_is_stored_as_soon_as_the_store_accepts_it() {
    let place = tempfile::tempdir().unwrap();
    let before = Before::new(&place, "hand", HOUR).await;
    let api = before.daemon().await;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for fifo in ["begun", "go"] {
        assert!(Command::new("mkfifo").arg(path(fifo)).status().unwrap().success());
    }
    executor_at(&api, folder.path()).await;
    assert_eq!(tokio::fs::read_to_string(path("begun")).await.unwrap(), "yes\n");
    before.fails(true);
    tokio::fs::write(path("go"), "0\n").await.unwrap();
    // The executor has tried twice to store the outcome.
    while before.refused() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(status(&api, before.child).await, "running");
    before.fails(false);
    assert_eq!(end_of(&api, before.session).await, "ended");
    let events = api.get(&format!("{HERE}/sessions/{}/events", before.session)).await;
    let types: Vec<_> =
        events["items"].as_array().unwrap().iter().map(|one| &one["type"]).collect();
    assert_eq!(types, ["session.completed", "session.ended"]);
}

/// X-E90: a child whose end fails does not delay another child's end.
#[tokio::test]
async fn x_e90_a_child_that_cannot_end_does_not_delay_the_end_of_another_child() {
    let place = tempfile::tempdir().unwrap();
    let before = Before::new(&place, "reader", 10 * HOUR).await;
    let api = before.daemon().await;
    let lead = Run::of(&api, "lead").await;
    let other = start(&lead, "reader").await;
    let other = RunId::parse(&text(&other["session"], "run_id")).unwrap();
    for run in [before.child, other] {
        claimed(&api, run).await.unwrap();
    }
    before.fails(true);
    api.runs.look_at_children(in_minutes(33)).await.unwrap();
    assert!(before.refused() > 0);
    assert_eq!(status(&api, before.child).await, "running");
    assert_eq!(status(&api, other).await, "expired");
    before.fails(false);
    api.runs.look_at_children(in_minutes(33)).await.unwrap();
    assert_eq!(status(&api, before.child).await, "expired");
}

/// A run without an executor that cannot be failed does not delay others either.
#[tokio::test]
async fn an_unserved_run_that_cannot_be_failed_does_not_block_other_runs() {
    let place = tempfile::tempdir().unwrap();
    let before = Before::new(&place, "hand", HOUR).await;
    let api = before.daemon().await;
    let asked = json!({ "agent_name": "hand" }).to_string();
    let other = api.send("POST", &format!("{HERE}/runs"), asked).await.succeeded();
    let other = RunId::parse(&text(&other, "run_id")).unwrap();
    before.fails(true);
    api.runs.fail_unserved().await.unwrap();
    assert!(before.refused() > 0);
    assert_eq!(status(&api, before.child).await, "pending");
    assert_eq!(status(&api, other).await, "failed");
    before.fails(false);
    api.runs.fail_unserved().await.unwrap();
    assert_eq!(status(&api, before.child).await, "failed");
}

/// A run's token, and a stream that it has opened; `None` if the run had expired by then.
async fn listening(api: &Api, run: RunId) -> Option<(String, Stream)> {
    let token = claimed(api, run).await?;
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let request = api.world.modern("/mcp", "subscriptions/listen", filter);
    let request = request.header("authorization", &format!("Bearer {token}"));
    let opened = request.open().await;
    if opened.status() == StatusCode::UNAUTHORIZED {
        return None;
    }
    let mut stream = Stream::of(opened);
    stream.next().await?;
    Some((token, stream))
}

/// A run's token is refused as soon as the run has expired, even while the end cannot be stored.
/// The end is stored as soon as that is possible.
#[tokio::test]
async fn an_expired_runs_token_is_refused_even_if_the_end_cannot_be_stored() {
    // A slow machine takes longer to start the run.
    for seconds in (3..).step_by(3) {
        let place = tempfile::tempdir().unwrap();
        let before = Before::new(&place, "reader", Duration::from_secs(seconds)).await;
        let api = before.daemon().await;
        let Some((token, mut stream)) = listening(&api, before.child).await else { continue };
        before.fails(true);
        while stream.next().await.is_some() {}
        let found = async || before.store.runs().find(before.child).await.unwrap().unwrap();
        // An end that started while secrets could be opened may still be on its way into the store.
        while before.refused() == 0 && found().await.ended.is_none() {}
        if found().await.ended.is_some() {
            continue;
        }
        let request = api.world.modern("/mcp/narthex", "tools/list", json!({}));
        let request = request.header("authorization", &format!("Bearer {token}"));
        assert_eq!(request.send().await.status, StatusCode::UNAUTHORIZED);
        assert!(before.refused() > 0);
        before.fails(false);
        let other = before.daemon().await;
        assert_eq!(end_of(&other, before.session).await, "expired");
        return;
    }
}
