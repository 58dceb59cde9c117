//! Tests of agents that start agents, and of the executors that carry them out.

use std::time::{Duration, SystemTime};

use http::StatusCode;
use narthex_control::By;
use narthex_events::{EventKind, EventPlace};
use narthex_model::{ErrorKind, PrincipalId, RunId, SessionId, WorkspaceId};
use narthex_runs::Creator;
use narthex_store::Store;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::{
    built_in::{Run, with_tools},
    world::Api,
};

const HERE: &str = "/api/workspaces/default";

/// A daemon with `lead`, whose agent may start `reader`, and with `loner`, which no agent may
/// start.
async fn daemon(place: &TempDir) -> (Api, Store) {
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let keys = place.path().join("master.key");
    let api = Api::with_all(&json!({}), store.clone(), &keys).await;
    for (name, agent) in [
        ("reader", json!({})),
        ("loner", json!({})),
        ("lead", json!({ "agent_type": "orchestrator", "spawnable_agents": ["reader"] })),
    ] {
        let path = format!("{HERE}/agents/{name}");
        api.send("PUT", &path, with_tools(agent)).await.succeeded();
    }
    (api, store)
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap().to_owned()
}

/// The run that waits in this session, claimed by an operator.
async fn claimed<'a>(api: &'a Api, child: &Value) -> (Run<'a>, Value) {
    let path = format!("{HERE}/runs/{}/claim", text(child, "run_id"));
    let claim = api.send("POST", &path, "{}").await.succeeded();
    let (token, session) = (text(&claim["run"], "token"), text(&claim["run"], "session_id"));
    (Run { api, token, session }, claim)
}

async fn start(lead: &Run<'_>, agent: &str) -> Value {
    let asked = json!({ "child_agent_id": agent, "prompt": "count the words", "model": "small" });
    lead.called("spawn_session", asked).await["session"].clone()
}

async fn granted(api: &Api, duration: &str) {
    let grant = json!({ "grant_type": "spawn", "details": { "child_agent_id": "loner" },
                        "scope": duration, "agent_subject_id": "lead" });
    api.send("POST", &format!("{HERE}/grants"), grant.to_string()).await.succeeded();
}

/// X-M3: a parent that starts a child learns that no platform claims runs here, until one has
/// claimed. If only an operator can mend a fault, a model learns that there is a fault, but nothing
/// about scopes.
#[tokio::test]
async fn x_m3_a_parent_run_learns_whether_a_platform_claims_its_child() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let lead = Run::of(&api, "lead").await;
    let asked = json!({ "child_agent_id": "reader", "prompt": "go" });
    let first = lead.called("spawn_session", asked.clone()).await;
    assert_eq!(first["lacks_platform"], true, "{first}");
    claimed(&api, &first["session"]).await;
    let second = lead.called("spawn_session", asked.clone()).await;
    assert_eq!(second["lacks_platform"], false, "{second}");
    let server = json!({ "url": api.fixture_url(), "transport": "http",
                         "config_schema": { "context_id": { "required": true } } });
    api.send("PUT", &format!("{HERE}/mcp-servers/docs"), server.to_string()).await.succeeded();
    let reader = json!({ "mcpServers": { "docs": { "ref": "docs",
        "config": { "context_id": "${scope.context_id}" } } } });
    api.send("PUT", &format!("{HERE}/agents/reader"), reader.to_string()).await.succeeded();
    let error = lead.refused("spawn_session", asked).await;
    let told = error.to_string();
    assert!(told.contains("a human must repair it"), "{told}");
    assert!(!told.contains("context_id") && !told.contains("scope"), "{told}");
}

