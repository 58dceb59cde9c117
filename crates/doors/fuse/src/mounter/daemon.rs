//! The daemon, as the holder of a run's token asks for its files.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
use narthex_http_client::{ClientError, ClientSettings, HttpClient, HttpResponse};
use narthex_model::{ErrorKind, Secret, with_causes};
use narthex_vfs::{Code, Failure, ROOT, Report};
use narthex_wire::Payload;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{sync::Semaphore, time::timeout};
use url::Url;

/// The most bytes of one answer.
const ANSWER_MAX: usize = 128 * 1024 * 1024;

/// Longest time for the daemon's answer about the mounts of a run.
const ROOT_WITHIN: Duration = Duration::from_secs(10);

/// The most calls of a folder that are under way at once. A call may take minutes.
const CALLS_MAX: usize = 256;
/// The most lists and other files that are fetched at once. More wait; each has a deadline.
const FETCHES_MAX: usize = 32;

/// The characters of a URL's path that are sent unencoded: none that a proxy could read in another
/// way.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The kind of a failure that is the daemon's absence.
pub(crate) const GONE: &str = "daemon_gone";
/// The kind of a failure that is the end of the run.
pub(crate) const OVER: &str = "run_over";

/// The daemon at an address, for the holder of one run's token. Clones share its connections.
#[derive(Clone)]
pub struct Daemon {
    http: HttpClient,
    /// One for each call that may begin.
    calls: Arc<Semaphore>,
    /// Number of calls that may be under way at once.
    calls_max: usize,
    /// For fetches: they must not wait for the calls that are under way.
    http_of_fetches: HttpClient,
    /// For the list of mounts: it must not wait for the calls that are under way.
    http_of_root: HttpClient,
    bearer: HeaderValue,
    url: Url,
}

/// Why a daemon cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The given address is invalid.
    #[error("`{url}` is not an address of a daemon")]
    Address {
        /// The address as given.
        url: String,
        /// Why.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No header can carry the token.
    #[error("the token has characters that a token cannot have")]
    Token,
}

impl DaemonError {
    /// The kind of the failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }
}

/// The daemon's report of a failure.
#[derive(Deserialize)]
struct Problem<'a> {
    #[serde(borrow, default)]
    detail: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    failure: Option<Told<'a>>,
}

#[derive(Deserialize)]
struct Told<'a> {
    #[serde(borrow)]
    code: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    kind: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    message: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    details: Option<&'a RawValue>,
}

/// The content of the root.
#[derive(Debug, Deserialize)]
pub(crate) struct Root {
    /// The number of the run whose token it is.
    pub(crate) pid: u64,
    pub(crate) entries: Vec<RootEntry>,
    #[serde(default)]
    pub(crate) synonyms: Vec<Synonym>,
    /// Names of mounts of those above the run that are there and not for it.
    #[serde(default)]
    pub(crate) closed: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RootEntry {
    pub(crate) name: String,
    /// The number of the server: another number when another server is there.
    #[serde(default)]
    pub(crate) server: Option<u64>,
}

/// A path that means another.
#[derive(Debug, Deserialize)]
pub(crate) struct Synonym {
    pub(crate) path: String,
    pub(crate) means: String,
}

impl Daemon {
    /// The daemon at this address, reached with these settings. Nothing is sent yet.
    ///
    /// # Errors
    /// When the address is none of http or https, or the token cannot be sent.
    pub fn new(url: &str, token: &Secret, settings: &ClientSettings) -> Result<Self, DaemonError> {
        Self::with_calls(url, token, settings, CALLS_MAX)
    }

    fn with_calls(
        url: &str,
        token: &Secret,
        settings: &ClientSettings,
        calls: usize,
    ) -> Result<Self, DaemonError> {
        let address = |cause| DaemonError::Address { url: url.to_owned(), cause };
        let parsed = Url::parse(url).map_err(|error| address(error.into()))?;
        let client = |max_connections| {
            let settings = ClientSettings { max_connections, ..settings.clone() };
            HttpClient::new(&parsed, settings).map_err(|error| address(error.into()))
        };
        let (http, http_of_fetches, http_of_root) =
            (client(calls)?, client(FETCHES_MAX)?, client(2)?);
        let calls_max = calls;
        let calls = Arc::new(Semaphore::new(calls));
        let bearer = HeaderValue::try_from(format!("Bearer {}", token.expose()));
        let mut bearer = bearer.map_err(|_shows_the_token| DaemonError::Token)?;
        bearer.set_sensitive(true);
        Ok(Self { http, calls, calls_max, http_of_fetches, http_of_root, bearer, url: parsed })
    }

