//! Disable, enable, reconnect, reauthorize, remove: on existing servers and on others.

use std::collections::BTreeSet;

use narthex_model::{CallErrorKind, ServerState};
use narthex_registry::{
    Declared, Registry, RegistryOptions, ServerResult, VerbError, config::Entry,
};
use narthex_supervisor::BaseEnvironment;

use crate::world::{identity, in_time, program, shell, start, until_state, with_env};

fn set(entry: narthex_model::ServerDefinition) -> Vec<Declared> {
    vec![Entry::Server(entry).into()]
}

fn kind(result: &ServerResult) -> Option<CallErrorKind> {
    match result {
        ServerResult::Error { error, .. } => Some(error.kind),
        ServerResult::Ready { .. } | ServerResult::Authenticating { .. } => None,
    }
}

/// E58, E3, E38: the answers of the verbs for an unknown name.
#[tokio::test]
async fn e58_verbs_refuse_unknown_names() {
    let registry = start([]);
    let unknown = VerbError::Unknown("x".to_owned());
    assert_eq!(unknown.to_string(), "there is no server `x`");
    assert_eq!(registry.disable("x"), Err(unknown.clone()));
    assert_eq!(registry.enable("x").map(drop), Err(unknown.clone()));
    assert_eq!(in_time(registry.reconnect("x")).await, Err(unknown));
    assert_eq!(registry.remove_server("x"), Ok(false));
    assert_eq!(in_time(registry.reauthorize("x")).await, Ok(None));
    registry.close().await;
}

/// E37, E57, E3: a disabled server stays disabled, whatever is applied, until it is enabled.
#[tokio::test]
async fn e57_a_disabled_server_stays_disabled() {
    let registry = start([shell("x")]);
    until_state(&registry, "x", ServerState::Ready).await;
    registry.disable("x").unwrap();
    registry.disable("x").unwrap();
    for definition in [shell("x"), with_env(shell("x"), "A", "new")] {
        let results = in_time(registry.apply_config(set(definition))).await.unwrap();
        assert_eq!(kind(&results[0]), Some(CallErrorKind::ServerDisabled));
    }
    in_time(registry.apply_config(Vec::new())).await.unwrap();
    let results = in_time(registry.apply_config(set(shell("x")))).await.unwrap();
    assert_eq!(kind(&results[0]), Some(CallErrorKind::ServerDisabled), "its file was away");
    assert_eq!(registry.disabled(), ["x"]);
    assert!(in_time(registry.enable("x").unwrap().result()).await.is_ready());
    assert!(registry.disabled().is_empty());
    registry.close().await;
}

/// E57: disabled names stay disabled after a restart, when the embedder gives them.
#[tokio::test]
async fn e57_names_disabled_at_the_start_stay_disabled() {
    let registry = Registry::new(RegistryOptions {
        disabled: BTreeSet::from(["x".to_owned()]),
        ..RegistryOptions::new(identity(), BaseEnvironment::from_process())
    })
    .unwrap();
    let results = in_time(registry.apply_config(set(shell("x")))).await.unwrap();
    assert_eq!(kind(&results[0]), Some(CallErrorKind::ServerDisabled));
    assert!(registry.remove_server("x").unwrap());
    let added = in_time(registry.add_server(Entry::Server(shell("x")))).await.unwrap();
    assert!(added.is_ready(), "removing by hand forgets it");
    registry.close().await;
}

/// E61: enabling a server that was not off returns its present state.
#[tokio::test]
async fn e61_enable_returns_the_present_state() {
    let registry = start([program("x", "no-such-program", &[]), shell("y")]);
    until_state(&registry, "x", ServerState::Error).await;
    let result = in_time(registry.enable("x").unwrap().result()).await;
    assert_eq!(kind(&result), Some(CallErrorKind::TransportError));
    assert!(in_time(registry.enable("y").unwrap().result()).await.is_ready());
    registry.close().await;
}

/// A server that its configuration disables can only be enabled by its configuration.
#[tokio::test]
async fn e37_a_server_disabled_by_configuration_cannot_be_enabled() {
    let mut off = shell("x");
    off.is_disabled = true;
    let registry = start([off]);
    let refused = registry.enable("x").map(drop);
    let (name, place) = ("x".to_owned(), "the program that added it".to_owned());
    assert_eq!(refused, Err(VerbError::DisabledByConfig { name, place }));
    registry.close().await;
}

/// E36, E47: a reconnected server keeps its place, is `connecting` in between, and has a new
/// process.
#[tokio::test]
async fn e47_reconnect_makes_a_new_connection_in_place() {
    let registry = start([shell("x"), shell("y")]);
    let before = until_state(&registry, "x", ServerState::Ready).await;
    let mut subscription = registry.subscribe();
    assert!(in_time(registry.reconnect("x")).await.unwrap().is_ready());
    let after = registry.get("x").unwrap();
    assert_ne!(before.connection, after.connection);
    let mut states = Vec::new();
    while let Some(update) = subscription.try_next() {
        assert_eq!(update.snapshot.servers[0].name, "x", "it never leaves its place");
        states.push(update.snapshot.servers[0].state);
    }
    assert!(states.contains(&ServerState::Connecting), "{states:?}");
    registry.disable("x").unwrap();
    let result = in_time(registry.reconnect("x")).await.unwrap();
    assert_eq!(kind(&result), Some(CallErrorKind::ServerDisabled));
    registry.close().await;
}

/// E59, E3: a server without sign-in stays as it is.
#[tokio::test]
async fn e59_reauthorize_changes_nothing_without_oauth() {
    let registry = start([shell("x")]);
    let before = until_state(&registry, "x", ServerState::Ready).await;
    let result = in_time(registry.reauthorize("x")).await.unwrap();
    assert!(result.unwrap().is_ready());
    assert_eq!(registry.get("x").unwrap().connection, before.connection);
    registry.disable("x").unwrap();
    let result = in_time(registry.reauthorize("x")).await.unwrap().unwrap();
    assert_eq!(kind(&result), Some(CallErrorKind::ServerDisabled));
    registry.close().await;
}
