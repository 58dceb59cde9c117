//! Tests of a workspace's limits for children, of single children of orchestrators, and of parents
//! that are resumed.

use std::time::{Duration, SystemTime};

use http::StatusCode;
use narthex_control::By;
use narthex_model::{RunId, WorkspaceId};
use narthex_runs::{Creator, Outcome};
use narthex_store::Store;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    built_in::{Run, with_tools},
    world::Api,
};

pub(super) const HERE: &str = "/api/workspaces/default";

/// A daemon with `lead`, which may start `reader` and the orchestrator `boss`. `boss` may start
/// `reader` too, and has a server that requires a run scope.
pub(super) async fn daemon(place: &TempDir) -> (Api, Store) {
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let api = Api::with_all(&json!({}), store.clone(), &place.path().join("master.key")).await;
    let server = json!({ "url": api.fixture_url(), "transport": "http",
        "config_schema": { "context": { "type": "string", "required": true } } });
    api.send("PUT", &format!("{HERE}/mcp-servers/docs"), server.to_string()).await.succeeded();
    let docs = json!({ "ref": "docs", "config": { "context": "${scope.tenant}" } });
    for (name, agent) in [
        ("reader", json!({})),
        (
            "boss",
            json!({ "agent_type": "orchestrator", "spawnable_agents": ["reader", "boss"],
                         "mcpServers": { "docs": docs } }),
        ),
        ("lead", json!({ "spawnable_agents": ["reader", "boss"] })),
    ] {
        let path = format!("{HERE}/agents/{name}");
        api.send("PUT", &path, with_tools(agent)).await.succeeded();
    }
    (api, store)
}

pub(super) fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}")).to_owned()
}

/// A run of `lead`, with a run scope that its descendants need.
pub(super) async fn lead(api: &Api) -> Run<'_> {
    let asked = json!({ "agent_name": "lead", "scope": { "tenant": "t1" } }).to_string();
    let made = api.send("POST", &format!("{HERE}/runs"), asked).await.succeeded();
    Run { api, token: text(&made, "token"), session: text(&made, "session_id") }
}

pub(super) async fn start(run: &Run<'_>, agent: &str) -> Value {
    run.called("spawn_session", json!({ "child_agent_id": agent })).await
}

async fn refused(run: &Run<'_>, agent: &str) -> Value {
    run.refused("spawn_session", json!({ "child_agent_id": agent })).await
}

pub(super) async fn claimed<'a>(api: &'a Api, run: &str) -> (Run<'a>, Value) {
    let claim = api.send("POST", &format!("{HERE}/runs/{run}/claim"), "{}").await.succeeded();
    let (token, session) = (text(&claim["run"], "token"), text(&claim["run"], "session_id"));
    (Run { api, token, session }, claim)
}

pub(super) async fn end(api: &Api, path: &str) {
    assert!(api.ask("DELETE", path).send().await.status.is_success(), "{path}");
}

async fn has_limits(api: &Api, limits: Value) {
    api.send("PUT", &format!("{HERE}/limits"), limits.to_string()).await.succeeded();
}

