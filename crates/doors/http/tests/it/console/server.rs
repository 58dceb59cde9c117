//! Tests of the pages of one server.

use http::{Method, StatusCode};
use narthex_testkit::fixture::{Options, Running};
use serde_json::{Value, json};

use super::{FORM, Html, Site, all, site, values};
use crate::{
    browser::Browser,
    world::{Answer, SOON, Stream},
};

const PAGE: &str = "/w/default/servers";

fn echo(description: &str) -> Value {
    json!({ "name": "echo", "description": description, "inputSchema": { "type": "object" } })
}

fn text(page: &Html, selector: &str) -> String {
    all(page, selector).join("\n")
}

/// Adds a server to the settings, and waits until it has settled.
async fn add(site: &Site, name: &str, entry: &Value) {
    let path = format!("/api/servers/{name}");
    site.api.send("PUT", &path, entry.to_string()).await.succeeded();
    let registry = site.api.control.registry();
    assert!(registry.wait_until(SOON, |all| all.is_settled()).await.is_settled());
}

/// Sends a form of a page with these fields beside its token.
async fn send(browser: &Browser<'_>, path: &str, fields: &str) -> Answer {
    let page = browser.see("/w/default/").await;
    let csrf = values(&page, "body", "data-csrf").remove(0);
    browser.post(path, FORM, format!("csrf={csrf}&{fields}")).send().await
}

/// The name in the row leads to the page of the server, whose links lead to its other pages.
#[tokio::test]
async fn the_name_of_a_server_leads_to_its_pages() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let list = browser.see(PAGE).await;
    assert_eq!(values(&list, "#servers .title a", "href"), [format!("{PAGE}/one")]);
    let page = browser.see(&format!("{PAGE}/one")).await;
    assert_eq!(text(&page, "#server-now .badge"), "ready");
    let buttons = values(&page, "#server-now form", "action");
    let expected = ["test", "reconnect", "disable"];
    assert_eq!(buttons, expected.map(|verb| format!("{PAGE}/one/{verb}?back=server")));
    let disabled = browser.press(&buttons[2]).await;
    let back = disabled.headers["location"].to_str().unwrap();
    assert_eq!(back, format!("{PAGE}/one?done=disable&name=one"));
    let page = browser.see(back).await;
    assert_eq!(text(&page, "#told"), "one is disabled.");
    assert_eq!(text(&page, "#server-now .badge"), "disabled");
    browser.press(&format!("{PAGE}/one/enable")).await;
    let page = browser.see(&format!("{PAGE}/one")).await;
    let facts = text(&page, "#server-now dl");
    for words in ["protocol", "/mnt/mcp/0-one", "settings.json"] {
        assert!(facts.contains(words), "{facts}");
    }
    let tabs = values(&page, "nav.tabs a", "href");
    assert_eq!(tabs.len(), 7);
    for tab in tabs {
        let page = browser.see(&tab).await;
        assert_eq!(values(&page, "nav.tabs a[aria-current=page]", "href"), [tab]);
    }
    let gone = browser.look(&format!("{PAGE}/gone/tools")).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    assert!(gone.text().contains("there is no server `gone`"), "{}", gone.text());
}

/// E65: the page of a server changes with its row, as the page shows it.
#[tokio::test]
async fn e65_the_page_of_a_server_is_live() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = browser.see(&format!("{PAGE}/one")).await;
    let live = values(&page, "[hx-sse\\:connect]", "hx-sse:connect").remove(0);
    assert!(live.starts_with("/w/default/live?topics=waits%2Cserver&server=one&mark="), "{live}");
    let mut stream = Stream::of(browser.request(Method::GET, &live).open().await);
    site.api.post("/api/servers/one/disable").await.succeeded();
    let events = until(&mut stream, ">disabled<").await;
    assert!(events.contains("#server-now"), "{events}");
}

/// The events of a stream, up to one with this text.
async fn until(stream: &mut Stream, wanted: &str) -> String {
    let mut events = String::new();
    tokio::time::timeout(SOON, async {
        while !events.contains(wanted) {
            let event = stream.next().await.unwrap();
            events.push_str(std::str::from_utf8(&event.data).unwrap());
        }
    })
    .await
    .unwrap();
    events
}

