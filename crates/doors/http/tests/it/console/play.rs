//! Tests of the playground: the form beside the JSON, and calls in runs of the human.

use http::StatusCode;
use scraper::Html;
use serde_json::{Value, json};

use super::{FORM, all, site, values};
use crate::{
    api::built_in::{Run, agent_with_a_gated_tool},
    browser::{Browser, Site},
    world::Answer,
};

const PAGE: &str = "/w/default/play";
const ECHO: &str = "/w/default/play?server=one&tool=echo";

/// Sends the form of a page with some of its fields changed.
async fn send(browser: &Browser<'_>, page: &Html, changed: &[(&str, &str)]) -> Answer {
    let mut form = form_urlencoded(page);
    for (name, value) in changed {
        form.retain(|(known, _)| known != name);
        form.push(((*name).to_owned(), (*value).to_owned()));
    }
    let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let pairs: Vec<_> =
        form.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    browser.post(&format!("{PAGE}/call"), FORM, pairs.join("&")).send().await
}

/// The fields of the form of the call as the page has them.
fn form_urlencoded(page: &Html) -> Vec<(String, String)> {
    let form = "main form[method=post]";
    let names = values(page, &format!("{form} input[type=hidden]"), "name");
    let hidden = values(page, &format!("{form} input[type=hidden]"), "value");
    let mut pairs: Vec<_> = names.into_iter().zip(hidden).collect();
    let json = all(page, "#f-json").remove(0);
    pairs.push(("json".to_owned(), json));
    pairs
}

fn json_of(page: &Html) -> Value {
    serde_json::from_str(&all(page, "#f-json").remove(0)).unwrap()
}

/// The name of the field with this label.
fn field(page: &Html, label: &str) -> String {
    let labels = all(page, ".halves label");
    let at = labels.iter().position(|one| one.starts_with(label)).unwrap();
    let id = values(page, ".halves label", "for").remove(at);
    values(page, &format!("[id='{id}']"), "name").remove(0)
}

async fn runs(site: &Site) -> Vec<Value> {
    site.api.get("/api/workspaces/default/runs").await["items"].as_array().unwrap().clone()
}

/// R2, R8: a tool is chosen, its form fills in the JSON, and the call is made in a new run that
/// ends and is in the audit.
#[tokio::test]
async fn r2_a_tool_is_called_from_its_form() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = browser.see(PAGE).await;
    assert!(values(&page, "#f-server option", "value").contains(&"one".to_owned()));
    let page = browser.see(ECHO).await;
    assert!(all(&page, "pre").iter().any(|one| one.contains("\"message\"")), "the schema is there");
    let message = field(&page, "message");
    let filled = send(&browser, &page, &[(&message, "hi"), ("act", "to_json")]).await;
    assert_eq!(filled.status, StatusCode::OK, "{}", filled.text());
    let filled = Html::parse_document(filled.text());
    assert_eq!(json_of(&filled), json!({ "message": "hi" }));
    assert!(all(&filled, "#answer").is_empty(), "nothing was called");
    let command = "narthex call one echo '{\"message\":\"hi\"}'";
    assert!(all(&filled, ".halves code").contains(&command.to_owned()), "{command}");

    let before = runs(&site).await.len();
    let called = send(&browser, &filled, &[("act", "call")]).await;
    assert_eq!(called.status, StatusCode::OK, "{}", called.text());
    let called = Html::parse_document(called.text());
    let answer = all(&called, "#answer").remove(0);
    assert!(answer.contains("The tool has answered") && answer.contains("hi"), "{answer}");
    assert!(answer.contains("allowed; no grant was needed"), "{answer}");
    assert!(answer.contains("\"method\": \"tools/call\""), "{answer}");
    let made = runs(&site).await;
    assert_eq!(made.len(), before + 1);
    assert_eq!(made.last().unwrap()["status"], "ended");
    let audit = "/api/workspaces/default/audit?kind=session.mcp.tool_called";
    let audit = site.api.get(audit).await;
    assert_eq!(audit["items"][0]["run"], made.last().unwrap()["run_id"]);
}

/// R8: a fault is at its field, the texts stay, and nothing is called.
#[tokio::test]
async fn r8_faults_are_shown_and_nothing_is_called() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = browser.see(ECHO).await;
    let bad = send(&browser, &page, &[("json", "{\"message\": "), ("act", "call")]).await;
    assert_eq!(bad.status, StatusCode::UNPROCESSABLE_ENTITY);
    let bad = Html::parse_document(bad.text());
    assert_eq!(all(&bad, "#f-json"), ["{\"message\":"]);
    assert!(all(&bad, ".fault").remove(0).contains("this is not JSON"));
    let message = field(&page, "message");
    let both = [(&*message, "a"), ("json", "{\"message\":\"b\"}"), ("act", "call")];
    let both = send(&browser, &page, &both).await;
    assert_eq!(both.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(both.text().contains("were both changed"));
    assert!(runs(&site).await.iter().all(|run| run["status"] != "ended"));
}

/// D16, D13: a refused call shows its kind in words and the check that refused it, as for a client.
#[tokio::test]
async fn d16_a_refused_call_shows_the_decision() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let run = Run::begin(&site.api).await;
    let browser = site.browser("ada").await;
    let page = browser.see(PAGE).await;
    let callers = values(&page, "#f-as option", "value");
    let like = callers.iter().find(|one| *one != "me").unwrap();
    let page = browser.see(&format!("{PAGE}?as={like}&server=demo&tool=echo")).await;
    let sent = [("json", "{\"message\":\"x\"}"), ("act", "call")];
    let called = send(&browser, &page, &sent).await;
    let called = Html::parse_document(called.text());
    let answer = all(&called, "#answer").remove(0);
    assert!(answer.contains("permission_required"), "{answer}");
    assert!(answer.contains("A human must allow this tool first"), "{answer}");
    assert!(answer.contains("refused by the check `grants`"), "{answer}");
    // The active run is another one, and stays.
    assert_eq!(run.echo().await["isError"], true);
}

/// D5: a tool that is not there gets the answer that a client gets.
#[tokio::test]
async fn d5_an_absent_tool_is_answered_as_for_clients() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = browser.see(&format!("{PAGE}?server=one&tool=absent")).await;
    assert!(all(&page, ".note").iter().any(|note| note.contains("sees no tool absent")));
    let called = send(&browser, &page, &[("act", "call")]).await;
    let called = Html::parse_document(called.text());
    assert!(all(&called, "#answer").remove(0).contains("tool_not_found"));
}
