//! A small HTTP reverse proxy that adds headers to every request.
//!
//! It stands in front of a gateway for clients that cannot send a token. All other headers, `Host`
//! included, pass unchanged, and bodies stream in both directions. There is no TLS.

use std::convert::Infallible;
use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;
use http::header::{CONNECTION, HeaderName, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};

/// Headers that belong to one connection and not to the message.
const HOP_HEADERS: [HeaderName; 3] = [CONNECTION, TRANSFER_ENCODING, UPGRADE];

type Body = Either<Incoming, Full<Bytes>>;

/// The target of the requests, and the headers that they get on the way.
pub struct Forwarder {
    target: Authority,
    headers: Vec<(HeaderName, HeaderValue)>,
    client: Client<HttpConnector, Incoming>,
}

impl Forwarder {
    /// Only the authority of `target` counts; paths pass unchanged.
    pub fn new(target: &Uri, headers: Vec<(HeaderName, HeaderValue)>) -> anyhow::Result<Self> {
        let authority = target.authority().cloned().context("the target has no host")?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        // Without this the client would write the target's name over the caller's `Host`.
        let client = Client::builder(TokioExecutor::new()).set_host(false).build(connector);
        Ok(Self { target: authority, headers, client })
    }

    /// Forwards the requests of every connection; never returns.
    pub async fn serve(self, listener: TcpListener) {
        let forwarder = Arc::new(self);
        loop {
            let Ok((stream, _peer)) = listener.accept().await else {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                continue;
            };
            crate::spawn(Arc::clone(&forwarder).serve_connection(stream));
        }
    }

    async fn serve_connection(self: Arc<Self>, stream: TcpStream) {
        stream.set_nodelay(true).ok();
        let service = service_fn(|request| {
            let forwarder = Arc::clone(&self);
            async move { Ok::<_, Infallible>(forwarder.forward(request).await) }
        });
        // A broken connection concerns its client only.
        http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
    }

    async fn forward(&self, mut request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path_and_query().cloned();
        *request.uri_mut() = self.target_uri(path);
        remove_hop_headers(request.headers_mut());
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        match self.client.request(request).await {
            Ok(mut response) => {
                remove_hop_headers(response.headers_mut());
                response.map(Either::Left)
            }
            Err(error) => bad_gateway(&error),
        }
    }

    fn target_uri(&self, path: Option<PathAndQuery>) -> Uri {
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(Scheme::HTTP);
        parts.authority = Some(self.target.clone());
        parts.path_and_query = path.or_else(|| Some(PathAndQuery::from_static("/")));
        Uri::from_parts(parts).expect("scheme, authority and path make a URI")
    }
}

fn remove_hop_headers(headers: &mut HeaderMap) {
    for name in &HOP_HEADERS {
        headers.remove(name);
    }
}

fn bad_gateway(error: &hyper_util::client::legacy::Error) -> Response<Body> {
    let text = format!("the target did not answer: {error}\n");
    let mut response = Response::new(Either::Right(Full::new(Bytes::from(text))));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}
