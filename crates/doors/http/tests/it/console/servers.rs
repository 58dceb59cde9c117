//! Tests of the connected services: rows, actions, filters and events.

use http::{Method, StatusCode};
use serde_json::json;

use super::{Html, all, site, values};
use crate::world::{SOON, Stream};

const LIST: &str = "/w/default/servers";

/// E3, E4: each action of a row does what the API does, and the row shows its result.
#[tokio::test]
async fn e4_the_actions_of_a_row_do_what_the_api_does() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = browser.see(LIST).await;
    assert_eq!(all(&page, "#servers .title"), ["one"]);
    assert_eq!(all(&page, "#servers .badge"), ["ready"]);
    let buttons = values(&page, "#servers form", "action");
    assert_eq!(buttons, ["test", "reconnect", "disable"].map(|verb| format!("{LIST}/one/{verb}")));

    let disabled = browser.press(&format!("{LIST}/one/disable")).await;
    assert_eq!(disabled.status, StatusCode::SEE_OTHER);
    let back = disabled.headers["location"].to_str().unwrap();
    assert_eq!(back, format!("{LIST}?done=disable&name=one"));
    let page = browser.see(back).await;
    assert_eq!(all(&page, "#told"), ["one is disabled."]);
    assert_eq!(all(&page, "#servers .badge"), ["disabled"]);
    assert_eq!(site.api.get("/api/servers/one").await["state"], "disabled");

    browser.press(&format!("{LIST}/one/enable")).await;
    assert_eq!(site.api.get("/api/servers/one").await["state"], "ready");
    let tested = browser.press(&format!("{LIST}/one/test")).await;
    let tested = Html::parse_document(tested.text());
    assert_eq!(all(&tested, "tbody th")[0], "connect");
    assert!(all(&tested, "caption")[0].starts_with("Each stage is fine."));
    let read = browser.press("/w/default/reload").await;
    assert_eq!(read.headers["location"], format!("{LIST}?done=reload&name=").as_str());
    let tools = browser.see(&format!("{LIST}/one/tools")).await;
    let names = all(&tools, ".tool-list .title");
    assert!(names.contains(&"echo".to_owned()), "{names:?}");
}

/// The script gets a part of the page for an action, and a failure says its kind and its remedy.
#[tokio::test]
async fn parts_are_for_the_script() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = browser.see(LIST).await;
    let csrf = values(&page, "body", "data-csrf").remove(0);
    let press = async |verb: &str| {
        let path = format!("{LIST}/{verb}");
        let request = browser.post(&path, super::FORM, format!("csrf={csrf}"));
        request.header("hx-request", "true").send().await
    };
    let done = press("one/reconnect").await;
    assert_eq!(done.status, StatusCode::OK);
    assert!(done.text().starts_with("<hx-partial hx-target=\"#told\""), "{}", done.text());
    assert!(done.text().contains("one is ready, with"), "{}", done.text());
    let gone = press("gone/disable").await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    assert!(gone.text().contains("<b>not_found</b>"), "{}", gone.text());
    let tools = browser.request(Method::GET, &format!("{LIST}/one/tools"));
    let tools = tools.header("hx-request", "true").send().await;
    assert!(!tools.text().contains("<html") && tools.text().contains("echo"));
}

