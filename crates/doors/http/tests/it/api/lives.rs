//! Tests of sessions and runs across failures, with second daemons on a store, and at their expiry.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use http::{Method, StatusCode};
use narthex_control::SecretRows;
use narthex_events::{EventKind, EventPlace};
use narthex_gateway::RunToken;
use narthex_model::{
    ErrorKind, ExecutorName, Role, RunId, SecretName, SecretReference, SecretSummary, SessionId,
    WorkspaceId,
};
use narthex_store::{NewRun, SessionRow, Store};
use narthex_testkit::warnings::Warnings;
use narthex_vault::{
    Backend, Doing, KeyFile, KeysInUse, Opened, Put, Rotation, RowsError, SealedBackend, Stored,
    Vault, Voucher,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    built_in::{Run, with_tools},
    kin::{HERE, claimed, daemon, end, lead, start, text},
    tenants::Tenants,
    world::{Api, shell},
};
use crate::world::{Stream, whole};

fn in_minutes(minutes: u64) -> SystemTime {
    SystemTime::now() + Duration::from_secs(minutes * 60)
}

fn run_id(of: &Value) -> RunId {
    RunId::parse(&text(of, "run_id")).unwrap()
}

/// A second daemon on the store.
async fn other(store: &Store, place: &TempDir) -> Api {
    Api::with_all(&json!({}), store.clone(), &place.path().join("master.key")).await
}

async fn puts_docs(api: &Api, schema: Value) {
    let server = json!({ "url": api.fixture_url(), "transport": "http", "config_schema": schema });
    api.send("PUT", &format!("{HERE}/mcp-servers/docs"), server.to_string()).await.succeeded();
}

async fn pending(api: &Api, session: &str) -> usize {
    let found = api.get(&format!("{HERE}/runs?status=pending&session={session}")).await;
    found["items"].as_array().unwrap().len()
}

/// O80: a session that is due to be resumed but cannot be stays due. One of two daemons resumes it
/// as soon as that is possible.
#[tokio::test]
async fn o80_a_session_that_cannot_be_resumed_is_resumed_later_by_one_daemon() {
    let warnings = Warnings::follow();
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let lead = lead(&api).await;
    let begun = start(&lead, "boss").await;
    let (boss, claim) = claimed(&api, &text(&begun["session"], "run_id")).await;
    let child = start(&boss, "reader").await;
    end(&api, &format!("{HERE}/runs/{}", text(&claim["run"], "run_id"))).await;
    let context = json!({ "type": "string", "required": true });
    puts_docs(&api, json!({ "context": context, "more": context })).await;
    end(&api, &format!("{HERE}/sessions/{}", text(&child["session"], "id"))).await;
    let owed = async || store.resting().due(in_minutes(600), 9).await.unwrap();
    // An attempt counts from its beginning; the test waits for its end.
    while !warnings.take().iter().any(|text| text.contains("could not be resumed yet")) {
        assert_eq!(owed().await.len(), 1);
    }
    assert_eq!(owed().await[0].tries, 1);
    assert_eq!(pending(&api, &boss.session).await, 0);
    puts_docs(&api, json!({ "context": context })).await;
    let other = other(&store, &place).await;
    assert_eq!(pending(&api, &boss.session).await, 0, "it is tried again after a while");
    let (one, two) = tokio::join!(api.runs.go_on(in_minutes(2)), other.runs.go_on(in_minutes(2)));
    one.and(two).unwrap();
    while pending(&api, &boss.session).await == 0 {}
    assert_eq!((pending(&api, &boss.session).await, owed().await.len()), (1, 0));
    let items = api.get(&format!("{HERE}/runs?status=pending&session={}", boss.session)).await;
    let (_, claim) = claimed(&api, &text(&items["items"][0], "run_id")).await;
    assert!(text(&claim, "prompt").contains(&text(&child["session"], "id")), "{claim}");
}

