//! Tests of turns in a session: only the grants of the user whose turn it is count (X-E81).

use http::{Method, StatusCode};
use narthex_model::{PrincipalId, ServiceTokenId};
use narthex_store::{ServiceTokenRow, Store};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    built_in::{Run, agent_with_a_gated_tool, with_tools},
    grants::{gated, run},
    world::{Api, SOON},
};
use crate::{
    browser::{Browser, HOST, ORIGIN, Site, options},
    world::{ADMIN, Answer, Stream, message, whole},
};

const HERE: &str = "/api/workspaces/default";
const LOCAL: &str = "prn_0000000000000000";

/// Adds two humans with roles in the workspace.
async fn ada_and_bob(api: &Api) {
    for name in ["ada", "bob"] {
        api.send("POST", "/api/principals", json!({ "name": name }).to_string()).await.succeeded();
        member(api, name).await;
    }
}

async fn member(api: &Api, name: &str) {
    let member = format!("{HERE}/members/{name}");
    api.send("PUT", &member, r#"{"roles": ["runner"]}"#).await.succeeded();
}

/// The token of a service that may send messages to agents.
async fn service(api: &Api) -> String {
    let path = format!("{HERE}/service-tokens");
    let asked = r#"{"service": "chat", "roles": ["runner"]}"#;
    let made = api.send("POST", &path, asked).await.succeeded();
    made["token"].as_str().unwrap().to_owned()
}

/// The token of a service, as a human with proof would create it.
async fn proved_service(api: &Api, store: &Store) -> String {
    service(api).await;
    let tokens = store.service_tokens();
    let like = tokens.all().await.unwrap().remove(0);
    let token = format!("nxs_{}", "4".repeat(80));
    let hash = Sha256::digest(&token).iter().map(|byte| format!("{byte:02x}")).collect();
    let id = ServiceTokenId::new("tok_4444444444444444").unwrap();
    tokens.create(&ServiceTokenRow { id, hash, is_proved: true, ..like }).await.unwrap();
    // A change of permissions makes the daemon read all tokens again.
    service(api).await;
    token
}

async fn id_of(api: &Api, name: &str) -> Value {
    api.get(&format!("/api/principals/{name}")).await["id"].clone()
}

/// A run as the API shows it.
async fn shown(api: &Api, run: &str) -> Value {
    api.get(&format!("{HERE}/runs/{run}")).await
}

async fn session_of(api: &Api, run: &str) -> String {
    shown(api, run).await["session_id"].as_str().unwrap().to_owned()
}

async fn sent(api: &Api, token: &str, path: &str, body: Value) -> Answer {
    let request = api.world.request(Method::POST, path);
    let request = request.header("authorization", &format!("Bearer {token}"));
    let request = request.header("content-type", "application/json");
    request.body(whole(body.to_string())).send().await
}

async fn say(api: &Api, token: &str, session: &str, said: Value) -> Answer {
    sent(api, token, &format!("{HERE}/sessions/{session}/messages"), said).await
}

/// X-E81: one user's grants do not apply in another user's turn of the same session, at once and
/// both ways. Grants of the agent or of an earlier speaker do not return by themselves, also after
/// a restart. A repeated message does not take the turn.
#[tokio::test]
async fn x_e81_a_grant_applies_to_the_turn_of_its_user() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    ada_and_bob(&api).await;
    let chat = service(&api).await;
    let (token, id) = run(&api, json!({ "user": "ada" })).await;
    let session = session_of(&api, &id).await;
    api.granted(json!({ "user_subject_id": "ada" })).await;
    assert!(api.may_echo(&token).await);

    let of_bob = json!({ "text": "Now mine.", "user": "bob", "message_id": "m1" });
    let event = say(&api, &chat, &session, of_bob.clone()).await.succeeded();
    assert_eq!(event["payload"]["user"], id_of(&api, "bob").await);
    assert!(!api.may_echo(&token).await, "the turn is bob's");
    let now = shown(&api, &id).await;
    assert_eq!(
        (&now["user"], &now["acts_for"]),
        (&id_of(&api, "ada").await, &event["payload"]["user"])
    );

    let aside = say(&api, &chat, &session, json!({ "text": "a word of the service" })).await;
    assert_eq!(aside.succeeded()["payload"].get("user"), None);
    assert!(!api.may_echo(&token).await, "who names nobody takes no turn");
    let of_ada = json!({ "text": "Mine again.", "user": "ada" });
    say(&api, &chat, &session, of_ada).await.succeeded();
    assert!(api.may_echo(&token).await);
    say(&api, &chat, &session, of_bob.clone()).await.succeeded();
    assert!(api.may_echo(&token).await, "it was said before");

    let own = api.granted(json!({ "user_subject_id": "bob" })).await;
    say(&api, &chat, &session, json!({ "text": "And mine.", "user": "bob" })).await.succeeded();
    assert!(api.may_echo(&token).await);
    drop(api);
    let api = gated(&place).await;
    assert!(api.may_echo(&token).await, "the turn outlives the daemon");
    let revoked = api.ask("DELETE", &format!("{HERE}/grants/{own}")).send().await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT);
    assert!(!api.may_echo(&token).await, "ada's are there, and the turn is bob's");
    say(&api, &chat, &session, json!({ "text": "x", "user": "ada" })).await.succeeded();
    assert!(api.may_echo(&token).await);
}

