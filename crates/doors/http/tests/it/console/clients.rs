//! Tests of the page of clients: rows, facts, filters and the end of a client.

use http::StatusCode;
use serde_json::json;

use super::{Html, all, values};
use crate::{
    api::built_in::agent_with_a_gated_tool,
    browser::{Browser, Site},
};

const LIST: &str = "/w/default/clients";
const API: &str = "/api/workspaces/default/mcp-clients";

/// A registered client: its id and its token.
async fn registered(site: &Site, name: &str) -> (String, String) {
    let body = json!({ "client": name, "agent_name": "writer" }).to_string();
    let made = site.api.send("POST", API, body).await.succeeded();
    let text = |member: &str| made[member].as_str().unwrap().to_owned();
    (text("id"), text("token"))
}

async fn names(browser: &Browser<'_>, query: &str) -> Vec<String> {
    all(&browser.see(&format!("{LIST}{query}")).await, "#clients .title")
}

/// S27: a client is listed with its facts and without its token, and is revoked by its row.
#[tokio::test]
async fn s27_a_client_is_shown_without_its_token_and_revoked() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let browser = site.browser("ada").await;
    let empty = browser.see(LIST).await;
    assert!(all(&empty, ".empty").remove(0).contains("narthex clients register"));
    let (id, token) = registered(&site, "desktop").await;
    let open = format!("{LIST}?open={id}");
    let answer = browser.look(&open).await;
    assert!(!answer.text().contains(&token), "{}", answer.text());
    let page = Html::parse_document(answer.text());
    assert_eq!(all(&page, "#clients .title"), ["desktop"]);
    assert_eq!(all(&page, "#clients .badge"), ["may connect"]);
    assert_eq!(values(&page, "#clients .title a", "href"), [open]);
    let found = browser.see("/w/default/search?q=DESK").await;
    assert!(values(&found, "main a", "href").contains(&format!("{LIST}?open={id}")));
    let facts = all(&page, "#facts").remove(0);
    for fact in [id.as_str(), "the servers of the agent writer", "agent-produced"] {
        assert!(facts.contains(fact), "{fact}: {facts}");
    }

    let revoked = browser.press(&format!("{LIST}/{id}/revoke")).await;
    assert_eq!(revoked.headers["location"], format!("{LIST}?done=revoke&name=desktop").as_str());
    let shown = site.api.get(&format!("{API}/{id}")).await;
    assert_eq!(shown["closed_because"], "revoked");
    let page = browser.see(&format!("{LIST}?kind=closed&done=revoke&name=desktop")).await;
    assert!(all(&page, "#told")[0].starts_with("desktop is revoked"));
    assert_eq!(all(&page, "#clients .badge"), ["revoked"]);
    assert!(values(&page, "#clients form", "action").is_empty());
}

/// R1, R5: filters are in the address, and searched on the server; what is unknown is refused.
#[tokio::test]
async fn r1_filters_of_clients_are_in_the_address() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    registered(&site, "desktop").await;
    registered(&site, "editor").await;
    let browser = site.browser("ada").await;
    assert_eq!(names(&browser, "?q=DESK").await, ["desktop"]);
    assert_eq!(names(&browser, "?kind=token").await.len(), 2);
    assert!(names(&browser, "?kind=human").await.is_empty());
    let page = browser.see(&format!("{LIST}?q=DESK")).await;
    assert_eq!(all(&page, ".filter[aria-current]"), ["open 1", "named “DESK” ✕"]);
    for (query, status) in [
        ("?kind=other", StatusCode::UNPROCESSABLE_ENTITY),
        ("?open=cli_gone", StatusCode::NOT_FOUND),
    ] {
        assert_eq!(browser.look(&format!("{LIST}{query}")).await.status, status, "{query}");
    }
}

/// S18: clients are for those who may read them in the API, and only admins revoke them.
#[tokio::test]
async fn s18_clients_are_for_auditors_and_admins() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let (id, _) = registered(&site, "desktop").await;
    let bob = site.api.send("POST", "/api/principals", r#"{"name":"bob"}"#).await.succeeded();
    let place = format!("/api/workspaces/default/members/{}", bob["id"].as_str().unwrap());
    for (role, expected) in [("runner", StatusCode::FORBIDDEN), ("auditor", StatusCode::OK)] {
        site.api.send("PUT", &place, json!({ "roles": [role] }).to_string()).await.succeeded();
        let browser = site.browser("bob").await;
        assert_eq!(browser.look(LIST).await.status, expected, "{role}");
        let revoked = browser.press(&format!("{LIST}/{id}/revoke")).await;
        assert_eq!(revoked.status, StatusCode::FORBIDDEN, "{role}");
    }
    let browser = site.browser("bob").await;
    let page = browser.see(LIST).await;
    assert_eq!(values(&page, "#clients button", "aria-disabled"), ["true"]);
    assert_eq!(site.api.get(&format!("{API}/{id}")).await["is_live"], true);
}
