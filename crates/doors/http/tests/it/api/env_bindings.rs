//! Tests of secrets that are bound to the environment of agents: created, listed and removed.

use std::collections::BTreeSet;

use http::StatusCode;
use narthex_model::{EnvName, PreviewId, Role, WorkspaceId};
use serde_json::{Value, json};

use super::tenants::Tenants;
use crate::world::ADMIN;

const ALL: &str = "/api/workspaces/team/env-bindings";

fn at(rest: &str) -> String {
    format!("/api/workspaces/team/{rest}")
}

/// A workspace with an agent and two secrets.
async fn team() -> Tenants {
    let tenants = Tenants::with(&["team"]).await;
    for name in ["GITHUB_CI", "OTHER"] {
        let body = json!({ "value": format!("canary-{name}") }).to_string();
        tenants.send(ADMIN, "PUT", &at(&format!("secrets/{name}")), &body).await.succeeded();
    }
    tenants.send(ADMIN, "PUT", &at("agents/reader"), r#"{"name": "reader"}"#).await.succeeded();
    tenants
}

impl Tenants {
    async fn bind(&self, scope: &str, id: &str, name: &str, secret: &str) {
        let body = json!({ "scope": scope, "scope_id": id, "name": name, "secret": secret });
        let made = self.send(ADMIN, "POST", ALL, &body.to_string()).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    }

    /// The names of the faulty fields in the refusal of this body.
    async fn wrong(&self, body: &Value) -> Vec<String> {
        let refused = self.send(ADMIN, "POST", ALL, &body.to_string()).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text());
        let problem: Value = serde_json::from_slice(&refused.body).unwrap();
        let errors = problem["errors"].as_array().unwrap();
        errors.iter().map(|one| one["field"].as_str().unwrap().to_owned()).collect()
    }

    async fn ids(&self, path: &str) -> Vec<String> {
        let items = self.items(ADMIN, path).await;
        items.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    }
}

