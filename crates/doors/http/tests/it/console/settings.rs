//! Tests of the settings of a workspace: members, limits, channels, webhooks, tokens, kept data.

use http::StatusCode;
use serde_json::{Value, json};

use super::{FORM, Html, all, site, values};
use crate::{
    browser::{Browser, Site},
    world::Answer,
};

const PATH: &str = "/w/default/settings";
const API: &str = "/api/workspaces/default";

/// Sends a form with these fields and the token of a page.
async fn send(browser: &Browser<'_>, rest: &str, fields: &[(&str, &str)]) -> Answer {
    let page = browser.see("/w/default/").await;
    let csrf = values(&page, "body", "data-csrf").remove(0);
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("csrf", &csrf).extend_pairs(fields);
    browser.post(&format!("{PATH}{rest}"), FORM, form.finish()).send().await
}

/// The form was done, and leads to a page.
fn leads(answer: &Answer) -> String {
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text());
    answer.headers["location"].to_str().unwrap().to_owned()
}

/// The form was refused, with its page.
fn refused(answer: &Answer) -> Html {
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", answer.text());
    Html::parse_document(answer.text())
}

async fn bob(site: &Site, role: &str) -> String {
    let made = site.api.send("POST", "/api/principals", r#"{"name":"bob"}"#).await.succeeded();
    let id = made["id"].as_str().unwrap().to_owned();
    let body = json!({ "roles": [role] }).to_string();
    site.api.send("PUT", &format!("{API}/members/{id}"), body).await.succeeded();
    id
}

async fn secret(site: &Site, name: &str, value: &str) {
    let body = json!({ "value": value }).to_string();
    site.api.send("PUT", &format!("{API}/secrets/{name}"), body).await.succeeded();
}

fn item<'v>(list: &'v Value, key: &str, value: &str) -> &'v Value {
    list["items"].as_array().unwrap().iter().find(|one| one[key] == value).unwrap()
}

/// The tabs that a human sees are those whose API they may read.
#[tokio::test]
async fn s18_tabs_are_those_of_the_api() {
    let site = site().await;
    bob(&site, "runner").await;
    let ada = site.browser("ada").await;
    let page = ada.see(PATH).await;
    let tabs = [
        "General",
        "Members",
        "Limits",
        "Channels",
        "Webhooks",
        "Service tokens",
        "Kept data",
        "Sign-in",
    ];
    assert_eq!(all(&page, "nav.tabs a"), tabs);
    assert_eq!(all(&page, "nav.tabs a[aria-current]"), ["General"]);
    for path in values(&page, "nav.tabs a", "href") {
        let tab = ada.see(&path).await;
        assert_eq!(values(&tab, "nav.tabs a[aria-current]", "href"), [path]);
        let same = all(&tab, ".same code");
        assert!(same[0].starts_with("narthex ") && same[1].contains(" /api/"), "{same:?}");
    }
    let runner = site.browser("bob").await;
    let page = runner.see(PATH).await;
    assert_eq!(all(&page, "nav.tabs a"), ["General", "Limits", "Kept data", "Sign-in"]);
    for (rest, status) in [
        ("/members", StatusCode::FORBIDDEN),
        ("/tokens", StatusCode::FORBIDDEN),
        ("/webhooks", StatusCode::FORBIDDEN),
        ("/channels", StatusCode::FORBIDDEN),
        ("/limits", StatusCode::OK),
    ] {
        assert_eq!(runner.look(&format!("{PATH}{rest}")).await.status, status, "{rest}");
    }
    let limits = runner.see(&format!("{PATH}/limits")).await;
    assert_eq!(values(&limits, "#limits button", "aria-disabled"), ["true"]);
    assert_eq!(values(&limits, "#limits input[readonly]", "name").len(), 11);
    let changed = send(&runner, "/limits", &[("calls_per_day", "5")]).await;
    assert_eq!(changed.status, StatusCode::FORBIDDEN);
    let kept = runner.see(&format!("{PATH}/kept")).await;
    assert!(values(&kept, "#audit form", "action").is_empty(), "for admins and auditors");
}

