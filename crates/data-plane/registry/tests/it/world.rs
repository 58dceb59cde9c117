//! A registry over servers made by tests, and its visible state.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use narthex_audit::{Audit, AuditRecord, AuditSlot};
use narthex_model::{
    Alias, HttpTarget, RunToken, Secret, ServerAuth, ServerDefinition, ServerState, StdioTarget,
    Target, WorkspaceId,
};
use narthex_policy::{Attempt, Authority, Permitted, Request, RunPolicy, ServerRules};
use narthex_registry::{Declared, Registry, RegistryOptions, ServerRow, Snapshot, config::Entry};
use narthex_supervisor::BaseEnvironment;
use narthex_traffic::{Admission, Meters};
use narthex_upstream::{ClientIdentity, Deadlines};
use narthex_wire::Revision;
use serde_json::{Value, json};

/// Longest wait in these tests, on however busy a machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.expect("this must not take so long")
}

pub(crate) fn identity() -> ClientIdentity {
    ClientIdentity {
        info: Bytes::from_static(br#"{"name":"narthex-test","version":"0"}"#),
        capabilities: Bytes::from_static(b"{}"),
        revision: Revision::LEGACY_LATEST,
    }
}

pub(crate) fn initialize_result() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "hand-made", "version": "1"},
    })
}

/// A registry with these servers, just started.
pub(crate) fn start(definitions: impl IntoIterator<Item = ServerDefinition>) -> Registry {
    start_within(DEADLINE, definitions.into_iter().map(Entry::Server).collect())
}

/// Starts a registry with another deadline for listing. All other deadlines are long.
pub(crate) fn start_within(list: Duration, entries: Vec<Entry>) -> Registry {
    let deadlines = Deadlines { probe: DEADLINE / 2, connect: DEADLINE, ..Deadlines::default() };
    start_by(Deadlines { list, ..deadlines }, entries)
}

/// Starts a registry with these deadlines.
pub(crate) fn start_by(deadlines: Deadlines, entries: Vec<Entry>) -> Registry {
    let registry = Registry::new(RegistryOptions {
        deadlines,
        ..RegistryOptions::new(identity(), BaseEnvironment::from_process())
    })
    .unwrap();
    let set = entries.into_iter().map(Declared::from).collect();
    registry.apply(set).unwrap();
    registry
}

pub(crate) fn http(name: &str, url: &str) -> ServerDefinition {
    let target = HttpTarget {
        url: url.to_owned(),
        is_sse: false,
        headers: BTreeMap::new(),
        auth: ServerAuth::None,
    };
    define(name, Target::Http(target))
}

/// A server over HTTP+SSE.
pub(crate) fn sse(name: &str, url: &str) -> ServerDefinition {
    let mut definition = http(name, url);
    if let Target::Http(target) = &mut definition.target {
        target.is_sse = true;
    }
    definition
}

pub(crate) fn program(name: &str, command: &str, args: &[&str]) -> ServerDefinition {
    let target = StdioTarget {
        command: command.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: BTreeMap::new(),
        working_dir: None,
        confinement: None,
    };
    define(name, Target::Stdio(target))
}

pub(crate) fn with_env(
    mut definition: ServerDefinition,
    name: &str,
    value: &str,
) -> ServerDefinition {
    if let Target::Stdio(target) = &mut definition.target {
        target.env.insert(name.to_owned(), Secret::new(value));
    }
    definition
}

/// A legacy server in a few lines of shell, without any tool; it ends at a `tools/call`.
pub(crate) fn shell(name: &str) -> ServerDefinition {
    program(name, "sh", &["-c", &shell_script()])
}

/// The script of the server that [`shell`] describes.
pub(crate) fn shell_script() -> String {
    format!(
        r#"while read -r line; do id=${{line#*'"id":'}}; id=${{id%%[,\}}]*}}; case "$line" in
        *tools/call*) exit 9;;
        *'"initialize"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" '{}';;
        *'"id"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{}}}}\n' "$id";;
        esac; done"#,
        initialize_result()
    )
}

fn define(name: &str, target: Target) -> ServerDefinition {
    let alias = Alias::new(name).unwrap();
    ServerDefinition::new(alias, target)
}

/// Waits for a snapshot that `is_it`. Each snapshot before it must have valid side data (E33).
pub(crate) async fn until(registry: &Registry, is_it: impl Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
    let mut changes = registry.changes();
    in_time(async {
        loop {
            changes.borrow_and_update();
            let snapshot = registry.snapshot();
            snapshot.servers.iter().for_each(|row| check_side_data(row));
            if is_it(&snapshot) {
                return snapshot;
            }
            changes.changed().await.unwrap();
        }
    })
    .await
}

/// Waits until one server is in a state.
pub(crate) async fn until_state(
    registry: &Registry,
    name: &str,
    state: ServerState,
) -> Arc<ServerRow> {
    let snapshot = until(registry, |snapshot| row(snapshot, name).state == state).await;
    row(&snapshot, name).clone()
}

pub(crate) fn row<'s>(snapshot: &'s Snapshot, name: &str) -> &'s Arc<ServerRow> {
    snapshot.servers.iter().find(|row| row.name == name).unwrap()
}

/// E33: each piece of side data goes with its own state.
fn check_side_data(row: &ServerRow) {
    assert_eq!(row.link.is_some(), row.state == ServerState::Ready, "{row:?}");
    let has_reason = matches!(row.state, ServerState::Error | ServerState::Authenticating);
    assert_eq!(row.error.is_some(), has_reason, "{row:?}");
    assert!(row.auth_url.is_none() || row.state == ServerState::Authenticating, "{row:?}");
    assert!(row.activity.is_none() || row.state == ServerState::Connecting, "{row:?}");
    assert!(row.state != ServerState::Error || row.inventory.is_empty(), "{row:?}");
}

pub(crate) fn message(row: &ServerRow) -> String {
    row.error.as_ref().map(|error| error.for_operators().to_string()).unwrap_or_default()
}

/// A slot of an audit record that is dropped, and an admission where nothing is limited.
pub(crate) fn booking() -> (AuditSlot, Admission) {
    let record = AuditRecord {
        workspace: WorkspaceId::default(),
        run: RunToken::generate().unwrap().run_id(),
        user: None,
        session: None,
        endpoint: None,
        server: None,
        method: "test".into(),
        item: None,
        granted_via: Box::default(),
        refused_by: None,
        rule: None,
        rounds: 0,
    };
    let slot = Audit::disabled().reserve(record).unwrap();
    (slot, Meters::default().admit([None, None, None], true).unwrap())
}

/// A request that policy permits, as no rule forbids it.
pub(crate) fn permitted(request: Request) -> Permitted<Request> {
    let attempt = Attempt::first(SystemTime::now);
    let decided = RunPolicy::AllAttached.authorize(
        request,
        ServerRules::OPEN,
        &Authority::default(),
        attempt,
    );
    decided.unwrap().permitted().unwrap()
}