/// Secrets that cannot be opened while the test sets `fails`.
#[derive(Debug)]
pub(super) struct Failing {
    secrets: SealedBackend,
    pub(super) fails: AtomicBool,
    /// Number of times that a secret could not be opened.
    pub(super) refused: AtomicUsize,
}

impl Failing {
    /// Secrets in a store, with the key file in this folder.
    pub(super) async fn over(store: &Store, place: &TempDir) -> Arc<Self> {
        let rows = Arc::new(SecretRows::new(store.clone()));
        let keys = Arc::new(KeyFile::new(place.path().join("master.key")));
        let secrets = SealedBackend::start(rows, keys).await.unwrap();
        let (fails, refused) = (AtomicBool::new(false), AtomicUsize::new(0));
        Arc::new(Self { secrets, fails, refused })
    }
}

impl Backend for Failing {
    fn list<'a>(&'a self, workspace: &'a WorkspaceId) -> Doing<'a, Vec<SecretSummary>> {
        self.secrets.list(workspace)
    }

    fn put<'a>(&'a self, put: Put<'a>) -> Doing<'a, Stored> {
        self.secrets.put(put)
    }

    fn open<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        reference: &'a SecretReference,
    ) -> Doing<'a, Opened> {
        if self.fails.load(Ordering::SeqCst) {
            self.refused.fetch_add(1, Ordering::SeqCst);
            let away = RowsError { kind: ErrorKind::Unavailable, source: "it is away".into() };
            return Box::pin(async { Err(away.into()) });
        }
        self.secrets.open(workspace, reference)
    }

    fn clear<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        name: &'a SecretName,
        by: &'a str,
    ) -> Doing<'a, ()> {
        self.secrets.clear(workspace, name, by)
    }

    fn rotate_key(&self) -> Doing<'_, Rotation> {
        self.secrets.rotate_key()
    }

    fn keys(&self) -> Doing<'_, KeysInUse> {
        self.secrets.keys()
    }

    fn vouch<'a>(&'a self, text: &'a str) -> Doing<'a, Voucher> {
        self.secrets.vouch(text)
    }

    fn vouches<'a>(&'a self, text: &'a str, voucher: &'a Voucher) -> Doing<'a, Option<bool>> {
        self.secrets.vouches(text, voucher)
    }
}

/// Writes a child of a run directly into the store, without the steps of a caller.
pub(super) async fn has_stored_child(
    store: &Store,
    parent: RunId,
    change: impl FnOnce(&mut SessionRow, &mut NewRun<'_>),
) -> SessionId {
    let (workspace, id) = (WorkspaceId::default(), SessionId::new([9; 6]));
    let mut session = SessionRow {
        workspace: workspace.clone(),
        id,
        agent: "reader".to_owned(),
        parent: Some(parent),
        depth: 1,
        sealed: String::new(),
        created_at: SystemTime::now(),
        created_by: "admin".to_owned(),
        ended_at: None,
        how: None,
        agent_type: None,
    };
    let mut run = NewRun {
        id: RunId::new([9; 6]),
        workspace: &workspace,
        session: id,
        agent: "reader",
        parent: Some(parent),
        agent_env: &[],
        token: "hash",
        sealed: "",
        created_by: "admin",
        expires_at: in_minutes(60),
        has_sockets: false,
        driver: None,
        awaited: None,
        spawned: None,
        is_owed: false,
        suspended_at: None,
        agent_type: None,
    };
    change(&mut session, &mut run);
    assert!(store.runs().create(run, Some(&session)).await.unwrap().is_some());
    id
}

/// Stores a child of a run whose parameters cannot be opened.
async fn has_damaged_child(store: &Store, parent: RunId) -> SessionId {
    has_stored_child(store, parent, |session, run| {
        session.depth = 2;
        "1.AAAA".clone_into(&mut session.sealed);
        run.sealed = "1.AAAA";
    })
    .await
}

/// O80: if the data for resuming a parent cannot be read, its child does not end; the next attempt
/// ends the child and stores the resume. Data that can never be opened does not prevent the end.
#[tokio::test]
async fn o80_a_child_does_not_end_while_its_parents_resume_cannot_be_stored() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let lead = lead(&api).await;
    let begun = start(&lead, "boss").await;
    let (boss, claim) = claimed(&api, &text(&begun["session"], "run_id")).await;
    let child = text(&start(&boss, "reader").await["session"], "id");
    let damaged = has_damaged_child(&store, run_id(&claim["run"])).await;
    end(&api, &format!("{HERE}/runs/{}", text(&claim["run"], "run_id"))).await;
    let owed = async || store.resting().due(in_minutes(600), 9).await.unwrap().len();

    let path = format!("{HERE}/sessions/{damaged}");
    end(&api, &path).await;
    assert_eq!((api.get(&path).await["status"].clone(), owed().await), (json!("ended"), 0));

    let failing = Failing::over(&store, &place).await;
    failing.fails.store(true, Ordering::SeqCst);
    let other = Api::with_vault(store.clone(), Vault::new(failing.clone())).await;
    let path = format!("{HERE}/sessions/{child}");
    let failed = other.ask("DELETE", &path).send().await;
    failed.problem(StatusCode::SERVICE_UNAVAILABLE, "unavailable");
    assert_ne!(other.get(&path).await["status"], "ended");
    assert_eq!(owed().await, 0);
    failing.fails.store(false, Ordering::SeqCst);
    end(&other, &path).await;
    assert_eq!(other.get(&path).await["status"], "ended");
    while pending(&other, &boss.session).await == 0 {}
}

