//! Sends every route input that two readers could read differently, or that could crash a reader.

use http::{Method, StatusCode};
use narthex_http::{Access, ROUTES, Route};
use narthex_model::Role;
use serde_json::{Value, json};

use super::{tenants::Tenants, world::Api};
use crate::world::{ADMIN, Answer, whole};

/// Query parameters that routes know.
const KNOWN: [&str; 14] = [
    "after", "limit", "actor", "resource", "run", "kind", "since", "until", "order", "session",
    "status", "scope", "scope_id", "view",
];
/// Values that are no text, no number, or out of range.
const ODD: [&str; 9] = [
    "%00",
    "a%00b",
    "%ff%fe",
    "%ed%a0%80",
    "-1",
    "99999999999999999999999999",
    "9223372036854775807-18446744073709551615-%00",
    "18446744073709551615-18446744073709551615-w",
    "'%22%3b--",
];

fn bodies() -> Vec<String> {
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(3000), close.repeat(3000));
    let members = ["id", "name", "scope", "secret", "servers", "params", "mcpServers", "value"];
    let mut all = vec![
        String::new(),
        "null".to_owned(),
        "1e999".to_owned(),
        "[{}]".to_owned(),
        deep("[", "]"),
        deep("{\"mcpServers\":", "}"),
        deep("{\"config_schema\":", "}"),
        r#"{"__proto__": {"is_operator": true}, "constructor": 1}"#.to_owned(),
        r#"{"\u0000": "\u0000", "name": "a\u0000", "id": "a\u0000"}"#.to_owned(),
        "{\"name\": \"\\ud800\", \"id\": \"\\udfff\\ud800\"}".to_owned(),
    ];
    for name in members {
        for value in ["1e400", "-0.0", "\"\\u0000\"", "{\"\": {}}", "[[]]", "\"\u{202e}x\u{feff}\""]
        {
            all.push(format!("{{\"{name}\": {value}}}"));
        }
        all.push(format!("{{\"{name}\": \"a\", \"{name}\": \"b\"}}"));
    }
    all
}

/// A path of a route, in an existing workspace.
fn path(route: &Route, id: &str) -> String {
    let path = route.template.replace("{workspace}", "team");
    let mut parts: Vec<_> = path.split('/').collect();
    for part in parts.iter_mut().filter(|part| part.starts_with('{')) {
        *part = id;
    }
    parts.join("/")
}

fn is_stream(route: &Route) -> bool {
    let streams = ["/api/events", "/api/workspaces/{workspace}/events"];
    streams.contains(&route.template) || route.template.ends_with("/test")
}

fn routes() -> impl Iterator<Item = &'static Route> {
    let is_api = |route: &&Route| {
        route.template.starts_with("/api/")
            && !matches!(route.access, Access::Own(_))
            && !is_stream(route)
            // A key rotation would disturb the other requests.
            && route.template != "/api/secrets/rotate-key"
    };
    ROUTES.iter().filter(is_api)
}

#[track_caller]
fn is_refused_or_done(answer: &Answer, what: &str) {
    assert!(answer.status.as_u16() < 500, "{what}: {} {}", answer.status, answer.text());
    assert!(answer.text().is_empty() || !answer.text().contains('\0'), "{what}");
}

/// The paths in which an odd value is the id or a query value, for routes that show or delete an
/// object.
fn addresses(route: &Route, value: &str) -> Vec<(&'static str, String)> {
    let has = |method: &&str| route.methods.split(", ").any(|one| one == *method);
    let mut all: Vec<_> =
        ["GET", "DELETE"].into_iter().filter(has).map(|one| (one, path(route, value))).collect();
    if has(&"GET") {
        let names = KNOWN.iter();
        all.extend(names.map(|name| ("GET", format!("{}?{name}={value}", path(route, "x")))));
    }
    all.retain(|(_, path)| path.parse::<http::Uri>().is_ok());
    all
}

/// S12: odd text in a query, or instead of an id, is refused or finds nothing.
#[tokio::test]
async fn s12_odd_paths_and_queries_cause_no_server_error() {
    let tenants = Tenants::with(&["team"]).await;
    let mut asked = 0;
    for route in routes() {
        let addresses = ODD.iter().flat_map(|value| addresses(route, value));
        for (method, path) in addresses {
            let answer = tenants.send(ADMIN, method, &path, "").await;
            is_refused_or_done(&answer, &format!("{method} {path}"));
            asked += 1;
        }
    }
    assert!(asked > 1000, "only {asked}");
}

