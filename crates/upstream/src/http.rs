//! Streamable HTTP to one server, both eras: every request is a POST of its own.

mod stream;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use narthex_wire::{
    Limits, Message, MessageError, MessageKind, Payload, Revision,
    headers::{LAST_EVENT_ID, MCP_PROTOCOL_VERSION, MCP_SESSION_ID},
};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use self::stream::HttpStream;
use crate::{
    Frame, LinkError, LinkEvent,
    client::{HttpClient, HttpResponse, ResponseBody},
    duplex::cancelled,
};

const ACCEPT_BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const ACCEPT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// How much of an error body is shown.
const SNIPPET_BYTES: usize = 300;
/// The largest error body that is read at all.
const ERROR_BODY_BYTES: usize = 1024 * 1024;

/// A link to a server over Streamable HTTP. All its clones are one MCP session, if it has one.
#[derive(Debug)]
pub(crate) struct HttpLink {
    pub(crate) client: HttpClient,
    path: http::Uri,
    headers: HeaderMap,
    session: Mutex<Option<HeaderValue>>,
    revision: Mutex<Option<Revision>>,
    next_id: AtomicU64,
    events: mpsc::Sender<LinkEvent>,
    closed: CancellationToken,
    reason: Mutex<Option<Arc<str>>>,
    pub(crate) limits: Limits,
    tasks: TaskTracker,
}

/// What a link is made from.
pub(crate) struct HttpParts {
    pub(crate) client: HttpClient,
    pub(crate) path: http::Uri,
    /// Static and credential headers.
    pub(crate) headers: HeaderMap,
    pub(crate) events: mpsc::Sender<LinkEvent>,
    pub(crate) limits: Limits,
    pub(crate) tasks: TaskTracker,
}

/// One request on its way.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the common variant must not cost an allocation")]
pub(crate) enum HttpCall {
    /// The answer came in one piece.
    Single(Option<Message>),
    /// The answer comes as a stream.
    Stream(Box<HttpStream>),
}

