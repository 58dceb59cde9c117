//! The whole program in this process, over real sockets, and bare clients for it.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, LazyLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Request, StatusCode, body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use narthex::{App, AppOptions, ConnectionOptions, Doors, Servers};
use narthex_audit::Audit;
use narthex_control::{ControlOptions, GrantOptions, SecretRows, Variables};
use narthex_executor::Executors;
use narthex_gateway::{GatewayOptions, RunToken, RunView};
use narthex_http::listener::{ServeOptions, Workers};
use narthex_http::{HttpOptions, TokenHash, openapi};
use narthex_model::{Alias, KnownExecutors, WorkspaceId};
use narthex_oauth_client::SharedClients;
use narthex_policy::RunPolicy;
use narthex_registry::{
    config,
    watch::{LayerOptions, ProjectFile},
};
use narthex_runs::ShareOptions;
use narthex_store::Store;
use narthex_supervisor::BaseEnvironment;
use narthex_testkit::{
    contract::{Contract, Seen},
    messages::{Era, message},
    planted,
};
use narthex_traffic::Meters;
use narthex_vault::{KeyFile, SealedBackend, Vault};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Lines},
    net::{TcpListener, TcpStream, UnixStream},
};
use tokio_util::task::TaskTracker;

/// Longer than anything here takes, however busy the machine is.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// The token of the operator.
pub(crate) const ADMIN: &str = "nxa_the-operator-of-this-test";

/// The program, until it is dropped.
pub(crate) struct World {
    pub(crate) app: App,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    dir: TempDir,
}

impl World {
    /// A world with these servers, each of which must be ready or failed.
    pub(crate) async fn over(servers: &Value) -> Self {
        Self::with(servers, GatewayOptions::default()).await
    }

    pub(crate) async fn with(servers: &Value, gateway: GatewayOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        fs_err::write(&file, json!({ "servers": servers }).to_string()).unwrap();
        let fixed = Servers::Fixed(config::load_file(&file, dir.path(), &|_| None).unwrap());
        Self::start(dir, fixed, gateway).await
    }

    /// A world with these servers, and a control plane that stores everything in the world's
    /// folder.
    pub(crate) async fn operated(servers: &Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs_err::write(dir.path().join("mcp.json"), json!({ "servers": servers }).to_string())
            .unwrap();
        Self::operated_in(dir).await
    }

    /// As [`Self::operated`], in the folder of an earlier world.
    pub(crate) async fn operated_in(dir: TempDir) -> Self {
        Self::operated_with(dir, Variables::default()).await
    }

    /// As [`Self::operated_in`], with variables that the catalog may name.
    pub(crate) async fn operated_with(dir: TempDir, variables: Variables) -> Self {
        let store = Store::open(&dir.path().join("store.db")).await.unwrap();
        let keys = Arc::new(KeyFile::new(dir.path().join("master.key")));
        let rows = Arc::new(SecretRows::new(store.clone()));
        let backend = SealedBackend::start(rows, keys).await.unwrap();
        let mut files = LayerOptions::new(dir.path(), Arc::new(|_name| None));
        files.project = Some(ProjectFile {
            path: dir.path().join("mcp.json"),
            approve: Arc::new(|_path, _text| Ok(())),
            approvals: None,
        });
        let followed = ControlOptions {
            files,
            store: Some(store),
            vault: Some(Vault::new(Arc::new(backend))),
            variables,
            audit: Audit::disabled(),
            sign_ins: None,
            login: None,
            grants: Arc::default(),
            granting: GrantOptions::default(),
            rules: Arc::default(),
            executors: KnownExecutors::default(),
            meters: Meters::with_clock(WorkspaceId::default(), Arc::new(noon)),
            defaults: Vec::new(),
        };
        let servers = Servers::Followed(Box::new(followed));
        Self::start(dir, servers, GatewayOptions::default()).await
    }

