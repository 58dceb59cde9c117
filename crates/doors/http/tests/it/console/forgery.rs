//! A-9, S7: forged requests change nothing, every answer forbids frames and foreign scripts, and no
//! address leads to another site.

use http::{HeaderMap, Method, StatusCode};
use narthex_http::{operator_pages, pages};
use scraper::{Html, Selector};

use super::{
    FORM,
    attacked::{Attacked, absent, fields, team_of},
};
use crate::{
    browser::{Browser, ORIGIN},
    world::{Answer, Builder},
};

const EVIL: &str = "https://evil.example";

/// The requests of others in place of a person who presses a button: each with its name.
fn forged<'b>(
    browser: &Browser<'b>,
    path: &str,
    csrf: &str,
    rest: &str,
) -> Vec<(&'static str, Builder<'b>)> {
    let form = format!("csrf={csrf}&{rest}");
    let own = || browser.post(path, FORM, form.clone());
    let typed = |kind: &str| browser.post(path, kind, form.clone());
    let in_query = format!("{path}?csrf={csrf}");
    vec![
        ("no origin", own().header("origin", "")),
        ("an opaque origin", own().header("origin", "null")),
        ("another site", own().header("origin", EVIL)),
        ("another port", own().header("origin", "http://localhost:7718")),
        ("another scheme", own().header("origin", "https://localhost:7717")),
        ("a longer host", own().header("origin", "http://localhost:7717.evil.example")),
        ("across sites", own().header("sec-fetch-site", "cross-site")),
        ("of the same site", own().header("sec-fetch-site", "same-site")),
        ("another host", own().header("host", "evil.example")),
        ("a page as text", typed("text/plain")),
        ("a page in parts", typed("multipart/form-data; boundary=x")),
        ("two types", typed("application/x-www-form-urlencoded, text/plain")),
        ("json", typed("application/json").header("x-narthex-csrf", csrf)),
        ("no type", own().header("content-type", "")),
        ("a token in the address", browser.post(&in_query, FORM, rest.to_owned())),
        (
            "a token in a header",
            browser.post(path, FORM, rest.to_owned()).header("x-narthex-csrf", csrf),
        ),
        ("a token given twice", browser.post(path, FORM, format!("csrf=A&{form}"))),
        ("a part without a token", {
            let part = browser.post(path, FORM, rest.to_owned());
            part.header("hx-request", "true")
        }),
        ("no cookie", own().header("cookie", "")),
        ("a run's way in", own().header("cookie", "").header("authorization", "Bearer x")),
    ]
}

/// Checks that a forged request was refused, or answered by the ways to sign in.
fn is_refused(what: &str, answer: &Answer) {
    let is_sign_in = answer.text().contains("<h1>Sign in</h1>");
    let is_refused = matches!(
        answer.status,
        StatusCode::BAD_REQUEST
            | StatusCode::FORBIDDEN
            | StatusCode::MISDIRECTED_REQUEST
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
    );
    assert!(is_refused || is_sign_in, "{what}: {}", answer.status);
    assert!(!answer.headers.contains_key("location"), "{what}");
}

/// without a form of our own page, with the token of its own login session, no action changes
/// anything: whichever part of the request is forged.
#[tokio::test]
async fn a_9_forged_forms_change_nothing() {
    let all = Attacked::new().await;
    let (browser, second) = (all.site.browser("ada").await, all.site.browser("ada").await);
    let (csrf, other) = (browser.form_token("default").await, second.form_token("default").await);
    assert_ne!(csrf, other, "each login session has its own");
    let before = all.state().await;
    let mut asked = 0;
    for (page, _, _) in pages().filter(|(_, method, _)| *method != "GET") {
        let (path, rest) = (all.path("default", page), fields(page));
        for (why, request) in forged(&browser, &path, &csrf, rest) {
            let answer = request.send().await;
            is_refused(&format!("{page}: {why}"), &answer);
            asked += 1;
        }
        for token in ["", "AAAA", &other, &csrf[1..], &format!("{csrf}A"), &csrf.to_uppercase()] {
            let form = format!("csrf={token}&{rest}");
            let answer = browser.post(&path, FORM, form).send().await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{page}: {token}: {}", answer.text());
        }
    }
    assert!(asked > 500, "{asked}");
    all.is_as_before(&before).await;
}

