//! A run reaches the servers that it has and no others, whatever its client can be asked (D5).
#![expect(clippy::excessive_nesting, reason = "each kind of client is asked each kind of question")]

use std::{collections::BTreeSet, sync::Arc};

use narthex_gateway::{Caller, Endpoint, GatewayOptions};
use narthex_policy::RunPolicy;
use narthex_testkit::fixture::Eras;
use serde_json::{Value, json};

use super::{
    scripted::Scripts,
    world::{World, alias, legacy, parse, transparent},
};

/// Capabilities of clients that can be asked.
fn capabilities() -> [Value; 4] {
    [
        json!({"roots": {"listChanged": true}}),
        json!({"sampling": {}}),
        json!({"elicitation": {}}),
        json!({"roots": {}, "sampling": {}, "elicitation": {}, "tasks": {}}),
    ]
}

fn only(name: &str) -> RunPolicy {
    RunPolicy::Attached(BTreeSet::from([alias(name)]))
}

/// Sends one request of each kind to all servers of a run, or to one server by its name.
async fn does_everything(world: &World, caller: &Caller) {
    let requests = [
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("logging/setLevel", json!({"level": "debug"})),
        ("tasks/list", json!({})),
        ("tools/call", json!({"name": "mcp__other__echo", "arguments": {"message": "x"}})),
        ("tools/call", json!({"name": "echo", "arguments": {"message": "x"}})),
        ("prompts/get", json!({"name": "mcp__other__test_simple_prompt"})),
        ("resources/read", json!({"uri": "narthex://other/test://a"})),
        ("resources/subscribe", json!({"uri": "narthex://other/test://a"})),
        (
            "completion/complete",
            json!({
                "ref": {"type": "ref/prompt", "name": "mcp__other__test_prompt_with_arguments"},
                "argument": {"name": "arg1", "value": "p"},
            }),
        ),
        // The same again, when links of the client's own are open.
        ("logging/setLevel", json!({"level": "error"})),
        ("tools/list", json!({})),
    ];
    for (number, (method, params)) in (1..).zip(requests) {
        world.call(caller, legacy(number, method, params)).await;
    }
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    world.gateway.notify(caller, parse(&changed)).await;
}

async fn caller(world: &World, endpoint: &Endpoint, capabilities: Value) -> Caller {
    let session = world.session(endpoint, capabilities).await;
    Caller::new(world.run.clone(), endpoint.clone(), Some(session))
}

/// A server that asks for roots when it is initialized, and notes every line that it gets.
fn asks(scripts: &Scripts, name: &str) -> narthex_registry::config::Entry {
    let first = r#"said="$PIDS.said"; : > "$said""#;
    let each = r#"printf '%s\n' "$line" >> "$said"
      case $line in *'"method":"notifications/initialized"'*)
        printf '{"jsonrpc":"2.0","id":"ask","method":"roots/list"}\n' ;; esac"#;
    scripts.entry(name, [first, each, ""])
}

/// D5, D12: a client that can be asked has its own process of each server of its run. No other
/// server is started, no other server asks the client, and its answers go to no other server.
#[tokio::test]
async fn d5_a_client_that_takes_questions_starts_only_servers_of_its_run() {
    let scripts = Scripts::new();
    let entries = vec![asks(&scripts, "mine"), asks(&scripts, "other")];
    let mut world = World::settled(entries, GatewayOptions::default()).await;
    world.run_as(only("mine"));
    let mut own = 0;
    for endpoint in [Endpoint::Aggregated, transparent("mine")] {
        for capabilities in capabilities() {
            let caller = caller(&world, &endpoint, capabilities).await;
            let session = caller.session.clone().unwrap();
            let mut outbox = session.take_outbox().unwrap();
            does_everything(&world, &caller).await;
            own += 1;
            while let Ok(payload) = outbox.try_recv() {
                let asked: Value = serde_json::from_slice(&payload.into_bytes()).unwrap();
                if asked["method"] == "roots/list" {
                    let result = json!({"roots": [{"uri": "file:///secret-root"}]});
                    let id = &asked["id"];
                    let answer = parse(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
                    world.gateway.respond(&session, answer).await;
                }
            }
            world.gateway.end_session(&session).await;
        }
    }
    assert_eq!(scripts.started("mine").len(), 1 + own, "the shared one, and one for each client");
    assert_eq!(scripts.started("other").len(), 1, "the shared one");
    let said = scripts.said("other");
    assert!(!said.contains("secret-root") && !said.contains("setLevel"), "{said}");
    world.gateway.drain().await;
}

/// D5: over HTTP, a server that the run does not have gets no handshake, no request for its lists
/// and no call.
#[tokio::test]
async fn d5_servers_outside_of_the_run_get_no_handshake_and_no_call() {
    for eras in [Eras::Legacy, Eras::Both] {
        let mut world = World::with(&[("mine", eras), ("other", eras)]).await;
        world.run_as(only("mine"));
        let other = &world.fixtures[1].fixture;
        let before = other.counts();
        for endpoint in [Endpoint::Aggregated, transparent("mine")] {
            for capabilities in capabilities() {
                let caller = caller(&world, &endpoint, capabilities).await;
                does_everything(&world, &caller).await;
                world.gateway.end_session(caller.session.as_ref().unwrap()).await;
            }
        }
        assert_eq!(world.fixtures[1].fixture.counts(), before, "{eras:?}");
        assert!(world.fixtures[0].fixture.counts().initializes > before.initializes);
        world.gateway.drain().await;
    }
}

/// D5: a server that a run does not have is in no description of its servers.
#[tokio::test]
async fn d5_a_run_sees_no_rows_of_servers_that_are_not_attached() {
    let mut world = World::with(&[("mine", Eras::Both), ("other", Eras::Both)]).await;
    world.run_as(only("mine"));
    let names = |world: &World| {
        let snapshot = world.gateway.snapshot(&world.run);
        snapshot.servers.iter().map(|row| row.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&world), ["mine"]);
    assert!(world.gateway.endpoint(&world.run, "other").is_none());
    let own = world.gateway.aliases(&world.run);
    assert!(!own.contains(&alias("other")), "{own:?}");
    world.run_as(RunPolicy::default());
    assert!(names(&world).is_empty());
    let run: Arc<_> = world.run.clone();
    world.gateway.end_run(run.id).await;
    assert!(names(&world).is_empty());
    world.gateway.drain().await;
}
