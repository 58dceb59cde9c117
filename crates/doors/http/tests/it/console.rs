//! Tests of the console's pages: their frame, their rights, and their files.

mod agents;
mod approvals;
mod attacked;
mod audit;
mod canaries;
mod catalog;
mod clients;
mod connect;
mod foreign;
mod forgery;
mod framed;
mod grants;
mod home;
mod links;
mod me;
mod navigation;
mod operator;
mod play;
mod policy;
mod registry;
mod rights;
mod runs;
mod secrets;
mod server;
mod servers;
mod settings;
mod sizes;
mod tools;

use std::collections::BTreeSet;

use http::{Method, StatusCode};
use narthex_http::pages;
use scraper::{Html, Selector};
use serde_json::json;

use crate::{
    browser::{Browser, ORIGIN, Site},
    world::Answer,
};

const FORM: &str = "application/x-www-form-urlencoded";

/// The streams and downloads among the pages.
const FILES: &[&str] = &["live", "servers/{name}/log.txt", "audit/export"];

/// The path of a page in a workspace, with an object of a [`site`] for each name in braces.
fn filled(workspace: &str, path: &str) -> String {
    let known = [
        ("{name}", "one"),
        ("{request}", "grq_0000000000000001"),
        ("{grant}", "gra_0000000000000001"),
        ("{agent}", "reader"),
        ("{capability}", "papers"),
        ("{secret}", "SOME_KEY"),
        ("{entry}", "docs"),
        ("{run}", "1"),
        ("{session}", SESSION),
        ("{member}", "prn_0123456789abcdef"),
        ("{channel}", "notes"),
        ("{webhook}", "ops"),
        ("{token}", "nxs_0123456789abcdef"),
    ];
    let path = known.iter().fold(path.to_owned(), |path, (name, value)| path.replace(name, value));
    format!("/w/{workspace}/{path}")
}

/// True for the pages of objects that a site has only after an agent has asked.
fn is_of_an_agent(path: &str) -> bool {
    path.contains("{request}") || path.contains("{grant}")
}

/// True for the pages of objects of the settings, which a site does not have.
fn is_of_the_settings(path: &str) -> bool {
    path.starts_with("settings/") && path.contains('{')
}

/// The session of the run of [`begin_run`].
const SESSION: &str = "ses_0a1b2c3d4e5f";

/// Creates the first run of a site, in a session with a known id.
async fn begin_run(site: &Site) {
    let asked = json!({ "session_id": SESSION, "tools": ["one"] });
    let made = site.api.send("POST", "/api/workspaces/default/runs", asked.to_string()).await;
    assert_eq!(made.succeeded()["pid"], 1);
}

/// True if the path of an action is that of a page, too.
fn is_also_shown(place: &str) -> bool {
    pages().any(|(path, method, _)| path == place && method == "GET")
}

fn all(page: &Html, selector: &str) -> Vec<String> {
    let selector = Selector::parse(selector).unwrap();
    page.select(&selector).map(|one| one.text().collect::<String>().trim().to_owned()).collect()
}

fn values(page: &Html, selector: &str, attribute: &str) -> Vec<String> {
    let selector = Selector::parse(selector).unwrap();
    let found = page.select(&selector).filter_map(|one| one.value().attr(attribute));
    found.map(str::to_owned).collect()
}

