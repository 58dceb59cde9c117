//! What the audit says of the life of a run.

use hyper::StatusCode;
use serde_json::json;

use super::{HOME, request};
use crate::{
    runs::{Operator, RUNS},
    world::World,
};

/// R-E31, X-E113, S32: a run that begins and ends is two events, with who did it, the agent and the
/// session. One that is refused has never been, and is none.
#[tokio::test(flavor = "multi_thread")]
async fn r_e31_a_run_begins_and_ends_in_the_audit() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let mut wrong = request();
    wrong["scope"] = json!({});
    operator.refused(&wrong.to_string(), StatusCode::BAD_REQUEST, "invalid").await;
    let begun = operator.begin(&request()).await;
    let path = format!("{RUNS}/{}", begun["run_id"].as_str().unwrap());
    assert_eq!(operator.ask("DELETE", &path, "").await.status, StatusCode::NO_CONTENT);
    let events = operator.get(&format!("{HOME}/audit?kind=session.run.&order=oldest")).await;
    let events = events["items"].as_array().unwrap();
    let kinds: Vec<_> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["session.run.created", "session.run.ended"], "{events:?}");
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
