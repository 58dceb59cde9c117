//! Results that are longer than their server's limits.

use std::num::NonZeroU64;

use narthex_gateway::{Caller, Endpoint, GatewayOptions, Step};
use narthex_model::OutputLimits;
use narthex_testkit::fixture::Eras;
use serde_json::{Value, json};

use super::{
    scripted::Scripts,
    world::{World, request, transparent},
};

const LONG: usize = 200_000;

fn limits(tokens: u64, bytes: u64) -> OutputLimits {
    OutputLimits { tokens: NonZeroU64::new(tokens), bytes: NonZeroU64::new(bytes) }
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

fn prefix(endpoint: &Endpoint, server: &str) -> String {
    match endpoint {
        Endpoint::Aggregated => format!("mcp__{server}__"),
        Endpoint::Transparent(_) => String::new(),
    }
}

async fn blob(world: &World, caller: &Caller, server: &str, bytes: usize) -> Value {
    let name = format!("{}blob", prefix(&caller.endpoint, server));
    world.ask(caller, "tools/call", json!({"name": name, "arguments": {"bytes": bytes}})).await
}

/// R-E20, D2: without a limit in the entry, the aggregated endpoint cuts at 25,000 tokens and the
/// transparent endpoint does not cut.
#[tokio::test]
async fn r_e20_only_the_aggregated_endpoint_has_an_output_limit_by_default() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let world = World::with(&[("one", eras)]).await;
        for caller in world.both_callers(&Endpoint::Aggregated).await {
            let answer = blob(&world, &caller, "one", LONG).await;
            let marker = "… [cut by narthex: 25,000 of 50,000 tokens shown; limit maxOutputTokens]";
            assert!(text(&answer).ends_with(marker), "{eras:?}");
            assert_eq!(text(&answer).len(), 100_000 + marker.len(), "{eras:?}");
            assert_eq!(answer["id"], 7);
            let answer = blob(&world, &caller, "one", 99_999).await;
            assert_eq!(text(&answer).len(), 99_999, "{eras:?}");
        }
        for caller in world.both_callers(&transparent("one")).await {
            let answer = blob(&world, &caller, "one", LONG).await;
            assert_eq!(text(&answer).len(), LONG, "{eras:?}");
        }
        world.gateway.drain().await;
    }
}

/// R-M6, D23: each server has its own limits, at both endpoints, and each cut is counted.
#[tokio::test]
async fn r_m6_each_server_has_its_own_limits_at_both_endpoints() {
    let servers = [("one", Eras::Both), ("two", Eras::Both), ("six", Eras::Both)];
    let world = World::changed(servers, |definition| {
        definition.output = match definition.alias.as_str() {
            "one" => limits(100, 0),
            "two" => limits(0, 1_000),
            _ => limits(0, 0),
        };
    })
    .await;
    for (server, kept) in [("one", 400), ("two", 1_000), ("six", 5_000)] {
        for endpoint in [transparent(server), Endpoint::Aggregated] {
            let caller = world.modern_caller(endpoint.clone());
            let answer = blob(&world, &caller, server, 5_000).await;
            let shown = text(&answer).split('…').next().unwrap();
            assert_eq!(shown.len(), kept, "{server} {endpoint:?}");
        }
    }
    let metrics = world.gateway.metrics().render();
    for server in ["one", "two"] {
        let line = format!("narthex_results_cut_total{{server=\"{server}\"}} 2\n");
        assert!(metrics.contains(&line), "{metrics}");
    }
    assert!(!metrics.contains("narthex_results_cut_total{server=\"six\"}"), "{metrics}");
    world.gateway.drain().await;
}

async fn bytes_of(world: &World, caller: &Caller, params: Value) -> Vec<u8> {
    let mut answering = world.gateway.call(caller, request(caller, "tools/call", params)).await;
    loop {
        match answering.next().await.expect("an answer") {
            Step::Answer(answer) => return answer.payload.into_bytes().to_vec(),
            Step::Message(_) | Step::Break { .. } => {}
        }
    }
}

/// R-E19: below the limit the bytes are the same as without a limit.
#[tokio::test]
async fn r_e19_results_below_the_limit_are_unchanged_byte_for_byte() {
    let servers = [("bound", Eras::Both), ("free", Eras::Both)];
    let world = World::changed(servers, |definition| {
        if definition.alias.as_str() == "bound" {
            definition.output = limits(1_000, 4_000);
        }
    })
    .await;
    for (tool, arguments) in [
        ("add", json!({"a": 1, "b": 2})),
        ("blob", json!({"bytes": 4_000})),
        ("test_multiple_content_types", json!({})),
        ("echo", json!({"message": "\u{1}\"é漢😀\\"})),
    ] {
        let params = json!({"name": tool, "arguments": arguments});
        let [bound, free] = ["bound", "free"].map(|name| world.modern_caller(transparent(name)));
        let bound = bytes_of(&world, &bound, params.clone()).await;
        assert_eq!(bound, bytes_of(&world, &free, params).await, "{tool}");
    }
    world.gateway.drain().await;
}

/// R-E19: each cut is one line in the child's log.
#[tokio::test]
async fn r_e19_a_cut_is_one_line_in_the_servers_log() {
    const TALKS: &str = r#"case $line in *'"method":"tools/call"'*)
        long=$(printf 'x%.0s' $(seq 500))
        answer "{\"content\":[{\"type\":\"text\",\"text\":\"$long\"}]}"; continue ;; esac"#;
    let scripts = Scripts::new();
    let mut server = scripts.server("talks", ["", TALKS, ""]);
    server.output = limits(10, 0);
    let entries = vec![narthex_registry::config::Entry::Server(server)];
    let world = World::settled(entries, GatewayOptions::default()).await;
    let caller = world.modern_caller(transparent("talks"));
    let answer = world.ask(&caller, "tools/call", json!({"name": "act"})).await;
    assert!(text(&answer).starts_with(&format!("{}… [cut by", "x".repeat(40))), "{answer}");
    let link = world.gateway.registry().snapshot().get("talks").unwrap().link.clone().unwrap();
    let told = link.log_tail();
    let about: Vec<_> = told.iter().filter(|line| line.contains("cut by narthex")).collect();
    let expected = "[narthex] tools/call act: cut by narthex: 10 of 125 tokens shown; \
                    limit maxOutputTokens";
    assert_eq!(about, [expected]);
    world.gateway.drain().await;
}

/// R-E19: each cut is one line in the log of a server over HTTP, too.
#[tokio::test]
async fn r_e19_a_cut_is_one_line_in_the_log_of_a_server_over_http() {
    let world = World::changed([("one", Eras::Both)], |server| server.output = limits(10, 0)).await;
    let caller = world.modern_caller(transparent("one"));
    let arguments = json!({"message": "x".repeat(500)});
    world.ask(&caller, "tools/call", json!({"name": "echo", "arguments": arguments})).await;
    let row = world.gateway.registry().get("one").unwrap();
    let told = row.log.tail();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("[narthex] tools/call echo: cut by narthex: 10 of "), "{told:?}");
    world.gateway.drain().await;
}