/// S18: a forged token for a run does not block the right token.
#[tokio::test]
async fn s18_a_forged_token_does_not_block_the_right_token_of_a_run() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let lead = lead(&api).await;
    let id = api.world.gateway.runs().identify(&lead.token).unwrap().id;
    let other = other(&store, &place).await;
    for _ in 0..3 {
        let wrong = RunToken::of_run(id).unwrap();
        let request = other.world.modern("/mcp/narthex", "tools/list", json!({}));
        let bearer = format!("Bearer {}", wrong.expose());
        let answer = request.header("authorization", &bearer).send().await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    }
    let right = Run { api: &other, token: lead.token.clone(), session: lead.session.clone() };
    right.called("list_spawnable_agents", json!({})).await;
}

/// A child's session ends when its run expires, claimed or not, and its parent is notified. A
/// session that a person started stays open.
#[tokio::test]
async fn a_childs_session_ends_when_its_run_expires() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    // A slow machine takes longer to start the child.
    for seconds in 2.. {
        let asked = json!({ "agent_name": "lead", "scope": { "tenant": "t1" },
                            "expires_in": seconds });
        let made = api.send("POST", &format!("{HERE}/runs"), asked.to_string()).await.succeeded();
        let (token, session) = (text(&made, "token"), text(&made, "session_id"));
        let lead = Run { api: &api, token, session };
        let begun = lead.call("spawn_session", json!({ "child_agent_id": "reader" })).await;
        let Some(child) = begun["structuredContent"]["session"]["id"].as_str() else { continue };
        let id = SessionId::parse(child).unwrap();
        let events = api.control.events().unwrap();
        let kinds = vec![EventKind::SessionEnded];
        let mut story = events.follow(&WorkspaceId::default(), id, 0, kinds);
        let ended = story.next().await.unwrap().expect("it has ended");
        assert_eq!(ended[0].envelope()["payload"]["how"], "expired");
        let seen = api.get(&format!("{HERE}/sessions/{child}")).await;
        assert_eq!(seen["status"], "ended", "{seen}");
        let above = api.get(&format!("{HERE}/sessions/{}", lead.session)).await;
        assert_eq!(above["status"], "running", "{above}");
        return;
    }
}

