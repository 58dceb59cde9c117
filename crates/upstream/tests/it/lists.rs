//! Lists: every page, no endless ones, and no tool that could not be called.

use narthex_testkit::fixture::{Eras, Options, Quirk, Running};
use narthex_upstream::Inventory;
use serde_json::{Value, json};

use super::{
    peer::{Peer, result},
    world::{World, http, in_time},
};

fn names(inventory: &Inventory) -> Vec<&str> {
    inventory.tools.iter().map(|tool| tool.key.as_ref()).collect()
}

#[tokio::test]
async fn e73_lists_are_followed_to_their_last_page() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let whole = Options { eras, extra_tools: 40, ..Options::default() };
        let paged = Options { page_size: Some(7), ..whole.clone() };
        let (whole, paged) =
            (Running::http(whole).await.unwrap(), Running::http(paged).await.unwrap());
        let world = World::new();
        let at_once = in_time(Inventory::fetch(&world.link(&http(&whole.url)).await)).await;
        let by_page = in_time(Inventory::fetch(&world.link(&http(&paged.url)).await)).await;
        let (at_once, by_page) = (at_once.unwrap(), by_page.unwrap());
        assert!(names(&by_page).contains(&"tool_039"));
        assert_eq!(names(&by_page), names(&at_once));
        assert_eq!(by_page.resources.len(), at_once.resources.len());
        assert!(!by_page.prompts.is_empty() && !by_page.templates.is_empty());
    }
}

#[tokio::test]
async fn e73_a_cursor_that_leads_in_circles_is_refused() {
    let options = Options { quirks: vec![Quirk::LoopCursor], ..Options::default() };
    let running = Running::http(options).await.unwrap();
    let link = World::new().link(&http(&running.url)).await;
    let error = in_time(Inventory::fetch(&link)).await.unwrap_err();
    assert!(error.to_string().contains("tools/list gave the same cursor twice"), "{error}");
}

/// A legacy server whose tool list is answered by the page of each cursor.
async fn listing(page: fn(cursor: &str) -> Value) -> Peer {
    Peer::legacy(move |seen| {
        let cursor = seen.body["params"]["cursor"].as_str().unwrap_or_default();
        (seen.rpc() == "tools/list").then(|| result(seen, &page(cursor)))
    })
    .await
}

#[tokio::test]
async fn s12_a_list_that_never_ends_is_refused() {
    let peer = listing(|cursor| {
        let page: u32 = cursor.parse().unwrap_or(0);
        let tools = vec![json!({"name": "x"}); 26_000];
        json!({"tools": tools, "nextCursor": (page + 1).to_string()})
    })
    .await;
    let link = World::new().link(&http(&peer.url)).await;
    let error = in_time(Inventory::fetch(&link)).await.unwrap_err();
    assert!(error.to_string().contains("tools/list has over 50000 entries"), "{error}");
    assert_eq!(peer.seen().iter().filter(|seen| seen.rpc() == "tools/list").count(), 2);
}

#[tokio::test]
async fn e73_an_empty_cursor_is_an_end_and_one_that_is_no_string_is_refused() {
    let peer = listing(|_| json!({"tools": [{"name": "x"}], "nextCursor": ""})).await;
    let world = World::new();
    let inventory = in_time(Inventory::fetch(&world.link(&http(&peer.url)).await)).await.unwrap();
    assert_eq!(names(&inventory), ["x"]);
    let peer = listing(|_| json!({"tools": [], "nextCursor": 7})).await;
    let error = in_time(Inventory::fetch(&world.link(&http(&peer.url)).await)).await.unwrap_err();
    assert!(error.to_string().contains("no string"), "{error}");
}

#[tokio::test]
async fn e72_tools_with_invalid_header_annotations_are_dropped_and_the_others_stay() {
    let tool = |name: &str, header: &str| {
        json!({"name": name, "inputSchema": {"type": "object", "properties":
            {"region": {"type": "string", "x-mcp-header": header}}}})
    };
    let tools = json!([tool("good", "Region"), tool("bad", "not a token"), {"name": "plain"}]);
    let peer = Peer::modern(move |seen| {
        (seen.rpc() == "tools/list").then(|| result(seen, &json!({"tools": tools})))
    })
    .await;
    let link = World::new().link(&http(&peer.url)).await;
    let inventory = in_time(Inventory::fetch(&link)).await.unwrap();
    assert_eq!(names(&inventory), ["good", "plain"]);
    assert!(inventory.tool("good").unwrap().header_params.is_some());
    assert!(inventory.tool("bad").is_none());
}

#[tokio::test]
async fn e71_lists_that_a_server_did_not_declare_are_not_asked_for() {
    let peer = listing(|_| json!({"tools": []})).await;
    let link = World::new().link(&http(&peer.url)).await;
    assert!(in_time(Inventory::fetch(&link)).await.unwrap().is_empty());
    let asked = peer.seen();
    assert!(asked.iter().all(|seen| !seen.rpc().starts_with("prompts/")));
    assert!(asked.iter().all(|seen| !seen.rpc().starts_with("resources/")));
}
