//! Audit events of the life of a run.

use hyper::StatusCode;
use serde_json::json;

use super::{HOME, request};
use crate::{
    runs::{Operator, RUNS},
    world::World,
};

/// R-E31, X-E113, S32, A-4, A-13: the beginning and the end of a run are two events, with the
/// actor, the agent and the session. A run that is refused for its content is one event, with the
/// faults by server, field and secret, but without any word or value.
#[tokio::test(flavor = "multi_thread")]
async fn r_e31_start_and_end_of_a_run_are_in_the_audit() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let mut wrong = request();
    wrong["scope"] = json!({});
    operator.refused(&wrong.to_string(), StatusCode::BAD_REQUEST, "invalid").await;
    let begun = operator.begin(&request()).await;
    let path = format!("{RUNS}/{}", begun["run_id"].as_str().unwrap());
    assert_eq!(operator.ask("DELETE", &path, "").await.status, StatusCode::NO_CONTENT);
    let cleared = operator.ask("DELETE", &format!("{HOME}/secrets/LIBRARY_TOKEN"), "").await;
    assert_eq!(cleared.status, StatusCode::OK);
    let request = request().to_string();
    operator.refused(&request, StatusCode::BAD_REQUEST, "invalid").await;
    let events = operator.get(&format!("{HOME}/audit?kind=session.run.&order=oldest")).await;
    let events = events["items"].as_array().unwrap();
    let kinds: Vec<_> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    let [refused, begun_and_ended @ .., stale] = &events[..] else { panic!("{events:?}") };
    assert_eq!(kinds[1..3], ["session.run.created", "session.run.ended"], "{events:?}");
    for event in [refused, stale] {
        assert_eq!(event["kind"], "session.run.refused", "{event}");
        assert_eq!(event["actor"]["id"], "admin", "{event}");
        assert_eq!(event["outcome"], "denied", "{event}");
        assert_eq!(event["resource"], json!({ "kind": "agent", "id": "reader" }), "{event}");
    }
    assert_eq!(refused["details"]["faults"][0]["code"], "missing_required_mcp_config");
    assert_eq!(refused["details"]["faults"][0]["field"], "CONTEXT");
    let fault = &stale["details"]["faults"][0];
    for (member, expected) in [
        ("code", "secret_not_set"),
        ("server", "library"),
        ("field", "API_TOKEN"),
        ("secret", "LIBRARY_TOKEN"),
    ] {
        assert_eq!(fault[member], expected, "{stale}");
    }
    let events = begun_and_ended;
    for event in events {
        assert_eq!(event["run"], begun["run_id"], "{event}");
        assert_eq!(event["actor"]["id"], "admin", "{event}");
        assert_eq!(event["outcome"], "ok", "{event}");
    }
    assert_eq!(events[0]["resource"], json!({ "kind": "agent", "id": "reader" }), "{events:?}");
    assert_eq!(events[0]["session"], begun["session_id"], "{events:?}");
    assert_eq!(events[1]["details"]["how"], "ended", "{events:?}");
    world.app.drain().await;
}