/// X-E81: the audit names the user for whom each call was made, and who takes the turn by a
/// message.
#[tokio::test]
async fn x_e81_the_audit_names_the_user_of_the_turn() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    ada_and_bob(&api).await;
    let (token, id) = run(&api, json!({ "user": "ada" })).await;
    let session = session_of(&api, &id).await;
    api.granted(json!({ "user_subject_id": "ada" })).await;
    api.granted(json!({ "user_subject_id": "bob" })).await;
    assert!(api.may_echo(&token).await);
    let of_bob = json!({ "text": "Now mine.", "user": "bob" });
    say(&api, ADMIN, &session, of_bob).await.succeeded();
    assert!(api.may_echo(&token).await);
    let audit = async |kind: &str, name: &str| {
        let page = api.get(&format!("{HERE}/audit?kind={kind}&run={id}")).await;
        let items = page["items"].as_array().unwrap().clone();
        let mut told: Vec<_> = items.iter().map(|one| one["details"][name].clone()).collect();
        told.sort_by_key(Value::to_string);
        told
    };
    let (ada, bob) = (id_of(&api, "ada").await, id_of(&api, "bob").await);
    let mut both = vec![ada, bob.clone()];
    both.sort_by_key(Value::to_string);
    assert_eq!(audit("session.mcp.tool_called", "acts_for").await, both);
    let sent = api.get(&format!("{HERE}/audit?kind=session.message")).await;
    assert_eq!(sent["items"][0]["details"]["turn"], bob, "{sent}");
}

/// X-E81: another daemon on the store knows whose turn it is before it shows a caller the messages.
/// It also learns of the turn soon without a reader.
#[tokio::test]
async fn x_e81_another_daemon_knows_the_turn_when_it_shows_the_message() {
    let place = tempfile::tempdir().unwrap();
    let (api, other) = (gated(&place).await, gated(&place).await);
    ada_and_bob(&api).await;
    let (token, id) = run(&api, json!({ "user": LOCAL })).await;
    let session = session_of(&api, &id).await;
    api.granted(json!({ "user_subject_id": LOCAL })).await;
    // The run is active at the other daemon too, and follows the messages there.
    let path = format!("{HERE}/sessions/{session}/events");
    let stream = other.world.request(Method::GET, &path);
    let stream = stream.header("authorization", &format!("Bearer {token}"));
    let mut stream = Stream::of(stream.header("accept", "text/event-stream").open().await);
    assert_eq!(message(&stream.next().await.unwrap())["type"], "session.created");
    let acts_for = |api: &Api| {
        let view = api.world.gateway.runs().identify(&token).unwrap();
        view.authority.actors().user.clone()
    };
    assert_eq!(acts_for(&other), Some(PrincipalId::local_admin()));
    say(&api, ADMIN, &session, json!({ "text": "x", "user": "bob" })).await.succeeded();
    let said = message(&stream.next().await.unwrap());
    assert_eq!(said["type"], "user.message");
    let bob = said["payload"]["user"].as_str().unwrap();
    assert_eq!(acts_for(&other).unwrap().as_str(), bob);
    assert!(!other.may_echo(&token).await && !api.may_echo(&token).await);

    // The other daemon also learns of the turn if no client reads there.
    drop(stream);
    say(&api, ADMIN, &session, json!({ "text": "y" })).await.succeeded();
    let deadline = tokio::time::Instant::now() + SOON;
    while !other.may_echo(&token).await {
        assert!(
            tokio::time::Instant::now() < deadline,
            "it was never seen: {:?}, and here {:?}",
            acts_for(&other),
            acts_for(&api)
        );
        // A refusal does not wait, so without this line no other task could run.
        tokio::task::yield_now().await;
    }
}