/// X-E86, X-E90: the workspace limits the depth of children, their number at a time and per day,
/// and their silence. A changed limit applies to the next child.
#[tokio::test]
async fn x_e86_a_workspace_limits_children() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let lead = lead(&api).await;
    has_limits(&api, json!({ "children_per_session": 1 })).await;
    let first = start(&lead, "reader").await;
    let error = refused(&lead, "reader").await;
    assert_eq!(error["details"]["code"], "too_many_children", "{error}");
    has_limits(&api, json!({ "children_per_day": 2, "child_depth": 1 })).await;
    let boss = start(&lead, "boss").await;
    let error = refused(&lead, "reader").await;
    assert_eq!(error["details"]["code"], "too_many_children", "{error}");
    assert!(error["message"].as_str().unwrap().contains("its limit of children today"), "{error}");
    // A child that has ended counts only for the daily limit.
    let ended = json!({ "child_session_id": first["session"]["id"] });
    lead.called("cancel_session", ended).await;
    refused(&lead, "reader").await;
    has_limits(&api, json!({ "child_depth": 1 })).await;
    let (boss, _) = claimed(&api, &text(&boss["session"], "run_id")).await;
    let error = refused(&boss, "reader").await;
    assert_eq!(error["details"]["code"], "too_deep", "{error}");
    has_limits(&api, json!({ "child_silence_minutes": 5 })).await;
    let child = start(&boss, "reader").await;
    let path = format!("{HERE}/runs/{}/claim", text(&child["session"], "run_id"));
    api.send("POST", &path, r#"{"lease_seconds": 36000}"#).await.succeeded();
    let in_minutes = |minutes: u64| SystemTime::now() + Duration::from_secs(minutes * 60);
    let status = async || {
        let asked = json!({ "child_session_id": child["session"]["id"] });
        text(&boss.called("read_child_output", asked).await["child"], "status")
    };
    api.runs.look_at_children(in_minutes(4)).await.unwrap();
    assert_eq!(status().await, "running");
    api.runs.look_at_children(in_minutes(8)).await.unwrap();
    assert_eq!(status().await, "expired");
}

/// X-E85: a session has one child of an orchestrator at a time, even with concurrent calls. A
/// further call returns the same child, whatever model it asks for.
#[tokio::test]
async fn x_e85_a_session_has_one_child_of_an_orchestrator_at_a_time() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let lead = lead(&api).await;
    let ask = || start(&lead, "boss");
    let (a, b, c, d) = tokio::join!(ask(), ask(), ask(), ask());
    let all = [a, b, c, d];
    assert!(all.iter().all(|one| one["session"]["id"] == all[0]["session"]["id"]), "{all:?}");
    assert_eq!(all.iter().filter(|one| one["is_new"] == true).count(), 1);
    let asked = json!({ "child_agent_id": "boss", "model": "another" });
    let again = lead.called("spawn_session", asked).await;
    assert_eq!(again["session"], all[0]["session"]);
    // A session may have any number of workers, and another session has a separate orchestrator.
    let readers = [start(&lead, "reader").await, start(&lead, "reader").await];
    assert_ne!(readers[0]["session"]["id"], readers[1]["session"]["id"]);
    let other = self::lead(&api).await;
    assert_ne!(start(&other, "boss").await["session"]["id"], all[0]["session"]["id"]);
    let ended = json!({ "child_session_id": all[0]["session"]["id"] });
    lead.called("cancel_session", ended).await;
    assert_ne!(ask().await["session"]["id"], all[0]["session"]["id"]);
}

/// X-E87: a short name means the newest enabled model with that name. A disabled model is refused.
#[tokio::test]
async fn x_e87_short_names_of_models_are_resolved() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let lead = lead(&api).await;
    let ask = |model: &str| json!({ "child_agent_id": "reader", "model": model });
    lead.called("spawn_session", ask("whatever")).await;
    let newest = json!({ "id": "opus-5", "short_names": ["opus"] });
    let models = json!([newest, { "id": "opus-4", "short_names": ["opus"] }]);
    let change = json!({ "models": models }).to_string();
    assert_eq!(api.send("PATCH", HERE, change).await.succeeded()["models"], models);
    for (asked, meant) in [("opus", "opus-5"), ("opus-4", "opus-4")] {
        let child = lead.called("spawn_session", ask(asked)).await;
        let run = api.get(&format!("{HERE}/runs/{}", text(&child["session"], "run_id"))).await;
        assert_eq!(run["claim"]["model"], meant);
    }
    let error = lead.refused("spawn_session", ask("whatever")).await;
    assert_eq!(error["details"]["code"], "model_not_enabled", "{error}");
    let wrong = r#"{"models": [{"id": ""}, 3]}"#;
    api.send("PATCH", HERE, wrong).await.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    api.send("PATCH", HERE, r#"{"models": []}"#).await.succeeded();
    lead.called("spawn_session", ask("whatever")).await;
}

