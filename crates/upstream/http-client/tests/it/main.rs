//! The HTTP client against well-behaved servers, and in its modules against others.

#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    reason = "this whole program is tests; clippy looks for the module of unit tests"
)]

mod broken;
mod proxy;
mod redirects;
mod server;
mod tls;

use std::{future::poll_fn, task::Poll, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use narthex_http_client::{ClientError, ClientSettings, HttpClient, ResponseBody};
use narthex_model::ErrorKind;
use tokio::task::JoinSet;

use self::server::{
    Raw, Server, answer, client, post, post_bytes, read_request, wait_for_close, write,
};

const LIMIT: usize = 64 * 1024 * 1024;

async fn call(client: &HttpClient) -> Bytes {
    client.send(post("/mcp")).await.unwrap().body.collect(LIMIT).await.unwrap()
}

#[tokio::test]
async fn requests_in_a_row_share_one_connection() {
    let server = Server::start(|_| answer("yes")).await;
    let client = server.client();
    for _ in 0..10 {
        assert_eq!(call(&client).await, "yes");
    }
    assert_eq!((server.connections(), server.requests()), (1, 10));
}

#[tokio::test]
async fn an_answer_without_a_body_frees_the_connection() {
    let server =
        Server::start(|_| Response::builder().status(202).body(Bytes::new().into()).unwrap());
    let server = server.await;
    let client = server.client();
    for _ in 0..3 {
        let response = client.send(post("/mcp")).await.unwrap();
        assert_eq!(response.status, 202);
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_at_the_same_time_share_a_bounded_number_of_connections() {
    let server = Server::start(|request| answer(request.into_body())).await;
    let settings = ClientSettings { max_connections: 8, ..Default::default() };
    let client = HttpClient::new(&server.url, settings).unwrap();
    let mut callers = JoinSet::new();
    for caller in 0..64 {
        let client = client.clone();
        callers.spawn(async move {
            for turn in 0..20 {
                let sent = Bytes::from(format!("{caller}/{turn}"));
                let response = client.send(post_bytes("/mcp", sent.clone())).await.unwrap();
                assert_eq!(response.body.collect(LIMIT).await.unwrap(), sent);
            }
        });
    }
    callers.join_all().await;
    assert_eq!(server.requests(), 64 * 20);
    assert!(server.connections() <= 8, "{}", server.connections());
}

#[tokio::test]
async fn the_number_of_open_connections_is_limited() {
    let server = Server::start(|_| answer("a".repeat(1 << 20))).await;
    let settings = ClientSettings { max_connections: 2, ..Default::default() };
    let client = HttpClient::new(&server.url, settings).unwrap();
    let first = client.send(post("/mcp")).await.unwrap();
    let second = client.send(post("/mcp")).await.unwrap();
    let mut third = Box::pin(client.send(post("/mcp")));
    tokio::select! {
        biased;
        _ = &mut third => panic!("there is no connection left"),
        () = tokio::task::yield_now() => {}
    }
    first.body.collect(LIMIT).await.unwrap();
    third.await.unwrap();
    drop(second);
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn connections_expire_when_idle() {
    let server = Server::start(|_| answer("yes")).await;
    let client = server.client();
    call(&client).await;
    tokio::time::pause();
    // Some seconds are left for a busy machine.
    tokio::time::advance(Duration::from_secs(50)).await;
    tokio::time::resume();
    call(&client).await;
    assert_eq!(server.connections(), 1);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(56)).await;
    tokio::time::resume();
    call(&client).await;
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn an_idle_connection_is_closed_without_further_requests() {
    let raw = Raw::bind().await;
    let client = client(&raw.url);
    let serve = async {
        let mut stream = raw.accept().await;
        read_request(&mut stream).await;
        write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
        stream
    };
    let (mut stream, body) = tokio::join!(serve, call(&client));
    assert_eq!(body, "ok");
    // From here on only the test moves the clock.
    tokio::time::pause();
    wait_for_close(&mut stream).await;
}

#[tokio::test]
async fn a_connection_is_used_only_by_its_own_runtime() {
    let server = Server::start(|_| answer("yes")).await;
    let client = server.client();
    call(&client).await;
    let other = client.clone();
    let elsewhere = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            assert_eq!(call(&other).await, "yes");
            assert_eq!(call(&other).await, "yes");
        });
    });
    elsewhere.await.unwrap();
    assert_eq!(server.connections(), 2);
    // The leftovers of the other one are of no use, and do no harm.
    assert_eq!(call(&client).await, "yes");
    assert_eq!(server.connections(), 2);
}

