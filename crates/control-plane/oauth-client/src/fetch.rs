//! Requests to authorization servers, within limits of size, time, redirects and addresses (C9).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, header};
use narthex_http_client::{AllowedAddresses, ClientSettings, HttpClient, HttpResponse};
use narthex_oauth::client::{FormRequest, JsonRequest, Reply};
use narthex_upstream::RetryAfter;
use narthex_wire::Payload;
use tokio::time::timeout;
use url::{Position, Url};

use crate::{guard::Guard, options::SignInOptions};

/// Longest time for a document, with its redirects.
const DOCUMENT_TIME: Duration = Duration::from_secs(5);
/// Longest time for a request that changes something at the server. It is shorter than a lease.
pub(crate) const POST_TIME: Duration = Duration::from_secs(10);
/// Longest answer, in bytes.
const BODY_MAX: usize = 256 * 1024;
/// Number of redirects of a GET that are followed.
const REDIRECTS_MAX: usize = 5;
/// Number of clients whose connections stay open.
const CLIENTS_MAX: usize = 64;
const AGENT: &str = concat!("narthex/", env!("CARGO_PKG_VERSION"));

/// The clients of authorization servers.
#[derive(Debug)]
pub(crate) struct Fetcher {
    settings: ClientSettings,
    clients: Mutex<HashMap<Endpoint, HttpClient>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Endpoint {
    origin: String,
    is_anywhere: bool,
}

/// The outcome of a request.
pub(crate) enum Fetched {
    Answer {
        status: u16,
        body: Bytes,
        retry_after: Option<Duration>,
    },
    /// There is no answer, or none that may be used.
    Missing,
}

/// The beginning of an MCP server's answer.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
}

impl Fetched {
    /// The outcome as the values of OAuth read it.
    pub(crate) fn reply(&self) -> Reply<'_> {
        match self {
            Self::Answer { status, body, retry_after } => {
                Reply::Answer { status: *status, body, retry_after: *retry_after }
            }
            Self::Missing => Reply::Missing,
        }
    }
}

impl Fetcher {
    pub(crate) fn new(options: &SignInOptions) -> Self {
        let settings = ClientSettings {
            connect_timeout: DOCUMENT_TIME,
            max_idle: 2,
            max_connections: 32,
            proxies: Arc::clone(&options.proxies),
            extra_roots: options.extra_roots.clone(),
            returns_redirects: true,
            ..ClientSettings::default()
        };
        Self { settings, clients: Mutex::default() }
    }

    /// Reads a document. Redirects are followed, each only to an address that the guard allows.
    pub(crate) async fn get(&self, guard: &Guard, url: &Url) -> Fetched {
        let got = timeout(DOCUMENT_TIME, self.follow(guard, url)).await;
        got.ok().flatten().unwrap_or(Fetched::Missing)
    }

    /// Sends a form. A redirect is an answer like others, and is not followed.
    pub(crate) async fn post_form(&self, guard: &Guard, request: &FormRequest) -> Fetched {
        let mut headers = HeaderMap::new();
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(header::CONTENT_TYPE, form);
        if let Some(authorization) = &request.authorization {
            let Ok(mut value) = HeaderValue::from_str(authorization.expose()) else {
                return Fetched::Missing;
            };
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let body = request.form.expose().as_bytes().to_vec();
        self.post(guard, &request.url, headers, body).await
    }

    /// Sends a document. A redirect is an answer like others, and is not followed.
    pub(crate) async fn post_json(&self, guard: &Guard, request: &JsonRequest) -> Fetched {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = request.body.to_string().into_bytes();
        self.post(guard, &request.url, headers, body).await
    }

    /// Sends a message to the MCP server itself. The body of the answer is not read, and a redirect
    /// is not followed. `None` if there is no answer.
    pub(crate) async fn ask_server(
        &self,
        guard: &Guard,
        server: &Url,
        method: Method,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Option<Heard> {
        let sent = async {
            let mut request = request(method, server, body)?;
            request.headers_mut().extend(headers);
            let response = self.send(guard.readable(server)?, server, request).await?;
            Some(Heard { status: response.status.as_u16(), headers: response.headers })
        };
        timeout(DOCUMENT_TIME, sent).await.ok().flatten()
    }

    async fn post(&self, guard: &Guard, url: &Url, headers: HeaderMap, body: Vec<u8>) -> Fetched {
        let sent = async {
            let mut request = request(Method::POST, url, body)?;
            request.headers_mut().extend(headers);
            let response = self.send(guard.allowed(url)?, url, request).await?;
            answer(response).await
        };
        timeout(POST_TIME, sent).await.ok().flatten().unwrap_or(Fetched::Missing)
    }

    async fn follow(&self, guard: &Guard, url: &Url) -> Option<Fetched> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let request = request(Method::GET, &url, Vec::new())?;
            let response = self.send(guard.readable(&url)?, &url, request).await?;
            let Some(next) = redirect(&url, &response) else { return answer(response).await };
            url = next;
        }
        None
    }

