//! Tests of files of related runs: parents, children, and earlier runs of the same session.

use http::StatusCode;
use narthex_store::Store;
use serde_json::{Value, json};

use super::{
    kin::{HERE, end, text},
    world::Api,
};
use crate::world::Answer;

/// A daemon with two agents: `lead` has `docs` and `notes`; `reader` has the same `docs`, and a
/// `notes` of another server.
async fn daemon(place: &tempfile::TempDir) -> Api {
    let api = daemon_on(place).await;
    for name in ["docs", "notes", "other"] {
        let server = json!({ "url": api.fixture_url(), "transport": "http" }).to_string();
        api.send("PUT", &format!("{HERE}/mcp-servers/{name}"), server).await.succeeded();
    }
    for (agent, notes) in [("lead", "notes"), ("reader", "other")] {
        let servers = json!({ "docs": { "ref": "docs" }, "notes": { "ref": notes } });
        let agent_text = json!({ "mcpServers": servers }).to_string();
        api.send("PUT", &format!("{HERE}/agents/{agent}"), agent_text).await.succeeded();
    }
    api
}

async fn daemon_on(place: &tempfile::TempDir) -> Api {
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    Api::with_all(&json!({}), store, &place.path().join("master.key")).await
}

async fn begun(api: &Api, asked: Value) -> Value {
    api.send("POST", &format!("{HERE}/runs"), asked.to_string()).await.succeeded()
}

async fn look(api: &Api, run: &Value, path: &str) -> Answer {
    let token = format!("Bearer {}", text(run, "token"));
    api.ask("GET", &format!("/vfs/mnt/mcp{path}")).header("authorization", &token).send().await
}

async fn pid(api: &Api, run: &Value) -> u64 {
    look(api, run, "").await.json()["pid"].as_u64().unwrap()
}

/// R-D9, R-G5, D5: a child that uses its parent's path calls its own server. It learns that its
/// parent's other servers exist, but nothing about servers of unrelated runs.
#[tokio::test]
async fn r_d9_a_childs_use_of_its_parents_path_means_the_childs_own_server() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let lead = begun(&api, json!({ "agent_name": "lead" })).await;
    let other = begun(&api, json!({ "agent_name": "lead" })).await;
    let asked = json!({ "agent_name": "reader", "parent_run_id": text(&lead, "run_id") });
    let child = begun(&api, asked).await;
    let (above, stranger, own) =
        (pid(&api, &lead).await, pid(&api, &other).await, pid(&api, &child).await);
    assert!(above != stranger && own != above);
    let listed = look(&api, &child, &format!("/{above}-docs/tools")).await;
    assert_eq!(listed.status, StatusCode::OK, "{}", listed.text());
    let stat = look(&api, &child, &format!("/{above}-docs?op=stat")).await.json();
    assert_eq!(stat["device"], format!("/mnt/mcp/{own}-docs"), "it calls in its own name");
    let synonyms = look(&api, &child, "").await.json()["synonyms"].take();
    let expected = json!({ "path": format!("/mnt/mcp/{above}-docs"),
                           "means": format!("/mnt/mcp/{own}-docs") });
    assert!(synonyms.as_array().unwrap().contains(&expected), "{synonyms}");
    let denied = look(&api, &child, &format!("/{above}-notes/tools")).await;
    assert_eq!(
        (denied.status, &denied.json()["code"]),
        (StatusCode::FORBIDDEN, &json!("PERMISSION"))
    );
    let closed = look(&api, &child, "?op=mounts").await.json()["closed"].take();
    assert_eq!(closed, json!([format!("{above}-notes")]), "a folder knows it, too");
    for (run, path) in [
        (&child, format!("/{stranger}-docs/tools")),
        (&lead, format!("/{own}-docs/tools")),
        (&lead, format!("/{stranger}-docs/tools")),
    ] {
        let absent = look(&api, run, &path).await;
        assert_eq!(absent.status, StatusCode::NOT_FOUND, "{path}: {}", absent.text());
    }
}

/// R-D9, R-M15: after a restart of the daemon, a child can use its parent's paths as soon as the
/// parent has used its token. The order of their requests does not matter.
#[tokio::test]
async fn r_d9_a_child_has_its_parents_paths_again_after_a_restart() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let lead = begun(&api, json!({ "agent_name": "lead" })).await;
    let asked = json!({ "agent_name": "reader", "parent_run_id": text(&lead, "run_id") });
    let child = begun(&api, asked).await;
    let below = json!({ "agent_name": "reader", "parent_run_id": text(&child, "run_id") });
    let below = begun(&api, below).await;
    let above = pid(&api, &lead).await;
    // A second daemon on the same store, while the first one's servers still run.
    let again = daemon_on(&place).await;
    let path = format!("/{above}-docs/tools");
    for run in [&below, &child] {
        let absent = look(&again, run, &path).await;
        assert_eq!(absent.status, StatusCode::NOT_FOUND, "{}", absent.text());
    }
    pid(&again, &lead).await;
    for run in [&below, &child] {
        let listed = look(&again, run, &path).await;
        assert_eq!(listed.status, StatusCode::OK, "{}", listed.text());
        let denied = look(&again, run, &format!("/{above}-notes/tools")).await;
        assert_eq!(denied.status, StatusCode::FORBIDDEN, "{}", denied.text());
    }
}

/// R-M25, R-D1, R-M22: a resumed session has a new pid, and its old paths still lead to its
/// servers. A run that has ended has no files.
#[tokio::test]
async fn r_m25_a_resumed_session_has_a_new_number_and_its_old_paths() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let first = begun(&api, json!({ "agent_name": "lead" })).await;
    let old = pid(&api, &first).await;
    end(&api, &format!("{HERE}/runs/{}", text(&first, "run_id"))).await;
    let over = look(&api, &first, "").await;
    assert_eq!(over.status, StatusCode::UNAUTHORIZED, "{}", over.text());
    let asked = json!({ "type": "resume_session", "session_id": text(&first, "session_id") });
    let next = begun(&api, asked).await;
    let new = pid(&api, &next).await;
    assert!(new > old);
    for number in [old, new] {
        let listed = look(&api, &next, &format!("/{number}-docs/tools")).await;
        assert_eq!(listed.status, StatusCode::OK, "{}", listed.text());
    }
    let other = begun(&api, json!({ "agent_name": "lead" })).await;
    let absent = look(&api, &other, &format!("/{old}-docs/tools")).await;
    assert_eq!(absent.status, StatusCode::NOT_FOUND);
}
