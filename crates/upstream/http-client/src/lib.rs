//! A small HTTP/1.1 client for one server: keep-alive, TLS, proxies, and no task of its own.
//!
//! The future of a request polls the connection itself, so that a forwarded call runs in the one
//! task that answers it. The client never sends a request twice once a byte of it was written.

mod allowed_addresses;
mod coding;
mod connect;
mod connection;
mod error;
mod neighbourhood;
mod origin;
mod pool;
mod proxy;
mod relay;
mod response;
mod route;
mod tls;

use std::{pin::Pin, sync::Arc, time::Duration};

use http::{HeaderValue, Request, StatusCode, Uri, header, request::Parts, uri::PathAndQuery};
use hyper::client::conn::http1;
use narthex_wire::Payload;
use rustls::ClientConfig;
pub use rustls::pki_types::CertificateDer;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use url::Url;

pub use self::{
    allowed_addresses::AllowedAddresses,
    error::{ClientError, without_secrets},
    neighbourhood::Neighbourhood,
    proxy::{Proxies, ProxyFault},
    response::{HttpResponse, ResponseBody},
    tls::{Pins, certificates},
};
use self::{
    connect::Stream,
    connection::{Begun, Connection, SendFailure},
    origin::Origin,
    pool::{Lease, Pool, Slot},
    proxy::Proxy,
    route::Route,
};

/// Number of redirects that one request follows.
const MAX_REDIRECTS: usize = 3;
/// Number of bytes of a redirect's body that are read to keep its connection.
const REDIRECT_BODY_BYTES: usize = 16 * 1024;

/// Settings of a client.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// Longest time to connect, with name resolution and TLS.
    pub connect_timeout: Duration,
    /// Time for which an unused connection may be reused. The client closes it after at most twice
    /// this time.
    pub idle_timeout: Duration,
    /// Number of unused connections that stay open.
    pub max_idle: usize,
    /// Number of requests that may run at once. Further requests wait, limited by the caller's
    /// deadline.
    pub max_connections: usize,
    /// Longest head of an answer, in bytes.
    pub response_head_bytes: usize,
    /// The addresses to which the client may connect.
    pub reach: AllowedAddresses,
    /// The proxies for servers; none by default.
    pub proxies: Arc<Proxies>,
    /// Certificates to trust besides the machine's.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// The only certificates that the server may have, instead of those that the roots vouch for.
    pub pins: Option<Arc<dyn Pins>>,
    /// True if the caller gets answers that redirect, and follows them itself. Such requests must
    /// have no credentials.
    pub returns_redirects: bool,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(55),
            max_idle: 64,
            max_connections: 1024,
            response_head_bytes: 64 * 1024,
            reach: AllowedAddresses::Anywhere,
            proxies: Arc::default(),
            extra_roots: Vec::new(),
            pins: None,
            returns_redirects: false,
        }
    }
}

/// The client of one server. Clones share its connections.
#[derive(Debug, Clone)]
pub struct HttpClient {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    origin: Arc<Origin>,
    /// `None`: the server is reached directly.
    proxy: Option<Arc<Proxy>>,
    /// True if requests are sent to the proxy itself. This holds without TLS, unless the client
    /// must connect to the very address that it checked.
    is_relayed: bool,
    settings: ClientSettings,
    builder: http1::Builder,
    pool: Arc<Pool>,
    tls: OnceCell<Arc<ClientConfig>>,
    route: Route,
}

impl HttpClient {
    /// A client for the server at this address. Does not connect yet.
    ///
    /// # Errors
    ///
    /// If the address is not http or https with a host.
    pub fn new(url: &Url, settings: ClientSettings) -> Result<Self, ClientError> {
        let origin = Arc::new(Origin::new(url)?);
        let mut builder = http1::Builder::new();
        builder.max_header_size(settings.response_head_bytes);
        let pool =
            Pool::new(settings.max_connections, settings.max_idle, settings.idle_timeout).into();
        let (tls, route) = (OnceCell::new(), Route::default());
        let proxy = settings.proxies.of(&origin);
        let is_relayed = proxy.is_some()
            && origin.tls_name.is_none()
            && settings.reach == AllowedAddresses::Anywhere;
        let shared = Shared { origin, proxy, is_relayed, settings, builder, pool, tls, route };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Sends a request and returns the answer as soon as its head has arrived. Only connecting has
    /// a timeout: drop the future to give up, which closes the connection.
    ///
    /// The steps that need no wait are done at once, so that the future does not carry the request.
    ///
    /// # Errors
    ///
    /// If there is no answer, or the answer redirects elsewhere; [`ClientError::may_have_arrived`]
    /// is true if the server may have seen the request.
    pub fn send(
        &self,
        request: Request<Payload>,
    ) -> impl Future<Output = Result<HttpResponse, ClientError>> + Send + use<'_> {
        let shared = &*self.shared;
        let start = shared.start(request);
        async move {
            match start {
                Start::Begun { path, lease, begun } => {
                    shared.check(&path, shared.receive(lease, begun).await?)
                }
                Start::Later(later) => later.await,
            }
        }
    }

