//! Tests of the OpenAPI document: the file in the repository, the served document, and its
//! examples.

use std::path::Path;

use fs_err as fs;
use http::StatusCode;
use narthex_http::openapi;
use narthex_registry::config::{Env, LoadContext, parse_settings};
use serde_json::Value;

use super::{members::described, world::Api};
use crate::world::{Answer, CONTRACT};

/// The document in the repository equals the served one. `cargo xtask openapi` writes it.
#[test]
fn the_document_in_the_repository_equals_the_served_document() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/openapi.json");
    let mut renewed = serde_json::to_string_pretty(openapi()).unwrap();
    renewed.push('\n');
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&page, &renewed).unwrap();
    }
    let text = fs::read_to_string(&page).unwrap_or_default();
    for (old, new) in text.lines().zip(renewed.lines()) {
        assert_eq!(old, new, "docs/reference/openapi.json; `cargo xtask openapi` renews it");
    }
    assert_eq!(
        text.len(),
        renewed.len(),
        "docs/reference/openapi.json; `cargo xtask openapi` renews it"
    );
}

#[tokio::test]
async fn the_document_is_served_to_operators_and_not_to_runs() {
    let api = Api::over(&serde_json::json!({})).await;
    assert_eq!(api.get("/api/openapi.json").await, *openapi());
    let run = api.world.request(http::Method::GET, "/api/openapi.json").send().await;
    run.problem(StatusCode::FORBIDDEN, "denied");
}

/// Every example matches its schema, and every body has an example.
#[test]
fn examples_fit_their_schemas() {
    let schemas = openapi()["components"]["schemas"].as_object().unwrap();
    for (name, schema) in schemas {
        let examples = schema["examples"].as_array().map(Vec::as_slice).unwrap_or_default();
        for example in examples {
            let fits = CONTRACT.fits(&format!("#/components/schemas/{name}"), example.clone());
            fits.unwrap_or_else(|error| panic!("the example of {name}: {error}"));
        }
    }
    for body in bodies() {
        let has_one = schemas[&body]["examples"].is_array();
        assert!(has_one, "{body} is sent to the daemon: give it `examples`");
    }
}

/// The names of the schemas of all JSON bodies that the API accepts.
fn bodies() -> Vec<String> {
    let mut names = Vec::new();
    for (template, place) in openapi()["paths"].as_object().unwrap() {
        for operation in place.as_object().unwrap().values() {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            if let Some(place) = schema["$ref"].as_str().filter(|_| template.starts_with("/api/")) {
                names.push(place.rsplit('/').next().unwrap().to_owned());
            }
        }
    }
    assert!(names.len() > 20, "{names:?}");
    names
}

/// The refusal of an unknown parameter lists the parameters that the document describes.
#[tokio::test]
async fn described_parameters_are_the_known_parameters() {
    let place = super::catalog::Place::filled().await;
    let ada = serde_json::json!({ "name": "ada" });
    place.post("/api/principals", &ada).await.succeeded();
    let mut seen = 0;
    for (template, operations) in openapi()["paths"].as_object().unwrap() {
        if !template.starts_with("/api/") {
            continue;
        }
        let path = template.replace("{workspace}", "default").replace("{name}", "DOCS_KEY");
        let path = path.replace("secrets/{", "{").replace("{id}", "reader");
        let path = path.replace("{principal}", "ada").replace("{alias}", "library");
        for (method, operation) in operations.as_object().unwrap() {
            // Operations that only runs may use reveal nothing to other callers.
            let is_of_runs = operation["security"] == serde_json::json!([{ "token": ["run"] }]);
            if method == "parameters" || method == "head" || is_of_runs {
                continue;
            }
            let named = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
            let named = named.iter().map(|one| {
                let pointer = one["$ref"].as_str().unwrap().strip_prefix('#').unwrap();
                openapi().pointer(pointer).unwrap()
            });
            let named: Vec<_> = named.filter(|one| one["in"] == "query").collect();
            let mut said: Vec<_> = named.iter().map(|one| one["name"].as_str().unwrap()).collect();
            said.sort_unstable();
            let address = format!("{path}?not-known=1");
            let method = method.to_ascii_uppercase();
            let answer = place.api.send(&method, &address, "{}").await;
            assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{method} {template}");
            assert_eq!(known(&answer.json()), said, "{method} {template}");
            for (name, words) in named.iter().filter_map(|one| Some((&one["name"], words(one)?))) {
                let address = format!("{path}?{}=not-known", name.as_str().unwrap());
                let problem = place.api.send(&method, &address, "{}").await.json();
                let remedy = problem["errors"][0]["remedy"].as_str().unwrap();
                let read =
                    remedy.strip_prefix("write one of `").map(|read| read.trim_end_matches('`'));
                let read = read.unwrap_or_else(|| panic!("{method} {template}: {problem}"));
                assert_eq!(read.split("`, `").collect::<Vec<_>>(), words, "{method} {template}");
            }
            seen += 1;
        }
    }
    assert!(seen > 60, "{seen}");
}

