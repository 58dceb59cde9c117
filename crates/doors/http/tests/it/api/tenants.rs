//! Two workspaces in one store, with a principal for each role.

use http::{Method, StatusCode};
use narthex_model::Role;
use narthex_store::Store;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::world::Api;
use crate::world::{Answer, Builder, whole};

/// A door over a store with workspaces. In each workspace every role has a service with the role's
/// name.
pub(super) struct Tenants {
    pub(super) api: Api,
    pub(super) place: TempDir,
    /// The workspace, the role, and the token of the service with this role.
    pub(super) tokens: Vec<(String, Role, String)>,
}

impl Tenants {
    pub(super) async fn with(workspaces: &[&str]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let api = api(&place).await;
        let mut tenants = Self { api, place, tokens: Vec::new() };
        for workspace in workspaces {
            let made = json!({ "id": workspace }).to_string();
            tenants.api.send("POST", "/api/workspaces", made).await.succeeded();
            for role in Role::ALL {
                let token = tenants.service(workspace, role.as_str(), &[role]).await;
                tenants.tokens.push(((*workspace).to_owned(), role, token));
            }
        }
        tenants
    }

    /// Creates a service, and returns its token.
    pub(super) async fn service(&self, workspace: &str, name: &str, roles: &[Role]) -> String {
        let path = format!("/api/workspaces/{workspace}/service-tokens");
        let asked = json!({ "service": name, "roles": roles }).to_string();
        let made = self.api.send("POST", &path, asked).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
        assert_eq!(made.headers["cache-control"], "no-store");
        made.json()["token"].as_str().unwrap().to_owned()
    }

    pub(super) fn token(&self, workspace: &str, role: Role) -> &str {
        let found = self.tokens.iter().find(|one| one.0 == workspace && one.1 == role);
        &found.unwrap().2
    }

    /// A request with a token; a body that is not empty is sent as JSON.
    pub(super) fn ask(&self, token: &str, method: &str, path: &str, body: &str) -> Builder<'_> {
        let request = self.api.world.request(method.parse::<Method>().unwrap(), path);
        let bearer = if token.is_empty() { String::new() } else { format!("Bearer {token}") };
        let request = request.header("authorization", &bearer);
        match body {
            "" => request,
            body => request.header("content-type", "application/json").body(whole(body.to_owned())),
        }
    }

    pub(super) async fn send(&self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        self.ask(token, method, path, body).send().await
    }

    /// The items of a list that has one page.
    pub(super) async fn items(&self, token: &str, path: &str) -> Vec<Value> {
        let mut page = self.send(token, "GET", path, "").await.succeeded();
        assert_eq!(page["next"], Value::Null);
        page["items"].as_array_mut().unwrap().drain(..).collect()
    }
}

/// A further daemon on the store in a folder.
pub(super) async fn api(place: &TempDir) -> Api {
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    Api::with_secrets(store, &place.path().join("master.key")).await
}
