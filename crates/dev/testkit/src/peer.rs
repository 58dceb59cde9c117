//! HTTP servers made by hand, which answer by a function and remember their requests.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::fixture::lock;

/// No wait for a request may need longer, on however busy a machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// One request that a server was sent.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The method of HTTP.
    pub method: Method,
    /// The target as it was sent.
    pub path: String,
    /// All headers.
    pub headers: HeaderMap,
    /// The body as JSON; null if it is none.
    pub body: Value,
}

impl Seen {
    /// The method of JSON-RPC; empty if there is none.
    #[must_use]
    pub fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// One header, if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// The reply of a server.
#[derive(Debug)]
pub enum Reply {
    /// This response.
    Now(Response<Body>),
    /// No reply, for ever.
    Never,
    /// The connection is closed without a word.
    Hangup,
}

/// A body in one piece, or events as a test sends them.
#[derive(Debug)]
pub enum Body {
    /// One piece.
    Full(Option<Bytes>),
    /// Events as they are sent.
    Events(mpsc::Receiver<String>),
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => {
                events.poll_recv(cx).map(|event| event.map(|text| Ok(Frame::data(text.into()))))
            }
        }
    }
}

/// A server that runs until this is dropped.
#[derive(Debug)]
pub struct Peer {
    /// The server's address.
    pub url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    changed: watch::Sender<()>,
    _tasks: JoinSet<()>,
}

impl Peer {
    /// A server that answers by `answer`.
    ///
    /// # Panics
    /// When the machine has no free port.
    pub async fn start(answer: impl Fn(&Seen) -> Reply + Clone + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("a bound socket"));
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let changed = watch::Sender::new(());
        let mut tasks = JoinSet::new();
        let (log, change) = (seen.clone(), changed.clone());
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.expect("a free descriptor");
                let (answer, log, change) = (answer.clone(), log.clone(), change.clone());
                let service = service_fn(move |request| {
                    reply(request, answer.clone(), log.clone(), change.clone())
                });
                serving.spawn(async move {
                    let serving = http1::Builder::new();
                    drop(serving.serve_connection(TokioIo::new(stream), service).await);
                });
            }
        });
        Self { url, seen, changed, _tasks: tasks }
    }

    /// A legacy server without sessions, which leaves the rest to `answer`.
    pub async fn legacy(
        answer: impl Fn(&Seen) -> Option<Reply> + Clone + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |seen| answer(seen).unwrap_or_else(|| legacy_reply(seen, None))).await
    }

    /// A legacy server with the session `s-1`.
    pub async fn session(
        answer: impl Fn(&Seen) -> Option<Reply> + Clone + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |seen| answer(seen).unwrap_or_else(|| legacy_reply(seen, Some("s-1"))))
            .await
    }

    /// A modern server.
    pub async fn modern(
        answer: impl Fn(&Seen) -> Option<Reply> + Clone + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |seen| {
            answer(seen).unwrap_or_else(|| match seen.rpc() {
                "server/discover" => result(
                    seen,
                    &json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
                ),
                _ => error(404, seen, -32601),
            })
        })
        .await
    }

    /// All requests so far, in order.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.seen).clone()
    }

    /// Forgets what it was asked so far.
    pub fn forget(&self) {
        lock(&self.seen).clear();
    }

    /// Waits for a request that `is_it`.
    ///
    /// # Panics
    /// When none comes within a minute.
    pub async fn wait(&self, is_it: impl Fn(&Seen) -> bool) -> Seen {
        let mut changed = self.changed.subscribe();
        tokio::time::timeout(DEADLINE, async {
            loop {
                changed.borrow_and_update();
                if let Some(found) = self.seen().into_iter().find(&is_it) {
                    return found;
                }
                changed.changed().await.expect("the peer lives");
            }
        })
        .await
        .expect("the request must come in time")
    }
}

async fn reply(
    request: Request<Incoming>,
    answer: impl Fn(&Seen) -> Reply,
    log: Arc<Mutex<Vec<Seen>>>,
    changed: watch::Sender<()>,
) -> Result<Response<Body>, std::io::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
    let seen = Seen {
        method: parts.method,
        path: parts.uri.to_string(),
        headers: parts.headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    lock(&log).push(seen.clone());
    let reply = answer(&seen);
    changed.send_replace(());
    match reply {
        Reply::Now(response) => Ok(response),
        Reply::Never => std::future::pending().await,
        Reply::Hangup => Err(std::io::Error::other("hung up")),
    }
}

/// The result of the handshake.
#[must_use]
pub fn initialize_result() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "hand-made", "version": "1"},
    })
}

/// The reply of an ordinary legacy server, with a session or without.
///
/// # Panics
/// When the session fits no header.
#[must_use]
pub fn legacy_reply(seen: &Seen, session: Option<&str>) -> Reply {
    match (seen.method.as_str(), seen.rpc()) {
        ("POST", "initialize") => {
            let Reply::Now(mut response) = result(seen, &initialize_result()) else {
                unreachable!("a result is an answer")
            };
            if let Some(session) = session {
                response
                    .headers_mut()
                    .insert("mcp-session-id", session.parse().expect("a plain id"));
            }
            Reply::Now(response)
        }
        ("POST", "server/discover") => {
            error(400, &Seen { body: json!({}), ..seen.clone() }, -32000)
        }
        ("POST", _) if seen.body.get("id").is_none() || seen.body.get("result").is_some() => {
            text(202, "text/plain", "")
        }
        ("POST", "tools/call") => result(seen, &json!({"content": []})),
        ("DELETE", _) => text(200, "text/plain", ""),
        ("GET", _) => text(405, "text/plain", "no stream"),
        _ => error(200, seen, -32601),
    }
}

/// A body of this type.
#[must_use]
pub fn text(status: u16, kind: &str, body: impl Into<Bytes>) -> Reply {
    let response = Response::builder().status(status).header("content-type", kind);
    Reply::Now(response.body(Body::Full(Some(body.into()))).expect("a valid head"))
}

/// A redirect to another address.
#[must_use]
pub fn redirect(status: u16, to: &str) -> Reply {
    let response = Response::builder().status(status).header("location", to);
    Reply::Now(response.body(Body::Full(Some(Bytes::new()))).expect("a valid head"))
}

/// A result for a request.
#[must_use]
pub fn result(seen: &Seen, result: &Value) -> Reply {
    let body = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result});
    text(200, "application/json", body.to_string())
}

/// An error of JSON-RPC for a request.
#[must_use]
pub fn error(status: u16, seen: &Seen, code: i64) -> Reply {
    let error = json!({"code": code, "message": "no"});
    let body = json!({"jsonrpc": "2.0", "id": seen.body["id"], "error": error});
    text(status, "application/json", body.to_string())
}

/// A stream of events, and the hand that sends them; dropping it ends the stream.
///
/// # Panics
/// Never.
#[must_use]
pub fn events() -> (mpsc::Sender<String>, Reply) {
    let (sender, receiver) = mpsc::channel(64);
    let response = Response::builder().header("content-type", "text/event-stream");
    (sender, Reply::Now(response.body(Body::Events(receiver)).expect("a valid head")))
}

/// A stream of these events, at most 64, that ends after them.
///
/// # Panics
/// When there are more.
#[must_use]
pub fn events_of(list: &[String]) -> Reply {
    let (sender, reply) = events();
    for event in list {
        sender.try_send(event.clone()).expect("at most 64 events");
    }
    reply
}

/// One event with this as its data.
#[must_use]
pub fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}