/// S12: no body causes a server error, and a body with a repeated name is refused.
#[tokio::test]
async fn s12_odd_bodies_cause_no_server_error_on_any_route() {
    let tenants = Tenants::with(&["team"]).await;
    let bodies = bodies();
    for route in routes() {
        for method in route.methods.split(", ").filter(|one| ["POST", "PUT", "PATCH"].contains(one))
        {
            for body in &bodies {
                let path = path(route, "x");
                let request = tenants.api.world.request(method.parse::<Method>().unwrap(), &path);
                let request = request.header("authorization", &format!("Bearer {ADMIN}"));
                let request = request.header("content-type", "application/json");
                let answer = request.body(whole(body.clone())).send().await;
                let what = format!("{method} {path} {:.60}", body);
                is_refused_or_done(&answer, &what);
                // Other routes do not read the body.
                let reads = !matches!(answer.status, StatusCode::OK | StatusCode::NO_CONTENT);
                let is_twice = body.contains("\"a\"") && body.contains("\"b\"");
                assert!(!is_twice || reads || takes_no_body(route), "{what}: {}", answer.text());
            }
        }
    }
}

fn takes_no_body(route: &Route) -> bool {
    let verbs = [
        "authorize",
        "disable",
        "enable",
        "reauthorize",
        "reconnect",
        "reload",
        "sign-in-links",
        "sign-out",
    ];
    verbs.iter().any(|verb| route.template.ends_with(verb))
}

/// S18, O78: a list position of one workspace reveals nothing in another workspace.
#[tokio::test]
async fn s18_a_cursor_of_another_workspace_reveals_nothing() {
    let tenants = Tenants::with(&["team", "rival"]).await;
    for (workspace, name) in [("team", "A_SECRET"), ("team", "B_SECRET"), ("rival", "C_SECRET")] {
        let path = format!("/api/workspaces/{workspace}/secrets/{name}");
        tenants.send(ADMIN, "PUT", &path, r#"{"value": "x"}"#).await.succeeded();
        let path = format!("/api/workspaces/{workspace}/agents");
        let agent = json!({ "name": name.to_lowercase().replace('_', "-") }).to_string();
        tenants.send(ADMIN, "POST", &path, &agent).await.succeeded();
    }
    for list in ["secrets", "agents", "members", "service-tokens", "audit"] {
        let next = |page: Value| page["next"].as_str().unwrap().to_owned();
        let theirs = format!("/api/workspaces/team/{list}?limit=1");
        let after = next(tenants.send(ADMIN, "GET", &theirs, "").await.succeeded());
        for order in ["", "&order=oldest", "&order=newest"] {
            if list != "audit" && !order.is_empty() {
                continue;
            }
            let mine = format!("/api/workspaces/rival/{list}?after={after}{order}");
            let chief = tenants.token("rival", Role::Admin);
            let page = tenants.send(chief, "GET", &mine, "").await;
            assert_eq!(page.status, StatusCode::OK, "{mine}: {}", page.text());
            for foreign in ["A_SECRET", "B_SECRET", "a-secret", "b-secret", "team"] {
                let shown = page.text().replace(&format!("\"{after}\""), "");
                assert!(!shown.contains(foreign), "{mine}: {shown}");
            }
        }
    }
}

/// X-E104, S18: a key that was used by one principal or in one workspace can be used anew by
/// another.
#[tokio::test]
async fn x_e104_a_key_in_two_workspaces_is_two_keys() {
    let tenants = Tenants::with(&["team", "rival"]).await;
    let make = async |workspace: &str, role| {
        let path = format!("/api/workspaces/{workspace}/agents");
        let token = tenants.token(workspace, role);
        let request = tenants.ask(token, "POST", &path, r#"{"name": "one"}"#);
        request.header("idempotency-key", "the-same").send().await
    };
    for workspace in ["team", "rival"] {
        let made = make(workspace, Role::Admin).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
        assert!(!made.headers.contains_key("idempotency-replayed"));
        // Another principal of the workspace sends the write itself, and learns that the name is
        // taken.
        let other = make(workspace, Role::Author).await;
        assert_eq!(other.status, StatusCode::CONFLICT, "{}", other.text());
        assert!(!other.headers.contains_key("idempotency-replayed"));
    }
    // A caller that may not write does not get a stored answer, whatever key it sends.
    let refused = make("team", Role::Auditor).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text());
}

/// S18, O78: a session id that another tenant has chosen can still be chosen here.
#[tokio::test]
async fn s18_a_session_id_used_in_another_workspace_can_be_chosen() {
    let tenants = Tenants::with(&["team", "rival"]).await;
    let begin = async |api: &Api, workspace: &str, id: &str| {
        let path = format!("/api/workspaces/{workspace}/runs");
        let asked = json!({ "agent_name": "idle", "prompt": "x", "session_id": id });
        api.send("POST", &path, asked.to_string()).await
    };
    for workspace in ["team", "rival"] {
        let path = format!("/api/workspaces/{workspace}/agents");
        tenants.send(ADMIN, "POST", &path, r#"{"name": "idle"}"#).await.succeeded();
    }
    let id = "ses_0a1b2c3d4e5f";
    for workspace in ["team", "rival"] {
        let begun = begin(&tenants.api, workspace, id).await;
        assert_eq!(begun.status, StatusCode::CREATED, "{}", begun.text());
        let again = begin(&tenants.api, workspace, id).await;
        assert!(again.status.is_client_error(), "{}", again.text());
    }
}
