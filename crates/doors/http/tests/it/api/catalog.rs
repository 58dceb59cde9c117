//! Tests of the catalog over REST: stored and refused objects; a refusal changes nothing.

use std::path::PathBuf;

use fs_err as fs;
use http::StatusCode;
use narthex_model::WorkspaceId;
use narthex_store::{Store, Workspace};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::world::{Api, VARIABLE};
use crate::world::{Answer, whole};

const SERVERS: &str = "/api/workspaces/default/mcp-servers";
const DOCS: &str = "/api/workspaces/default/mcp-servers/docs";
const CAPABILITIES: &str = "/api/workspaces/default/capabilities";
const PAPERS: &str = "/api/workspaces/default/capabilities/papers";
const AGENTS: &str = "/api/workspaces/default/agents";
const READER: &str = "/api/workspaces/default/agents/reader";
const CANARY: &str = "canary-9c1e";

/// A door over a separate store, with a vault.
pub(super) struct Place {
    dir: TempDir,
    pub(super) api: Api,
}

impl Place {
    pub(super) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).await.unwrap();
        let team = Workspace::new(WorkspaceId::new("team").unwrap(), "");
        store.workspaces().create(&team).await.unwrap();
        let api = Api::with_secrets(store, &dir.path().join("master.key")).await;
        Self { dir, api }
    }

    pub(super) fn store_file(&self) -> PathBuf {
        self.dir.path().join("store.db")
    }

    /// The contents of the store's files.
    pub(super) fn files(&self) -> Vec<Vec<u8>> {
        let names = ["store.db", "store.db-wal"].map(|name| self.dir.path().join(name));
        names.iter().filter_map(|name| fs::read(name).ok()).collect()
    }

    /// A place with a server, a capability that attaches it, and an agent that includes the
    /// capability.
    pub(super) async fn filled() -> Self {
        let place = Self::new().await;
        let secret = "/api/workspaces/default/secrets/DOCS_KEY";
        place.put(secret, &json!({ "value": CANARY })).await.succeeded();
        assert_eq!(place.put(DOCS, &docs()).await.status, StatusCode::CREATED);
        assert_eq!(place.put(PAPERS, &papers()).await.status, StatusCode::CREATED);
        assert_eq!(place.put(READER, &reader()).await.status, StatusCode::CREATED);
        place
    }

    pub(super) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.api.send("PUT", path, body.to_string()).await
    }

    pub(super) async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.api.send("PATCH", path, body.to_string()).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.api.send("POST", path, body.to_string()).await
    }

    pub(super) async fn delete(&self, path: &str) -> Answer {
        self.api.ask("DELETE", path).send().await
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        self.api.get(path).await
    }

    /// Sends a PUT under a condition.
    pub(super) async fn put_if(
        &self,
        condition: (&'static str, &str),
        path: &str,
        body: &Value,
    ) -> Answer {
        let request = self.api.ask("PUT", path).header("content-type", "application/json");
        request.header(condition.0, condition.1).body(whole(body.to_string())).send().await
    }
}

fn docs() -> Value {
    json!({
        "name": "Papers", "url": "https://docs.test/mcp",
        "config_schema": {
            "context_id": { "type": "string", "required": true },
            "api_key": { "type": "string", "kind": "secret" },
            "token": { "type": "string", "sensitive": true },
        },
        "default_config": { "context_id": "default", "api_key": "${DOCS_KEY}" },
    })
}

fn papers() -> Value {
    json!({ "mcpServers": {
        "library": { "ref": "docs", "config": { "context_id": "${scope.context_id}" } } } })
}

fn reader() -> Value {
    json!({ "capabilities": ["papers"], "mcpServers": { "library": {
        "ref": "docs", "config": { "token": "literal-4b" } } } })
}

/// The fields of a refusal, with their codes.
#[track_caller]
pub(super) fn faults(answer: &Answer) -> Vec<(String, String)> {
    answer.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    fields(answer)
}

