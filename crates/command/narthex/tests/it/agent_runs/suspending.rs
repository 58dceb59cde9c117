//! Sessions that are suspended and resumed, and the words of their events about servers.

use hyper::StatusCode;
use serde_json::{Value, json};

use super::{HOME, plain, request};
use crate::{
    runs::{Operator, RUNS},
    support::fixture,
    world::{SOON, World},
};

pub(super) fn text<'v>(of: &'v Value, name: &str) -> &'v str {
    of[name].as_str().unwrap_or_else(|| panic!("no {name}: {of}"))
}

impl Operator<'_> {
    pub(super) async fn suspend(&self, run: &Value) -> Value {
        let path = format!("{HOME}/sessions/{}/suspend", text(run, "session_id"));
        let reply = self.ask("POST", &path, "").await;
        assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
        reply.json()
    }

    pub(super) async fn resume(&self, run: &Value, asked: &Value) -> Value {
        let path = format!("{HOME}/sessions/{}/resume", text(run, "session_id"));
        let reply = self.ask("POST", &path, &asked.to_string()).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{reply:?}");
        assert_eq!(reply.headers["cache-control"], "no-store");
        reply.json()
    }

    async fn not_resumed(&self, run: &Value, asked: &Value, status: StatusCode) -> String {
        let path = format!("{HOME}/sessions/{}/resume", text(run, "session_id"));
        let reply = self.ask("POST", &path, &asked.to_string()).await;
        assert_eq!(reply.status, status, "{reply:?}");
        String::from_utf8(reply.body.to_vec()).unwrap()
    }

    /// The payloads of the events of one kind in the session of a run.
    pub(super) async fn told(&self, run: &Value, kind: &str) -> Vec<Value> {
        let path = format!("{HOME}/sessions/{}/events?type={kind}", text(run, "session_id"));
        let mut page = self.get(&path).await;
        let items = page["items"].as_array_mut().unwrap();
        items.iter_mut().map(|event| event["payload"].take()).collect()
    }

    /// Waits until there are at least `count` events of this kind, and returns them.
    pub(super) async fn told_in_time(&self, run: &Value, kind: &str, count: usize) -> Vec<Value> {
        let waiting = async {
            loop {
                let told = self.told(run, kind).await;
                if told.len() >= count {
                    return told;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, waiting).await.expect("an event does not come")
    }
}

/// R-M23, R-M25, R-D1, R-E32, R-E35, R-E31, R-E38, A-10: the servers of a suspended session come
/// back after a restart, with a new number: the agent and scope as they were, the secrets as they
/// are.
#[tokio::test(flavor = "multi_thread")]
async fn r_m23_a_suspended_session_resumes_after_a_restart() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("old").await;
    let first = operator.begin(&request()).await;
    let seen = operator.suspend(&first).await;
    assert_eq!((&seen["status"], &seen["suspended_by"]), (&json!("suspended"), &json!("admin")));
    assert_eq!(seen["runs"][0]["status"], "ended");
    let token = text(&first, "token");
    assert_eq!(operator.echoes(token).await.status, StatusCode::UNAUTHORIZED);
    let path = format!("{HOME}/sessions/{}/suspend", text(&first, "session_id"));
    assert_eq!(operator.ask("POST", &path, "").await.status, StatusCode::CONFLICT);
    let unmounted = operator.told_in_time(&first, "mcp.unmount", 1).await;
    assert_eq!(
        (&unmounted[0]["path"], &unmounted[0]["auto"]),
        (&json!("/mnt/mcp/1-library"), &json!(true))
    );
    assert!(
        unmounted[0]["duration_ms"].is_u64() && unmounted[0]["forced"].is_null(),
        "{unmounted:?}"
    );
    operator.put("secrets/LIBRARY_TOKEN", &json!({ "value": "new" })).await;
    operator.put("agents/reader", &json!({ "name": "reader" })).await;

    let world = World::operated_in(world.stop().await).await;
    let operator = Operator(&world);
    let listed = operator.get(&format!("{HOME}/sessions")).await;
    assert_eq!(listed["items"][0]["status"], "suspended", "{listed}");
    assert_eq!(operator.notes().len(), 1, "nothing starts before it goes on");
    operator.not_resumed(&first, &json!({ "tools": ["*"] }), StatusCode::BAD_REQUEST).await;
    operator.not_resumed(&first, &json!({ "direct": true }), StatusCode::FORBIDDEN).await;
    let second = operator.resume(&first, &json!({ "expires_in": 600 })).await;
    assert_eq!((&second["pid"], &second["former_pids"]), (&json!(2), &json!([1])));
    let told = operator.notes().last().cloned().unwrap();
    assert_eq!(told, format!("new canary-scope auth {}", text(&second, "run_id")));
    operator.works(text(&second, "token")).await;
    assert_eq!(operator.get(&format!("{HOME}/sessions")).await["items"][0]["status"], "running");
    let again = operator.not_resumed(&first, &json!({}), StatusCode::CONFLICT).await;
    assert!(again.contains("it has an active run"), "{again}");

    let mounted = operator.told(&second, "mcp.mount").await;
    assert_eq!(
        mounted[0],
        json!({ "server": "library", "path": "/mnt/mcp/1-library", "auto": true })
    );
    assert_eq!(
        mounted[1..],
        [json!({ "server": "library", "path": "/mnt/mcp/2-library", "auto": true, "pid": 2,
                 "source": "resume", "former_pid": 1, "former_path": "/mnt/mcp/1-library",
                 "daemon_restart_recovery": true })]
    );
    let resumed = operator.told(&second, "session.resumed").await;
    assert_eq!(
        (&resumed[0]["former_pids"], &resumed[0]["was_suspended"]),
        (&json!([1]), &json!(true))
    );
    // R-E42: a server that is well is not reported.
    let health = operator.told(&second, "mcp.error,mcp.reconnect").await;
    assert!(health.is_empty(), "{health:?}");
    let path = format!("{HOME}/sessions/{}", text(&first, "session_id"));
    assert_eq!(operator.ask("DELETE", &path, "").await.status, StatusCode::NO_CONTENT);
    let over = operator.not_resumed(&first, &json!({}), StatusCode::CONFLICT).await;
    assert!(over.contains("has ended already; create a run with `narthex "), "{over}");
}