/// X-E81: a child starts with its parent's turn, and gets the parent's turn anew with each of the
/// parent's messages. A child's message to its parent takes no turn.
#[tokio::test]
async fn x_e81_children_have_the_turn_of_their_parent() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let api = Api::with_all(&json!({}), store, &place.path().join("master.key")).await;
    ada_and_bob(&api).await;
    agent_with_a_gated_tool(&api).await;
    let lead = json!({ "agent_type": "orchestrator", "spawnable_agents": ["writer"] });
    api.send("PUT", &format!("{HERE}/agents/lead"), with_tools(lead)).await.succeeded();
    let grant = json!({ "grant_type": "tool_scope", "details": { "scope": "demo.write" },
                        "scope": "persistent", "user_subject_id": "bob" });
    api.send("POST", &format!("{HERE}/grants"), grant.to_string()).await.succeeded();
    let parent = Run::of(&api, "lead").await;
    let speak = async |session: &str, user: &str| {
        say(&api, ADMIN, session, json!({ "text": "x", "user": user })).await.succeeded();
    };
    speak(&parent.session, "bob").await;
    let asked = json!({ "child_agent_id": "writer", "prompt": "write" });
    let child = parent.called("spawn_session", asked).await["session"].clone();
    let run = child["run_id"].as_str().unwrap();
    let claim = api.send("POST", &format!("{HERE}/runs/{run}/claim"), "{}").await.succeeded();
    let text = |name: &str| claim["run"][name].as_str().unwrap().to_owned();
    let child = Run { api: &api, token: text("token"), session: text("session_id") };
    assert_eq!(shown(&api, run).await["user"], id_of(&api, "bob").await);
    assert_eq!(child.echo().await["content"][0]["text"], "x", "bob's grant");

    speak(&parent.session, "ada").await;
    assert_eq!(child.echo().await["content"][0]["text"], "x", "its own turn is as it was");
    child.called("message_caller", json!({ "summary": "done" })).await;
    let above = api.get(&format!("{HERE}/runs?session={}", parent.session)).await;
    assert_eq!(above["items"][0]["acts_for"], id_of(&api, "ada").await, "{above}");
    let told = json!({ "child_session_id": child.session, "text": "go on", "message_id": "m1" });
    parent.called("inject_message", told.clone()).await;
    assert_eq!(child.echo().await["isError"], true, "by what ada has said");
    speak(&child.session, "bob").await;
    parent.called("inject_message", told).await;
    assert_eq!(child.echo().await["content"][0]["text"], "x", "the same again is no message");
}

/// X-E81: a spawn grant applies in its user's turn only. The child is driven by the user whose turn
/// it was.
#[tokio::test]
async fn x_e81_a_spawn_grant_applies_to_the_turn_of_its_user() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let api = Api::with_all(&json!({}), store, &place.path().join("master.key")).await;
    ada_and_bob(&api).await;
    for agent in ["lead", "reader"] {
        api.send("PUT", &format!("{HERE}/agents/{agent}"), with_tools(json!({}))).await.succeeded();
    }
    let grant = json!({ "grant_type": "spawn", "details": { "child_agent_id": "reader" },
                        "scope": "persistent", "user_subject_id": "bob" });
    api.send("POST", &format!("{HERE}/grants"), grant.to_string()).await.succeeded();
    let lead = Run::of(&api, "lead").await;
    let asked = json!({ "child_agent_id": "reader" });
    let spawnable =
        async || lead.called("list_spawnable_agents", json!({})).await["spawnable"].take();
    for (turn, may) in
        [(None, false), (Some("bob"), true), (Some("ada"), false), (Some("bob"), true)]
    {
        if let Some(user) = turn {
            let said = json!({ "text": "x", "user": user });
            say(&api, ADMIN, &lead.session, said).await.succeeded();
        }
        if !may {
            let refused = lead.refused("spawn_session", asked.clone()).await;
            assert_eq!(refused["kind"], "permission_required", "{turn:?}: {refused}");
            assert_eq!(spawnable().await, json!([]));
            continue;
        }
        assert_eq!(spawnable().await[0]["name"], "reader");
        let child = lead.called("spawn_session", asked.clone()).await["session"].take();
        let run = child["run_id"].as_str().unwrap();
        assert_eq!(shown(&api, run).await["user"], id_of(&api, "bob").await, "{child}");
    }
}