/// X-E59, X-E63, X-E66, X-M31, X-E60: an admin creates, lists, replaces and removes a binding by
/// name. All faults are reported at once, and each change is in the audit.
#[tokio::test]
async fn x_e63_bindings_are_created_listed_replaced_and_removed() {
    let tenants = team().await;
    let admin = tenants.token("team", Role::Admin);
    let body = json!({ "scope": "agent", "scope_id": "reader", "name": "GITHUB_TOKEN",
                       "secret": "GITHUB_CI" })
    .to_string();
    let made = tenants.send(admin, "POST", ALL, &body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let place = format!("{ALL}/agent:reader:GITHUB_TOKEN");
    assert_eq!(made.headers["location"], place.as_str());
    let made = made.json();
    assert_eq!((&made["scope"], &made["scope_id"]), (&json!("agent"), &json!("reader")));
    assert_eq!((&made["secret"], &made["updated_by"]), (&json!("GITHUB_CI"), &json!("team/admin")));
    tenants.send(admin, "POST", ALL, &body).await.problem(StatusCode::CONFLICT, "conflict");
    tenants.bind("workspace", "", "GITHUB_TOKEN", "OTHER").await;
    tenants.bind("workspace", "team", "SECOND", "OTHER").await;
    tenants.bind("preview_environment", "pr-7", "SECOND", "OTHER").await;

    let all = [
        "agent:reader:GITHUB_TOKEN",
        "preview_environment:pr-7:SECOND",
        "workspace:GITHUB_TOKEN",
        "workspace:SECOND",
    ];
    assert_eq!(tenants.ids(ALL).await, all);
    let of = async |query: &str| tenants.ids(&format!("{ALL}?{query}")).await;
    assert_eq!(of("scope=workspace&scope_id=team").await, all[2..]);
    assert_eq!(of("scope=agent&scope_id=reader").await, all[..1]);
    assert_eq!(of("scope_id=pr-7").await, all[1..2]);
    let page = tenants.send(admin, "GET", &format!("{ALL}?limit=2"), "").await.json();
    assert_eq!(page["next"], all[1]);
    assert_eq!(of(&format!("after={}", all[1])).await, all[2..]);

    let put = async |path: &str| tenants.send(admin, "PUT", path, r#"{"secret": "OTHER"}"#).await;
    assert_eq!(put(&place).await.status, StatusCode::OK);
    assert_eq!(put(&format!("{ALL}/workspace:THIRD")).await.status, StatusCode::CREATED);
    put(&format!("{ALL}/THIRD")).await.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    // X-E60: the agent's document lists the names of its variables.
    let agent = tenants.send(admin, "GET", &at("agents/reader"), "").await.json();
    assert_eq!(agent["agent_env_names"], json!(["GITHUB_TOKEN", "SECOND", "THIRD"]));
    let agents = tenants.items(admin, &at("agents")).await;
    assert_eq!(agents[0]["agent_env_names"], agent["agent_env_names"]);

    for (times, status) in [(1, StatusCode::NO_CONTENT), (2, StatusCode::NOT_FOUND)] {
        let removed = tenants.send(admin, "DELETE", &place, "").await;
        assert_eq!(removed.status, status, "{times}");
    }
    tenants.send(admin, "DELETE", &at("agents/reader"), "").await;
    let events = tenants.items(admin, &at("audit?kind=workspace.env_binding&order=oldest")).await;
    let kinds: Vec<_> = events
        .iter()
        .map(|one| (one["kind"].as_str().unwrap(), one["details"]["secret"].as_str()))
        .collect();
    assert_eq!(kinds.len(), 7, "{events:?}");
    assert_eq!(kinds[0], ("workspace.env_binding.set", Some("GITHUB_CI")));
    assert_eq!(kinds[4], ("workspace.env_binding.set", Some("OTHER")));
    assert_eq!(kinds[6], ("workspace.env_binding.removed", None));
    assert!(!format!("{events:?}").contains("canary"));
}

/// X-E59, D9, X-M24, X-E62: faults of a binding are reported at once, field by field, and nothing
/// is stored.
#[tokio::test]
async fn x_e59_a_binding_to_an_absent_subject_or_secret_is_refused() {
    let tenants = team().await;
    let body = json!({ "scope": "agent", "scope_id": "nobody", "name": "A", "secret": "NONE" });
    assert_eq!(tenants.wrong(&body).await, ["scope_id", "secret"]);
    let body = json!({ "scope": "run", "name": "token", "secret": "a-b", "value": "x" });
    assert_eq!(tenants.wrong(&body).await, ["value", "scope", "name", "secret"]);
    assert_eq!(tenants.wrong(&json!({})).await, ["scope", "name", "secret"]);
    for name in ["PATH", "LD_PRELOAD", "NODE_OPTIONS", "NARTHEX_TOKEN", "NARTHEX_X"] {
        let body = json!({ "scope": "workspace", "name": name, "secret": "OTHER" });
        assert_eq!(tenants.wrong(&body).await, ["name"], "{name}");
        let path = format!("{ALL}/workspace:{name}");
        let put = tenants.send(ADMIN, "PUT", &path, r#"{"secret": "OTHER"}"#).await;
        put.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    }
    for scope in [
        json!({ "scope": "workspace", "scope_id": "rival" }),
        json!({ "scope": "agent" }),
        json!({ "scope": "agent", "scope_id": "A/B" }),
        json!({ "scope": "preview_environment", "scope_id": "" }),
    ] {
        let mut body = json!({ "name": "A", "secret": "OTHER" });
        body.as_object_mut().unwrap().extend(scope.as_object().unwrap().clone());
        assert_eq!(tenants.wrong(&body).await, ["scope_id"], "{scope}");
    }
    // A cleared secret counts as absent.
    let cleared = tenants.send(ADMIN, "DELETE", &at("secrets/OTHER"), "").await;
    assert_eq!(cleared.status, StatusCode::NO_CONTENT);
    let body = json!({ "scope": "workspace", "name": "A", "secret": "OTHER" });
    assert_eq!(tenants.wrong(&body).await, ["secret"]);
    assert_eq!(tenants.ids(ALL).await, [""; 0]);
}

/// X-E62: tokens and keys of the daemon are not secrets of a workspace, under any name. A binding
/// to one is refused, the answer does not repeat the token, and nothing is stored.
#[tokio::test]
async fn x_e62_a_binding_reaches_no_token_and_no_key() {
    let tenants = team().await;
    let token = tenants.service("team", "deployer", &[Role::Runner]).await;
    let listed = tenants.items(ADMIN, &at("service-tokens")).await;
    let listed = listed.iter().find(|one| one["service"] == "team/deployer").unwrap();
    let id = listed["id"].as_str().unwrap();
    let file = fs_err::read_to_string(tenants.place.path().join("master.key")).unwrap();
    let rival = json!({ "id": "rival" }).to_string();
    tenants.send(ADMIN, "POST", "/api/workspaces", &rival).await.succeeded();
    let body = json!({ "value": "of-rival" }).to_string();
    let path = "/api/workspaces/rival/secrets/RIVALS";
    tenants.send(ADMIN, "PUT", path, &body).await.succeeded();
    let names = [
        ("a service", "team/deployer"),
        ("a service, as a name", "deployer"),
        ("the id of a token", id),
        ("a token", token.as_str()),
        ("the token of an operator", ADMIN),
        ("the master key", file.trim()),
        ("its file", "master.key"),
        ("a place of the vault", "secret/team/OTHER"),
        ("a variable of the daemon", "NARTHEX_TOKEN"),
        ("a secret of another workspace", "RIVALS"),
    ];
    for (what, secret) in names {
        let body = json!({ "scope": "workspace", "name": "A", "secret": secret }).to_string();
        let refused = tenants.send(ADMIN, "POST", ALL, &body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{what}: {}", refused.text());
        let errors = refused.json()["errors"].clone();
        assert_eq!(errors[0]["field"], "secret", "{what}: {errors}");
        assert_eq!(errors.as_array().unwrap().len(), 1, "{what}: {errors}");
        assert!(!errors.to_string().contains(token.as_str()), "{what}");
        let body = json!({ "secret": secret }).to_string();
        let put = tenants.send(ADMIN, "PUT", &format!("{ALL}/workspace:A"), &body).await;
        put.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    }
    assert_eq!(tenants.ids(ALL).await, [""; 0]);
}

/// X-E67, X-M32: a caller that clears a secret which agents have is warned that they still have it.
#[tokio::test]
async fn x_m32_clearing_a_bound_secret_warns_of_agents_that_have_its_value() {
    let tenants = team().await;
    tenants.bind("agent", "reader", "TOKEN", "OTHER").await;
    let cleared = tenants.send(ADMIN, "DELETE", &at("secrets/OTHER"), "").await;
    assert_eq!(cleared.status, StatusCode::OK, "{}", cleared.text());
    let told = cleared.json();
    assert_eq!(told["env_bindings"], json!(["agent:reader:TOKEN"]));
    assert!(told["warning"].as_str().unwrap().contains("narthex cannot take it back"), "{told}");
    let again = tenants.send(ADMIN, "DELETE", &at("secrets/OTHER"), "").await;
    again.problem(StatusCode::NOT_FOUND, "not_found");
}

/// X-E64: a preview environment gets the secrets that it lists and that are bound, for it or for
/// the workspace. Missing ones are left out.
#[tokio::test]
async fn x_e64_a_preview_environment_gets_only_listed_and_bound_secrets() {
    let tenants = team().await;
    tenants.bind("workspace", "", "BOTH", "OTHER").await;
    tenants.bind("preview_environment", "pr-7", "BOTH", "GITHUB_CI").await;
    tenants.bind("preview_environment", "pr-7", "UNLISTED", "OTHER").await;
    tenants.bind("agent", "reader", "OF_AGENT", "OTHER").await;
    tenants.bind("workspace", "", "WHOLE", "OTHER").await;
    let listed: BTreeSet<_> =
        ["BOTH", "OF_AGENT", "UNBOUND", "WHOLE"].map(|name| EnvName::new(name).unwrap()).into();
    let (team, control) = (WorkspaceId::new("team").unwrap(), &tenants.api.control);
    let told = async |preview: &str| {
        let preview = PreviewId::new(preview).unwrap();
        let env = control.preview_env(&team, &preview, &listed).await.unwrap();
        assert!(!format!("{env:?}").contains("canary"), "{env:?}");
        env.expose().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
    };
    assert_eq!(told("pr-7").await, ["BOTH=canary-GITHUB_CI", "WHOLE=canary-OTHER"]);
    assert_eq!(told("pr-8").await, ["BOTH=canary-OTHER", "WHOLE=canary-OTHER"]);
    tenants.send(ADMIN, "DELETE", &at("secrets/OTHER"), "").await;
    assert_eq!(told("pr-7").await, ["BOTH=canary-GITHUB_CI"]);
}
