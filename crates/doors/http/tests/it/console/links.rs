//! Tests of links between pages: a list shows exactly the filter of the link that led to it (R1).

use std::collections::{BTreeMap, BTreeSet};

use narthex_http::pages;
use scraper::{ElementRef, Selector};
use serde_json::json;

use super::{FILES, Html, all, filled, is_of_an_agent, site, values};
use crate::{
    api::built_in::{Run, agent_with_a_gated_tool},
    browser::{Browser, Site},
};

const HERE: &str = "/api/workspaces/default";
/// The lists with filters.
const LISTS: [&str; 11] = [
    "agents",
    "approvals",
    "audit",
    "capabilities",
    "catalog",
    "clients",
    "grants",
    "runs",
    "secrets",
    "servers",
    "tools",
];
/// Parameters that filter nothing: places, orders, open rows and the last action.
const PLACES: [&str; 8] = ["after", "before", "page", "sort", "open", "done", "name", "replace"];

/// An address: its path below the workspace, and its filters.
fn read(address: &str) -> (String, BTreeMap<String, String>) {
    let address = address.split('#').next().unwrap();
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let pairs = form_urlencoded::parse(query.as_bytes()).into_owned();
    let filters = pairs.filter(|(name, _)| !PLACES.contains(&name.as_str()));
    (path.strip_prefix("/w/default/").unwrap_or("-").to_owned(), filters.collect())
}

/// A site with an object of each kind, and the ids of its run, request, grant and client.
struct Full {
    site: Site,
    run: String,
    request: String,
    grant: String,
    client: String,
}

impl Full {
    async fn new() -> Self {
        let site = site().await;
        agent_with_a_gated_tool(&site.api).await;
        let reader = json!({
            "name": "reader", "capabilities": ["papers"],
            "mcpServers": { "docs": { "ref": "docs" } },
        });
        let path = format!("{HERE}/agents/reader");
        site.api.send("PUT", &path, reader.to_string()).await.succeeded();
        let begun = Run::begin(&site.api).await;
        let wanted = json!({
            "request_id": "ask-1", "grant_type": "tool_scope", "scope": "session",
            "details": { "scope": "demo.write" }, "justification": "please",
        });
        let asked = begun.called("request_grant", wanted).await;
        let request = asked["grant_request_id"].as_str().unwrap().to_owned();
        let path = format!("{HERE}/grant-requests/{request}/approve");
        site.api.send("POST", &path, "{}").await.succeeded();
        let text = |of: &serde_json::Value, name: &str| of[name].as_str().unwrap().to_owned();
        let granted = site.api.get(&format!("{HERE}/grants")).await["items"][0].clone();
        let runs = site.api.get(&format!("{HERE}/runs")).await["items"][0].clone();
        let client = json!({ "client": "desktop", "agent_name": "writer" }).to_string();
        let client = site.api.send("POST", &format!("{HERE}/mcp-clients"), client).await;
        let (grant, run) = (text(&granted, "id"), text(&runs, "run_id"));
        let client = text(&client.succeeded(), "id");
        drop(begun);
        Self { site, run, request, grant, client }
    }

    /// The pages of the site, below the workspace.
    fn pages(&self) -> Vec<String> {
        let is_shown = |path: &str| {
            let is_one_of_settings = path.starts_with("settings/") && path.contains('{');
            let is_elsewhere = is_one_of_settings || path.contains("{session}");
            !FILES.contains(&path) && !is_of_an_agent(path) && !is_elsewhere
        };
        let each = pages().filter(|(path, method, _)| *method == "GET" && is_shown(path));
        let mut all: Vec<_> = each.map(|(path, ..)| filled("default", path)).collect();
        let more = [
            format!("approvals/{}", self.request),
            format!("grants/{}", self.grant),
            format!("clients?open={}", self.client),
            "agents/writer".to_owned(),
            "search?q=e".to_owned(),
        ];
        all.extend(more.iter().map(|path| format!("/w/default/{path}")));
        all
    }
}

/// The links of a page below its heading, and the number in the frame.
fn links(page: &Html) -> BTreeSet<String> {
    values(page, "main a[href], #waits", "href").into_iter().collect()
}

/// The filters on a page, each with the filters of its address, and true for those that are set.
fn filters(page: &Html) -> Vec<(BTreeMap<String, String>, bool)> {
    let all = Selector::parse("a.filter").unwrap();
    let of = |one: ElementRef<'_>| {
        let element = one.value();
        (read(element.attr("href").unwrap()).1, element.attr("aria-current").is_some())
    };
    page.select(&all).map(of).collect()
}

/// Fails unless a list shows these filters, each of them can be taken away, and no other is set.
fn shows(page: &Html, wanted: &BTreeMap<String, String>, address: &str) {
    let shown = filters(page);
    for name in wanted.keys() {
        let mut rest = wanted.clone();
        rest.remove(name);
        let is_removable = shown.iter().any(|(pairs, _)| *pairs == rest);
        assert!(is_removable, "{address}: `{name}` cannot be taken away: {shown:?}");
    }
    let mut seen = BTreeSet::new();
    for (pairs, _) in shown.iter().filter(|(_, is_set)| *is_set) {
        let away: Vec<_> = wanted.keys().filter(|name| !pairs.contains_key(*name)).collect();
        let is_own = pairs == wanted || away.len() == 1 && pairs.len() + 1 == wanted.len();
        assert!(is_own, "{address}: another filter is set: {pairs:?}");
        seen.extend(away);
        // A choice that is set leads to the list itself.
        seen.extend(wanted.keys().filter(|_| pairs == wanted));
    }
    assert_eq!(seen.len(), wanted.len(), "{address}: a filter is not shown: {shown:?}");
}

