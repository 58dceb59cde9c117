//! Ends of runs and sessions that cannot be stored at once: none is lost, none keeps another one
//! from its own, and the time of a run is over all the same.

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
use narthex_store::Store;
use narthex_supervisor::BaseEnvironment;
use narthex_vault::Vault;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    built_in::Run,
    kin::{HERE, start, text},
    lives::Failing,
    world::Api,
};
use crate::world::Stream;

const HOUR: Duration = Duration::from_secs(3600);

/// Says that it has begun, and ends as it is told.
const WORK: &str = r#"cat > prompt; echo yes > begun; read code < go; exit "$code""#;

/// A daemon with the orchestrator `chief`, who may start `reader` and `hand`, which the executor
/// `crew` carries out. What the session above is owed for an end needs its secrets.
async fn daemon(place: &TempDir) -> (Api, Store, Arc<Failing>) {
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let failing = Failing::over(&store, place).await;
    let api = Api::with_vault(store.clone(), Vault::new(failing.clone())).await;
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
        api.send("PUT", &format!("{HERE}/agents/{name}"), agent.to_string()).await.succeeded();
    }
    (api, store, failing)
}

/// A run of `chief` that somebody carries out; `None` if its time is over by then.
async fn chief(api: &Api, expires_in: u64) -> Option<Run<'_>> {
    let asked = json!({ "agent_name": "chief", "expires_in": expires_in }).to_string();
    let made = api.send("POST", &format!("{HERE}/runs"), asked).await.succeeded();
    let (crew, here) = (ExecutorName::new("crew").unwrap(), WorkspaceId::default());
    let row = api.runs.awaiting(&crew, &[here].into(), 9).await.unwrap().pop()?;
    let execution = api.runs.execute(row, "somebody", HOUR).await.ok()?;
    let (token, session) = (execution.token.expose().to_owned(), text(&made, "session_id"));
    Some(Run { api, token, session })
}

