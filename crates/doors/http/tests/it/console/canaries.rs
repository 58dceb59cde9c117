//! S27: no page, no part, no stream and no refusal of a form has a value of a secret, in any of its
//! spellings: every answer is searched for the planted values.

use std::panic::catch_unwind;

use http::Method;
use narthex_http::pages;
use narthex_model::WorkspaceId;
use narthex_store::{OAuthFacts, OAuthGrantKey};
use narthex_testkit::planted;
use serde_json::{Value, json};

use super::{
    FORM,
    attacked::{Attacked, HERE, fields},
};
use crate::{
    browser::Browser,
    world::{Answer, SOON, Stream},
};

/// The value in the vault, which [`Attacked::new`] sets.
const IN_VAULT: &str = "canary-of-the-vault-4711";
/// A value that a person types into a field of a secret.
const TYPED: &str = "canary-of-a-field-0815";
/// Values of entries that are written out.
const LITERALS: [&str; 6] = [
    "canary-of-a-header-1",
    "canary-of-a-path-2",
    "canary-of-a-query-3",
    "canary-of-a-variable-4",
    "canary-of-an-argument-5",
    "canary-of-a-sensitive-key-6",
];

/// Puts a value of a secret into each place that can have one.
async fn planted_everywhere() -> Attacked {
    let all = Attacked::new().await;
    let site = &all.site;
    let put = async |path: &str, body: Value| {
        let answer = site.api.send("PUT", path, body.to_string()).await;
        assert!(answer.status.is_success(), "{path}: {}", answer.text());
    };
    let [header, path, query, variable, argument, sensitive] = LITERALS;
    let url = format!("http://127.0.0.1:9/{path}?key={query}");
    let headers = json!({ "X-Key": header, "X-Vault": "${secret:SOMEKEY}" });
    put("/api/servers/literal", json!({ "transport": "http", "url": url, "headers": headers }))
        .await;
    let script = "echo \"is awake with $TOKEN\" >&2; cat > /dev/null";
    let talky = json!({
        "transport": "stdio", "command": "sh", "args": ["-c", script, argument],
        "env": { "TOKEN": "${secret:SOMEKEY}", "PLAIN": variable },
    });
    put("/api/servers/talky", talky).await;
    let at = |rest: &str| format!("{HERE}/{rest}");
    let hidden = json!({
        "command": "true", "disabled": true,
        "config_schema": {
            "PIN": { "type": "string", "sensitive": true },
            "TOKEN": { "type": "string", "kind": "secret" },
        },
        "default_config": { "PIN": sensitive, "TOKEN": "${SOMEKEY}" },
    });
    put(&at("mcp-servers/hidden?offline=true"), hidden).await;
    let agent = json!({ "mcpServers": { "hidden": { "ref": "hidden" } } });
    put(&at("agents/keeper"), agent).await;
    let bound =
        json!({ "scope": "agent", "scope_id": "reader", "name": "TOKEN", "secret": "SOMEKEY" });
    let bound = site.api.send("POST", &at("env-bindings"), bound.to_string()).await;
    assert!(bound.status.is_success(), "{}", bound.text());
    let notes = "https://notes.example.com/mcp";
    let notes = json!({ "kind": "remote_oauth", "url": notes, "name": "Notes" });
    put(&at("mcp-servers/notes?offline=true"), notes).await;
    let (workspace, server) = (WorkspaceId::default(), "notes".to_owned());
    let key = OAuthGrantKey { workspace, server, user: Some(site.ada.clone()) };
    let tokens = "canary-of-tokens-of-a-login";
    site.store.oauth_grants().put(&key, tokens, &OAuthFacts::default()).await.unwrap();

    for value in LITERALS.into_iter().chain([TYPED, tokens]) {
        planted::remember(value);
    }
    all.plant();
    all
}

/// A browser whose own cookie is a canary, too.
async fn searched(all: &Attacked) -> Browser<'_> {
    let browser = all.site.browser("ada").await;
    let cookie = browser.cookie.clone().unwrap();
    planted::remember(cookie.split_once('=').unwrap().1);
    browser
}

/// Waits until the server that prints its secret has done so.
async fn has_talked(all: &Attacked) {
    let talked = async || {
        let logs = all.site.api.ask("GET", "/api/servers/talky/logs").send().await;
        logs.text().contains("is awake with")
    };
    let waits = async {
        while !talked().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, waits).await.unwrap();
}

/// Loads an address whole, as a page and as a part. The answers are searched as they are read.
async fn look(browser: &Browser<'_>, path: &str) -> Answer {
    let part = browser.request(Method::GET, path).header("hx-request", "true").send();
    tokio::time::timeout(SOON, part).await.unwrap();
    let whole = tokio::time::timeout(SOON, browser.look(path)).await;
    whole.unwrap_or_else(|_late| panic!("{path} does not end"))
}

