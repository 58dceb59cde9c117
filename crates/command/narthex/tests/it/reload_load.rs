//! The set of servers is applied anew, again and again, while 64 connections call (E40, E41, D11).

use std::{path::Path, sync::Arc};

use narthex_model::Provenance;
use narthex_registry::{Layer, ServerResult, config, layers};
use narthex_testkit::fixture::{Options, Running};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    support::fixture_entry,
    world::{Client, Stream, World, call, http_entry, legacy, modern},
};

const CONNECTIONS: usize = 64;
const ROUNDS: u64 = 100;
/// Half of them are changed while they are called.
const CALLED: [&str; 4] = ["same", "same-child", "changed", "changed-child"];

/// The servers of one round.
fn servers(urls: &[String; 2], round: u64) -> Value {
    let mut changed = http_entry(&urls[1]);
    changed["timeoutMs"] = json!(60_000 + round);
    let mut changed_child = fixture_entry();
    changed_child["env"] = json!({"ROUND": (round / 4).to_string()});
    let mut servers = json!({
        "same": http_entry(&urls[0]),
        "same-child": fixture_entry(),
        "changed": changed,
        "changed-child": changed_child,
    });
    if round % 2 == 1 {
        servers["guest"] = http_entry(&urls[0]);
    }
    if round == ROUNDS {
        servers["last"] = http_entry(&urls[0]);
    }
    servers
}

/// Puts a round's servers in place, and waits until all are ready.
async fn apply(world: &World, folder: &Path, servers: &Value) {
    let file = folder.join("mcp.json");
    fs_err::write(&file, json!({ "servers": servers }).to_string()).unwrap();
    let loaded = config::load_file(&file, folder, &|_| None).unwrap();
    let layer =
        Layer { provenance: Provenance::Workspace, file: None, entries: loaded.entries.clone() };
    let applied = world.app.registry().apply(layers::compose(&[layer])).unwrap();
    let results = tokio::time::timeout(crate::world::SOON, applied.results()).await.unwrap();
    assert!(results.iter().all(ServerResult::is_ready), "{results:?}");
}

/// A connection that calls the same server until the test stops it. Every answer must be right.
struct Caller {
    client: Client,
    number: usize,
    server: &'static str,
    is_aggregated: bool,
}

impl Caller {
    async fn open(world: &World, number: usize) -> Self {
        let server = CALLED[number % CALLED.len()];
        let is_aggregated = (number / 4).is_multiple_of(2);
        let path = if is_aggregated { "/mcp".to_owned() } else { format!("/mcp/{server}") };
        let client = match (number / 8).is_multiple_of(2) {
            true => world.legacy(&path, json!({})).await,
            false => world.client(&path),
        };
        Self { client, number, server, is_aggregated }
    }

    async fn call_until(mut self, stop: CancellationToken) -> u64 {
        let prefix = format!("mcp__{}__", self.server);
        let name = format!("{}echo", if self.is_aggregated { prefix.as_str() } else { "" });
        let mut calls = 0;
        while !stop.is_cancelled() {
            calls += 1;
            let message = format!("{} of connection {}", calls, self.number);
            let params = call(&name, json!({"message": message}));
            let reply = match self.client.session {
                Some(_) => {
                    let request = legacy(calls, "tools/call", params).to_string();
                    self.client.post(&[], request).await
                }
                None => self.client.modern(&modern(calls, "tools/call", params)).await,
            };
            let answer = reply.json();
            let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
            let is_right = text.contains(&message) && answer["result"]["isError"] != true;
            assert!(is_right, "{}, call {message}: {answer}", self.server);
        }
        calls
    }
}

/// Lists at each notification that the list has changed, until the last server is there. One lost
/// word, and it never is.
async fn follow(mut client: Client, mut stream: Stream) -> u64 {
    let mut told = 0;
    loop {
        let message = stream.next().await.expect("the stream lives");
        if !message.contains("notifications/tools/list_changed") {
            continue;
        }
        told += 1;
        let reply = client.post(&[], legacy(told, "tools/list", json!({})).to_string()).await;
        let list = reply.json();
        let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
        let has = |name: &str| tools.iter().any(|tool| tool["name"] == name);
        assert!(has("mcp__same__echo"), "what is the same never goes away");
        if has("mcp__last__echo") {
            return told;
        }
    }
}

/// E40, E41, E42, E74: no call fails, neither on servers that stay nor on servers that change. All
/// clients are notified of each change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e41_no_call_fails_while_the_set_is_applied_a_hundred_times() {
    let folder = tempfile::tempdir().unwrap();
    let fixtures = [
        Running::http(Options::default()).await.unwrap(),
        Running::http(Options::default()).await.unwrap(),
    ];
    let urls = [fixtures[0].url.clone(), fixtures[1].url.clone()];
    let world = World::over(&servers(&urls, 0)).await;
    let unchanged = |name: &str| world.app.registry().get(name).unwrap().connection;
    let before = ["same", "same-child"].map(unchanged);
    let stop = CancellationToken::new();
    let mut calling = JoinSet::new();
    for number in 0..CONNECTIONS {
        let caller = Caller::open(&world, number).await;
        calling.spawn(caller.call_until(stop.clone()));
    }
    let follower = world.legacy("/mcp", json!({})).await;
    let stream = follower.listen().await;
    let mut following = JoinSet::new();
    following.spawn(follow(follower, stream));
    for round in 1..=ROUNDS {
        apply(&world, folder.path(), &servers(&urls, round)).await;
        if let Some(failed) = calling.try_join_next() {
            panic!("in round {round}: {failed:?}");
        }
    }
    let told = tokio::time::timeout(crate::world::SOON, following.join_next()).await;
    assert!(told.expect("the last change is told").unwrap().unwrap() > 1);
    stop.cancel();
    let mut calls = 0;
    while let Some(done) = calling.join_next().await {
        let own = done.unwrap();
        assert!(own > 0);
        calls += own;
    }
    assert_eq!(["same", "same-child"].map(unchanged), before, "E42: no change named these servers");
    let records = world.audit().await;
    let is_call = |record: &&Value| record["method"] == "tools/call";
    let calls_recorded = records.iter().filter(is_call).count();
    assert_eq!(u64::try_from(calls_recorded).unwrap(), calls);
    assert!(records.iter().filter(is_call).all(|record| record["outcome"] == "ok"));
    drop(Arc::new(fixtures));
}
