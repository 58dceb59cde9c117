//! Tests of the first page.

use serde_json::json;

use super::{Html, all, site, values};
use crate::{
    api::built_in::{Run, agent_with_a_gated_tool},
    browser::Site,
};

/// The first steps are ticked only by what was seen, and go away with the first call.
#[tokio::test]
async fn first_steps_are_ticked_by_what_was_seen() {
    let steps = async |site: &Site| {
        let browser = site.browser("ada").await;
        let page = browser.see("/w/default/").await;
        (all(&page, ".steps > li").len(), all(&page, ".steps > li.done").len())
    };
    assert_eq!(steps(&Site::new().await).await, (3, 0));
    assert_eq!(steps(&site().await).await, (3, 1), "a server");
}

/// X-M56, R4: a request of an agent is on the page, in the number of the frame and in the search,
/// and leads to the page on which it is decided.
#[tokio::test]
async fn x_m56_a_request_waits_on_the_first_page() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let run = Run::begin(&site.api).await;
    let browser = site.browser("ada").await;
    let waits = |page: &Html| all(page, "#waits b").remove(0);
    assert_eq!(waits(&browser.see("/w/default/").await), "0");
    let wanted = json!({
        "request_id": "ask-1", "grant_type": "tool_scope", "scope": "session",
        "details": { "scope": "demo.write" }, "justification": "<b>please</b>",
    });
    let asked = run.called("request_grant", wanted).await;
    let id = asked["grant_request_id"].as_str().unwrap();
    let page = browser.see("/w/default/").await;
    assert_eq!(waits(&page), "1");
    let path = format!("/w/default/approvals/{id}");
    assert!(values(&page, "#waiting a", "href").contains(&path));
    assert!(all(&page, "#waiting").remove(0).contains("tool scope demo.write"));
    let found = browser.see("/w/default/search?q=WRIT").await;
    assert!(values(&found, "main a", "href").contains(&path));
    assert_eq!(values(&found, "#q", "value"), ["WRIT"]);
}

/// Who came by a link and has no passkey is offered to make one.
#[tokio::test]
async fn d15_a_passkey_is_offered_to_those_who_came_by_a_link() {
    let site = Site::new().await;
    let mut browser = site.browser("ada").await;
    let offers = |page: &Html| !all(page, "aside").is_empty();
    assert!(offers(&browser.see("/w/default/").await));
    let mut authenticator =
        narthex_testkit::authenticator::Authenticator::new(crate::browser::ORIGIN);
    browser.add(&mut authenticator).await.succeeded();
    assert!(!offers(&browser.see("/w/default/").await));
}
