//! Tests of the audit: filters, one event, the verification and the export.

use http::{Method, StatusCode};
use scraper::Html;

use super::{all, site, values};

const LIST: &str = "/w/default/audit";

fn kinds(page: &Html) -> Vec<String> {
    all(page, ".wide tbody th")
}

/// R1, R4: the list has the events of the API, and each filter is in the address and can be taken
/// away.
#[tokio::test]
async fn r1_filters_are_in_the_address() {
    let site = site().await;
    site.api.post("/api/servers/one/disable").await.succeeded();
    let browser = site.browser("ada").await;
    let page = browser.see(LIST).await;
    let listed = site.api.get("/api/workspaces/default/audit").await;
    assert_eq!(kinds(&page).len(), listed["items"].as_array().unwrap().len());
    let page = browser.see(&format!("{LIST}?kind=workspace.mcp.disabled&resource=one")).await;
    assert_eq!(kinds(&page), ["workspace.mcp.disabled"]);
    let away = values(&page, ".filters a", "href");
    let kept = format!("{LIST}?resource=one");
    assert!(away.contains(&kept) && away.len() == 2, "{away:?}");
    let commands = all(&page, ".same code");
    assert!(commands[0].contains("--kind workspace.mcp.disabled"), "{commands:?}");
    let page = browser.see(&format!("{LIST}?outcome=ok&kind=workspace.mcp.disabled")).await;
    assert_eq!(kinds(&page).len(), 1);
    let page = browser.see(&format!("{LIST}?outcome=interrupted")).await;
    assert!(all(&page, "main").remove(0).contains("No event fits"));
    assert!(all(&page, "main").remove(0).contains("that were looked at"));
    for bad in ["?since=yesterday", "?after=x", "?unknown=1"] {
        let answer = browser.look(&format!("{LIST}{bad}")).await;
        assert!(answer.status.is_client_error(), "{bad}");
    }
}

/// R3: an event is shown in words and as it was written, and nothing is called verified before it
/// was.
#[tokio::test]
async fn r3_the_chain_is_verified_when_asked() {
    let site = site().await;
    site.api.post("/api/servers/one/disable").await.succeeded();
    let browser = site.browser("ada").await;
    let page = browser.see(&format!("{LIST}?kind=workspace.mcp.disabled")).await;
    assert!(all(&page, "main").remove(0).contains("claims nothing"));
    let event = values(&page, ".wide tbody a", "href").remove(0);
    let event = browser.see(&event).await;
    let text = all(&event, "main").remove(0);
    assert!(text.contains("did workspace.mcp.disabled on server one"), "{text}");
    assert!(text.contains("The event matches its hash"), "{text}");
    assert!(text.contains("\"hash\": "), "{text}");
    let gone = browser.look(&format!("{LIST}/event?at=1-1-x")).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);

    let verified = browser.press(&format!("{LIST}/verify")).await;
    assert_eq!(verified.status, StatusCode::OK, "{}", verified.text());
    let verified = Html::parse_document(verified.text());
    let note = all(&verified, ".note").remove(0);
    assert!(note.contains("Verified just now") && note.contains("are as they were"), "{note}");
}

/// The export is the one of the API.
#[tokio::test]
async fn the_export_is_that_of_the_api() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let answer = browser.request(Method::GET, &format!("{LIST}/export")).send().await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.headers["content-type"], "application/x-ndjson");
    let name = answer.headers["content-disposition"].to_str().unwrap();
    assert!(name.starts_with("attachment"), "{name}");
    let last = answer.text().lines().next_back().unwrap();
    assert!(last.contains("\"end\""), "{last}");
}
