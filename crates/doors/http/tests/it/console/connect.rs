//! Tests of the page on which a client is connected: texts, files of one's own machine, and the
//! clients that arrive.

use std::path::Path;

use http::{Method, StatusCode};
use narthex_client_files::{connect::OwnMachine, plan::OwnDaemon};
use narthex_http::HttpOptions;

use super::{all, values};
use crate::{
    browser::Site,
    world::{SOON, Stream},
};

const CONNECT: &str = "/w/default/connect";

fn none(_: &str) -> Option<String> {
    None
}

/// A site whose daemon runs as the owner of this home folder.
async fn at_home(place: &Path) -> Site {
    let mut site = Site::new().await;
    let home = place.join("home");
    fs_err::create_dir_all(home.join(".cursor")).unwrap();
    let machine = OwnMachine {
        home,
        variable: none,
        program: "narthex".to_owned(),
        arguments: Vec::new(),
        daemon: OwnDaemon { data: place.join("data"), addresses: Vec::new() },
        record: place.join("setup"),
        lock: place.join("setup.lock"),
    };
    let world = &mut site.api.world;
    let options = HttpOptions { own_machine: Some(machine), ..world.options.clone() };
    world.router = narthex_http::router(world.gateway.clone(), options);
    site
}

/// A file is written and brought back by buttons, with the lines that the page has shown.
#[tokio::test]
async fn a_file_of_ones_own_machine_is_written_and_brought_back() {
    let place = tempfile::tempdir().unwrap();
    let site = at_home(place.path()).await;
    let file = place.path().join("home/.cursor/mcp.json");
    let before = r#"{"mcpServers": {"mail": {"command": "x", "env": {"KEY": "canary-1"}}}}"#;
    fs_err::write(&file, before).unwrap();
    let browser = site.browser("ada").await;
    let cursor = format!("{CONNECT}?client=cursor");
    let answer = browser.look(&cursor).await;
    assert!(!answer.text().contains("canary"), "{}", answer.text());
    let page = browser.see(&cursor).await;
    let lines = all(&page, "#file ins");
    assert!(lines.iter().any(|line| line.contains("\"connect\"")), "{lines:?}");
    let write = values(&page, "#file form", "action").remove(0);

    let written = browser.press(&write).await;
    assert_eq!(written.status, StatusCode::SEE_OTHER, "{}", written.text());
    let text = fs_err::read_to_string(&file).unwrap();
    assert!(text.contains("canary-1") && text.contains("\"narthex\""), "{text}");
    let again = browser.press(&write).await;
    assert_eq!(again.status, StatusCode::CONFLICT, "the file is another one now");
    let page = browser.see(&cursor).await;
    let undo = values(&page, "#file form", "action");
    assert_eq!(undo, [format!("{CONNECT}/cursor/undo")]);
    assert_eq!(browser.press(&undo[0]).await.status, StatusCode::SEE_OTHER);
    assert_eq!(fs_err::read_to_string(&file).unwrap(), before);
    let late = browser.press(&undo[0]).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
}

/// S4, S27: elsewhere no file is written, and the texts to copy have the address and no token.
#[tokio::test]
async fn s4_elsewhere_the_text_is_there_to_copy() {
    let site = Site::new().await;
    let browser = site.browser("ada").await;
    let page = browser.see(CONNECT).await;
    let clients = all(&page, "main .filter");
    for name in ["Claude Code", "Claude Desktop", "claude.ai", "Cursor", "another client"] {
        assert!(clients.contains(&name.to_owned()), "{name}: {clients:?}");
    }
    for client in ["claude-code", "cursor", "codex", "zed", "claude-desktop", "claude-ai", "other"]
    {
        let path = format!("{CONNECT}?client={client}");
        let answer = browser.look(&path).await;
        assert_eq!(answer.status, StatusCode::OK, "{client}: {}", answer.text());
        for word in ["Bearer", "nxt_", "nxc_", "token_header"] {
            assert!(!answer.text().contains(word), "{client}: {word}");
        }
        let page = browser.see(&path).await;
        assert!(values(&page, "#file form", "action").is_empty(), "{client}");
        assert!(!all(&page, "#ways code").is_empty(), "{client}");
    }
    for verb in ["write", "undo"] {
        let refused = browser.press(&format!("{CONNECT}/cursor/{verb}")).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{verb}");
    }
    let unknown = browser.look(&format!("{CONNECT}?client=nothing")).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

/// S18: on one's own machine too, files are for operators in the workspace of the configuration.
#[tokio::test]
async fn s18_files_are_written_for_operators_alone() {
    let place = tempfile::tempdir().unwrap();
    let site = at_home(place.path()).await;
    site.api.send("POST", "/api/workspaces", r#"{"id":"team"}"#).await.succeeded();
    let bob = site.api.send("POST", "/api/principals", r#"{"name":"bob"}"#).await.succeeded();
    let members = format!("/api/workspaces/default/members/{}", bob["id"].as_str().unwrap());
    site.api.send("PUT", &members, r#"{"roles":["admin"]}"#).await.succeeded();
    let (ada, bob) = (site.browser("ada").await, site.browser("bob").await);
    for (browser, workspace) in [(&bob, "default"), (&ada, "team")] {
        let path = format!("/w/{workspace}/connect");
        let page = browser.see(&format!("{path}?client=cursor")).await;
        assert!(values(&page, "#file form", "action").is_empty(), "{workspace}");
        let refused = browser.press(&format!("{path}/cursor/write?seal=none")).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{workspace}");
    }
    assert!(!place.path().join("home/.cursor/mcp.json").exists());
}

/// A client that connects after the page was opened is there, and the stream of the page tells of
/// it.
#[tokio::test]
async fn a_client_is_seen_to_arrive() {
    let site = Site::new().await;
    let browser = site.browser("ada").await;
    let page = browser.see(CONNECT).await;
    assert!(all(&page, "#arrived").remove(0).starts_with("Waiting:"));
    let live = values(&page, "[hx-sse\\:connect]", "hx-sse:connect").remove(0);
    let again = values(&page, "main .spread a.button", "href").remove(0);
    let mut stream = Stream::of(browser.request(Method::GET, &live).open().await);
    site.api.world.session("/mcp", "2025-11-25").await;
    let event = tokio::time::timeout(SOON, stream.next()).await.unwrap().unwrap();
    let event = std::str::from_utf8(&event.data).unwrap();
    assert!(event.contains("hx-target=\"#arrived\"") && event.contains("<bdi>t</bdi>"), "{event}");
    let page = browser.see(&again).await;
    let arrived = all(&page, "#arrived").remove(0);
    assert!(arrived.contains("calls itself t 1 connected"), "{arrived}");
    // An earlier arrival is not taken for a new one.
    assert!(all(&browser.see(CONNECT).await, "#arrived").remove(0).starts_with("Waiting:"));
}
