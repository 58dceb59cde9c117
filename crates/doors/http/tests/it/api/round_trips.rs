//! Checks that a document which a client sends back as it was read changes nothing (D39). It covers
//! each route that can be read and written.

use std::collections::BTreeSet;

use narthex_http::ROUTES;
use narthex_store::Store;
use serde_json::{Value, json};

use super::world::Api;

const HERE: &str = "/api/workspaces/default";

/// The template of a route, a path, and the body to write there.
type Seed = (&'static str, String, Value);

fn here(path: &str) -> String {
    format!("{HERE}/{path}")
}

/// The objects that exist before the test. Each object has literals, including empty and escaped
/// ones, references, and optional members.
fn seeds() -> Vec<Seed> {
    [of_the_catalog(), of_the_workspace()].concat()
}

/// A secret, and the objects of the catalog that use it.
fn of_the_catalog() -> Vec<Seed> {
    let config = json!({ "region": "eu", "empty": "", "limit": 3, "flag": false,
        "deep": { "a": ["$${x}", "${scope.team}", null] }, "key": "${KEY}",
        "team": "x-${scope.team}", "literal": "s3" });
    let schema = json!({
        "region": { "required": true, "enum": ["eu", "us"] }, "empty": {},
        "literal": { "sensitive": true }, "limit": { "type": "number" },
        "flag": { "type": "boolean" }, "deep": { "type": "json" },
        "key": { "kind": "secret", "required": true },
        "team": { "description": "", "example": "a" }, "x-api-key": {},
    });
    vec![
        ("", here("secrets/KEY"), json!({ "value": "https://hooks.test/a-path" })),
        (
            "/api/workspaces/{workspace}/mcp-servers/{id}",
            here("mcp-servers/docs"),
            json!({ "name": "Docs", "url": "https://docs.test/mcp?a=$${b}", "config_schema": schema,
                    "default_config": { "region": "us", "x-api-key": "literal" },
                    "tool_scopes": { "a": "x.y", "b": ["x.y", "x.z"] }, "timeoutMs": 1500,
                    "scope_schema": { "team": { "type": "string" } } }),
        ),
        (
            "/api/workspaces/{workspace}/capabilities/{id}",
            here("capabilities/papers"),
            json!({ "description": "", "text": "$${x}", "mcpServers": {
                "docs": { "ref": "docs", "config": config } } }),
        ),
        (
            "/api/workspaces/{workspace}/agents/{id}",
            here("agents/reader"),
            json!({ "system_prompt": "You read $5 {x}.", "capabilities": ["papers"],
                    "params_schema": { "topic": { "type": "string", "required": true } },
                    "mcpServers": { "own": { "ref": "docs", "config": config, "optional": true,
                                             "tools": { "allow": ["a", "b*"], "deny": ["c"] } } },
                    "limits": { "calls_per_day": 7 } }),
        ),
        (
            "/api/workspaces/{workspace}/agents/{id}/mcp-attachments/{alias}",
            here("agents/reader/mcp-attachments/rt"),
            json!({ "name": "docs", "env": config, "optional": false, "tools": { "deny": ["x"] } }),
        ),
        (
            "/api/workspaces/{workspace}/agents/{id}/mcp-attachments",
            here("agents/reader/mcp-attachments"),
            json!({ "name": "docs", "alias": "more", "env": config }),
        ),
    ]
}

/// The documents of a workspace and the installation outside of the catalog.
fn of_the_workspace() -> Vec<Seed> {
    vec![
        (
            "/api/workspaces/{workspace}/policy",
            here("policy"),
            json!({ "rules": "@id(\"a\") forbid(principal, action, resource);\n" }),
        ),
        (
            "/api/workspaces/{workspace}/channels/{name}",
            here("channels/log"),
            json!({ "provider": "log" }),
        ),
        (
            "/api/workspaces/{workspace}/webhooks/{name}",
            here("webhooks/ops"),
            json!({ "url": "${KEY}", "signing_key": "${KEY}", "events": ["permission.granted"] }),
        ),
        (
            "/api/workspaces/{workspace}/env-bindings/{id}",
            here("env-bindings/agent:reader:TOKEN"),
            json!({ "secret": "KEY" }),
        ),
        (
            "/api/workspaces/{workspace}/members/{principal}",
            here("members/ada"),
            json!({ "roles": ["author", "runner"] }),
        ),
        (
            "/api/workspaces/{workspace}/audit/settings",
            here("audit/settings"),
            json!({ "kept_days": 30, "kept_events": 0 }),
        ),
        (
            "/api/audit/settings",
            "/api/audit/settings".to_owned(),
            json!({ "kept_days": 0, "kept_events": 9000 }),
        ),
        (
            "/api/workspaces/{workspace}/limits",
            here("limits"),
            json!({ "calls_per_minute": 50, "children_per_day": 4 }),
        ),
    ]
}

/// Routes that can only be written, or are read in another form: they refuse the document that was
/// read.
const REFUSED: [(&str, &str); 2] = [
    ("/api/workspaces/{workspace}/secrets/{name}", "secrets/KEY"),
    ("/api/servers/{name}", "/api/servers/two"),
];

/// An object without the members that each write changes.
fn settled(mut shown: Value) -> Value {
    for name in ["revision", "etag", "updated_at", "updated_by"] {
        if let Some(members) = shown.as_object_mut() {
            members.remove(name);
        }
    }
    if let Some(items) = shown["items"].as_array_mut() {
        items.iter_mut().for_each(|item| *item = settled(item.take()));
    }
    shown
}

/// The templates of the routes that have `PUT`.
fn written() -> BTreeSet<&'static str> {
    let is_put = |methods: &str| methods.split(", ").any(|method| method == "PUT");
    ROUTES.iter().filter(|route| is_put(route.methods)).map(|route| route.template).collect()
}