/// X-M55, D28: a run that may not start an agent learns how to ask a human. The answer names the
/// asking tool as the run's endpoint names it, or not at all if the run lacks it.
#[tokio::test]
async fn d28_a_refused_spawn_names_request_grant_only_if_the_run_has_that_tool() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    api.send("PUT", &format!("{HERE}/agents/other"), "{}").await.succeeded();
    for (tools, asking) in [
        (json!(["spawn_session", "request_grant"]), Some("mcp__narthex__request_grant")),
        (json!(["spawn_session"]), None),
    ] {
        let lead = json!({ "agent_type": "orchestrator", "builtin": tools });
        api.send("PUT", &format!("{HERE}/agents/lead"), lead.to_string()).await.succeeded();
        let lead = Run::of(&api, "lead").await;
        let arguments = json!({ "child_agent_id": "other" });
        let params = json!({ "name": "mcp__narthex__spawn_session", "arguments": arguments });
        let answer = lead.ask("/mcp", "tools/call", params).await.json();
        let error = &answer["result"]["structuredContent"]["error"];
        assert_eq!(error["kind"], "permission_required", "{answer}");
        let call = &error["details"]["ask"]["calls"][0];
        assert_eq!(call["name"].as_str(), asking, "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(text.contains("request_grant"), asking.is_some(), "{text}");
        if let Some(asking) = asking {
            let how =
                format!("`{asking}` (grant_type spawn, details {{\"child_agent_id\":\"other\"}})");
            assert!(text.contains(&how), "{text}");
            let name = asking.trim_start_matches("mcp__narthex__");
            let asked = lead.called(name, call["arguments"].clone()).await;
            assert_eq!(asked["status"], "pending", "{asked}");
        }
    }
}

/// X-M3, X-E84, X-E92, X-D10: an agent starts a child, which waits until a platform claims it. Both
/// exchange messages, and the parent ends the child.
#[tokio::test]
async fn x_m3_an_agent_starts_a_child_and_follows_the_child() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let lead = Run::of(&api, "lead").await;
    let listed = lead.called("list_spawnable_agents", json!({})).await;
    assert_eq!(
        listed["spawnable"],
        json!([{ "id": "reader", "slug": "reader", "name": "reader" }])
    );
    let child = start(&lead, "reader").await;
    assert_eq!(child["status"], "pending");
    assert_eq!(child["parent_session_id"], lead.session.as_str());
    assert_eq!(child["parent_agent_id"], "lead");
    let pending = api.get(&format!("{HERE}/runs?status=pending")).await;
    assert_eq!(pending["items"].as_array().unwrap().len(), 1, "{pending}");
    assert_eq!(pending["items"][0]["run_id"], child["run_id"]);
    assert_eq!(pending["items"][0]["claim"]["model"], "small");

    let (run, claim) = claimed(&api, &child).await;
    assert_eq!((&claim["prompt"], &run.session), (&json!("count the words"), &text(&child, "id")));
    assert_eq!(api.get(&format!("{HERE}/runs?status=pending")).await["items"], json!([]));
    run.called("emit_status", json!({ "status": "done" })).await;
    let child_id = json!({ "child_session_id": child["id"] });
    let output = lead.called("read_child_output", child_id.clone()).await;
    assert_eq!(output["child"]["status"], "running");
    let types = |output: &Value| {
        let events = output["events"].as_array().unwrap().iter();
        events.map(|event| text(event, "type")).collect::<Vec<_>>()
    };
    assert_eq!(types(&output), ["session.created", "agent.status"]);
    // A limit out of range counts as the nearest allowed one.
    let first = json!({ "child_session_id": child["id"], "limit": -3 });
    let first = lead.called("read_child_output", first).await;
    assert_eq!((types(&first).len(), &first["next_seq"]), (1, &json!(1)));

    let said = json!({ "child_session_id": child["id"], "text": "faster", "message_id": "m1" });
    let sent = lead.called("inject_message", said.clone()).await;
    assert_eq!(lead.called("inject_message", said).await["sequence"], sent["sequence"]);
    let events = run.events().await;
    let heard: Vec<_> = events.iter().filter(|one| one["type"] == "user.message").collect();
    assert_eq!(heard.len(), 1, "X-E93: one message is one");
    assert_eq!(heard[0]["payload"]["from_session_id"], lead.session.as_str());
    run.called("message_caller", json!({ "summary": "42 words" })).await;
    let told = lead.events().await;
    let told = told.iter().find(|one| one["type"] == "user.message").unwrap();
    assert_eq!(told["payload"]["text"], "42 words");
    assert_eq!(told["payload"]["from_session_id"], child["id"]);

    // X-E92: the child ends once.
    let ending = json!({ "child_session_id": child["id"], "reason": "enough" });
    let ended = lead.called("cancel_session", ending.clone()).await;
    assert_eq!(
        (&ended["cancelled"], &ended["session"]["status"]),
        (&json!(true), &"cancelled".into())
    );
    assert!(ended["session"]["completed_at"].is_string());
    assert_eq!(lead.called("cancel_session", ending).await["cancelled"], false);
    let output = lead.called("read_child_output", child_id).await;
    assert_eq!(output["child"]["status"], "cancelled");
    let types = types(&output);
    let count = |kind: &str| types.iter().filter(|one| *one == kind).count();
    assert_eq!((count("session.cancelled_by_parent"), count("session.ended")), (1, 1), "{types:?}");
    let late = json!({ "child_session_id": child["id"], "text": "still there?" });
    assert_eq!(lead.refused("inject_message", late).await["details"]["code"], "child_not_live");
}

