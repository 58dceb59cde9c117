//! Tests of the secrets of a workspace: the three states, the forms, and that no value comes back.

use http::{Method, StatusCode};
use serde_json::json;

use super::{FORM, Html, all, site, values};
use crate::{
    browser::{Browser, Site},
    world::Answer,
};

const LIST: &str = "/w/default/secrets";
const CANARY: &str = "canary-4711-of-a-value";

async fn stored(site: &Site, name: &str) {
    let path = format!("/api/workspaces/default/secrets/{name}");
    let body = json!({ "value": CANARY }).to_string();
    site.api.send("PUT", &path, body).await.succeeded();
}

/// Sends a form of a page with these fields and its token.
async fn send(browser: &Browser<'_>, path: &str, fields: &[(&str, &str)]) -> Answer {
    let page = browser.see(LIST).await;
    let csrf = values(&page, "body", "data-csrf").remove(0);
    let mut form = format!("csrf={csrf}");
    for (name, value) in fields {
        form.push_str(&format!("&{name}={value}"));
    }
    browser.post(path, FORM, form).send().await
}

async fn is_set(site: &Site, name: &str) -> bool {
    let list = site.api.get("/api/workspaces/default/secrets").await;
    let items = list["items"].as_array().unwrap();
    items.iter().any(|one| one["name"] == name && one["is_set"] == true)
}

/// An entry of a local file that names a secret, which is not set.
async fn named_by_a_server(site: &Site, name: &str) {
    let entry = json!({
        "transport": "http", "url": "http://127.0.0.1:9", "disabled": true,
        "headers": { "X-Key": format!("${{secret:{name}}}") },
    });
    site.api.send("PUT", "/api/servers/two", entry.to_string()).await.succeeded();
}

/// X-M51: a secret that something names is not set, with an empty input; then it is set, with its
/// date and setter; then it is replaced in a fresh input, which Cancel closes.
#[tokio::test]
async fn x_m51_a_row_has_three_states() {
    let site = site().await;
    named_by_a_server(&site, "DOCS_KEY").await;
    let browser = site.browser("ada").await;
    let page = browser.see(LIST).await;
    assert_eq!(all(&page, "#secrets .title"), ["DOCS_KEY"]);
    assert_eq!(all(&page, "#secrets .badge"), ["not set"]);
    assert_eq!(values(&page, "#secrets input:not([type=hidden])", "name"), ["value"]);
    assert_eq!(all(&page, "#secrets button"), ["Save"]);
    assert_eq!(values(&page, "#secrets .facts a", "href"), ["/w/default/servers?q=two"]);

    let set = send(&browser, &format!("{LIST}/DOCS_KEY/set"), &[("value", CANARY)]).await;
    assert_eq!(set.status, StatusCode::SEE_OTHER, "{}", set.text());
    let back = set.headers["location"].to_str().unwrap().to_owned();
    assert_eq!(back, format!("{LIST}?done=set&name=DOCS_KEY#secret-DOCS_KEY"));
    assert!(is_set(&site, "DOCS_KEY").await);
    let page = browser.see(back.split('#').next().unwrap()).await;
    assert!(all(&page, "#told").remove(0).starts_with("DOCS_KEY is set"));
    assert_eq!(all(&page, "#secrets .badge"), ["set"]);
    let facts = all(&page, "#secrets .facts").join(" ");
    assert!(facts.contains("by ada") && facts.contains("version 1"), "{facts}");
    assert!(values(&page, "#secrets input", "name").is_empty());

    let replace = values(&page, "#secrets .actions a", "href").remove(0);
    assert!(replace.starts_with(&format!("{LIST}?replace=DOCS_KEY#f-")), "{replace}");
    let page = browser.see(replace.split('#').next().unwrap()).await;
    assert_eq!(all(&page, "#secrets .badge"), ["replacing"]);
    assert_eq!(all(&page, "#secrets label"), ["New value of DOCS_KEY, saved on submit"]);
    let field = values(&page, "#secrets input[name=value]", "id").remove(0);
    assert!(replace.ends_with(&format!("#{field}")), "{replace}");
    assert_eq!(values(&page, "#secrets form a", "href"), [format!("{LIST}#secret-DOCS_KEY")]);
    send(&browser, &format!("{LIST}/DOCS_KEY/set"), &[("value", "another+value")]).await;
    let page = browser.see(LIST).await;
    assert!(all(&page, "#secrets .facts").join(" ").contains("version 2"));
}

