//! S18: what is in another workspace looks absent on every page, and stays as it is.

use http::Method;
use narthex_http::pages;

use super::{
    FILES, FORM,
    attacked::{Attacked, absent, fields, team_of},
};
use crate::{
    browser::Browser,
    world::{Answer, SOON},
};

/// The answer to a page or to a form with its token, in full.
async fn ask(browser: &Browser<'_>, method: &str, path: &str, form: &str) -> Answer {
    let asked = match method {
        "GET" => browser.request(Method::GET, path).send(),
        _ => browser.post(path, FORM, form.to_owned()).send(),
    };
    let answer = tokio::time::timeout(SOON, asked).await;
    answer.unwrap_or_else(|_late| panic!("{method} {path} does not end"))
}

/// A text without the state of live parts, which has the address of the page in it.
fn without_marks(text: &str) -> String {
    let mut parts = text.split("mark=");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str("mark=");
        kept.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    kept
}

/// Compares the answers for an object of another workspace and for one that does not exist.
fn is_the_same(what: &str, theirs: &Answer, none: &Answer, names: [&str; 2]) {
    assert_eq!(theirs.status, none.status, "{what}");
    let [own, other] = names;
    let expected = without_marks(none.text()).replace(other, own);
    let shown = without_marks(theirs.text());
    let lines = shown.lines().zip(expected.lines()).find(|(one, other)| one != other);
    assert!(shown == expected, "{what}: {lines:?}");
    let head = |answer: &Answer| {
        let text = format!("{:?}", answer.headers);
        text.replace(other, own)
    };
    assert_eq!(head(theirs), head(none), "{what}");
}

/// S18: each page of an object and each action on it answers for one of another workspace as for
/// one that does not exist, to operators and to admins. Nothing changes.
#[tokio::test]
async fn s18_objects_of_another_workspace_look_absent() {
    let all = Attacked::new().await;
    team_of(&all.site, "bob").await;
    let before = all.state().await;
    let mut asked = 0;
    for browser in [all.site.browser("ada").await, all.site.browser("bob").await] {
        let csrf = browser.form_token("team").await;
        for (page, method, _) in pages() {
            let Some((name, value)) = all.object(page) else { continue };
            let other = absent(value);
            let form = format!("csrf={csrf}&{}", fields(page));
            let theirs = ask(&browser, method, &all.path("team", page), &form).await;
            let path = format!("/w/team/{}", page.replace(name, &other));
            let none = ask(&browser, method, &path, &form).await;
            is_the_same(&format!("{method} {page}"), &theirs, &none, [value, &other]);
            assert!(!theirs.text().contains("canary"), "{page}");
            asked += 1;
        }
    }
    assert!(asked > 60, "{asked}");
    all.is_as_before(&before).await;
}

/// S18: an object of another workspace in the address of a list, a stream or an action is absent,
/// too.
#[tokio::test]
async fn s18_objects_of_another_workspace_in_addresses_look_absent() {
    let all = Attacked::new().await;
    team_of(&all.site, "bob").await;
    let before = all.state().await;
    for browser in [all.site.browser("ada").await, all.site.browser("bob").await] {
        let places = [
            ("play?as=", all.value("{run}")),
            ("live?topics=run&run=", all.value("{run}")),
            ("live?topics=calls&run=", all.value("{run}")),
            ("live?topics=messages&run=", all.value("{run}")),
            ("live?topics=server&server=", all.value("{name}")),
            ("live?topics=tools&server=", all.value("{name}")),
            ("live?topics=definitions&server=", all.value("{name}")),
            ("live?topics=log&server=", all.value("{name}")),
            ("runs?session=", all.value("{session}")),
            ("runs?agent=", all.value("{agent}")),
            ("approvals?agent=", all.value("{agent}")),
            ("grants?agent=", all.value("{agent}")),
            ("audit?run=", all.value("{run}")),
            ("clients?open=", all.client()),
            ("search?q=", all.value("{run}")),
            ("search?q=", all.value("{secret}")),
        ];
        for (place, value) in places {
            let other = absent(value);
            let theirs = ask(&browser, "GET", &format!("/w/team/{place}{value}"), "").await;
            let none = ask(&browser, "GET", &format!("/w/team/{place}{other}"), "").await;
            is_the_same(place, &theirs, &none, [value, &other]);
        }
        let csrf = browser.form_token("team").await;
        let grant = all.value("{grant}");
        let run = absent(all.value("{run}"));
        let path = format!("/w/team/runs/{run}/revoke?grant={grant}");
        let refused = ask(&browser, "POST", &path, &format!("csrf={csrf}")).await;
        assert!(refused.status.is_client_error(), "{}", refused.status);
    }
    all.is_as_before(&before).await;
}

/// S18: to a member of another workspace, a workspace with all its objects looks like one that
/// does not exist, whatever the page, its method and its form. Nothing changes.
#[tokio::test]
async fn s18_a_workspace_of_others_looks_absent_with_all_it_has() {
    let all = Attacked::new().await;
    team_of(&all.site, "bob").await;
    let before = all.state().await;
    let browser = all.site.browser("bob").await;
    let csrf = browser.form_token("team").await;
    for (page, method, _) in pages() {
        let form = format!("csrf={csrf}&{}", fields(page));
        for method in [method, "GET"] {
            let theirs = ask(&browser, method, &all.path("default", page), &form).await;
            let none = ask(&browser, method, &all.path("absence", page), &form).await;
            is_the_same(&format!("{method} {page}"), &theirs, &none, ["default", "absence"]);
            assert_eq!(theirs.status, http::StatusCode::NOT_FOUND, "{method} {page}");
        }
    }
    assert!(FILES.iter().all(|file| pages().any(|(page, ..)| page == *file)));
    all.is_as_before(&before).await;
}