#[track_caller]
fn fields(answer: &Answer) -> Vec<(String, String)> {
    let problem = answer.json();
    let errors = problem["errors"].as_array().unwrap();
    let field = |error: &Value| {
        let text = |member: &str| error[member].as_str().unwrap().to_owned();
        assert!(!text("message").is_empty() && !text("remedy").is_empty());
        assert_eq!(error.as_object().unwrap().len(), 4, "{error}");
        (text("field"), text("code"))
    };
    errors.iter().map(field).collect()
}

pub(super) fn of(field: &str, code: &str) -> (String, String) {
    (field.to_owned(), code.to_owned())
}

/// O1, O2, O33, O38, O99, X-M8, X-E7, X-E13: an object of each kind is created, shown, replaced and
/// removed, with its revision and times.
#[tokio::test]
async fn o2_objects_are_created_shown_replaced_and_removed() {
    let place = Place::new().await;
    let server = json!({ "id": "docs", "url": "https://docs.test/mcp" });
    let capability = json!({ "name": "papers", "text": "read them" });
    let agent = json!({ "name": "reader", "system_prompt": "You read." });
    let table = [
        (SERVERS, DOCS, server, json!({ "url": "https://other.test/mcp" })),
        (CAPABILITIES, PAPERS, capability, json!({ "text": "write them" })),
        (AGENTS, READER, agent, json!({ "active": false })),
    ];
    for (all, one, first, second) in table {
        let made = place.post(all, &first).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
        assert_eq!(made.headers["location"], one);
        let shown = made.succeeded();
        assert_eq!((&shown["revision"], &shown["updated_by"]), (&json!(1), &json!("admin")));
        assert_eq!(shown["created_at"], shown["updated_at"]);
        assert_eq!(shown["warnings"], json!([]));
        assert_eq!(made.headers["etag"], shown["etag"].as_str().unwrap());
        for (member, value) in first.as_object().unwrap() {
            assert_eq!(shown["definition"][member], *value, "{shown}");
        }
        let again = place.post(all, &first).await;
        again.problem(StatusCode::CONFLICT, "conflict");
        let answer = place.api.ask("GET", one).send().await;
        assert_eq!(answer.headers["etag"], made.headers["etag"]);
        let got = answer.succeeded();
        assert_eq!(got["definition"], shown["definition"]);
        // A shown definition can be sent back; equal content does not change the revision.
        let same = place.put(one, &got["definition"]).await;
        assert_eq!((same.status, &same.json()["etag"]), (StatusCode::OK, &got["etag"]));
        let replaced = place.put(one, &second).await;
        assert_eq!(replaced.status, StatusCode::OK, "{}", replaced.text());
        let replaced = replaced.succeeded();
        assert_eq!((&replaced["revision"], &replaced["id"]), (&json!(2), &got["id"]));
        assert_eq!(replaced["created_at"], got["created_at"]);
        assert_ne!(replaced["etag"], got["etag"]);
        assert_eq!(replaced["definition"]["system_prompt"], Value::Null);
        let gone = place.delete(one).await;
        assert_eq!((gone.status, gone.text()), (StatusCode::NO_CONTENT, ""));
        for method in ["GET", "DELETE"] {
            let answer = place.api.ask(method, one).send().await;
            answer.problem(StatusCode::NOT_FOUND, "not_found");
        }
        let patched = place.patch(one, &json!({})).await;
        patched.problem(StatusCode::NOT_FOUND, "not_found");
        assert_eq!(place.get(all).await, json!({ "items": [], "next": null }));
    }
}