/// R-E33, R-D5, R-E38: a server that cannot be had when a session is resumed is left out, with one
/// event for it and one for each other; a server whose secret was cleared stays away.
#[tokio::test(flavor = "multi_thread")]
async fn r_e33_a_session_resumes_without_a_server_that_fails() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let mut plain = plain();
    plain["id"] = json!("plain");
    operator.put("mcp-servers/plain", &plain).await;
    let mut reader = super::reader();
    reader["mcpServers"]["more"] = json!({ "ref": "plain" });
    operator.put("agents/reader", &reader).await;
    let first = operator.begin(&request()).await;
    operator.suspend(&first).await;
    operator.put("agents/reader", &json!({ "name": "reader" })).await;
    let path = format!("{HOME}/secrets/LIBRARY_TOKEN");
    assert!(operator.ask("DELETE", &path, "").await.status.is_success());
    let second = operator.resume(&first, &json!({})).await;
    let mounted = operator.told(&second, "mcp.mount").await;
    let paths: Vec<_> = mounted[2..].iter().map(|one| text(one, "path")).collect();
    assert_eq!(paths, ["/mnt/mcp/2-more"], "{mounted:?}");
    let failed = operator.told(&second, "mcp.error").await;
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(
        (text(&failed[0], "server"), text(&failed[0], "path"), &failed[0]["former_pid"]),
        ("library", "/mnt/mcp/2-library", &json!(1))
    );
    assert!(text(&failed[0], "reason").contains("LIBRARY_TOKEN"), "{failed:?}");
    let servers = second["servers"].as_array().unwrap();
    let state =
        |alias: &str| servers.iter().find(|one| one["alias"] == alias).unwrap()["state"].clone();
    assert_eq!((state("more"), state("library")), (json!("ready"), json!("error")));
}

