//! Servers behind a proxy, and requests that must not bypass it.

use std::sync::Arc;

use narthex_http_client::{AllowedAddresses, ClientError, ClientSettings, HttpClient, Proxies};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
};
use url::Url;

use super::{LIMIT, in_time, server::post};

/// A proxy that answers every head with a text and then sends nothing more.
struct Proxy {
    address: String,
    heads: mpsc::Receiver<String>,
    /// Ends when the proxy is dropped.
    _task: JoinSet<()>,
}

impl Proxy {
    async fn start(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, heads) = mpsc::channel(16);
        let mut task = JoinSet::new();
        task.spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let head = head(&mut stream).await;
                drop(sender.send(head).await);
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { address, heads, _task: task }
    }

    fn client(&self, url: &str, reach: AllowedAddresses) -> HttpClient {
        let address = format!("http://me:hush@{}", self.address);
        let proxies = Arc::new(Proxies::new(Some(&address), Some(&address), "").unwrap());
        let settings = ClientSettings { proxies, reach, ..ClientSettings::default() };
        HttpClient::new(&Url::parse(url).unwrap(), settings).unwrap()
    }
}

async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// E169: a request without TLS is put to the proxy, with the whole address and its credential.
#[tokio::test]
async fn e169_a_server_without_tls_is_asked_through_the_proxy() {
    let mut proxy = Proxy::start("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await;
    let client = proxy.client("http://mcp.corp.invalid/mcp", AllowedAddresses::Anywhere);
    let response = in_time(client.send(post("/mcp?a=b"))).await.unwrap();
    assert_eq!(in_time(response.body.collect(LIMIT)).await.unwrap(), "{}");
    let head = proxy.heads.recv().await.unwrap().to_ascii_lowercase();
    assert!(head.starts_with("post http://mcp.corp.invalid/mcp?a=b http/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nhost: mcp.corp.invalid\r\n"), "{head}");
    assert!(head.contains("\r\nproxy-authorization: basic bwu6ahvzaa==\r\n"), "{head}");
}

/// E169: one with TLS gets a tunnel, whose refusal is named without the password.
#[tokio::test]
async fn e169_a_server_with_tls_is_reached_by_a_tunnel() {
    for (answer, why) in [
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "it requires a credential (407)"),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", "it refuses a connection to far.invalid:8443 (403)"),
        ("SSH-2.0\r\n\r\n", "its answer is not HTTP"),
    ] {
        let mut proxy = Proxy::start(answer).await;
        let client = proxy.client("https://far.invalid:8443/mcp", AllowedAddresses::Anywhere);
        let error = in_time(client.send(post("/mcp"))).await.unwrap_err();
        assert!(matches!(error, ClientError::Proxy { .. }), "{error}");
        assert!(error.to_string().contains(why) && !error.to_string().contains("hush"), "{error}");
        assert!(!error.may_have_arrived());
        let head = proxy.heads.recv().await.unwrap();
        assert!(head.starts_with("CONNECT far.invalid:8443 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nProxy-Authorization: Basic bWU6aHVzaA==\r\n"), "{head}");
    }
}

/// X-E37, E169, X-E38: an address that must be public is checked here, and the proxy gets the
/// address that was checked: its own names lead to no other.
#[tokio::test]
async fn x_e37_no_proxy_leads_to_an_address_that_is_not_public() {
    let mut proxy = Proxy::start("HTTP/1.1 403 Forbidden\r\n\r\n").await;
    for private in ["https://10.0.0.1/", "http://169.254.169.254/", "https://[fd00::1]/"] {
        let client = proxy.client(private, AllowedAddresses::Public);
        let error = in_time(client.send(post("/"))).await.unwrap_err();
        assert!(matches!(error, ClientError::NotPublic { .. }), "{private}: {error}");
    }
    let client = proxy.client("https://internal.invalid/", AllowedAddresses::Public);
    let error = in_time(client.send(post("/"))).await.unwrap_err();
    assert!(matches!(error, ClientError::Dns { .. }), "no name is left to the proxy: {error}");
    let none = proxy.heads.try_recv().unwrap_err();
    assert_eq!(none, mpsc::error::TryRecvError::Empty, "the proxy was asked for none of them");
    for public in ["https://1.1.1.1/", "http://1.1.1.1:443/"] {
        let client = proxy.client(public, AllowedAddresses::Public);
        in_time(client.send(post("/"))).await.unwrap_err();
        let head = proxy.heads.recv().await.unwrap();
        assert!(head.starts_with("CONNECT 1.1.1.1:443 HTTP/1.1\r\n"), "{head}");
    }
}