/// R3, D5: absent, withheld and off are three answers, each with its reason.
#[tokio::test]
async fn d5_tools_that_callers_do_not_see_say_why() {
    let site = site().await;
    let entry = json!({
        "transport": "http", "url": site.api.fixture_url(),
        "tools": { "deny": ["test_simple_text"] },
        "tool_scopes": { "ecoh": "demo.write", "echo": "demo.read" },
    });
    add(&site, "two", &entry).await;
    let browser = site.browser("ada").await;
    let shown = async |query: &str| {
        let page = browser.see(&format!("{PAGE}/two/tools{query}")).await;
        (all(&page, ".tool-list .title"), text(&page, ".tool-list"))
    };
    let (names, words) = shown("?show=off").await;
    assert_eq!(names, ["test_simple_text"]);
    assert!(words.contains("the rule `tools` of the entry hides it"), "{words}");
    let (names, words) = shown("?show=absent").await;
    assert_eq!(names, ["ecoh"]);
    assert!(words.contains("which the server does not list"), "{words}");
    let (names, words) = shown("?q=ECHO&show=visible").await;
    assert!(names.contains(&"echo".to_owned()), "{names:?}");
    assert!(words.contains("demo.read") && words.contains("tokens"), "{words}");
    site.api.post("/api/servers/two/disable").await.succeeded();
    let (names, words) = shown("?show=unknown&q=echo").await;
    assert!(names.contains(&"echo".to_owned()), "{names:?}");
    assert!(words.contains("the server is disabled"), "{words}");
    let bad = browser.look(&format!("{PAGE}/two/tools?show=hidden")).await;
    assert!(bad.status.is_client_error());
}

/// S23, D10: a changed definition is shown by line, withheld until a human accepts it, and decided
/// on by the digest of the text that the human has read.
#[tokio::test]
async fn s23_a_changed_definition_is_decided_on_the_page() {
    let site = Site::new().await;
    let server = Running::http(Options::default()).await.unwrap();
    server.fixture.redefine("tools/list", "echo", &[echo("Returns the message")]);
    let entry = json!({ "transport": "http", "url": server.url, "pinDefinitions": true });
    add(&site, "live", &entry).await;
    let registry = site.api.control.registry();
    let has = |is_there: bool| {
        let has = move |all: &narthex_registry::Snapshot| {
            all.get("live").is_some_and(|row| {
                row.is_ready() && row.inventory.tool("echo").is_some() == is_there
            })
        };
        registry.wait_until(SOON, has)
    };
    has(true).await;
    let browser = site.browser("ada").await;
    let list = format!("{PAGE}/live/definitions");
    let page = browser.see(&list).await;
    assert!(text(&page, "#definitions").contains("Nothing waits for a decision"));

    server.fixture.redefine("tools/list", "echo", &[echo("Returns <b>it</b>, and more")]);
    has(false).await;
    let tools = browser.see(&format!("{PAGE}/live/tools?show=withheld")).await;
    assert_eq!(all(&tools, ".tool-list .title"), ["echo"]);
    let page = browser.see(&list).await;
    assert_eq!(all(&page, "#definitions h2 .name"), ["echo"]);
    assert!(text(&page, "#definitions .diff del").contains("the message"));
    assert!(text(&page, "#definitions .diff ins").contains("<b>it</b>, and more"));
    let accept = values(&page, "#definitions form", "action").remove(0);
    assert_eq!(accept, format!("{list}/accept"));
    let digest = values(&page, "#definitions [name=digest]", "value").remove(0);

    let other = send(&browser, &accept, "digest=00").await;
    assert!(other.status.is_client_error(), "{}", other.text());
    let accepted = send(&browser, &accept, &format!("digest={digest}")).await;
    assert_eq!(accepted.headers["location"], format!("{list}?done=accept").as_str());
    has(true).await;
    let page = browser.see(&format!("{list}?done=accept")).await;
    assert_eq!(text(&page, "#told"), "The definition is accepted.");
    let page = browser.see(&format!("{list}?review=accepted")).await;
    assert_eq!(all(&page, "#definitions h2 .name"), ["echo"]);

    let reject = format!("{list}/reject?review=rejected");
    let home = browser.see("/w/default/").await;
    let csrf = values(&home, "body", "data-csrf").remove(0);
    let rejected = browser.post(&reject, FORM, format!("csrf={csrf}&digest={digest}"));
    let rejected = rejected.header("hx-request", "true").send().await;
    assert!(rejected.text().contains("rejected: callers do not get it"), "{}", rejected.text());
    assert!(rejected.text().contains("hx-target=\"#definitions\""), "{}", rejected.text());
    has(false).await;
    let one = browser.see(&format!("{list}?digest={digest}")).await;
    assert_eq!(all(&one, "#definitions .badge"), ["rejected"]);
}

