//! One live link to one server, whichever transport and era the server uses.

mod asking;
mod check;
mod end;
mod facts;
mod forwarded;
mod pages;
mod questions;
mod use_count;

use std::{pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use narthex_model::Alias;
use narthex_policy::{Item, Permitted, Request};
use narthex_supervisor::LogRing;
use narthex_wire::{
    Message, Payload, Raw, Rewrite,
    headers::{self, HeaderParams},
    meta_key, method, rpc,
};
use tokio_util::sync::CancellationToken;

pub use self::asking::Asking;
pub(crate) use self::facts::modern_meta;
use self::forwarded::Call;
pub(crate) use self::use_count::UseCount;
pub use self::{
    end::Ended,
    facts::{ClientIdentity, ServerCapabilities, ServerFacts},
    forwarded::Forwarded,
    use_count::{InUse, KeptAwake},
};
use crate::{
    Booked, Frame, LinkError, LinkEvent, duplex::Wants, http::OwnedHttp, outlet::Outlet,
    redaction::Redaction, sse::SseLink, stdio::StdioLink,
};

/// The headers of W3C trace context.
const TRACEPARENT: HeaderName = HeaderName::from_static(meta_key::TRACEPARENT);
const TRACESTATE: HeaderName = HeaderName::from_static(meta_key::TRACESTATE);
const BAGGAGE: HeaderName = HeaderName::from_static(meta_key::BAGGAGE);

/// The capabilities of a client that follows tasks.
const TASKS_CLIENT: &[u8] = br#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// A link whose handshake has succeeded.
#[derive(Debug)]
pub struct Link {
    pub(crate) inner: Inner,
    pub(crate) facts: ServerFacts,
    pub(crate) identity: ClientIdentity,
    pub(crate) alias: Alias,
    /// Redacts all messages that come from the server.
    pub(crate) redaction: Redaction,
    pub(crate) uses: UseCount,
    /// The log of the server: events of its link, and the stderr of its program.
    pub(crate) log: LogRing,
    /// Time of the start and the handshake, without a download.
    pub(crate) connected_in: Duration,
}

/// The transports.
#[derive(Debug)]
pub(crate) enum Inner {
    Stdio(StdioLink),
    Http(OwnedHttp),
    Sse(SseLink),
}

/// The parts of a request that belong to one hop.
#[derive(Debug, Clone, Default)]
pub struct Hop {
    /// The arguments that the tool wants mirrored in headers.
    pub header_params: Option<Arc<HeaderParams>>,
    /// The trace context for servers over HTTP.
    pub trace: Option<Box<TraceHeaders>>,
    /// True if the caller wants log messages without a request that arrive while its own request is
    /// open. Only servers on one channel send such messages.
    pub wants_log: bool,
}

/// W3C trace context as headers.
#[derive(Debug, Clone)]
pub struct TraceHeaders {
    /// `traceparent`.
    pub parent: HeaderValue,
    /// `tracestate`.
    pub state: Option<HeaderValue>,
    /// `baggage`.
    pub baggage: Option<HeaderValue>,
}

/// Future of a request until the first sign of an answer. Boxed at its creation, because the future
/// is large and its holders are moved.
pub type Forwarding<'a> = Pin<Box<dyn Future<Output = Result<Forwarded, LinkError>> + Send + 'a>>;

/// A request in its final form. It is built before the first await, so that the future does not
/// carry its parts.
struct Outgoing {
    id: u64,
    payload: Payload,
    headers: HeaderMap,
    wants: Wants,
}

impl Link {
    /// The server's description of itself.
    #[must_use]
    pub fn facts(&self) -> &ServerFacts {
        &self.facts
    }

    /// The name under which the server is attached, for logs.
    #[must_use]
    pub fn name(&self) -> &str {
        self.alias.as_str()
    }

    /// The alias under which the server is attached.
    #[must_use]
    pub fn alias(&self) -> &Alias {
        &self.alias
    }

    /// The description of the client that the server got.
    #[must_use]
    pub fn identity(&self) -> &ClientIdentity {
        &self.identity
    }

    /// Duration of the start and the handshake, without a download by a package runner.
    #[must_use]
    pub fn connected_in(&self) -> Duration {
        self.connected_in
    }

    /// True if requests must carry the headers of revision 2026-07-28.
    #[must_use]
    pub fn needs_headers(&self) -> bool {
        self.facts.revision.is_modern() && matches!(self.inner, Inner::Http(_))
    }

    /// True if the server's messages outside a call cannot be assigned to a call.
    #[must_use]
    pub fn is_one_channel(&self) -> bool {
        !matches!(self.inner, Inner::Http(_))
    }

    /// True if the server has sent a log message on its own stream, outside of the streams of
    /// requests.
    #[must_use]
    pub fn logs_aside(&self) -> bool {
        match &self.inner {
            Inner::Http(http) => http.logs_aside(),
            Inner::Stdio(_) | Inner::Sse(_) => false,
        }
    }

    /// The child's process id; `None` for servers over HTTP.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        match &self.inner {
            Inner::Stdio(stdio) => Some(stdio.process_id()),
            Inner::Http(_) | Inner::Sse(_) => None,
        }
    }

    /// The last lines of the child's stderr; empty for servers over HTTP.
    #[must_use]
    pub fn log_tail(&self) -> Vec<String> {
        match &self.inner {
            Inner::Stdio(stdio) => stdio.log_tail(),
            Inner::Http(_) | Inner::Sse(_) => Vec::new(),
        }
    }

    /// Adds a line of narthex to the server's log. The line must hold no secret.
    pub fn log_note(&self, line: &str) {
        self.log.append(line);
    }

    pub(crate) fn outlet(&self) -> &Outlet {
        match &self.inner {
            Inner::Stdio(stdio) => stdio.duplex.outlet(),
            Inner::Http(http) => http.outlet(),
            Inner::Sse(sse) => sse.duplex.outlet(),
        }
    }

    /// Cancelled when the link has ended.
    #[must_use]
    pub fn closed(&self) -> &CancellationToken {
        self.outlet().closed()
    }

    /// Waits until the link has ended, and returns the reason.
    pub async fn ended(&self) -> LinkError {
        self.closed().cancelled().await;
        self.outlet().end()
    }

    /// True if the link has ended because the server forgot the session. A new link works at once.
    #[must_use]
    pub fn is_session_over(&self) -> bool {
        self.closed().is_cancelled() && matches!(self.outlet().end(), LinkError::SessionEnded)
    }

    /// Forwards a request that policy allowed. `_booked` proves that the request has its place in
    /// the record and was counted.
    ///
    /// # Errors
    /// When the request cannot be sent, or fails before the first frame.
    pub fn forward(
        &self,
        permitted: Permitted<Request>,
        hop: Hop,
        _booked: Booked,
    ) -> Forwarding<'_> {
        let Request { message, item, rewrite, alias: _, origin: _, shown: _ } =
            permitted.into_inner();
        match self.headers_for(&message, &item, &hop) {
            Ok(headers) => {
                let mut outgoing = self.outgoing(&message, rewrite, headers);
                outgoing.wants.log = hop.wants_log;
                self.start(outgoing)
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    /// Forwards a notification that policy allowed. `_booked` proves that the notification has its
    /// place in the record and was counted.
    ///
    /// # Errors
    /// When the notification cannot be sent.
    pub async fn notify(
        &self,
        permitted: Permitted<Request>,
        _booked: Booked,
    ) -> Result<(), LinkError> {
        let Request { message, item, rewrite, alias: _, origin: _, shown: _ } =
            permitted.into_inner();
        let headers = self.headers_for(&message, &item, &Hop::default())?;
        self.send(rewrite.apply(&message), headers).await
    }

    /// Sends the client's response to a request of the server.
    ///
    /// # Errors
    /// When the response cannot be sent.
    pub async fn respond(&self, response: Payload) -> Result<(), LinkError> {
        self.send(response, HeaderMap::new()).await
    }

    async fn send(&self, payload: Payload, headers: HeaderMap) -> Result<(), LinkError> {
        let sent = match &self.inner {
            Inner::Stdio(stdio) => stdio.duplex.send(payload).await,
            Inner::Sse(sse) => sse.duplex.send(payload).await,
            Inner::Http(http) => http.send(payload, headers).await,
        };
        sent.map_err(|error| self.outlet().redacted(error))
    }

    fn headers_for(
        &self,
        message: &Message,
        item: &Item,
        hop: &Hop,
    ) -> Result<HeaderMap, LinkError> {
        let mut traced = HeaderMap::new();
        if let Some(trace) = hop.trace.as_deref().filter(|_| !self.is_one_channel()) {
            traced.insert(TRACEPARENT, trace.parent.clone());
            let rest = [(TRACESTATE, &trace.state), (BAGGAGE, &trace.baggage)];
            traced
                .extend(rest.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))));
        }
        if !self.needs_headers() {
            return Ok(traced);
        }
        let revision = self.facts.revision;
        let mut composed =
            headers::compose_request_headers(message, revision, hop.header_params.as_deref());

        if composed.contains_key(headers::MCP_NAME) && !item.name().is_empty() {
            // The item's name at the server may differ from the name in the caller's bytes.
            composed.insert(headers::MCP_NAME, headers::encode_value(item.name()));
        }
        composed.extend(traced);
        Ok(composed)
    }

    /// Gives a request its id and its final bytes.
    fn outgoing(
        &self,
        message: &Message,
        mut rewrite: Rewrite<'static>,
        headers: HeaderMap,
    ) -> Outgoing {
        let id = match &self.inner {
            Inner::Stdio(stdio) => stdio.duplex.next_id(),
            Inner::Sse(sse) => sse.duplex.next_id(),
            Inner::Http(http) => http.next_id(),
        };
        let raw_id = id.to_string().into_bytes();
        let has_progress = message.meta_value(meta_key::PROGRESS_TOKEN).is_some();
        if has_progress {
            rewrite.meta.set(meta_key::PROGRESS_TOKEN, raw_id.clone());
        }
        rewrite.id = Some(raw_id.into());
        let payload = rewrite.apply(message);
        let is_stream = message.method() == method::SUBSCRIPTIONS_LISTEN;
        let wants = Wants {
            progress: has_progress || is_stream,
            cancel: message.method() != method::INITIALIZE,
            is_stream,
            log: false,
        };
        Outgoing { id, payload, headers, wants }
    }

    fn start(&self, outgoing: Outgoing) -> Forwarding<'_> {
        let Outgoing { id, payload, headers, wants } = outgoing;
        match &self.inner {
            Inner::Stdio(stdio) => Box::pin(async move {
                let call = stdio.duplex.request(id, payload, wants).await;
                self.started(call.map(Call::Duplex))
            }),
            Inner::Sse(sse) => Box::pin(async move {
                let call = sse.duplex.request(id, payload, wants).await;
                self.started(call.map(Call::Duplex))
            }),
            Inner::Http(http) => Box::pin(async move {
                let call = match wants.is_stream {
                    false => http.call(id, payload, headers).await,
                    true => http.follow(id, payload, headers).await,
                };
                self.started(call.map(Call::Http))
            }),
        }
    }

    fn started(&self, call: Result<Call, LinkError>) -> Result<Forwarded, LinkError> {
        let call = call.map_err(|error| self.outlet().redacted(error))?;
        Ok(Forwarded { call, redaction: self.redaction.clone() })
    }

    /// Sends the server a request of narthex itself. `members` are further members of `params`, as
    /// JSON text without braces.
    ///
    /// # Errors
    /// When no answer arrives.
    pub async fn ask(&self, asking: Asking, members: &[u8]) -> Result<Message, LinkError> {
        let message = self.own_request(asking.method(), members)?;
        let headers = self.headers_for(&message, &Item::Server, &Hop::default())?;
        let mut call = self.start(self.outgoing(&message, Rewrite::default(), headers)).await?;
        loop {
            match call.next().await? {
                Frame::Answer(answer) => return Ok(answer),
                // No caller waits for these messages, but the link's owner may want them.
                Frame::Notification(message) => {
                    self.outlet().event(LinkEvent::Notification(message));
                }
                Frame::Request(message) => {
                    self.outlet().event(LinkEvent::Request(message));
                }
                Frame::Break { .. } => {}
            }
        }
    }

    /// Opens a modern server's stream of changes and of tasks, and forwards its messages to the
    /// link's events until the stream ends. `members` is the filter, as members of `params` without
    /// braces. Calls `on_open` when the server has acknowledged the subscription: the link receives
    /// all later changes.
    ///
    /// # Errors
    /// When the stream cannot be opened, breaks, or the server refuses: [`LinkError::Refused`].
    pub async fn listen(
        &self,
        members: &[u8],
        on_open: impl FnOnce() + Send,
    ) -> Result<(), LinkError> {
        let mut on_open = Some(on_open);
        let message = self.own_request(method::SUBSCRIPTIONS_LISTEN, members)?;
        let headers = self.headers_for(&message, &Item::Server, &Hop::default())?;
        let mut call = self.start(self.outgoing(&message, Rewrite::default(), headers)).await?;
        loop {
            match call.next().await? {
                Frame::Notification(message)
                    if message.method() == method::SUBSCRIPTIONS_ACKNOWLEDGED =>
                {
                    if let Some(on_open) = on_open.take() {
                        on_open();
                    }
                }
                Frame::Notification(message) => {
                    self.outlet().event(LinkEvent::Notification(message));
                }
                Frame::Request(_) | Frame::Break { .. } => {}
                Frame::Answer(answer) => return pages::accepted(&answer),
            }
        }
    }

    fn own_request(&self, method: &str, members: &[u8]) -> Result<Message, LinkError> {
        let mut params = Vec::with_capacity(members.len() + 200);
        params.push(b'{');
        params.extend_from_slice(members);
        if self.facts.revision.is_modern() {
            if !members.is_empty() {
                params.push(b',');
            }
            let meta = match method {
                method::SUBSCRIPTIONS_LISTEN | method::TASKS_GET => {
                    // A server sends statuses only to a client with this capability. The client
                    // declares no other capability, so the server cannot ask it questions.
                    let capabilities = Bytes::from_static(TASKS_CLIENT);
                    modern_meta(&ClientIdentity { capabilities, ..self.identity.clone() })
                }
                _ => modern_meta(&self.identity),
            };
            params.extend_from_slice(&meta);
        }
        params.push(b'}');
        let payload = rpc::request(Raw::new(b"0"), method, Some(&params));
        let limits = narthex_wire::Limits::default();
        Message::parse(payload.into_bytes(), &limits)
            .map_err(|error| LinkError::Request(error.to_string()))
    }
}
