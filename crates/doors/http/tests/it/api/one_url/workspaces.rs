//! Tests of endpoints that name a workspace: they lead to runs of this workspace alone.

use http::{Method, StatusCode};
use serde_json::json;

use super::{Desk, ENDPOINT, location, parameter};
use crate::browser::{HOST, ORIGIN};

/// R2: an endpoint of a workspace has a document, and a token for it opens it and no other.
#[tokio::test]
async fn door_r2_an_endpoint_of_a_workspace_is_a_resource_of_its_own() {
    let desk = Desk::new().await;
    let endpoint = format!("{ENDPOINT}/w/default");
    let known = "/.well-known/oauth-protected-resource/mcp/w/default";
    let document = desk.request(Method::GET, known).send().await.succeeded();
    assert_eq!(document["resource"], endpoint);
    let (_, tokens) = desk.let_in(&endpoint).await;
    let token = &tokens["access_token"];
    for path in ["/mcp/w/default", "/mcp/w/default/"] {
        let called = desk.call(path, token).await;
        assert_eq!(called.status, StatusCode::OK, "{path}: {}", called.text());
    }
    for path in ["/mcp", "/mcp/narthex", "/mcp/w/default/narthex", "/mcp/w/team"] {
        let other = desk.call(path, token).await;
        assert_eq!(other.status, StatusCode::UNAUTHORIZED, "{path}: {}", other.text());
        let at = format!("{ORIGIN}/.well-known/oauth-protected-resource{path}");
        assert!(super::challenge(&other).contains(&format!("\"{at}\"")), "{path}");
    }
}

/// D5, S18: for runs of others, a workspace that exists looks as one that does not.
#[tokio::test]
async fn d5_door_r2_another_workspace_does_not_exist() {
    let desk = Desk::new().await;
    let team = json!({ "id": "team" }).to_string();
    desk.api.send("POST", "/api/workspaces", team).await.succeeded();
    let ask = async |path: &str| {
        let request = desk.api.world.modern(path, "tools/list", json!({}));
        request.header("host", HOST).send().await
    };
    for rest in ["", "/narthex", "/p/work"] {
        let there = ask(&format!("/mcp/w/team{rest}")).await;
        let absent = ask(&format!("/mcp/w/none{rest}")).await;
        let text = there.problem(StatusCode::NOT_FOUND, "not_found");
        assert_eq!(
            text.replace("team", "none"),
            absent.problem(StatusCode::NOT_FOUND, "not_found")
        );
    }
    let own = ask("/mcp/w/default").await;
    assert_eq!(own.status, StatusCode::OK, "{}", own.text());
}

/// S17: the page of consent for the endpoint of a workspace offers nothing of another one, and a
/// forged choice gives no code.
#[tokio::test]
async fn s17_door_r2_consent_at_a_workspace_gives_nothing_of_another_one() {
    let desk = Desk::new().await;
    let team = json!({ "id": "team" }).to_string();
    desk.api.send("POST", "/api/workspaces", team).await.succeeded();
    let (cookie, client) = (desk.sign_in("ada").await, desk.register_as("Desk").await);
    let resource = format!("{ENDPOINT}/w/team");
    let shown = desk.authorize(&cookie, &client, &[("resource", &resource)]).await;
    let page = desk.page(&shown, &cookie);
    assert!(!page.text.contains("value=\"live\""), "{}", page.text);
    let forged = desk.answer(&page, "approve", "live").await;
    assert_eq!(forged.status, StatusCode::FORBIDDEN, "{}", forged.text());
    let denied = location(&desk.answer(&page, "deny", "").await);
    assert_eq!(parameter(&denied, "error").as_deref(), Some("access_denied"));
}