/// E142, S27: a server is added from the page as by the command line. A refusal is at its field,
/// stores nothing, and repeats no secret.
#[tokio::test]
async fn e142_a_server_is_added_from_the_page() {
    const ADD: &str = "/w/default/add-server";
    let site = site().await;
    let browser = site.browser("ada").await;
    let list = browser.see(LIST).await;
    assert!(values(&list, ".head a", "href").contains(&ADD.to_owned()));
    let csrf = values(&browser.see(ADD).await, "body", "data-csrf").remove(0);
    let send = async |pairs: &[(&str, &str)]| {
        let hex = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
        let pairs: Vec<_> =
            pairs.iter().map(|(name, value)| format!("{name}={}", hex(value))).collect();
        let body = format!("csrf={csrf}&{}", pairs.join("&"));
        browser.post(ADD, super::FORM, body).send().await
    };
    let added = send(&[("name", "two"), ("server", "http://127.0.0.1:9/mcp")]).await;
    assert_eq!(added.status, StatusCode::SEE_OTHER, "{}", added.text());
    assert_eq!(added.headers["location"], format!("{LIST}/two?done=add").as_str());
    let page = browser.see(&format!("{LIST}/two?done=add")).await;
    assert!(all(&page, "#told").remove(0).starts_with("two is added"));

    let secret = "API_KEY=canary-7";
    let refusals = [
        (vec![("name", "two"), ("server", "http://127.0.0.1:8/mcp")], "#f-name\\.fault"),
        (vec![("name", "Three"), ("server", "http://127.0.0.1:8/mcp")], "#f-name\\.fault"),
        (vec![("name", "three"), ("server", "")], "#f-server\\.fault"),
        (vec![("name", "three"), ("server", "{\"url\": 1}")], "#f-server\\.fault"),
        (vec![("name", "three"), ("server", "a"), ("variables", secret)], "#f-variables\\.fault"),
    ];
    for (pairs, fault) in refusals {
        let refused = send(&pairs).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{pairs:?}");
        assert!(!refused.text().contains("canary"), "{pairs:?}");
        let page = Html::parse_document(refused.text());
        assert_eq!(all(&page, fault).len(), 1, "{pairs:?}");
        assert_eq!(values(&page, "#f-name", "value"), [pairs[0].1]);
    }
    assert_eq!(
        site.api.ask("GET", "/api/servers/three").send().await.status,
        StatusCode::NOT_FOUND
    );
    let again = [("name", "two"), ("server", "http://127.0.0.1:8/mcp"), ("replace", "on")];
    assert_eq!(send(&again).await.status, StatusCode::SEE_OTHER);
}

/// R1, R5: filters are in the address, shown, and searched on the server.
#[tokio::test]
async fn filters_are_in_the_address() {
    let site = site().await;
    let two = json!({ "transport": "http", "url": "http://127.0.0.1:9", "disabled": true });
    site.api.send("PUT", "/api/servers/two", two.to_string()).await.succeeded();
    let browser = site.browser("ada").await;
    let names = async |query: &str| {
        let page = browser.see(&format!("{LIST}{query}")).await;
        (all(&page, "#servers .title"), all(&page, "#servers .filter[aria-current]"))
    };
    assert_eq!(names("").await.0, ["one", "two"]);
    assert_eq!(names("?state=ready").await, (vec!["one".to_owned()], vec!["ready 1".to_owned()]));
    assert_eq!(names("?q=TW").await.0, ["two"]);
    let page = browser.see(&format!("{LIST}?q=nothing")).await;
    assert!(all(&page, "#servers").remove(0).contains("No server fits"));
    for bad in ["?state=broken", "?unknown=1"] {
        let answer = browser.look(&format!("{LIST}{bad}")).await;
        assert!(answer.status.is_client_error(), "{bad}");
    }
}

/// E65: the stream of the page sends a row when it changes, as the page shows it, and nothing
/// before that.
#[tokio::test]
async fn e65_a_changed_row_is_sent_as_the_page_shows_it() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = browser.see(LIST).await;
    let live = values(&page, "[hx-sse\\:connect]", "hx-sse:connect").remove(0);
    assert!(live.starts_with("/w/default/live?topics=waits%2Cservers&mark="), "{live}");
    let id = values(&page, "#servers .rows > li", "id").remove(0);
    let mut stream = Stream::of(browser.request(Method::GET, &live).open().await);
    site.api.post("/api/servers/one/disable").await.succeeded();
    let mut events = String::new();
    tokio::time::timeout(SOON, async {
        while !events.contains(">disabled<") {
            let event = stream.next().await.unwrap();
            events.push_str(std::str::from_utf8(&event.data).unwrap());
        }
    })
    .await
    .unwrap();
    let page = browser.look(LIST).await.text().replace('\n', " ");
    let (_, row) = page.split_once(&format!("<li id=\"{id}\">")).unwrap();
    let (row, _) = row.split_once("</li>").unwrap();
    assert!(events.contains(row), "{events}");

    // A login session has four streams.
    let mut open = vec![stream];
    for _ in 0..3 {
        open.push(Stream::of(browser.request(Method::GET, &live).open().await));
    }
    let more = browser.request(Method::GET, &live).send().await;
    assert_eq!(more.status, StatusCode::TOO_MANY_REQUESTS);
}