/// The words that a parameter can have, if it has a list of them.
fn words(parameter: &Value) -> Option<Vec<&str>> {
    let words = parameter["schema"]["enum"].as_array()?;
    Some(words.iter().map(|word| word.as_str().unwrap()).collect())
}

/// The names in `the keys here are …`.
fn known(problem: &Value) -> Vec<&str> {
    let remedy = problem["errors"][0]["remedy"].as_str().unwrap();
    let mut names: Vec<_> = match remedy.strip_prefix("remove it; the keys here are `") {
        Some(names) => names.trim_end_matches('`').split("`, `").collect(),
        None => Vec::new(),
    };
    names.sort_unstable();
    names
}

/// Operations with a body, in an order in which each finds what it needs.
const ORDER: [&str; 46] = [
    "secret_set",
    "principal_create",
    "principal_change",
    "workspace_create",
    "workspace_change",
    "member_set",
    "service_token_create",
    "mcp_server_create",
    "mcp_server_put",
    "mcp_server_change",
    "definition_accept",
    "definition_reject",
    "capability_create",
    "capability_put",
    "capability_change",
    "agent_create",
    "agent_put",
    "agent_change",
    "env_binding_create",
    "env_binding_set",
    "attachment_add",
    "attachment_put",
    "workspace_import",
    "object_validate",
    "agent_preview",
    "mcp_client_register",
    "run_create",
    "session_resume",
    "session_message",
    "session_messages_acknowledge",
    "channel_set",
    "webhook_set",
    "share_comment",
    "share_thread_change",
    "grant_create",
    "grant_request_approve",
    "grant_request_deny",
    "policy_set",
    "policy_check",
    "limits_set",
    "audit_settings_set",
    "installation_audit_settings_set",
    "server_put",
    "server_change",
    "run_claim",
    "session_usage_report",
];

/// An operation of the API.
struct Asked {
    method: String,
    template: String,
    operation: &'static Value,
}

fn operations() -> Vec<Asked> {
    let mut all = Vec::new();
    for (template, place) in openapi()["paths"].as_object().unwrap() {
        for (method, operation) in place.as_object().unwrap() {
            if template.starts_with("/api/") && method != "parameters" && method != "head" {
                let method = method.to_ascii_uppercase();
                all.push(Asked { method, template: template.clone(), operation });
            }
        }
    }
    all
}

/// The objects whose ids the daemon chooses, for the paths.
#[derive(Default)]
struct Made {
    run: Value,
    client: Value,
    grant: Value,
    request: String,
    share: String,
    thread: String,
}

impl Asked {
    fn id(&self) -> &'static str {
        self.operation["operationId"].as_str().unwrap()
    }

    /// True if only a run's token may use the operation.
    fn is_of_runs(&self) -> bool {
        self.operation["security"] == serde_json::json!([{ "token": ["run"] }])
    }

    /// The schema of the operation's body.
    fn schema(&self) -> &'static Value {
        &self.operation["requestBody"]["content"]["application/json"]["schema"]
    }

    /// The first example of the operation's body.
    fn example(&self) -> Option<&'static Value> {
        let pointer = self.schema()["$ref"].as_str()?.strip_prefix('#')?;
        openapi().pointer(pointer)?["examples"].get(0)
    }

    async fn send(&self, api: &Api, made: &Made, body: &Value) -> Answer {
        let token = match self.is_of_runs() {
            true => made.run["token"].as_str().unwrap(),
            false => crate::world::ADMIN,
        };
        let request = api.ask(&self.method, &self.path(made));
        let request = request.header("authorization", &format!("Bearer {token}"));
        let request = request.header("content-type", "application/json");
        request.body(crate::world::whole(body.to_string())).send().await
    }

    /// The path, with the ids of the examples and of the created objects.
    fn path(&self, made: &Made) -> String {
        let mut before = "";
        let segments = self.template.split('/').map(|segment| {
            let filled = match (segment.starts_with('{'), before) {
                (false, _) => segment,
                (true, "workspaces") => "default",
                (true, "servers" | "mcp-servers") => "docs",
                (true, "secrets") => "DOCS_KEY",
                (true, "profiles") => "work",
                (true, "env-bindings") => "agent:reader:DOCS_TOKEN",
                (true, "capabilities") => "papers",
                (true, "agents") => "reader",
                (true, "mcp-attachments") => "archive",
                (true, "principals" | "members" | "users") => "ada",
                (true, "mcp-tokens") => "docs",
                (true, "authorize") => "none",
                (true, "runs") => made.run["run_id"].as_str().unwrap(),
                (true, "mcp-clients") => made.client["id"].as_str().unwrap(),
                (true, "sessions") => made.run["session_id"].as_str().unwrap(),
                (true, "channels" | "webhooks") => "team",
                (true, "shares") => &made.share,
                (true, "comments") => &made.thread,
                (true, "grants") => made.grant["id"].as_str().unwrap(),
                (true, "grant-requests") => &made.request,
                (true, other) => panic!("what stands behind `{other}`?"),
            };
            before = segment;
            filled
        });
        segments.collect::<Vec<_>>().join("/")
    }
}

