//! Links that several runs share: the effects of one caller on another's calls, and on its
//! messages.

use narthex_gateway::{Caller, Endpoint, GatewayOptions};
use narthex_policy::RunPolicy;
use serde_json::{Value, json};

use super::{
    following::{TELLS, next},
    own_servers::begin,
    scripted::Scripts,
    world::{World, legacy, modern, parse, transparent},
};

/// Spellings of a cancellation that servers of some kind may accept, and other notifications.
const SPELLINGS: [&str; 8] = [
    "$/cancelRequest",
    "notifications/Cancelled",
    "NOTIFICATIONS/cancelled",
    "notifications/cancelled ",
    "notifications/cancel",
    "notifications/vendor",
    "cancel",
    "x/cancel",
];

/// Notes each line in a file, and leaves calls of the tool `act` unanswered.
fn noting(notes: &std::path::Path) -> [String; 3] {
    let each = r#"printf '%s\n' "$line" >> "$NOTES"
    case $line in *'"method":"tools/call"'*) continue ;; esac"#;
    [format!("NOTES={}", notes.display()), each.to_owned(), String::new()]
}

fn noted(notes: &std::path::Path) -> Vec<Value> {
    let text = fs_err::read_to_string(notes).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Sends every spelling with every number of params that a server may read.
async fn cancel_all(world: &World, caller: &Caller, ids: impl Iterator<Item = u64> + Clone) {
    for method in SPELLINGS {
        for id in ids.clone() {
            let params = json!({"id": id, "requestId": id, "progressToken": id});
            let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
            world.gateway.notify(caller, parse(&message)).await;
        }
    }
    // Earlier messages have arrived when this is answered.
    let done = match caller.session.is_some() {
        true => legacy(99, "x/done", json!({})),
        false => modern(99, "x/done", json!({})),
    };
    let answer = world.call(caller, done).await;
    assert!(answer["result"].is_object(), "{answer}");
}

/// S19: no spelling of a notification reaches a link that other runs use too. The id of a call
/// there is far from the ids of the caller's own calls.
#[tokio::test]
async fn s19_a_run_cannot_cancel_a_call_of_another_run_on_a_shared_link() {
    let (scripts, dir) = (Scripts::new(), tempfile::tempdir().unwrap());
    let notes = dir.path().join("notes");
    let does = noting(&notes);
    let entry = scripts.entry("one", [&does[0], &does[1], &does[2]]);
    let mut world = World::settled(vec![entry], GatewayOptions::default()).await;
    let victim = world.legacy_caller(transparent("one")).await;
    let call = legacy(5, "tools/call", json!({"name": "act", "arguments": {}}));
    let open = world.gateway.call(&victim, call).await;
    world.run_as(RunPolicy::AllAttached);
    for caller in world.both_callers(&transparent("one")).await {
        cancel_all(&world, &caller, 0..8).await;
    }
    let noted = noted(&notes);
    let methods: Vec<_> = noted.iter().filter_map(|one| one["method"].as_str()).collect();
    let strange = methods.iter().filter(|method| SPELLINGS.contains(method));
    assert_eq!(strange.count(), 0, "{methods:?}");
    assert!(!methods.contains(&"notifications/cancelled"), "{methods:?}");
    let id_of = |method| {
        let found = noted.iter().find(|one| one["method"] == method);
        found.unwrap()["id"].as_u64().unwrap()
    };
    let (theirs, own) = (id_of("tools/call"), id_of("x/done"));
    // By chance, the numbers are this close once in several hundred million times.
    assert!(theirs.abs_diff(own) > 4 && theirs > 4, "{theirs} and {own}");
    drop(open);
    world.gateway.drain().await;
}

/// D2: a server that works for one run alone, or for one client, gets its notifications.
#[tokio::test]
async fn d2_notifications_reach_a_server_that_serves_one_run() {
    let (scripts, dir) = (Scripts::new(), tempfile::tempdir().unwrap());
    let notes = dir.path().join("notes");
    let does = noting(&notes);
    let server = scripts.server("mine", [&does[0], &does[1], &does[2]]);
    let world = World::over(Vec::new(), GatewayOptions::default());
    let (run, _token) = begin(&world, RunPolicy::default(), vec![server]).await;
    let world = world.seen_by(&run);
    for caller in world.both_callers(&transparent("mine")).await {
        let message =
            json!({"jsonrpc": "2.0", "method": "notifications/vendor", "params": {"n": 7}});
        world.gateway.notify(&caller, parse(&message)).await;
        cancel_all(&world, &caller, 0..0).await;
        let noted = noted(&notes);
        let told = noted.iter().find(|one| one["method"] == "notifications/vendor");
        assert_eq!(told.unwrap()["params"]["n"], 7);
        fs_err::write(&notes, "").unwrap();
    }
    world.gateway.drain().await;
}

/// S19: on a shared link, a log message of a server is sent to sessions that have set a level.
#[tokio::test]
async fn s19_log_messages_reach_only_sessions_that_have_set_a_level() {
    let scripts = Scripts::new();
    let entries = vec![scripts.entry("one", TELLS)];
    let mut world = World::settled(entries, GatewayOptions::default()).await;
    let loud = world.legacy_caller(transparent("one")).await;
    let mut told = loud.session.as_ref().unwrap().take_outbox().unwrap();
    world.run_as(RunPolicy::AllAttached);
    for (level, endpoint) in [("info", transparent("one")), ("debug", Endpoint::Aggregated)] {
        let quiet = world.legacy_caller(endpoint).await;
        let mut untold = quiet.session.as_ref().unwrap().take_outbox().unwrap();
        let level = legacy(1, "logging/setLevel", json!({"level": level}));
        assert_eq!(world.call(&loud, level).await["result"], json!({}));
        next(&mut told, "notifications/message").await;
        let uri = json!({"uri": "test://a"});
        let subscribe = legacy(2, "resources/subscribe", uri.clone());
        assert_eq!(world.call(&quiet, subscribe).await["result"], json!({}));
        let first = untold.recv().await.unwrap().into_bytes();
        let first: Value = serde_json::from_slice(&first).unwrap();
        assert_eq!(first["method"], "notifications/resources/updated", "{first}");
        let unsubscribe = legacy(3, "resources/unsubscribe", uri);
        assert_eq!(world.call(&quiet, unsubscribe).await["result"], json!({}));
    }
    world.gateway.drain().await;
}
