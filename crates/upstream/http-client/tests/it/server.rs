//! Servers for the client's tests: a well-behaved one, and a socket to misbehave with.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use narthex_http_client::{ClientSettings, HttpClient};
use narthex_wire::Payload;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use url::Url;

pub(crate) type Answer = Response<Full<Bytes>>;

/// A server that answers by a function of the request. It ends when this is dropped.
pub(crate) struct Server {
    pub(crate) url: Url,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(
        answer: impl Fn(Request<Bytes>) -> Answer + Clone + Send + Sync + 'static,
    ) -> Self {
        let raw = Raw::bind().await;
        let (connections, requests) =
            (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (accepted, seen) = (Arc::clone(&connections), Arc::clone(&requests));
        let url = raw.url.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            loop {
                let (stream, _) = raw.listener.accept().await.unwrap();
                accepted.fetch_add(1, Ordering::SeqCst);
                serving.spawn(serve(stream, answer.clone(), Arc::clone(&seen)));
            }
        });
        Self { url, connections, requests, _tasks: tasks }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn client(&self) -> HttpClient {
        client(&self.url)
    }
}

/// Serves one connection to its end.
pub(crate) async fn serve<I, F>(stream: I, answer: F, seen: Arc<AtomicUsize>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Fn(Request<Bytes>) -> Answer + Clone + Send + Sync + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        seen.fetch_add(1, Ordering::SeqCst);
        let answer = answer.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            Ok::<_, Infallible>(answer(Request::from_parts(parts, body)))
        }
    });
    // A client that goes away is no failure of the server.
    drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

/// A bare listener.
pub(crate) struct Raw {
    pub(crate) listener: TcpListener,
    pub(crate) url: Url,
}

impl Raw {
    pub(crate) async fn bind() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        Self { listener, url: Url::parse(&url).unwrap() }
    }

    pub(crate) async fn accept(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }
}

/// Reads one request, whose body must be `{}`.
pub(crate) async fn read_request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n{}") {
        assert_ne!(stream.read_buf(&mut text).await.unwrap(), 0, "the client went away");
    }
    String::from_utf8(text).unwrap()
}

/// Waits until the client closes.
pub(crate) async fn wait_for_close(stream: &mut TcpStream) {
    let mut rest = [0; 1024];
    // A reset is a close, too.
    while stream.read(&mut rest).await.unwrap_or(0) > 0 {}
}

pub(crate) async fn write(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
}

pub(crate) fn client(url: &Url) -> HttpClient {
    HttpClient::new(url, ClientSettings::default()).unwrap()
}

/// A POST of `{}`, as far as the path goes.
pub(crate) fn post(path: &str) -> Request<Payload> {
    post_bytes(path, Bytes::from_static(b"{}"))
}

pub(crate) fn post_bytes(path: &str, body: Bytes) -> Request<Payload> {
    Request::post(path).header("authorization", "Bearer hush").body(body.into()).unwrap()
}

pub(crate) fn answer(body: impl Into<Bytes>) -> Answer {
    Response::new(Full::new(body.into()))
}