/// R1: each link from a page to a list of another one carries its filter; the list shows exactly
/// that, and each filter can be taken away.
#[tokio::test]
async fn r1_each_list_shows_exactly_the_filter_of_the_link() {
    let full = Full::new().await;
    let browser = full.site.browser("ada").await;
    let (mut walked, mut lists) = (BTreeSet::new(), BTreeSet::new());
    for path in full.pages() {
        let page = browser.see(&path).await;
        let here = read(&path).0;
        for link in links(&page) {
            let (list, wanted) = read(&link);
            let is_other = LISTS.contains(&list.as_str()) && list != here;
            if !is_other || !walked.insert(link.clone()) {
                continue;
            }
            shows(&browser.see(&link).await, &wanted, &format!("{path} → {link}"));
            if !wanted.is_empty() {
                lists.insert(list);
            }
        }
    }
    assert!(walked.len() >= 20, "{walked:?}");
    for list in ["agents", "approvals", "audit", "grants", "runs", "servers", "tools"] {
        assert!(lists.contains(list), "no link with a filter leads to {list}: {walked:?}");
    }
}

/// Each page leads to the pages and lists that belong to it.
#[tokio::test]
async fn each_page_leads_to_what_belongs_to_it() {
    let full = Full::new().await;
    let browser = full.site.browser("ada").await;
    let Full { run, request, grant, client, .. } = &full;
    let of_run = format!("audit?run={run}");
    let table: Vec<(String, Vec<String>)> = vec![
        (String::new(), to(&["servers?state=ready", "runs?status=running", "runs?status=pending"])),
        (format!("runs/{run}"), to(&[&of_run, "agents/writer", "runs?agent=writer"])),
        (format!("runs/{run}/tools"), to(&[&of_run, "approvals?agent=writer"])),
        (
            format!("approvals/{request}"),
            to(&[&format!("runs/{run}"), &of_run, "agents/writer", "grants?agent=writer"]),
        ),
        (
            format!("grants/{grant}"),
            to(&[&format!("approvals/{request}"), &format!("runs/{run}"), "agents/writer"]),
        ),
        (
            "agents/reader".to_owned(),
            to(&["runs?agent=reader", "grants?agent=reader", "audit?resource=reader"]),
        ),
        ("capabilities/papers".to_owned(), to(&["agents?capability=papers"])),
        (
            "catalog/docs".to_owned(),
            to(&["agents/reader", "agents?server=docs", "capabilities?server=docs"]),
        ),
        ("servers/one".to_owned(), to(&["audit?server=one", "tools?server=one"])),
        ("servers/one/calls".to_owned(), to(&["audit?kind=session.mcp.&server=one"])),
        ("tools".to_owned(), to(&["servers/one/tools?q=echo"])),
        ("search?q=echo".to_owned(), to(&["servers/one/tools?q=echo"])),
        ("search?q=docs".to_owned(), to(&["catalog/docs"])),
    ];
    for (path, expected) in table {
        let page = browser.see(&format!("/w/default/{path}")).await;
        let found = links(&page);
        for link in expected {
            assert!(found.contains(&link), "{path} does not lead to {link}: {found:?}");
        }
    }
    let sessions = links(&browser.see("/w/default/sessions").await);
    assert!(sessions.iter().any(|link| link.starts_with("/w/default/runs?session=")));
    let of_client = links(&browser.see(&format!("/w/default/clients?open={client}")).await);
    assert!(of_client.iter().any(|link| link.starts_with("/w/default/audit?actor=")));
    let home = links(&browser.see("/w/default/").await);
    let calls = "/w/default/audit?kind=session.mcp.tool_called&since=";
    assert!(home.iter().any(|link| link.starts_with(calls)), "{home:?}");
}

fn to(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| format!("/w/default/{path}")).collect()
}

async fn names(browser: &Browser<'_>, query: &str) -> Vec<String> {
    all(&browser.see(&format!("/w/default/{query}")).await, "#rows .title")
}

/// R1, R5: agents and capabilities are found by what they include and attach, for authors.
#[tokio::test]
async fn r1_agents_are_found_by_what_they_have() {
    let full = Full::new().await;
    let browser = full.site.browser("ada").await;
    assert_eq!(names(&browser, "agents").await, ["reader", "writer"]);
    assert_eq!(names(&browser, "agents?capability=papers").await, ["reader"]);
    assert_eq!(names(&browser, "agents?server=demo").await, ["writer"]);
    assert_eq!(names(&browser, "agents?server=docs&q=re").await, ["reader"]);
    assert!(names(&browser, "agents?server=docs&capability=other").await.is_empty());
    assert!(names(&browser, "capabilities?server=docs").await.is_empty());
    let refused = browser.look("/w/default/capabilities?capability=papers").await;
    assert!(refused.status.is_client_error(), "{}", refused.status);
    let runner = super::approvals::member(&full.site, "bob", "runner").await;
    let page = runner.see("/w/default/agents/reader").await;
    assert!(!links(&page).iter().any(|link| link.contains("/audit")), "auditors read the audit");
    let hidden = runner.look("/w/default/agents?server=docs").await;
    assert_eq!(hidden.status, http::StatusCode::FORBIDDEN);
}