/// A-9, S7, S18: the same holds for the pages of operators, which are absent for all others.
#[tokio::test]
async fn a_9_forged_forms_of_operators_change_nothing() {
    let all = Attacked::new().await;
    team_of(&all.site, "bob").await;
    let (browser, bob) = (all.site.browser("ada").await, all.site.browser("bob").await);
    let (csrf, of_bob) = (browser.form_token("default").await, bob.form_token("team").await);
    let before = all.state().await;
    for (page, method, _) in operator_pages() {
        let path = format!("/operator/{}", page.replace("{workspace}", "team"));
        let rest = match page {
            "workspaces/new" => "id=forged",
            "workspaces/{workspace}/delete" => "force=on",
            _ => "",
        };
        if method == "GET" {
            is_guarded(page, browser.request(Method::GET, &path).open().await.headers());
            assert_eq!(bob.look(&path).await.status, StatusCode::NOT_FOUND, "{page}");
            continue;
        }
        for (why, request) in forged(&browser, &path, &csrf, rest) {
            is_refused(&format!("{page}: {why}"), &request.send().await);
        }
        let form = format!("csrf={of_bob}&{rest}");
        let by_bob = bob.post(&path, FORM, form.clone()).send().await;
        assert_eq!(by_bob.status, StatusCode::NOT_FOUND, "{page}");
        let stolen = browser.post(&path, FORM, form).send().await;
        assert_eq!(stolen.status, StatusCode::FORBIDDEN, "{page}");
    }
    all.is_as_before(&before).await;
}

/// no page that a link opens changes anything, and neither does another method of it.
#[tokio::test]
async fn a_9_links_and_other_methods_change_nothing() {
    let all = Attacked::new().await;
    let browser = all.site.browser("ada").await;
    let csrf = browser.form_token("default").await;
    let before = all.state().await;
    for (page, _, _) in pages() {
        let path = all.path("default", page);
        for method in ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"] {
            let is_read = matches!(method, "GET" | "HEAD");
            let is_page = pages().any(|(known, method, _)| known == page && method == "GET");
            let form = format!("csrf={csrf}&{}", fields(page));
            for part in ["", "true"] {
                let request = browser.request(method.parse().unwrap(), &path);
                let request = request.header("origin", ORIGIN).header("x-narthex-csrf", &csrf);
                let request = request.header("content-type", FORM).header("hx-request", part);
                let request = request.body(crate::world::whole(form.clone()));
                // Streams are dropped, and do not end by themselves.
                let status = request.open().await.status();
                let is_other = !(is_read && is_page);
                assert!(!is_other || status == StatusCode::METHOD_NOT_ALLOWED, "{method} {page}");
            }
        }
    }
    all.is_as_before(&before).await;
}

/// Checks the headers of an answer.
fn is_guarded(what: &str, headers: &HeaderMap) {
    let text = |name: &str| {
        let value = headers.get(name).unwrap_or_else(|| panic!("{what}: no {name}"));
        value.to_str().unwrap()
    };
    let policy = text("content-security-policy");
    for part in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"] {
        assert!(policy.contains(part), "{what}: {policy}");
    }
    assert!(
        policy.contains("form-action 'self'") && !policy.contains("unsafe"),
        "{what}: {policy}"
    );
    assert_eq!(text("x-frame-options"), "DENY", "{what}");
    assert_eq!(text("x-content-type-options"), "nosniff", "{what}");
    assert_eq!(text("referrer-policy"), "same-origin", "{what}");
    assert_eq!(text("cross-origin-resource-policy"), "same-origin", "{what}");
    assert_eq!(text("cache-control"), "no-store", "{what}");
    assert!(!headers.contains_key("access-control-allow-origin"), "{what}");
}

