//! Tests of changes: of entries in the settings, and of running servers.

use std::pin::pin;

use http::StatusCode;
use narthex_control::By;
use narthex_model::ServerState;
use narthex_store::Store;
use serde_json::{Value, json};

use super::world::{Api, SOON, shell};
use crate::world::whole;

const NOWHERE: &str = r#"{"transport": "http", "url": "http://127.0.0.1:1/", "timeoutMs": 5}"#;

/// E142, E143: an entry is stored in the settings only, and its row exists at once.
#[tokio::test]
async fn e143_a_put_stores_an_entry_and_states_whether_the_entry_is_new() {
    let api = Api::one().await;
    let project = api.file("mcp.json");
    let first = api.send("PUT", "/api/servers/two", NOWHERE).await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.text());
    let first = first.succeeded();
    assert_eq!((&first["name"], &first["created"]), (&json!("two"), &json!(true)));
    assert_eq!(first["server"]["provenance"], "settings");
    assert!(api.file("settings.json").contains(NOWHERE), "{}", api.file("settings.json"));
    let second = api.send("PUT", "/api/servers/two", shell().to_string()).await;
    assert_eq!((second.status, &second.json()["created"]), (StatusCode::OK, &json!(false)));
    assert_eq!(api.row("two").definition.as_ref().unwrap().transport().as_str(), "stdio");
    assert_eq!(api.file("mcp.json"), project);
}

/// E142: a caller can demand that no entry is overwritten.
#[tokio::test]
async fn e142_a_conditional_put_to_a_used_name_is_refused() {
    let api = Api::one().await;
    let add = || {
        let request = api.ask("PUT", "/api/servers/two").header("if-none-match", "*");
        request.header("content-type", "application/json").body(whole(NOWHERE)).send()
    };
    assert_eq!(add().await.status, StatusCode::CREATED);
    let again = add().await.problem(StatusCode::PRECONDITION_FAILED, "conflict");
    assert!(again.contains("two"), "{again}");
}

