//! S18: the admin of one workspace requests objects of another.

use http::StatusCode;
use narthex_http::{Access, ROUTES};
use narthex_model::Role;
use serde_json::json;

use super::tenants::Tenants;
use crate::world::Answer;

const SERVER: &str = r#"{"id": "a-server", "name": "A", "url": "https://a.test/mcp"}"#;

/// Two tenants. The first one has an object of each kind; returns all their ids.
async fn full() -> (Tenants, Vec<String>) {
    let tenants = Tenants::with(&["team", "rival"]).await;
    let api = &tenants.api;
    let at = |rest: &str| format!("/api/workspaces/team/{rest}");
    api.send("PUT", &at("mcp-servers/a-server"), SERVER).await.succeeded();
    api.send("POST", &at("capabilities"), r#"{"name": "a-capability"}"#).await.succeeded();
    api.send("POST", &at("agents"), r#"{"name": "a-agent"}"#).await.succeeded();
    api.send("PUT", &at("secrets/A_SECRET"), r#"{"value": "x"}"#).await.succeeded();
    let bound =
        json!({ "scope": "agent", "scope_id": "a-agent", "name": "A", "secret": "A_SECRET" });
    api.send("POST", &at("env-bindings"), bound.to_string()).await.succeeded();
    let ada = api.send("POST", "/api/principals", r#"{"name": "ada"}"#).await.succeeded();
    let member = at("members/ada");
    api.send("PUT", &member, r#"{"roles": ["admin"]}"#).await.succeeded();
    let grant = json!({ "grant_type": "tool_scope", "details": { "scope": "a.b" },
                        "scope": "persistent", "agent_subject_id": "a-agent" });
    let grant = api.send("POST", &at("grants"), grant.to_string()).await.succeeded();
    let mut ids: Vec<_> = [
        "a-server",
        "a-capability",
        "a-agent",
        "A_SECRET",
        "agent:a-agent:A",
        "ada",
        "team%2Fadmin",
        "team%2Fdesktop",
    ]
    .map(str::to_owned)
    .into();
    ids.push(ada["id"].as_str().unwrap().to_owned());
    ids.push(grant["id"].as_str().unwrap().to_owned());
    let client = json!({ "client": "desktop", "agent_name": "a-agent" });
    api.send("POST", &at("mcp-clients"), client.to_string()).await.succeeded();
    let run = api.send("POST", &at("runs"), r#"{"agent_name": "a-agent"}"#).await.succeeded();
    ids.push(run["run_id"].as_str().unwrap().to_owned());
    let session = run["session_id"].as_str().unwrap();
    let message = at(&format!("sessions/{session}/messages"));
    api.send("POST", &message, r#"{"text": "a-message"}"#).await.succeeded();
    ids.push(session.to_owned());
    let channel = at("channels/a-channel");
    api.send("PUT", &channel, r#"{"provider": "log"}"#).await.succeeded();
    ids.push("a-channel".to_owned());
    let share = api.shared_by("team", &run).await;
    let comments = at(&format!("shares/{share}/comments"));
    api.send("POST", &comments, r#"{"text": "a-comment"}"#).await.succeeded();
    ids.push(share);
    for list in ["members", "service-tokens", "mcp-clients"] {
        let items = tenants.items(crate::world::ADMIN, &at(list)).await;
        ids.extend(items.iter().map(|one| one["id"].as_str().unwrap().to_owned()));
    }
    (tenants, ids)
}

/// A body that passes the checks that come before the id.
fn body(template: &str, method: &str) -> String {
    let is_member = template.contains("/members/");
    let body = match method {
        "PUT" if is_member => json!({ "roles": ["runner"] }),
        // A workspace may use any name or id of its own, so this body must store nothing.
        "PUT" => json!([]),
        "PATCH" if template.contains("/comments/") => json!({ "resolved": true }),
        "PATCH" => json!({ "name": "x" }),
        "POST" if template.ends_with("/messages") => json!({ "text": "x" }),
        "POST" if template.ends_with("/claim") || template.ends_with("/resume") => json!({}),
        "POST" if template.ends_with("/usage") => json!({ "id": "x", "model": "x" }),
        "POST" if template.ends_with("/comments") => json!({ "text": "x" }),
        _ => return String::new(),
    };
    body.to_string()
}

fn same(one: &Answer, other: &Answer, what: &str) {
    assert_eq!(one.status, other.status, "{what}: {} {}", one.text(), other.text());
    assert_eq!(one.headers, other.headers, "{what}");
    assert_eq!(one.body, other.body, "{what}: {} {}", one.text(), other.text());
}

/// The paths of a route with each id, in the caller's workspace and in the other one. The other
/// workspace's lists are included; the caller's own lists are not, since they have its own ids.
fn paths(template: &str, ids: &[String]) -> Vec<String> {
    let mut paths = Vec::new();
    for workspace in ["rival", "team"] {
        let path = template.replace("{workspace}", workspace);
        match path.split_once('{') {
            Some((before, rest)) => {
                let after = rest.split_once('}').unwrap().1;
                paths.extend(ids.iter().map(|id| format!("{before}{id}{after}")));
            }
            None if workspace == "team" => paths.push(path),
            None => {}
        }
    }
    paths
}

/// S18, X-E97: requests with ids of one workspace, sent by the admin of another, get the same bytes
/// as in an installation in which the first workspace never existed. This holds for every route,
/// including the first workspace's own routes and each route that is added later.
#[tokio::test]
async fn s18_objects_of_another_workspace_look_like_objects_that_do_not_exist() {
    let ((full, ids), without) = (full().await, Tenants::with(&["rival"]).await);
    let (chief, other) = (full.token("rival", Role::Admin), without.token("rival", Role::Admin));
    let mut asked = 0;
    for route in ROUTES.iter().filter(|route| route.template.contains('{')) {
        for path in paths(route.template, &ids) {
            for method in route.methods.split(", ") {
                let what = format!("{method} {path}");
                let body = body(route.template, method);
                let hidden = full.send(chief, method, &path, &body).await;
                let absent = without.send(other, method, &path, &body).await;
                same(&hidden, &absent, &what);
                let is_member = matches!(route.access, Access::Member(_) | Access::Starter(_));
                let is_of_rival = path.starts_with("/api/workspaces/rival");
                let makes_ones_own = is_of_rival && method == "PUT" && !path.contains("/members/");
                let is_malformed = hidden.status == StatusCode::UNPROCESSABLE_ENTITY
                    || hidden.status == StatusCode::BAD_REQUEST;
                // A caller that is no human can neither create grants, nor decide on definitions,
                // nor connect an account.
                let human = ["/grant", "/definitions/", "/mcp-tokens/"];
                let is_for_humans = hidden.status == StatusCode::FORBIDDEN
                    && human.iter().any(|part| path.contains(part))
                    && is_of_rival;
                let is_fine = !is_member || makes_ones_own || is_malformed || is_for_humans;
                assert!(is_fine || hidden.status == StatusCode::NOT_FOUND, "{what}");
                asked += 1;
            }
        }
    }
    assert!(asked > 300, "only {asked}");
    // Lists of the caller's own do not show the other workspace either.
    for list in ["/api/workspaces", "/api/workspaces/rival/members"] {
        let listed = full.send(chief, "GET", list, "").await;
        assert_eq!(listed.status, StatusCode::OK);
        assert!(!listed.text().contains("team") && !listed.text().contains("ada"), "{list}");
    }
    // The requests have changed nothing in the other workspace.
    let at = |rest: &str| format!("/api/workspaces/team/{rest}");
    assert_eq!(full.api.get(&at("mcp-servers/a-server")).await["revision"], 1);
    let sessions = full.items(crate::world::ADMIN, &at("sessions")).await;
    assert_eq!((sessions.len(), &sessions[0]["status"]), (1, &json!("running")));
    let session = sessions[0]["session_id"].as_str().unwrap();
    let events = full.items(crate::world::ADMIN, &at(&format!("sessions/{session}/events"))).await;
    assert_eq!(events.len(), 3, "{events:?}");
    let members = full.items(crate::world::ADMIN, &at("members")).await;
    assert_eq!(members.len(), Role::ALL.len() + 1);
    let tokens = full.items(crate::world::ADMIN, &at("service-tokens")).await;
    assert!(tokens.iter().all(|token| token["is_live"] == true), "{tokens:?}");
}

/// S18, I-M7: a registered client's token is accepted only at routes of MCP, in its own workspace
/// and in others. Refused requests create no run for it.
#[tokio::test]
async fn s18_the_token_of_a_registered_client_opens_only_routes_of_mcp() {
    let (tenants, ids) = full().await;
    let made = json!({ "client": "ide", "agent_name": "a-agent" }).to_string();
    let place = "/api/workspaces/team/mcp-clients";
    let made = tenants.api.send("POST", place, made).await.succeeded();
    let token = made["token"].as_str().unwrap();
    let mut asked = 0;
    for route in ROUTES {
        if matches!(route.access, Access::Open | Access::Own(_) | Access::Client) {
            continue;
        }
        for path in paths(route.template, &ids[..2]) {
            for method in route.methods.split(", ") {
                let refused =
                    tenants.send(token, method, &path, &body(route.template, method)).await;
                assert_eq!(refused.status, StatusCode::FORBIDDEN, "{method} {path}");
                asked += 1;
            }
        }
    }
    assert!(asked > 100, "only {asked}");
    let seen = tenants.api.get(&format!("{place}/{}", made["id"].as_str().unwrap())).await;
    assert_eq!((&seen["is_live"], &seen["run_id"]), (&json!(true), &json!(null)));
}
