//! Tests of secrets: the facts that are shown of them; no answer ever has a value.

use fs_err as fs;
use http::StatusCode;
use narthex_model::{SecretName, SecretReference, WorkspaceId};
use narthex_store::{Store, Workspace};
use narthex_vault::{KeyFile, SealedBackend, Vault};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::world::Api;
use crate::world::whole;

const ALL: &str = "/api/workspaces/default/secrets";
const ONE: &str = "/api/workspaces/default/secrets/LINEAR_API_KEY";
const CANARY: &str = "canary-5d1f";

/// A folder with a store and a key file.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    async fn store(&self) -> Store {
        Store::open(&self.0.path().join("store.db")).await.unwrap()
    }

    async fn api(&self) -> Api {
        Api::with_secrets(self.store().await, &self.0.path().join("master.key")).await
    }

    /// The value of `LINEAR_API_KEY`, read as a daemon would read it after a restart.
    async fn value(&self, version: u64) -> Option<String> {
        let rows = narthex_control::SecretRows::new(self.store().await);
        let keys = KeyFile::new(self.0.path().join("master.key"));
        let backend = SealedBackend::start(std::sync::Arc::new(rows), std::sync::Arc::new(keys));
        let vault = Vault::new(std::sync::Arc::new(backend.await.unwrap()));
        let reference = SecretReference {
            name: SecretName::new("LINEAR_API_KEY").unwrap(),
            version: narthex_model::SecretVersion::new(version),
        };
        let opened = vault.open(&WorkspaceId::default(), &reference).await;
        opened.ok().map(|opened| opened.value.expose().to_owned())
    }

    /// True if any file here contains a text.
    fn has(&self, text: &str) -> bool {
        let files = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut count = 0;
        let found = files.map(|path| fs::read(path).unwrap()).fold(false, |found, bytes| {
            count += 1;
            found || bytes.windows(text.len()).any(|window| window == text.as_bytes())
        });
        assert!(count >= 2, "the store and the key are files");
        found
    }
}

fn body(value: &str) -> String {
    json!({ "value": value }).to_string()
}

