//! Runs that begin runs.

use hyper::StatusCode;
use serde_json::{Value, json};

use super::{reader, request};
use crate::{
    runs::{Operator, RUNS},
    world::{Reply, World},
};

async fn with_lead(operator: &Operator<'_>) {
    operator.has_reader("secret").await;
    let mut lead = reader();
    lead["name"] = json!("lead");
    lead["spawnable_agents"] = json!(["reader", "lead"]);
    operator.put("agents/lead", &lead).await;
}

fn of_lead() -> Value {
    let mut request = request();
    request["agent_name"] = json!("lead");
    request
}

async fn ask(operator: &Operator<'_>, token: &str, document: &Value) -> Reply {
    let client = operator.0.client_as(RUNS, token);
    client.whole("POST", &[], document.to_string()).await
}

fn child() -> Value {
    json!({ "agent_name": "reader", "params": { "topic": "child" } })
}

/// O22, O72, O74, O76, O78, R-M15, O23, O79: a run creates a child by its token. The child has
/// exactly the run's scope, may begin only runs that its agent may begin, and cannot set the scope.
#[tokio::test(flavor = "multi_thread")]
async fn o22_a_child_has_its_parents_scope() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    with_lead(&operator).await;
    let parent = operator.begin(&of_lead()).await;
    let token = parent["token"].as_str().unwrap();
    let reply = ask(&operator, token, &child()).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{reply:?}");
    let begun = reply.json();
    assert_eq!(begun["parent_run_id"], parent["run_id"]);
    assert_eq!(begun["created_by"], parent["run_id"]);
    assert_ne!(begun["session_id"], parent["session_id"]);
    let id = begun["run_id"].as_str().unwrap();
    assert_eq!(operator.notes()[1], format!("secret canary-scope child {id}"));
    operator.works(begun["token"].as_str().unwrap()).await;

    for (key, value) in [
        ("scope", json!({})),
        ("scope", json!({ "context_id": "wider" })),
        ("parent_run_id", json!("run_0a1b2c3d4e5f")),
        ("project_dir", json!("/etc")),
        ("agent_name", json!("nosuch")),
    ] {
        let mut wider = child();
        wider[key] = value;
        let reply = ask(&operator, token, &wider).await;
        assert_eq!(reply.status, StatusCode::FORBIDDEN, "{key} {reply:?}");
        let problem: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(problem["field"], key, "{problem}");
    }
    // The reader may start no agent.
    let reply = ask(&operator, begun["token"].as_str().unwrap(), &child()).await;
    assert_eq!(reply.status, StatusCode::FORBIDDEN);
    for document in [
        json!({ "tools": ["*"] }),
        json!({ "type": "resume_session",
        "session_id": parent["session_id"] }),
    ] {
        assert_eq!(ask(&operator, token, &document).await.status, StatusCode::FORBIDDEN);
    }
    let reply = world.client_as(RUNS, token).whole("GET", &[], "").await;
    assert_eq!(reply.status, StatusCode::FORBIDDEN, "a run sees no runs");
    let elsewhere = world.client_as("/api/workspaces/team/runs", token);
    let reply = elsewhere.whole("POST", &[], child().to_string()).await;
    assert_eq!(reply.status, StatusCode::NOT_FOUND);
    assert_eq!(operator.notes().len(), 2, "something was started");

    // R-M15: a child outlives its parent, who begins nothing any more.
    let path = format!("{RUNS}/{}", parent["run_id"].as_str().unwrap());
    assert_eq!(operator.ask("DELETE", &path, "").await.status, StatusCode::NO_CONTENT);
    assert_eq!(ask(&operator, token, &child()).await.status, StatusCode::UNAUTHORIZED);
    operator.works(begun["token"].as_str().unwrap()).await;
}

/// O74, O75, O77: an operator names the parent and may add to its scope. A parent that has ended,
/// or is in another workspace, is refused.
#[tokio::test(flavor = "multi_thread")]
async fn o77_an_operator_may_add_to_an_inherited_scope() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    with_lead(&operator).await;
    let parent = operator.begin(&of_lead()).await;
    let mut document = child();
    document["parent_run_id"] = parent["run_id"].clone();
    let begun = operator.begin(&document).await;
    let id = begun["run_id"].as_str().unwrap();
    assert_eq!(operator.notes()[1], format!("secret canary-scope child {id}"));
    document["scope"] = json!({ "context_id": "narrow" });
    let begun = operator.begin(&document).await;
    let id = begun["run_id"].as_str().unwrap();
    assert_eq!(operator.notes()[2], format!("secret narrow child {id}"));
    let path = format!("{RUNS}/{}", parent["run_id"].as_str().unwrap());
    assert_eq!(operator.ask("DELETE", &path, "").await.status, StatusCode::NO_CONTENT);
    operator.refused(&document.to_string(), StatusCode::BAD_REQUEST, "invalid").await;
}

/// O75, O78: a child has the scope of the run whose token began it, also where the session of that
/// run was resumed with another scope, and the other way round.
#[tokio::test(flavor = "multi_thread")]
async fn o75_a_later_run_of_a_session_does_not_inherit_the_scope() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    with_lead(&operator).await;
    let first = operator.begin(&of_lead()).await;
    let later = json!({ "type": "resume_session", "session_id": first["session_id"],
                        "prompt": "and now?", "scope": { "context_id": "later" } });
    let later = operator.begin(&later).await;
    assert_eq!(later["session_id"], first["session_id"]);
    for (parent, scope) in [(&first, "canary-scope"), (&later, "later")] {
        let reply = ask(&operator, parent["token"].as_str().unwrap(), &child()).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{reply:?}");
        let begun = reply.json();
        assert_eq!(begun["parent_run_id"], parent["run_id"]);
        let told = format!("secret {scope} child {}", begun["run_id"].as_str().unwrap());
        assert_eq!(operator.notes().last(), Some(&told));
    }
}

/// X-E86: runs begin runs to a depth that is limited.
#[tokio::test(flavor = "multi_thread")]
async fn children_are_not_nested_without_end() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    let endless = json!({ "name": "endless", "spawnable_agents": ["endless"] });
    operator.put("agents/endless", &endless).await;
    let document = json!({ "agent_name": "endless" });
    let mut begun = operator.begin(&document).await;
    for _ in 0..8 {
        let reply = ask(&operator, begun["token"].as_str().unwrap(), &document).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{reply:?}");
        begun = reply.json();
    }
    let reply = ask(&operator, begun["token"].as_str().unwrap(), &document).await;
    assert_eq!(reply.status, StatusCode::FORBIDDEN, "{reply:?}");
}

/// O74: a child works in its parent's folder, which it could not choose.
#[tokio::test(flavor = "multi_thread")]
async fn o74_a_child_works_in_its_parents_folder() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let mut placed = reader();
    placed["name"] = json!("placed");
    placed["mcpServers"]["library"]["config"]["TOPIC"] = json!("${runtime.project_dir}");
    placed["spawnable_agents"] = json!(["placed"]);
    operator.put("agents/placed", &placed).await;
    let mut document = of_lead();
    document["agent_name"] = json!("placed");
    document["project_dir"] = json!("/srv/here");
    let parent = operator.begin(&document).await;
    let mut child = child();
    child["agent_name"] = json!("placed");
    let reply = ask(&operator, parent["token"].as_str().unwrap(), &child).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{reply:?}");
    for note in operator.notes() {
        assert!(note.starts_with("secret canary-scope /srv/here "), "{note}");
    }
    assert_eq!(operator.notes().len(), 2);
}