    /// Ends it as a signal would; the stored objects are in its folder.
    pub(crate) async fn stop(self) -> TempDir {
        self.app.drain().await;
        self.dir
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    async fn start(dir: TempDir, servers: Servers, gateway: GatewayOptions) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let token = RunToken::generate().unwrap();
        let text = token.expose().to_owned();
        let workers = Workers::start().unwrap();
        let options = AppOptions {
            servers,
            environment: BaseEnvironment::from_process(),
            // A busy machine is no reason for a run not to begin.
            connections: ConnectionOptions { mount: SOON, ..ConnectionOptions::default() },
            gateway,
            policy: RunPolicy::AllAttached,
            token,
            audit_dir: dir.path().join("audit"),
            work_dir: dir.path().to_owned(),
            client_metadata_url: None,
            shared_clients: SharedClients::default(),
            executors: Executors::default(),
            doors: Some(Doors {
                listener,
                http: HttpOptions {
                    admin_token: Some(TokenHash::of(ADMIN)),
                    ..HttpOptions::new(address)
                },
                serve: ServeOptions { workers, ..ServeOptions::default() },
                socket_dirs: vec![dir.path().join("run")],
                post_hosts: Vec::new(),
                shares: ShareOptions::open(&dir.path().join("shares"), 1 << 20).unwrap(),
            }),
        };
        let app = App::start(options).await.unwrap();
        app.registry().wait_until(SOON, |snapshot| snapshot.is_settled()).await;
        Self { app, address, token: text, dir }
    }

    /// A world with one ready server named `raw` at this address.
    pub(crate) async fn over_raw(url: &str) -> Self {
        Self::over_entry(&http_entry(url)).await
    }

    /// A world with one ready server named `raw`, from this entry.
    pub(crate) async fn over_entry(entry: &Value) -> Self {
        let world = Self::over(&json!({ "raw": entry })).await;
        let snapshot = world.app.registry().snapshot();
        assert!(snapshot.servers[0].is_ready(), "{:?}", snapshot.servers[0].error);
        world
    }

    /// The token of one more run, which has these servers.
    pub(crate) fn other_run(&self, servers: &[&str]) -> String {
        let aliases = servers.iter().map(|name| Alias::new(name).unwrap());
        let policy = RunPolicy::Attached(aliases.collect::<BTreeSet<_>>());
        let token = RunToken::generate().unwrap();
        let run = Arc::new(RunView::new(&token, policy));
        self.app.gateway().begin_run(&run).unwrap();
        token.expose().to_owned()
    }

    pub(crate) fn client(&self, path: &str) -> Client {
        self.client_as(path, &self.token)
    }

    pub(crate) fn client_as(&self, path: &str, token: &str) -> Client {
        Client::new(self.address, path, token)
    }

    /// A client with a session.
    pub(crate) async fn legacy(&self, path: &str, capabilities: Value) -> Client {
        let mut client = self.client(path);
        client.open_session(capabilities).await;
        client
    }

    pub(crate) async fn socket(&self, name: &str) -> Socket {
        let path = self.dir.path().join("run").join(format!("{name}.sock"));
        let (reader, writer) = UnixStream::connect(path).await.unwrap().into_split();
        Socket::of(reader, writer)
    }

    /// The text of the record on the disk.
    pub(crate) fn audit_text(&self) -> String {
        let mut paths = Vec::new();
        for entry in fs_err::read_dir(self.dir.path().join("audit")).unwrap() {
            let path = entry.unwrap().path();
            // Rotated files come first, in their order.
            paths.extend((path.extension().is_some_and(|kind| kind == "jsonl")).then_some(path));
        }
        paths.sort();
        paths.iter().map(|path| fs_err::read_to_string(path).unwrap()).collect()
    }

    /// Every record of a call, with its object as `item`, and its other members; the program is
    /// ended for it.
    pub(crate) async fn audit(&self) -> Vec<Value> {
        self.app.drain().await;
        let text = self.audit_text();
        let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let calls = records.filter(|record| record["details"]["method"].is_string());
        calls.map(told).collect()
    }
}

/// A record with its details as members of its own.
fn told(mut record: Value) -> Value {
    let details = record["details"].take();
    for (name, value) in details.as_object().unwrap() {
        record[name] = value.clone();
    }
    let resource = record["resource"].take();
    if !["server", "endpoint"].contains(&resource["kind"].as_str().unwrap()) {
        record["item"] = json!({ "kind": resource["kind"], "name": resource["id"] });
    }
    record
}

/// Noon of a day, for ever, so that no count of a day ends in the middle of a test.
fn noon() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(20_000 * 24 * 60 * 60 + 12 * 60 * 60)
}

pub(crate) fn http_entry(url: &str) -> Value {
    json!({ "transport": "http", "url": url })
}

