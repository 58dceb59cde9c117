//! Tests of the page of rules: faults with lines, tests of calls, previews and saving.

use http::StatusCode;
use scraper::Html;
use serde_json::json;

use super::{FORM, all, site, values};
use crate::{
    api::built_in::{Run, agent_with_a_gated_tool},
    browser::{Browser, Site},
    world::Answer,
};

const PAGE: &str = "/w/default/policy";
const FORBID: &str = "@id(\"no_echo\") forbid(principal, action, resource == Tool::\"one/echo\");";

async fn send(browser: &Browser<'_>, verb: &str, fields: &[(&str, &str)]) -> Answer {
    let page = browser.see("/w/default/").await;
    let csrf = values(&page, "body", "data-csrf").remove(0);
    let mut pairs = vec![format!("csrf={csrf}")];
    for (name, value) in fields {
        let value: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
        pairs.push(format!("{name}={value}"));
    }
    browser.post(&format!("{PAGE}/{verb}"), FORM, pairs.join("&")).send().await
}

fn tag(page: &Html) -> String {
    values(page, "main input[name=tag]", "value").remove(0)
}

/// D13: rules are stored as by the API, and never over a version that the human has not read.
#[tokio::test]
async fn d13_rules_are_stored_with_a_check_of_their_version() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let first = tag(&browser.see(PAGE).await);
    let text = "forbid(principal, action, resource in Server::\"one\");";
    let saved = send(&browser, "save", &[("rules", text), ("tag", &first)]).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text());
    assert_eq!(site.api.get("/api/workspaces/default/policy").await["rules"], text);
    let page = browser.see(&format!("{PAGE}?done=save")).await;
    assert_eq!(all(&page, "#f-rules"), [text]);
    let late = send(&browser, "save", &[("rules", "// mine"), ("tag", &first)]).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    let late = Html::parse_document(late.text());
    assert_eq!(all(&late, "#f-rules"), ["// mine"], "the text is kept");
    assert_eq!(site.api.get("/api/workspaces/default/policy").await["rules"], text);
}

/// D13: a fault has its line, and the text stays.
#[tokio::test]
async fn d13_faults_have_their_lines() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let bad = "// fine\n\nforbid(principal, action, resource";
    for verb in ["save", "check", "preview"] {
        let answer =
            send(&browser, verb, &[("rules", bad), ("server", "one"), ("tool", "echo")]).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{verb}: {}", answer.text());
        let page = Html::parse_document(answer.text());
        assert!(all(&page, ".note.broken").remove(0).contains("line 3"), "{verb}");
        assert_eq!(all(&page, "#f-rules"), [bad], "{verb}");
    }
    assert_eq!(site.api.get("/api/workspaces/default/policy").await["revision"], 0);
}

/// D13: the tester tells the decision, and the rule with its line, by a text that is not stored.
#[tokio::test]
async fn d13_a_call_is_tested_against_the_text() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let text = format!("// one\n{FORBID}");
    let fields = [("rules", &*text), ("server", "one"), ("tool", "echo")];
    let tested = send(&browser, "check", &fields).await;
    assert_eq!(tested.status, StatusCode::OK, "{}", tested.text());
    let decision = all(&Html::parse_document(tested.text()), "#decision").remove(0);
    assert!(decision.contains("Forbidden by the rule no_echo, line 2"), "{decision}");
    let fields = [("rules", &*text), ("server", "one"), ("tool", "other")];
    let tested = send(&browser, "check", &fields).await;
    let decision = all(&Html::parse_document(tested.text()), "#decision").remove(0);
    assert!(decision.contains("Allowed by the rules."), "{decision}");
}

/// The preview tells what active runs would lose, before anything is stored.
#[tokio::test]
async fn d13_a_preview_tells_what_active_runs_lose() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let _run = Run::begin(&site.api).await;
    let browser = site.browser("ada").await;
    let text = "forbid(principal, action, resource in Server::\"demo\");";
    let shown = send(&browser, "preview", &[("rules", text)]).await;
    assert_eq!(shown.status, StatusCode::OK, "{}", shown.text());
    let page = Html::parse_document(shown.text());
    let rows = all(&page, "#preview tbody tr");
    assert!(rows.iter().any(|row| row.contains("writer") && row.contains("echo")), "{rows:?}");
    assert!(rows.iter().all(|row| row.contains("forbidden")), "{rows:?}");
    let none = send(&browser, "preview", &[("rules", "")]).await;
    assert!(none.text().contains("No decision changes"), "{}", none.text());
}

/// S18: who may read rules and not write them sees no way to save, and cannot.
#[tokio::test]
async fn s18_only_admins_store_rules() {
    let site = site().await;
    let bob = site.api.send("POST", "/api/principals", r#"{"name":"bob"}"#).await.succeeded();
    let place = format!("/api/workspaces/default/members/{}", bob["id"].as_str().unwrap());
    let roles = json!({ "roles": ["auditor"] }).to_string();
    site.api.send("PUT", &place, roles).await.succeeded();
    let browser = site.browser("bob").await;
    let page = browser.see(PAGE).await;
    assert!(
        values(&page, "button[formaction]", "formaction").iter().all(|to| !to.contains("save"))
    );
    let refused = send(&browser, "save", &[("rules", "// x")]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
}