/// X-E74, X-E87: a grant for a short name is stored for the model that the name means, so it
/// applies under each of its names. A grant for an unknown model is refused.
#[tokio::test]
async fn x_e87_a_grant_for_a_short_name_applies_to_the_model_of_that_name() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let models = json!([{ "id": "opus-5", "short_names": ["opus"] }, { "id": "small" }]);
    let change = json!({ "models": models }).to_string();
    api.send("PATCH", HERE, change).await.succeeded();
    api.send("PUT", &format!("{HERE}/agents/loner"), with_tools(json!({}))).await.succeeded();
    let lead = lead(&api).await;
    let ask = |model: &str| json!({ "child_agent_id": "loner", "model": model });
    let grant = async |models: Value| {
        let details = json!({ "child_agent_id": "loner", "allowed_models": models });
        let grant = json!({ "grant_type": "spawn", "details": details, "scope": "persistent",
                            "agent_subject_id": "lead" });
        api.send("POST", &format!("{HERE}/grants"), grant.to_string()).await
    };
    let unknown = grant(json!(["opus", "large"])).await;
    unknown.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    let fault = &unknown.json()["errors"][0];
    assert_eq!(fault["field"], "details.allowed_models[1]", "{fault}");
    assert_eq!(fault["code"], "model_not_enabled", "{fault}");
    // A run's request is stored with the model's id too, so that a human sees what the approval
    // permits.
    let wanted = json!({ "request_id": "a", "grant_type": "spawn", "scope": "session",
                         "details": { "child_agent_id": "loner", "allowed_models": ["opus"] },
                         "justification": "to read" });
    let asked = lead.called("request_grant", wanted.clone()).await;
    let path = format!("{HERE}/grant-requests/{}", text(&asked, "grant_request_id"));
    let pending = api.get(&format!("{HERE}/grant-requests")).await;
    let details = &pending["items"][0]["details"];
    assert_eq!(details["allowed_models"], json!(["opus-5"]), "{details}");
    api.send("POST", &format!("{path}/approve"), "{}").await.succeeded();
    assert_eq!(lead.called("request_grant", wanted).await["status"], "approved");
    for model in ["opus", "opus-5"] {
        lead.called("spawn_session", ask(model)).await;
    }
    let error = lead.refused("spawn_session", ask("small")).await;
    assert_eq!(error["details"]["code"], "model_not_enabled", "{error}");
    let made = grant(json!(["opus", "small", "opus-5"])).await.succeeded();
    assert_eq!(made["details"]["allowed_models"], json!(["opus-5", "small"]), "{made}");
    lead.called("spawn_session", ask("small")).await;
}

/// The run of a session that waits for an executor; waits until there is one.
async fn waiting(api: &Api, session: &str) -> Value {
    let mut changes = api.runs.awaited();
    loop {
        changes.borrow_and_update();
        let path = format!("{HERE}/runs?status=pending&session={session}");
        let items = api.get(&path).await["items"].take();
        if items[0].is_object() {
            assert_eq!(items.as_array().unwrap().len(), 1, "{items}");
            return items[0].clone();
        }
        changes.changed().await.unwrap();
    }
}

