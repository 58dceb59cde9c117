//! Names of servers that list later than a pinned server.

use hyper::StatusCode;
use narthex_testkit::fixture::Running;
use serde_json::{Value, json};

use super::{
    super::{
        HOME,
        freezing::{Seen, fixture},
    },
    LIST, echo, everywhere_there,
};
use crate::{
    runs::Operator,
    world::{SOON, World, call},
};

/// A tool of `docs` that can be taken for one of a server `rival`.
const LIKE: &str = "rival_greet";

/// A daemon with `docs`, which is pinned and lists the tool, and these besides.
async fn world_with(server: &Running, others: &[(&str, &Running)]) -> World {
    let mut like = echo("Says something");
    like["name"] = json!(LIKE);
    server.fixture.redefine(LIST, "echo", &[echo("Returns the message"), like]);
    let docs = json!({ "transport": "http", "url": server.url, "pinDefinitions": true });
    let mut servers = json!({ "docs": docs });
    for (name, other) in others {
        servers[*name] = json!({ "transport": "http", "url": other.url });
    }
    World::operated(&servers).await
}

async fn held(operator: &Operator<'_>) -> Value {
    let waiting = async {
        loop {
            let waiting = operator.definitions("quarantined").await;
            if let [one] = &waiting[..] {
                return one.clone();
            }
            assert!(waiting.is_empty(), "{waiting:?}");
        }
    };
    tokio::time::timeout(SOON, waiting).await.expect("no definition is under review")
}

/// The answer to a call of the tool; `x` if it is there.
async fn says(world: &World) -> String {
    let mut client = Seen::new(world, &world.token, "/mcp/docs");
    let reply = client.ask("tools/call", call(LIKE, json!({ "message": "x" }))).await;
    let answer = reply.json();
    match answer["result"]["isError"].as_bool() {
        Some(true) => reply.kind(),
        _ => answer["result"].to_string(),
    }
}

/// S24: a known tool is put under review when another server of the file, which pins nothing, lists
/// a tool with a similar name. Once a human has accepted the tool, it stays.
#[tokio::test(flavor = "multi_thread")]
async fn s24_names_that_are_listed_later_count() {
    let (server, rival) = (fixture().await, fixture().await);
    let mut other = echo("Waves");
    other["name"] = json!("wave");
    rival.fixture.redefine(LIST, "greet", std::slice::from_ref(&other));
    let world = world_with(&server, &[("rival", &rival)]).await;
    let operator = Operator(&world);
    assert!(operator.definitions("quarantined").await.is_empty());
    assert_ne!(says(&world).await, "definition_changed");

    rival.fixture.redefine(LIST, "greet", &[]);
    let it = held(&operator).await;
    let like = json!({ "server": "rival", "name": "greet", "how": "prefixed" });
    assert_eq!((&it["like"], &it["reason"]), (&like, &json!("look_alike")), "{it}");
    let hears = async { while says(&world).await != "definition_changed" {} };
    tokio::time::timeout(SOON, hears).await.expect("a client still has it");
    let row = operator.get("/api/servers/docs").await;
    assert_eq!(row["definitions_held_back"], 1, "{row}");
    everywhere_there(&world, &world.token).await;

    let reply = operator.decide("accept", &[it["digest"].as_str().unwrap()]).await;
    assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
    assert_ne!(says(&world).await, "definition_changed");
    // Neither names that come nor a start take back the decision of a human.
    rival.fixture.redefine(LIST, "greet", &[other]);
    rival.fixture.redefine(LIST, "greet", &[]);
    let world = World::operated_in(world.stop().await).await;
    let operator = Operator(&world);
    assert_ne!(says(&world).await, "definition_changed");
    assert!(operator.definitions("quarantined").await.is_empty());
}

/// S24: the same for a server of the catalog, once a run has listed its tools, and in the other
/// direction: a tool of the catalog is under review in runs that begin after a live server has
/// listed a tool with a similar name.
#[tokio::test(flavor = "multi_thread")]
async fn s24_names_of_catalog_and_live_servers_are_compared_with_each_other() {
    let (server, rival) = (fixture().await, fixture().await);
    let mut mirrored = echo("Says something");
    mirrored["name"] = json!("docs_wave");
    let plain = echo("Returns the message");
    rival.fixture.redefine(LIST, "echo", &[plain, mirrored]);
    let world = world_with(&server, &[]).await;
    let operator = Operator(&world);
    assert_ne!(says(&world).await, "definition_changed");
    operator.put("mcp-servers/rival", &json!({ "id": "rival", "url": rival.url })).await;
    let attached = json!({ "rival": { "ref": "rival" } });
    operator.put("agents/rival", &json!({ "name": "rival", "mcpServers": attached })).await;
    operator.begin(&json!({ "agent_name": "rival" })).await;
    let it = held(&operator).await;
    assert_eq!(it["like"]["server"], "rival", "{it}");
    let hears = async { while says(&world).await != "definition_changed" {} };
    tokio::time::timeout(SOON, hears).await.expect("a client still has it");

    let path = format!("{HOME}/mcp-servers/rival/definitions?state=quarantined");
    let of_rival = async || operator.get(&path).await["items"].take();
    assert_eq!(of_rival().await, json!([]));
    let mut wave = echo("Waves");
    wave["name"] = json!("wave");
    server.fixture.redefine(LIST, "greet", &[wave]);
    let waiting = async {
        loop {
            operator.begin(&json!({ "agent_name": "rival" })).await;
            if let Some(one) = of_rival().await.get(0) {
                return one.clone();
            }
        }
    };
    let it = tokio::time::timeout(SOON, waiting).await.expect("no definition is under review");
    let like = json!({ "server": "docs", "name": "wave", "how": "prefixed" });
    assert_eq!((&it["like"], &it["name"]), (&like, &json!("docs_wave")), "{it}");
}