pub(crate) fn initialize(capabilities: Value) -> Value {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
        "clientInfo": {"name": "t", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// A request with the members that every modern request must have.
pub(crate) fn modern(id: u64, method: &str, params: Value) -> Value {
    message(Era::Modern, Some(id), method, params)
}

pub(crate) fn legacy(id: u64, method: &str, params: Value) -> Value {
    message(Era::Legacy, Some(id), method, params)
}

pub(crate) fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

/// A client over HTTP, with one connection for requests in sequence.
pub(crate) struct Client {
    address: SocketAddr,
    path: String,
    token: String,
    pub(crate) session: Option<String>,
    connection: Option<http1::SendRequest<Full<Bytes>>>,
    tasks: TaskTracker,
}

/// A whole answer: its JSON body, or the messages of its stream.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) messages: Vec<String>,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        let last = self.messages.last().unwrap_or_else(|| panic!("nothing in {self:?}"));
        serde_json::from_str(last).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub(crate) fn code(&self) -> Option<i64> {
        serde_json::from_slice::<Value>(&self.body).ok()?["error"]["code"].as_i64()
    }

    /// The kind of a failed call (D16).
    pub(crate) fn kind(&self) -> String {
        let answer = self.json();
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        answer["result"]["structuredContent"]["error"]["kind"].as_str().unwrap().to_owned()
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr, path: &str, token: &str) -> Self {
        Self {
            address,
            path: path.to_owned(),
            token: token.to_owned(),
            session: None,
            connection: None,
            tasks: TaskTracker::new(),
        }
    }

    /// The client in a session that was opened elsewhere.
    pub(crate) fn in_session(self, session: &str) -> Self {
        Self { session: Some(session.to_owned()), ..self }
    }

    pub(crate) fn has_token(&self, token: &str) -> bool {
        self.token == token
    }

    pub(crate) async fn open_session(&mut self, capabilities: Value) {
        let reply = self.post(&[], initialize(capabilities).to_string()).await;
        assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
        self.session = Some(reply.headers["mcp-session-id"].to_str().unwrap().to_owned());
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        self.post(&[], ready.to_owned()).await;
    }

    /// Sends a modern request with the headers that it must have.
    pub(crate) async fn modern(&mut self, request: &Value) -> Reply {
        let method = request["method"].as_str().unwrap();
        let name = ["name", "uri", "taskId"].iter().find_map(|key| request["params"][key].as_str());
        self.post(&modern_headers(method, name), request.to_string()).await
    }

    pub(crate) async fn post(&mut self, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Reply {
        let request = self.request("POST", headers, body.into());
        if self.connection.as_ref().is_none_or(http1::SendRequest::is_closed) {
            self.connection = Some(self.connect().await);
        }
        let connection = self.connection.as_mut().unwrap();
        connection.ready().await.unwrap();
        let reply = whole(connection, request).await;
        // As HTTP has it: the daemon closes this connection.
        if reply.headers.get("connection").is_some_and(|value| value == "close") {
            self.connection = None;
        }
        reply
    }

    /// Sends a request on a connection of its own and reads the whole answer.
    pub(crate) async fn whole(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Reply {
        whole(&mut self.connect().await, self.request(method, headers, body.into())).await
    }

    /// Opens a stream on a connection of its own.
    pub(crate) async fn open(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Stream {
        let request = self.request(method, headers, Bytes::copy_from_slice(body.as_bytes()));
        let mut connection = self.connect().await;
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let (parts, body) = connection.send_request(request).await.unwrap().into_parts();
        let (status, headers) = (parts.status, &parts.headers);
        let path = uri.path();
        CONTRACT.check(Seen { method: &method, path, status, headers, body: None });
        Stream { status: parts.status, body, unread: Vec::new(), _connection: connection }
    }

    /// Opens the stream for messages outside of answers.
    pub(crate) async fn listen(&self) -> Stream {
        let stream = self.open("GET", &[], "").await;
        assert_eq!(stream.status, StatusCode::OK);
        stream
    }

    pub(crate) async fn end_session(&mut self) {
        let stream = self.open("DELETE", &[], "").await;
        assert_eq!(stream.status, StatusCode::NO_CONTENT);
        self.session = None;
    }

    fn request(&self, method: &str, headers: &[(&str, &str)], body: Bytes) -> Request<Full<Bytes>> {
        let mut builder = Request::builder()
            .method(method)
            .uri(&self.path)
            .header("host", self.address.to_string())
            .header("authorization", format!("Bearer {}", self.token));
        if !headers.iter().any(|(name, _)| *name == "accept") {
            builder = builder.header("accept", "application/json, text/event-stream");
        }
        if method == "POST" {
            builder = builder.header("content-type", "application/json");
        }
        if let Some(session) = &self.session {
            builder = builder.header("mcp-session-id", session);
        }
        let add = |builder: http::request::Builder, header: &(&str, &str)| {
            builder.header(header.0, header.1)
        };
        headers.iter().fold(builder, add).body(Full::new(body)).unwrap()
    }

    async fn connect(&self) -> http1::SendRequest<Full<Bytes>> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        self.tasks.spawn(async move { drop(connection.await) });
        sender
    }
}

/// The contract that every answer of a test is compared with.
static CONTRACT: LazyLock<Contract> = LazyLock::new(|| Contract::new(openapi()));

async fn whole(
    connection: &mut http1::SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Reply {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let asked = request.body().clone().collect().await.unwrap().to_bytes();
    planted::sent(&method, uri.path(), &asked);
    let sent = tokio::time::timeout(SOON, async {
        let (parts, body) = connection.send_request(request).await.unwrap().into_parts();
        (parts, body.collect().await.unwrap().to_bytes())
    });
    let (parts, body) = sent.await.expect("no answer");
    let (status, headers) = (parts.status, &parts.headers);
    let path = uri.path();
    let seen = Seen { method: &method, path, status, headers, body: Some(&body) };
    CONTRACT.check(seen);
    planted::answered(seen);
    let kind = parts.headers.get("content-type").map_or("", |kind| kind.to_str().unwrap());
    let text = String::from_utf8(body.to_vec()).unwrap();
    let messages = match kind {
        "text/event-stream" => events(&text),
        "application/json" => vec![text],
        _ => vec![],
    };
    Reply { status: parts.status, headers: parts.headers, body, messages }
}

pub(crate) fn modern_headers<'a>(
    method: &'a str,
    name: Option<&'a str>,
) -> Vec<(&'static str, &'a str)> {
    let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
    headers.extend(name.map(|name| ("mcp-name", name)));
    headers
}

/// The data of all events that have any.
fn events(text: &str) -> Vec<String> {
    text.split("\n\n").filter_map(data_of).collect()
}

fn data_of(event: &str) -> Option<String> {
    let lines: Vec<_> = event.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// An open answer.
pub(crate) struct Stream {
    pub(crate) status: StatusCode,
    body: Incoming,
    unread: Vec<u8>,
    _connection: http1::SendRequest<Full<Bytes>>,
}

impl Stream {
    /// The next message; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.unread.windows(2).position(|two| two == b"\n\n") {
                let event = self.unread.drain(..end + 2).collect();
                let event = String::from_utf8(event).unwrap();
                planted::said("an event", event.as_bytes());
                match data_of(&event) {
                    None => continue,
                    data => return data,
                }
            }
            let frame = tokio::time::timeout(SOON, self.body.frame()).await.expect("no event");
            let chunk = frame?.unwrap().into_data().unwrap();
            self.unread.extend_from_slice(&chunk);
        }
    }
}

/// A client over a Unix socket, or another stream of lines.
pub(crate) struct Socket {
    lines: Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
}

impl Socket {
    pub(crate) fn of(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let reader: Box<dyn AsyncRead + Send + Unpin> = Box::new(reader);
        Self { lines: BufReader::new(reader).lines(), writer: Box::new(writer) }
    }

    pub(crate) async fn send(&mut self, line: &str) {
        self.send_bytes(line.as_bytes()).await;
    }

    pub(crate) async fn send_bytes(&mut self, line: &[u8]) {
        self.writer.write_all(&[line, b"\n"].concat()).await.unwrap();
        self.writer.flush().await.unwrap();
    }

    pub(crate) async fn next(&mut self) -> String {
        let line = tokio::time::timeout(SOON, self.lines.next_line()).await;
        let line = line.expect("no line").unwrap().expect("the socket was closed");
        planted::said("a line of a socket", line.as_bytes());
        line
    }

    pub(crate) async fn ask(&mut self, message: &Value) -> Value {
        self.send(&message.to_string()).await;
        serde_json::from_str(&self.next().await).unwrap()
    }
}
