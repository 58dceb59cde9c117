//! A door with the gateway behind it, and clients of the door.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use narthex_audit::Audit;
use narthex_gateway::{Gateway, GatewayOptions, RunToken, RunView};
use narthex_model::{Alias, Exposed, HttpTarget, ServerAuth, ServerDefinition, Target};
use narthex_policy::RunPolicy;
use narthex_registry::{Declared, Registry, RegistryOptions, Snapshot, config::Entry};
use narthex_socket::{SocketDoor, SocketOptions};
use narthex_supervisor::BaseEnvironment;
use narthex_testkit::{
    fixture::{Eras, Options, Running},
    messages::stamp,
};
use narthex_upstream::ClientIdentity;
use narthex_wire::{Limits, Revision};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The time limit of each wait; no test should need so long.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct World {
    pub(crate) gateway: Gateway,
    pub(crate) fixture: Running,
    pub(crate) stop: CancellationToken,
    pub(crate) doors: TaskTracker,
    pub(crate) folder: PathBuf,
    _home: TempDir,
}

impl World {
    /// A door whose gateway has one server, `fix`, of this era.
    pub(crate) async fn new(eras: Eras, options: SocketOptions) -> Self {
        Self::showing(eras, options, Exposed::default()).await
    }

    /// The same, but the server shows only the items that `exposed` permits.
    pub(crate) async fn showing(eras: Eras, options: SocketOptions, exposed: Exposed) -> Self {
        let fixture = Running::http(Options { eras, ..Options::default() }).await.unwrap();
        let alias = Alias::new("fix").unwrap();
        let limits = Limits { message_bytes: 4 * 1024 * 1024 };
        let mut server = definition(alias, &fixture.url);
        *server.exposed = exposed;
        let gateway = gateway(Entry::Server(server), limits);
        let ready = |snapshot: &Snapshot| snapshot.is_settled();
        let snapshot = gateway.registry().wait_until(PATIENCE, ready).await;
        assert!(snapshot.servers.iter().all(|row| row.is_ready()), "{snapshot:?}");
        let token = RunToken::generate().unwrap();
        let run = Arc::new(RunView::new(&token, RunPolicy::AllAttached));
        gateway.begin_run(&run).unwrap();
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("run");
        let door = SocketDoor::bind(&folder, run, gateway.clone(), options).unwrap();
        let stop = CancellationToken::new();
        let doors = TaskTracker::new();
        doors.spawn(door.serve(stop.clone()));
        doors.close();
        Self { gateway, fixture, stop, doors, folder, _home: home }
    }

    pub(crate) async fn connect(&self, name: &str) -> Client {
        let stream = UnixStream::connect(self.folder.join(name)).await.unwrap();
        let (reader, writer) = stream.into_split();
        Client { reader: BufReader::new(reader), writer }
    }

    /// Waits until a condition is true.
    pub(crate) async fn until(&self, is_true: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !is_true(self) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.expect("it becomes true");
    }
}

fn definition(alias: Alias, url: &str) -> ServerDefinition {
    let (headers, auth) = (BTreeMap::new(), ServerAuth::None);
    let target = Target::Http(HttpTarget { url: url.to_owned(), is_sse: false, headers, auth });
    ServerDefinition::new(alias, target)
}

fn gateway(entry: Entry, limits: Limits) -> Gateway {
    let identity = ClientIdentity {
        info: Bytes::from_static(br#"{"name":"narthex-test","version":"0"}"#),
        capabilities: Bytes::from_static(b"{}"),
        revision: Revision::LEGACY_LATEST,
    };
    let registry = Registry::new(RegistryOptions {
        limits,
        ..RegistryOptions::new(identity, BaseEnvironment::from_process())
    })
    .unwrap();
    let set = vec![entry].into_iter().map(Declared::from).collect();
    registry.apply(set).unwrap();
    let options = GatewayOptions { limits, ..GatewayOptions::default() };
    Gateway::new(registry, Audit::disabled(), options).unwrap()
}

/// A client that sends and receives raw lines.
pub(crate) struct Client {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

impl Client {
    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_text(&format!("{message}\n")).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).await.unwrap();
    }

    /// The next message of any kind.
    pub(crate) async fn receive(&mut self) -> Value {
        let mut line = String::new();
        let reading = self.reader.read_line(&mut line);
        let count = tokio::time::timeout(PATIENCE, reading).await.expect("a line").unwrap();
        assert!(count > 0, "the door closed the connection");
        serde_json::from_str(&line).unwrap()
    }

    /// All messages until the connection ends.
    pub(crate) async fn receive_all(&mut self) -> Vec<Value> {
        let mut text = String::new();
        let reading = self.reader.read_to_string(&mut text);
        tokio::time::timeout(PATIENCE, reading).await.expect("an end").unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Sends a request and waits for its answer; skips other messages.
    pub(crate) async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        loop {
            let answer = self.receive().await;
            if answer["id"] == message["id"] && answer.get("method").is_none() {
                return answer;
            }
        }
    }

    /// Opens a session.
    pub(crate) async fn initialize(&mut self, revision: &str, capabilities: Value) {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": capabilities,
            "clientInfo": {"name": "t", "version": "1"},
        });
        let answer = self.ask(&request(0, "initialize", params)).await;
        assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    }

    /// Tells the door that the client will send nothing more.
    pub(crate) async fn finish_sending(&mut self) {
        self.writer.shutdown().await.unwrap();
    }
}

pub(crate) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn tool(id: u64, name: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({"name": name, "arguments": arguments}))
}

/// Adds the members that every modern request must carry.
pub(crate) fn modern(mut request: Value) -> Value {
    stamp(&mut request["params"]);
    request
}

pub(crate) fn cancelled(id: u64) -> Value {
    let params = json!({"requestId": id, "reason": "enough"});
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
}

pub(crate) fn text_of(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}