    async fn send(
        &self,
        reach: AllowedAddresses,
        url: &Url,
        request: Request<Payload>,
    ) -> Option<HttpResponse> {
        let client = self.client(url, reach)?;
        match client.send(request).await {
            Ok(response) => Some(response),
            Err(error) => {
                let host = url.host_str().unwrap_or_default();
                tracing::debug!(host, %error, "an authorization server cannot be reached");
                None
            }
        }
    }

    /// The client of an origin.
    fn client(&self, url: &Url, reach: AllowedAddresses) -> Option<HttpClient> {
        let origin = url.origin().ascii_serialization();
        let endpoint = Endpoint { origin, is_anywhere: reach == AllowedAddresses::Anywhere };
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&endpoint) {
            return Some(client.clone());
        }
        let settings = ClientSettings { reach, ..self.settings.clone() };
        let client = HttpClient::new(url, settings).ok()?;
        if clients.len() >= CLIENTS_MAX {
            clients.clear();
        }
        clients.insert(endpoint, client.clone());
        Some(client)
    }
}

fn request(method: Method, url: &Url, body: Vec<u8>) -> Option<Request<Payload>> {
    let body = if body.is_empty() { Payload::default() } else { Payload::from(body) };
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = url[Position::BeforePath..Position::AfterQuery].parse().ok()?;
    let headers = request.headers_mut();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(AGENT));
    Some(request)
}

