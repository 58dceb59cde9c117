//! Tests of the audit: it has each act with its actor, and never a value; it is searched, exported
//! and trimmed.

use bytes::Bytes;
use http::StatusCode;
use narthex_audit::{Report, Verifier, kind};
use narthex_model::Role;
use narthex_store::Store;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{tenants::Tenants, world::Api};
use crate::world::{ADMIN, Answer};

const AUDIT: &str = "/api/workspaces/default/audit";
const CANARY: &str = "canary-a7d1";

/// An API with secrets, with a separate store.
async fn api() -> (TempDir, Api) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("store.db")).await.unwrap();
    let api = Api::with_secrets(store, &dir.path().join("master.key")).await;
    (dir, api)
}

async fn listed(api: &Api, query: &str) -> Vec<Value> {
    let page = api.get(&format!("{AUDIT}?{query}")).await;
    page["items"].as_array().unwrap().clone()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["kind"].as_str().unwrap()).collect()
}

async fn exported(api: &Api, path: &str) -> String {
    let asked = api.ask("GET", path).header("accept", "application/x-ndjson").send().await;
    assert_eq!(asked.status, StatusCode::OK, "{}", asked.text());
    assert_eq!(asked.headers["content-type"], "application/x-ndjson");
    asked.text().to_owned()
}

fn verified(text: &str) -> Report {
    let mut verifier = Verifier::new();
    text.lines().for_each(|line| verifier.line(line));
    verifier.finish()
}

async fn put_secret(api: &Api, name: &str, value: &str) -> Answer {
    let body = json!({ "value": value }).to_string();
    api.send("PUT", &format!("/api/workspaces/default/secrets/{name}"), body).await
}

fn server(id: &str) -> String {
    json!({
        "id": id, "name": id, "transport": "http", "url": "https://mcp.example.com/mcp",
        "description": "a canary-like text",
    })
    .to_string()
}

/// X-M59, X-M60, X-M63, X-M61: a change of secrets or the catalog is in the audit before the
/// request is answered. The event has its actor, workspace, resource and time, but no value.
#[tokio::test]
async fn x_m59_x_m60_x_m63_changes_are_in_the_audit_without_values() {
    let (_dir, api) = api().await;
    let secret = "/api/workspaces/default/secrets/TOKEN";
    put_secret(&api, "TOKEN", CANARY).await.succeeded();
    put_secret(&api, "TOKEN", "other-canary-a7d1").await.succeeded();
    assert_eq!(api.ask("DELETE", secret).send().await.status, StatusCode::NO_CONTENT);
    let servers = "/api/workspaces/default/mcp-servers";
    api.send("POST", servers, server("linear")).await.succeeded();
    let changed = server("linear").replace("mcp.example", "other.example");
    api.send("PUT", &format!("{servers}/linear"), changed).await.succeeded();
    let removed = api.ask("DELETE", &format!("{servers}/linear")).send().await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT);
    // A refused request changes nothing and is not recorded as a change.
    assert!(!api.send("POST", servers, "{}").await.status.is_success());

    let events = listed(&api, "order=oldest").await;
    let expected = [
        "audit.chain.opened",
        "workspace.secret.set",
        "workspace.secret.replaced",
        "workspace.secret.cleared",
        "workspace.mcp.registered",
        "workspace.mcp.updated",
        "workspace.mcp.removed",
    ];
    assert_eq!(kinds(&events), expected);
    for event in &events[1..] {
        assert_eq!(event["actor"], json!({ "kind": "local_admin", "id": "admin" }));
        assert_eq!((&event["workspace"], &event["outcome"]), (&json!("default"), &json!("ok")));
        assert!(event["time"].is_string() && event["duration_ms"].is_number(), "{event}");
    }
    assert_eq!(events[1]["resource"], json!({ "kind": "secret", "id": "TOKEN" }));
    assert_eq!(events[4]["resource"], json!({ "kind": "server", "id": "linear" }));
    // X-M61: the event has the names of the changed fields.
    assert_eq!(events[5]["fields"], json!(["url"]), "{}", events[5]);
    let text = exported(&api, AUDIT).await;
    assert!(!text.contains("canary") && !text.contains("example.com"), "{text}");
    let report = verified(&text);
    assert!(report.is_whole(), "{:?}", report.broken);
    assert_eq!(report.events, 7);
    assert_eq!(report.chains[0].declared.is_vouched, Some(true));
}