/// X-E85: a session starts an orchestrator once, even if two daemons on a store are called at the
/// same time. Starting it with the run's token over the API is refused too.
#[tokio::test]
async fn x_e85_two_daemons_start_one_orchestrator() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let other = other(&store, &place).await;
    for _ in 0..5 {
        let here = lead(&api).await;
        let there = Run { api: &other, token: here.token.clone(), session: here.session.clone() };
        there.called("list_spawnable_agents", json!({})).await;
        let (one, two) = tokio::join!(start(&here, "boss"), start(&there, "boss"));
        assert_eq!(one["session"]["id"], two["session"]["id"], "{one} {two}");
        let new = [&one, &two].into_iter().filter(|one| one["is_new"] == true).count();
        assert_eq!(new, 1, "{one} {two}");
        let asked = json!({ "agent_name": "boss" }).to_string();
        let request = api.world.request(Method::POST, &format!("{HERE}/runs"));
        let request = request.header("authorization", &format!("Bearer {}", here.token));
        let request = request.header("content-type", "application/json");
        let refused = request.body(whole(asked)).send().await;
        let told = refused.problem(StatusCode::CONFLICT, "conflict");
        assert!(told.contains(&text(&one["session"], "id")), "{told}");
        let listed = api.get(&format!("{HERE}/sessions?limit=100")).await;
        let of_boss = |one: &&Value| one["agent_name"] == "boss" && one["status"] == "running";
        assert_eq!(listed["items"].as_array().unwrap().iter().filter(of_boss).count(), 1);
        let ended = json!({ "child_session_id": one["session"]["id"] });
        here.called("cancel_session", ended).await;
    }
}

/// X-E84: a run below another expires with the run above it, even if that one has ended. A person
/// who resumes a child's session may set a later expiry.
#[tokio::test]
async fn x_e84_a_person_who_resumes_a_childs_session_may_extend_its_time() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let asked = json!({ "agent_name": "lead", "scope": { "tenant": "t1" }, "expires_in": 3600 });
    let made = api.send("POST", &format!("{HERE}/runs"), asked.to_string()).await.succeeded();
    let (token, session) = (text(&made, "token"), text(&made, "session_id"));
    let lead = Run { api: &api, token, session };
    let child = start(&lead, "boss").await;
    let until = async |id| store.runs().find(id).await.unwrap().unwrap().expires_at;
    let above = api.world.gateway.runs().identify(&lead.token).unwrap().id;
    let of_parent = until(above).await;
    assert_eq!(until(run_id(&child["session"])).await, of_parent);
    let (boss, _) = claimed(&api, &text(&child["session"], "run_id")).await;
    let below = start(&boss, "reader").await;
    end(&api, &format!("{HERE}/sessions/{}", lead.session)).await;
    assert_eq!(until(run_id(&below["session"])).await, of_parent);
    let asked = json!({ "type": "resume_session", "session_id": boss.session,
                        "scope": { "tenant": "t1" }, "expires_in": 7200 });
    let made = api.send("POST", &format!("{HERE}/runs"), asked.to_string()).await.succeeded();
    let resumed = RunId::parse(&text(&made, "run_id")).unwrap();
    assert!(until(resumed).await > of_parent);
}