/// S18, X-E84: a session can use only its own direct children. Any other id is answered as absent:
/// its own, another session's, a grandchild's, or an invalid one.
#[tokio::test]
async fn s18_a_session_can_use_only_its_direct_children() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let (lead, other) = (Run::of(&api, "lead").await, Run::of(&api, "lead").await);
    let child = start(&lead, "reader").await;
    let (run, _) = claimed(&api, &child).await;
    let tried = |who: &'static str, id: String| (who, id);
    for (who, id) in [
        tried("other", text(&child, "id")),
        tried("other", other.session.clone()),
        tried("other", "ses_000000000000".to_owned()),
        tried("child", lead.session.clone()),
        tried("child", run.session.clone()),
        tried("child", "no id".to_owned()),
    ] {
        let run = if who == "other" { &other } else { &run };
        for (tool, more) in [
            ("read_child_output", json!({})),
            ("inject_message", json!({ "text": "mine now" })),
            ("cancel_session", json!({})),
        ] {
            let mut asked = json!({ "child_session_id": id });
            asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let error = run.refused(tool, asked).await;
            assert_eq!(error["details"]["code"], "not_your_child", "{tool} {error}");
            let message = error["message"].as_str().unwrap().replace(&id, "ID");
            assert_eq!(message, "there is no child `ID` of this session");
        }
    }
    assert_eq!(run.events().await.len(), 1, "nothing came of it");
    // A child whose agent may start no agent.
    let error = run.refused("spawn_session", json!({ "child_agent_id": "reader" })).await;
    assert_eq!(error["kind"], "permission_required");
    assert_eq!(error["details"]["code"], "permission_required");
    assert_eq!(error["details"]["grant_type"], "spawn");
    // An agent that does not exist is answered like one that the run may not start.
    let error = lead.refused("spawn_session", json!({ "child_agent_id": "nobody" })).await;
    assert_eq!(error["details"]["code"], "permission_required");
    let error = lead.refused("message_caller", json!({ "summary": "hello?" })).await;
    assert_eq!(error["details"]["code"], "no_parent");
    let path = format!("{HERE}/sessions/{}", lead.session);
    assert_eq!(api.ask("DELETE", &path).send().await.status, StatusCode::NO_CONTENT);
    let error = run.refused("message_caller", json!({ "summary": "hello?" })).await;
    assert_eq!(error["details"]["code"], "parent_not_live");
}

