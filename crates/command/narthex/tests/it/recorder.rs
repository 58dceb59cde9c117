//! A bare MCP server that stores every message byte for byte and answers with given bytes: over
//! Streamable HTTP, over HTTP+SSE, or over the pipes of a child process.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, combinators::BoxBody};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::{Body, Frame, Incoming},
    header::HeaderValue,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json, value::RawValue};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{TcpListener, unix::pipe},
    sync::mpsc,
};
use tokio_util::task::TaskTracker;

use crate::template::{Holes, fill, one_line};

/// Longer than anything here takes, however busy the machine is.
const SOON: Duration = Duration::from_secs(60);
const QUEUE: usize = 4096;

/// The one era that the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// One POST or line, unchanged.
#[derive(Debug, Clone)]
pub(crate) struct Got {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// The reply to requests; its holes are filled with the request's values.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Json(String),
    /// One event for each text.
    Events(Vec<String>),
    /// A status without a body.
    Status(u16),
}

/// The server, until it is dropped.
pub(crate) struct Recorder {
    pub(crate) url: String,
    /// Its entry in an `mcp.json`.
    pub(crate) entry: Value,
    shared: Arc<Shared>,
    got: mpsc::Receiver<Got>,
    _pipes: Option<TempDir>,
}

struct Shared {
    era: Era,
    /// True if the server answers on the stream that the client opened first.
    is_sse: bool,
    tools: Vec<String>,
    reply: Mutex<Option<Reply>>,
    got: mpsc::Sender<Got>,
    /// All messages, including those of handshakes and lists.
    all: Mutex<Vec<Got>>,
    /// The streams that clients opened for messages outside of answers.
    streams: Mutex<Vec<Outlet>>,
    /// All streams of HTTP+SSE, by the number in the address for their messages.
    channels: Mutex<Vec<mpsc::Sender<Bytes>>>,
}

/// A stream for messages outside of answers.
struct Outlet {
    sender: mpsc::Sender<Bytes>,
    frame: fn(&str) -> Bytes,
}

/// The answer to a message.
enum Said {
    /// The message was accepted and has no answer.
    Nothing,
    /// Answers of handshakes and lists.
    Own { text: String, opens_session: bool },
    /// The reply of the test, with its holes filled.
    Reply(Reply),
}

impl Said {
    /// The messages of the answer, for transports without statuses.
    fn texts(self) -> Vec<String> {
        match self {
            Self::Nothing | Self::Reply(Reply::Status(_)) => vec![],
            Self::Own { text, .. } | Self::Reply(Reply::Json(text)) => vec![text],
            Self::Reply(Reply::Events(texts)) => texts,
        }
    }
}

/// The parts of a message that a reader cannot do without.
#[derive(serde::Deserialize)]
pub(crate) struct Envelope<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<&'a RawValue>,
    pub(crate) method: Option<String>,
    #[serde(borrow)]
    pub(crate) params: Option<&'a RawValue>,
}

#[derive(serde::Deserialize)]
struct Params<'a> {
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

#[derive(serde::Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: Option<&'a RawValue>,
}