/// A session that its agent has ended stays ended. If a daemon stops before the session's end, the
/// next daemon ends the session. A daemon that fails to end it tries again.
#[tokio::test]
async fn o80_a_session_completed_by_its_agent_ends_at_the_next_start() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let (one, two) = (lead(&api).await, lead(&api).await);
    let says_so = async |run: &Run<'_>| {
        let session = SessionId::parse(&run.session).unwrap();
        let of = api.world.gateway.runs().identify(&run.token).unwrap().id;
        let place = EventPlace { workspace: WorkspaceId::default(), session, run: Some(of) };
        let (kind, payload) = (EventKind::SessionCompleted, json!({ "summary": "all done" }));
        let events = api.control.events().unwrap();
        events.append(&place, kind, &payload, Some("session-completed")).await.unwrap();
        of
    };
    let status = async |run: &Run<'_>| {
        let seen = api.get(&format!("{HERE}/sessions/{}", run.session)).await;
        text(&seen, "status")
    };
    let said_by = says_so(&one).await;
    assert_eq!(status(&one).await, "running");
    let other = other(&store, &place).await;
    assert_eq!((status(&one).await, status(&two).await), ("ended".into(), "running".into()));
    let ended = one.events().await.into_iter().filter(|event| event["type"] == "session.ended");
    let ended: Vec<_> = ended.collect();
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(ended[0]["payload"]["by"]["id"], said_by.to_text());
    // The agent that ends its session gets the answer first.
    says_so(&two).await;
    other.runs.end_done(SystemTime::now()).await.unwrap();
    assert_eq!(status(&two).await, "running");
    other.runs.end_done(in_minutes(1)).await.unwrap();
    assert_eq!(status(&two).await, "ended");
}

/// A claim of a run that cannot start is released at once, and does not count as an attempt.
#[tokio::test]
async fn a_claim_of_a_run_that_cannot_start_is_released() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let lead = lead(&api).await;
    let child = start(&lead, "reader").await;
    let (here, id) = (WorkspaceId::default(), run_id(&child["session"]));
    let row = async || store.runs().find(id).await.unwrap().unwrap();
    let sealed = row().await.sealed;
    assert!(store.runs().freeze(&here, id, "no such thing").await.unwrap());
    let path = format!("{HERE}/runs/{id}/claim");
    for _ in 0..2 {
        let refused = api.send("POST", &path, r#"{"lease_seconds": 3600}"#).await;
        assert!(refused.status.is_server_error(), "{}", refused.text());
        let waiting = row().await.waiting.unwrap();
        assert!(waiting.is_free(SystemTime::now()) && waiting.attempts == 0, "{waiting:?}");
    }
    assert!(store.runs().freeze(&here, id, &sealed).await.unwrap());
    let (run, _) = claimed(&api, &id.to_text()).await;
    run.called("emit_status", json!({ "status": "starting" })).await;
}

/// A run that waits for an executor fails with a reason when no daemon has that executor for its
/// workspace any more. No other executor claims it in the meantime.
#[tokio::test]
async fn waiting_runs_of_a_removed_executor_fail() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let hand = with_tools(json!({ "executor": "crew" }));
    api.send("PUT", &format!("{HERE}/agents/hand"), hand).await.succeeded();
    let asked = json!({ "agent_name": "hand" }).to_string();
    let made = api.send("POST", &format!("{HERE}/runs"), asked).await.succeeded();
    let path = format!("{HERE}/runs/{}", text(&made, "run_id"));
    let status = async || text(&api.get(&path).await, "status");
    let (crew, here) = (ExecutorName::new("crew").unwrap(), WorkspaceId::default());
    let hour = Duration::from_secs(3600);
    api.runs.serve("one", &[(crew.clone(), here.clone())], hour).await.unwrap();
    api.runs.fail_unserved().await.unwrap();
    assert_eq!(status().await, "pending");
    let team = WorkspaceId::new("team").unwrap();
    assert!(api.runs.awaiting(&crew, &[team].into(), 9).await.unwrap().is_empty());
    let waiting = api.runs.awaiting(&crew, &[here].into(), 9).await.unwrap();
    assert_eq!(waiting.len(), 1);
    let claim = api.send("POST", &format!("{path}/claim"), "{}").await;
    claim.problem(StatusCode::CONFLICT, "conflict");
    api.runs.serve("one", &[], hour).await.unwrap();
    api.runs.fail_unserved().await.unwrap();
    assert_eq!(status().await, "failed");
    let events = api.get(&format!("{HERE}/sessions/{}/events", text(&made, "session_id"))).await;
    let failed = &events["items"][1];
    assert_eq!(failed["type"], "session.failed", "{events}");
    let reason = text(&failed["payload"], "reason");
    assert!(reason.contains("`crew`") && reason.contains("executors.crew.workspaces"), "{reason}");
}