/// X-M54, D25, X-M3: of a hundred concurrent calls, one uses up a grant for a single use. The
/// others are refused, and so are all later ones.
#[tokio::test]
async fn x_m54_a_spawn_grant_for_a_single_use_starts_one_child() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let lead = Run::of(&api, "lead").await;
    let view = api.world.gateway.runs().identify(&lead.token).unwrap();
    let asked = json!({ "child_agent_id": "loner" });
    assert_eq!(lead.refused("spawn_session", asked.clone()).await["kind"], "permission_required");
    granted(&api, "once").await;
    let listed = lead.called("list_spawnable_agents", json!({})).await;
    assert_eq!(listed["spawnable"].as_array().unwrap().len(), 2, "{listed}");
    let runs = api.runs.clone();
    let mut spawning = JoinSet::new();
    for _ in 0..100 {
        let (runs, view) = (runs.clone(), view.clone());
        let request = json!({ "agent_name": "loner" });
        spawning
            .spawn(async move { runs.spawn(&view, "loner", &request, Default::default()).await });
    }
    let mut begun = 0;
    for spawned in spawning.join_all().await {
        match spawned {
            Ok(_) => begun += 1,
            Err(error) => assert_eq!(error.code(), "permission_required", "{error}"),
        }
    }
    assert_eq!(begun, 1);
    assert_eq!(lead.refused("spawn_session", asked.clone()).await["kind"], "permission_required");
    let grants = api.get(&format!("{HERE}/grants")).await;
    assert!(grants["items"][0]["consumed_at"].is_string(), "{grants}");
    granted(&api, "persistent").await;
    lead.called("spawn_session", asked.clone()).await;
    lead.called("spawn_session", asked).await;
}

/// A child that fails to start uses up no grant.
#[tokio::test]
async fn a_child_that_fails_to_start_uses_no_grant() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let lead = Run::of(&api, "lead").await;
    granted(&api, "once").await;
    let unfit = json!({ "params_schema": { "topic": { "type": "string", "required": true } } });
    let path = format!("{HERE}/agents/loner");
    api.send("PUT", &path, unfit.to_string()).await.succeeded();
    let error = lead.refused("spawn_session", json!({ "child_agent_id": "loner" })).await;
    assert_eq!(error["kind"], "invalid_arguments", "{error}");
    let asked = json!({ "child_agent_id": "loner", "params": { "topic": "birds" } });
    lead.called("spawn_session", asked.clone()).await;
    assert_eq!(lead.refused("spawn_session", asked).await["kind"], "permission_required");
}

/// Number of wakes of this kind that the platform has sent to a session.
async fn woken(run: &Run<'_>, kind: &str) -> usize {
    let events = run.events().await;
    let of_kind = |one: &&Value| one["type"] == "session.wake" && one["payload"]["kind"] == kind;
    events.iter().filter(of_kind).count()
}

fn in_minutes(minutes: u64) -> SystemTime {
    SystemTime::now() + Duration::from_secs(minutes * 60)
}

