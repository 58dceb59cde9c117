//! The HTTP client over TLS, with certificates made here.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use narthex_http_client::{ClientError, ClientSettings, HttpClient, Pins, Proxies, certificates};
use narthex_model::{ErrorKind, Fingerprint};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::TcpStream,
    sync::mpsc,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use url::Url;

use super::{
    call,
    server::{Raw, answer, post, serve},
};

struct TlsServer {
    port: u16,
    certificate: CertificateDer<'static>,
    tasks: JoinSet<()>,
}

/// A certificate for this name, and TLS by it.
fn tls_of(name: &str) -> (CertificateDer<'static>, TlsAcceptor) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    (certificate, TlsAcceptor::from(Arc::new(config)))
}

/// A server whose certificate names `localhost`; it serves one connection after the other.
async fn tls_server() -> TlsServer {
    named_server("localhost").await
}

async fn named_server(name: &str) -> TlsServer {
    let (certificate, acceptor) = tls_of(name);
    let raw = Raw::bind().await;
    let port = raw.url.port().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            // Some tests use a client that does not trust this server.
            let Ok(stream) = acceptor.accept(raw.accept().await).await else { continue };
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
            serve(stream, |request| answer(request.into_body()), Arc::default()).await;
        }
    });
    TlsServer { port, certificate, tasks }
}

fn client(host: &str, server: &TlsServer, extra_roots: Vec<CertificateDer<'static>>) -> HttpClient {
    let url = Url::parse(&format!("https://{host}:{}/mcp", server.port)).unwrap();
    HttpClient::new(&url, ClientSettings { extra_roots, ..Default::default() }).unwrap()
}

#[tokio::test]
async fn a_trusted_server_is_asked_over_one_connection() {
    let server = tls_server().await;
    let client = client("localhost", &server, vec![server.certificate.clone()]);
    for _ in 0..3 {
        // The server takes no second connection while the first is open.
        assert_eq!(call(&client).await, "{}");
    }
    assert!(!server.tasks.is_empty());
}

#[tokio::test]
async fn an_unknown_issuer_and_a_wrong_name_are_refused() {
    let server = tls_server().await;
    let trusted = vec![server.certificate.clone()];
    for client in [client("localhost", &server, vec![]), client("127.0.0.1", &server, trusted)] {
        let error = client.send(post("/mcp")).await.unwrap_err();
        assert!(matches!(error, ClientError::Tls { .. }), "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
        assert_eq!((error.kind(), error.may_have_arrived()), (ErrorKind::Unavailable, false));
    }
}

/// A pinned certificate is accepted under any name and from any issuer, and no other one. The pins
/// are read at each handshake.
#[tokio::test]
async fn a_pinned_certificate_is_accepted_and_no_other() {
    #[derive(Debug, Default)]
    struct Changing(Mutex<Vec<Fingerprint>>);
    impl Pins for Changing {
        fn fingerprints(&self) -> Vec<Fingerprint> {
            self.0.lock().unwrap().clone()
        }
    }
    let server = tls_server().await;
    let pins = Arc::new(Changing::default());
    let url = Url::parse(&format!("https://127.0.0.1:{}/mcp", server.port)).unwrap();
    // A root that vouches for the server is no pin.
    let extra_roots = vec![server.certificate.clone()];
    let settings =
        ClientSettings { pins: Some(pins.clone()), extra_roots, ..ClientSettings::default() };
    let client = HttpClient::new(&url, settings).unwrap();
    let error = client.send(post("/mcp")).await.unwrap_err();
    let found = Fingerprint::of(&server.certificate);
    assert!(error.to_string().contains(&format!("fingerprint {found}")), "{error}");
    assert!(!error.may_have_arrived());
    *pins.0.lock().unwrap() = vec![Fingerprint::of(b"another"), found];
    assert_eq!(call(&client).await, "{}");
}

#[test]
fn a_file_of_certificates_to_trust_must_hold_some() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (pem, der) = (made.cert.pem(), made.cert.der().clone());
    assert_eq!(certificates(format!("# mine\n{pem}{pem}").as_bytes()), Ok(vec![der.clone(), der]));
    for text in ["", "text", &made.signing_key.serialize_pem(), &pem.replacen("MII", "AAA", 1)] {
        certificates(text.as_bytes()).unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn a_tls_handshake_without_an_answer_times_out() {
    let raw = Raw::bind().await;
    let url = Url::parse(&raw.url.as_str().replace("http", "https")).unwrap();
    let connect_timeout = Duration::from_secs(3);
    let settings = ClientSettings { connect_timeout, ..Default::default() };
    let client = HttpClient::new(&url, settings).unwrap();
    let error = client.send(post("/mcp")).await.unwrap_err();
    assert!(matches!(error, ClientError::ConnectTimeout { waited_ms: 3000, .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Timeout);
}

/// A proxy that is itself reached by TLS. It leads each tunnel to one server, and gives the heads
/// by which tunnels were asked for.
async fn tls_proxy(to: u16) -> (TlsServer, mpsc::Receiver<String>) {
    let (certificate, acceptor) = tls_of("localhost");
    let raw = Raw::bind().await;
    let port = raw.url.port().unwrap();
    let (sender, heads) = mpsc::channel(8);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let Ok(mut near) = acceptor.accept(raw.accept().await).await else { continue };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(near.read_u8().await.unwrap());
            }
            sender.send(String::from_utf8(head).unwrap()).await.unwrap();
            near.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
            near.flush().await.unwrap();
            let mut far = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
            // A client that goes away is no failure of the proxy.
            drop(copy_bidirectional(&mut near, &mut far).await);
        }
    });
    (TlsServer { port, certificate, tasks }, heads)
}

/// E169: a server with TLS is reached through a proxy with TLS: one certificate is the proxy's and
/// one the server's, each is checked, and the credential is the proxy's alone.
#[tokio::test]
async fn e169_a_tunnel_leads_through_a_proxy_with_tls() {
    let server = named_server("far.invalid").await;
    let (proxy, mut heads) = tls_proxy(server.port).await;
    let address = format!("https://me:hush@localhost:{}", proxy.port);
    let proxies = Arc::new(Proxies::new(None, Some(&address), "").unwrap());
    let client = |extra_roots: &[&CertificateDer<'static>]| {
        let extra_roots = extra_roots.iter().map(|root| (*root).clone()).collect();
        let settings =
            ClientSettings { extra_roots, proxies: proxies.clone(), ..ClientSettings::default() };
        HttpClient::new(&Url::parse("https://far.invalid:8443/mcp").unwrap(), settings).unwrap()
    };
    let trusting = client(&[&proxy.certificate, &server.certificate]);
    for _ in 0..2 {
        // The tunnel is reused, as any connection.
        assert_eq!(call(&trusting).await, "{}");
    }
    let head = heads.recv().await.unwrap();
    assert!(head.starts_with("CONNECT far.invalid:8443 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nProxy-Authorization: Basic bWU6aHVzaA==\r\n"), "{head}");
    drop(trusting);
    // A proxy that is not trusted gets no request.
    let error = client(&[&server.certificate]).send(post("/mcp")).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    assert!(!error.to_string().contains("hush") && !error.may_have_arrived(), "{error}");
    assert_eq!(heads.try_recv().unwrap_err(), mpsc::error::TryRecvError::Empty);
    // The server behind it proves its identity as well.
    let error = client(&[&proxy.certificate]).send(post("/mcp")).await.unwrap_err();
    assert!(matches!(error, ClientError::Tls { .. }), "{error}");
    assert!(heads.recv().await.unwrap().starts_with("CONNECT far.invalid:8443"));
}