/// The general settings change what differs, and keep what was refused in the form.
#[tokio::test]
async fn general_settings_are_changed() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let fields = [
        ("name", "The <team>"),
        ("oauth_on_orchestrators", "on_attended"),
        ("models", "opus-4-5 = opus, big\r\nhaiku"),
    ];
    assert_eq!(leads(&send(&browser, "", &fields).await), format!("{PATH}?done=saved"));
    let now = site.api.get(API).await;
    assert_eq!((&now["name"], &now["runtime_requests"]), (&json!("The <team>"), &json!(false)));
    assert_eq!(now["models"][0]["short_names"], json!(["opus", "big"]));
    assert_eq!(leads(&send(&browser, "", &fields).await), format!("{PATH}?done=same"));
    let twice = [("name", "Other"), ("oauth_on_orchestrators", "off"), ("models", "a\na")];
    let page = refused(&send(&browser, "", &twice).await);
    assert!(all(&page, ".fault").remove(0).contains("twice"));
    assert_eq!(values(&page, "input[name=name]", "value"), ["Other"]);
    assert_eq!(site.api.get(API).await["name"], "The <team>");
    let foreign = send(&browser, "", &[("name", "x"), ("other", "1")]).await;
    assert_eq!(foreign.status, StatusCode::BAD_REQUEST);
}

/// O100: limits stand beside the use of today; a refused number keeps its text and changes nothing.
#[tokio::test]
async fn o100_limits_are_set_beside_the_use_of_today() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let fields = [("calls_per_minute", "60"), ("burst", "5"), ("calls_per_day", "5000")];
    assert_eq!(
        leads(&send(&browser, "/limits", &fields).await),
        format!("{PATH}/limits?done=saved")
    );
    let limits = json!({ "calls_per_minute": 60, "burst": 5, "calls_per_day": 5000 });
    assert_eq!(site.api.get(&format!("{API}/limits")).await, limits);
    let page = browser.see(&format!("{PATH}/limits?done=saved")).await;
    assert_eq!(all(&page, "#told"), ["The limits are saved."]);
    let today = all(&page, "#today").remove(0);
    assert!(today.contains("0 of 5000") && today.contains("60 a minute, 5 at once"), "{today}");
    for (fields, name, fault) in [
        (&[("calls_per_day", "many")][..], "calls_per_day", "whole number"),
        (&[("burst", "5")][..], "burst", "needs a rate"),
        (&[("child_depth", "33")][..], "child_depth", "1 to 32"),
    ] {
        let page = refused(&send(&browser, "/limits", fields).await);
        assert!(all(&page, ".fault").remove(0).contains(fault), "{name}");
        let kept = values(&page, &format!("input[name={name}]"), "value");
        assert_eq!(kept, [fields[0].1]);
    }
    assert_eq!(site.api.get(&format!("{API}/limits")).await, limits);
    assert_eq!(leads(&send(&browser, "/limits", &[]).await), format!("{PATH}/limits?done=saved"));
    assert_eq!(site.api.get(&format!("{API}/limits")).await, json!({}));
}

