//! Tests of the listener over real connections: limits of number and time, and its shutdown.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use narthex_http::listener::{Respond, ServeOptions, serve};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::world::{SOON, World};

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

struct Listener {
    addr: SocketAddr,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl Listener {
    async fn start(router: impl Respond, options: ServeOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(serve(listener, router, options, shutdown.clone(), tasks.clone()));
        Self { addr, shutdown, tasks }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.addr).await.unwrap()
    }

    async fn end(self) {
        self.shutdown.cancel();
        self.tasks.close();
        timeout(SOON, self.tasks.wait()).await.unwrap();
    }
}

/// Answers a request only when the test permits it.
#[derive(Clone, Default)]
struct Gate {
    begun: Arc<Notify>,
    go_on: Arc<Notify>,
}

impl Respond for Gate {
    type Body = Full<Bytes>;

    async fn respond(&self, _request: Request<Incoming>, _sender: IpAddr) -> Response<Full<Bytes>> {
        self.begun.notify_one();
        self.go_on.notified().await;
        Response::new(Full::from("done\n"))
    }
}

/// Reads bytes until `end` has arrived or the connection ends.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut text = Vec::new();
    let reading = async {
        loop {
            let mut chunk = [0; 1024];
            let length = stream.read(&mut chunk).await.unwrap_or(0);
            text.extend_from_slice(&chunk[..length]);
            if length == 0 || String::from_utf8_lossy(&text).contains(end) {
                return;
            }
        }
    };
    timeout(SOON, reading).await.unwrap();
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn a_connection_serves_several_requests() {
    let listener = Listener::start(World::empty().router, ServeOptions::default()).await;
    let mut stream = listener.connect().await;
    for _ in 0..3 {
        stream.write_all(HEALTH).await.unwrap();
        let answer = read_until(&mut stream, "ok\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("\r\ncontent-length: 3\r\n"), "{answer}");
    }
    listener.end().await;
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0, "a resting connection is closed");
}

/// S31: connections beyond the limit are closed at once, and the others stay open.
#[tokio::test]
async fn s31_connections_are_bounded() {
    let options = ServeOptions { max_connections: 2, ..ServeOptions::default() };
    let listener = Listener::start(World::empty().router, options).await;
    let mut open = [listener.connect().await, listener.connect().await];
    for stream in &mut open {
        stream.write_all(HEALTH).await.unwrap();
        assert!(read_until(stream, "ok\n").await.contains("200 OK"));
    }
    let mut refused = listener.connect().await;
    assert_eq!(read_until(&mut refused, "never").await, "");
    let [mut kept, ended] = open;
    drop(ended);
    let reopened = async {
        loop {
            let mut stream = listener.connect().await;
            if stream.write_all(HEALTH).await.is_ok()
                && read_until(&mut stream, "ok\n").await.contains("200 OK")
            {
                return;
            }
        }
    };
    timeout(SOON, reopened).await.unwrap();
    kept.write_all(HEALTH).await.unwrap();
    assert!(read_until(&mut kept, "ok\n").await.contains("200 OK"));
    listener.end().await;
}

/// S31: a connection is closed if its first request is too slow, or if it is idle for too long.
#[tokio::test]
async fn s31_slow_connections_are_closed() {
    let options = ServeOptions {
        header_timeout: Duration::from_millis(50),
        idle_timeout: Duration::from_millis(50),
        ..ServeOptions::default()
    };
    let listener = Listener::start(World::empty().router, options).await;
    let mut silent = listener.connect().await;
    let mut trickling = listener.connect().await;
    trickling.write_all(b"GET /healthz HTTP/1.1\r\nhost: loc").await.unwrap();
    let mut resting = listener.connect().await;
    resting.write_all(HEALTH).await.unwrap();
    assert!(read_until(&mut resting, "ok\n").await.contains("200 OK"));
    for stream in [&mut silent, &mut trickling, &mut resting] {
        assert_eq!(read_until(stream, "never").await, "");
    }
    listener.end().await;
}

/// S31: a request whose body does not arrive in time is refused.
#[tokio::test]
async fn s31_slow_bodies_are_refused() {
    let world =
        World::with_options(|options| options.body_timeout = Duration::from_millis(50)).await;
    let listener = Listener::start(world.router, ServeOptions::default()).await;
    let mut stream = listener.connect().await;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{",
        world.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = read_until(&mut stream, "never").await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    listener.end().await;
}

/// At a shutdown, open requests are still answered, and no new connection is accepted.
#[tokio::test]
async fn open_requests_are_answered_during_a_shutdown() {
    let gate = Gate::default();
    let options = ServeOptions { grace: SOON, ..ServeOptions::default() };
    let listener = Listener::start(gate.clone(), options).await;
    let mut stream = listener.connect().await;
    stream.write_all(HEALTH).await.unwrap();
    timeout(SOON, gate.begun.notified()).await.unwrap();
    let addr = listener.addr;
    listener.shutdown.cancel();
    let refusing = async { while TcpStream::connect(addr).await.is_ok() {} };
    timeout(SOON, refusing).await.unwrap();
    gate.go_on.notify_one();
    let answer = read_until(&mut stream, "never").await;
    assert!(answer.contains("200 OK") && answer.ends_with("done\n"), "{answer}");
    listener.end().await;
}

/// A request that does not end by itself is ended when the grace period is over.
#[tokio::test]
async fn requests_without_an_end_are_closed_after_the_grace_period() {
    let options = ServeOptions { grace: Duration::from_millis(20), ..ServeOptions::default() };
    let gate = Gate::default();
    let listener = Listener::start(gate.clone(), options).await;
    let mut stream = listener.connect().await;
    stream.write_all(HEALTH).await.unwrap();
    timeout(SOON, gate.begun.notified()).await.unwrap();
    listener.end().await;
    assert_eq!(read_until(&mut stream, "never").await, "");
}