/// D9: an entry that would be refused when read is not stored, and neither is text that is no
/// entry.
#[tokio::test]
async fn d9_an_invalid_entry_is_not_stored() {
    let api = Api::one().await;
    let table = [
        ("/api/servers/two", "{", StatusCode::BAD_REQUEST),
        ("/api/servers/two", "[]", StatusCode::BAD_REQUEST),
        ("/api/servers/two", "", StatusCode::BAD_REQUEST),
        ("/api/servers/two", r#"{"transport": "pigeon"}"#, StatusCode::BAD_REQUEST),
        ("/api/servers/T__wo", NOWHERE, StatusCode::BAD_REQUEST),
    ];
    for (path, body, status) in table {
        let detail = api.send("PUT", path, body).await.problem(status, "invalid");
        assert!(!detail.is_empty());
    }
    let mut binary = NOWHERE.as_bytes().to_vec();
    binary.push(0xff);
    let answer = api.send("PUT", "/api/servers/two", binary).await;
    answer.problem(StatusCode::BAD_REQUEST, "invalid");
    let long = format!("{NOWHERE}{}", " ".repeat(1024 * 1024));
    let answer = api.send("PUT", "/api/servers/two", long).await;
    answer.problem(StatusCode::PAYLOAD_TOO_LARGE, "exhausted");
    for kind in ["", "text/plain", "application/merge-patch+json"] {
        let request = api.ask("PUT", "/api/servers/two").header("content-type", kind);
        let answer = request.body(whole(NOWHERE)).send().await;
        answer.problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid");
    }
    assert_eq!(api.file("settings.json"), "");
}

/// E141, E142: a patch keeps the members that it does not name, and the transport.
#[tokio::test]
async fn e141_a_patch_keeps_unnamed_members_and_the_transport() {
    let api = Api::one().await;
    api.send("PUT", "/api/servers/two", NOWHERE).await.succeeded();
    let url = r#"{"url": "http://127.0.0.1:2/"}"#;
    let patched = api.send("PATCH", "/api/servers/two", url).await;
    assert_eq!(patched.status, StatusCode::OK);
    let text = api.file("settings.json");
    assert!(text.contains(":2/") && text.contains("\"timeoutMs\": 5"), "{text}");
    let merge = api.ask("PATCH", "/api/servers/two");
    let merge = merge.header("content-type", "application/merge-patch+json");
    let merged = merge.body(whole(r#"{"timeoutMs": null}"#)).send().await;
    assert_eq!(merged.status, StatusCode::OK);
    assert!(!api.file("settings.json").contains("timeoutMs"));
    let other = api.send("PATCH", "/api/servers/two", r#"{"transport": "stdio"}"#).await;
    let text = other.problem(StatusCode::BAD_REQUEST, "invalid");
    assert!(text.contains("transport"), "{text}");
    let unknown = api.send("PATCH", "/api/servers/three", url).await;
    unknown.problem(StatusCode::NOT_FOUND, "not_found");
}

/// E139, E144: only entries of the settings can be changed or removed.
#[tokio::test]
async fn e139_only_entries_of_the_settings_can_be_changed_or_removed() {
    let api = Api::one().await;
    let project = api.file("mcp.json");
    let removed = api.ask("DELETE", "/api/servers/one").send().await;
    let text = removed.problem(StatusCode::CONFLICT, "conflict");
    assert!(text.contains("mcp.json"), "{text}");
    let patched = api.send("PATCH", "/api/servers/one", "{}").await;
    patched.problem(StatusCode::CONFLICT, "conflict");
    assert_eq!(api.file("mcp.json"), project);
    api.send("PUT", "/api/servers/two", NOWHERE).await.succeeded();
    let removed = api.ask("DELETE", "/api/servers/two").send().await;
    assert_eq!((removed.status, removed.text()), (StatusCode::NO_CONTENT, ""));
    assert!(api.control.registry().get("two").is_none());
    let again = api.ask("DELETE", "/api/servers/two").send().await;
    again.problem(StatusCode::NOT_FOUND, "not_found");
}

/// E139, E140: an entry in the settings that an entry of the project overrides can still be changed
/// and removed. The server in use stays unchanged.
#[tokio::test]
async fn e140_an_overridden_entry_can_be_changed_and_removed() {
    let api = Api::one().await;
    let before = api.row("one").connection;
    api.send("PUT", "/api/servers/one", NOWHERE).await.succeeded();
    let patched = api.send("PATCH", "/api/servers/one", r#"{"timeoutMs": 77}"#).await;
    let warning = patched.succeeded()["warnings"][0].to_string();
    assert!(warning.contains("is used instead"), "{warning}");
    assert!(api.file("settings.json").contains("77"));
    let removed = api.ask("DELETE", "/api/servers/one").send().await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT, "{}", removed.text());
    assert!(!api.file("settings.json").contains("one"), "{}", api.file("settings.json"));
    assert_eq!(api.get("/api/servers").await["items"].as_array().unwrap().len(), 1);
    assert_eq!(api.row("one").connection, before);
}

/// E142: of several concurrent callers that store one name, exactly one learns that the entry is
/// new.
#[tokio::test]
async fn e142_one_of_several_concurrent_puts_of_a_name_creates_the_entry() {
    let api = Api::one().await;
    let put = || api.send("PUT", "/api/servers/two", NOWHERE);
    let answers: [_; 4] = tokio::join!(put(), put(), put(), put()).into();
    let new = answers.iter().filter(|answer| answer.status == StatusCode::CREATED);
    assert_eq!(new.count(), 1);
    assert!(answers.iter().all(|answer| answer.status.is_success()));
}

/// E141: a change that gives a field twice is refused, also inside `auth`.
#[tokio::test]
async fn e141_a_patch_with_a_duplicate_field_is_refused() {
    let api = Api::one().await;
    let entry = r#"{"transport": "http", "url": "http://127.0.0.1:1/",
        "auth": {"mode": "apiKey", "key": "a"}}"#;
    api.send("PUT", "/api/servers/two", entry).await.succeeded();
    let before = api.file("settings.json");
    for (changes, key) in [
        (r#"{"timeoutMs": 1, "timeoutMs": 2}"#, "timeoutMs"),
        (r#"{"auth": {"key": "b", "key": "c"}}"#, "key"),
    ] {
        let answer = api.send("PATCH", "/api/servers/two", changes).await;
        let text = answer.problem(StatusCode::BAD_REQUEST, "invalid");
        assert!(text.contains(&format!("`{key}` is given twice")), "{text}");
    }
    assert_eq!(api.file("settings.json"), before);
}

/// E37, E48, E57, E61, E4: a server is disabled and enabled again, also for later starts. The
/// answer shows the true state.
#[tokio::test]
async fn e57_servers_are_disabled_and_enabled() {
    let dir = tempfile::tempdir().unwrap();
    let open = || async { Store::open(&dir.path().join("store.db")).await.unwrap() };
    let missing = json!({ "transport": "stdio", "command": "no-such-program" });
    let off = json!({ "transport": "stdio", "command": "x", "disabled": true });
    let servers = json!({ "one": shell(), "missing": missing, "off": off });
    let api = Api::with_store(&servers, Some(open().await)).await;
    let disabled = api.post("/api/servers/one/disable").await.succeeded();
    assert_eq!(
        (&disabled["result"], &disabled["server"]["state"]),
        (&Value::Null, &json!("disabled"))
    );
    let flags = open().await.server_flags().disabled(&narthex_model::WorkspaceId::default()).await;
    assert!(format!("{flags:?}").contains("one"), "{flags:?}");
    let enabled = api.post("/api/servers/one/enable").await.succeeded();
    let ready = json!({ "status": "ready", "id": "one", "toolCount": 0 });
    assert_eq!((&enabled["result"], &enabled["server"]["state"]), (&ready, &json!("ready")));
    let failed = api.post("/api/servers/missing/enable").await.succeeded();
    assert_eq!(failed["result"]["status"], "error", "{failed}");
    // E48: the failure of a server has the shape of a call's failure.
    let error = failed["server"]["error"].as_object().unwrap();
    assert_eq!(error["kind"], "transport_error", "{failed}");
    assert!(error["message"].as_str().unwrap().contains("no-such-program"), "{failed}");
    assert!(error.keys().all(|key| ["kind", "message", "details"].contains(&&**key)), "{failed}");
    let refused = api.post("/api/servers/off/enable").await;
    let told = refused.problem(StatusCode::CONFLICT, "conflict");
    assert!(told.contains("`off` is disabled in ") && told.contains("mcp.json; remove"), "{told}");
}

/// E37, E139, E141: an entry of the settings that is disabled there is enabled there.
#[tokio::test]
async fn e139_a_server_that_the_settings_disable_is_enabled_there() {
    let api = Api::one().await;
    let mut off = shell();
    off["disabled"] = json!(true);
    let put = api.send("PUT", "/api/servers/off", off.to_string()).await.succeeded();
    assert_eq!(put["server"]["state"], "disabled", "{put}");
    // Both ways of disabling end at once.
    api.post("/api/servers/off/disable").await.succeeded();
    let enabled = api.post("/api/servers/off/enable").await.succeeded();
    assert_eq!(enabled["result"]["status"], "ready", "{enabled}");
    assert_eq!(enabled["server"]["state"], "ready", "{enabled}");
    let stored: Value = serde_json::from_str(&api.file("settings.json")).unwrap();
    assert_eq!(stored["mcp"]["servers"]["off"], shell());
}

/// E47, E59: an operator's reconnect opens a new connection. Reauthorizing a server that needs no
/// sign-in changes nothing.
#[tokio::test]
async fn e47_reconnect_opens_a_new_connection_and_reauthorize_keeps_it() {
    let api = Api::over(&json!({ "one": shell() })).await;
    let before = api.row("one").connection;
    let again = api.post("/api/servers/one/reauthorize").await.succeeded();
    assert_eq!(again["result"]["status"], "ready");
    assert_eq!(api.row("one").connection, before);
    let anew = api.post("/api/servers/one/reconnect").await.succeeded();
    assert_eq!(anew["result"]["status"], "ready");
    assert_ne!(api.row("one").connection, before);
}

/// E58, E148: each verb reports that an unknown server does not exist.
#[tokio::test]
async fn e148_every_verb_answers_not_found_for_an_unknown_server() {
    let api = Api::one().await;
    let all = ["disable", "enable", "reconnect", "reauthorize", "authorize", "sign-out", "test"];
    for verb in all {
        let answer = api.post(&format!("/api/servers/two/{verb}")).await;
        let text = answer.problem(StatusCode::NOT_FOUND, "not_found");
        assert!(text.contains("two"), "{verb}: {text}");
    }
}

/// A change that has started is completed, even if its caller does not wait.
#[tokio::test]
async fn a_change_of_a_server_completes_without_its_caller() {
    let api = Api::one().await;
    {
        let by = By::system();
        let mut verb = pin!(api.control.disable("one", &by));
        tokio::select! {
            biased;
            done = &mut verb => panic!("it was not cut off: {done:?}"),
            () = std::future::ready(()) => {}
        }
    }
    let registry = api.control.registry();
    let is_off = |snapshot: &narthex_registry::Snapshot| {
        snapshot.get("one").is_some_and(|row| row.state == ServerState::Disabled)
    };
    assert!(is_off(&*registry.wait_until(SOON, is_off).await));
}