/// X-M52, S27: no page and no answer has a value, whichever way it went.
#[tokio::test]
async fn x_m52_no_page_has_a_value() {
    let site = site().await;
    stored(&site, "LINEAR_API_KEY").await;
    let browser = site.browser("ada").await;
    let mut answers = Vec::new();
    for path in ["", "?replace=LINEAR_API_KEY", "?q=LINEAR", "/new", "/LINEAR_API_KEY/clear"] {
        answers.push(browser.look(&format!("{LIST}{path}")).await);
    }
    let set = format!("{LIST}/LINEAR_API_KEY/set");
    let long = format!("{CANARY}{}", "x".repeat(70_000));
    let zero = format!("{CANARY}%00");
    for value in [CANARY, &long, &zero] {
        answers.push(send(&browser, &set, &[("value", value)]).await);
        let new = [("name", CANARY), ("value", value)];
        answers.push(send(&browser, &format!("{LIST}/new"), &new).await);
        let unknown = [("value", value), ("more", value)];
        answers.push(send(&browser, &set, &unknown).await);
    }
    answers.push(browser.look("/w/default/search?q=linear").await);
    assert!(answers.len() > 14);
    for answer in answers {
        assert!(!answer.text().contains(CANARY), "{}", answer.text());
        let headers = format!("{:?}", answer.headers);
        assert!(!headers.contains(CANARY), "{headers}");
        let page = Html::parse_document(answer.text());
        assert!(values(&page, "input[type=password]", "value").is_empty());
    }
}

/// A value that is refused is a fault at its field, and stores nothing.
#[tokio::test]
async fn a_refused_value_is_a_fault_at_its_field() {
    let site = site().await;
    stored(&site, "LINEAR_API_KEY").await;
    let browser = site.browser("ada").await;
    let set = format!("{LIST}/LINEAR_API_KEY/set");
    for (value, begin) in [("", "Type a value"), ("a%00b", "the value of a secret cannot hold")] {
        let answer = send(&browser, &set, &[("value", value)]).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{value}");
        let page = Html::parse_document(answer.text());
        assert_eq!(all(&page, "#secrets .badge"), ["replacing"]);
        assert!(all(&page, "#secrets .fault").remove(0).starts_with(begin), "{value}");
        assert_eq!(values(&page, "#secrets input[name=value]", "aria-invalid"), ["true"]);
    }
    let page = browser.see(LIST).await;
    assert!(all(&page, "#secrets .facts").join(" ").contains("version 1"));
    let nothing = send(&browser, &format!("{LIST}/no-name/set"), &[("value", "a")]).await;
    assert_eq!(nothing.status, StatusCode::NOT_FOUND);
}

/// A new name is added once; a name with a value is not replaced from here, and a text that is no
/// name is not repeated.
#[tokio::test]
async fn a_new_name_is_added_once() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let new = format!("{LIST}/new");
    let made = send(&browser, &new, &[("name", "TRACKER_KEY"), ("value", CANARY)]).await;
    assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.text());
    assert!(is_set(&site, "TRACKER_KEY").await);
    for (name, value, faults) in [
        ("TRACKER_KEY", "other-value", 1),
        ("my-own-text", CANARY, 1),
        ("OTHER_KEY", "", 1),
        ("", "", 2),
    ] {
        let answer = send(&browser, &new, &[("name", name), ("value", value)]).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{name}");
        let page = Html::parse_document(answer.text());
        assert_eq!(all(&page, ".fault").len(), faults, "{name}");
        let kept = values(&page, "input[name=name]", "value").remove(0);
        assert_eq!(kept, if name.contains("KEY") { name } else { "" });
    }
    let page = browser.see(LIST).await;
    assert!(all(&page, "#secrets .facts").join(" ").contains("version 1"));
    assert!(!is_set(&site, "OTHER_KEY").await);
}

