//! Reading lists: every page is read, endless lists are cut, and tools that no call can reach are
//! dropped.

use std::{collections::HashSet, time::Duration};

use narthex_model::WarningKind;
use narthex_testkit::{
    clock::SteppedClock,
    fixture::{Eras, Options, Quirk, Running},
};
use narthex_upstream::{Inventory, Link, LinkError};
use serde_json::{Value, json};

use super::{
    peer::{Peer, Reply, error, result},
    world::{World, http, in_time},
};

async fn fetch(link: &Link) -> Result<Inventory, LinkError> {
    Inventory::fetch(link, super::world::DEADLINE / 2).await.map_err(|failed| failed.error)
}

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
        let at_once = in_time(fetch(&world.link(&http(&whole.url)).await)).await;
        let by_page = in_time(fetch(&world.link(&http(&paged.url)).await)).await;
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
    let inventory = in_time(fetch(&link)).await.unwrap();
    let [warning] = inventory.warnings() else { panic!("{:?}", inventory.warnings()) };
    assert_eq!(warning.kind, WarningKind::ListCut);
    assert!(warning.message.contains("tools/list gave the same cursor twice"), "{warning}");
    let page: HashSet<_> = names(&inventory).into_iter().collect();
    assert!(page.len() == inventory.tools.len() && !page.is_empty(), "each tool once");
}

/// A legacy server that answers each request for its tools with the page of the request's cursor.
async fn listing(page: impl Fn(&str) -> Value + Clone + Send + Sync + 'static) -> Peer {
    Peer::legacy(move |seen| {
        let cursor = seen.body["params"]["cursor"].as_str().unwrap_or_default();
        (seen.rpc() == "tools/list").then(|| result(seen, &page(cursor)))
    })
    .await
}

/// E73: an endless list is cut at its limit, with a warning.
#[tokio::test]
async fn s12_a_list_that_never_ends_is_refused() {
    let peer = listing(|cursor| {
        let page: u32 = cursor.parse().unwrap_or(0);
        let tools: Vec<_> =
            (0..26_000).map(|tool| json!({"name": format!("x{page}_{tool}")})).collect();
        json!({"tools": tools, "nextCursor": (page + 1).to_string()})
    })
    .await;
    let link = World::new().link(&http(&peer.url)).await;
    let inventory = in_time(fetch(&link)).await.unwrap();
    assert_eq!(inventory.tools.len(), 50_000);
    let warning = &inventory.warnings()[0].message;
    assert!(warning.contains("tools/list has more than 50000 entries"), "{warning}");
    assert_eq!(peer.seen().iter().filter(|seen| seen.rpc() == "tools/list").count(), 2);
}

#[tokio::test]
async fn e73_an_empty_cursor_ends_a_list_and_a_non_string_is_refused() {
    let peer = listing(|_| json!({"tools": [{"name": "x"}], "nextCursor": ""})).await;
    let world = World::new();
    let inventory = in_time(fetch(&world.link(&http(&peer.url)).await)).await.unwrap();
    assert_eq!(names(&inventory), ["x"]);
    let peer = listing(|_| json!({"tools": [], "nextCursor": 7})).await;
    let inventory = in_time(fetch(&world.link(&http(&peer.url)).await)).await.unwrap();
    assert!(inventory.warnings()[0].message.contains("not a string"), "{:?}", inventory.warnings());
}

#[tokio::test]
async fn e72_only_tools_with_invalid_header_annotations_are_dropped() {
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
    let inventory = in_time(fetch(&link)).await.unwrap();
    assert_eq!(names(&inventory), ["good", "plain"]);
    assert!(inventory.tool("good").unwrap().header_params.is_some());
    assert!(inventory.tool("bad").is_none());
}

#[tokio::test]
async fn e71_undeclared_lists_are_not_requested() {
    let peer = listing(|_| json!({"tools": []})).await;
    let link = World::new().link(&http(&peer.url)).await;
    assert!(in_time(fetch(&link)).await.unwrap().is_empty());
    let asked = peer.seen();
    assert!(asked.iter().all(|seen| !seen.rpc().starts_with("prompts/")));
    assert!(asked.iter().all(|seen| !seen.rpc().starts_with("resources/")));
}

