//! Tests of the registry: the search, one server, and the draft in the catalog.

use http::StatusCode;

use super::{FORM, Html, all, site, values};
use crate::shelf::BROKEN;

const PATH: &str = "/w/default/registry";

/// R5: a search is in the address, and its list has pages.
#[tokio::test]
async fn a_search_is_in_the_address() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = browser.see(PATH).await;
    assert!(all(&page, "#found, .empty").is_empty(), "nothing was searched");
    let page = browser.see(&format!("{PATH}?q=weather")).await;
    assert_eq!(values(&page, "#words", "value"), ["weather"]);
    assert_eq!(all(&page, "#found .title").len(), 40);
    assert!(all(&page, "#found .facts").remove(0).contains("published by com.example"));
    let next = values(&page, "main p > a.button", "href").remove(0);
    assert_eq!(all(&browser.see(&next).await, "#found .title").len(), 5);
    let page = browser.see(&format!("{PATH}?q=nothing")).await;
    assert_eq!(all(&page, ".empty h2"), ["No server has these words"]);
}

/// A registry that does not answer is a fault with a button, and no empty list.
#[tokio::test]
async fn a_registry_that_does_not_answer_is_no_empty_list() {
    let site = site().await;
    let browser = site.browser("ada").await;
    for path in [format!("{PATH}?q={BROKEN}"), format!("{PATH}/server?name={BROKEN}")] {
        let page = browser.see(&path).await;
        assert!(all(&page, ".note.broken").remove(0).contains("does not answer"), "{path}");
        let again = values(&page, ".note.broken a", "href").remove(0);
        assert!(again.starts_with(&path), "{again}");
        assert!(all(&page, ".empty, #found").is_empty(), "{path}");
    }
}

/// A server shows its ways with what each asks for. A draft in the catalog is disabled, is what the
/// registry says and not what the form says, and is there once.
#[tokio::test]
async fn a_server_becomes_a_disabled_draft() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let path = format!("{PATH}/server?name=com.example%2Fweather-07&version=1.4.0");
    let page = browser.see(&path).await;
    assert_eq!(all(&page, "tbody th"), ["WEATHER_KEY"]);
    assert!(all(&page, "tbody td").join(" ").contains("required, a secret"));
    assert!(!all(&page, "main").remove(0).contains("a-default-of-a-secret"));
    assert!(all(&page, "main").remove(0).contains("narthex did not check one"));
    assert_eq!(values(&page, "input[name=id]", "value"), ["weather-07"]);
    assert_eq!(all(&page, "main form button"), ["Add to the catalog as a draft"]);
    let off = all(&page, "main button[aria-disabled]").remove(0);
    assert!(off.contains("is not possible: its image takes arguments"), "{off}");

    let csrf = values(&page, "body", "data-csrf").remove(0);
    let add = async |way: &str, id: &str| {
        let name = "name=com.example%2Fweather-07&version=1.4.0";
        let form = format!("csrf={csrf}&{name}&way={way}&id={id}");
        browser.post(&format!("{PATH}/add"), FORM, form).send().await
    };
    let added = add("0", "weather-07").await;
    assert_eq!(added.status, StatusCode::SEE_OTHER, "{}", added.text());
    let stored = site.api.get("/api/workspaces/default/mcp-servers/weather-07").await;
    assert_eq!(stored["definition"]["disabled"], true, "{stored}");
    assert_eq!(stored["definition"]["command"], "npx");
    assert_eq!(added.headers["location"], "/w/default/catalog/weather-07?done=added");
    for id in ["weather-07", "No Id"] {
        let again = add("0", id).await;
        assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY, "{id}: {}", again.text());
        let page = Html::parse_document(again.text());
        assert_eq!(all(&page, ".fault").len(), 1, "{id}");
        assert_eq!(values(&page, "input[name=id]", "value"), [id]);
    }
    assert_eq!(add("1", "image").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(add("7", "absent").await.status, StatusCode::CONFLICT);
}