/// A message's id and progress token, as written.
pub(crate) fn holes_of(body: &[u8]) -> Holes {
    let envelope: Envelope<'_> = serde_json::from_slice(body).unwrap();
    let params = envelope.params.filter(|params| params.get().starts_with('{'));
    let params = params.map(|params| serde_json::from_str::<Params<'_>>(params.get()).unwrap());
    let token = params.and_then(|params| params.meta).and_then(|meta| meta.token);
    let text = |raw: Option<&RawValue>| raw.map_or("", RawValue::get).to_owned();
    Holes { id: text(envelope.id), token: text(token), state: String::new() }
}

impl Recorder {
    pub(crate) async fn start(era: Era) -> Self {
        Self::with_tools(era, &["t"]).await
    }

    /// A server with these tools, and `h`, which mirrors an argument in a header.
    pub(crate) async fn with_tools(era: Era, tools: &[&str]) -> Self {
        let (shared, got) = shared(era, tools, false);
        Self::over_http(shared, got).await
    }

    /// A legacy one over HTTP+SSE.
    pub(crate) async fn sse() -> Self {
        let (shared, got) = shared(Era::Legacy, &["t"], true);
        Self::over_http(shared, got).await
    }

    async fn over_http(shared: Arc<Shared>, got: mpsc::Receiver<Got>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let transport = if shared.is_sse { "sse" } else { "http" };
        let entry = json!({ "transport": transport, "url": url });
        let tasks = TaskTracker::new();
        tasks.spawn(accept(listener, shared.clone(), tasks.clone()));
        Self { url, entry, shared, got, _pipes: None }
    }

    /// A server behind a child process, which passes on its pipes. There can be one child.
    pub(crate) fn stdio(era: Era) -> Self {
        let (shared, got) = shared(era, &["t"], false);
        let dir = tempfile::tempdir().unwrap();
        let [asked, answered] = ["asked", "answered"].map(|name| {
            let path = dir.path().join(name);
            let made = std::process::Command::new("mkfifo").arg(&path).status();
            assert!(made.unwrap().success());
            path
        });
        // Open on both ends here, so that neither is at its end before the child is there.
        let mut pipe = pipe::OpenOptions::new();
        let pipe = pipe.read_write(true);
        let lines = BufReader::new(pipe.open_receiver(&asked).unwrap()).lines();
        let answers = pipe.open_sender(&answered).unwrap();
        let script = r#"cat "$1" & exec cat > "$0""#;
        let entry = json!({ "transport": "stdio", "command": "sh",
            "args": ["-c", script, asked, answered] });
        TaskTracker::new().spawn(converse(shared.clone(), lines, answers));
        Self { url: String::new(), entry, shared, got, _pipes: Some(dir) }
    }

    /// From now on stores requests for [`Self::next`], and answers them with this reply.
    pub(crate) fn answer_with(&self, reply: Reply) {
        *lock(&self.shared.reply) = Some(reply);
    }

    /// The next message that is neither handshake nor one of the gateway's own lists.
    pub(crate) async fn next(&mut self) -> Got {
        let next = tokio::time::timeout(SOON, self.got.recv()).await;
        next.expect("nothing arrived at the server").unwrap()
    }

    /// Number of messages that wait for [`Self::next`].
    pub(crate) fn waiting(&self) -> usize {
        self.got.len()
    }

    /// Everything that came since the start.
    pub(crate) fn all(&self) -> Vec<Got> {
        lock(&self.shared.all).clone()
    }

    /// Waits until `count` streams for messages outside of answers are open: a link may be in use
    /// before its stream is open.
    pub(crate) async fn has_streams(&self, count: usize) {
        let opened = async {
            while lock(&self.shared.streams).len() < count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, opened).await.expect("a link has no stream");
    }

    /// Says something on every stream of the server's own. Waits until there is one.
    pub(crate) async fn say(&self, message: &str) {
        let sent = async {
            while !self.shared.tell(message) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, sent).await.expect("no stream was opened");
    }
}

impl Shared {
    /// Sends a message to open streams; true if there is one.
    fn tell(&self, message: &str) -> bool {
        let mut open = lock(&self.streams);
        open.retain(|stream| stream.sender.try_send((stream.frame)(message)).is_ok());
        !open.is_empty()
    }
}

fn shared(era: Era, tools: &[&str], is_sse: bool) -> (Arc<Shared>, mpsc::Receiver<Got>) {
    let (sender, got) = mpsc::channel(QUEUE);
    let shared = Shared {
        era,
        is_sse,
        tools: tools.iter().map(|name| (*name).to_owned()).collect(),
        reply: Mutex::default(),
        got: sender,
        all: Mutex::default(),
        streams: Mutex::default(),
        channels: Mutex::default(),
    };
    (Arc::new(shared), got)
}

/// Takes lines and answers in lines.
async fn converse(
    shared: Arc<Shared>,
    mut lines: Lines<BufReader<pipe::Receiver>>,
    mut answers: pipe::Sender,
) {
    let (sender, mut said) = mpsc::channel::<Bytes>(QUEUE);
    lock(&shared.streams).push(Outlet { sender, frame: line_of });
    loop {
        let texts = tokio::select! {
            Ok(Some(line)) = lines.next_line() => {
                let got = Got { headers: HeaderMap::new(), body: line.into() };
                let texts = taken(&shared, got).await.texts();
                texts.iter().map(|text| line_of(text)).collect()
            }
            Some(text) = said.recv() => vec![text],
            else => return,
        };
        for text in texts {
            answers.write_all(&text).await.unwrap();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, tasks: TaskTracker) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = shared.clone();
        let service = service_fn(move |request| answer(shared.clone(), request));
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service);
        tasks.spawn(async move { drop(connection.await) });
    }
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let (parts, body) = request.into_parts();
    if parts.method == Method::GET {
        return Ok(own_stream(&shared));
    }
    let Ok(body) = body.collect().await else { return Ok(status(StatusCode::BAD_REQUEST)) };
    if parts.method != Method::POST {
        return Ok(status(StatusCode::OK));
    }
    let said = taken(&shared, Got { headers: parts.headers, body: body.to_bytes() }).await;
    if shared.is_sse {
        let number = parts.uri.path().rsplit('/').next().unwrap().parse::<usize>();
        let Ok(number) = number else { return Ok(status(StatusCode::METHOD_NOT_ALLOWED)) };
        let channel = lock(&shared.channels)[number].clone();
        for text in said.texts() {
            channel.try_send(event(&text)).unwrap();
        }
        return Ok(status(StatusCode::ACCEPTED));
    }
    Ok(match said {
        Said::Nothing => status(StatusCode::ACCEPTED),
        Said::Own { text, opens_session } => {
            let mut answer = json_body(text);
            if opens_session {
                let session = HeaderValue::from_static("recorded");
                answer.headers_mut().insert("mcp-session-id", session);
            }
            answer
        }
        Said::Reply(Reply::Json(text)) => json_body(text),
        Said::Reply(Reply::Events(texts)) => {
            stream_body(texts.iter().map(|text| event(text)).collect())
        }
        Said::Reply(Reply::Status(code)) => status(StatusCode::from_u16(code).unwrap()),
    })
}