/// X-E88, X-E89, X-D10: an orchestrator receives one message for each warning level of a silent
/// child. Other agents receive none.
#[tokio::test]
async fn x_e89_an_orchestrator_gets_one_message_for_each_stage_of_a_silent_child() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let worker = with_tools(json!({ "spawnable_agents": ["reader"] }));
    api.send("PUT", &format!("{HERE}/agents/worker"), worker).await.succeeded();
    let (lead, worker) = (Run::of(&api, "lead").await, Run::of(&api, "worker").await);
    let child = start(&lead, "reader").await;
    start(&worker, "reader").await;
    for (minutes, told) in [(4, 0), (6, 1), (6, 1), (12, 2), (25, 3), (26, 3), (45, 4), (90, 5)] {
        api.runs.look_at_children(in_minutes(minutes)).await.unwrap();
        assert_eq!(woken(&lead, "watchdog").await, told, "after {minutes} minutes");
    }
    assert_eq!(woken(&worker, "watchdog").await, 0);
    // Messages to the child do not count as signs of life; one from the child restarts the watch.
    let said = json!({ "child_session_id": child["id"], "text": "hello?" });
    lead.called("inject_message", said).await;
    api.runs.look_at_children(in_minutes(6)).await.unwrap();
    assert_eq!(woken(&lead, "watchdog").await, 5);
    let session = SessionId::parse(&text(&child, "id")).unwrap();
    let place = EventPlace { workspace: WorkspaceId::default(), session, run: None };
    let events = api.control.events().unwrap();
    events.append(&place, EventKind::AgentStatus, &json!({}), None).await.unwrap();
    api.runs.look_at_children(in_minutes(6)).await.unwrap();
    assert_eq!(woken(&lead, "watchdog").await, 6);
    // No executor has claimed the child, so it does not end.
    api.runs.look_at_children(in_minutes(60)).await.unwrap();
    assert_eq!(woken(&lead, "state_change").await, 0);
    lead.called("cancel_session", json!({ "child_session_id": child["id"] })).await;
    assert_eq!(woken(&lead, "state_change").await, 1);
}

/// X-E90, X-E91: a claimed worker that is silent for half an hour ends, unless it has announced a
/// longer quiet time. The newest announcement counts.
#[tokio::test]
async fn x_e90_a_silent_worker_expires_after_half_an_hour_or_its_announced_quiet_time() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let lead = Run::of(&api, "lead").await;
    let child = start(&lead, "reader").await;
    let path = format!("{HERE}/runs/{}/claim", text(&child, "run_id"));
    api.send("POST", &path, r#"{"lease_seconds": 36000}"#).await.succeeded();
    let id = RunId::parse(&text(&child, "run_id")).unwrap();
    let view = api.world.gateway.runs().get(id).unwrap();
    let status = async || {
        let asked = json!({ "child_session_id": child["id"] });
        text(&lead.called("read_child_output", asked).await["child"], "status")
    };
    api.runs.expect_quiet(&view, Some(Duration::from_secs(3600))).await.unwrap();
    api.runs.look_at_children(in_minutes(40)).await.unwrap();
    assert_eq!((status().await.as_str(), woken(&lead, "watchdog").await), ("running", 0));
    assert_eq!(api.runs.expect_quiet(&view, None).await.unwrap(), None);
    api.runs.look_at_children(in_minutes(29)).await.unwrap();
    assert_eq!((status().await.as_str(), woken(&lead, "watchdog").await), ("running", 1));
    api.runs.look_at_children(in_minutes(33)).await.unwrap();
    assert_eq!((status().await.as_str(), woken(&lead, "state_change").await), ("expired", 1));
    let error = lead.refused("expect_quiet_for", json!({ "seconds": 60 })).await;
    assert_eq!(error["details"]["code"], "no_parent");
    let (run, _) = claimed(&api, &start(&lead, "reader").await).await;
    let noted = run.called("expect_quiet_for", json!({ "seconds": 60, "reason": "a build" })).await;
    assert!(noted["quiet_until"].is_string(), "{noted}");
    let cleared = run.called("expect_quiet_for", json!({ "seconds": -1 })).await;
    assert_eq!(cleared["quiet_until"], Value::Null);
}

/// X-E81: a run's token carries the grants of its driver, so no other human may claim the run.
#[tokio::test]
async fn x_e81_only_the_driver_claims_a_run() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let lead = Run::of(&api, "lead").await;
    let child = start(&lead, "reader").await;
    let (here, id) = (WorkspaceId::default(), text(&child, "run_id"));
    let other = PrincipalId::new("prn_00000000000000aa").unwrap();
    let other = Creator::Member(By::system(), Some(other));
    let view = api.world.gateway.runs().identify(&lead.token).unwrap();
    for by in [other, Creator::Run(view)] {
        let refused = api.runs.claim(&here, &id, b"{}", &by).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Denied);
    }
    let driver = Creator::Member(By::system(), Some(PrincipalId::local_admin()));
    api.runs.claim(&here, &id, b"{}", &driver).await.unwrap();
}

