//! The catalog as a registry: the published schema, pages, conditions, and what each caller sees.

use http::StatusCode;
use narthex_model::Role;
use narthex_testkit::public_registry::fits;
use serde_json::{Value, json};

use super::{catalog::Place, tenants::Tenants};
use crate::world::ADMIN;

const SERVERS: &str = "/v0.1/servers";

fn names(list: &Value) -> Vec<&str> {
    let servers = list["servers"].as_array().unwrap().iter();
    servers.map(|one| one["server"]["name"].as_str().unwrap()).collect()
}

/// A list that follows the published schema.
#[track_caller]
fn checked(list: Value) -> Value {
    fits("ServerList", &list).unwrap_or_else(|fault| panic!("{fault}: {list}"));
    list
}

/// E208: answers follow the published schema, and have no configured value.
#[tokio::test]
async fn e208_the_catalog_is_served_as_the_registry_api_describes() {
    let place = Place::filled().await;
    let long = json!({ "name": "N".repeat(100), "description": "d".repeat(300),
        "command": "npx", "args": ["-y", "@a/b@1.2.3", "serve"], "disabled": true,
        "config_schema": { "LEVEL": { "type": "string", "enum": ["a", "b"], "default": "a" } } });
    place.put("/api/workspaces/default/mcp-servers/tool_box", &long).await.succeeded();
    let other = json!({ "command": "node", "args": ["server.js"] });
    place.put("/api/workspaces/team/mcp-servers/own", &other).await.succeeded();
    let list = checked(place.get(SERVERS).await);
    assert_eq!(names(&list), ["default/docs", "default/tool_box", "team/own"]);
    assert_eq!(
        (&list["metadata"]["count"], &list["metadata"]["nextCursor"]),
        (&json!(3), &Value::Null)
    );
    let docs = &list["servers"][0]["server"];
    assert_eq!((&docs["title"], &docs["description"]), (&json!("Papers"), &json!("Papers")));
    let remote = &docs["remotes"][0];
    assert_eq!(
        (&remote["type"], &remote["url"]),
        (&json!("streamable-http"), &json!("https://docs.test/mcp"))
    );
    let headers: Vec<_> = remote["headers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["name"], &one["isSecret"]))
        .collect();
    let expected = [("x-api-key", true), ("x-context-id", false), ("x-token", true)];
    let expected: Vec<_> = expected.iter().map(|(n, s)| (json!(n), json!(s))).collect();
    assert_eq!(headers, expected.iter().map(|(n, s)| (n, s)).collect::<Vec<_>>());
    let text = list.to_string();
    assert!(!text.contains("canary") && !text.contains("DOCS_KEY"), "{text}");
    let tool_box = &list["servers"][1];
    let package = &tool_box["server"]["packages"][0];
    assert_eq!((&package["identifier"], &package["version"]), (&json!("@a/b"), &json!("1.2.3")));
    assert_eq!(package["packageArguments"], json!([{ "type": "positional", "value": "serve" }]));
    assert_eq!(package["environmentVariables"][0]["choices"], json!(["a", "b"]));
    let facts = &tool_box["_meta"]["io.modelcontextprotocol.registry/official"];
    assert_eq!(facts["status"], "deprecated");
    assert_eq!(list["servers"][2]["server"]["packages"], Value::Null);
}

/// E208: one server by its name and version, with its tag; a write makes a new version.
#[tokio::test]
async fn e208_a_version_is_the_number_of_writes() {
    let place = Place::filled().await;
    let at = |rest: &str| format!("{SERVERS}/default%2Fdocs/versions{rest}");
    let versions = checked(place.get(&at("")).await);
    assert_eq!(versions["servers"][0]["server"]["version"], "1.0.0");
    let latest = place.get(&at("/latest")).await;
    fits("ServerResponse", &latest).unwrap();
    assert_eq!(latest, versions["servers"][0]);
    let tag = |answer: &crate::world::Answer| answer.headers["etag"].to_str().unwrap().to_owned();
    let first = place.api.ask("GET", &at("/1.0.0")).send().await;
    let object = place.api.ask("GET", "/api/workspaces/default/mcp-servers/docs").send().await;
    assert_eq!(tag(&first), tag(&object));
    place
        .patch("/api/workspaces/default/mcp-servers/docs", &json!({ "name": "New" }))
        .await
        .succeeded();
    assert_eq!(place.get(&at("/2.0.0")).await["server"]["title"], "New");
    for absent in [
        at("/1.0.0"),
        format!("{SERVERS}/default%2Fnone/versions"),
        format!("{SERVERS}/docs/versions/latest"),
    ] {
        let gone = place.api.ask("GET", &absent).send().await;
        gone.problem(StatusCode::NOT_FOUND, "not_found");
        assert_eq!(gone.json()["error"], "Server not found", "{absent}");
    }
}

/// E208: pages, and conditions of a list.
#[tokio::test]
async fn e208_lists_have_pages_and_conditions() {
    let place = Place::new().await;
    for (workspace, count) in [("default", 3), ("team", 2)] {
        for index in 0..count {
            let path = format!("/api/workspaces/{workspace}/mcp-servers/s{index}");
            let server = json!({ "url": "https://a.test/mcp" });
            place.put(&path, &server).await.succeeded();
        }
    }
    let all = checked(place.get(SERVERS).await);
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for _ in 0..3 {
        let page = checked(place.get(&format!("{SERVERS}?limit=2&cursor={cursor}")).await);
        seen.extend(names(&page).into_iter().map(str::to_owned));
        cursor = page["metadata"]["nextCursor"].as_str().unwrap_or_default().replace('/', "%2F");
    }
    assert_eq!(
        (seen, cursor.as_str()),
        (names(&all).iter().map(|n| (*n).to_owned()).collect(), "")
    );
    let found = async |query: &str| {
        let list = checked(place.get(&format!("{SERVERS}?{query}")).await);
        names(&list).len()
    };
    assert_eq!(found("search=TEAM").await, 2);
    assert_eq!(found("search=s0").await, 2);
    assert_eq!((found("version=latest").await, found("version=1.0.0").await), (5, 5));
    assert_eq!((found("version=2.0.0").await, found("include_deleted=true").await), (0, 5));
    assert_eq!(found("updated_since=2020-01-01T00:00:00Z").await, 5);
    assert_eq!(found("updated_since=9999-01-01T00:00:00Z").await, 0);
    for wrong in [
        "updated_since=today",
        "updated_since=",
        "limit=0",
        "limit=101",
        "more=1",
        "include_deleted=x",
    ] {
        let refused = place.api.ask("GET", &format!("{SERVERS}?{wrong}")).send().await;
        refused.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    }
}

/// E208, X-D12, X-E14, S18: a caller finds the servers that it may list in their workspace. Authors
/// do not see how a server is reached.
#[tokio::test]
async fn e208_each_caller_finds_the_servers_that_it_may_list() {
    let tenants = Tenants::with(&["team", "rival"]).await;
    let server = r#"{"name": "A", "url": "https://internal.test/mcp", "disabled": true}"#;
    for workspace in ["team", "rival"] {
        let path = format!("/api/workspaces/{workspace}/mcp-servers/a");
        tenants.send(ADMIN, "PUT", &path, server).await.succeeded();
    }
    let list =
        async |token: &str| checked(tenants.send(token, "GET", SERVERS, "").await.succeeded());
    let of = |role| tenants.token("team", role);
    let whole = list(of(Role::Admin)).await;
    assert_eq!(names(&whole), ["team/a"]);
    assert_eq!(whole["servers"][0]["server"]["remotes"][0]["url"], "https://internal.test/mcp");
    let part = list(of(Role::Author)).await;
    assert_eq!(names(&part), ["team/a"]);
    assert!(!part.to_string().contains("internal.test") && !part.to_string().contains("disabled"));
    for role in [Role::Runner, Role::Auditor] {
        assert_eq!(names(&list(of(role)).await), [""; 0]);
    }
    assert_eq!(names(&list(ADMIN).await), ["rival/a", "team/a"]);
    let hidden = tenants.send(of(Role::Admin), "GET", "/v0.1/servers/rival%2Fa/versions", "").await;
    let absent = tenants.send(of(Role::Admin), "GET", "/v0.1/servers/rival%2Fb/versions", "").await;
    assert_eq!(hidden.text(), absent.text().replace("rival/b", "rival/a"));
    let runner = tenants.send(of(Role::Runner), "GET", "/v0.1/servers/team%2Fa/versions", "").await;
    runner.problem(StatusCode::NOT_FOUND, "not_found");
    let run = tenants.api.world.token.clone();
    tenants.send(&run, "GET", SERVERS, "").await.problem(StatusCode::FORBIDDEN, "denied");
}