    /// True if the daemon is on this machine: a local daemon that does not answer at once is gone.
    pub(crate) fn is_local(&self) -> bool {
        match self.url.host() {
            Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
            Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
            Some(url::Host::Domain(name)) => name == "localhost",
            None => false,
        }
    }

    /// The mounts that the run may open.
    ///
    /// # Errors
    /// When the daemon cannot be reached (`daemon_gone`), or the run has ended (`run_over`), or
    /// there is no answer within ten seconds (`timeout`).
    pub(crate) async fn root(&self) -> Result<Root, Failure> {
        let request = (Method::GET, uri(ROOT, "mounts"), Bytes::new());
        let asked = timeout(ROOT_WITHIN, self.send(&self.http_of_root, request)).await;
        let listed = asked.unwrap_or_else(|_late| {
            let within = ROOT_WITHIN.as_secs();
            let text = format!("the daemon did not list the run's servers within {within} s");
            Err(Failure::new(Code::Timeout, "timeout", text))
        })?;
        serde_json::from_slice(&listed).map_err(|error| {
            let text = format!(
                "the daemon's answer cannot be read, is the daemon of this version? {error}"
            );
            Failure::new(Code::Internal, "bug", text)
        })
    }

    /// Reports a refusal of the folder to the observers of the run, through the daemon. The report
    /// is lost if the daemon does not take it.
    pub(crate) async fn tell(&self, path: &str, report: &Report<'_>) {
        let body = serde_json::to_vec(report).expect("texts and numbers can be written");
        let request = (Method::POST, uri(path, "failed"), Bytes::from(body));
        let told = timeout(ROOT_WITHIN, self.send(&self.http_of_root, request)).await;
        if !matches!(told, Ok(Ok(_))) {
            tracing::debug!(?told, path, "a refusal could not be reported to the daemon");
        }
    }

    pub(crate) async fn get(&self, path: &str, operation: &str) -> Result<Bytes, Failure> {
        self.send(&self.http_of_fetches, (Method::GET, uri(path, operation), Bytes::new())).await
    }

    /// Makes a call. It waits for no other: there is no saying when one of them ends.
    pub(crate) async fn post(&self, path: &str, body: Bytes) -> Result<Bytes, Failure> {
        let _one_of_all = self.calls.try_acquire().map_err(|_none_is_free| {
            let text = "the limit of open calls of this folder is reached; wait until one has \
                        ended, or interrupt one";
            Failure::new(Code::ResourceExhausted, "limit_exceeded", text)
        })?;
        let uri = format!("/vfs{}", utf8_percent_encode(path, PLAIN));
        self.send(&self.http, (Method::POST, uri, body)).await
    }

    /// True if a call is under way.
    pub(crate) fn is_called(&self) -> bool {
        self.calls.available_permits() < self.calls_max
    }