/// O80: the session of an orchestrator whose run has ended is resumed once when a child ends or
/// sends it a message. It is resumed with the run scope of the run that started the child. An
/// orchestrator whose run is active gets an event instead.
#[tokio::test]
async fn o80_an_ended_parent_is_resumed_when_a_child_ends_or_sends_a_message() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let lead = lead(&api).await;
    let begun = start(&lead, "boss").await;
    let (boss, claim) = claimed(&api, &text(&begun["session"], "run_id")).await;
    let readers = [start(&boss, "reader").await, start(&boss, "reader").await];
    let (child, _) = claimed(&api, &text(&readers[0]["session"], "run_id")).await;
    child.called("message_caller", json!({ "summary": "nearly" })).await;
    let woken = async || {
        let events = boss.events().await;
        let wakes = events.into_iter().filter(|one| one["type"] == "session.wake");
        wakes.map(|one| text(&one["payload"], "kind")).collect::<Vec<_>>()
    };
    assert_eq!(woken().await, ["message"]);
    let own = format!("{HERE}/runs/{}", text(&claim["run"], "run_id"));
    end(&api, &own).await;
    child.called("message_caller", json!({ "summary": "done" })).await;
    let run = waiting(&api, &boss.session).await;
    assert_eq!(woken().await, ["message", "message"]);
    // The run scope was kept: the run's server could not start without it.
    let (boss, claim) = claimed(&api, &text(&run, "run_id")).await;
    assert!(text(&claim, "prompt").contains(&child.session), "{claim}");
    // The session stays a child's session, whichever of its runs is active.
    let view = api.world.gateway.runs().identify(&boss.token).unwrap();
    assert!(view.authority.actors().is_child, "{claim}");
    // The session's caller is no orchestrator and receives no messages.
    let above = boss.called("message_caller", json!({ "summary": "go on" })).await;
    assert_eq!(above["reason"], "parent_not_orchestrator", "{above}");
    assert_eq!(claim["run"]["servers"][0]["alias"], "docs");
    // The session is active now, so the next end is only an event.
    let gone = format!("{HERE}/sessions/{}", text(&readers[1]["session"], "id"));
    end(&api, &gone).await;
    assert_eq!(woken().await, ["message", "message", "state_change"]);
    let own = format!("{HERE}/runs/{}", text(&claim["run"], "run_id"));
    end(&api, &own).await;
    let ended = format!("{HERE}/sessions/{}", child.session);
    end(&api, &ended).await;
    let run = waiting(&api, &boss.session).await;
    let (_, claim) = claimed(&api, &text(&run, "run_id")).await;
    let prompt = text(&claim, "prompt");
    assert!(prompt.contains(&child.session) && prompt.contains("ended"), "{prompt}");
}

/// O80, X-E88: the run of an orchestrator ends while one child is active and another has ended. If
/// the orchestrator has not read that end, its session is resumed once and receives it. If it has
/// read the end, its session rests.
#[tokio::test]
async fn x_e88_an_orchestrator_is_resumed_for_a_child_whose_end_it_did_not_read() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    for is_given in [true, false] {
        let lead = lead(&api).await;
        let begun = start(&lead, "boss").await;
        let (boss, claim) = claimed(&api, &text(&begun["session"], "run_id")).await;
        let child = start(&boss, "reader").await;
        start(&boss, "reader").await;
        let child = text(&child["session"], "id");
        end(&api, &format!("{HERE}/sessions/{child}")).await;
        if is_given {
            let seen = boss.called("read_child_output", json!({ "child_session_id": child })).await;
            assert_eq!(seen["child"]["status"], "ended", "{seen}");
        }
        let row = store.runs().find(run_id(&claim["run"])).await.unwrap().unwrap();
        api.runs.executed(&row, Outcome::Completed).await.unwrap();
        if is_given {
            let later = in_minutes(600);
            assert!(store.resting().due(later, 9).await.unwrap().is_empty(), "it is told twice");
            let path = format!("{HERE}/runs?status=pending&session={}", boss.session);
            assert_eq!(api.get(&path).await["items"], json!([]));
            continue;
        }
        let run = waiting(&api, &boss.session).await;
        let (boss, claim) = claimed(&api, &text(&run, "run_id")).await;
        let prompt = text(&claim, "prompt");
        assert!(
            prompt.contains("have ended") && prompt.contains("others may still be active"),
            "{prompt}"
        );
        assert_eq!(wakes(&boss, "state_change").await[0]["child_session_id"], child);
        // It has now received that end, and rests until the other child ends.
        let row = store.runs().find(run_id(&claim["run"])).await.unwrap().unwrap();
        api.runs.executed(&row, Outcome::Completed).await.unwrap();
        assert!(store.resting().due(in_minutes(600), 9).await.unwrap().is_empty());
    }
}