/// S7: every answer forbids frames, foreign scripts, caches and uses by other sites: pages, parts,
/// files, streams, failures, redirects, and the ways to sign in.
#[tokio::test]
async fn s7_every_answer_is_guarded() {
    let all = Attacked::new().await;
    let browser = all.site.browser("ada").await;
    let stranger = Browser::new(&all.site);
    for (page, method, _) in pages() {
        let verb = || method.parse::<Method>().unwrap();
        let path = all.path("default", page);
        let gone = path.replacen("default", "gone", 1);
        let lost = all.object(page).map_or_else(
            || format!("{path}/nothing/here"),
            |(_, value)| path.replacen(value, &absent(value), 1),
        );
        let requests = [
            ("itself", browser.request(verb(), &path).header("origin", ORIGIN)),
            ("a part", browser.request(verb(), &path).header("hx-request", "true")),
            ("by its head", browser.request(Method::HEAD, &path)),
            ("another method", browser.request(Method::PUT, &path).header("origin", ORIGIN)),
            ("no workspace", browser.request(verb(), &gone).header("origin", ORIGIN)),
            ("no object", browser.request(verb(), &lost).header("origin", ORIGIN)),
            ("a stranger", stranger.request(Method::GET, &path)),
            ("an unknown parameter", browser.request(Method::GET, &format!("{path}?no=1"))),
        ];
        for (what, request) in requests {
            let answer = request.open().await;
            is_guarded(&format!("{method} {page}: {what}"), answer.headers());
        }
    }
    for path in ["/", "/w/default", "/w/", "/w/default/nothing"] {
        let request = browser.request(Method::GET, path).header("accept", "text/html");
        is_guarded(path, request.open().await.headers());
    }
}

/// S7: pages of other origins use no answer: not in frames, images, scripts or event sources. A
/// person may follow a link from anywhere.
#[tokio::test]
async fn s7_pages_of_others_use_no_answer() {
    let all = Attacked::new().await;
    let browser = all.site.browser("ada").await;
    for (page, _, _) in pages().filter(|(_, method, _)| *method == "GET") {
        let path = all.path("default", page);
        for (site, mode, dest) in [
            ("same-site", "no-cors", "image"),
            ("same-site", "cors", "empty"),
            ("cross-site", "no-cors", "script"),
            ("cross-site", "navigate", "iframe"),
            ("same-site", "navigate", "iframe"),
            ("same-site", "navigate", "embed"),
            ("cross-site", "", ""),
        ] {
            let request = browser.request(Method::GET, &path).header("sec-fetch-site", site);
            let request = request.header("sec-fetch-mode", mode).header("sec-fetch-dest", dest);
            let status = request.open().await.status();
            assert_eq!(status, StatusCode::FORBIDDEN, "{page}: {site} {mode} {dest}");
        }
        let link = browser.request(Method::GET, &path).header("sec-fetch-site", "cross-site");
        let link = link.header("sec-fetch-mode", "navigate").header("sec-fetch-dest", "document");
        assert_ne!(link.open().await.status(), StatusCode::FORBIDDEN, "{page}");
    }
}

/// Names of parameters by which pages of some programs lead elsewhere, and those of ours.
const PARAMETERS: [&str; 30] = [
    "next",
    "back",
    "then",
    "to",
    "url",
    "uri",
    "return",
    "return_to",
    "redirect",
    "redirect_uri",
    "continue",
    "dest",
    "target",
    "done",
    "name",
    "path",
    "client",
    "q",
    "after",
    "before",
    "server",
    "tool",
    "agent",
    "session",
    "open",
    "view",
    "since",
    "json",
    "as",
    "host",
];
const ELSEWHERE: [&str; 8] = [
    "//evil.example",
    "https://evil.example",
    "/\\evil.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "\\\\evil.example",
    "/w/default/..//evil.example",
    "http:evil.example",
];

/// True for an address that stays at this daemon.
fn is_here(to: &str) -> bool {
    let is_path = to.starts_with('/') && !to.starts_with("//") && !to.contains('\\');
    is_path || to.starts_with('#')
}

/// Every address in an answer stays at this daemon.
fn stays_here(answer: &Answer, place: &str) {
    if let Some(to) = answer.headers.get("location") {
        assert!(is_here(to.to_str().unwrap()), "{place}: {to:?}");
    }
    let html = Html::parse_document(answer.text());
    for element in html.select(&Selector::parse("*").unwrap()) {
        for attribute in ["href", "src", "action", "formaction", "hx-get", "hx-post"] {
            let to = element.value().attr(attribute).unwrap_or("#");
            assert!(is_here(to), "{place}: {attribute}={to}");
        }
    }
}