/// A site with a server that is ready, and one of each object of the catalog.
async fn site() -> Site {
    let site = Site::new().await;
    let entry = json!({ "transport": "http", "url": site.api.fixture_url() }).to_string();
    site.api.send("PUT", "/api/servers/one", entry).await.succeeded();
    let docs = json!({ "command": "docs-server" }).to_string();
    site.api.send("PUT", "/api/workspaces/default/mcp-servers/docs", docs).await.succeeded();
    for (kind, text) in
        [("capabilities", r#"{"name":"papers"}"#), ("agents", r#"{"name":"reader"}"#)]
    {
        let path = format!("/api/workspaces/default/{kind}");
        site.api.send("POST", &path, text).await.succeeded();
    }
    let registry = site.api.control.registry();
    let settled = registry.wait_until(crate::world::SOON, |all| all.is_settled()).await;
    assert!(settled.servers[0].is_ready());
    site
}

impl Browser<'_> {
    /// Loads a page, as a person does.
    async fn look(&self, path: &str) -> Answer {
        self.request(Method::GET, path).header("accept", "text/html").send().await
    }

    /// Loads a page that exists.
    async fn see(&self, path: &str) -> Html {
        let answer = self.look(path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text());
        Html::parse_document(answer.text())
    }

    /// Sends a form of a page with its token.
    async fn press(&self, path: &str) -> Answer {
        let page = self.see("/w/default/").await;
        let csrf = values(&page, "body", "data-csrf").remove(0);
        self.post(path, FORM, format!("csrf={csrf}")).send().await
    }
}

/// Each page has a title of its own, one heading, the frame with its parts, and the policy; nothing
/// leads to another host.
#[tokio::test]
async fn each_page_has_a_title_a_heading_and_the_policy() {
    let site = site().await;
    begin_run(&site).await;
    let browser = site.browser("ada").await;
    let mut titles = BTreeSet::new();
    let mut count = 0;
    let shown =
        |path: &str| !FILES.contains(&path) && !is_of_an_agent(path) && !is_of_the_settings(path);
    for (path, method, _) in pages().filter(|(path, method, _)| *method == "GET" && shown(path)) {
        let path = filled("default", path);
        let answer = browser.look(&path).await;
        assert_eq!(answer.status, StatusCode::OK, "{method} {path}: {}", answer.text());
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"));
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
        assert_eq!(answer.headers["x-frame-options"], "DENY", "{path}");
        assert_eq!(answer.headers["cache-control"], "no-store", "{path}");
        let page = Html::parse_document(answer.text());
        assert_eq!(all(&page, "h1").len(), 1, "{path}");
        assert_eq!(values(&page, "html", "lang"), ["en"], "{path}");
        assert!(titles.insert(all(&page, "title").remove(0)), "{path}: {titles:?}");
        assert!(!values(&page, "body", "data-csrf")[0].is_empty(), "{path}");
        for (selector, attribute) in [("[src]", "src"), ("[href]", "href"), ("form", "action")] {
            for to in values(&page, selector, attribute) {
                assert!(to.starts_with('/') || to.starts_with('#'), "{path}: {to}");
            }
        }
        framed::check(&site, &path, &page).await;
        for file in values(&page, "[src]", "src") {
            assert_eq!(browser.look(&file).await.status, StatusCode::OK, "{file}");
        }
        assert!(answer.body.len() < 100_000, "{path}: {} bytes", answer.body.len());
        count += 1;
    }
    assert!(count >= 4, "{count}");
}

/// D4: without a login session every page shows the ways to sign in, and nothing else. After the
/// sign-in the browser gets the page that it asked for.
#[tokio::test]
async fn d4_pages_show_nothing_before_the_sign_in() {
    let site = site().await;
    for (place, method, _) in pages() {
        let path = filled("default", place);
        let mut browser = Browser::new(&site);
        let request = browser.request(method.parse().unwrap(), &path).header("origin", ORIGIN);
        let answer = request.header("accept", "text/html").send().await;
        let answer = browser.keep(answer);
        assert!(answer.text().contains("<h1>Sign in</h1>"), "{method} {path}: {}", answer.text());
        assert!(!answer.text().contains("Connected services"), "{path}");
        let link = site.link("ada").await;
        let onward = browser.form(&link, "").await;
        let is_shown = method == "GET" || is_also_shown(place);
        let expected = if is_shown { &*path } else { "/" };
        assert_eq!(onward.headers["location"], expected, "{method} {path}");
    }
}

/// S18: pages of a workspace that a human may not know look like those of an absent one, whatever
/// the page and its method.
#[tokio::test]
async fn s18_pages_of_another_workspace_look_absent() {
    let site = site().await;
    site.api.send("POST", "/api/workspaces", r#"{"id":"team"}"#).await.succeeded();
    let bob = site.api.send("POST", "/api/principals", r#"{"name":"bob"}"#).await.succeeded();
    let place = format!("/api/workspaces/default/members/{}", bob["id"].as_str().unwrap());
    site.api.send("PUT", &place, r#"{"roles":["runner"]}"#).await.succeeded();
    let browser = site.browser("bob").await;
    let mut asked = 0;
    for (path, method, _) in pages() {
        let ask = async |workspace: &str| {
            let request = browser.request(method.parse().unwrap(), &filled(workspace, path));
            let answer = request.header("origin", ORIGIN).send().await;
            (answer.status, answer.text().replace(workspace, "W"))
        };
        let (theirs, absent) = (ask("team").await, ask("gone").await);
        assert_eq!(theirs, absent, "{method} {path}");
        assert_eq!(theirs.0, StatusCode::NOT_FOUND, "{method} {path}");
        asked += 1;
    }
    assert!(asked > 8, "{asked}");
    let page = browser.see("/w/default/").await;
    assert!(values(&page, "a", "href").iter().all(|to| !to.contains("team")));
    // Servers of the configuration are for operators, and not in the navigation of others.
    let nav = [
        "Home",
        "Approvals",
        "Runs",
        "Playground",
        "Agents",
        "Connect a client",
        "Grants",
        "Settings",
        "My account",
    ];
    assert_eq!(all(&page, "nav.pages a"), nav);
    // A link alone has no heading.
    assert_eq!(all(&page, "nav.pages summary"), ["Administration"]);
    assert_eq!(browser.look("/w/default/servers").await.status, StatusCode::FORBIDDEN);
    assert_eq!(browser.look("/w/default/search?q=one").await.status, StatusCode::OK);
    let found = browser.see("/w/default/search?q=one").await;
    assert!(all(&found, "main").remove(0).contains("Nothing was found"));
}

/// A-9: an action needs a form of our own page, with the token of its login session.
#[tokio::test]
async fn a_9_actions_need_the_token_of_the_page() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let mut asked = 0;
    for (place, _, _) in pages().filter(|(_, method, _)| *method == "POST") {
        let path = filled("default", place);
        for form in ["", "csrf=", "csrf=AAAA", "other=1"] {
            let answer = browser.post(&path, FORM, form.to_owned()).send().await;
            let is_refused =
                matches!(answer.status, StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST);
            assert!(is_refused, "{path} {form}: {}", answer.status);
        }
        let page = browser.see("/w/default/").await;
        let csrf = values(&page, "body", "data-csrf").remove(0);
        let foreign = browser.post(&path, FORM, format!("csrf={csrf}"));
        let foreign = foreign.header("origin", "https://evil.example").send().await;
        assert_eq!(foreign.status, StatusCode::FORBIDDEN, "{path}");
        if !is_also_shown(place) {
            let by_link = browser.look(&path).await;
            assert_eq!(by_link.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
            assert_eq!(by_link.headers["allow"], "POST", "{path}");
        }
        asked += 1;
    }
    assert!(asked >= 6, "{asked}");
    let row = site.api.get("/api/servers/one").await;
    assert_eq!(row["state"], "ready", "nothing has changed");
}

/// `/` is for people: programs get the answer that they got before.
#[tokio::test]
async fn the_root_leads_people_to_their_first_page() {
    let site = site().await;
    let mut stranger = Browser::new(&site);
    let asked = stranger.look("/").await;
    let asked = stranger.keep(asked);
    assert!(asked.text().contains("<h1>Sign in</h1>"));
    let link = site.link("ada").await;
    assert_eq!(stranger.form(&link, "").await.headers["location"], "/");
    let home = stranger.look("/").await;
    assert_eq!(
        (home.status, &home.headers["location"]),
        (StatusCode::SEE_OTHER, &"/w/default/".parse().unwrap())
    );
    for accept in ["", "*/*", "application/json"] {
        let program = Browser::new(&site);
        let answer = program.request(Method::GET, "/").header("accept", accept).send().await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{accept}");
    }
    let bare = stranger.look("/w/default").await;
    assert_eq!(bare.headers["location"], "/w/default/");
    let nowhere = stranger.look("/w/default/nothing").await;
    assert_eq!(nowhere.status, StatusCode::NOT_FOUND);
    assert!(nowhere.text().contains("<h1>That did not work</h1>"), "{}", nowhere.text());
}

/// Files are kept by browsers, and compressed for those that take it. Those of other versions are
/// not there.
#[tokio::test]
async fn files_of_pages_are_kept_and_compressed() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = browser.see("/w/default/").await;
    let mut files = values(&page, "script", "src");
    files.extend(values(&page, "link", "href"));
    assert_eq!(files.len(), 3, "{files:?}");
    for file in files {
        let plain = browser.look(&file).await;
        assert_eq!(plain.headers["cache-control"], "public, max-age=31536000, immutable");
        assert_eq!(plain.headers["x-content-type-options"], "nosniff");
        assert!(!plain.headers.contains_key("content-encoding"), "{file}");
        let small = browser.request(Method::GET, &file).header("accept-encoding", "br, gzip");
        let small = small.send().await;
        assert_eq!(small.headers["content-encoding"], "gzip", "{file}");
        assert!(small.body.len() < plain.body.len() || plain.body.len() < 500, "{file}");
    }
    let other = Browser::new(&site).look("/assets/console.0000000000000000.js").await;
    assert_eq!(other.status, StatusCode::UNAUTHORIZED, "like any absent path");
}