/// X-E89, X-E90: an open stream of a child, and messages of its parent, are no signs of life. A
/// call of the child is one.
#[tokio::test]
async fn x_e90_only_calls_of_a_child_count_as_signs_of_life() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let lead = lead(&api).await;
    let status = async |child: &Value| {
        let asked = json!({ "child_session_id": child["session"]["id"] });
        text(&lead.called("read_child_output", asked).await["child"], "status")
    };
    let begin = async || {
        let child = start(&lead, "reader").await;
        let path = format!("{HERE}/runs/{}/claim", text(&child["session"], "run_id"));
        let claim = api.send("POST", &path, r#"{"lease_seconds": 36000}"#).await.succeeded();
        (child, text(&claim["run"], "token"))
    };
    let (listens, token) = begin().await;
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let request = api.world.modern("/mcp", "subscriptions/listen", filter);
    let request = request.header("authorization", &format!("Bearer {token}"));
    let mut stream = Stream::of(request.open().await);
    stream.next().await.expect("it is acknowledged");
    let said = json!({ "child_session_id": listens["session"]["id"], "text": "still there?" });
    lead.called("inject_message", said).await;
    api.runs.look_at_children(in_minutes(29)).await.unwrap();
    assert_eq!(status(&listens).await, "running");
    api.runs.look_at_children(in_minutes(33)).await.unwrap();
    assert_eq!(status(&listens).await, "expired");
    while stream.next().await.is_some() {}

    // If a child waited long for its claim, that time does not count as silence.
    let (calls, token) = begin().await;
    let view = api.world.gateway.runs().identify(&token).unwrap();
    assert_eq!(view.last_act(SystemTime::now()), None);
    let (token, session) = (token, text(&calls["session"], "id"));
    let run = Run { api: &api, token, session };
    run.called("list_spawnable_agents", json!({})).await;
    assert!(view.last_act(SystemTime::now()).is_some());
}

/// R-E36: a second run of a session shares the mounts of the first one, and the run that ends first
/// leaves them to the other. Programs are not shared, unless their server is set to be shared.
#[tokio::test]
async fn r_e36_a_second_run_of_a_session_reuses_the_mounts_of_the_first() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let script = shell()["args"][1].as_str().unwrap().replace("$${", "${");
    let path = place.path().join("shell.sh");
    fs_err::write(&path, script).unwrap();
    let own = json!({ "command": "sh", "args": [path] });
    let mut pool = own.clone();
    pool["isolation"] = json!("shared");
    for (name, program) in [("own", own), ("pool", pool)] {
        let path = format!("{HERE}/mcp-servers/{name}");
        api.send("PUT", &path, program.to_string()).await.succeeded();
    }
    let docs = json!({ "ref": "docs", "config": { "context": "${scope.tenant}" } });
    let servers = json!({ "docs": docs, "own": { "ref": "own" }, "pool": { "ref": "pool" } });
    let agent = with_tools(json!({ "mcpServers": servers }));
    api.send("PUT", &format!("{HERE}/agents/worker"), agent).await.succeeded();
    let asked = json!({ "agent_name": "worker", "scope": { "tenant": "t1" } });
    let first = api.send("POST", &format!("{HERE}/runs"), asked.to_string()).await.succeeded();
    let session = text(&first, "session_id");
    let beside = json!({ "type": "resume_session", "session_id": session,
                         "scope": { "tenant": "t1" } });
    let second = api.send("POST", &format!("{HERE}/runs"), beside.to_string()).await.succeeded();
    assert_eq!(second["former_pids"], json!([1]));
    let told = async |kind: &str| {
        let path = format!("{HERE}/sessions/{session}/events?type={kind}");
        let page = api.get(&path).await;
        let items = page["items"].as_array().unwrap().clone();
        items.into_iter().map(|event| event["payload"].clone()).collect::<Vec<_>>()
    };
    let of = |event: &Value, what: &str| (text(event, "path"), event[what] == true);
    let all = |run: u64, [docs, own, pool]: [bool; 3]| {
        [("docs", docs), ("own", own), ("pool", pool)]
            .map(|(name, is_so)| (format!("/mnt/mcp/{run}-{name}"), is_so))
    };
    let mut reused: Vec<_> =
        told("mcp.mount").await.iter().map(|event| of(event, "reused")).collect();
    reused.sort();
    let wanted = [all(1, [false, false, false]), all(2, [true, false, true])];
    assert_eq!(reused, wanted.as_flattened());
    let wanted = [all(1, [true, false, true]), all(2, [false, false, false])];
    for (run, ended) in [&first, &second].into_iter().zip(1..) {
        end(&api, &format!("{HERE}/runs/{}", text(run, "run_id"))).await;
        while told("mcp.unmount").await.len() < 3 * ended {}
    }
    let mut used: Vec<_> =
        told("mcp.unmount").await.iter().map(|event| of(event, "still_used")).collect();
    used.sort();
    assert_eq!(used, wanted.as_flattened());
}