/// A member is added with an account, gets other roles, and is removed after a question.
#[tokio::test]
async fn members_are_added_changed_and_removed() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let unknown = [("name", "grace"), ("role_author", "on")];
    let page = refused(&send(&browser, "/members/new", &unknown).await);
    assert!(all(&page, ".note.broken").remove(0).contains("grace"), "{:?}", all(&page, "main"));
    let page = refused(&send(&browser, "/members/new", &[("name", ""), ("create", "on")]).await);
    assert_eq!(all(&page, ".fault").len(), 2, "name and roles");
    let made = [("name", "grace"), ("role_author", "on"), ("create", "on")];
    let place = leads(&send(&browser, "/members/new", &made).await);
    let page = browser.see(&place).await;
    assert!(all(&page, "#told")[0].starts_with("The account of grace is created"));
    assert_eq!(values(&page, "#roles input[checked]", "name"), ["role_author"]);
    assert_eq!(values(&page, "#invite form", "action"), ["/signin/links"]);
    assert_eq!(values(&page, "#invite input[name=name]", "value"), ["grace"]);
    let members = site.api.get(&format!("{API}/members")).await;
    let id = item(&members, "name", "grace")["id"].as_str().unwrap().to_owned();

    let roles = format!("/members/{id}/roles");
    let none = refused(&send(&browser, &roles, &[]).await);
    assert!(all(&none, ".fault").remove(0).contains("no role is checked"));
    leads(&send(&browser, &roles, &[("role_admin", "on"), ("role_auditor", "on")]).await);
    let members = site.api.get(&format!("{API}/members")).await;
    assert_eq!(item(&members, "name", "grace")["roles"], json!(["admin", "auditor"]));

    let remove = format!("/members/{id}/remove");
    assert_eq!(leads(&send(&browser, &remove, &[]).await), format!("{PATH}{remove}"));
    let page = browser.see(&format!("{PATH}{remove}")).await;
    let effects = all(&page, "#effects").remove(0);
    assert!(effects.contains("last admin") && effects.contains("Grants"), "{effects}");
    let members = site.api.get(&format!("{API}/members")).await;
    assert_eq!(members["items"].as_array().unwrap().len(), 1, "a link and a press change nothing");
    let removed = leads(&send(&browser, &remove, &[("sure", "yes")]).await);
    assert_eq!(removed, format!("{PATH}/members?done=removed&name=grace"));
    assert_eq!(browser.look(&format!("{PATH}{roles}")).await.status, StatusCode::NOT_FOUND);
}

