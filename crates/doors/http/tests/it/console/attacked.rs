//! A site with one of each object, for the tests that attack all pages.

use narthex_testkit::planted;
use serde_json::{Value, json};

use super::{SESSION, site, values};
use crate::{
    api::built_in::{Run, agent_with_a_gated_tool},
    browser::{Browser, Site},
};

/// The API of the workspace that has the objects.
pub(super) const HERE: &str = "/api/workspaces/default";

/// The lists that say whether anything has changed.
const LISTS: [&str; 17] = [
    "mcp-servers",
    "capabilities",
    "agents",
    "secrets",
    "env-bindings",
    "runs",
    "sessions",
    "grants",
    "grant-requests",
    "mcp-clients",
    "members",
    "service-tokens",
    "policy",
    "channels",
    "webhooks",
    "limits",
    "audit/settings",
];

/// A site with one of each object in the workspace `default`.
pub(super) struct Attacked {
    pub(super) site: Site,
    /// The object for each name in braces.
    objects: Vec<(&'static str, String)>,
    client: String,
    /// Tokens of a run, of a client and of a service.
    pub(super) tokens: Vec<String>,
}

impl Attacked {
    pub(super) async fn new() -> Self {
        let site = site().await;
        agent_with_a_gated_tool(&site.api).await;
        let send = async |method: &str, place: &str, body: Value| {
            let path = format!("{HERE}/{place}");
            site.api.send(method, &path, body.to_string()).await.succeeded()
        };
        let text = |made: &Value, member: &str| made[member].as_str().unwrap().to_owned();
        send("PUT", "secrets/SOMEKEY", json!({ "value": "canary-of-the-vault-4711" })).await;
        let of_run = send("POST", "runs", json!({ "session_id": SESSION, "tools": ["one"] })).await;
        let run = Run::begin(&site.api).await;
        let asked = json!({
            "request_id": "ask-1", "grant_type": "tool_scope", "scope": "session",
            "details": { "scope": "demo.write" }, "justification": "please",
        });
        let asked = run.called("request_grant", asked).await;
        let grant = json!({
            "grant_type": "tool_scope", "details": { "scope": "demo.write" }, "reason": "agreed",
            "agent_subject_id": "writer", "scope": "persistent",
        });
        let grant = send("POST", "grants", grant).await;
        let client = json!({ "client": "desktop", "agent_name": "writer" });
        let client = send("POST", "mcp-clients", client).await;
        let service = json!({ "service": "ci", "roles": ["admin"] });
        let service = send("POST", "service-tokens", service).await;
        let mut tokens = vec![run.token.clone()];
        tokens.extend([&of_run, &client, &service].map(|made| text(made, "token")));
        let member =
            site.api.send("POST", "/api/principals", r#"{"name":"eve"}"#).await.succeeded();
        let member = text(&member, "id");
        send("PUT", &format!("members/{member}"), json!({ "roles": ["runner"] })).await;
        let url = json!({ "value": "https://ops.example/canary-of-an-address" });
        send("PUT", "secrets/OPSURL", url).await;
        send("PUT", "secrets/OPSKEY", json!({ "value": "canary-of-a-webhook-key" })).await;
        send("PUT", "channels/chat", json!({ "provider": "slack", "url": "${OPSURL}" })).await;
        let webhook = json!({ "url": "${OPSURL}", "signing_key": "${OPSKEY}" });
        send("PUT", "webhooks/hooks", webhook).await;
        let services = site.api.get(&format!("{HERE}/service-tokens")).await;
        let objects = vec![
            ("{member}", member),
            ("{channel}", "chat".to_owned()),
            ("{webhook}", "hooks".to_owned()),
            ("{token}", text(&services["items"][0], "id")),
            ("{name}", "one".to_owned()),
            ("{request}", text(&asked, "grant_request_id")),
            ("{grant}", text(&grant, "id")),
            ("{agent}", "reader".to_owned()),
            ("{capability}", "papers".to_owned()),
            ("{secret}", "SOMEKEY".to_owned()),
            ("{entry}", "docs".to_owned()),
            ("{run}", text(&of_run, "run_id")),
            ("{session}", SESSION.to_owned()),
        ];
        let client = text(&client, "id");
        Self { site, objects, client, tokens }
    }

    /// The name in braces of a page with the object that is there, if the page has one.
    pub(super) fn object(&self, page: &str) -> Option<(&'static str, &str)> {
        let brace = page.split('/').find(|segment| segment.starts_with('{'))?;
        let found = self.objects.iter().find(|(name, _)| *name == brace);
        let (name, value) = found.unwrap_or_else(|| panic!("give `Attacked` an object: {brace}"));
        let is_client = page.starts_with("clients/");
        Some((name, if is_client { self.client.as_str() } else { value.as_str() }))
    }

    /// The path of a page in a workspace with the object that is there.
    pub(super) fn path(&self, workspace: &str, page: &str) -> String {
        let filled = match self.object(page) {
            Some((name, value)) => page.replace(name, value),
            None => page.to_owned(),
        };
        format!("/w/{workspace}/{filled}")
    }

    /// The value of an object.
    pub(super) fn value(&self, name: &str) -> &str {
        &self.objects.iter().find(|(known, _)| *known == name).unwrap().1
    }

    /// The id of the client.
    pub(super) fn client(&self) -> &str {
        &self.client
    }

    /// All objects, as the API lists them.
    pub(super) async fn state(&self) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        for list in LISTS {
            let path = format!("{HERE}/{list}");
            all.push((path.clone(), self.site.api.get(&path).await));
        }
        for path in ["/api/workspaces", "/api/principals"] {
            all.push((path.to_owned(), self.site.api.get(path).await));
        }
        let server = self.site.api.get("/api/servers/one").await;
        all.push(("the server".to_owned(), server["state"].clone()));
        all
    }

