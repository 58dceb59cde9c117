//! Tests of the table of tools: filters, and changes of several tools at once.

use http::StatusCode;
use scraper::Html;

use super::{FORM, all, site, values};
use crate::browser::Browser;

const LIST: &str = "/w/default/tools";

/// Sends the form that changes tools.
async fn change(browser: &Browser<'_>, more: &str) -> crate::world::Answer {
    let page = browser.see("/w/default/").await;
    let csrf = values(&page, "body", "data-csrf").remove(0);
    let body = format!("csrf={csrf}&{more}");
    browser.post(&format!("{LIST}/change"), FORM, body).send().await
}

fn states(page: &Html) -> Vec<String> {
    all(page, ".tools-table tbody tr td:nth-child(4)")
}

/// R4, R5: the table has the tools that the API lists, and its filters are in the address.
#[tokio::test]
async fn r5_the_table_has_the_tools_of_all_servers() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = browser.see(LIST).await;
    let names = all(&page, ".tools-table th .name");
    let listed = site.api.get("/api/tools?limit=100").await;
    let listed = listed["items"].as_array().unwrap().clone();
    assert!(!names.is_empty() && names.len() <= 50);
    assert!(all(&page, "main").remove(0).contains(&format!("of {} tools", listed.len())));
    let found = browser.see(&format!("{LIST}?q=ECHO")).await;
    assert!(all(&found, ".tools-table th .name").iter().any(|name| name == "echo"));
    assert!(all(&found, ".tools-table th .name").len() < names.len());
    let none = browser.see(&format!("{LIST}?q=nothing+at+all")).await;
    assert!(all(&none, "main").remove(0).contains("No tool fits"));
    for bad in ["?state=x", "?sort=x", "?page=x", "?unknown=1"] {
        let answer = browser.look(&format!("{LIST}{bad}")).await;
        assert!(answer.status.is_client_error(), "{bad}");
    }
    let largest = browser.see(&format!("{LIST}?sort=size")).await;
    let sizes: Vec<u64> =
        all(&largest, ".tools-table td.number").iter().map(|size| size.parse().unwrap()).collect();
    assert!(sizes.is_sorted_by(|one, other| one >= other), "{sizes:?}");
}

/// R6, E151: the chosen tools are hidden and shown again, by the change of the entry that the API
/// has.
#[tokio::test]
async fn r6_chosen_tools_are_hidden_and_shown() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let hidden = change(&browser, "act=hide&q=echo&t0=one%2Cecho").await;
    assert_eq!(hidden.status, StatusCode::SEE_OTHER, "{}", hidden.text());
    let back = hidden.headers["location"].to_str().unwrap();
    assert_eq!(back, format!("{LIST}?q=echo&done=hide&n=1"));
    let entry = site.api.control.registry().get("one").unwrap().definition.clone().unwrap();
    assert!(!entry.exposed.tools.lets("echo") && entry.exposed.tools.lets("other"));
    let registry = site.api.control.registry();
    registry.wait_until(crate::world::SOON, |all| all.is_settled()).await;
    let page = browser.see(&format!("{LIST}?state=hidden")).await;
    assert_eq!(all(&page, ".tools-table th .name"), ["echo"]);
    assert_eq!(states(&page), ["do not see it: hidden"]);
    change(&browser, "act=show&t0=one%2Cecho").await;
    let entry = registry.get("one").unwrap().definition.clone().unwrap();
    assert!(entry.exposed.tools.is_open());
}

/// R6: a change of all rows respects the filter; a scope that cannot be one is a fault of its
/// field, and the choice stays.
#[tokio::test]
async fn r6_a_scope_is_required_of_all_that_fit() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let bad = change(&browser, "act=require&scope=no&t0=one%2Cecho").await;
    assert_eq!(bad.status, StatusCode::UNPROCESSABLE_ENTITY);
    let page = Html::parse_document(bad.text());
    assert_eq!(all(&page, "#batch .fault").len(), 1);
    assert_eq!(values(&page, "#f-scope", "value"), ["no"]);
    assert!(values(&page, ".pick input[checked]", "value").contains(&"one,echo".to_owned()));

    let done = change(&browser, "act=require&scope=demo.write&q=echo&whole=on").await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text());
    let registry = site.api.control.registry();
    let entry = registry.get("one").unwrap().definition.clone().unwrap();
    assert!(!entry.gates.of_tool("echo").is_empty());
    assert!(entry.gates.of_tool("fail").is_empty(), "it does not fit the filter");
    registry.wait_until(crate::world::SOON, |all| all.is_settled()).await;
    let page = browser.see(&format!("{LIST}?state=gated")).await;
    assert!(all(&page, ".tools-table code").contains(&"demo.write".to_owned()));
    change(&browser, "act=free&t0=one%2Cecho").await;
    let entry = registry.get("one").unwrap().definition.clone().unwrap();
    assert!(entry.gates.of_tool("echo").is_empty());
}

/// A form without a tool, with an unknown one or with an unknown act changes nothing, and says so.
#[tokio::test]
async fn a_change_of_nothing_says_so() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let nothing = change(&browser, "act=hide").await;
    assert_eq!(nothing.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(nothing.text().contains("no tool was chosen"));
    for more in ["act=hide&t0=one%2Cabsent", "act=hide&t0=gone%2Cecho"] {
        assert_eq!(change(&browser, more).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    assert!(change(&browser, "act=burn&t0=one%2Cecho").await.status.is_client_error());
    let entry = site.api.control.registry().get("one").unwrap().definition.clone().unwrap();
    assert!(entry.exposed.tools.is_open());
}