/// The next address of an answer that redirects.
fn redirect(url: &Url, response: &HttpResponse) -> Option<Url> {
    let is_redirect = matches!(response.status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers.get(header::LOCATION).filter(|_| is_redirect)?;
    let mut next = url.join(location.to_str().ok()?).ok()?;
    next.set_fragment(None);
    Some(next)
}

async fn answer(response: HttpResponse) -> Option<Fetched> {
    let (status, retry_after) = (response.status.as_u16(), retry_after(&response.headers));
    let body = response.body.collect(BODY_MAX).await.ok()?;
    Some(Fetched::Answer { status, body, retry_after })
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    RetryAfter::of(headers)?.wait()
}

#[cfg(test)]
mod tests {
    use narthex_http_client::Proxies;
    use narthex_model::Secret;
    use narthex_testkit::{
        addresses::{ClosedProxy, INSIDE},
        peer::{self, Peer},
    };
    use serde_json::Value;
    use tokio::runtime::Handle;
    use tokio_util::{sync::CancellationToken, task::TaskTracker};

    use super::*;
    use crate::{MemoryStore, NoHooks, RedirectBases, SharedClients, SystemClock};

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    /// The clients of a process that reaches servers by this proxy.
    fn behind(proxy: &ClosedProxy) -> Fetcher {
        let proxies = Proxies::new(Some(&proxy.url), Some(&proxy.url), "").unwrap();
        Fetcher::new(&SignInOptions {
            store: Arc::new(MemoryStore::new(Arc::new(SystemClock))),
            clock: Arc::new(SystemClock),
            proxies: Arc::new(proxies),
            extra_roots: Vec::new(),
            redirect_base: RedirectBases { loopback: url("http://127.0.0.1:4711"), public: None },
            client_metadata_url: None,
            shared_clients: SharedClients::default(),
            client_name: "narthex".to_owned(),
            workspace: "w".to_owned(),
            tasks: TaskTracker::new(),
            shutdown: CancellationToken::new(),
            owner: "one".to_owned(),
            hooks: Arc::new(NoHooks),
            runtime: Handle::current(),
        })
    }

    /// Sends each kind of request to an address, for a public server.
    async fn ask_in_all_ways(fetcher: &Fetcher, address: &Url) {
        let guard = Guard::of(&url("https://1.1.1.1/mcp"), &[]).await;
        let form = FormRequest {
            url: address.clone(),
            authorization: None,
            form: Secret::new("grant_type=refresh_token&refresh_token=x"),
        };
        let json = JsonRequest { url: address.clone(), body: Value::Null };
        for fetched in [
            fetcher.get(&guard, address).await,
            fetcher.post_form(&guard, &form).await,
            fetcher.post_json(&guard, &json).await,
        ] {
            assert!(matches!(fetched, Fetched::Missing), "{address}");
        }
    }

    /// S9, E169: discovery, registration and requests for tokens reach no inner address, in any
    /// spelling, and no proxy is asked for one.
    #[tokio::test]
    async fn s9_oauth_c9_no_request_leads_inside_and_no_proxy_is_asked_to() {
        let proxy = ClosedProxy::start().await;
        let fetcher = behind(&proxy);
        // No proxy is asked for loopback. A connection to this socket would wait there.
        let machine = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
        machine.set_nonblocking(true).unwrap();
        let port = machine.local_addr().unwrap().port();
        for inside in INSIDE {
            let mut inside = url(inside);
            inside.set_port(Some(port)).unwrap();
            ask_in_all_ways(&fetcher, &inside).await;
        }
        assert_eq!(proxy.asked(), [""; 0]);
        assert_eq!(machine.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        // A public address is asked for, as it was checked.
        ask_in_all_ways(&fetcher, &url("https://1.0.0.1/x")).await;
        assert_eq!(proxy.asked(), ["1.0.0.1:443"; 3]);
    }

    /// S9: a redirect leads to no address that could not be asked for itself.
    #[tokio::test]
    async fn s9_oauth_c9_redirects_lead_to_no_other_address() {
        let proxy = ClosedProxy::start().await;
        let fetcher = behind(&proxy);
        for target in ["http://10.0.0.1/x", "http://as.example/x", "file:///etc/passwd"] {
            let server = Peer::start(move |_seen| peer::redirect(307, target)).await;
            let address = url(&server.url);
            let guard = Guard::of(&address, &[]).await;
            let fetched = fetcher.get(&guard, &address).await;
            assert!(matches!(fetched, Fetched::Missing), "{target}");
            assert_eq!(server.seen().len(), 1, "{target}");
        }
        assert_eq!(proxy.asked(), [""; 0]);
    }

    #[test]
    fn oauth_c25_seconds_and_dates_of_retry_after_are_read() {
        let read = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(text));
            retry_after(&headers)
        };
        assert_eq!(read("7"), Some(Duration::from_secs(7)));
        assert_eq!(read("Thu, 01 Jan 1970 00:00:09 GMT"), Some(Duration::ZERO));
        assert_eq!(read("soon"), None);
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn requests_carry_the_path_and_query_alone() {
        let url = Url::parse("https://as.example/a%20b?x=1#frag").unwrap();
        let request = request(Method::GET, &url, Vec::new()).unwrap();
        assert_eq!(request.uri().to_string(), "/a%20b?x=1");
        assert_eq!(request.headers()[header::ACCEPT], "application/json");
    }
}