/// Number of pages that a parameter with an address elsewhere shows. Most pages refuse it.
async fn shown_with(browser: &Browser<'_>, path: &str, name: &str) -> usize {
    for (count, value) in ELSEWHERE.iter().enumerate() {
        let value: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = browser.look(&format!("{path}?{name}={value}")).await;
        stays_here(&answer, &format!("{path}?{name}"));
        if answer.status != StatusCode::OK {
            return count;
        }
    }
    ELSEWHERE.len()
}

/// S7: no parameter of an address becomes a link, a form or a redirect to another site.
#[tokio::test]
async fn s7_no_parameter_leads_elsewhere() {
    let all = Attacked::new().await;
    let browser = all.site.browser("ada").await;
    let mut shown = 0;
    let lists =
        pages().filter(|(page, method, _)| *method == "GET" && !super::FILES.contains(page));
    for (page, _, _) in lists {
        let path = all.path("default", page);
        for name in PARAMETERS {
            shown += shown_with(&browser, &path, name).await;
        }
    }
    assert!(shown > 20, "{shown}");
}

/// S7, S18: tricks with paths lead to no other page, and hosts of others to none at all.
#[tokio::test]
async fn s7_tricks_with_paths_and_hosts_open_nothing() {
    let all = Attacked::new().await;
    let browser = all.site.browser("ada").await;
    for path in [
        "/w//servers",
        "/w/default//servers",
        "/w/default/servers/",
        "/w/default/servers//",
        "/w/default/servers/..",
        "/w/default/servers/../../../api/me",
        "/w/..%2f..%2fapi%2fme",
        "/w/%2f%2fevil.example",
        "/w/..",
        "/w/%2e%2e/api/me",
        "/w/default/..%2f..%2fapi/me",
        "/w/default/servers%2fone",
        "/w/default/servers/one%2flog",
        "/w/default/servers/one%00",
        "/w/default/servers/%00",
        "/w/default/servers;x=1",
        "/w/default%00/",
        "/w/DEFAULT/",
        "/w/default%20/",
        "/w/default/agents/..%2fsecrets",
        "/w/default/catalog/%2e%2e",
        "/w/default/catalog/..%5c..%5cx",
        "/w/default/runs/%2e%2e%2fsecrets",
        "/w/default/secrets/..%2f..%2fx/clear",
        "//evil.example/w/default/",
        "/w/%E2%80%AEdefault/",
    ] {
        let answer = browser.look(path).await;
        assert!(answer.status.is_client_error(), "{path}: {}", answer.status);
        assert!(!answer.text().contains("\"roles\""), "{path}");
    }
    for host in ["evil.example", "localhost.evil.example:7717", "localhost:7717@evil.example", ""] {
        let request = browser.request(Method::GET, "/w/default/").header("host", host);
        let answer = request.send().await;
        assert!(answer.status.is_client_error(), "{host}: {}", answer.status);
        assert!(!answer.text().contains("evil.example"), "{host}");
    }
    let numeric = browser.request(Method::GET, "/w/default//evil.example?x=//y");
    let numeric = numeric.header("host", "127.0.0.1:7717").send().await;
    let to = numeric.headers["location"].to_str().unwrap();
    assert!(to.starts_with(&format!("{ORIGIN}/w/default/")), "{to}");
}

/// D15: the tokens of runs, clients and services open no page, with or without the headers of a
/// browser: an agent reaches no page on which it could approve its own request.
#[tokio::test]
async fn d15_tokens_of_agents_open_no_page() {
    let all = Attacked::new().await;
    let stranger = Browser::new(&all.site);
    let before = all.state().await;
    let mut tokens = all.tokens.clone();
    tokens.push(crate::world::ADMIN.to_owned());
    for (page, method, _) in pages() {
        let path = all.path("default", page);
        for token in &tokens {
            let request = stranger.request(method.parse().unwrap(), &path);
            let request = request.header("authorization", &format!("Bearer {token}"));
            let request = request.header("origin", ORIGIN).header("content-type", FORM);
            let answer = request.body(crate::world::whole(fields(page))).send().await;
            assert!(answer.text().contains("<h1>Sign in</h1>"), "{method} {page}");
            let request = stranger.request(method.parse().unwrap(), &path);
            let request = request.header("cookie", &format!("narthex={token}"));
            let answer = request.header("origin", ORIGIN).send().await;
            assert!(answer.text().contains("<h1>Sign in</h1>"), "{method} {page}");
        }
    }
    all.is_as_before(&before).await;
}
