//! Stored sign-ins to servers go with the human or the server that they are for.

use http::StatusCode;
use narthex_model::WorkspaceId;
use narthex_store::{OAuthFacts, OAuthGrantKey, Store};
use serde_json::json;

use super::{tenants::Tenants, world::Api};

fn key(workspace: &str, server: &str, user: Option<&str>) -> OAuthGrantKey {
    let (server, user) = (server.to_owned(), user.map(str::to_owned));
    OAuthGrantKey { workspace: WorkspaceId::new(workspace).unwrap(), server, user }
}

async fn put(store: &Store, keys: &[OAuthGrantKey]) {
    for key in keys {
        store.oauth_grants().put(key, "sealed", &OAuthFacts::default()).await.unwrap();
    }
}

/// For each key, true if it has a grant.
async fn stored(store: &Store, keys: &[OAuthGrantKey]) -> Vec<bool> {
    let mut found = Vec::new();
    for key in keys {
        found.push(store.oauth_grants().find(key).await.unwrap().is_some());
    }
    found
}

/// C29: the sign-ins of a human go when the human leaves the workspace, and all of them when the
/// human is disabled. Shared ones stay.
#[tokio::test]
async fn c29_sign_ins_go_with_their_human() {
    let tenants = Tenants::with(&["team", "rival"]).await;
    let api = &tenants.api;
    let ada = api.send("POST", "/api/principals", r#"{"name": "ada"}"#).await.succeeded();
    let ada = ada["id"].as_str().unwrap();
    let member = |workspace: &str| format!("/api/workspaces/{workspace}/members/ada");
    for workspace in ["team", "rival"] {
        api.send("PUT", &member(workspace), r#"{"roles": ["author"]}"#).await.succeeded();
    }
    let store = api.control.store().unwrap();
    let keys = [
        key("team", "docs", Some(ada)),
        key("team", "docs", Some("prn_00000000000000bb")),
        key("team", "docs", None),
        key("rival", "docs", Some(ada)),
    ];
    put(store, &keys).await;
    let removed = api.ask("DELETE", &member("team")).send().await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT);
    assert_eq!(stored(store, &keys).await, [false, true, true, true]);
    let on = r#"{"is_disabled": false}"#;
    api.send("PATCH", "/api/principals/ada", on).await.succeeded();
    assert_eq!(stored(store, &keys).await, [false, true, true, true]);
    let off = r#"{"is_disabled": true}"#;
    api.send("PATCH", "/api/principals/ada", off).await.succeeded();
    assert_eq!(stored(store, &keys).await, [false, true, true, false]);
}

/// C29: the sign-ins of a server of the settings go when it is removed. Those of others stay.
#[tokio::test]
async fn c29_sign_ins_go_with_a_removed_server() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let servers = json!({ "one": { "transport": "http", "url": "URL" } });
    let api = Api::with_store(&servers, Some(store.clone())).await;
    let keys = [key("default", "two", None), key("default", "one", None)];
    put(&store, &keys).await;
    let two = r#"{"transport": "http", "url": "http://127.0.0.1:1/", "timeoutMs": 5}"#;
    api.send("PUT", "/api/servers/two", two).await.succeeded();
    api.send("PATCH", "/api/servers/two", r#"{"timeoutMs": 6}"#).await.succeeded();
    assert_eq!(stored(&store, &keys).await, [true, true]);
    let removed = api.ask("DELETE", "/api/servers/two").send().await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT);
    assert_eq!(stored(&store, &keys).await, [false, true]);
}
