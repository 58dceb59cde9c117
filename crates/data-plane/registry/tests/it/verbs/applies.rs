//! Whole sets: changed servers, unchanged servers, and the set that counts.

use std::{sync::Arc, time::Duration};

use narthex_model::{
    Alias, CallError, CallErrorKind, ConfigFault, NameRule, Provenance, ServerState,
};
use narthex_registry::{Declared, ServerResult, VerbError, config::Entry};
use narthex_testkit::fixture::{Eras, Options, Quirk, Running};

use crate::world::{
    http, in_time, message, program, row, shell, start, until, until_state, with_env,
};

fn set(definitions: impl IntoIterator<Item = narthex_model::ServerDefinition>) -> Vec<Declared> {
    definitions.into_iter().map(|definition| Entry::Server(definition).into()).collect()
}

fn fault(name: &str) -> Declared {
    let error = CallError::new(CallErrorKind::TransportError, "faulty".to_owned());
    Entry::Fault(ConfigFault { name: name.to_owned(), error }).into()
}

async fn hanging() -> Running {
    let options =
        Options { eras: Eras::Both, quirks: vec![Quirk::HangInitialize], ..Options::default() };
    Running::http(options).await.unwrap()
}

/// E1, E2: one answer per entry, in their order, and each is one of three.
#[tokio::test]
async fn e2_the_results_of_a_set_have_the_order_of_its_entries() {
    let registry = start([]);
    let mut off = shell("off");
    off.is_disabled = true;
    let mut all = set([shell("one"), program("missing", "no-such-program-here", &[]), off]);
    all.insert(1, fault("bad name"));
    let results = in_time(registry.apply_config(all)).await.unwrap();
    let ids: Vec<_> = results.iter().map(ServerResult::id).collect();
    assert_eq!(ids, ["one", "bad name", "missing", "off"]);
    assert_eq!(results[0], ServerResult::Ready { id: "one".to_owned(), tool_count: 0 });
    let kinds: Vec<_> = results[1..]
        .iter()
        .map(|result| match result {
            ServerResult::Error { error, .. } => error.kind,
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        CallErrorKind::TransportError,
        CallErrorKind::TransportError,
        CallErrorKind::ServerDisabled,
    ];
    assert_eq!(kinds, expected);
    registry.close().await;
}

/// E1: answers in the form for programs.
#[tokio::test]
async fn e1_results_have_one_json_form() {
    let ready = ServerResult::Ready { id: "a".to_owned(), tool_count: 3 };
    let text = serde_json::to_string(&ready).unwrap();
    assert_eq!(text, r#"{"status":"ready","id":"a","toolCount":3}"#);
    let waiting =
        ServerResult::Authenticating { id: "a".to_owned(), auth_url: "https://x".to_owned() };
    let text = serde_json::to_string(&waiting).unwrap();
    assert_eq!(text, r#"{"status":"authenticating","id":"a","authUrl":"https://x"}"#);
}

/// E54: filters and limits for callers are no part of a connection: a new configuration of them
/// takes effect at once, and followers of the registry are notified.
#[tokio::test]
async fn e54_changed_filters_and_limits_take_effect_without_a_new_connection() {
    let registry = start([shell("x")]);
    let before = until_state(&registry, "x", ServerState::Ready).await;
    let mut changes = registry.changes();
    changes.borrow_and_update();
    let mut changed = shell("x");
    changed.output.bytes = std::num::NonZeroU64::new(7);
    let hides = NameRule::new(None, &["secret*"]);
    changed.exposed.tools = hides;
    assert!(in_time(registry.add_server(Entry::Server(changed.clone()))).await.unwrap().is_ready());
    let after = registry.get("x").unwrap();
    assert_eq!(after.connection, before.connection);
    assert_eq!(after.definition.as_deref(), Some(&changed));
    assert!(changes.has_changed().unwrap());
    registry.close().await;
}

/// E2, E42, E43, E56: an unchanged server keeps its process; a removed or changed one does not.
#[tokio::test]
async fn e56_an_unchanged_server_keeps_its_process() {
    let registry = start([shell("same"), with_env(shell("changed"), "A", "1"), shell("gone")]);
    let before = until(&registry, |snapshot| snapshot.is_settled()).await;
    let changed = with_env(shell("changed"), "A", "2");
    let results = registry.apply_config(set([shell("same"), changed, shell("new")]));
    assert!(in_time(results).await.unwrap().iter().all(ServerResult::is_ready));
    let after = registry.snapshot();
    let names: Vec<_> = after.servers.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["same", "changed", "new"]);
    let process = |snapshot, name| row(snapshot, name).link.as_ref().unwrap().process_id();
    assert_eq!(process(&before, "same"), process(&after, "same"));
    assert_ne!(process(&before, "changed"), process(&after, "changed"), "E52: env counts");
    assert_eq!(row(&before, "same").connection, row(&after, "same").connection);
    registry.close().await;
}

/// E55: a server that is changed keeps its place.
#[tokio::test]
async fn e55_a_changed_server_keeps_its_place_in_the_list() {
    let registry = start([shell("a"), shell("b"), shell("c")]);
    until(&registry, |snapshot| snapshot.is_settled()).await;
    let changed = with_env(shell("b"), "A", "2");
    assert!(in_time(registry.add_server(Entry::Server(changed))).await.unwrap().is_ready());
    registry.disable("a").unwrap();
    let names = || -> Vec<_> { registry.list().iter().map(|row| row.name.clone()).collect() };
    assert_eq!(names(), ["a", "b", "c"]);
    in_time(registry.enable("a").unwrap().result()).await;
    assert_eq!(names(), ["a", "b", "c"]);
    registry.close().await;
}

/// E35, E51: the same configuration again retries only servers that have failed.
#[tokio::test]
async fn e51_applying_the_same_configuration_retries_failed_servers() {
    let folder = tempfile::tempdir().unwrap();
    let started = folder.path().join("started");
    let script = format!("mkdir {} && exit 3; {}", started.display(), crate::world::shell_script());
    let server = || program("x", "sh", &["-c", &script]);
    let registry = start([server()]);
    let failed = until_state(&registry, "x", ServerState::Error).await;
    assert!(message(&failed).contains("exit code 3"), "{}", message(&failed));
    let results = in_time(registry.apply_config(set([server()]))).await.unwrap();
    assert!(results[0].is_ready(), "{results:?}");
    let ready = registry.get("x").unwrap();
    assert_ne!(ready.connection, failed.connection);
    in_time(registry.add_server(Entry::Server(server()))).await.unwrap();
    assert_eq!(registry.get("x").unwrap().connection, ready.connection);
    registry.close().await;
}

/// E35, E51: a set with another change retries failed servers, and leaves alone servers that are
/// still connecting.
#[tokio::test]
async fn e35_applying_a_changed_set_retries_failed_servers() {
    let slow = hanging().await;
    let failing = || program("failing", "no-such-program", &[]);
    let registry = start([failing(), http("slow", &slow.url)]);
    let failed = until_state(&registry, "failing", ServerState::Error).await;
    let trying = registry.get("slow").unwrap();
    registry.apply(set([failing(), http("slow", &slow.url), shell("new")])).unwrap();
    assert_ne!(registry.get("failing").unwrap().connection, failed.connection);
    assert_eq!(registry.get("slow").unwrap().connection, trying.connection);
    registry.close().await;
}

/// E128: an older set whose server is slow does not replace a newer set.
#[tokio::test]
async fn e128_the_newest_set_wins() {
    let slow = hanging().await;
    let registry = start([]);
    let old = registry.apply(set([http("slow", &slow.url), shell("kept")])).unwrap();
    until(&registry, |snapshot| row(snapshot, "kept").is_ready()).await;
    let new = registry.apply_config(set([shell("kept")]));
    assert!(in_time(new).await.unwrap()[0].is_ready());
    let results = in_time(old.results()).await;
    assert!(
        matches!(&results[0], ServerResult::Error { error, .. }
        if error.message.contains("removed or changed")),
        "{results:?}"
    );
    assert!(results[1].is_ready());
    let names: Vec<_> = registry.list().iter().map(|row| row.name.clone()).collect();
    assert_eq!(names, ["kept"]);
    in_time(registry.close()).await;
}

/// E129: a removed server ends although another server of the same set hangs.
#[tokio::test]
async fn e129_removals_do_not_wait_for_slow_adds() {
    let slow = hanging().await;
    let registry = start([shell("gone")]);
    let before = until_state(&registry, "gone", ServerState::Ready).await;
    let link = before.link.clone().unwrap();
    let _applied = registry.apply(set([http("slow", &slow.url)])).unwrap();
    in_time(link.closed().cancelled()).await;
    assert_eq!(registry.get("slow").unwrap().state, ServerState::Connecting);
    in_time(registry.close()).await;
}

/// E117, E139: a name that occurs twice in a set is reported, and the first entry works.
#[tokio::test]
async fn e117_a_name_twice_is_an_error_row() {
    let registry = start([]);
    let results = in_time(registry.apply_config(set([shell("x"), shell("x")]))).await.unwrap();
    assert!(results[0].is_ready());
    assert!(!results[1].is_ready());
    let x = Alias::new("x").unwrap();
    assert!(registry.snapshot().get(x.as_str()).unwrap().is_ready());
    registry.close().await;
}

/// E140: an overridden entry is a row to which no verb applies.
#[tokio::test]
async fn e140_an_overridden_entry_is_shown_and_never_started() {
    let registry = start([]);
    let mut hidden = Declared::from(Entry::Server(with_env(shell("x"), "A", "hidden")));
    hidden.is_overridden = true;
    hidden.provenance = Provenance::Settings;
    let mut all = set([shell("x")]);
    all[0].provenance = Provenance::Workspace;
    all.push(hidden);
    in_time(registry.apply_config(all.clone())).await.unwrap();
    let rows = registry.list();
    let seen: Vec<_> = rows.iter().map(|row| (row.provenance, row.is_overridden)).collect();
    assert_eq!(seen, [(Provenance::Workspace, false), (Provenance::Settings, true)]);
    assert!(registry.snapshot().get("x").unwrap().is_ready());
    assert!(rows[1].connection.is_none());
    let before = registry.get("x").unwrap().connection;
    in_time(registry.apply_config(all)).await.unwrap();
    assert_eq!(registry.get("x").unwrap().connection, before, "E43");
    registry.close().await;
}

/// E126: after the end no set is applied, and no server starts.
#[tokio::test]
async fn e126_a_closed_registry_refuses() {
    let registry = start([]);
    in_time(registry.close()).await;
    assert_eq!(registry.apply(set([shell("x")])).unwrap_err(), VerbError::Closed);
    assert_eq!(registry.disable("x").unwrap_err(), VerbError::Closed);
    assert!(registry.list().is_empty());
}

/// E130: applying returns although no server is ready yet.
#[tokio::test]
async fn e130_applying_does_not_wait_for_servers() {
    let slow = hanging().await;
    let registry = start([]);
    let applied = registry.apply(set([http("slow", &slow.url)])).unwrap();
    assert_eq!(registry.get("slow").unwrap().state, ServerState::Connecting);
    let results = tokio::time::timeout(Duration::ZERO, applied.results()).await;
    assert!(results.is_err(), "it cannot have an answer yet");
    in_time(registry.close()).await;
    drop(Arc::new(slow));
}

/// E36, E61: a caller that has an answer and reads the row sees the same there.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn e61_a_row_shows_the_result_of_its_verb() {
    let registry = start([program("missing", "no-such-program-here", &[])]);
    for round in 0..300 {
        let result = in_time(registry.reconnect("missing")).await.unwrap();
        assert!(!result.is_ready());
        assert_eq!(registry.get("missing").unwrap().state, ServerState::Error, "{round}");
    }
}