/// Has the settings file name a profile.
fn has_profile(api: &Api) {
    let text = r#"{ "mcp": { "profiles": { "work": { "servers": [] } } } }"#;
    let here = Path::new("settings.json");
    let context = LoadContext { file: here, workspace_root: here, env: Env::Values(&|_name| None) };
    let read = parse_settings(text.as_bytes(), &context).unwrap().profiles;
    api.world.gateway.registry().set_profiles(&read, &[]);
}

/// A run of another agent as a child of this one; it waits to be claimed.
async fn child(api: &Api, of: &Value) -> Value {
    let agent = of["agent_name"].as_str().unwrap();
    let caller = serde_json::json!({ "spawnable_agents": [agent], "builtin": "all" }).to_string();
    api.send("PUT", "/api/workspaces/default/agents/caller", caller).await.succeeded();
    let caller = super::built_in::Run::of(api, "caller").await;
    let asked = serde_json::json!({ "child_agent_id": agent });
    let child = caller.called("spawn_session", asked).await["session"].clone();
    serde_json::json!({ "run_id": child["run_id"], "session_id": child["id"] })
}

/// Operations whose refusal of an unknown member does not list all members. No part of a secret is
/// repeated, and an import lists only the members that have objects.
const UNLISTED: [&str; 2] = ["secret_set", "workspace_import"];

/// The operations whose object exists only while a sign-in at an authorization server is open.
const OF_SIGN_INS: [&str; 1] = ["server_device_sign_in_show"];

/// The examples are sent to an empty daemon, which accepts all of them; then all operations that
/// read are called. Each test of the door checks that answers match the document. Before that, each
/// object of an example is sent with an unknown member, and the refusal must list the described
/// members.
#[tokio::test]
async fn examples_of_the_document_are_accepted() {
    let place = super::catalog::Place::new().await;
    let operations = operations();
    for asked in operations.iter().filter(|asked| asked.example().is_some()) {
        assert!(ORDER.contains(&asked.id()), "say in `ORDER` when to send {}", asked.id());
    }
    let mut made = Made::default();
    for id in ORDER {
        let asked = operations.iter().find(|asked| asked.id() == id).unwrap();
        let mut body = asked.example().unwrap().clone();
        if id == "workspace_create" {
            // The workspace of the example exists already.
            body["id"] = "other".into();
        }
        if id == "definition_accept" {
            super::definitions::has_seen(&place.api, &body["digests"][0]).await;
        }
        if id == "channel_set" {
            place.api.set_secret("OPS_URL", "https://ops.example.com/hook").await;
            place.api.set_secret("OPS_KEY", "a-key-of-ops").await;
        }
        if id == "share_comment" {
            made.share = place.api.shared_by("default", &made.run).await;
        }
        if id.starts_with("grant_request") {
            made.request = place.api.asked_by(&made.run, id).await;
        }
        if id == "session_resume" {
            let session = made.run["session_id"].as_str().unwrap();
            let path = format!("/api/workspaces/default/sessions/{session}/suspend");
            place.api.send("POST", &path, String::new()).await.succeeded();
        }
        if id == "run_claim" {
            made.run = child(&place.api, &made.run).await;
        }
        let send = async |body: &Value| asked.send(&place.api, &made, body).await;
        if !UNLISTED.contains(&id) {
            for object in described(asked.schema(), &body) {
                let refused = send(&object.with_unknown(&body)).await;
                assert!(refused.status.is_client_error(), "{id}: {}", refused.text());
                object.check(&refused.json(), id);
            }
        }
        let answer = send(&body).await.succeeded();
        match id {
            "run_create" | "session_resume" => made.run = answer,
            "mcp_client_register" => made.client = answer,
            "grant_create" => made.grant = answer,
            "share_comment" => made.thread = answer["thread_id"].as_str().unwrap().to_owned(),
            _ => continue,
        }
    }
    has_profile(&place.api);
    let reads = operations.iter().filter(|asked| asked.method == "GET");
    for asked in reads.filter(|asked| !OF_SIGN_INS.contains(&asked.id())) {
        let content = asked.operation["responses"]["200"]["content"].as_object().unwrap();
        if content.contains_key("application/json") {
            place.api.get(&asked.path(&made)).await;
        }
    }
}