/// Only a caller resumes a suspended session, whatever its children do.
#[tokio::test]
async fn r_m23_only_a_caller_resumes_a_suspended_session() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let lead = lead(&api).await;
    let begun = start(&lead, "boss").await;
    let (boss, _) = claimed(&api, &text(&begun["session"], "run_id")).await;
    let child = start(&boss, "reader").await;
    let path = format!("{HERE}/sessions/{}/suspend", boss.session);
    api.send("POST", &path, String::new()).await.succeeded();
    let seen = api.get(&format!("{HERE}/sessions/{}", text(&child["session"], "id"))).await;
    assert_eq!(seen["status"], "running", "its children go on");
    end(&api, &format!("{HERE}/sessions/{}", text(&child["session"], "id"))).await;
    assert!(store.resting().due(in_minutes(600), 9).await.unwrap().is_empty());
    api.runs.go_on(in_minutes(600)).await.unwrap();
    assert_eq!(pending(&api, &boss.session).await, 0);
    let path = format!("{HERE}/sessions/{}/resume", boss.session);
    let resumed = api.send("POST", &path, "{}".to_owned()).await.succeeded();
    assert_eq!(resumed["session_id"], json!(boss.session));
}

/// S2: only operators resume a session that works in a folder of the host.
#[tokio::test]
async fn s2_only_operators_resume_a_session_with_a_folder_of_the_host() {
    let tenants = Tenants::with(&["team"]).await;
    let at = |rest: &str| format!("/api/workspaces/team/{rest}");
    tenants.api.send("POST", &at("agents"), r#"{"name": "reader"}"#).await.succeeded();
    let runner = tenants.token("team", Role::Runner);
    let folder = tempfile::tempdir().unwrap();
    for (asked, status) in [
        (json!({ "agent_name": "reader", "project_dir": folder.path() }), StatusCode::FORBIDDEN),
        (json!({ "agent_name": "reader" }), StatusCode::CREATED),
    ] {
        let run = tenants.api.send("POST", &at("runs"), asked.to_string()).await.succeeded();
        let session = text(&run, "session_id");
        let path = |what: &str| at(&format!("sessions/{session}/{what}"));
        let beside = json!({ "type": "resume_session", "session_id": session }).to_string();
        assert_eq!(tenants.send(runner, "POST", &at("runs"), &beside).await.status, status);
        tenants.send(runner, "POST", &path("suspend"), "").await.succeeded();
        assert_eq!(tenants.send(runner, "POST", &path("resume"), "{}").await.status, status);
        if status == StatusCode::FORBIDDEN {
            tenants.api.send("POST", &path("resume"), "{}".to_owned()).await.succeeded();
        }
    }
}
