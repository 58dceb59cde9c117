//! A bare HTTP MCP server that keeps what it is sent, byte for byte, and answers with given bytes.

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
use serde_json::{json, value::RawValue};
use tokio::{net::TcpListener, sync::mpsc};
use tokio_util::task::TaskTracker;

use crate::template::{Holes, fill};

/// Longer than anything here takes, however busy the machine is.
const SOON: Duration = Duration::from_secs(60);
const QUEUE: usize = 4096;

/// Which one era the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// One POST, as it came.
#[derive(Debug, Clone)]
pub(crate) struct Got {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// How requests are answered; holes are filled with what the request had.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Json(String),
    /// One event for each.
    Events(Vec<String>),
    /// A status without a body.
    Status(u16),
}

/// The server, until it is dropped.
pub(crate) struct Recorder {
    pub(crate) url: String,
    shared: Arc<Shared>,
    got: mpsc::Receiver<Got>,
}

struct Shared {
    era: Era,
    tools: Vec<String>,
    reply: Mutex<Option<Reply>>,
    got: mpsc::Sender<Got>,
    /// Everything, also what belongs to handshakes and lists.
    all: Mutex<Vec<Got>>,
    /// The streams that clients opened for what the server says by itself.
    streams: Mutex<Vec<mpsc::Sender<Bytes>>>,
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

    /// With these tools, and `h`, which mirrors an argument in a header.
    pub(crate) async fn with_tools(era: Era, tools: &[&str]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (sender, got) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared {
            era,
            tools: tools.iter().map(|name| (*name).to_owned()).collect(),
            reply: Mutex::default(),
            got: sender,
            all: Mutex::default(),
            streams: Mutex::default(),
        });
        let tasks = TaskTracker::new();
        tasks.spawn(accept(listener, shared.clone(), tasks.clone()));
        Self { url, shared, got }
    }

    /// From now on requests are kept for [`Self::next`] and answered with this.
    pub(crate) fn answer_with(&self, reply: Reply) {
        *lock(&self.shared.reply) = Some(reply);
    }

    /// The next message that is neither handshake nor one of the gateway's own lists.
    pub(crate) async fn next(&mut self) -> Got {
        let next = tokio::time::timeout(SOON, self.got.recv()).await;
        next.expect("nothing arrived at the server").unwrap()
    }

    /// How many messages wait for [`Self::next`].
    pub(crate) fn waiting(&self) -> usize {
        self.got.len()
    }

    /// Everything that came since the start.
    pub(crate) fn all(&self) -> Vec<Got> {
        lock(&self.shared.all).clone()
    }

    /// Says something on every stream of the server's own. Waits until there is one.
    pub(crate) async fn say(&self, message: &str) {
        let event = event(message);
        let sent = async {
            while !self.shared.tell(&event) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, sent).await.expect("no stream was opened");
    }
}

impl Shared {
    /// Whether anybody listens.
    fn tell(&self, event: &Bytes) -> bool {
        let mut open = lock(&self.streams);
        open.retain(|stream| stream.try_send(event.clone()).is_ok());
        !open.is_empty()
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
    let body = body.to_bytes();
    let got = Got { headers: parts.headers, body: body.clone() };
    if parts.method == Method::POST {
        lock(&shared.all).push(got.clone());
    }
    if parts.method != Method::POST {
        return Ok(status(StatusCode::OK));
    }
    let envelope: Envelope<'_> = serde_json::from_slice(&body).unwrap();
    let method = envelope.method.as_deref().unwrap_or_default();
    if let Some(answer) = handshake(&shared, method, envelope.id) {
        return Ok(answer);
    }
    let reply = lock(&shared.reply).clone();
    let Some(reply) = reply else { return Ok(listed(&shared.tools, method, envelope.id)) };
    shared.got.send(got).await.unwrap();
    if envelope.method.is_none() || envelope.id.is_none() {
        return Ok(status(StatusCode::ACCEPTED));
    }
    let holes = holes_of(&body);
    Ok(match reply {
        Reply::Json(text) => json_body(fill(&text, &holes)),
        Reply::Events(texts) => {
            stream_body(texts.iter().map(|text| event(&fill(text, &holes))).collect())
        }
        Reply::Status(code) => status(StatusCode::from_u16(code).unwrap()),
    })
}

fn handshake(shared: &Shared, method: &str, id: Option<&RawValue>) -> Option<Answer> {
    let capabilities = json!({"tools": {}, "prompts": {}, "resources": {}, "completions": {}});
    match (method, shared.era) {
        ("notifications/initialized", _) => Some(status(StatusCode::ACCEPTED)),
        ("initialize", Era::Legacy) => {
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
                "serverInfo": {"name": "recorder", "version": "1"}});
            let mut answer = json_body(response(id, &result));
            answer.headers_mut().insert("mcp-session-id", HeaderValue::from_static("recorded"));
            Some(answer)
        }
        ("server/discover", Era::Modern) => Some(json_body(response(
            id,
            &json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private"}),
        ))),
        ("initialize" | "server/discover", _) => Some(json_body(unknown(id))),
        _ => None,
    }
}

fn listed(tools: &[String], method: &str, id: Option<&RawValue>) -> Answer {
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
        _ => return json_body(unknown(id)),
    };
    json_body(response(id, &list))
}

fn response(id: Option<&RawValue>, result: &serde_json::Value) -> String {
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
    lock(&shared.streams).push(sender);
    channel_body(receiver)
}

fn channel_body(receiver: mpsc::Receiver<Bytes>) -> Answer {
    let mut response = Response::new(Queued(receiver).boxed());
    response.headers_mut().insert("content-type", HeaderValue::from_static("text/event-stream"));
    response
}

/// A body of what comes through a queue.
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

/// One event; raw line ends split it into lines.
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