    /// The `Host` header of all requests.
    #[must_use]
    pub fn host(&self) -> &HeaderValue {
        &self.shared.origin.host_header
    }
}

/// Progress of a request without waiting.
enum Start<'a> {
    /// The request is on a connection, to a path that has answered before.
    Begun { path: PathAndQuery, lease: Lease, begun: Begun },
    /// The request needs a connection, or its path is not known yet.
    Later(Pin<Box<dyn Future<Output = Result<HttpResponse, ClientError>> + Send + 'a>>),
}

impl Shared {
    fn start(&self, request: Request<Payload>) -> Start<'_> {
        let asked = match self.origin.path_of(request.uri()) {
            Ok(asked) => asked,
            Err(error) => return Start::Later(Box::pin(std::future::ready(Err(error)))),
        };
        let (mut parts, body) = request.into_parts();
        parts.headers.insert(header::HOST, self.origin.host_header.clone());
        if let Some(proxy) = self.proxy.as_ref().filter(|_| self.is_relayed)
            && let Some(authorization) = &proxy.authorization
        {
            parts.headers.insert(header::PROXY_AUTHORIZATION, authorization.clone());
        }
        let Some(path) = self.route.find(&asked) else {
            return Start::Later(Box::pin(self.find_route(asked, parts, body)));
        };
        parts.uri = self.target(&path);
        let request = Request::from_parts(parts, body);
        match self.pool.try_slot().map(Slot::reuse) {
            Some(Ok(mut lease)) => {
                let begun = lease.begin(request);
                Start::Begun { path, lease, begun }
            }
            Some(Err(slot)) => Start::Later(Box::pin(async move {
                self.check(&path, self.exchange_anew(slot, request).await?)
            })),
            None => {
                Start::Later(Box::pin(
                    async move { self.check(&path, self.exchange(request).await?) },
                ))
            }
        }
    }

    /// The target in the first line of a request.
    fn target(&self, path: &PathAndQuery) -> Uri {
        match self.is_relayed {
            true => Proxy::target(&self.origin, path),
            false => Uri::from(path.clone()),
        }
    }

    /// Checks that the answer of a path that has answered before is one.
    fn check(
        &self,
        path: &PathAndQuery,
        response: HttpResponse,
    ) -> Result<HttpResponse, ClientError> {
        if response.status.is_success() {
            return Ok(response);
        }
        if matches!(response.status, StatusCode::NOT_FOUND | StatusCode::GONE) {
            self.route.forget();
        }
        match self.redirect(path, &response) {
            Ok(None) => Ok(response),
            Ok(Some(next)) if next == *path => {
                Err(ClientError::too_many_redirects(&self.origin.address, MAX_REDIRECTS, path))
            }
            Ok(Some(next)) => {
                self.route.moved(path, &next);
                let address = self.origin.address.clone();
                Err(ClientError::Moved { address, path: next.path().to_owned() })
            }
            Err(error) => Err(error),
        }
    }

    /// The path at which to repeat the request; `None` if the answer is for the caller.
    fn redirect(
        &self,
        path: &PathAndQuery,
        response: &HttpResponse,
    ) -> Result<Option<PathAndQuery>, ClientError> {
        match self.settings.returns_redirects {
            true => Ok(None),
            false => route::redirect(&self.origin, path, response),
        }
    }

    /// Sends a request wherever the server redirects it, and remembers the way.
    async fn find_route(
        &self,
        asked: PathAndQuery,
        parts: Parts,
        body: Payload,
    ) -> Result<HttpResponse, ClientError> {
        let mut path = asked.clone();
        let mut tried = Vec::new();
        for _ in 0..=MAX_REDIRECTS {
            let mut parts = parts.clone();
            parts.uri = self.target(&path);
            let response = self.exchange(Request::from_parts(parts, body.clone())).await?;
            let Some(next) = self.redirect(&path, &response)? else {
                if response.status.is_success() {
                    self.route.learn(asked, path);
                }
                return Ok(response);
            };
            // Only for the sake of the connection: an error here is not the request's.
            drop(response.body.collect(REDIRECT_BODY_BYTES).await);
            tried.push(std::mem::replace(&mut path, next));
            if tried.contains(&path) {
                break;
            }
        }
        Err(ClientError::too_many_redirects(&self.origin.address, MAX_REDIRECTS, &path))
    }

    /// One request, one answer, on a pooled or a new connection.
    async fn exchange(&self, request: Request<Payload>) -> Result<HttpResponse, ClientError> {
        match self.pool.slot().await.reuse() {
            Err(slot) => self.exchange_anew(slot, request).await,
            Ok(mut lease) => {
                let begun = lease.begin(request);
                self.receive(lease, begun).await
            }
        }
    }

    /// Waits for the answer on a connection that was used before.
    async fn receive(&self, mut lease: Lease, begun: Begun) -> Result<HttpResponse, ClientError> {
        match lease.answer(begun).await {
            Ok(response) => Ok(self.response(response, lease)),
            // The server closed the connection before a byte was written.
            Err(SendFailure { unsent: Some(request), .. }) => {
                Box::pin(self.exchange_anew(lease.discard(), request)).await
            }
            Err(SendFailure { unsent: None, cause }) => Err(self.unanswered(cause)),
        }
    }

    /// One request, one answer, on a new connection.
    async fn exchange_anew(
        &self,
        slot: Slot,
        request: Request<Payload>,
    ) -> Result<HttpResponse, ClientError> {
        let mut lease = self.connect(slot).await?;
        let begun = lease.begin(request);
        match lease.answer(begun).await {
            Ok(response) => Ok(self.response(response, lease)),
            Err(SendFailure { cause, .. }) => Err(self.unanswered(cause)),
        }
    }

    async fn connect(&self, slot: Slot) -> Result<Lease, ClientError> {
        let timeout = self.settings.connect_timeout;
        // Boxed, since it is large and rare: the common request should not carry it.
        let stream = tokio::time::timeout(timeout, Box::pin(self.open())).await;
        let stream = stream.map_err(|_elapsed| ClientError::ConnectTimeout {
            address: self.origin.address.clone(),
            waited_ms: timeout.as_millis(),
        })??;
        let connection = Connection::handshake(&self.builder, stream).await;
        Ok(slot.occupy(connection.map_err(|cause| self.unanswered(cause))?))
    }

    async fn open(&self) -> Result<Stream, ClientError> {
        let stream = match &self.proxy {
            None => Stream::Plain(connect::tcp(&self.origin, self.settings.reach).await?),
            Some(proxy) => self.open_through(proxy).await?,
        };
        match &self.origin.tls_name {
            None => Ok(stream),
            Some(_) => self.secure(&self.origin, stream).await,
        }
    }

    /// A way to the server through a proxy. The proxy is asked for the checked address of a server
    /// that must be public, so that its own names lead nowhere else.
    async fn open_through(&self, proxy: &Proxy) -> Result<Stream, ClientError> {
        let address = match self.settings.reach {
            AllowedAddresses::Anywhere => self.origin.address.clone(),
            AllowedAddresses::Public => {
                connect::permitted(&self.origin, AllowedAddresses::Public).await?[0].to_string()
            }
        };
        let reached = connect::tcp(&proxy.origin, AllowedAddresses::Anywhere).await;
        let stream = reached.map_err(|error| proxy.fault(&error.to_string()))?;
        let stream = match &proxy.origin.tls_name {
            None => Stream::Plain(stream),
            Some(_) => self.secure(&proxy.origin, Stream::Plain(stream)).await?,
        };
        match self.is_relayed {
            true => Ok(stream),
            false => proxy.tunnel(stream, &address).await,
        }
    }

    async fn secure(&self, origin: &Origin, stream: Stream) -> Result<Stream, ClientError> {
        let failed = |reason| ClientError::Tls { host: origin.host.to_string(), reason };
        let Some(name) = origin.tls_name.clone() else { return Ok(stream) };
        let ClientSettings { extra_roots, pins, .. } = &self.settings;
        let config = self.tls.get_or_try_init(|| tls::config(extra_roots, pins.as_ref()));
        let config = config.await.map_err(failed)?;
        let connector = TlsConnector::from(Arc::clone(config));
        let failed = |error: std::io::Error| failed(error.to_string());
        Ok(match stream {
            Stream::Plain(stream) => {
                Stream::Tls(Box::new(connector.connect(name, stream).await.map_err(failed)?))
            }
            other => Stream::Nested(Box::new(
                connector.connect(name, Box::new(other)).await.map_err(failed)?,
            )),
        })
    }

    fn response(
        &self,
        response: http::Response<hyper::body::Incoming>,
        lease: Lease,
    ) -> HttpResponse {
        HttpResponse::new(response, lease, Arc::clone(&self.origin))
    }

    fn unanswered(&self, cause: hyper::Error) -> ClientError {
        let address = self.origin.address.clone();
        if cause.is_parse() {
            ClientError::Malformed { address, cause }
        } else {
            ClientError::Unanswered { address, cause }
        }
    }
}