fn is_read(template: &str) -> bool {
    let mut of_it = ROUTES.iter().filter(|route| route.template == template);
    of_it.any(|route| route.methods.starts_with("GET"))
}

/// The documents at a path, or in the list above it.
async fn read(api: &Api, template: &str, path: &str) -> Vec<Value> {
    let shown = match is_read(template) {
        true => api.get(path).await,
        false => {
            let (above, own) = path.rsplit_once('/').unwrap();
            let page = api.get(above).await;
            let is_own = |item: &&Value| ["id", "name"].iter().any(|name| item[*name] == own);
            let items = page["items"].as_array().unwrap_or_else(|| panic!("{above}: {page}"));
            items.iter().find(is_own).unwrap_or_else(|| panic!("no {path} in {page}")).clone()
        }
    };
    match shown["items"].as_array() {
        Some(items) => items.clone(),
        None => vec![shown],
    }
}

/// D39, X-E26: every document is accepted as it was read, and then nothing has changed. The test
/// reports a new route that has no example.
#[tokio::test]
async fn d39_a_document_written_back_as_it_was_read_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let servers = json!({});
    let api = Api::with_all(&servers, store, &place.path().join("master.key")).await;
    api.send("POST", "/api/principals", r#"{"name": "ada"}"#).await.succeeded();
    for (_, path, body) in seeds() {
        api.send("PUT", &path, body.to_string()).await.succeeded();
    }
    let entry = json!({ "transport": "http", "url": "http://127.0.0.1:9/mcp", "disabled": true,
                        "headers": { "X-Literal": "v" } });
    api.send("PUT", "/api/servers/two", entry.to_string()).await.succeeded();
    let mut left = written();
    for (template, path, _) in seeds().into_iter().filter(|(template, ..)| !template.is_empty()) {
        assert!(left.remove(template), "`{template}` is no such route");
        let before = read(&api, template, &path).await;
        for shown in &before {
            let answer = api.send("PUT", &path, shown.to_string()).await;
            assert!(answer.status.is_success(), "{path} {shown}: {}", answer.text());
        }
        let after = read(&api, template, &path).await;
        let all = |shown: Vec<Value>| shown.into_iter().map(settled).collect::<Vec<_>>();
        assert_eq!(all(before), all(after), "{path}");
    }
    for (template, path) in REFUSED {
        assert!(left.remove(template), "`{template}` is no such route");
        let path = if path.starts_with('/') { path.to_owned() } else { format!("{HERE}/{path}") };
        let before = read(&api, template, &path).await;
        for shown in &before {
            let answer = api.send("PUT", &path, shown.to_string()).await;
            assert!(answer.status.is_client_error(), "{path} {shown}: {}", answer.text());
        }
        assert_eq!(before, read(&api, template, &path).await, "{path}");
    }
    assert_eq!(left, BTreeSet::new(), "these routes have no example here: give each one");
}