/// O36, O37: PUT replaces the whole object, PATCH replaces the members that it names, and null
/// removes a member.
#[tokio::test]
async fn o36_patches_merge() {
    let place = Place::filled().await;
    let change = json!({ "name": "Archive", "default_config": { "context_id": "other" } });
    let patched = place.patch(DOCS, &change).await.succeeded();
    let definition = &patched["definition"];
    assert_eq!((&definition["name"], &patched["revision"]), (&json!("Archive"), &json!(2)));
    let config = json!({ "context_id": "other", "api_key": { "$secret": "DOCS_KEY" } });
    assert_eq!(definition["default_config"], config);
    let nothing = place.patch(DOCS, &json!({ "default_config": {} })).await.succeeded();
    assert_eq!(nothing["definition"]["default_config"], config);
    let request = place.api.ask("PATCH", DOCS);
    let request = request.header("content-type", "application/merge-patch+json");
    let cleared = request.body(whole(r#"{"default_config": null}"#)).send().await.succeeded();
    assert_eq!(cleared["definition"].get("default_config"), None);
    assert_eq!(cleared["definition"]["name"], "Archive");
    // The capability sets the value that the schema requires, so no agent gets a fault.
    assert_eq!(cleared["warnings"], json!([]));
    for (patch, field, code) in [
        (r#"{"id": "other"}"#, "id", "value_invalid"),
        (r#"{"url": "ftp://x"}"#, "url", "value_invalid"),
        (r#"{"name": "a", "name": "b"}"#, "name", "duplicate_key"),
        (r#"["name"]"#, "body", "type_wrong"),
        ("{", "body", "text_invalid"),
    ] {
        let refused = place.api.send("PATCH", DOCS, patch).await;
        assert_eq!(faults(&refused), [of(field, code)], "{patch}");
    }
    assert_eq!(place.get(DOCS).await["definition"], cleared["definition"]);
}

/// D9, X-M41, O35, X-E12, X-E15: all faults are reported at once, by field, and nothing is stored.
#[tokio::test]
async fn d9_all_faults_of_an_object_are_reported_and_nothing_is_stored() {
    let place = Place::filled().await;
    let before = place.get(READER).await;
    let agent = json!({
        "colour": "red",
        "capabilities": ["absent", "papers"],
        "mcpServers": { "Bad Alias": { "ref": "docs" }, "b": { "ref": "docs", "url": "x" } },
    });
    let refused = place.put(READER, &agent).await;
    let found = faults(&refused);
    assert!(found.contains(&of("colour", "unknown_field")), "{found:?}");
    assert!(found.contains(&of("mcpServers[\"Bad Alias\"]", "value_invalid")), "{found:?}");
    assert!(found.contains(&of("mcpServers.b", "inline_server")), "{found:?}");
    let agent = json!({ "capabilities": ["absent"], "mcpServers": {
        "a": { "ref": "dcos" },
        "b": { "ref": "docs", "config": { "contxt": "x", "api_key": "${ABSENT}" } } } });
    let refused = place.put(READER, &agent).await;
    let mut found = faults(&refused);
    found.sort();
    let expected = [
        of("capabilities[0]", "capability_missing"),
        of("mcpServers.a.ref", "mcp_ref_resolution_failed"),
        of("mcpServers.b.config.api_key", "secret_not_set"),
        of("mcpServers.b.config.contxt", "key_undeclared"),
    ];
    assert_eq!(found, expected);
    assert!(refused.text().contains("did you mean `docs`?"), "{}", refused.text());
    assert_eq!(place.get(READER).await, before);
    let refused = place.post(AGENTS, &json!({ "name": "other", "capabilities": ["absent"] })).await;
    assert_eq!(faults(&refused), [of("capabilities[0]", "capability_missing")]);
    place
        .api
        .ask("GET", &format!("{AGENTS}/other"))
        .send()
        .await
        .problem(StatusCode::NOT_FOUND, "not_found");
}

/// X-M37, X-M39, O61, O68, X-E1, X-E114: objects to which agents and capabilities refer must exist.
#[tokio::test]
async fn x_m37_references_are_checked_when_they_are_saved() {
    let place = Place::new().await;
    let refused = place.put(PAPERS, &papers()).await;
    assert_eq!(faults(&refused), [of("mcpServers.library.ref", "mcp_ref_resolution_failed")]);
    let refused = place.put(DOCS, &docs()).await;
    assert_eq!(faults(&refused), [of("default_config.api_key", "secret_not_set")]);
    let variable = json!({ "url": "https://${env.HOST}/mcp" });
    let refused = place.put(DOCS, &variable).await;
    assert_eq!(faults(&refused), [of("url", "env_not_allowed")]);
    let remedy = refused.json()["errors"][0]["remedy"].to_string();
    let line = r#"`catalog.env = [\"DOCS_*\", \"HOST\"]`"#;
    assert!(remedy.contains(line), "{remedy}");
    let other = json!({ "id": "other", "url": "https://a.test" });
    assert_eq!(faults(&place.put(DOCS, &other).await), [of("id", "value_invalid")]);
    for bad in ["Docs", "a__b", "%2e%2e", "a%2Fb", "a.b"] {
        let answer = place.put(&format!("{SERVERS}/{bad}"), &other).await;
        assert_eq!(faults(&answer), [of("id", "value_invalid")], "{bad}");
        let answer = place.api.ask("GET", &format!("{SERVERS}/{bad}")).send().await;
        answer.problem(StatusCode::NOT_FOUND, "not_found");
    }
    assert_eq!(place.get(SERVERS).await["items"], json!([]));
}

/// O41, X-E17: users of a server or a capability are reported. With `force` the object is removed
/// anyway.
#[tokio::test]
async fn o41_an_object_in_use_is_deleted_only_with_force() {
    let place = Place::filled().await;
    let refused = place.delete(DOCS).await;
    refused.problem(StatusCode::CONFLICT, "conflict");
    let users = [
        of("capabilities.papers.mcpServers.library", "in_use"),
        of("agents.reader.mcpServers.library", "in_use"),
    ];
    assert_eq!(fields(&refused), users);
    let refused = place.delete(PAPERS).await;
    refused.problem(StatusCode::CONFLICT, "conflict");
    assert_eq!(fields(&refused), [of("agents.reader.capabilities[0]", "in_use")]);
    let refused = place.delete(&format!("{DOCS}?force=maybe")).await;
    assert_eq!(faults(&refused), [of("force", "value_invalid")]);
    place.get(DOCS).await;
    assert_eq!(place.delete(&format!("{DOCS}?force=true")).await.status, StatusCode::NO_CONTENT);
    // Its users stay unchanged, and report what they lack.
    let merged = place.get(&format!("{READER}?view=merged")).await;
    let errors = merged["mcpServers"]["library"]["errors"].as_array().unwrap();
    assert_eq!(errors[0]["code"], "mcp_ref_resolution_failed", "{merged}");
    assert_eq!(place.delete(READER).await.status, StatusCode::NO_CONTENT);
    assert_eq!(place.delete(PAPERS).await.status, StatusCode::NO_CONTENT);
}

/// A change can be bound to the version that was read. A tag means one state of one object for
/// ever.
#[tokio::test]
async fn changes_can_be_bound_to_the_etag_that_was_read() {
    let place = Place::new().await;
    let agent = |text: &str| json!({ "description": text });
    let missing = place.put_if(("if-match", "*"), READER, &agent("a")).await;
    missing.problem(StatusCode::PRECONDITION_FAILED, "conflict");
    let made = place.put_if(("if-none-match", "*"), READER, &agent("a")).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let first = made.headers["etag"].to_str().unwrap().to_owned();
    let again = place.put_if(("if-none-match", "*"), READER, &agent("b")).await;
    again.problem(StatusCode::PRECONDITION_FAILED, "conflict");
    let listed = format!("\"x\", {first}");
    let second = place.put_if(("if-match", &listed), READER, &agent("b")).await;
    assert_eq!(second.status, StatusCode::OK);
    let weak = format!("W/{}", second.headers["etag"].to_str().unwrap());
    for stale in [first.as_str(), "\"x\"", "x", ",", weak.as_str()] {
        let refused = place.put_if(("if-match", stale), READER, &agent("c")).await;
        refused.problem(StatusCode::PRECONDITION_FAILED, "conflict");
        let delete = place.api.ask("DELETE", READER).header("if-match", stale).send().await;
        delete.problem(StatusCode::PRECONDITION_FAILED, "conflict");
    }
    for odd in ["\"x\"", "*, *"] {
        let refused = place.put_if(("if-none-match", odd), READER, &agent("c")).await;
        refused.problem(StatusCode::BAD_REQUEST, "invalid");
    }
    assert_eq!(place.get(READER).await["definition"]["description"], "b");
    let tag = second.headers["etag"].to_str().unwrap();
    let gone = place.api.ask("DELETE", READER).header("if-match", tag).send().await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
}

/// O34: lists come in pages, which together have each item once.
#[tokio::test]
async fn lists_come_in_pages() {
    let place = Place::new().await;
    for number in 0..7 {
        place.put(&format!("{AGENTS}/a{number}"), &json!({})).await.succeeded();
    }
    let names = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap();
        items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    };
    let all = place.get(AGENTS).await;
    assert_eq!((names(&all).len(), &all["next"]), (7, &Value::Null));
    let first = place.get(&format!("{AGENTS}?limit=3")).await;
    assert_eq!((names(&first), &first["next"]), (names(&all)[..3].to_vec(), &json!("a2")));
    let second = place.get(&format!("{AGENTS}?limit=3&after=a2")).await;
    assert_eq!((names(&second), &second["next"]), (names(&all)[3..6].to_vec(), &json!("a5")));
    let third = place.get(&format!("{AGENTS}?after=a5&limit=3")).await;
    assert_eq!((names(&third), &third["next"]), (vec!["a6".to_owned()], &Value::Null));
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "limit"),
        ("limit=", "limit"),
        ("limit=1&limit=2", "limit"),
        ("page=1", "query"),
    ] {
        let refused = place.api.ask("GET", &format!("{AGENTS}?{query}")).send().await;
        assert_eq!(faults(&refused), [of(field, "value_invalid")], "{query}");
    }
    let refused = place.api.ask("GET", &format!("{READER}?view=all")).send().await;
    assert_eq!(faults(&refused), [of("view", "value_invalid")]);
}

/// O50, O101, O29: the raw view shows the agent as it was written. The merged view shows each value
/// with its origin, but no hidden literal.
#[tokio::test]
async fn o101_the_merged_view_shows_origins_and_hides_secrets() {
    let place = Place::filled().await;
    let raw = place.get(&format!("{READER}?view=raw")).await;
    assert_eq!(raw, place.get(READER).await);
    assert_eq!(raw["definition"]["capabilities"], json!(["papers"]));
    let merged = place.get(&format!("{READER}?view=merged")).await;
    let library = &merged["mcpServers"]["library"];
    assert_eq!((&library["ref"], &library["errors"]), (&json!("docs"), &json!([])));
    let config = &library["config"];
    let origin = |key: &str| (config[key]["value"].clone(), config[key]["origin"].clone());
    let of_capability = json!({ "level": "capability", "name": "papers" });
    assert_eq!(origin("context_id"), (json!("${scope.context_id}"), of_capability));
    let of_default = json!({ "level": "default_config", "name": "docs" });
    assert_eq!(config["context_id"]["overrides"][0]["origin"], of_default);
    assert_eq!(config["context_id"]["overrides"][0]["value"], "default");
    assert_eq!(origin("token").0, "(hidden)");
    assert_eq!(origin("api_key").1, of_default);
    assert!(!merged.to_string().contains("literal-4b"), "{merged}");
    for text in [merged, raw, place.get(SERVERS).await, place.get(AGENTS).await] {
        assert!(!text.to_string().contains(CANARY), "{text}");
    }
}

/// S5: a server whose package has no fixed version is stored, and the answer names the version to
/// write. The validation before has the same warning.
#[tokio::test]
async fn s5_saving_a_server_warns_of_a_package_without_a_version() {
    let place = Place::new().await;
    let with = |package| json!({ "id": "docs", "command": "npx", "args": ["-y", package] });
    let valid = "/api/workspaces/default/validate?kind=server";
    let answers = [
        place.post(valid, &with("@scope/docs")).await.succeeded(),
        place.post(SERVERS, &with("@scope/docs")).await.succeeded(),
        place.put(DOCS, &with("@scope/docs@^1")).await.succeeded(),
    ];
    for answer in answers {
        assert_eq!(answer["warnings"][0]["field"], "args", "{answer}");
        let message = answer["warnings"][0]["message"].as_str().unwrap();
        assert!(message.contains("write `@scope/docs@VERSION`"), "{message}");
        assert!(message.contains("`npm view @scope/docs version`"), "{message}");
    }
    let fixed = place.put(DOCS, &with("@scope/docs@1.2.3")).await.succeeded();
    assert_eq!(fixed["warnings"], json!([]));
}

/// D9, O101, X-E114: validation gives the answer of storing an object, and a preview gives the
/// configuration of runs, without storing.
#[tokio::test]
async fn o101_objects_are_validated_and_previewed_unstored() {
    let place = Place::filled().await;
    let all = "/api/workspaces/default";
    let mut server = docs();
    server["id"] = json!("docs");
    server["config_schema"].as_object_mut().unwrap().remove("token");
    let valid = place.post(&format!("{all}/validate?kind=server"), &server).await.succeeded();
    assert_eq!((&valid["id"], &valid["definition"]["type"]), (&json!("docs"), &json!("http")));
    let broken = "agents.reader.mcpServers.library.config.token";
    assert_eq!(valid["warnings"][0]["field"], broken, "{valid}");
    let agent = json!({ "name": "new", "capabilities": ["papers", "absent"] });
    let refused = place.post(&format!("{all}/validate?kind=agent"), &agent).await;
    assert_eq!(faults(&refused), [of("capabilities[1]", "capability_missing")]);
    let refused = place.post(&format!("{all}/validate?kind=tool"), &agent).await;
    assert_eq!(faults(&refused), [of("kind", "value_invalid")]);
    // A preview shows the parts that exist, with their faults.
    let preview = place.post(&format!("{all}/preview"), &agent).await.succeeded();
    assert_eq!(preview["errors"][0]["code"], "capability_missing", "{preview}");
    let context = &preview["mcpServers"]["library"]["config"]["context_id"];
    assert_eq!(context["origin"]["level"], "capability", "{preview}");
    let refused = place.post(&format!("{all}/preview"), &json!({ "colour": "red" })).await;
    let missing = [of("colour", "unknown_field"), of("name", "field_missing")];
    assert_eq!(faults(&refused), missing);
    assert_eq!(place.get(AGENTS).await["items"].as_array().unwrap().len(), 1);
    assert_eq!(place.get(DOCS).await["revision"], 1);
}

/// S27: a secret that is written instead of its name is refused, and not repeated.
#[tokio::test]
async fn s27_refused_values_are_not_repeated() {
    let place = Place::filled().await;
    let mut server = docs();
    server["default_config"]["api_key"] = json!(CANARY);
    let refused = place.put(DOCS, &server).await;
    assert_eq!(faults(&refused), [of("default_config.api_key", "secret_misplaced")]);
    assert!(!refused.text().contains(CANARY), "{}", refused.text());
    let mut agent = reader();
    agent["mcpServers"]["library"]["config"]["api_key"] = json!(format!("Bearer {CANARY}"));
    let refused = place.put(READER, &agent).await;
    assert_eq!(faults(&refused)[0].1, "secret_misplaced");
    assert!(!refused.text().contains(CANARY), "{}", refused.text());
}

/// X-E114: a changed server may leave its users with faults. The answer reports that, and so do the
/// users themselves.
#[tokio::test]
async fn saving_a_server_reports_users_that_no_longer_fit() {
    let place = Place::filled().await;
    let mut server = docs();
    let schema = server["config_schema"].as_object_mut().unwrap();
    schema.remove("token");
    schema.insert("region".to_owned(), json!({ "type": "string", "required": true }));
    let changed = place.put(DOCS, &server).await.succeeded();
    let warnings = changed["warnings"].as_array().unwrap();
    let mut fields: Vec<_> = warnings.iter().map(|one| one["field"].as_str().unwrap()).collect();
    fields.sort_unstable();
    let expected =
        ["agents.reader.mcpServers.library.config.token", "servers.docs.config_schema.region"];
    assert_eq!(fields, expected, "{changed}");
    // An earlier fault is not attributed to this change.
    let same = place.patch(DOCS, &json!({ "name": "Other" })).await.succeeded();
    assert_eq!(same["warnings"], json!([]));
}

/// S18, X-E24: objects belong to one workspace, and a workspace that does not exist has none.
#[tokio::test]
async fn s18_objects_of_a_workspace_are_absent_in_other_workspaces() {
    let place = Place::filled().await;
    for path in [SERVERS, CAPABILITIES, AGENTS] {
        let there = path.replace("default", "team");
        assert_eq!(place.get(&there).await["items"], json!([]));
        for unknown in ["other", "Default", "%00", "a%2Fb"] {
            let nowhere = path.replace("default", unknown);
            let listed = place.api.ask("GET", &nowhere).send().await;
            listed.problem(StatusCode::NOT_FOUND, "not_found");
            let one = format!("{nowhere}/a");
            for answer in [
                place.put(&one, &json!({ "text": "x" })).await,
                place.patch(&one, &json!({})).await,
                place.delete(&one).await,
                place.api.ask("GET", &one).send().await,
            ] {
                answer.problem(StatusCode::NOT_FOUND, "not_found");
            }
        }
    }
    for path in [DOCS, PAPERS, READER] {
        let there = path.replace("default", "team");
        place.delete(&there).await.problem(StatusCode::NOT_FOUND, "not_found");
    }
    // X-E24: servers and secrets of another workspace cannot be used here.
    let there = PAPERS.replace("default", "team");
    let refused = place.put(&there, &papers()).await;
    assert_eq!(faults(&refused), [of("mcpServers.library.ref", "mcp_ref_resolution_failed")]);
    let there = DOCS.replace("default", "team");
    assert_eq!(faults(&place.put(&there, &docs()).await)[0].1, "secret_not_set");
}

/// O39: a stored object that can no longer be read is shown as broken, and can be replaced.
#[tokio::test]
async fn o39_unreadable_objects_are_shown_as_broken() {
    let place = Place::new().await;
    let path = place.dir.path().join("store.db");
    let store = Store::open(&path).await.unwrap();
    let rows = store.catalog(narthex_model::CatalogKind::Agent);
    let here = WorkspaceId::default();
    rows.create(&here, "old", r#"{"name":"old","gone":1}"#, "admin").await.unwrap();
    rows.create(&here, "torn", r#"{"name":"to"#, "admin").await.unwrap();
    let listed = place.get(AGENTS).await;
    let (old, torn) = (&listed["items"][0], &listed["items"][1]);
    assert_eq!((&old["definition"]["gone"], &torn["definition"]), (&json!(1), &Value::Null));
    let code =
        |item: &Value| (item["errors"][0]["field"].clone(), item["errors"][0]["code"].clone());
    assert_eq!(code(old), (json!("gone"), json!("unknown_field")));
    assert_eq!(code(torn), (json!("body"), json!("text_invalid")));
    for path in ["old", "torn"] {
        let merged = place.api.ask("GET", &format!("{AGENTS}/{path}?view=merged")).send().await;
        merged.problem(StatusCode::CONFLICT, "conflict");
        place.put(&format!("{AGENTS}/{path}"), &json!({})).await.succeeded();
        assert_eq!(place.get(&format!("{AGENTS}/{path}")).await.get("errors"), None);
    }
}

/// O5: stored objects still exist after a restart.
#[tokio::test]
async fn o5_objects_outlive_the_process() {
    let place = Place::filled().await;
    let before = place.get(READER).await;
    place.api.control.close().await;
    let Place { dir, api } = place;
    drop(api);
    let store = Store::open(&dir.path().join("store.db")).await.unwrap();
    let api = Api::with_secrets(store, &dir.path().join("master.key")).await;
    assert_eq!(api.get(READER).await, before);
}

/// Bodies must be JSON, and no longer than an object may be.
#[tokio::test]
async fn bodies_are_bounded_json() {
    let place = Place::new().await;
    let request = place.api.ask("PUT", READER).header("content-type", "text/plain");
    let answer = request.body(whole("{}")).send().await;
    answer.problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid");
    let long = format!("{{}}{}", " ".repeat(1024 * 1024));
    let answer = place.api.send("PUT", READER, long).await;
    answer.problem(StatusCode::PAYLOAD_TOO_LARGE, "exhausted");
    assert_eq!(place.get(AGENTS).await["items"], json!([]));
}

/// R-E29, X-E30: a process without a store reports that it has none.
#[tokio::test]
async fn a_daemon_without_a_store_has_no_catalog() {
    let api = Api::over(&json!({})).await;
    let told = api.ask("GET", SERVERS).send().await.problem(StatusCode::CONFLICT, "conflict");
    assert!(told.contains("narthex up"), "{told}");
    api.send("PUT", DOCS, "{}").await.problem(StatusCode::CONFLICT, "conflict");
}

/// O15, O68, O101, A-1: an allowed variable may be named, whether it is set or not. No answer has
/// its value.
#[tokio::test]
async fn o68_allowed_variables_may_be_named_and_their_values_are_not_shown() {
    let place = Place::new().await;
    let server = json!({ "url": "${env.DOCS_URL}", "config_schema": { "region": {} },
        "default_config": { "region": "in ${env.DOCS_REGION}" } });
    let stored = place.put(DOCS, &server).await;
    assert_eq!(stored.status, StatusCode::CREATED, "{}", stored.text());
    let agent = json!({ "mcpServers": { "docs": {
        "ref": "docs", "config": { "region": "${env.DOCS_URL}" } } } });
    place.put(READER, &agent).await.succeeded();
    let merged = place.get(&format!("{READER}?view=merged")).await;
    let region = &merged["mcpServers"]["docs"]["config"]["region"];
    assert_eq!(region["value"], "${env.DOCS_URL}", "{merged}");
    assert_eq!(merged["mcpServers"]["docs"]["errors"], json!([]), "{merged}");
    let preview = place
        .post(
            "/api/workspaces/default/preview",
            &json!({ "name": "x",
        "mcpServers": { "docs": { "ref": "docs" } } }),
        )
        .await
        .succeeded();
    let attachments = place.get(&format!("{READER}/mcp-attachments")).await;
    for shown in [merged, preview, attachments, place.get(DOCS).await] {
        assert!(!shown.to_string().contains(VARIABLE), "{shown}");
    }
    let agent = json!({ "system_prompt": "see ${env.DOCS_URL}" });
    assert_eq!(
        faults(&place.put(READER, &agent).await),
        [of("system_prompt", "placeholder_not_allowed")]
    );
}

/// O2, X-E7: the example requests of the documentation page give the answers that it shows, in its
/// order.
#[tokio::test]
async fn the_examples_of_the_page_work() {
    let place = Place::new().await;
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guides/catalog.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks: Vec<_> =
        page.split("\n```").filter_map(|part| part.strip_prefix("http\n")).collect();
    assert!(blocks.len() >= 6, "{}", blocks.len());
    for block in blocks {
        let (asked, expected) = block.rsplit_once("\nHTTP/1.1 ").unwrap();
        let (line, body) = asked.split_once('\n').unwrap_or((asked, ""));
        let (method, path) = line.split_once(' ').unwrap();
        let answer = place.api.send(method, path, body.trim().to_owned()).await;
        assert!(expected.starts_with(answer.status.as_str()), "{block}: {}", answer.text());
        let shown = expected.split_once('\n').map_or("", |(_, shown)| shown.trim());
        for line in shown.lines() {
            assert!(answer.text().contains(line.trim()), "{line}: {}", answer.text());
        }
    }
}