/// R-M24, R-E39, R-E37: a session without an active run is resumed with its agent's present
/// definition. A session with servers of its own is resumed with these, suspended or not, and only
/// by operators.
#[tokio::test(flavor = "multi_thread")]
async fn r_e39_a_session_without_an_active_run_can_be_resumed() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let first = operator.begin(&request()).await;
    let own = operator.begin(&json!({ "servers": { "library": plain() } })).await;
    for run in [&first, &own] {
        let path = format!("{RUNS}/{}", text(run, "run_id"));
        assert_eq!(operator.ask("DELETE", &path, "").await.status, StatusCode::NO_CONTENT);
    }
    let needs = operator.not_resumed(&first, &json!({}), StatusCode::BAD_REQUEST).await;
    assert!(needs.contains("context_id"), "{needs}");
    let scope = json!({ "scope": { "context_id": "second" } });
    let second = operator.resume(&first, &scope).await;
    let told = operator.notes().last().cloned().unwrap();
    assert_eq!(told, format!("secret second auth {}", text(&second, "run_id")));
    let again = operator.resume(&own, &json!({})).await;
    operator.works(text(&again, "token")).await;
    operator.suspend(&own).await;
    let last = operator.resume(&own, &json!({})).await;
    operator.works(text(&last, "token")).await;
    assert_eq!(last["former_pids"], json!([2, 4]));
    let mounted = operator.told(&own, "mcp.mount").await;
    let paths: Vec<_> = mounted.iter().map(|one| text(one, "path")).collect();
    let wanted = ["/mnt/mcp/2-library", "/mnt/mcp/4-library", "/mnt/mcp/5-library"];
    assert_eq!(paths, wanted, "{mounted:?}");
    assert!(mounted[2]["daemon_restart_recovery"].is_null(), "{mounted:?}");
    // R-E37: a session without servers has no such event.
    operator.put("agents/idle", &json!({ "name": "idle" })).await;
    let idle = operator.begin(&json!({ "agent_name": "idle" })).await;
    operator.suspend(&idle).await;
    operator.resume(&idle, &json!({})).await;
    let told = operator.told(&idle, "mcp.mount,mcp.unmount,mcp.error,mcp.reconnect").await;
    assert!(told.is_empty(), "{told:?}");
}

/// R-E40, R-E41, A-3: a server that is lost and comes back is reported once each.
#[tokio::test(flavor = "multi_thread")]
async fn r_e40_loss_and_return_of_a_server_are_events_of_the_session() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let run = operator.begin(&request()).await;
    operator.works(text(&run, "token")).await;
    let notes = fs_err::read_to_string(world.path("notes")).unwrap();
    let pid = notes.split_once(' ').unwrap().0;
    let killed = std::process::Command::new("kill").args(["-9", pid]).status().unwrap();
    assert!(killed.success());
    let lost = operator.told_in_time(&run, "mcp.error", 1).await;
    assert_eq!((lost.len(), text(&lost[0], "server")), (1, "library"));
    assert!(!text(&lost[0], "reason").is_empty(), "{lost:?}");
    let back = operator.told_in_time(&run, "mcp.reconnect", 1).await;
    let wanted = json!({ "server": "library", "reconnect_count": 1, "attempt": 1 });
    assert_eq!(back, [wanted]);
    operator.works(text(&run, "token")).await;
    assert_eq!(operator.told(&run, "mcp.error").await.len(), 1);
}

/// R-E31: a server that was given back is reported, also where it ends while the daemon stops.
#[tokio::test(flavor = "multi_thread")]
async fn r_e31_a_server_that_ends_while_the_daemon_stops_is_reported() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    let script = format!("'{}' --stdio; sleep 0.3", fixture().display());
    let server = json!({ "type": "stdio", "command": "sh", "args": ["-c", script] });
    operator.put("mcp-servers/slow", &server).await;
    operator.put("agents/slow", &json!({ "mcpServers": { "slow": { "ref": "slow" } } })).await;
    let asked = json!({ "type": "start_session", "agent_name": "slow" });
    let begun = operator.begin(&asked).await;
    operator.suspend(&begun).await;
    let world = World::operated_in(world.stop().await).await;
    let told = Operator(&world).told(&begun, "mcp.unmount").await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["path"], "/mnt/mcp/1-slow");
}