pub(super) fn run_id(of: &Value) -> RunId {
    RunId::parse(&text(of, "run_id")).unwrap()
}

/// The wakes of this kind that the platform has sent to a session.
pub(super) async fn wakes(run: &Run<'_>, kind: &str) -> Vec<Value> {
    let events = run.events().await.into_iter();
    let wakes = events.filter(|one| one["type"] == "session.wake");
    wakes.map(|one| one["payload"].clone()).filter(|one| one["kind"] == kind).collect()
}

pub(super) async fn held<'a>(api: &'a Api, child: &Value) -> Run<'a> {
    let path = format!("{HERE}/runs/{}/claim", text(&child["session"], "run_id"));
    let claim = api.send("POST", &path, r#"{"lease_seconds": 36000}"#).await.succeeded();
    let (token, session) = (text(&claim["run"], "token"), text(&claim["run"], "session_id"));
    Run { api, token, session }
}

pub(super) fn in_minutes(minutes: u64) -> SystemTime {
    SystemTime::now() + Duration::from_secs(minutes * 60)
}

/// X-E88: an orchestrator with a heartbeat is woken after a quiet time, but not while it waits for
/// an executor. If it rests, it is resumed without a driving user.
#[tokio::test]
async fn x_e88_an_orchestrator_is_woken_by_its_heartbeat() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let path = format!("{HERE}/agents/boss");
    let docs = json!({ "ref": "docs", "config": { "context": "${scope.tenant}" } });
    let mut document = json!({ "agent_type": "orchestrator", "heartbeat_minutes": 5,
        "spawnable_agents": ["reader"], "mcpServers": { "docs": docs } });
    api.send("PUT", &path, with_tools(document.clone())).await.succeeded();
    for wrong in [json!(0), json!(1441), json!("5")] {
        document["heartbeat_minutes"] = wrong;
        let refused = api.send("PUT", &path, document.to_string()).await;
        refused.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
        assert!(refused.text().contains("heartbeat_minutes"), "{}", refused.text());
    }
    let worker = r#"{"heartbeat_minutes": 5}"#;
    let refused = api.send("PUT", &format!("{HERE}/agents/reader"), worker).await;
    let told = refused.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    assert!(told.contains("heartbeat_minutes"), "{told}");

    let lead = lead(&api).await;
    let begun = start(&lead, "boss").await;
    let (token, session) = (String::new(), text(&begun["session"], "id"));
    let boss = Run { api: &api, token, session };
    api.runs.look_at_children(in_minutes(6)).await.unwrap();
    assert_eq!(wakes(&boss, "heartbeat").await, Vec::<Value>::new(), "nobody is there");
    let boss = held(&api, &begun).await;
    let look = async |minutes: u64| {
        api.runs.look_at_children(in_minutes(minutes)).await.unwrap();
        wakes(&boss, "heartbeat").await.len()
    };
    assert_eq!(look(4).await, 0);
    assert_eq!(look(6).await, 1);
    // A wake counts as an event that ends a quiet time.
    assert_eq!((look(4).await, look(6).await), (1, 2));
    let told = wakes(&boss, "heartbeat").await;
    assert_eq!((&told[0]["source"], &told[0]["quiet_minutes"]), (&json!("platform"), &json!(6)));
    let own = api.get(&format!("{HERE}/runs/{}", text(&begun["session"], "run_id"))).await;
    assert!(own["user"].is_string(), "{own}");
    // A resting orchestrator is resumed.
    let child = start(&boss, "reader").await;
    end(&api, &format!("{HERE}/runs/{}", text(&begun["session"], "run_id"))).await;
    assert_eq!(look(6).await, 3);
    let run = waiting(&api, &boss.session).await;
    assert_eq!(run["user"], Value::Null, "nobody drives it: {run}");
    assert_eq!(look(6).await, 3, "it waits to be carried out");
    let (_, claim) = claimed(&api, &text(&run, "run_id")).await;
    let prompt = text(&claim, "prompt");
    assert!(prompt.contains("heartbeat"), "{prompt}");
    end(&api, &format!("{HERE}/runs/{}", text(&run, "run_id"))).await;
    end(&api, &format!("{HERE}/sessions/{}", text(&child["session"], "id"))).await;
}

