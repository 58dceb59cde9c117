//! The HTTP client over TLS, with certificates made here.

use std::{sync::Arc, time::Duration};

use narthex_model::ErrorKind;
use narthex_upstream::client::{ClientError, ClientSettings, HttpClient};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
};
use tokio::task::JoinSet;
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

/// A server whose certificate names `localhost`; it serves one connection after the other.
async fn tls_server() -> TlsServer {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let raw = Raw::bind().await;
    let port = raw.url.port().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            // A client that does not trust us is what some tests are about.
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

#[tokio::test(start_paused = true)]
async fn a_server_that_never_shakes_hands_is_given_up() {
    let raw = Raw::bind().await;
    let url = Url::parse(&raw.url.as_str().replace("http", "https")).unwrap();
    let connect_timeout = Duration::from_secs(3);
    let settings = ClientSettings { connect_timeout, ..Default::default() };
    let client = HttpClient::new(&url, settings).unwrap();
    let error = client.send(post("/mcp")).await.unwrap_err();
    assert!(matches!(error, ClientError::ConnectTimeout { waited_ms: 3000, .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Timeout);
}