/// Stores a message, and returns the answer.
async fn taken(shared: &Shared, got: Got) -> Said {
    lock(&shared.all).push(got.clone());
    let body = got.body.clone();
    let envelope: Envelope<'_> = serde_json::from_slice(&body).unwrap();
    let method = envelope.method.as_deref().unwrap_or_default();
    if let Some(said) = handshake(shared, method, envelope.id) {
        return said;
    }
    let reply = lock(&shared.reply).clone();
    let Some(reply) = reply else {
        let text = listed(&shared.tools, method, envelope.id);
        return Said::Own { text, opens_session: false };
    };
    shared.got.send(got).await.unwrap();
    if envelope.method.is_none() || envelope.id.is_none() {
        return Said::Nothing;
    }
    let holes = holes_of(&body);
    Said::Reply(match reply {
        Reply::Json(text) => Reply::Json(fill(&text, &holes)),
        Reply::Events(texts) => {
            Reply::Events(texts.iter().map(|text| fill(text, &holes)).collect())
        }
        Reply::Status(code) => Reply::Status(code),
    })
}

fn handshake(shared: &Shared, method: &str, id: Option<&RawValue>) -> Option<Said> {
    let capabilities = json!({"tools": {}, "prompts": {}, "resources": {}, "completions": {}});
    let own = |text| Some(Said::Own { text, opens_session: method == "initialize" });
    match (method, shared.era) {
        ("notifications/initialized", _) => Some(Said::Nothing),
        ("initialize", Era::Legacy) => {
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
                "serverInfo": {"name": "recorder", "version": "1"}});
            own(response(id, &result))
        }
        ("server/discover", Era::Modern) => own(response(
            id,
            &json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private"}),
        )),
        ("initialize" | "server/discover", _) => {
            Some(Said::Own { text: unknown(id), opens_session: false })
        }
        _ => None,
    }
}

fn listed(tools: &[String], method: &str, id: Option<&RawValue>) -> String {
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    let mirrored = json!({"type": "object", "properties": {"region": region}});
    let plain = |name| json!({"name": name, "inputSchema": {"type": "object"}});
    let mut tools: Vec<_> = tools.iter().map(plain).collect();
    tools.push(json!({"name": "h", "inputSchema": mirrored}));
    let list = match method {
        "tools/list" => json!({ "tools": tools }),
        "prompts/list" => json!({"prompts": [{"name": "p"}]}),
        "resources/list" => json!({"resources": [{"uri": "x://r", "name": "r"}]}),
        "resources/templates/list" => json!({"resourceTemplates": []}),
        _ => return unknown(id),
    };
    response(id, &list)
}

fn response(id: Option<&RawValue>, result: &Value) -> String {
    let mut result = result.clone();
    result["resultType"] = "complete".into();
    result["ttlMs"] = 0.into();
    result["cacheScope"] = "private".into();
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.map_or("null", RawValue::get))
}

fn unknown(id: Option<&RawValue>) -> String {
    let id = id.map_or("null", RawValue::get);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"unknown"}}}}"#)
}

fn status(code: StatusCode) -> Answer {
    let mut response = Response::new(BoxBody::default());
    *response.status_mut() = code;
    response
}

fn json_body(text: String) -> Answer {
    let mut response = Response::new(http_body_util::Full::new(text.into()).boxed());
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
    response
}

fn stream_body(events: Vec<Bytes>) -> Answer {
    let (sender, receiver) = mpsc::channel(events.len().max(1));
    for event in events {
        sender.try_send(event).unwrap();
    }
    channel_body(receiver)
}

fn own_stream(shared: &Shared) -> Answer {
    let (sender, receiver) = mpsc::channel(QUEUE);
    if shared.is_sse {
        let mut channels = lock(&shared.channels);
        let address = format!("event: endpoint\ndata: /messages/{}\n\n", channels.len());
        sender.try_send(address.into()).unwrap();
        channels.push(sender.clone());
    }
    lock(&shared.streams).push(Outlet { sender, frame: event });
    channel_body(receiver)
}

fn channel_body(receiver: mpsc::Receiver<Bytes>) -> Answer {
    let mut response = Response::new(Queued(receiver).boxed());
    response.headers_mut().insert("content-type", HeaderValue::from_static("text/event-stream"));
    response
}

/// A body whose chunks come through a queue.
struct Queued(mpsc::Receiver<Bytes>);

impl Body for Queued {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}

/// The message as one line; blanks replace its line ends.
fn line_of(message: &str) -> Bytes {
    format!("{}\n", one_line(message)).into()
}

/// The message as one event; its line ends split it into lines.
fn event(message: &str) -> Bytes {
    let mut text = String::new();
    for line in message.split(['\n', '\r']) {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text.into()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}