/// Definitions of a server that does not pin them are not reviewed, and the page says how they
/// would be.
#[tokio::test]
async fn d10_a_server_without_pins_says_so() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = browser.see(&format!("{PAGE}/one/definitions")).await;
    let words = text(&page, "#definitions");
    assert!(words.contains("does not pin the definitions"), "{words}");
    assert!(words.contains("\"pinDefinitions\": true"), "{words}");
    assert!(values(&page, "#definitions form", "action").is_empty());
}

/// E139, S27: the configuration names the line of each key, and no value that may be a secret.
#[tokio::test]
async fn s27_the_configuration_names_lines_and_no_secret() {
    const CANARY: &str = "canary-in-the-entry";
    let site = site().await;
    let entry = json!({
        "transport": "http", "url": format!("{}?key={CANARY}", site.api.fixture_url()),
        "headers": { "X-Key": CANARY }, "timeoutMs": 1234,
    });
    add(&site, "two", &entry).await;
    let browser = site.browser("ada").await;
    let answer = browser.look(&format!("{PAGE}/two/configuration")).await;
    assert!(!answer.text().contains(CANARY), "{}", answer.text());
    let page = Html::parse_document(answer.text());
    let words = text(&page, "main");
    assert!(words.contains("Edit line ") && words.contains("settings.json"), "{words}");
    let rows = all(&page, "tbody tr");
    let row = |key: &str| rows.iter().find(|row| row.starts_with(key)).unwrap();
    assert!(row("timeoutMs").contains("1234 ms") && row("timeoutMs").contains("line "));
    assert!(row("headers.X-Key").contains("set, and not shown"), "{rows:?}");
    assert!(row("maxOutputBytes").ends_with("default"), "{rows:?}");
}

/// The log is inert text, further lines arrive by themselves, and a file has all of them.
#[tokio::test]
async fn s11_the_log_of_a_server_is_inert_and_live() {
    let site = site().await;
    let entry = json!({
        "transport": "stdio", "command": "sh",
        "args": ["-c", "echo '<b>awake</b>' >&2; exit 3"],
    });
    add(&site, "sh", &entry).await;
    let browser = site.browser("ada").await;
    let page = browser.see(&format!("{PAGE}/sh/log")).await;
    assert!(text(&page, "#server-log pre").contains("<b>awake</b>"), "{}", text(&page, "main"));
    assert!(all(&page, "#server-log pre b").is_empty());
    let file = browser.look(&format!("{PAGE}/sh/log.txt")).await;
    assert_eq!(file.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(file.headers["x-content-type-options"], "nosniff");
    assert_eq!(file.headers["content-disposition"], "attachment; filename=\"sh.log.txt\"");
    assert!(file.text().lines().any(|line| line.contains("<b>awake</b>")), "{}", file.text());

    let live = values(&page, "[hx-sse\\:connect]", "hx-sse:connect").remove(0);
    let mut stream = Stream::of(browser.request(Method::GET, &live).open().await);
    site.api.post("/api/servers/sh/reconnect").await;
    let events = until(&mut stream, "started again").await;
    assert!(events.contains("log-0") && !events.contains("<b>awake"), "{events}");
}

/// R3: the calls of a server are those of the audit, and the runs that have it say why.
#[tokio::test]
async fn r3_calls_and_runs_of_a_server_are_shown() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let calls = browser.see(&format!("{PAGE}/one/calls")).await;
    let words = text(&calls, "main");
    assert!(words.contains("None of the searched requests was one to this server."), "{words}");
    assert!(words.contains("newest requests of this workspace"), "{words}");
    let bad = browser.look(&format!("{PAGE}/one/calls?after=x")).await;
    assert!(bad.status.is_client_error());
    let asked = json!({ "tools": ["one"] }).to_string();
    site.api.send("POST", "/api/workspaces/default/runs", asked).await.succeeded();
    let runs = browser.see(&format!("{PAGE}/one/runs")).await;
    assert!(text(&runs, "main .rows").contains("it names this server"), "{}", text(&runs, "main"));
    let bad = browser.look(&format!("{PAGE}/one/runs?after=x")).await;
    assert!(bad.status.is_client_error());
}