/// X-M3: costs that runners report add up for the session, for its children, and for the agent. A
/// repeated report counts once, and no run can report costs.
#[tokio::test]
async fn costs_of_sessions_and_their_children_add_up() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let lead = Run::of(&api, "lead").await;
    let child = start(&lead, "reader").await;
    let (run, _) = claimed(&api, &child).await;
    let path = |session: &str| format!("{HERE}/sessions/{session}/usage");
    let report = json!({ "id": "t1", "model": "small", "input_tokens": 10, "output_tokens": 4,
                         "cost_micros": 300, "currency": "EUR" });
    for _ in 0..2 {
        let kept = api.send("POST", &path(&lead.session), report.to_string()).await.succeeded();
        assert_eq!(kept, report);
    }
    let mut other = report.clone();
    other["cost_micros"] = json!(1);
    let taken = api.send("POST", &path(&lead.session), other.to_string()).await;
    taken.problem(StatusCode::CONFLICT, "conflict");
    // For another session, the same id names another report.
    api.send("POST", &path(&run.session), other.to_string()).await.succeeded();
    let large = json!({ "id": "t2", "model": "large", "input_tokens": 1, "cost_micros": 5 });
    api.send("POST", &path(&run.session), large.to_string()).await.succeeded();
    let unknown = api.send("POST", &path("ses_000000000000"), large.to_string()).await;
    unknown.problem(StatusCode::NOT_FOUND, "not_found");
    let request = api.world.request(http::Method::POST, &path(&run.session));
    let refused = request.header("authorization", &format!("Bearer {}", run.token)).send().await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text());

    let own = lead.called("get_session_cost", json!({})).await;
    let euro = |cost: u64, input: u64, output: u64| {
        json!({ "currency": "EUR", "cost_micros": cost, "input_tokens": input,
                "output_tokens": output })
    };
    assert_eq!(
        (&own["totals"], &own["session_id"]),
        (&json!([euro(300, 10, 4)]), &json!(lead.session))
    );
    let tree = lead.called("get_session_tree_cost", json!({})).await;
    let dollar =
        json!({ "currency": "USD", "cost_micros": 5, "input_tokens": 1, "output_tokens": 0 });
    assert_eq!(tree["totals"], json!([euro(301, 20, 8), dollar]));
    assert_eq!(tree["models"].as_array().unwrap().len(), 2, "{tree}");
    let below = run.called("get_session_tree_cost", json!({})).await;
    assert_eq!(below["totals"], json!([euro(1, 10, 4), dollar]));
    start(&lead, "reader").await;
    for window in ["24h", "7d", "30d", "all"] {
        let agent = run.called("get_agent_cost", json!({ "window": window })).await;
        assert_eq!((&agent["totals"], &agent["agent_id"]), (&below["totals"], &json!("reader")));
    }
    let second = Run::of(&api, "lead").await;
    assert_eq!(second.called("get_session_cost", json!({})).await["totals"], json!([]));
    assert_eq!(second.called("get_agent_cost", json!({})).await["totals"], own["totals"]);
}

/// A session may have 32 active children. When one ends, another may start.
#[tokio::test]
async fn a_session_has_at_most_32_active_children() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let lead = Run::of(&api, "lead").await;
    let mut last = Value::Null;
    for _ in 0..32 {
        last = start(&lead, "reader").await;
    }
    let asked = json!({ "child_agent_id": "reader" });
    let error = lead.refused("spawn_session", asked.clone()).await;
    assert_eq!(error["details"]["code"], "too_many_children", "{error}");
    let ended = json!({ "child_session_id": last["id"] });
    assert_eq!(lead.called("cancel_session", ended).await["cancelled"], true);
    lead.called("spawn_session", asked.clone()).await;
    assert_eq!(lead.refused("spawn_session", asked).await["kind"], "limit_exceeded");
}

