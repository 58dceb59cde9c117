//! Sessions that are resumed, runs after a restart, and the end of their time.

use hyper::StatusCode;
use serde_json::json;

use super::{HOME, request, suspending::text};
use crate::{
    runs::{Operator, RUNS},
    world::{SOON, World},
};

/// O21, O85, O79, O84: a session is resumed with its parameters, a new number and a scope of its
/// own. The numbers of its earlier runs are its aliases. The session ends with all its runs.
#[tokio::test(flavor = "multi_thread")]
async fn o21_a_session_resumes_with_a_new_scope() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let first = operator.begin(&request()).await;
    let session = first["session_id"].as_str().unwrap();
    let mut again =
        json!({ "type": "resume_session", "session_id": session, "prompt": "and now?" });
    let problem = operator.refused(&again.to_string(), StatusCode::BAD_REQUEST, "invalid").await;
    assert_eq!(problem["code"], "missing_required_mcp_config", "the scope is needed anew");
    again["params"] = json!({ "topic": "other" });
    operator.refused(&again.to_string(), StatusCode::BAD_REQUEST, "invalid").await;
    again.as_object_mut().unwrap().remove("params");
    again["scope"] = json!({ "context_id": "second" });
    let second = operator.begin(&again).await;
    assert_eq!((&second["session_id"], &second["pid"]), (&first["session_id"], &json!(2)));
    let told = operator.notes()[1].clone();
    assert_eq!(told, format!("secret second auth {}", second["run_id"].as_str().unwrap()));
    let path = format!("{HOME}/sessions/{session}");
    assert_eq!(operator.get(&path).await["pids"], json!([1, 2]));
    let of = operator.get(&format!("{RUNS}?session={session}")).await;
    assert_eq!(of["items"].as_array().unwrap().len(), 2);

    assert_eq!(operator.ask("DELETE", &path, "").await.status, StatusCode::NO_CONTENT);
    for begun in [&first, &second] {
        let reply = operator.echoes(begun["token"].as_str().unwrap()).await;
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(operator.get(&path).await["status"], "ended");
    assert_eq!(operator.ask("DELETE", &path, "").await.status, StatusCode::CONFLICT);
    operator.refused(&again.to_string(), StatusCode::CONFLICT, "conflict").await;
    again["session_id"] = json!("ses_0a1b2c3d4e5f");
    operator.refused(&again.to_string(), StatusCode::NOT_FOUND, "not_found").await;
}

/// D10, X-M50, X-M65, O79, O84: a run is active after a restart with its frozen parts: edits of the
/// agent and new values of secrets reach the next run. One that has ended does not.
#[tokio::test(flavor = "multi_thread")]
async fn d10_a_run_is_active_after_a_restart_with_its_frozen_parts() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("old").await;
    let begun = operator.begin(&request()).await;
    let own = operator.begin(&json!({ "servers": { "library": super::plain() } })).await;
    let ended = operator.begin(&request()).await;
    let path = format!("{RUNS}/{}", ended["run_id"].as_str().unwrap());
    assert_eq!(operator.ask("DELETE", &path, "").await.status, StatusCode::NO_CONTENT);
    operator.put("secrets/LIBRARY_TOKEN", &json!({ "value": "new" })).await;
    operator.put("agents/reader", &json!({ "name": "reader" })).await;

    let world = World::operated_in(world.stop().await).await;
    let operator = Operator(&world);
    let before = operator.notes().len();
    let listed = operator.get(&format!("{RUNS}?status=running")).await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 3, "{listed}");
    assert_eq!(operator.notes().len(), before, "nothing starts before it is used");
    let token = begun["token"].as_str().unwrap();
    // Many at once begin it once.
    let calls = (0..8).map(|_| operator.works(token));
    let mut calls = calls.map(Box::pin).collect::<Vec<_>>();
    std::future::poll_fn(|context| {
        calls.retain_mut(|call| call.as_mut().poll(context).is_pending());
        if calls.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    let id = begun["run_id"].as_str().unwrap();
    assert_eq!(operator.notes()[before..], [format!("old canary-scope auth {id}")]);
    operator.works(own["token"].as_str().unwrap()).await;
    let forged = if let Some(start) = token.strip_suffix('A') {
        format!("{start}E")
    } else {
        format!("{}A", &token[..token.len() - 1])
    };
    for bad in [ended["token"].as_str().unwrap(), forged.as_str()] {
        assert_eq!(operator.echoes(bad).await.status, StatusCode::UNAUTHORIZED);
    }
    let shown = operator.get(&format!("{RUNS}/{id}")).await;
    assert_eq!((&shown["pid"], &shown["status"]), (&json!(1), &json!("running")));
    let path = format!("{RUNS}/{id}");
    assert_eq!(operator.ask("DELETE", &path, "").await.status, StatusCode::NO_CONTENT);
    assert_eq!(operator.echoes(token).await.status, StatusCode::UNAUTHORIZED);
}

/// R-E35, D10: a run that is active after a restart has its servers again, and reports that once
/// for each restart. Nothing else of a run begins again, and later runs report nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn r_e35_an_active_run_reports_its_servers_once_per_restart() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let begun = operator.begin(&request()).await;
    let token = text(&begun, "token");
    let mut expected =
        vec![json!({ "server": "library", "path": "/mnt/mcp/1-library", "auto": true })];
    assert_eq!(operator.told(&begun, "mcp.mount").await, expected);
    let mut again = expected[0].clone();
    again["daemon_restart_recovery"] = json!(true);

    let mut world = world;
    for _restart in 0..2 {
        world = World::operated_in(world.stop().await).await;
        let operator = Operator(&world);
        assert_eq!(
            operator.told(&begun, "mcp.mount").await,
            expected,
            "no caller has used the server yet"
        );
        operator.works(token).await;
        expected.push(again.clone());
        let told = operator.told_in_time(&begun, "mcp.mount", expected.len()).await;
        assert_eq!(told, expected);
        operator.works(token).await;
        assert_eq!(operator.told(&begun, "mcp.mount").await, expected, "once each restart");
    }
    let operator = Operator(&world);
    let others = "mcp.unmount,mcp.error,mcp.reconnect,session.resumed";
    let told = operator.told(&begun, others).await;
    assert!(told.is_empty(), "{told:?}");
    let fresh = operator.begin(&request()).await;
    let told = operator.told(&fresh, "mcp.mount").await;
    assert_eq!(told, [json!({ "server": "library", "path": "/mnt/mcp/2-library", "auto": true })]);
}

/// A run ends by itself when its time is over, also where that has come while no daemon was there.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_when_its_time_has_expired() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let mut soon = request();
    soon["expires_in"] = json!(1);
    let over = async |operator: &Operator<'_>, id: &str| {
        let path = format!("{RUNS}/{id}");
        let ending = async {
            while operator.get(&path).await["status"] == "running" {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, ending).await.expect("a run goes on for ever");
        assert_eq!(operator.get(&path).await["status"], "expired");
    };
    let begun = operator.begin(&soon).await;
    over(&operator, begun["run_id"].as_str().unwrap()).await;
    let reply = operator.echoes(begun["token"].as_str().unwrap()).await;
    assert_eq!(reply.status, StatusCode::UNAUTHORIZED);
    let begun = operator.begin(&soon).await;
    let world = World::operated_in(world.stop().await).await;
    let operator = Operator(&world);
    over(&operator, begun["run_id"].as_str().unwrap()).await;
    let reply = operator.echoes(begun["token"].as_str().unwrap()).await;
    assert_eq!(reply.status, StatusCode::UNAUTHORIZED);
}