/// X-M59: a change that the store refuses after its start is recorded as failed.
#[tokio::test]
async fn a_failed_change_is_in_the_audit() {
    let (_dir, api) = api().await;
    let secret = "/api/workspaces/default/secrets/NEVER_SET";
    let answer = api.ask("DELETE", secret).send().await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    let events = listed(&api, "kind=workspace.secret").await;
    assert_eq!(kinds(&events), ["workspace.secret.cleared"]);
    assert_eq!(events[0]["outcome"], "failed");
}

/// X-M63: events are filtered by actor, resource, run, kind and time, and listed in pages.
#[tokio::test]
async fn audit_events_are_filtered_and_listed_in_pages() {
    let (_dir, api) = api().await;
    for number in 0..7 {
        put_secret(&api, &format!("S{number}"), "value").await.succeeded();
    }
    let all = listed(&api, "order=oldest&kind=workspace.secret.").await;
    assert_eq!(all.len(), 7);
    let mut newest = listed(&api, "kind=workspace.secret.").await;
    newest.reverse();
    assert_eq!(newest, all);
    for order in ["oldest", "newest"] {
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let query =
                format!("{AUDIT}?order={order}&limit=3&kind=workspace.secret.&after={after}");
            let page = api.get(&query).await;
            seen.extend(page["items"].as_array().unwrap().clone());
            match page["next"].as_str() {
                Some(next) => next.clone_into(&mut after),
                None => break,
            }
        }
        if order == "newest" {
            seen.reverse();
        }
        assert_eq!(seen, all, "{order}");
    }
    assert_eq!(listed(&api, "resource=S3").await.len(), 1);
    assert_eq!(listed(&api, "actor=admin").await.len(), 7);
    assert_eq!(listed(&api, "actor=nobody").await.len(), 0);
    assert_eq!(listed(&api, "run=nobody").await.len(), 0);
    assert_eq!(listed(&api, "until=2020-01-01").await.len(), 0);
    assert_eq!(listed(&api, "since=2020-01-01T00:00:00Z&actor=admin").await.len(), 7);
    let refused = api.ask("GET", &format!("{AUDIT}?since=x&until=y&after=z")).send().await;
    let problem = refused.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    assert!(problem.contains("is not valid"), "{problem}");
    assert_eq!(refused.json()["errors"].as_array().unwrap().len(), 3);
    let foreign = api.ask("GET", "/api/workspaces/nobody/audit").send().await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND);
}

/// S32, X-M63: a service is the actor of its own acts, and changes of permissions are in the audit.
#[tokio::test]
async fn s32_x_m63_services_are_actors_and_access_is_recorded() {
    let tenants = Tenants::with(&["team"]).await;
    let admin = tenants.token("team", Role::Admin);
    let tokens = "/api/workspaces/team/service-tokens";
    let asked = r#"{"service": "ci", "roles": ["author"]}"#;
    let made = tenants.send(admin, "POST", tokens, asked).await.succeeded();
    let id = made["id"].as_str().unwrap();
    let ci = "/api/workspaces/team/members/team%2Fci";
    let set = tenants.send(admin, "PUT", ci, r#"{"roles": ["runner", "auditor"]}"#).await;
    let ci_id = set.succeeded()["id"].clone();
    tenants
        .send(admin, "PUT", ci, r#"{"roles": ["boss"]}"#)
        .await
        .problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    let renamed = r#"{"name": "The team"}"#;
    tenants.send(admin, "PATCH", "/api/workspaces/team", renamed).await.succeeded();
    let token = format!("{tokens}/{id}");
    let revoked = tenants.send(admin, "DELETE", &token, "").await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT);
    tenants.send(admin, "DELETE", &token, "").await.problem(StatusCode::NOT_FOUND, "not_found");
    let removed = tenants.send(admin, "DELETE", ci, "").await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT);

    let audit = "/api/workspaces/team/audit?order=oldest&actor=team%2Fadmin";
    let events = tenants.items(ADMIN, audit).await;
    let expected = [
        kind::SERVICE_CREATED,
        kind::TOKEN_CREATED,
        kind::MEMBER_SET,
        kind::WORKSPACE_UPDATED,
        kind::TOKEN_REVOKED,
        kind::MEMBER_REMOVED,
    ];
    assert_eq!(kinds(&events), expected);
    for event in &events {
        assert_eq!(event["actor"], json!({ "kind": "service", "id": "team/admin" }));
        assert_eq!((&event["workspace"], &event["outcome"]), (&json!("team"), &json!("ok")));
    }
    let principal = json!({ "kind": "principal", "id": ci_id });
    for event in [&events[0], &events[2], &events[5]] {
        assert_eq!(event["resource"], principal);
    }
    assert_eq!(events[1]["details"]["principal"], ci_id);
    assert_eq!(events[2]["fields"], json!(["roles"]));
    assert_eq!(events[4]["resource"], json!({ "kind": "token", "id": id }));
    let text = exported(&tenants.api, "/api/workspaces/team/audit").await;
    assert!(!text.contains(made["token"].as_str().unwrap()) && !text.contains("The team"));
    assert!(verified(&text).is_whole());

    let gone = tenants.api.ask("DELETE", "/api/workspaces/team?force=true").send().await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    let own = tenants.api.get("/api/audit?order=oldest&resource=team").await;
    let own = own["items"].as_array().unwrap();
    assert_eq!(kinds(own), [kind::WORKSPACE_CREATED, kind::WORKSPACE_DELETED]);
    assert_eq!(own[1]["actor"], json!({ "kind": "local_admin", "id": "admin" }));
}