/// X-M3: one executor at a time claims a waiting run. After the run was claimed anew, the token of
/// the expired claim is refused.
#[tokio::test]
async fn a_waiting_run_is_claimed_by_one_executor_at_a_time() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let lead = Run::of(&api, "lead").await;
    let child = start(&lead, "reader").await;
    let runs = api.runs.clone();
    let mut claiming = JoinSet::new();
    for _ in 0..20 {
        let (runs, id) = (runs.clone(), text(&child, "run_id"));
        claiming.spawn(async move {
            let by = Creator::Member(By::system(), None);
            runs.claim(&WorkspaceId::default(), &id, b"{}", &by).await.is_ok()
        });
    }
    let claims = claiming.join_all().await.into_iter().filter(|done| *done).count();
    assert_eq!(claims, 1);
    let path = format!("{HERE}/runs/{}/claim", text(&child, "run_id"));
    api.send("POST", &path, "{}").await.problem(StatusCode::CONFLICT, "conflict");
    let forged = r#"{"claim": "clm_000000000000000000000000"}"#;
    api.send("POST", &path, forged).await.problem(StatusCode::CONFLICT, "conflict");

    let other = start(&lead, "reader").await;
    let (first, claim) = claimed(&api, &other).await;
    let path = format!("{HERE}/runs/{}/claim", text(&other, "run_id"));
    let held = json!({ "claim": claim["claim"], "lease_seconds": 3600 }).to_string();
    let longer = api.send("POST", &path, held.clone()).await.succeeded();
    assert!(text(&longer, "claimed_until") > text(&claim, "claimed_until"));
    first.called("emit_status", json!({ "status": "starting" })).await;
    // The claim has expired.
    let id = RunId::parse(&text(&other, "run_id")).unwrap();
    let past = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    let name = text(&claim, "claim");
    assert!(store.runs().hold(&WorkspaceId::default(), id, &name, past).await.unwrap());
    api.send("POST", &path, held).await.problem(StatusCode::CONFLICT, "conflict");
    let (second, _) = claimed(&api, &other).await;
    second.called("emit_status", json!({ "status": "starting" })).await;
    let status = |run: &Run<'_>| {
        let request = api.world.modern("/mcp/narthex", "tools/list", json!({}));
        request.header("authorization", &format!("Bearer {}", run.token)).send()
    };
    assert_eq!(status(&first).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(status(&second).await.status, StatusCode::OK);
    // A run that its creator carries out cannot be claimed, nor can a run that does not exist.
    let own = api.get(&format!("{HERE}/runs?session={}", lead.session)).await;
    let own = text(&own["items"][0], "run_id");
    let path = format!("{HERE}/runs/{own}/claim");
    api.send("POST", &path, "{}").await.problem(StatusCode::CONFLICT, "conflict");
    let path = format!("{HERE}/runs/run_000000000000/claim");
    api.send("POST", &path, "{}").await.problem(StatusCode::NOT_FOUND, "not_found");
    // A run cannot claim runs, not even that of its child.
    let path = format!("{HERE}/runs/{}/claim", text(&child, "run_id"));
    let request = api.world.request(http::Method::POST, &path);
    let refused = request.header("authorization", &format!("Bearer {}", lead.token)).send().await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text());
}

