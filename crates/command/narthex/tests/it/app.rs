//! The assembly as a library.

use std::time::Duration;

use narthex::{App, AppOptions, ConnectionOptions, Servers};
use narthex_executor::Executors;
use narthex_gateway::{Endpoint, GatewayOptions, RunToken, Step};
use narthex_model::Alias;
use narthex_oauth_client::SharedClients;
use narthex_policy::RunPolicy;
use narthex_registry::config;
use narthex_supervisor::BaseEnvironment;
use narthex_wire::{Message, Raw, rpc};
use serde_json::json;

use crate::{support::fixture_entry, world::World};

const SOON: Duration = Duration::from_secs(60);
/// A server that runs on after the end of its input, and needs a while after SIGTERM.
const SLOW_TO_END: &str = r#"
trap 'sleep 3; exit 0' TERM
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-11-25",
      "capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer '{"tools":[]}' ;;
    *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"-"}}\n' "$id" ;;
  esac
done
while :; do sleep 0.1; done
"#;

async fn start(dir: &std::path::Path) -> App {
    let file = dir.join("mcp.json");
    let text = json!({ "servers": { "fixture": fixture_entry() } }).to_string();
    fs_err::write(&file, text).unwrap();
    App::start(AppOptions {
        servers: Servers::Fixed(config::load_file(&file, dir, &|_| None).unwrap()),
        environment: BaseEnvironment::from_process(),
        connections: ConnectionOptions::default(),
        gateway: GatewayOptions::default(),
        policy: RunPolicy::AllAttached,
        token: RunToken::generate().unwrap(),
        audit_dir: dir.join("audit"),
        work_dir: dir.to_owned(),
        client_metadata_url: None,
        shared_clients: SharedClients::default(),
        executors: Executors::default(),
        doors: None,
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn one_app_calls_and_drains_once() {
    let dir = tempfile::tempdir().unwrap();
    let app = start(dir.path()).await;
    app.registry().wait_until(SOON, |snapshot| snapshot.is_settled()).await;
    let params = json!({
        "name": "echo",
        "arguments": { "message": "hello" },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    });
    let request = rpc::request(Raw::new(b"1"), "tools/call", Some(params.to_string().as_bytes()));
    let request = Message::parse(request.into_bytes(), app.gateway().limits()).unwrap();
    let caller = app.local_caller(Endpoint::Transparent(Alias::new("fixture").unwrap()));
    let mut answering = app.gateway().call(&caller, request).await;
    let Some(Step::Answer(answer)) = answering.next().await else { panic!("no answer") };
    let text = String::from_utf8(answer.payload.into_bytes().to_vec()).unwrap();
    assert!(text.contains("hello"), "{text}");

    tokio::join!(app.drain(), app.drain());
    app.drain().await;
    assert!(app.registry().snapshot().servers.is_empty());
    let record = fs_err::read_to_string(dir.path().join("audit/audit.jsonl")).unwrap();
    assert!(record.contains("\"echo\"") && !record.contains("hello"), "{record}");
}

/// S31, E69: children of sessions that are slow to end do not hold up the end for ever.
#[tokio::test]
async fn s31_the_daemon_ends_with_many_slow_children() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("slow.sh");
    fs_err::write(&file, SLOW_TO_END.replace(",\n      ", ",")).unwrap();
    let entry = json!({ "transport": "stdio", "command": "sh", "args": [file] });
    let world = World::over(&json!({ "slow": entry })).await;
    for _ in 0..6 {
        let mut client = world.legacy("/mcp/slow", json!({ "sampling": {} })).await;
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
        assert!(client.post(&[], request.to_string()).await.json()["result"].is_object());
    }
    tokio::time::timeout(SOON, world.app.drain()).await.expect("the end does not come");
    assert!(world.app.registry().snapshot().servers.is_empty());
}