/// D5: an admin who is no operator learns of no account of the installation, and creates none.
#[tokio::test]
async fn d5_an_admin_brings_no_human_in() {
    let site = site().await;
    bob(&site, "admin").await;
    site.api.send("POST", "/api/principals", r#"{"name":"grace"}"#).await.succeeded();
    let browser = site.browser("bob").await;
    let text = |name: &str, answer: &Answer| {
        let page = refused(answer);
        all(&page, ".note.broken").remove(0).replace(name, "NAME")
    };
    let known = send(&browser, "/members/new", &[("name", "grace"), ("role_author", "on")]).await;
    let unknown = send(&browser, "/members/new", &[("name", "henry"), ("role_author", "on")]).await;
    assert_eq!(text("grace", &known), text("henry", &unknown));
    let create = [("name", "henry"), ("role_author", "on"), ("create", "on")];
    let answer = send(&browser, "/members/new", &create).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    let page = browser.see(&format!("{PATH}/members/new")).await;
    assert!(values(&page, "input[name=create]", "name").is_empty());
}

/// S27: the text of a token is in one answer, and in no other page; then the token is revoked.
#[tokio::test]
async fn s27_a_token_is_shown_once_and_revoked() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = refused(&send(&browser, "/tokens/new", &[("service", "ci")]).await);
    assert!(all(&page, "fieldset .fault").remove(0).contains("has no roles yet"));
    let wrong = [("service", "CI here"), ("days", "soon"), ("role_runner", "on")];
    assert_eq!(all(&refused(&send(&browser, "/tokens/new", &wrong).await), ".fault").len(), 2);
    let fields = [("service", "ci"), ("label", "<b>build"), ("days", "7"), ("role_runner", "on")];
    let made = send(&browser, "/tokens/new", &fields).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    assert_eq!(made.headers["cache-control"], "no-store");
    let page = Html::parse_document(made.text());
    let token = all(&page, "#token .code").remove(0);
    assert!(token.starts_with("nxs_"), "{token}");
    assert_eq!(made.text().matches(token.as_str()).count(), 1);
    assert!(all(&page, "#rights").remove(0).contains("runner: creates"));

    let request = site.api.world.request(http::Method::GET, "/api/me");
    let me = request.header("authorization", &format!("Bearer {token}")).send().await;
    assert_eq!(me.succeeded()["name"], "default/ci");
    let tokens = site.api.get(&format!("{API}/service-tokens")).await;
    let id = item(&tokens, "label", "<b>build")["id"].as_str().unwrap().to_owned();
    let revoke = format!("/tokens/{id}/revoke");
    for path in ["/tokens", "/members", &revoke] {
        let answer = browser.look(&format!("{PATH}{path}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        assert!(!answer.text().contains(&token) && !answer.text().contains("<b>build"), "{path}");
    }
    let page = browser.see(&format!("{PATH}/tokens")).await;
    assert_eq!(all(&page, "#tokens .badge"), ["valid"]);
    assert_eq!(leads(&send(&browser, &revoke, &[]).await), format!("{PATH}{revoke}"));
    leads(&send(&browser, &revoke, &[("sure", "yes")]).await);
    let tokens = site.api.get(&format!("{API}/service-tokens")).await;
    assert_eq!(item(&tokens, "id", &id)["is_live"], false);
    assert_eq!(all(&browser.see(&format!("{PATH}/tokens")).await, "#tokens .badge"), ["revoked"]);
}

/// S27: a channel names secrets; a value in the place of a name is refused and not repeated.
#[tokio::test]
async fn s27_channels_name_secrets() {
    let site = site().await;
    secret(&site, "TEAM_URL", "https://hooks.example.com/canary-4711").await;
    let browser = site.browser("ada").await;
    let page = browser.see(&format!("{PATH}/channels/new")).await;
    assert!(all(&page, "select[name=url] option").contains(&"TEAM_URL".to_owned()));
    let fields = [("name", "team"), ("provider", "slack"), ("url", "TEAM_URL")];
    leads(&send(&browser, "/channels/new", &fields).await);
    assert_eq!(site.api.get(&format!("{API}/channels/team")).await["url"], "${TEAM_URL}");
    let page = refused(&send(&browser, "/channels/new", &fields).await);
    assert!(all(&page, ".fault").remove(0).contains("there is a channel of this name"));
    let value = [("name", "ops"), ("provider", "slack"), ("url", "https://canary.example")];
    let answer = send(&browser, "/channels/new", &value).await;
    assert_eq!(all(&refused(&answer), ".fault").len(), 1);
    assert!(!answer.text().contains("canary"), "{}", answer.text());
    let without = send(&browser, "/channels/team/edit", &[("provider", "slack")]).await;
    assert!(all(&refused(&without), ".fault").remove(0).contains("it is missing"));
    leads(&send(&browser, "/channels/team/edit", &[("provider", "log")]).await);
    assert_eq!(site.api.get(&format!("{API}/channels/team")).await["provider"], "log");

    let page = browser.see(&format!("{PATH}/channels")).await;
    assert_eq!(all(&page, "#channels .title"), ["team"]);
    let remove = "/channels/team/remove";
    assert_eq!(leads(&send(&browser, remove, &[]).await), format!("{PATH}{remove}"));
    let page = browser.see(&format!("{PATH}{remove}")).await;
    assert!(all(&page, "#effects").remove(0).contains("channel_not_found"));
    leads(&send(&browser, remove, &[("sure", "yes")]).await);
    let page = browser.see(&format!("{PATH}/channels")).await;
    assert!(all(&page, ".empty").remove(0).contains("narthex channels set"));
}

/// Webhooks get chosen events, and their page says that nothing was delivered yet.
#[tokio::test]
async fn webhooks_are_set_and_removed() {
    let site = site().await;
    secret(&site, "OPS_URL", "https://hooks.example.com/canary-4711").await;
    secret(&site, "OPS_KEY", "canary-4712").await;
    let browser = site.browser("ada").await;
    let new = "/webhooks/new";
    let page = browser.see(&format!("{PATH}{new}")).await;
    assert_eq!(values(&page, "fieldset input[checked]", "name").len(), 6, "all events");
    let fields = [("name", "ops"), ("url", "OPS_URL"), ("signing_key", "OPS_KEY")];
    let page = refused(&send(&browser, new, &fields).await);
    assert_eq!(all(&page, "fieldset .fault").len(), 1, "no event is chosen");
    let event = ("event_session.ended", "on");
    let [name, url, key] = fields;
    leads(&send(&browser, new, &[name, url, key, event]).await);
    let stored = site.api.get(&format!("{API}/webhooks/ops")).await;
    assert_eq!(stored["events"], json!(["session.ended"]));
    let page = browser.see(&format!("{PATH}/webhooks")).await;
    assert!(all(&page, "#webhooks .badge").is_empty(), "nothing was tried, so nothing is stated");
    let deliveries = format!("{PATH}/webhooks/ops/deliveries");
    let answer = browser.look(&deliveries).await;
    assert!(!answer.text().contains("canary"));
    let page = Html::parse_document(answer.text());
    assert!(all(&page, "#deliveries").remove(0).contains("Nothing was delivered yet"));
    leads(
        &send(&browser, "/webhooks/ops/edit", &[url, key, ("event_permission.denied", "on")]).await,
    );
    let stored = site.api.get(&format!("{API}/webhooks/ops")).await;
    assert_eq!(stored["events"], json!(["permission.denied"]));
    let again = leads(&send(&browser, "/webhooks/ops/again", &[]).await);
    assert_eq!(again, format!("{deliveries}?done=again&name=ops"));
    assert_eq!(
        browser.look(&format!("{deliveries}?after=x")).await.status,
        StatusCode::BAD_REQUEST
    );
    let remove = "/webhooks/ops/remove";
    assert_eq!(leads(&send(&browser, remove, &[]).await), format!("{PATH}{remove}"));
    leads(&send(&browser, remove, &[("sure", "yes")]).await);
    assert_eq!(browser.look(&deliveries).await.status, StatusCode::NOT_FOUND);
}

/// Less is kept only after a question; more is kept at once.
#[tokio::test]
async fn less_is_kept_only_after_a_question() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let days = async || site.api.get(API).await["events_kept_days"].clone();
    let asked = send(&browser, "/kept/events", &[("events_kept_days", "7")]).await;
    assert_eq!(asked.status, StatusCode::OK);
    let page = Html::parse_document(asked.text());
    assert_eq!(values(&page, "input[name=events_kept_days]", "value"), ["7"]);
    assert_eq!(values(&page, "input[name=sure]", "value"), ["yes"]);
    assert_eq!(days().await, 30);
    leads(&send(&browser, "/kept/events", &[("events_kept_days", "7"), ("sure", "yes")]).await);
    assert_eq!(days().await, 7);
    leads(&send(&browser, "/kept/events", &[("events_kept_days", "0")]).await);
    assert_eq!(days().await, 0);
    let page = refused(&send(&browser, "/kept/events", &[("events_kept_days", "-1")]).await);
    assert_eq!(all(&page, ".fault").len(), 1);

    leads(&send(&browser, "/kept/contents", &[("audits_contents", "on")]).await);
    assert_eq!(site.api.get(API).await["audits_contents"], true);
    leads(&send(&browser, "/kept/contents", &[]).await);
    assert_eq!(site.api.get(API).await["audits_contents"], false);

    let audit = async || site.api.get(&format!("{API}/audit/settings")).await;
    let page = refused(&send(&browser, "/kept/audit", &[("kept_days", "x")]).await);
    assert_eq!(all(&page, ".fault").len(), 2);
    let fields = [("kept_days", "400"), ("kept_events", "0")];
    let asked = send(&browser, "/kept/audit", &fields).await;
    assert_eq!(asked.status, StatusCode::OK);
    assert_eq!(audit().await["kept_days"], 0);
    leads(&send(&browser, "/kept/audit", &[fields[0], fields[1], ("sure", "yes")]).await);
    assert_eq!(audit().await["kept_days"], 400);
}

/// The search finds tabs, members and channels that the human may open.
#[tokio::test]
async fn the_search_finds_settings() {
    let site = site().await;
    let id = bob(&site, "runner").await;
    let ada = site.browser("ada").await;
    let found = ada.see("/w/default/search?q=BOB").await;
    assert!(values(&found, "main a", "href").contains(&format!("{PATH}/members/{id}/roles")));
    let found = ada.see("/w/default/search?q=webh").await;
    assert!(values(&found, "main a", "href").contains(&format!("{PATH}/webhooks")));
    let runner = site.browser("bob").await;
    let found = runner.see("/w/default/search?q=bob").await;
    assert!(values(&found, "main a", "href").is_empty());
}
