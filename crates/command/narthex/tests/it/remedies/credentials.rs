//! Credentials that a server refuses: the source of each, and how a new one takes effect.

use narthex_testkit::fixture::{Bearer, Options, Running};
use serde_json::json;

use super::World;
use crate::support::Place;

const RIGHT: &str = "canary-right-key";
const WRONG: &str = "canary-wrong-key";

async fn locked() -> Running {
    let options = Options { required_bearer: Some(Bearer(RIGHT.to_owned())), ..Options::default() };
    Running::http(options).await.unwrap()
}

/// E88, D36: a refused key of a run names its header, its key, its secret and the command; once
/// that is pasted, the next run begins.
#[tokio::test(flavor = "multi_thread")]
async fn e88_a_refused_secret_is_named_with_its_command() {
    let (server, world) = (locked().await, World::new());
    world.pipe("secrets set PAY_KEY --workspace team", WRONG).succeeded();
    let auth = json!({ "mode": "apiKey", "valuePrefix": "Bearer ", "key": "${PAY_KEY}" });
    let pay = json!({ "id": "pay", "url": server.url, "auth": auth });
    world.feed("servers apply --file - --workspace team", &pay).succeeded();
    let agent = json!({ "name": "payer", "mcpServers": { "pay": { "ref": "pay" } } });
    world.feed("agents apply --file - --workspace team", &agent).succeeded();
    let begin = "runs create --agent payer --workspace team";
    let refused = world.run(begin);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let told =
        "the header `Authorization` has the secret `PAY_KEY` (`auth.key`): set it again with";
    assert!(refused.stderr.contains(told), "{refused:?}");
    assert!(refused.stderr.contains("then create a new run"), "{refused:?}");
    world.paste(&world.found(&refused, "secrets set PAY_KEY"), RIGHT).succeeded();
    world.run(begin).succeeded();
}

/// E88, E47: a refused key of the live configuration names its header and its key in tables and at
/// the command line; once the entry is corrected the server is back by itself.
#[tokio::test(flavor = "multi_thread")]
async fn e88_a_live_server_reconnects_with_its_corrected_key() {
    let server = locked().await;
    let entry = |key: &str| {
        let auth = json!({ "mode": "apiKey", "valuePrefix": "Bearer ", "key": key });
        json!({ "pay": { "transport": "http", "url": server.url, "auth": auth } })
    };
    let place = Place::with(&entry(WRONG));
    let daemon = place.up();
    let told = "the header `Authorization` has the value of `servers.pay.auth.key`: correct it";
    let reconnect = place.printed("mcp reconnect pay");
    let list = place.run(["mcp", "list"]).succeeded().stderr;
    let call = place.run(["call", "pay", "echo", "message=hello"]).failed(1, &["HTTP 401"]).stderr;
    for shown in [list, call] {
        assert!(shown.contains(told) && shown.contains(&reconnect), "{shown}");
    }
    let check = place.run(["check", "mcp"]);
    let checked = check.stdout.contains("hint: change the named value");
    assert!(check.stdout.contains(told) && checked, "{check:?}");
    place.write("mcp.json", &json!({ "servers": entry(RIGHT) }).to_string());
    daemon.server_in("pay", "ready");
    place.run(["call", "pay", "echo", "message=hello"]).succeeded();
}

/// E88: a key from the daemon's environment is named by its variable.
#[tokio::test(flavor = "multi_thread")]
async fn e88_a_refused_variable_is_named() {
    let server = locked().await;
    let headers = json!({ "Authorization": "Bearer ${env:PAY_KEY}", "X-Team": "a" });
    let pay = json!({ "transport": "http", "url": server.url, "headers": headers });
    let place = Place::with(&json!({ "pay": pay }));
    let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let daemon = place.start_with(&words, |command| {
        command.env("PAY_KEY", WRONG);
    });
    daemon.event("ready");
    let list = place.run(["mcp", "list"]).succeeded().stderr;
    let told = "the header `Authorization` has the variable `PAY_KEY` \
                (`servers.pay.headers.Authorization`): set it again where the daemon starts";
    assert!(list.contains(told) && !list.contains("X-Team"), "{list}");
}