/// X-E81: a request of a run without an agent is for the user whose turn it is. An equal request in
/// another user's turn is a separate request.
#[tokio::test]
async fn x_e81_a_request_is_for_the_user_of_the_turn() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    ada_and_bob(&api).await;
    let (token, id) = run(&api, json!({ "user": "ada" })).await;
    let session = session_of(&api, &id).await;
    let view = json!({ "token": token });
    let of_ada = api.asked_by(&view, "to write").await;
    assert_eq!(api.asked_by(&view, "to write").await, of_ada);
    say(&api, ADMIN, &session, json!({ "text": "x", "user": "bob" })).await.succeeded();
    let of_bob = api.asked_by(&view, "to write").await;
    assert_ne!(of_ada, of_bob);
    let path = format!("{HERE}/grant-requests/{of_ada}/approve");
    api.send("POST", &path, "{}").await.succeeded();
    assert!(!api.may_echo(&token).await, "it was asked for in ada's turn");
    let path = format!("{HERE}/grant-requests/{of_bob}/approve");
    let decided = api.send("POST", &path, "{}").await.succeeded();
    assert_eq!(decided["user_subject_id"], id_of(&api, "bob").await);
    assert!(api.may_echo(&token).await);
}

/// X-E81: a decision in one user's turn answers no equal request in another's.
#[tokio::test]
async fn x_e81_a_decision_does_not_answer_a_request_in_another_users_turn() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    ada_and_bob(&api).await;
    let (token, id) = run(&api, json!({ "user": "ada" })).await;
    let session = session_of(&api, &id).await;
    let run = Run { api: &api, token, session };
    let asked = json!({ "request_id": "r1", "grant_type": "tool_scope", "scope": "session",
                        "details": { "scope": "demo.write" }, "justification": "to write" });
    assert_eq!(run.called("request_grant", asked.clone()).await["status"], "pending");
    let pending = async || {
        let page = api.get(&format!("{HERE}/grant-requests?status=pending")).await;
        page["items"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect::<Vec<_>>()
    };
    let of_ada = pending().await;
    let path = format!("{HERE}/grant-requests/{}/deny", of_ada[0].as_str().unwrap());
    api.send("POST", &path, "{}").await.succeeded();
    assert_eq!(run.called("request_grant", asked.clone()).await["status"], "denied");
    say(&api, ADMIN, &run.session, json!({ "text": "x", "user": "bob" })).await.succeeded();
    assert_eq!(run.called("request_grant", asked).await["status"], "pending", "nobody asked bob");
    assert_eq!(pending().await.len(), 1);
}

/// Sends a message from a browser.
async fn say_as(browser: &mut Browser<'_>, session: &str, said: Value) -> Answer {
    browser.page().await;
    let path = format!("{HERE}/sessions/{session}/messages");
    let request = browser.request(Method::POST, &path).header("origin", ORIGIN);
    let request = request.header("x-narthex-csrf", &browser.csrf);
    let request = request.header("content-type", "application/json");
    request.header("host", HOST).body(whole(said.to_string())).send().await
}

/// X-E81: a human speaks only for themselves and cannot name another user. A non-member cannot be
/// named at all.
#[tokio::test]
async fn x_e81_a_human_cannot_take_the_turn_of_another_user() {
    let site = Site::new().await;
    let api = &site.api;
    for name in ["bob", "eve"] {
        api.send("POST", "/api/principals", json!({ "name": name }).to_string()).await.succeeded();
    }
    member(api, "bob").await;
    agent_with_a_gated_tool(api).await;
    let run = Run::begin(api).await;
    let mut bob = site.browser("bob").await;
    let event = say_as(&mut bob, &run.session, json!({ "text": "x" })).await.succeeded();
    assert_eq!(event["payload"]["user"], id_of(api, "bob").await);
    let own = json!({ "text": "x", "user": "bob" });
    say_as(&mut bob, &run.session, own).await.succeeded();
    let other = json!({ "text": "x", "user": "ada" });
    let refused = say_as(&mut bob, &run.session, other).await;
    refused.problem(StatusCode::FORBIDDEN, "denied");
    let stranger = json!({ "text": "x", "user": "eve" });
    let absent = say(api, ADMIN, &run.session, stranger).await;
    absent.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    assert_eq!(absent.json()["errors"][0]["field"], "user");
    let acts_for = || {
        let view = api.world.gateway.runs().identify(&run.token).unwrap();
        view.authority.actors().user.clone()
    };
    assert_eq!(json!(acts_for()), id_of(api, "bob").await);
    say(api, ADMIN, &run.session, json!({ "text": "x" })).await.succeeded();
    assert_eq!(acts_for(), Some(PrincipalId::local_admin()), "the human at this machine");
}