/// X-M22, X-M23, X-E67: a secret is set, listed and cleared, with all the facts that are shown of
/// it.
#[tokio::test]
async fn x_m23_secrets_are_set_listed_and_cleared() {
    let place = Place::new();
    let api = place.api().await;
    assert_eq!(api.get(ALL).await, json!({ "items": [], "next": null }));
    let set = api.send("PUT", ONE, body("one")).await;
    assert_eq!(set.status, StatusCode::CREATED);
    let told = json!({ "name": "LINEAR_API_KEY", "version": 1, "replaced": false,
                       "is_redactable": false });
    let mut set = set.succeeded();
    let warned = set.as_object_mut().unwrap().remove("warning").unwrap();
    assert!(warned.as_str().unwrap().contains("too short to be redacted"), "{warned}");
    assert_eq!(set, told);
    let other = "/api/workspaces/default/secrets/OTHER";
    let long = api.send("PUT", other, body("long-enough")).await.succeeded();
    assert_eq!((&long["is_redactable"], &long["warning"]), (&json!(true), &Value::Null));
    let again = api.send("PUT", ONE, body("gr\u{f6}\u{df}e \u{1f980}\n\"\\")).await;
    assert_eq!((again.status, &again.json()["version"]), (StatusCode::OK, &json!(2)));
    let listed = api.get(ALL).await;
    let secret = listed["items"][0].as_object().unwrap();
    let mut members: Vec<_> = secret.keys().map(String::as_str).collect();
    members.sort_unstable();
    let all = ["created_at", "is_set", "name", "updated_at", "updated_by", "used_by", "versions"];
    assert_eq!(members, all);
    assert_eq!((&secret["is_set"], &secret["updated_by"]), (&json!(true), &json!("admin")));
    let versions = secret["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 2);
    for (at, version) in versions.iter().enumerate() {
        assert_eq!(version["version"], json!(at + 1));
        assert_eq!(version["key"].as_str().unwrap().len(), 16);
        assert_eq!(version.as_object().unwrap().len(), 3);
    }
    assert_eq!(place.value(1).await.as_deref(), Some("one"));
    assert_eq!(place.value(2).await.as_deref(), Some("gr\u{f6}\u{df}e \u{1f980}\n\"\\"));
    let cleared = api.ask("DELETE", ONE).send().await;
    assert_eq!((cleared.status, cleared.text()), (StatusCode::NO_CONTENT, ""));
    let listed = api.get(ALL).await;
    let secret = &listed["items"][0];
    assert_eq!((&secret["is_set"], &secret["versions"]), (&json!(false), &json!([])));
    let again = api.ask("DELETE", ONE).send().await;
    again.problem(StatusCode::NOT_FOUND, "not_found");
    assert_eq!(place.value(2).await, None);
}

/// X-M23, X-M22: a caller that clears a secret receives the places that name it, of each kind.
#[tokio::test]
async fn x_m23_clearing_a_secret_lists_the_places_that_name_the_secret() {
    let place = Place::new();
    let api = place.api().await;
    api.send("PUT", ONE, body("long-enough")).await.succeeded();
    let server = json!({ "url": "https://docs.test/mcp",
        "config_schema": { "key": { "kind": "secret" } },
        "default_config": { "key": "${LINEAR_API_KEY}" } });
    let put = async |path: &str, body: &Value| {
        let path = format!("/api/workspaces/default/{path}");
        api.send("PUT", &path, body.to_string()).await.succeeded();
    };
    put("mcp-servers/docs", &server).await;
    let agent = json!({ "mcpServers": { "d": { "ref": "docs",
        "config": { "key": { "$secret": "LINEAR_API_KEY" } } } } });
    put("agents/reader", &agent).await;
    let listed = api.get(ALL).await;
    let cleared = api.ask("DELETE", ONE).send().await.succeeded();
    let users = ["servers.docs.default_config.key", "agents.reader.mcpServers.d.config.key"];
    assert_eq!(cleared, json!({ "name": "LINEAR_API_KEY", "used_by": users, "runs": [] }));
    assert_eq!(listed["items"][0]["used_by"], json!(users));
}

/// X-M21: no method of any route reads a secret.
#[tokio::test]
async fn x_m21_no_route_reads_a_secret() {
    let place = Place::new();
    let api = place.api().await;
    api.send("PUT", ONE, body(CANARY)).await.succeeded();
    for method in ["GET", "HEAD", "POST", "PATCH", "OPTIONS"] {
        let answer = api.ask(method, ONE).send().await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
        assert_eq!(answer.headers["allow"], "PUT, DELETE");
    }
    let again = api.send("PUT", ONE, body(CANARY)).await.succeeded();
    let rotated = api.post("/api/secrets/rotate-key").await.succeeded();
    for told in [again, rotated, api.get(ALL).await] {
        assert!(!told.to_string().contains("canary"), "{told}");
    }
}

/// X-M24, X-E65, S27, X-E15: a fault in a body is reported with its field. No part of the body is
/// repeated, and nothing is stored.
#[tokio::test]
async fn s27_a_refused_body_is_not_repeated() {
    let place = Place::new();
    let api = place.api().await;
    let table = [
        String::new(),
        CANARY.to_owned(),
        format!("\"{CANARY}\""),
        format!("[\"{CANARY}\"]"),
        format!("{{\"value\": {CANARY}}}"),
        format!("{{\"value\": \"{CANARY}"),
        format!("{{\"value\": [\"{CANARY}\"]}}"),
        format!("{{\"value\": {{\"{CANARY}\": 1}}}}"),
        format!("{{\"{CANARY}\": \"x\"}}"),
        format!("{{\"Value\": \"{CANARY}\"}}"),
        format!("{{\"value\": \"{CANARY}\", \"value\": \"{CANARY}\"}}"),
        format!("{{\"value\": \"{CANARY}\", \"{CANARY}\": 1}}"),
        format!("{{\"value\": \"{CANARY}\"}} {CANARY}"),
        format!("{{\"value\": \"{CANARY}\\ud800\"}}"),
        format!("{{\"value\": \"{CANARY}\\u0000\"}}"),
        format!("{{\"value\": \"{CANARY}{}\"}}", "x".repeat(64 * 1024)),
        body(""),
    ];
    for wrong in &table {
        let answer = api.send("PUT", ONE, wrong.clone()).await;
        let told = answer.problem(StatusCode::BAD_REQUEST, "invalid");
        assert!(told.contains("value") && !told.contains("canary"), "{told}");
    }
    let mut binary = body(CANARY).into_bytes();
    binary.insert(12, 0xff);
    let told = api.send("PUT", ONE, binary).await.problem(StatusCode::BAD_REQUEST, "invalid");
    assert!(told.contains("line 1") && !told.contains("canary"), "{told}");
    let long = format!("{{\"value\": \"{CANARY}\"{}}}", " ".repeat(512 * 1024));
    let told = api.send("PUT", ONE, long).await;
    told.problem(StatusCode::PAYLOAD_TOO_LARGE, "exhausted");
    for kind in ["", "text/plain", "application/x-www-form-urlencoded"] {
        let request = api.ask("PUT", ONE).header("content-type", kind);
        let answer = request.body(whole(body(CANARY))).send().await;
        let told = answer.problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid");
        assert!(!told.contains("canary"), "{told}");
    }
    assert_eq!(api.get(ALL).await, json!({ "items": [], "next": null }));
}

/// X-M20, X-E65: the fault names the field, and blanks are not trimmed. The name is not repeated,
/// since it may be the value.
#[tokio::test]
async fn x_m20_bad_names_are_refused_with_the_field() {
    let place = Place::new();
    let api = place.api().await;
    for name in
        ["linear", "9A", "A-B", "sk-canary", "%00", "%ff", "A%2FB", "%20A", "A%20", &"A".repeat(65)]
    {
        for method in ["PUT", "DELETE"] {
            let answer = api.send(method, &format!("{ALL}/{name}"), body("x")).await;
            let told = answer.problem(StatusCode::BAD_REQUEST, "invalid");
            assert!(told.starts_with("name: ") && !told.contains("canary"), "{told}");
        }
    }
}

/// S18: a workspace that does not exist has no secrets, and each workspace has separate ones.
#[tokio::test]
async fn s18_secrets_of_a_workspace_are_absent_in_other_workspaces() {
    let place = Place::new();
    let store = place.store().await;
    let team = Workspace::new(WorkspaceId::new("team").unwrap(), "");
    store.workspaces().create(&team).await.unwrap();
    let api = place.api().await;
    api.send("PUT", ONE, body("here")).await.succeeded();
    for unknown in ["other", "Default", "%00", "a%2Fb", &"a".repeat(65)] {
        let path = ALL.replace("default", unknown);
        let listed = api.ask("GET", &path).send().await;
        listed.problem(StatusCode::NOT_FOUND, "not_found");
        let one = format!("{path}/LINEAR_API_KEY");
        api.send("PUT", &one, body("x")).await.problem(StatusCode::NOT_FOUND, "not_found");
        api.ask("DELETE", &one).send().await.problem(StatusCode::NOT_FOUND, "not_found");
    }
    let there = ONE.replace("default", "team");
    assert_eq!(
        api.get(&ALL.replace("default", "team")).await,
        json!({ "items": [], "next": null })
    );
    api.ask("DELETE", &there).send().await.problem(StatusCode::NOT_FOUND, "not_found");
    assert_eq!(api.send("PUT", &there, body("there")).await.json()["version"], 1);
    assert_eq!(place.value(1).await.as_deref(), Some("here"));
}

/// S27: no file contains a value, even if it was replaced, sealed anew or cleared. A cleared
/// value's sealed form is gone from the database too.
#[tokio::test]
async fn s27_files_of_the_store_do_not_contain_values_of_secrets() {
    let place = Place::new();
    let api = place.api().await;
    api.send("PUT", ONE, body(CANARY)).await.succeeded();
    api.send("PUT", ONE, body(&format!("{CANARY}-2"))).await.succeeded();
    let sealed = {
        let (store, name) = (place.store().await, SecretName::new("LINEAR_API_KEY").unwrap());
        let found = store.secrets().find(&WorkspaceId::default(), &name, None).await;
        // The last process that closes the database file removes the files beside it; here that
        // must be the daemon.
        store.close().await;
        found.unwrap().unwrap().sealed
    };
    assert!(place.has(&sealed) && !place.has(CANARY));
    api.ask("DELETE", ONE).send().await;
    assert!(!place.has(CANARY));
    api.control.close().await;
    // The sealed value is not in the database file; no other file exists by now.
    assert!(!place.has(&sealed) && !place.has(CANARY));
}

/// X-F6: the key can be changed over the API while the daemon runs.
#[tokio::test]
async fn x_f6_the_key_is_rotated_over_the_api() {
    let place = Place::new();
    let api = place.api().await;
    api.send("PUT", ONE, body("one")).await.succeeded();
    let key = |listed: &Value| listed["items"][0]["versions"][0]["key"].clone();
    let before = key(&api.get(ALL).await);
    let rotated = api.post("/api/secrets/rotate-key").await.succeeded();
    assert_eq!((&rotated["resealed"], &rotated["resumed"]), (&json!(1), &json!(false)));
    assert_eq!((&rotated["dropped"], &rotated["unused"]), (&json!([before]), &json!([])));
    assert_eq!(key(&api.get(ALL).await), rotated["key"]);
    assert_eq!(place.value(1).await.as_deref(), Some("one"));
}

/// R-E29, X-E30, X-M23: a process without a vault reports that it has none.
#[tokio::test]
async fn a_daemon_without_a_vault_has_no_secrets() {
    let api = Api::over(&json!({})).await;
    let told = api.ask("GET", ALL).send().await.problem(StatusCode::CONFLICT, "conflict");
    assert!(told.contains("narthex up"), "{told}");
    api.send("PUT", ONE, body("x")).await.problem(StatusCode::CONFLICT, "conflict");
}