    async fn send(
        &self,
        http: &HttpClient,
        (method, uri, body): (Method, String, Bytes),
    ) -> Result<Bytes, Failure> {
        let mut request = Request::new(Payload::from(body));
        *request.uri_mut() = uri.parse().map_err(|error| {
            Failure::new(Code::Invalid, "invalid", format!("the path cannot be sent: {error}"))
        })?;
        let headers = request.headers_mut();
        headers.insert(header::AUTHORIZATION, self.bearer.clone());
        if method == Method::POST {
            let json = HeaderValue::from_static("application/json");
            headers.insert(header::CONTENT_TYPE, json);
        }
        *request.method_mut() = method;
        let response = http.send(request).await.map_err(|error| gone(&error))?;
        let HttpResponse { status, body, .. } = response;
        let bytes = body.collect(ANSWER_MAX).await.map_err(|error| gone(&error))?;
        if status.is_success() {
            return Ok(bytes);
        }
        // The daemon has reported the failure itself.
        Err(Failure { is_told: true, ..told(status, &bytes) })
    }
}

fn uri(path: &str, operation: &str) -> String {
    format!("/vfs{}?op={operation}", utf8_percent_encode(path, PLAIN))
}

impl fmt::Debug for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Daemon").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

/// The failure for programs whose call the daemon does not answer any more: `EIO`.
fn gone(error: &ClientError) -> Failure {
    match error.kind() {
        ErrorKind::Exhausted => {
            Failure::new(Code::ResourceExhausted, "limit_exceeded", with_causes(error))
        }
        _ => Failure::new(
            Code::Internal,
            GONE,
            format!("the daemon is unreachable: {}", with_causes(error)),
        ),
    }
}

fn told(status: StatusCode, body: &[u8]) -> Failure {
    let problem: Option<Problem<'_>> = match body.starts_with(b"{") {
        true => serde_json::from_slice(body).ok(),
        false => None,
    };
    let Some(problem) = problem else {
        let text = format!("the daemon answered {status}");
        return Failure::new(Code::ServiceUnavailable, "transport_error", text);
    };
    if let Some(told) = problem.failure
        && let Some(code) = Code::parse(&told.code)
    {
        let mut failure = Failure::new(code, told.kind, told.message);
        failure.details = told.details.map(|details| details.get().to_owned());
        return failure;
    }
    let (code, kind) = match status {
        // The token opens nothing any more.
        StatusCode::UNAUTHORIZED => (Code::DeviceDisconnected, OVER),
        StatusCode::FORBIDDEN => (Code::Permission, "denied"),
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::TOO_MANY_REQUESTS => {
            (Code::ResourceExhausted, "limit_exceeded")
        }
        status if status.is_client_error() => (Code::Invalid, "invalid"),
        _ => (Code::ServiceUnavailable, "transport_error"),
    };
    Failure::new(code, kind, problem.detail)
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
        net::{TcpListener, TcpStream},
        sync::Notify,
    };

    use super::*;

    #[test]
    fn a_problem_document_becomes_its_failure() {
        let body = br#"{"status":403,"detail":"[PERMISSION] Write: x (ask)","failure":
            {"code":"PERMISSION","kind":"permission_required","message":"ask",
             "details":{"scopes":["a.b"]}}}"#;
        let failure = told(StatusCode::FORBIDDEN, body);
        assert_eq!(
            (failure.code, failure.kind.as_str()),
            (Code::Permission, "permission_required")
        );
        assert_eq!(failure.message, "ask");
        assert_eq!(failure.details.as_deref(), Some(r#"{"scopes":["a.b"]}"#));
        let over = told(StatusCode::UNAUTHORIZED, br#"{"detail":"a token is needed"}"#);
        assert_eq!((over.code, over.kind.as_str()), (Code::DeviceDisconnected, OVER));
        assert_eq!(told(StatusCode::BAD_GATEWAY, b"<html>").code, Code::ServiceUnavailable);
    }

    /// Answers each request but calls, which it begins and never ends.
    async fn serve(listener: TcpListener, began: Arc<Notify>) {
        let mut all = tokio::task::JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.expect("it listens");
            all.spawn(answer(stream, began.clone()));
        }
    }

    async fn answer(stream: TcpStream, began: Arc<Notify>) {
        let mut lines = BufReader::new(stream).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if line.starts_with("POST ") {
                began.notify_one();
                std::future::pending::<()>().await;
            }
            if line.is_empty() {
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
                lines.get_mut().write_all(answer).await.expect("it reads");
            }
        }
    }

    /// Calls that take long hold up neither what is read nor who would call, too.
    #[tokio::test]
    async fn calls_beyond_their_own_limit_are_refused_at_once() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("there is a port");
        let url = format!("http://{}", listener.local_addr().expect("it has one"));
        let daemon = {
            let settings = ClientSettings::default();
            Daemon::with_calls(&url, &Secret::new("t"), &settings, 1).expect("it is one")
        };
        let began = Arc::new(Notify::new());
        let path = "/mnt/mcp/1-a/tools/x";
        let body = Bytes::from_static(b"{}");
        let mut slow = Box::pin(daemon.post(path, body.clone()));
        let meanwhile = async {
            began.notified().await;
            let refused = daemon.post(path, body.clone()).await.expect_err("there is no place");
            assert_eq!(refused.code, Code::ResourceExhausted);
            assert!(refused.message.contains("interrupt one"), "{}", refused.message);
            assert_eq!(daemon.get("/mnt/mcp/1-b/tools/x.md", "read").await, Ok(body.clone()));
        };
        tokio::select! {
            () = serve(listener, began.clone()) => {}
            done = &mut slow => panic!("{done:?}"),
            () = meanwhile => {}
        }
        assert!(daemon.is_called());
        drop(slow);
        assert!(!daemon.is_called(), "it was given up");
    }

    #[test]
    fn paths_are_encoded_once() {
        let encoded = |path| utf8_percent_encode(path, PLAIN).to_string();
        assert_eq!(encoded("/mnt/mcp/1-a/tools/x.md"), "/mnt/mcp/1-a/tools/x.md");
        assert_eq!(encoded("/mnt/mcp/1-a/tools/a%2Fb"), "/mnt/mcp/1-a/tools/a%252Fb");
        assert_eq!(encoded("/r/file:///a?b#c"), "/r/file%3A///a%3Fb%23c");
    }
}