/// D25: an event that cannot be moved into the store is reported as waiting.
#[tokio::test]
async fn an_audit_event_that_cannot_be_moved_is_reported_as_waiting() {
    let (_dir, api) = api().await;
    // This folder has the name of an audit file, so reading it fails.
    let unreadable = api.dir.path().join("audit/audit-01-ffffffffffff-000001.jsonl");
    fs_err::create_dir(&unreadable).unwrap();
    let secret = "/api/workspaces/default/secrets/LATER";
    api.send("PUT", secret, r#"{"value": "canary"}"#).await.succeeded();
    let report = verified(&exported(&api, AUDIT).await);
    assert!(report.is_whole(), "{:?}", report.broken);
    let [waiting] = &report.waiting[..] else { panic!("{:?}", report.waiting) };
    // The event of the change, and the event that opens the chain.
    assert_eq!((&*waiting.workspace, waiting.events, waiting.is_stuck), ("default", 2, true));
    assert!(waiting.since.as_ref().is_some_and(|since| since.ends_with('Z')));
    let page = api.get(AUDIT).await;
    assert_eq!((&page["items"], &page["waiting"]), (&json!([]), &json!(waiting)));
    fs_err::remove_dir(&unreadable).unwrap();
    assert_eq!(api.get(AUDIT).await.get("waiting"), None);
    let report = verified(&exported(&api, AUDIT).await);
    assert!(report.is_whole() && report.waiting.is_empty());
    assert_eq!(report.events, 2);
}

/// S32, X-M61: an operator's change of servers in the settings is in the audit with the names of
/// the changed fields. A refused change is not.
#[tokio::test]
async fn s32_x_m61_changes_of_settings_are_in_the_audit() {
    let (_dir, api) = api().await;
    let entry = r#"{"transport": "http", "url": "http://127.0.0.1:1/canary", "timeoutMs": 5}"#;
    let server = "/api/servers/two";
    api.send("PUT", server, entry).await.succeeded();
    api.send("PATCH", server, r#"{"timeoutMs": 7}"#).await.succeeded();
    api.post("/api/servers/two/disable").await.succeeded();
    api.post("/api/servers/two/enable").await.succeeded();
    api.send("PUT", server, "[]").await.problem(StatusCode::BAD_REQUEST, "invalid");
    assert_eq!(api.ask("DELETE", server).send().await.status, StatusCode::NO_CONTENT);
    api.ask("DELETE", server).send().await.problem(StatusCode::NOT_FOUND, "not_found");
    let events = listed(&api, "order=oldest&resource=two").await;
    let expected = [
        kind::SETTINGS_SERVER_SET,
        kind::SETTINGS_SERVER_SET,
        kind::SERVER_DISABLED,
        kind::SERVER_ENABLED,
        kind::SETTINGS_SERVER_REMOVED,
    ];
    assert_eq!(kinds(&events), expected);
    for event in &events {
        assert_eq!(event["resource"], json!({ "kind": "server", "id": "two" }));
        assert_eq!(event["actor"], json!({ "kind": "local_admin", "id": "admin" }));
        assert_eq!(event["outcome"], "ok");
    }
    assert_eq!(events[0]["fields"], json!(["transport", "url", "timeoutMs"]));
    assert_eq!(events[1]["fields"], json!(["timeoutMs"]));
    assert!(!exported(&api, AUDIT).await.contains("canary"));
}

/// S32: refused callers and denied requests are in the audit.
#[tokio::test]
async fn s32_refusals_are_in_the_audit() {
    let (_dir, api) = api().await;
    let bad =
        api.ask("GET", "/api/status").header("authorization", "Bearer nxt_guess").send().await;
    assert_eq!(bad.status, StatusCode::UNAUTHORIZED);
    let run = api.world.request(http::Method::GET, AUDIT).send().await;
    assert_eq!(run.status, StatusCode::FORBIDDEN);
    let admin = api.ask("POST", "/mcp").body(crate::world::whole(Bytes::new())).send().await;
    assert_eq!(admin.status, StatusCode::FORBIDDEN);
    let hidden = api.world.request(http::Method::POST, "/mcp/hidden").send().await;
    assert_eq!(hidden.status, StatusCode::NOT_FOUND);

    let denied = listed(&api, "kind=access.denied&order=oldest").await;
    let shown = |event: &Value| format!("{} {}", event["actor"]["kind"], event["details"]["path"]);
    let shown: Vec<_> = denied.iter().map(shown).collect();
    assert_eq!(shown, [format!("\"run\" \"{AUDIT}\""), r#""run" "/mcp/hidden""#.to_owned()]);
    let own = api.get("/api/audit?order=oldest").await;
    let own = own["items"].as_array().unwrap().clone();
    let of_kind = |kind: &str| own.iter().filter(|event| event["kind"] == kind).collect::<Vec<_>>();
    assert_eq!(of_kind("access.denied").len(), 1, "{own:?}");
    let refused = of_kind("auth.refused");
    assert_eq!(refused[0]["details"], json!({ "count": 1, "reason": "token" }));
    assert!(!exported(&api, "/api/audit").await.contains("nxt_guess"));
}

/// D25: old events are removed, here by their number. The chain still verifies, and states its
/// first event.
#[tokio::test]
async fn a_trimmed_audit_verifies() {
    let (_dir, api) = api().await;
    for number in 0..20 {
        put_secret(&api, &format!("S{number}"), "value").await.succeeded();
    }
    let settings = format!("{AUDIT}/settings");
    assert_eq!(api.get(&settings).await, json!({ "kept_days": 0, "kept_events": 0 }));
    let kept = json!({ "kept_days": 0, "kept_events": 5 });
    let set = api.send("PUT", &settings, kept.to_string()).await;
    assert_eq!(set.succeeded(), kept);
    let report = verified(&exported(&api, AUDIT).await);
    assert!(report.is_whole(), "{:?}", report.broken);
    let declared = &report.chains[0].declared;
    assert!(declared.base_seq > 10, "{declared:?}");
    assert_eq!(declared.is_vouched, Some(true));
    let events = listed(&api, "order=oldest").await;
    assert!(events.len() < 10, "{events:?}");
    assert!(kinds(&events).contains(&"audit.trimmed"), "{events:?}");
    let wrong = api.send("PUT", &settings, r#"{"kept_days": -1}"#).await;
    wrong.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
}

/// After a change of the key, a mark of the new key confirms the end of the chain.
#[tokio::test]
async fn the_chain_survives_a_change_of_the_key() {
    let (_dir, api) = api().await;
    put_secret(&api, "TOKEN", CANARY).await.succeeded();
    listed(&api, "").await;
    api.post("/api/secrets/rotate-key").await.succeeded();
    put_secret(&api, "TOKEN", CANARY).await.succeeded();
    for path in [AUDIT, "/api/audit"] {
        let report = verified(&exported(&api, path).await);
        assert!(report.is_whole(), "{:?}", report.broken);
        assert!(report.chains.iter().all(|chain| chain.declared.is_vouched == Some(true)));
    }
}

/// A verifier detects changes of the columns beside the events, and of a chain's end.
#[tokio::test]
async fn s32_changes_in_the_store_are_found() {
    let (dir, api) = api().await;
    for name in ["A", "B", "C"] {
        put_secret(&api, name, "value").await.succeeded();
    }
    assert!(verified(&exported(&api, AUDIT).await).is_whole());
    let store = Store::open(&dir.path().join("store.db")).await.unwrap();
    let chain = store.audit().chains("default").await.unwrap().remove(0);
    // A program that can write to the store, but has no key, adds an event.
    let rows = store.audit().of_chain(&chain, (0, 10), 10).await.unwrap();
    let mut forged = rows.last().unwrap().clone();
    forged.seq += 1;
    let mut grown = chain.clone();
    grown.head_seq += 1;
    assert!(store.audit().append(&[(chain.clone(), grown)], &[forged]).await.unwrap());
    let report = verified(&exported(&api, AUDIT).await);
    assert!(!report.is_whole());
    // The change is also detected after the daemon has added an event.
    put_secret(&api, "D", "value").await.succeeded();
    let report = verified(&exported(&api, AUDIT).await);
    assert!(!report.is_whole());
    assert_ne!(report.chains[0].declared.is_vouched, Some(true));
}

/// X-M64, X-E31: only an admin of the workspace decides two things: if the audit has the contents
/// of calls, and which agents may have servers to which people sign in. Each change is recorded as
/// a separate event; a faulty one changes nothing.
#[tokio::test]
async fn x_m64_only_admins_set_the_switch_for_contents_and_each_change_is_recorded() {
    let tenants = Tenants::with(&["team"]).await;
    let (admin, place) = (tenants.token("team", Role::Admin), "/api/workspaces/team");
    let switch = |is_on: bool| json!({ "audits_contents": is_on }).to_string();
    for role in [Role::Author, Role::Runner, Role::Auditor] {
        let token = tenants.token("team", role);
        let refused = tenants.send(token, "PATCH", place, &switch(true)).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{role:?}");
    }
    let no_words = [r#"{"oauth_on_orchestrators": "yes"}"#, r#"{"oauth_on_orchestrators": true}"#];
    let no_flags = [r#"{"audits_contents": "yes"}"#, r#"{"audits_contents": null}"#, "{}"];
    for wrong in no_words.into_iter().chain(no_flags) {
        let refused = tenants.send(admin, "PATCH", place, wrong).await;
        refused.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    }
    assert_eq!(tenants.api.get(place).await["audits_contents"], false);
    let both = json!({ "name": "T", "audits_contents": true }).to_string();
    let changed = tenants.send(admin, "PATCH", place, &both).await.succeeded();
    let shown = |name: &str, is_on: bool| {
        json!({ "id": "team", "name": name, "audits_contents": is_on,
                "oauth_on_orchestrators": "off", "events_kept_days": 30,
                "runtime_requests": true, "models": [] })
    };
    assert_eq!(changed, shown("T", true));
    let renamed = tenants.send(admin, "PATCH", place, r#"{"name": "U"}"#).await.succeeded();
    assert_eq!(renamed["audits_contents"], true);
    let changed = tenants.send(admin, "PATCH", place, &switch(false)).await.succeeded();
    assert_eq!(changed, shown("U", false));
    let attended = r#"{"oauth_on_orchestrators": "on_attended"}"#;
    let changed = tenants.send(admin, "PATCH", place, attended).await.succeeded();
    assert_eq!(changed["oauth_on_orchestrators"], "on_attended");
    assert_eq!(tenants.api.get(place).await, changed);
    let audit = "/api/workspaces/team/audit?order=oldest&actor=team%2Fadmin&kind=workspace.";
    let events = tenants.items(ADMIN, audit).await;
    let expected = [
        kind::WORKSPACE_UPDATED,
        kind::CONTENTS_ON,
        kind::WORKSPACE_UPDATED,
        kind::CONTENTS_OFF,
        kind::OAUTH_UPDATED,
    ];
    assert_eq!(kinds(&events), expected);
    assert_eq!(events[4]["fields"], json!(["oauth_on_orchestrators"]));
    assert_eq!(events[4]["details"]["value"], "on_attended");
    assert_eq!(events[1]["fields"], json!(["audits_contents"]));
    assert_eq!(events[1]["resource"], json!({ "kind": "workspace", "id": "team" }));
}