/// All stored idle connections may belong to a runtime that does not need them any more.
#[tokio::test]
async fn a_second_runtime_reuses_its_own_idle_connection() {
    let server = Server::start(|_| answer("a".repeat(1 << 20))).await;
    let settings = ClientSettings { max_idle: 2, ..Default::default() };
    let client = HttpClient::new(&server.url, settings).unwrap();
    let first = client.send(post("/mcp")).await.unwrap();
    let second = client.send(post("/mcp")).await.unwrap();
    first.body.collect(LIMIT).await.unwrap();
    second.body.collect(LIMIT).await.unwrap();
    assert_eq!(server.connections(), 2);
    let other = client.clone();
    let elsewhere = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for _ in 0..5 {
                call(&other).await;
            }
        });
    });
    elsewhere.await.unwrap();
    assert_eq!(server.connections(), 3);
    // One of the first two connections is left.
    call(&client).await;
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn large_bodies_pass_both_ways() {
    let server = Server::start(|request| answer(request.into_body())).await;
    let client = server.client();
    let sent =
        Bytes::from((0..8 << 20).map(|n: u32| n.to_le_bytes()[n as usize % 3]).collect::<Vec<_>>());
    for _ in 0..2 {
        let response = client.send(post_bytes("/mcp", sent.clone())).await.unwrap();
        assert!(response.body.collect(LIMIT).await.unwrap() == sent);
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn the_client_sends_its_host_header_and_no_accept_encoding() {
    let raw = Raw::bind().await;
    let client = client(&raw.url);
    let mut request = post("/mcp?x=1");
    request.headers_mut().insert("host", "evil.test".parse().unwrap());
    let serve = async {
        let mut stream = raw.accept().await;
        let seen = read_request(&mut stream).await.to_lowercase();
        write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        seen
    };
    let (response, seen) = tokio::join!(client.send(request), serve);
    response.unwrap();
    assert!(seen.starts_with("post /mcp?x=1 http/1.1\r\n"), "{seen}");
    let host = format!("host: 127.0.0.1:{}\r\n", raw.url.port().unwrap());
    assert!(seen.contains(&host) && !seen.contains("evil") && !seen.contains("encoding"), "{seen}");
    assert!(seen.contains("content-length: 2\r\n"), "{seen}");
}

#[tokio::test]
async fn chunks_arrive_while_the_server_is_still_writing() {
    let raw = Raw::bind().await;
    let client = client(&raw.url);
    let (ask, mut asked) = tokio::sync::mpsc::channel::<&str>(1);
    let serve = async {
        let mut stream = raw.accept().await;
        read_request(&mut stream).await;
        write(&mut stream, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
        while let Some(text) = asked.recv().await {
            write(&mut stream, text).await;
        }
        read_request(&mut stream).await;
        write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlast").await;
    };
    let read = async {
        let mut body = client.send(post("/mcp")).await.unwrap().body;
        ask.send("1\r\na\r\n").await.unwrap();
        assert_eq!(body.chunk().await.unwrap().unwrap(), "a");
        // A future that is given up between two chunks loses nothing.
        tokio::select! {
            biased;
            _ = body.chunk() => panic!("nothing was sent"),
            () = tokio::task::yield_now() => {}
        }
        ask.send("2\r\nbc\r\n0\r\n\r\n").await.unwrap();
        assert_eq!(body.chunk().await.unwrap().unwrap(), "bc");
        // The body was not read to its end, but the end has arrived: the connection can be used
        // again.
        drop(body);
        drop(ask);
        assert_eq!(call(&client).await, "last");
    };
    tokio::join!(serve, read);
}

#[tokio::test]
async fn answers_beyond_the_limit_are_refused() {
    let server = Server::start(|_| answer("12345678")).await;
    let client = server.client();
    let collect = async |limit| client.send(post("/mcp")).await.unwrap().body.collect(limit).await;
    assert_eq!(collect(8).await.unwrap(), "12345678");
    let error = collect(7).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exhausted);
    assert!(matches!(error, ClientError::TooLarge { limit: 7, .. }), "{error}");
}

#[tokio::test]
async fn requests_for_another_origin_are_refused() {
    let server = Server::start(|_| answer("yes")).await;
    let client = server.client();
    let mut request = Request::post("/").body(Bytes::new().into()).unwrap();
    *request.uri_mut() = "http://127.0.0.1:1/mcp".parse().unwrap();
    let error = client.send(request).await.unwrap_err();
    assert!(matches!(error, ClientError::OtherOrigin { .. }), "{error}");
    let mut request = post("/");
    *request.uri_mut() = server.url.as_str().parse().unwrap();
    client.send(request).await.unwrap();
}

#[tokio::test]
async fn a_refused_connection_is_reported_with_address_and_remedy() {
    let url = Raw::bind().await.url;
    let error = client(&url).send(post("/mcp")).await.unwrap_err();
    let port = url.port().unwrap();
    assert_eq!(
        error.to_string(),
        format!("connection refused by 127.0.0.1:{port}: check that the server is running there")
    );
    assert_eq!((error.kind(), error.may_have_arrived()), (ErrorKind::Unavailable, false));
}

/// E44: however fast a server sends, others get their turn while its answer is read.
#[tokio::test]
async fn e44_other_tasks_run_while_a_large_body_is_read() {
    const TURN: usize = 64 * 1024;
    let server = Server::start(|_| answer(vec![b'x'; 64 * TURN])).await;
    let mut body = server.client().send(post("/mcp")).await.unwrap().body;
    // On a busy machine the system may be late with the next piece: then there is another turn.
    for _ in 0..8 {
        let mut read = 0;
        while read < TURN {
            read += body.chunk().await.unwrap().unwrap().len();
            // The server fills the connection meanwhile.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        }
        assert!(!is_there(&mut body).await, "it was not interrupted");
        if is_there(&mut body).await {
            return;
        }
    }
    panic!("there was nothing more to read");
}

/// True if the next piece is there at the first look.
async fn is_there(body: &mut ResponseBody) -> bool {
    let mut reading = std::pin::pin!(body.chunk());
    poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx).is_ready())).await
}

/// Waits for a future, for no longer than any wait needs on however busy a machine.
async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("this must not take so long")
}