impl HttpLink {
    pub(crate) fn new(parts: HttpParts) -> Arc<Self> {
        Arc::new(Self {
            client: parts.client,
            path: parts.path,
            headers: parts.headers,
            session: Mutex::default(),
            revision: Mutex::default(),
            next_id: AtomicU64::new(1),
            events: parts.events,
            closed: CancellationToken::new(),
            reason: Mutex::default(),
            limits: parts.limits,
            tasks: parts.tasks,
        })
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    pub(crate) fn reason(&self) -> Arc<str> {
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        reason.clone().unwrap_or_else(|| "it was closed".into())
    }

    /// Fixes what the handshake found out; from here on, requests carry it.
    pub(crate) fn established(&self, revision: Revision, session: Option<HeaderValue>) {
        *self.revision.lock().unwrap_or_else(PoisonError::into_inner) = Some(revision);
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
    }

    fn is_modern(&self) -> bool {
        let revision = self.revision.lock().unwrap_or_else(PoisonError::into_inner);
        revision.is_some_and(Revision::is_modern)
    }

    fn request(&self, method: Method, body: Payload, extra: HeaderMap) -> http::Request<Payload> {
        let mut request = http::Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = self.path.clone();
        let headers = request.headers_mut();
        headers.reserve(self.headers.len() + extra.len() + 5);
        headers.extend(self.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        let revision = *self.revision.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(revision) = revision.filter(|revision| *revision >= Revision::V2025_06_18) {
            headers.insert(MCP_PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
        }
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = session.as_ref() {
            headers.insert(MCP_SESSION_ID, session.clone());
        }
        drop(session);
        for (name, value) in extra {
            if let Some(name) = name {
                headers.insert(name, value);
            }
        }
        request
    }

    /// POSTs a message and gives the bare response.
    pub(crate) async fn post(
        &self,
        body: Payload,
        extra: HeaderMap,
    ) -> Result<HttpResponse, LinkError> {
        if self.closed.is_cancelled() {
            return Err(LinkError::Closed(self.reason()));
        }
        let mut request = self.request(Method::POST, body, extra);
        request.headers_mut().insert(header::ACCEPT, ACCEPT_BOTH);
        request.headers_mut().insert(header::CONTENT_TYPE, JSON);
        Ok(self.client.send(request).await?)
    }

    /// Sends a request under `id`, whose payload already carries it.
    pub(crate) async fn call(
        self: &Arc<Self>,
        id: u64,
        body: Payload,
        extra: HeaderMap,
    ) -> Result<HttpCall, LinkError> {
        let guard = CancelOnDrop { link: self.clone(), id, is_armed: !self.is_modern() };
        let response = self.post(body, extra).await?;
        if is_event_stream(&response.headers) && response.status.is_success() {
            let stream = HttpStream::new(self.clone(), id, response.body, guard);
            return Ok(HttpCall::Stream(Box::new(stream)));
        }
        let answer = self.single(response).await;
        guard.disarm();
        answer.map(|message| HttpCall::Single(Some(message)))
    }

    /// The one message that a response without a stream carries.
    pub(crate) async fn single(&self, response: HttpResponse) -> Result<Message, LinkError> {
        let HttpResponse { status, headers, body, .. } = response;
        let had_session = self.session.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let limit = match status.is_success() {
            true => self.limits.message_bytes,
            false => ERROR_BODY_BYTES,
        };
        let bytes = body.collect(limit).await?;
        if status.is_success() && status != StatusCode::ACCEPTED {
            return parse_answer(bytes, &self.limits);
        }
        if status == StatusCode::NOT_FOUND && had_session {
            self.close("the server ended the session");
            return Err(LinkError::SessionEnded);
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(LinkError::AuthRejected { status: status.as_u16() });
        }
        let is_json = content_type(&headers).is_some_and(|kind| kind == "application/json");
        if is_json
            && let Ok(message) = Message::parse(bytes.clone(), &self.limits)
            && message.kind() == MessageKind::Error
        {
            return Ok(message);
        }
        Err(LinkError::Status { status: status.as_u16(), text: snippet(&headers, &bytes) })
    }

    /// Where the server is, below its origin.
    pub(crate) fn path(&self) -> &http::Uri {
        &self.path
    }

    /// Reads the answer to request `id` from a stream, without telling the server if we stop.
    pub(crate) fn stream(self: &Arc<Self>, id: u64, body: ResponseBody) -> HttpStream {
        let guard = CancelOnDrop { link: self.clone(), id, is_armed: false };
        HttpStream::new(self.clone(), id, body, guard)
    }

    /// Sends a notification or a response; the server owes no content.
    pub(crate) async fn send(&self, body: Payload, extra: HeaderMap) -> Result<(), LinkError> {
        let response = self.post(body, extra).await?;
        if response.status.is_success() {
            // A body would be against the specification; the connection is worth more than it.
            response.body.collect(ERROR_BODY_BYTES).await?;
            return Ok(());
        }
        match self.single(response).await {
            Ok(message) => Err(LinkError::Protocol(format!(
                "error {} to a notification",
                message.error_code().unwrap_or_default()
            ))),
            Err(error) => Err(error),
        }
    }

    /// Opens the stream for what the server sends by itself (legacy), or resumes one.
    pub(crate) async fn open_stream(
        &self,
        last_event_id: Option<&str>,
    ) -> Result<ResponseBody, LinkError> {
        let mut extra = HeaderMap::new();
        extra.insert(header::ACCEPT, ACCEPT_STREAM);
        if let Some(id) = last_event_id {
            let id = HeaderValue::from_str(id).map_err(|_invalid| {
                LinkError::Protocol("an event id that fits no header".to_owned())
            })?;
            extra.insert(LAST_EVENT_ID, id);
        }
        let request = self.request(Method::GET, Payload::default(), extra);
        let response = self.client.send(request).await?;
        if response.status.is_success() && is_event_stream(&response.headers) {
            return Ok(response.body);
        }
        let status = response.status.as_u16();
        match self.single(response).await {
            Err(error) => Err(error),
            Ok(_) => Err(LinkError::Status { status, text: String::new() }),
        }
    }

    /// Ends the session at the server, if there is one, and the link.
    pub(crate) async fn stop(&self, deadline: Duration) {
        self.close("it was stopped");
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if session {
            let request = self.request(Method::DELETE, Payload::default(), HeaderMap::new());
            // Servers may refuse DELETE (405); the session then ends by its own timeout.
            match tokio::time::timeout(deadline, self.client.send(request)).await {
                Ok(Ok(response)) => tracing::debug!(status = %response.status, "session ended"),
                Ok(Err(error)) => tracing::debug!(%error, "could not end the session"),
                Err(_) => tracing::debug!("the server did not answer to the end of the session"),
            }
        }
    }

    /// Ends the link: new requests fail, the event goes out once.
    pub(crate) fn close(&self, why: &str) {
        {
            let mut reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
            if reason.is_some() {
                return;
            }
            *reason = Some(why.into());
        }
        self.closed.cancel();
        self.event(LinkEvent::Closed(why.into()));
    }

    pub(crate) fn event(&self, event: LinkEvent) {
        if self.events.try_send(event).is_err() {
            tracing::warn!("dropped a message of the server: too many are waiting");
        }
    }

    /// Keeps the server's own stream open as long as the link lives (legacy).
    pub(crate) fn listen(self: &Arc<Self>, first: ResponseBody) {
        self.tasks.spawn(stream::listen(self.clone(), first));
    }

    /// Sends something that nobody waits for.
    pub(crate) fn send_later(self: &Arc<Self>, body: Payload) {
        let link = self.clone();
        self.tasks.spawn(async move {
            if let Err(error) = link.send(body, HeaderMap::new()).await {
                tracing::debug!(%error, "a message to the server was not taken");
            }
        });
    }
}

impl HttpCall {
    pub(crate) async fn next(&mut self) -> Result<Frame, LinkError> {
        match self {
            Self::Single(message) => message
                .take()
                .map(Frame::Answer)
                .ok_or_else(|| LinkError::Protocol("nothing follows the answer".to_owned())),
            Self::Stream(stream) => stream.next().await,
        }
    }
}

/// Tells a legacy server that nobody waits any more; a modern one sees the stream close.
#[derive(Debug)]
pub(crate) struct CancelOnDrop {
    link: Arc<HttpLink>,
    id: u64,
    is_armed: bool,
}

impl CancelOnDrop {
    pub(crate) fn disarm(mut self) {
        self.is_armed = false;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if self.is_armed && !self.link.closed.is_cancelled() {
            self.link.send_later(cancelled(self.id));
        }
    }
}

fn parse_answer(bytes: Bytes, limits: &Limits) -> Result<Message, LinkError> {
    let unusable = |error: MessageError| LinkError::Protocol(error.to_string());
    let messages = Message::parse_batch(&bytes, limits, 100).map_err(unusable)?;
    let is_answer =
        |message: &Message| matches!(message.kind(), MessageKind::Result | MessageKind::Error);
    let found = messages.into_iter().find(is_answer);
    found.ok_or_else(|| LinkError::Protocol("a JSON body without an answer".to_owned()))
}

pub(crate) fn content_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"))
}

fn snippet(headers: &HeaderMap, bytes: &Bytes) -> String {
    let is_text = content_type(headers).is_some_and(|kind| {
        kind == "text/plain" || kind == "application/json" || kind == "application/problem+json"
    });
    if !is_text {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SNIPPET_BYTES)]);
    text.chars().filter(|c| !c.is_control()).collect()
}