/// Has somebody carry a child out; gives the run's token.
async fn claimed(api: &Api, run: &str) -> Option<String> {
    let path = format!("{HERE}/runs/{run}/claim");
    let claim = api.send("POST", &path, r#"{"lease_seconds": 36000}"#).await;
    claim.status.is_success().then(|| text(&claim.json()["run"], "token"))
}

async fn status(api: &Api, child: &Value) -> String {
    let path = format!("{HERE}/runs/{}", text(&child["session"], "run_id"));
    text(&api.get(&path).await, "status")
}

/// How a session ends.
async fn end_of(api: &Api, session: &str) -> Value {
    let (events, id) = (api.control.events().unwrap(), SessionId::parse(session).unwrap());
    let kinds = vec![EventKind::SessionEnded];
    let mut story = events.follow(&WorkspaceId::default(), id, 0, kinds);
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

/// X-E57: what came of a run is stored when it can be, and the run is not done twice; also that of
/// a worker whose program ended well while the keys were away.
#[tokio::test]
async fn x_e57_a_known_end_is_stored_as_soon_as_it_can_be() {
    let place = tempfile::tempdir().unwrap();
    let (api, _, failing) = daemon(&place).await;
    let chief = chief(&api, 36000).await.unwrap();
    let child = start(&chief, "hand").await;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for fifo in ["begun", "go"] {
        assert!(Command::new("mkfifo").arg(path(fifo)).status().unwrap().success());
    }
    executor_at(&api, folder.path()).await;
    assert_eq!(tokio::fs::read_to_string(path("begun")).await.unwrap(), "yes\n");
    failing.fails.store(true, Ordering::SeqCst);
    tokio::fs::write(path("go"), "0\n").await.unwrap();
    // It is tried again.
    while failing.refused.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(status(&api, &child).await, "running");
    failing.fails.store(false, Ordering::SeqCst);
    let session = text(&child["session"], "id");
    assert_eq!(end_of(&api, &session).await, "ended");
    let events = api.get(&format!("{HERE}/sessions/{session}/events")).await;
    let types: Vec<_> =
        events["items"].as_array().unwrap().iter().map(|one| &one["type"]).collect();
    assert_eq!(types, ["session.created", "session.completed", "session.ended"]);
}

/// X-E90: a child whose end fails keeps no other one from its own.
#[tokio::test]
async fn x_e90_an_end_that_fails_stops_no_other() {
    let place = tempfile::tempdir().unwrap();
    let (api, _, failing) = daemon(&place).await;
    let (chief, lead) = (chief(&api, 36000).await.unwrap(), Run::of(&api, "lead").await);
    let fails = start(&chief, "reader").await;
    // They are looked at in the order of their ids, which are made by chance.
    let ends = loop {
        let other = start(&lead, "reader").await;
        if text(&other["session"], "run_id") > text(&fails["session"], "run_id") {
            break other;
        }
        let session = text(&other["session"], "id");
        lead.called("cancel_session", json!({ "child_session_id": session })).await;
    };
    for child in [&fails, &ends] {
        claimed(&api, &text(&child["session"], "run_id")).await.unwrap();
    }
    failing.fails.store(true, Ordering::SeqCst);
    api.runs.look_at_children(in_minutes(31)).await.unwrap();
    assert!(failing.refused.load(Ordering::SeqCst) > 0);
    assert_eq!(status(&api, &fails).await, "running");
    assert_eq!(status(&api, &ends).await, "expired");
    failing.fails.store(false, Ordering::SeqCst);
    api.runs.look_at_children(in_minutes(31)).await.unwrap();
    assert_eq!(status(&api, &fails).await, "expired");
}

/// So does a run that nobody carries out any more.
#[tokio::test]
async fn a_run_that_cannot_be_failed_keeps_no_other_waiting() {
    let place = tempfile::tempdir().unwrap();
    let (api, _, failing) = daemon(&place).await;
    let chief = chief(&api, 36000).await.unwrap();
    let fails = start(&chief, "hand").await;
    let asked = json!({ "agent_name": "hand" }).to_string();
    let other = api.send("POST", &format!("{HERE}/runs"), asked).await.succeeded();
    let other = json!({ "session": other });
    failing.fails.store(true, Ordering::SeqCst);
    api.runs.fail_unserved().await.unwrap();
    assert!(failing.refused.load(Ordering::SeqCst) > 0);
    assert_eq!(status(&api, &fails).await, "pending");
    assert_eq!(status(&api, &other).await, "failed");
    failing.fails.store(false, Ordering::SeqCst);
    api.runs.fail_unserved().await.unwrap();
    assert_eq!(status(&api, &fails).await, "failed");
}

/// A child's run of which a stream is open, for so long: its id, session and token.
async fn listening(api: &Api, seconds: u64) -> Option<(RunId, String, String, Stream)> {
    let chief = chief(api, seconds).await?;
    let begun = chief.call("spawn_session", json!({ "child_agent_id": "reader" })).await;
    let child = &begun["structuredContent"]["session"];
    let (run, session) = (child["run_id"].as_str()?, child["id"].as_str()?.to_owned());
    let token = claimed(api, run).await?;
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let request = api.world.modern("/mcp", "subscriptions/listen", filter);
    let request = request.header("authorization", &format!("Bearer {token}"));
    let mut stream = Stream::of(request.open().await);
    stream.next().await?;
    Some((RunId::parse(run)?, session, token, stream))
}

/// The token of a run opens nothing once its time is over, also while that cannot be stored; it is
/// stored as soon as it can be.
#[tokio::test]
async fn a_run_is_over_with_its_time_whatever_is_stored() {
    let place = tempfile::tempdir().unwrap();
    let (api, store, failing) = daemon(&place).await;
    // A slow machine takes longer to begin the child.
    for seconds in (4..).step_by(4) {
        failing.fails.store(false, Ordering::SeqCst);
        let Some((run, session, token, mut stream)) = listening(&api, seconds).await else {
            continue;
        };
        failing.fails.store(true, Ordering::SeqCst);
        while stream.next().await.is_some() {}
        if store.runs().find(run).await.unwrap().unwrap().ended.is_some() {
            continue;
        }
        let request = api.world.modern("/mcp/narthex", "tools/list", json!({}));
        let request = request.header("authorization", &format!("Bearer {token}"));
        assert_eq!(request.send().await.status, StatusCode::UNAUTHORIZED);
        assert!(failing.refused.load(Ordering::SeqCst) > 0);
        let keys = place.path().join("master.key");
        let other = Api::with_all(&json!({}), store.clone(), &keys).await;
        assert_eq!(end_of(&other, &session).await, "expired");
        return;
    }
}