/// X-E81, D15: if humans must prove that they are human, a message of one without proof gives the
/// turn to no user.
#[tokio::test]
async fn x_e81_an_unproved_human_has_no_turn() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("store.db")).await.unwrap();
    let keys = dir.path().join("master.key");
    let api = Api::with_proofs(store.clone(), options(), Some(&keys), Some(true)).await;
    ada_and_bob(&api).await;
    let chat = proved_service(&api, &store).await;
    api.send("PUT", &format!("{HERE}/agents/writer"), with_tools(json!({}))).await.succeeded();
    let asked = json!({ "agent_name": "writer", "user": "ada" });
    let made = sent(&api, &chat, &format!("{HERE}/runs"), asked).await.succeeded();
    let (id, session) = (made["run_id"].as_str().unwrap(), made["session_id"].as_str().unwrap());
    assert_eq!(shown(&api, id).await["acts_for"], id_of(&api, "ada").await);
    say(&api, ADMIN, session, json!({ "text": "x" })).await.succeeded();
    assert_eq!(shown(&api, id).await["acts_for"], Value::Null);
    let named = say(&api, ADMIN, session, json!({ "text": "x", "user": "ada" })).await;
    named.problem(StatusCode::FORBIDDEN, "denied");
    say(&api, &chat, session, json!({ "text": "x", "user": "bob" })).await.succeeded();
    assert_eq!(shown(&api, id).await["acts_for"], id_of(&api, "bob").await);
}

/// X-E81: a human's comment on a share is a message to the sharing agent, and takes the turn.
#[tokio::test]
async fn x_e81_a_comment_takes_the_turn_for_its_author() {
    let site = Site::new().await;
    let api = &site.api;
    agent_with_a_gated_tool(api).await;
    let run = Run::begin(api).await;
    let runs = api.get(&format!("{HERE}/runs?session={}", run.session)).await;
    let share = api.shared_by("default", &runs["items"][0]).await;
    let path = format!("{HERE}/shares/{share}/comments");
    api.send("POST", &path, r#"{"text": "shorter"}"#).await.succeeded();
    let events = run.events().await;
    let heard = events.iter().find(|one| one["type"] == "user.message").unwrap();
    assert_eq!(heard["payload"]["user"], LOCAL, "{heard}");
}

/// S26, X-E83: an approval for one call applies to the session that asked. Another run of the same
/// user does not use it up.
#[tokio::test]
async fn s26_an_approval_for_a_single_call_applies_to_the_session_that_asked() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    let (token, id) = run(&api, json!({})).await;
    let (other, _) = run(&api, json!({})).await;
    let asked = api.asked_by(&json!({ "token": token }), "to write").await;
    let path = format!("{HERE}/grant-requests/{asked}/approve");
    let decided = api.send("POST", &path, r#"{"scope": "once", "reason": "go on"}"#).await;
    let grant = decided.succeeded()["grant_id"].clone();
    let grant = api.get(&format!("{HERE}/grants/{}", grant.as_str().unwrap())).await;
    let session = session_of(&api, &id).await;
    assert_eq!((&grant["scope"], &grant["session_id"]), (&json!("once"), &json!(session)));
    drop(api);
    let api = gated(&place).await;
    assert!(!api.may_echo(&other).await, "of the same user, in another session");
    assert!(api.may_echo(&token).await && !api.may_echo(&token).await);

    // X-E83: the event shows the grant, and not the request, which was for longer.
    let path = format!("{HERE}/sessions/{session}/events?type=permission.granted");
    let told = api.get(&path).await["items"][0]["payload"].clone();
    assert_eq!((&told["scope"], &told["session_id"]), (&json!("once"), &json!(session)), "{told}");
    assert_eq!((&told["grant_id"], &told["reason"]), (&grant["id"], &json!("go on")));
    assert_eq!(told["details"], grant["details"]);
    assert_eq!(told["user_subject_id"], LOCAL);
}