/// A server with tools, prompts and resources that answers the request for the `failing` list with
/// `answer`.
async fn with_a_failing(
    failing: &'static str,
    answer: impl Fn(&super::peer::Seen) -> Reply + Clone + Send + Sync + 'static,
) -> Peer {
    Peer::legacy(move |seen| match seen.rpc() {
        rpc if rpc == failing => Some(answer(seen)),
        "initialize" => Some(result(
            seen,
            &json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "x", "version": "1"},
                "capabilities": {"tools": {}, "prompts": {}, "resources": {}}}),
        )),
        "tools/list" => Some(result(seen, &json!({"tools": [{"name": "a"}]}))),
        "prompts/list" => Some(result(seen, &json!({"prompts": [{"name": "b"}]}))),
        "resources/list" => {
            Some(result(seen, &json!({"resources": [{"uri": "c:d", "name": "c"}]})))
        }
        "resources/templates/list" => Some(result(
            seen,
            &json!({"resourceTemplates": [{"uriTemplate": "e:{f}", "name": "e"}]}),
        )),
        _ => None,
    })
    .await
}

fn counts(inventory: &Inventory) -> [usize; 4] {
    let Inventory { tools, prompts, resources, templates, .. } = inventory;
    [tools.len(), prompts.len(), resources.len(), templates.len()]
}

/// E73: one list fails, in each possible way, with a warning; the other lists are complete.
#[tokio::test]
async fn e73_a_failing_list_does_not_affect_other_lists() {
    let lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
    for (index, list) in lists.into_iter().enumerate() {
        for way in ["-32603", "500", "no JSON", "silence", "401", "403", "text", "object"] {
            let peer = with_a_failing(list, move |seen| match way {
                "-32603" => error(200, seen, -32603),
                "500" => super::peer::text(500, "text/plain", "NPE"),
                "no JSON" => super::peer::text(200, "application/json", "{"),
                "401" => super::peer::text(401, "text/plain", "no scope"),
                "403" => super::peer::text(403, "text/plain", "no scope"),
                "text" => result(seen, &json!({ member_of(list): "no" })),
                "object" => result(seen, &json!({ member_of(list): {"a": 1} })),
                _ => Reply::Never,
            })
            .await;
            let link = World::new().link(&http(&peer.url)).await;
            let is_silent = way == "silence";
            let within = if is_silent { Duration::from_secs(3) } else { super::world::DEADLINE };
            // The clock proceeds by small steps, so that the other lists arrive in time, however
            // busy the machine is.
            let _clock = is_silent.then(|| SteppedClock::by(Duration::from_millis(10)));
            let fetched = in_time(Inventory::fetch(&link, within)).await;
            if list == "tools/list" && ["silence", "401", "403"].contains(&way) {
                let failed = fetched.unwrap_err();
                let is_expected = match failed.error {
                    LinkError::Deadline(_) => way == "silence",
                    LinkError::AuthRejected { status } => way == status.to_string(),
                    _ => false,
                };
                assert!(is_expected && failed.to_string().starts_with("`tools/list` failed: "));
                continue;
            }
            let inventory = fetched.unwrap();
            let mut wanted = [1; 4];
            wanted[index] = 0;
            assert_eq!(counts(&inventory), wanted, "{list} {way}");
            let [warning] = inventory.warnings() else { panic!("{:?}", inventory.warnings()) };
            assert_eq!(warning.kind, WarningKind::ListFailed);
            let what = ["tools", "prompts", "resources", "resource templates"][index];
            let expected =
                format!("`{list}` failed, so the server has no {what} until it is listed again: ");
            assert!(warning.message.starts_with(&expected), "{warning}");
            assert_eq!(inventory.unlisted_tools().is_some(), index == 0, "{list} {way}");
        }
    }
}

fn member_of(list: &str) -> &'static str {
    match list {
        "tools/list" => "tools",
        "prompts/list" => "prompts",
        "resources/list" => "resources",
        _ => "resourceTemplates",
    }
}