    /// Checks that nothing has changed since.
    pub(super) async fn is_as_before(&self, before: &[(String, Value)]) {
        for ((place, now), (_, was)) in self.state().await.iter().zip(before) {
            assert_eq!(now, was, "{place} has changed");
        }
    }

    /// Makes canaries of all tokens.
    pub(super) fn plant(&self) {
        for token in &self.tokens {
            planted::remember(token);
        }
    }
}

/// A value of the same form, which nothing has.
pub(super) fn absent(value: &str) -> String {
    let is_id = |digits: &str| digits.len() > 8 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    match value.split_once('_').filter(|(_, digits)| is_id(digits)) {
        Some((kind, digits)) => format!("{kind}_{}", "e".repeat(digits.len())),
        None if value.bytes().all(|byte| byte.is_ascii_uppercase()) => "Z".repeat(value.len()),
        None => "z".repeat(value.len()),
    }
}

/// The fields of a form that would change something, beside the token.
pub(super) fn fields(page: &str) -> &'static str {
    match page {
        "add-server" => "name=forged&server=http%3A%2F%2F127.0.0.1%3A9%2Fmcp",
        "secrets/new" => "name=NEWKEY&value=a-value-of-a-form",
        "secrets/{secret}/set" => "value=a-value-of-a-form",
        "new-agent" | "new-capability" => "name=forged",
        "agents/{agent}/edit" | "capabilities/{capability}/edit" => "do=save&description=forged",
        "agents/{agent}/delete" | "capabilities/{capability}/delete" => "force=true",
        "agents/{agent}/start" => "prompt=x",
        "approvals/{request}/decide" => "consent=AAAA&decision=deny",
        "catalog/new/save" => "id=forged&shape=command&command=x&do=save",
        "catalog/{entry}/save" => "tag=stale&shape=command&command=forged&do=save",
        "catalog/{entry}/delete" => "force=on",
        "play/call" => "as=me&server=one&tool=echo&json=%7B%22message%22%3A%22x%22%7D&act=call",
        "policy/check" => "rules=&server=one&tool=echo",
        "policy/preview" => "rules=",
        "policy/save" => "rules=%2F%2F+forged",
        "registry/add" => "name=com.example%2Fweather-00&version=latest&way=0&id=forged",
        "runs/{run}/message" => "text=forged",
        "tools/change" => "act=hide&whole=on",
        "servers/{name}/definitions/accept" | "servers/{name}/definitions/reject" => "digest=ab",
        _ => "",
    }
}

impl Browser<'_> {
    /// The token of forms, as the pages of a workspace have it.
    pub(super) async fn form_token(&self, workspace: &str) -> String {
        let page = self.see(&format!("/w/{workspace}/")).await;
        values(&page, "body", "data-csrf").remove(0)
    }
}

/// A further workspace with one admin, who is no member of another one.
pub(super) async fn team_of(site: &Site, name: &str) {
    site.api.send("POST", "/api/workspaces", r#"{"id":"team"}"#).await.succeeded();
    let made = json!({ "name": name }).to_string();
    let made = site.api.send("POST", "/api/principals", made).await.succeeded();
    let place = format!("/api/workspaces/team/members/{}", made["id"].as_str().unwrap());
    let set = site.api.send("PUT", &place, r#"{"roles":["admin"]}"#).await;
    assert!(set.status.is_success(), "{}", set.text());
}