/// S27: each page, with all objects that have secrets, shows none of their values.
#[tokio::test]
async fn s27_no_page_has_a_planted_value() {
    let all = planted_everywhere().await;
    has_talked(&all).await;
    let browser = searched(&all).await;
    let mut paths: Vec<_> = pages()
        .filter(|(page, method, _)| *method == "GET" && *page != "live")
        .map(|(page, _, _)| page)
        .flat_map(|page| {
            let others = match all.object(page) {
                Some(("{name}", "one")) => vec!["literal", "talky"],
                Some(("{entry}", _)) => vec!["hidden", "notes"],
                Some(("{agent}", _)) => vec!["keeper", "writer"],
                Some(("{secret}", _)) => vec!["OPSURL", "OPSKEY"],
                _ => Vec::new(),
            };
            let name = all.object(page).map_or("", |(name, _)| name);
            let others = others.into_iter().map(|value| page.replace(name, value));
            let others = others.map(|page| format!("/w/default/{page}"));
            others.chain([all.path("default", page)]).collect::<Vec<_>>()
        })
        .collect();
    let client = all.client();
    let more = [
        "secrets?replace=SOMEKEY",
        "secrets?state=unused",
        "connect?client=claude-code",
        "connect?client=cursor",
        "connect?client=codex",
        "connect?client=claude-desktop",
        "connect?client=other",
        "play?server=one&tool=echo",
        "search?q=canary",
        "search?q=some",
        "audit?kind=workspace.secret.set",
        "servers?q=talky",
        "tools?q=echo",
        "registry?q=weather",
        "registry/server?name=com.example%2Fweather-00&version=1",
    ];
    paths.extend(more.map(|path| format!("/w/default/{path}")));
    paths.push(format!("/w/default/clients?open={client}"));
    let mut shown = 0;
    for path in &paths {
        shown += usize::from(look(&browser, path).await.status.is_success());
    }
    assert!(shown > 60, "{shown} of {} pages", paths.len());
    let log = look(&browser, "/w/default/servers/talky/log").await;
    assert!(log.text().contains("is awake with"), "the line is there, without the value");
    let found = catch_unwind(|| planted::said("control", IN_VAULT.as_bytes()));
    assert!(found.is_err(), "a value would have been found");
}

/// S27: no event of a stream has a planted value: neither the first one, nor one after a change.
#[tokio::test]
async fn s27_no_live_event_has_a_planted_value() {
    let all = planted_everywhere().await;
    has_talked(&all).await;
    let browser = searched(&all).await;
    let run = all.value("{run}");
    for topics in [
        "waits,home,servers".to_owned(),
        "server,tools,definitions,log&server=talky".to_owned(),
        "server,tools,definitions,log&server=literal".to_owned(),
        "approvals".to_owned(),
        "runs".to_owned(),
        format!("run,calls,messages&run={run}"),
        "connect&since=2026-01-01T00:00:00Z".to_owned(),
    ] {
        let path = format!("/w/default/live?topics={topics}");
        let mut stream = Stream::of(browser.request(Method::GET, &path).open().await);
        let event = tokio::time::timeout(SOON, stream.next()).await.unwrap().unwrap();
        planted::said(&path, &event.data);
        assert!(event.data.starts_with(b"<hx-partial"), "{path}");
        if topics.ends_with(",servers") {
            all.site.api.post("/api/servers/talky/disable").await.succeeded();
            let event = tokio::time::timeout(SOON, stream.next()).await.unwrap().unwrap();
            planted::said(&path, &event.data);
        }
    }
}

/// S27: a form that is refused repeats no value that was typed into a field of a secret, and a
/// pasted file with secrets is not shown again.
#[tokio::test]
async fn s27_no_refused_form_has_a_planted_value() {
    let all = planted_everywhere().await;
    let browser = searched(&all).await;
    let csrf = browser.form_token("default").await;
    let mut asked = 0;
    let send = async |path: &str, form: &str| {
        let sent = browser.post(path, FORM, format!("csrf={csrf}&{form}")).send();
        tokio::time::timeout(SOON, sent).await.unwrap()
    };
    for (page, _, _) in pages().filter(|(_, method, _)| *method != "GET") {
        let path = all.path("default", page);
        // The ends of the own sign-in and of objects would end the test.
        if !page.contains("end") && !page.contains("revoke") {
            send(&path, &format!("value={TYPED}&more={TYPED}&secret={TYPED}")).await;
        }
        let wrong = format!("csrf=A{TYPED}&{}&value={TYPED}", fields(page));
        browser.post(&path, FORM, wrong).send().await;
        browser.post(&path, "text/plain", TYPED.to_owned()).send().await;
        asked += 1;
    }
    assert!(asked > 30, "{asked}");
    for (place, form) in [
        ("secrets/new", format!("name={TYPED}&value={TYPED}")),
        ("secrets/new", format!("name=SOMEKEY&value={TYPED}")),
        ("secrets/SOMEKEY/set", format!("value={TYPED}%00")),
        ("secrets/no-name/set", format!("value={TYPED}")),
        ("secrets/SOMEKEY/set", format!("value={TYPED}&value={TYPED}")),
    ] {
        let answer = send(&format!("/w/default/{place}"), &form).await;
        assert!(answer.status.is_client_error(), "{place}: {}", answer.status);
    }
    let header = json!({ "Authorization": format!("Bearer {TYPED}") });
    let server = json!({ "url": "https://docs.example.com/mcp", "headers": header });
    let pasted = json!({ "mcpServers": { "docs": server } }).to_string();
    for text in [pasted.as_str(), &pasted[..pasted.len() - 1]] {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("paste", text).append_pair("do", "read");
        let answer = send("/w/default/catalog/new/save", &form.finish()).await;
        assert!(answer.text().contains("<textarea"), "{}", answer.text());
    }
}