/// S14, D5: a rule that forbids the tool for starting agents, or requires approval for it, also
/// applies when a run creates a child with its own token over the API. Both ways refuse with the
/// same words, before anything else is checked, and rules see the tool's arguments. A grant for a
/// single use permits one child.
#[tokio::test]
async fn s14_rules_on_starting_agents_apply_to_the_tool_and_to_the_api() {
    const TOOL: &str = r#"resource == Tool::"narthex/spawn_session""#;
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let lead = Run::of(&api, "lead").await;
    let by_token = async |asked: Value| {
        let request = api.ask("POST", &format!("{HERE}/runs"));
        let request = request.header("authorization", &format!("Bearer {}", lead.token));
        let request = request.header("content-type", "application/json");
        request.body(crate::world::whole(asked.to_string())).send().await
    };
    let rules = async |rules: String| {
        let rules = json!({ "rules": rules }).to_string();
        api.send("PUT", &format!("{HERE}/policy"), rules).await.succeeded();
    };
    let reader = || json!({ "agent_name": "reader", "prompt": "count" });
    let tool = || json!({ "child_agent_id": "reader", "prompt": "count" });
    let alike = async || {
        let answer = by_token(reader()).await;
        answer.problem(StatusCode::FORBIDDEN, "denied");
        let (told, refused) = (answer.json(), lead.refused("spawn_session", tool()).await);
        assert_eq!(told["code"], "permission_required", "{told}");
        assert_eq!((&told["detail"], &told["details"]), (&refused["message"], &refused["details"]));
        told
    };
    rules(format!(r#"@id("no-kin") forbid(principal, action, {TOOL});"#)).await;
    assert_eq!(alike().await["details"]["rule"], "no-kin");
    // A refusal by a rule does not reveal if the agent exists.
    let absent = by_token(json!({ "agent_name": "nobody" })).await;
    assert_eq!(absent.json()["details"]["rule"], "no-kin", "{}", absent.text());

    let like =
        r#"when { context.arguments has prompt && context.arguments.prompt like "*count*" }"#;
    rules(format!(r#"@id("no-count") forbid(principal, action, {TOOL}) {like};"#)).await;
    assert_eq!(alike().await["details"]["rule"], "no-count");
    let made = by_token(json!({ "agent_name": "reader", "prompt": "read" })).await.succeeded();
    assert!(made["parent_run_id"].is_string(), "{made}");

    rules(format!(r#"@id("ask") @approval("agents.start") forbid(principal, action, {TOOL});"#))
        .await;
    let told = alike().await;
    assert_eq!(told["details"]["scopes"], json!(["agents.start"]), "{told}");
    assert!(told["details"]["ask"]["calls"].is_array(), "{told}");
    let grant = json!({ "grant_type": "tool_scope", "details": { "scope": "agents.start" },
                        "scope": "once", "agent_subject_id": "lead" });
    api.send("POST", &format!("{HERE}/grants"), grant.to_string()).await.succeeded();
    by_token(reader()).await.succeeded();
    alike().await;
    let sessions = store.sessions().page(&WorkspaceId::default(), "", 100).await.unwrap();
    assert_eq!(sessions.len(), 3, "two children, and who began them: {sessions:?}");
}

/// S14: a child that a run creates with its own token counts as a call of the tool. It is refused
/// when the limit of calls is reached.
#[tokio::test]
async fn s14_limits_of_calls_apply_to_children_started_over_the_api() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let limits = json!({ "calls_per_minute": 1 }).to_string();
    api.send("PUT", &format!("{HERE}/limits"), limits).await.succeeded();
    let lead = Run::of(&api, "lead").await;
    let by_token = async || {
        let request = api.ask("POST", &format!("{HERE}/runs"));
        let request = request.header("authorization", &format!("Bearer {}", lead.token));
        let request = request.header("content-type", "application/json");
        let asked = json!({ "agent_name": "reader" }).to_string();
        request.body(crate::world::whole(asked)).send().await
    };
    by_token().await.succeeded();
    by_token().await.problem(StatusCode::TOO_MANY_REQUESTS, "exhausted");
    assert_eq!(lead.refused("list_spawnable_agents", json!({})).await["kind"], "limit_exceeded");
}