/// E73: a server that refuses the credential for each list counts as refusing the credential. An
/// empty list may be written as null or as an object.
#[tokio::test]
async fn e73_a_credential_refused_for_every_list_refuses_the_server() {
    let peer = Peer::legacy(|seen| match seen.rpc() {
        "initialize" => Some(result(
            seen,
            &json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "x", "version": "1"},
                "capabilities": {"prompts": {}, "resources": {}}}),
        )),
        "prompts/list" | "resources/list" | "resources/templates/list" => {
            Some(super::peer::text(403, "text/plain", "no scope"))
        }
        _ => None,
    })
    .await;
    let link = World::new().link(&http(&peer.url)).await;
    let failed = in_time(fetch(&link)).await.unwrap_err();
    assert!(matches!(failed, LinkError::AuthRejected { status: 403 }), "{failed}");
    let known = Inventory::default();
    assert!(in_time(Inventory::fetch_anew(&link, super::world::DEADLINE, &known)).await.is_none());
    for empty in [json!(null), json!({})] {
        let peer = listing(move |_| json!({"tools": empty})).await;
        let link = World::new().link(&http(&peer.url)).await;
        let inventory = in_time(fetch(&link)).await.unwrap();
        assert!(inventory.is_empty() && inventory.warnings().is_empty());
    }
}

/// E81: merged lists leave out an output schema that clients cannot compile. This is also true if
/// so many other schemas come with it that another thread compiles them.
#[tokio::test]
async fn e81_an_output_schema_that_does_not_compile_causes_a_warning() {
    for count in [1, 600] {
        let fine = json!({"type": "object", "properties": {"a": {"pattern": "^a\\w"}}});
        let odd = json!({"type": "object", "properties": {"a": {"pattern": "["}}});
        let tool = |name: String, schema: &Value| json!({"name": name, "outputSchema": schema});
        let mut tools: Vec<_> = (0..count).map(|index| tool(format!("t{index}"), &fine)).collect();
        tools.push(tool("odd".to_owned(), &odd));
        let peer = listing(move |_| json!({ "tools": tools })).await;
        let inventory = in_time(fetch(&World::new().link(&http(&peer.url)).await)).await.unwrap();
        let [warning] = inventory.warnings() else { panic!("{:?}", inventory.warnings()) };
        assert_eq!(warning.kind, WarningKind::DefinitionRepaired);
        assert!(warning.message.ends_with("refuse: `odd` (`outputSchema`)"), "{warning}");
        let tool = inventory.tool("odd").unwrap();
        assert_eq!(&tool.merged().unwrap()[..], br#"{"name":"odd"}"#);
        assert_eq!(inventory.tools[0].merged(), Some(&inventory.tools[0].raw));
    }
}

/// E73: a list that fails later keeps its entries. If no list of a server works, the first reading
/// fails.
#[tokio::test]
async fn e73_a_list_that_fails_later_keeps_its_entries() {
    let peer = with_a_failing("tools/list", |seen| error(200, seen, -32603)).await;
    let link = World::new().link(&http(&peer.url)).await;
    let known = narthex_upstream::InventoryEntry::new("k", "{}".into());
    let known = Inventory::new([(narthex_upstream::Listed::Tool, known)]);
    let anew = in_time(Inventory::fetch_anew(&link, super::world::DEADLINE, &known)).await.unwrap();
    assert_eq!((names(&anew), counts(&anew)), (vec!["k"], [1; 4]));
    let peer =
        Peer::legacy(|seen| (seen.rpc() == "tools/list").then(|| error(200, seen, -1))).await;
    let link = World::new().link(&http(&peer.url)).await;
    let error = in_time(fetch(&link)).await.unwrap_err();
    assert!(error.to_string().contains("error -1"), "{error}");
}

/// E73: a name that is listed twice appears once, with its first definition and a warning.
#[tokio::test]
async fn e73_a_name_that_is_listed_twice_appears_once() {
    let peer = listing(|_| {
        json!({"tools": [
            {"name": "a", "x": 1}, {"name": "b"}, {"name": "a", "x": 2}, {"name": "b"},
        ]})
    })
    .await;
    let inventory = in_time(fetch(&World::new().link(&http(&peer.url)).await)).await.unwrap();
    assert_eq!(names(&inventory), ["a", "b"]);
    assert_eq!(&*inventory.tools[0].raw, br#"{"name":"a","x":1}"#);
    let [warning] = inventory.warnings() else { panic!("{:?}", inventory.warnings()) };
    assert_eq!(warning.kind, WarningKind::ListedTwice);
    assert!(warning.message.ends_with(": `a`"), "{warning}");
}
