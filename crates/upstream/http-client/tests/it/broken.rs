//! The HTTP client against servers that close, lie or stop.

use narthex_http_client::{ClientError, ClientSettings, HttpClient};
use narthex_model::ErrorKind;
use tokio::net::TcpStream;

use super::{
    LIMIT, call,
    server::{Raw, client, post, read_request, wait_for_close, write},
};

const YES: &str = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes";

/// Sends one request to a server that answers with this text and closes.
async fn answered_by(text: &str) -> Result<bytes::Bytes, ClientError> {
    let raw = Raw::bind().await;
    let client = client(&raw.url);
    let serve = async {
        let mut stream = raw.accept().await;
        read_request(&mut stream).await;
        write(&mut stream, text).await;
    };
    let ask = async { client.send(post("/mcp")).await?.body.collect(LIMIT).await };
    tokio::join!(serve, ask).1
}

#[tokio::test]
async fn a_connection_closed_while_idle_is_replaced() {
    let raw = Raw::bind().await;
    let client = client(&raw.url);
    let serve = async {
        let mut first = raw.accept().await;
        read_request(&mut first).await;
        write(&mut first, YES).await;
        // The client has the answer when this second connection arrives.
        let mut signal = raw.accept().await;
        drop(first);
        write(&mut signal, "closed").await;
        let mut second = raw.accept().await;
        read_request(&mut second).await;
        write(&mut second, YES).await;
    };
    let ask = async {
        assert_eq!(call(&client).await, "yes");
        // The bytes read here were written after the close, so the close has been seen, too.
        let mut signal =
            TcpStream::connect(*raw.url.socket_addrs(|| None).unwrap().first().unwrap())
                .await
                .unwrap();
        wait_for_close_after("closed", &mut signal).await;
        assert_eq!(call(&client).await, "yes");
    };
    tokio::join!(serve, ask);
}

async fn wait_for_close_after(text: &str, signal: &mut TcpStream) {
    use tokio::io::AsyncReadExt;
    let mut read = vec![0; text.len()];
    signal.read_exact(&mut read).await.unwrap();
    assert_eq!(read, text.as_bytes());
}

#[tokio::test]
async fn a_request_that_was_read_is_not_repeated() {
    let raw = Raw::bind().await;
    let client = client(&raw.url);
    let serve = async {
        let mut stream = raw.accept().await;
        read_request(&mut stream).await;
        write(&mut stream, YES).await;
        read_request(&mut stream).await;
        drop(stream);
        // The next request is not the same one again.
        let mut stream = raw.accept().await;
        let seen = read_request(&mut stream).await;
        write(&mut stream, YES).await;
        seen
    };
    let ask = async {
        assert_eq!(call(&client).await, "yes");
        let error = client.send(post("/lost")).await.unwrap_err();
        assert!(matches!(error, ClientError::Unanswered { .. }), "{error}");
        assert!(error.may_have_arrived());
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        client.send(post("/next")).await.unwrap();
    };
    let (seen, ()) = tokio::join!(serve, ask);
    assert!(seen.starts_with("POST /next "), "{seen}");
}

#[tokio::test]
async fn a_server_that_closes_at_once_is_asked_once() {
    let raw = Raw::bind().await;
    let client = client(&raw.url);
    let serve = async {
        drop(raw.accept().await);
        let mut stream = raw.accept().await;
        let seen = read_request(&mut stream).await;
        write(&mut stream, YES).await;
        seen
    };
    let ask = async {
        let error = client.send(post("/lost")).await.unwrap_err();
        assert!(matches!(error, ClientError::Unanswered { .. }), "{error}");
        client.send(post("/next")).await.unwrap();
    };
    let (seen, ()) = tokio::join!(serve, ask);
    assert!(seen.starts_with("POST /next "), "{seen}");
}

#[tokio::test]
async fn a_body_dropped_in_the_middle_closes_the_connection() {
    let raw = Raw::bind().await;
    let client = client(&raw.url);
    let serve = async {
        let mut stream = raw.accept().await;
        read_request(&mut stream).await;
        write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbeg").await;
        wait_for_close(&mut stream).await;
    };
    let ask = async {
        let mut body = client.send(post("/mcp")).await.unwrap().body;
        assert_eq!(body.chunk().await.unwrap().unwrap(), "beg");
    };
    tokio::join!(serve, ask);
}

#[tokio::test]
async fn an_abandoned_request_closes_the_connection() {
    let raw = Raw::bind().await;
    let client = client(&raw.url);
    let (seen, mut read) = tokio::sync::mpsc::channel(1);
    let serve = async {
        let mut stream = raw.accept().await;
        seen.send(read_request(&mut stream).await).await.unwrap();
        wait_for_close(&mut stream).await;
    };
    let ask = async {
        tokio::select! {
            _ = client.send(post("/mcp")) => panic!("there is no answer"),
            _ = read.recv() => {}
        }
    };
    tokio::join!(serve, ask);
}

#[tokio::test]
async fn a_short_answer_is_an_error_and_a_long_answer_closes_the_connection() {
    let error = answered_by("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbeg").await.unwrap_err();
    assert!(matches!(error, ClientError::BrokenOff { .. }), "{error}");
    assert!(error.may_have_arrived());
    let error =
        answered_by("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n").await;
    assert!(matches!(error, Err(ClientError::BrokenOff { .. })), "{error:?}");

    let raw = Raw::bind().await;
    let client = client(&raw.url);
    let serve = async {
        for _ in 0..2 {
            let mut stream = raw.accept().await;
            read_request(&mut stream).await;
            write(&mut stream, &format!("{YES}{YES}")).await;
            wait_for_close(&mut stream).await;
        }
    };
    let ask = async {
        assert_eq!(call(&client).await, "yes");
        assert_eq!(call(&client).await, "yes");
    };
    tokio::join!(serve, ask);
}

#[tokio::test]
async fn an_answer_that_ends_with_the_connection_is_whole() {
    assert_eq!(answered_by("HTTP/1.1 200 OK\r\n\r\nto the end").await.unwrap(), "to the end");
    assert_eq!(
        answered_by("HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nold").await.unwrap(),
        "old"
    );
}

#[tokio::test]
async fn an_answer_that_is_not_http_is_reported_as_malformed() {
    for text in ["SSH-2.0-OpenSSH_9.6\r\n", "HTTP/2 what\r\n\r\n"] {
        let error = answered_by(text).await.unwrap_err();
        assert!(matches!(error, ClientError::Malformed { .. }), "{error}");
    }
}

#[tokio::test]
async fn the_head_of_an_answer_is_bounded() {
    let raw = Raw::bind().await;
    let settings = ClientSettings { response_head_bytes: 8192, ..Default::default() };
    let client = HttpClient::new(&raw.url, settings).unwrap();
    let serve = async {
        let mut stream = raw.accept().await;
        read_request(&mut stream).await;
        write(&mut stream, &format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(9000))).await;
    };
    let (error, ()) = tokio::join!(client.send(post("/mcp")), serve);
    let error = error.unwrap_err();
    assert!(matches!(error, ClientError::Malformed { .. }), "{error}");
}
