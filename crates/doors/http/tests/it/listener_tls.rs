//! Tests of the encrypted listener: handshakes, their limits, and clients without TLS.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use narthex_http::listener::{Respond, ServeOptions, Workers, serve};
use narthex_http_client::{ClientSettings, HttpClient};
use narthex_tls::{Followed, SelfSigned, Source};
use narthex_wire::Payload;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use crate::world::SOON;

/// Answers each request, and records failed handshakes.
#[derive(Clone, Default)]
struct Record {
    failed: Arc<Mutex<Vec<&'static str>>>,
    changed: Arc<Notify>,
}

impl Respond for Record {
    type Body = Full<Bytes>;

    async fn respond(&self, _request: Request<Incoming>, _sender: IpAddr) -> Response<Full<Bytes>> {
        Response::new(Full::from("served\n"))
    }

    fn handshake_failed(&self, reason: &'static str) {
        self.failed.lock().unwrap().push(reason);
        self.changed.notify_one();
    }
}

struct Listener {
    addr: SocketAddr,
    followed: Followed,
    record: Record,
    shutdown: CancellationToken,
    tasks: TaskTracker,
    _folder: TempDir,
}

impl Listener {
    async fn start(options: ServeOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let names = vec!["localhost".to_owned()];
        let made = SelfSigned { folder: folder.path().to_owned(), names };
        let followed = Followed::begin(Source::SelfSigned(made)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        let options = ServeOptions { tls: Some(followed.tls().clone()), ..options };
        let record = Record::default();
        tasks.spawn(serve(listener, record.clone(), options, shutdown.clone(), tasks.clone()));
        Self { addr, followed, record, shutdown, tasks, _folder: folder }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.addr).await.unwrap()
    }

    /// A client that accepts this listener's certificate alone.
    fn client(&self) -> HttpClient {
        let url = Url::parse(&format!("https://{}", self.addr)).unwrap();
        let pins = Arc::new(vec![self.followed.identity().fingerprint()]);
        let settings = ClientSettings { pins: Some(pins), ..ClientSettings::default() };
        HttpClient::new(&url, settings).unwrap()
    }

    async fn is_served(&self, client: &HttpClient) {
        let request = Request::get("/").body(Payload::default()).unwrap();
        let answer = timeout(SOON, client.send(request)).await.unwrap().unwrap();
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.body.collect(100).await.unwrap(), "served\n");
    }

    /// Waits for the next failed handshake.
    async fn failed(&self) -> &'static str {
        timeout(SOON, self.record.changed.notified()).await.unwrap();
        self.record.failed.lock().unwrap().pop().unwrap()
    }

    async fn end(self) {
        self.shutdown.cancel();
        self.tasks.close();
        timeout(SOON, self.tasks.wait()).await.unwrap();
    }
}

/// Reads until the listener closes the connection.
async fn rest(mut stream: TcpStream) -> String {
    let mut text = String::new();
    // A connection that the listener closes may also be reset.
    drop(timeout(SOON, stream.read_to_string(&mut text)).await.unwrap());
    text
}

#[tokio::test]
async fn requests_are_served_over_tls_with_and_without_worker_threads() {
    for workers in [Workers::default(), Workers::start().unwrap()] {
        let options = ServeOptions { workers: workers.clone(), ..ServeOptions::default() };
        let listener = Listener::start(options).await;
        let client = listener.client();
        for _ in 0..3 {
            listener.is_served(&client).await;
        }
        listener.end().await;
        workers.stop().await;
    }
}

/// S31: a client that never finishes its handshake takes no place of a connection, and does not
/// hold up the next client.
#[tokio::test]
async fn s31_a_slow_handshake_holds_up_no_other_client() {
    let options = ServeOptions {
        max_connections: 1,
        handshakes_max: 2,
        handshake_timeout: SOON,
        ..ServeOptions::default()
    };
    let listener = Listener::start(options).await;
    let mut slow = listener.connect().await;
    // The first bytes of a handshake, and no more.
    slow.write_all(&[0x16, 0x03, 0x01]).await.unwrap();
    let client = listener.client();
    listener.is_served(&client).await;
    // The connection of the client is the only one that may be open.
    let refused = listener.client().send(Request::get("/").body(Payload::default()).unwrap()).await;
    assert!(refused.is_err());
    drop(client);
    listener.end().await;
    assert_eq!(rest(slow).await, "", "a shutdown waits for no handshake");
}

/// S31: handshakes are limited in number and in time.
#[tokio::test]
async fn s31_handshakes_are_bounded() {
    let options = ServeOptions {
        handshakes_max: 1,
        handshake_timeout: Duration::from_millis(50),
        ..ServeOptions::default()
    };
    let listener = Listener::start(options).await;
    let slow = listener.connect().await;
    assert_eq!(listener.failed().await, "tls_timeout");
    assert_eq!(rest(slow).await, "");
    listener.end().await;

    let options =
        ServeOptions { handshakes_max: 1, handshake_timeout: SOON, ..ServeOptions::default() };
    let listener = Listener::start(options).await;
    let _slow = listener.connect().await;
    assert_eq!(rest(listener.connect().await).await, "", "a second one is closed at once");
    listener.end().await;
}

#[tokio::test]
async fn clients_without_tls_are_told_and_others_are_counted() {
    let listener = Listener::start(ServeOptions::default()).await;
    let mut plain = listener.connect().await;
    let request = format!("POST /mcp HTTP/1.1\r\nhost: x\r\n\r\n{}", "x".repeat(10_000));
    plain.write_all(request.as_bytes()).await.unwrap();
    plain.shutdown().await.unwrap();
    let answer = rest(plain).await;
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("https://"), "{answer}");
    assert_eq!(listener.failed().await, "tls_plain_http");

    let mut broken = listener.connect().await;
    broken.write_all(&[0x16, 0xff, 0xff, 0x00, 0x05, 1, 2, 3, 4, 5]).await.unwrap();
    rest(broken).await;
    assert_eq!(listener.failed().await, "tls_handshake");

    // A check of the open port is no failure.
    drop(listener.connect().await);
    listener.is_served(&listener.client()).await;
    assert!(listener.record.failed.lock().unwrap().is_empty());
    listener.end().await;
}