/// X-E88: the parent of a child is asked to check it: once if no executor claims it, once an hour
/// after all warnings of the watchdog, and once for a message that the child never acknowledged.
#[tokio::test]
async fn x_e88_a_parent_is_asked_to_check_a_silent_or_unclaimed_child() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let lead = lead(&api).await;
    let begun = start(&lead, "boss").await;
    let boss = held(&api, &begun).await;
    let reader = start(&boss, "reader").await;
    let look = async |minutes: u64| {
        api.runs.look_at_children(in_minutes(minutes)).await.unwrap();
        let wakes = wakes(&boss, "checkup").await;
        wakes.iter().map(|one| text(one, "reason")).collect::<Vec<_>>()
    };
    assert_eq!(look(9).await, [""; 0]);
    assert_eq!(look(11).await, ["unclaimed"]);
    assert_eq!(look(300).await, ["unclaimed"]);
    let told = wakes(&boss, "checkup").await;
    assert_eq!(told[0]["child_session_id"], reader["session"]["id"]);
    assert_eq!(told[0]["run_id"], reader["session"]["run_id"]);
    end(&api, &format!("{HERE}/sessions/{}", text(&reader["session"], "id"))).await;
    // An orchestrator is not ended for its silence.
    let other = held(&api, &start(&boss, "boss").await).await;
    assert_eq!(look(119).await, ["unclaimed"]);
    assert_eq!(look(121).await, ["unclaimed", "silent"]);
    assert_eq!(look(170).await, ["unclaimed", "silent"]);
    assert_eq!(look(181).await, ["unclaimed", "silent", "silent"]);
    let told = wakes(&boss, "checkup").await;
    assert_eq!(
        (&told[1]["silent_minutes"], &told[2]["silent_minutes"]),
        (&json!(120), &json!(180))
    );
    other.called("read_messages", json!({})).await;
    let said = json!({ "child_session_id": other.session, "text": "still there?" });
    let sent = boss.called("inject_message", said).await;
    let events = api.control.events().unwrap();
    let mut now = SystemTime::now();
    while let Some(next) = events.deliver_due(now).await.unwrap() {
        now = next;
    }
    assert_eq!(look(4).await, ["unclaimed", "silent", "silent", "unread"]);
    assert_eq!(look(4).await.len(), 4, "once");
    assert_eq!(wakes(&boss, "checkup").await[3]["sequence"], sent["sequence"]);
}

/// S18: two daemons share a store. After another executor has claimed a run at one of them, the
/// token of the earlier claim is refused at both.
#[tokio::test]
async fn s18_a_claim_at_another_daemon_revokes_the_token_of_the_earlier_claim() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let lead = lead(&api).await;
    let child = start(&lead, "reader").await;
    let (first, claim) = claimed(&api, &text(&child["session"], "run_id")).await;
    first.called("emit_status", json!({ "status": "starting" })).await;
    let id = RunId::parse(&text(&child["session"], "run_id")).unwrap();
    let past = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    let name = text(&claim, "claim");
    assert!(store.runs().hold(&WorkspaceId::default(), id, &name, past).await.unwrap());
    let other = Api::with_all(&json!({}), store, &place.path().join("master.key")).await;
    let by = Creator::Member(By::system(), None);
    let taken = other.runs.claim(&WorkspaceId::default(), &id.to_text(), b"{}", &by).await;
    taken.unwrap();
    api.runs.look_at_claims().await.unwrap();
    let request = api.world.modern("/mcp/narthex", "tools/list", json!({}));
    let answer = request.header("authorization", &format!("Bearer {}", first.token)).send().await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
}