/// D10: before a secret is cleared, its page says what names it; then it is cleared.
#[tokio::test]
async fn d10_clear_shows_first_what_breaks() {
    let site = site().await;
    stored(&site, "DOCS_KEY").await;
    stored(&site, "SPARE_KEY").await;
    named_by_a_server(&site, "DOCS_KEY").await;
    let browser = site.browser("ada").await;
    let clear = format!("{LIST}/DOCS_KEY/clear");
    let page = browser.see(&clear).await;
    assert!(all(&page, "#places").remove(0).contains("servers.two"), "{:?}", all(&page, "main"));
    assert_eq!(values(&page, "main form", "action"), std::slice::from_ref(&clear));
    let page = browser.see(&format!("{LIST}/SPARE_KEY/clear")).await;
    assert!(all(&page, "main").remove(0).contains("Nothing refers to SPARE_KEY"));
    assert!(is_set(&site, "DOCS_KEY").await, "a link changes nothing");

    let cleared = browser.press(&clear).await;
    assert_eq!(cleared.status, StatusCode::SEE_OTHER, "{}", cleared.text());
    assert!(!is_set(&site, "DOCS_KEY").await);
    let page = browser.see(LIST).await;
    assert_eq!(all(&page, "#secrets .title"), ["DOCS_KEY", "SPARE_KEY"]);
    assert_eq!(all(&page, "#secrets .badge"), ["not set", "set"]);
    let page = browser.see(&clear).await;
    assert!(values(&page, "main form", "action").is_empty(), "nothing to clear");
    browser.press(&format!("{LIST}/SPARE_KEY/clear")).await;
    assert_eq!(all(&browser.see(LIST).await, "#secrets .title"), ["DOCS_KEY"]);
}

/// R1, R5: filters are in the address, and lists have pages.
#[tokio::test]
async fn filters_and_pages_are_in_the_address() {
    let site = site().await;
    for number in 0..45 {
        stored(&site, &format!("KEY_{number:02}")).await;
    }
    named_by_a_server(&site, "DOCS_KEY").await;
    let browser = site.browser("ada").await;
    let page = browser.see(LIST).await;
    assert_eq!(all(&page, "#secrets .title").len(), 40);
    let next = values(&page, "main p > a.button", "href").remove(0);
    assert_eq!(next, format!("{LIST}?after=KEY_38"));
    assert_eq!(all(&browser.see(&next).await, "#secrets .title").len(), 6);
    let names = async |query: &str| {
        let page = browser.see(&format!("{LIST}{query}")).await;
        (all(&page, "#secrets .title"), all(&page, ".filter[aria-current]"))
    };
    assert_eq!(names("?state=unset").await, (vec!["DOCS_KEY".into()], vec!["not set 1".into()]));
    assert_eq!(names("?q=key_07").await.0, ["KEY_07"]);
    assert_eq!(names("?state=unused&q=KEY_0").await.0.len(), 10);
    for bad in ["?state=broken", "?unknown=1"] {
        assert!(browser.look(&format!("{LIST}{bad}")).await.status.is_client_error(), "{bad}");
    }
}

/// X-D12: an auditor sees names, and neither changes them nor learns which parts of the catalog
/// name them.
#[tokio::test]
async fn x_d12_an_auditor_sees_names_alone() {
    let site = site().await;
    stored(&site, "LINEAR_API_KEY").await;
    let bob = site.api.send("POST", "/api/principals", r#"{"name":"bob"}"#).await.succeeded();
    let place = format!("/api/workspaces/default/members/{}", bob["id"].as_str().unwrap());
    site.api.send("PUT", &place, r#"{"roles":["auditor"]}"#).await.succeeded();
    let browser = site.browser("bob").await;
    let page = browser.see(LIST).await;
    assert_eq!(all(&page, "#secrets .title"), ["LINEAR_API_KEY"]);
    assert!(all(&page, "#secrets .actions, #secrets form, .head a.button").is_empty());
    assert!(all(&page, "#secrets .facts").join(" ").contains("withheld"));
    assert_eq!(browser.look(&format!("{LIST}?state=unused")).await.status, StatusCode::FORBIDDEN);
    for (method, path) in [("GET", "new"), ("GET", "LINEAR_API_KEY/clear")] {
        let path = format!("{LIST}/{path}");
        let answer = browser.request(Method::from_bytes(method.as_bytes()).unwrap(), &path);
        assert_eq!(answer.send().await.status, StatusCode::FORBIDDEN, "{path}");
    }
    let set = send(&browser, &format!("{LIST}/LINEAR_API_KEY/set"), &[("value", "a")]).await;
    assert_eq!(set.status, StatusCode::FORBIDDEN);
}
