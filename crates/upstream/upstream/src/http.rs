//! Streamable HTTP to one server, both eras: every request is a POST of its own.

mod answer;
mod end;
mod headers;
mod hidden;
mod requests;
mod session;
mod stream;

use std::{
    ops::Deref,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use narthex_http_client::{HttpClient, HttpResponse, ResponseBody};
use narthex_model::AuthErrorPattern;
use narthex_wire::{Limits, Message, MessageKind, Payload, Revision, headers::LAST_EVENT_ID};
use tokio::sync::Notify;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use self::{
    answer::{failure, is_event_stream},
    stream::HttpStream,
};
use self::{
    answer::{is_other, parse_answer, refusal},
    headers::{Established, Headers},
    hidden::SentWith,
    requests::{Get, Post},
    session::{Hint, names_lost_session},
};
use crate::{
    Frame, LinkError,
    aside::is_large,
    authorization::{Authorization, operation},
    duplex::cancelled,
    ids::Ids,
    outlet::Outlet,
};

const ACCEPT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
/// The largest body of an error response that is read.
const ERROR_BODY_BYTES: usize = 1024 * 1024;
/// Longest wait until a server accepts a message that no caller waits for.
const LATER_DEADLINE: Duration = Duration::from_secs(30);
/// Longest wait for the end of a session whose link was dropped without a stop.
const STOP_DEADLINE: Duration = Duration::from_secs(2);

/// A link to a server over Streamable HTTP. All users of the link share one MCP session, if the
/// server opened one.
#[derive(Debug)]
pub(crate) struct HttpLink {
    pub(crate) client: HttpClient,
    path: http::Uri,
    authorization: Authorization,
    /// The error that counts as a refused credential, if the entry names one.
    auth_error: Option<AuthErrorPattern>,
    /// The headers of requests before the handshake.
    first: Headers,
    established: OnceLock<Established>,
    ids: Ids,
    /// True once the session is over at the server, or narthex has asked the server to end it
    /// (R-E46).
    is_given_back: AtomicBool,
    /// True once the server has sent a log message on its own stream, outside of the streams of
    /// requests.
    logs_aside: AtomicBool,
    /// True while a task checks that the server still knows the session.
    is_checking: AtomicBool,
    /// Notified at the end of the check.
    checked: Notify,
    outlet: Outlet,
    pub(crate) limits: Limits,
    tasks: TaskTracker,
}

/// The one owner of a link. An owner that is dropped without a stop ends the session all the same.
#[derive(Debug)]
pub(crate) struct OwnedHttp(Arc<HttpLink>);

impl Deref for OwnedHttp {
    type Target = Arc<HttpLink>;

    fn deref(&self) -> &Arc<HttpLink> {
        &self.0
    }
}

impl Drop for OwnedHttp {
    fn drop(&mut self) {
        // Without a runtime, narthex can send no message any more.
        let is_open = !self.0.is_given_back.load(Ordering::Acquire);
        if is_open && tokio::runtime::Handle::try_current().is_ok() {
            let link = self.0.clone();
            self.0.tasks.spawn(async move { link.stop(STOP_DEADLINE).await });
        }
    }
}

/// The parameters of a link.
pub(crate) struct HttpParts {
    pub(crate) client: HttpClient,
    pub(crate) path: http::Uri,
    /// Static and credential headers.
    pub(crate) headers: HeaderMap,
    /// The credential that can change.
    pub(crate) authorization: Authorization,
    /// True if that credential exists already.
    pub(crate) is_authorized: bool,
    /// The error that counts as a refused credential.
    pub(crate) auth_error: Option<AuthErrorPattern>,
    pub(crate) outlet: Outlet,
    pub(crate) limits: Limits,
    pub(crate) tasks: TaskTracker,
}

/// A sent request.
#[derive(Debug)]
pub(crate) enum HttpCall {
    /// The answer arrived in one piece.
    Single(Option<Message>),
    /// The answer arrives as a stream.
    Stream(Box<HttpStream>),
}

impl HttpLink {
    pub(crate) fn open(parts: HttpParts) -> OwnedHttp {
        let first = Headers::new(parts.headers, parts.client.host(), parts.is_authorized);
        OwnedHttp(Arc::new(Self {
            client: parts.client,
            path: parts.path,
            authorization: parts.authorization,
            auth_error: parts.auth_error,
            first,
            established: OnceLock::new(),
            ids: Ids::new(),
            is_given_back: AtomicBool::new(false),
            logs_aside: AtomicBool::new(false),
            is_checking: AtomicBool::new(false),
            checked: Notify::new(),
            outlet: parts.outlet,
            limits: parts.limits,
            tasks: parts.tasks,
        }))
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.ids.next()
    }

    /// Cancelled when the link has ended.
    pub(crate) fn closed(&self) -> &CancellationToken {
        self.outlet.closed()
    }

    /// The outlet of the server's own messages.
    pub(crate) fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    /// True if the server has sent a log message on its own stream.
    pub(crate) fn logs_aside(&self) -> bool {
        self.logs_aside.load(Ordering::Relaxed)
    }

    /// Fixes the results of the handshake; all later requests carry the revision and the session.
    pub(crate) fn established(&self, revision: Revision, session: Option<HeaderValue>) {
        let host = self.client.host();
        self.established.get_or_init(|| Established::new(&self.first, host, revision, session));
    }

    fn session(&self) -> Option<&HeaderValue> {
        self.established.get()?.session.as_ref()
    }

    fn is_modern(&self) -> bool {
        self.established.get().is_some_and(|established| established.revision.is_modern())
    }

    fn headers(&self) -> &Headers {
        self.established.get().map_or(&self.first, |established| &established.headers)
    }

    fn request(
        &self,
        method: Method,
        body: Payload,
        mut headers: HeaderMap,
        extra: &HeaderMap,
    ) -> http::Request<Payload> {
        headers.reserve(extra.len());
        for (name, value) in extra {
            headers.insert(name.clone(), value.clone());
        }
        let mut request = http::Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = headers;
        request
    }

    /// POSTs a message and returns the response as it arrived.
    pub(crate) async fn post(
        &self,
        body: Payload,
        extra: HeaderMap,
    ) -> Result<HttpResponse, LinkError> {
        if self.closed().is_cancelled() {
            return Err(self.outlet.end());
        }
        self.authorization.send(&self.client, &Post { link: self, body, extra }).await
    }

    /// Sends a request under `id`, whose payload already carries it.
    pub(crate) async fn call(
        self: &Arc<Self>,
        id: u64,
        body: Payload,
        extra: HeaderMap,
    ) -> Result<HttpCall, LinkError> {
        let called = match &self.auth_error {
            None => self.try_call(id, body, extra).await,
            Some(pattern) => {
                let searched = Box::pin(self.searched_call(id, body, extra, pattern));
                self.while_open(searched).await
            }
        };
        match &called {
            Ok(HttpCall::Single(answer)) => {
                self.outlet.health().answered();
                answer.iter().for_each(|answer| self.note_answer(answer));
            }
            Ok(HttpCall::Stream(_)) => {}
            Err(error) => {
                self.outlet.blame(error);
                self.note_failure(error);
            }
        }
        called
    }

    /// As [`Self::call`], for a stream without an end. A server may drop the stream, and a proxy
    /// between narthex and the server ends a quiet stream. So failures of the stream prove nothing
    /// about the server.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        id: u64,
        body: Payload,
        extra: HeaderMap,
    ) -> Result<HttpCall, LinkError> {
        let mut called = self.try_call(id, body, extra).await;
        if let Ok(HttpCall::Stream(stream)) = &mut called {
            stream.is_blameless = true;
        }
        called
    }

    /// As [`Self::try_call`], where an error may mean that the server refuses the credential. The
    /// server did not carry out such a request, so it is sent once more with another credential.
    async fn searched_call(
        self: &Arc<Self>,
        id: u64,
        body: Payload,
        extra: HeaderMap,
        pattern: &AuthErrorPattern,
    ) -> Result<HttpCall, LinkError> {
        let mut is_repeated = false;
        loop {
            let value = self.authorization.value().await?;
            let mut called = self.try_call(id, body.clone(), extra.clone()).await?;
            let answer = match &mut called {
                HttpCall::Single(answer) => answer.as_ref(),
                HttpCall::Stream(stream) => stream.peek_answer().await?,
            };
            let is_refused = answer.map(|answer| hidden::is_refusal(pattern, answer));
            let operation = operation(&body, &self.limits);
            if is_refused != Some(true) {
                if let (None, HttpCall::Stream(stream)) = (is_refused, &mut called) {
                    stream.unsearched = Some(SentWith { value, operation });
                }
                return Ok(called);
            }
            let refused = self.authorization.refused_within(value, operation, is_repeated);
            if !refused.await? || is_repeated {
                return Ok(called);
            }
            is_repeated = true;
        }
    }

    /// An answer that came late in its stream. If it means that the server refuses the credential,
    /// the next request has another one; this one is not repeated, as its caller has seen a part.
    async fn searched(&self, stream: &mut HttpStream, answer: Message) -> Result<Frame, LinkError> {
        let is_refusal = |pattern| hidden::is_refusal(pattern, &answer);
        let is_refused = self.auth_error.as_ref().is_some_and(is_refusal);
        match stream.unsearched.take() {
            Some(SentWith { value, operation }) if is_refused => {
                // A caller that stops waiting gets the answer with its next call.
                stream.first = Some(Frame::Answer(answer.clone()));
                let refused = self.authorization.refused_within(value, operation, false);
                let reported = self.while_open(Box::pin(refused)).await;
                stream.first = None;
                reported.map(|_is_better| Frame::Answer(answer))
            }
            Some(_) | None => Ok(Frame::Answer(answer)),
        }
    }

    async fn try_call(
        self: &Arc<Self>,
        id: u64,
        body: Payload,
        extra: HeaderMap,
    ) -> Result<HttpCall, LinkError> {
        let guard = CancelOnDrop { link: self.clone(), id, is_armed: !self.is_modern() };
        let response = self.while_open(self.post(body, extra)).await?;
        if is_event_stream(&response.headers) && response.status.is_success() {
            let mut stream = Box::new(HttpStream::new(self.clone(), id, response.body, guard));
            if self.session().is_some() {
                self.while_open(stream.peek()).await?;
            }
            return Ok(HttpCall::Stream(stream));
        }
        let answer = self.while_open(self.single(response)).await;
        guard.disarm();
        answer.map(|message| HttpCall::Single(Some(message)))
    }

    /// The message in a response that is no stream.
    pub(crate) async fn single(&self, response: HttpResponse) -> Result<Message, LinkError> {
        let HttpResponse { status, headers, body, .. } = response;
        let limit = match status.is_success() {
            true => self.limits.message_bytes,
            false => ERROR_BODY_BYTES,
        };
        let bytes = body.collect(limit).await?;
        // Some servers accept a request with 202, but answer it in the same response.
        let is_answered = status != StatusCode::ACCEPTED || !bytes.trim_ascii().is_empty();
        if status.is_success() && is_answered {
            let answer = match is_large(&bytes) {
                false => parse_answer(bytes.clone(), &self.limits),
                true => {
                    let (text, limits) = (bytes.clone(), self.limits);
                    self.outlet.aside().run(move || parse_answer(text, &limits)).await
                }
            };
            let is_result = answer.as_ref().is_ok_and(|one| one.kind() == MessageKind::Result);
            if !is_result && let Some(lost) = self.lost_by(&bytes).await {
                return Err(lost);
            }
            let other = |error| match is_other(status, &headers, &bytes) {
                Some(other) => LinkError::Protocol(other),
                None => error,
            };
            return answer.map_err(other);
        }
        if let Some(lost) = self.lost_by_status(status, &bytes).await {
            return Err(lost);
        }
        refusal((status, &headers), &bytes, &self.limits)
    }

    /// The error of a request whose answer shows that the session is over. `None` if the answer
    /// does not show that.
    async fn lost_by_status(&self, status: StatusCode, bytes: &[u8]) -> Option<LinkError> {
        self.session()?;
        match Hint::of(status, bytes) {
            Hint::Over => self.end_lost(),
            Hint::Words => Box::pin(self.lost_session(bytes)).await,
            Hint::Unclear | Hint::None => None,
        }
    }

    /// As [`Self::lost_by_status`], for an error or an unreadable body in a successful HTTP answer.
    pub(super) async fn lost_by(&self, bytes: &[u8]) -> Option<LinkError> {
        match self.session().is_some() && names_lost_session(bytes) {
            true => Box::pin(self.lost_session(bytes)).await,
            false => None,
        }
    }

    /// Reads the answer to request `id` from a stream. A dropped reader sends no cancellation.
    pub(crate) fn stream(self: &Arc<Self>, id: u64, body: ResponseBody) -> HttpStream {
        let guard = CancelOnDrop { link: self.clone(), id, is_armed: false };
        HttpStream::new(self.clone(), id, body, guard)
    }

    /// Sends a notification or a response, to which the server owes no content.
    pub(crate) async fn send(&self, body: Payload, extra: HeaderMap) -> Result<(), LinkError> {
        let sent = self.try_send(body, extra).await;
        if let Err(error) = &sent {
            self.outlet.blame(error);
        }
        sent
    }

    async fn try_send(&self, body: Payload, extra: HeaderMap) -> Result<(), LinkError> {
        let response = self.post(body, extra).await?;
        if response.status.is_success() {
            // A body would be against the specification, but reading it saves the connection.
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

    /// Opens the stream for messages that the server sends by itself (legacy), or resumes this
    /// stream. An empty id means no id, as in the rules of event streams.
    pub(crate) async fn open_stream(
        &self,
        last_event_id: &[u8],
    ) -> Result<ResponseBody, LinkError> {
        let mut extra = HeaderMap::new();
        extra.insert(header::ACCEPT, ACCEPT_STREAM);
        if !last_event_id.is_empty() {
            let id = HeaderValue::from_bytes(last_event_id).map_err(|_invalid| {
                LinkError::Protocol("an event id that does not fit into a header".to_owned())
            })?;
            extra.insert(LAST_EVENT_ID, id);
        }
        let response = self.authorization.send(&self.client, &Get { link: self, extra }).await?;
        if response.status.is_success() && is_event_stream(&response.headers) {
            return Ok(response.body);
        }
        let HttpResponse { status, headers, body, .. } = response;
        let bytes = body.collect(ERROR_BODY_BYTES).await?;
        // Many servers have no such stream, and also answer with 404.
        let may_be_lost = self.session().is_some() && Hint::of(status, &bytes) != Hint::None;
        if may_be_lost && let Some(lost) = Box::pin(self.lost_session(&bytes)).await {
            return Err(lost);
        }
        Err(failure((status, &headers), &bytes, &self.limits))
    }

    /// Opens the server's own stream, which the link reads until its end (legacy). The returned
    /// future completes when the stream is open, or when the server has none.
    pub(crate) fn listen(self: &Arc<Self>) -> impl Future<Output = ()> + use<> {
        let opened = CancellationToken::new();
        let opening = opened.clone().drop_guard();
        self.tasks.spawn(stream::listen(self.clone(), opening));
        opened.cancelled_owned()
    }

    /// Sends a message that no caller waits for.
    pub(crate) fn send_later(self: &Arc<Self>, body: Payload) {
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let link = self.clone();
        self.tasks.spawn(async move {
            let sending = tokio::time::timeout(LATER_DEADLINE, link.send(body, HeaderMap::new()));
            tokio::select! {
                biased;
                () = link.closed().cancelled() => {}
                sent = sending => match sent {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => {
                        let error = link.outlet.redacted(error);
                        tracing::debug!(%error, "a message was not accepted");
                    }
                    Err(_) => tracing::debug!("a message was not accepted in time"),
                },
            }
        });
    }
}

impl HttpCall {
    /// The next frame, if it has already arrived.
    pub(crate) fn buffered(&mut self) -> Option<Result<Frame, LinkError>> {
        match self {
            Self::Single(message) => message.take().map(|message| Ok(Frame::Answer(message))),
            // Such an answer is searched first, which may take time.
            Self::Stream(stream) if stream.unsearched.is_some() => None,
            Self::Stream(stream) => {
                let next = stream.buffered()?;
                if let Ok(Frame::Answer(answer)) = &next {
                    stream.link().note_answer(answer);
                }
                Some(stream.link().before_the_end(next))
            }
        }
    }

    pub(crate) async fn next(&mut self) -> Result<Frame, LinkError> {
        match self {
            Self::Single(message) => message
                .take()
                .map(Frame::Answer)
                .ok_or_else(|| LinkError::Protocol("nothing follows the answer".to_owned())),
            Self::Stream(stream) => {
                let link = stream.link().clone();
                let next = link.while_open(stream.next()).await;
                let next = match next.and_then(|frame| link.before_the_end(Ok(frame))) {
                    Ok(Frame::Answer(answer)) => link.searched(stream, answer).await,
                    next => next,
                };
                match &next {
                    Ok(Frame::Answer(answer)) => link.note_answer(answer),
                    Err(error) if !stream.is_blameless => {
                        link.outlet.blame(error);
                        link.note_failure(error);
                    }
                    Ok(_) | Err(_) => {}
                }
                next
            }
        }
    }
}

/// Notifies a legacy server that the caller has stopped waiting. A modern server notices that its
/// stream closes.
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

    /// Takes the cancellation that the server must get, so that a drop sends no second one. `None`
    /// if the server needs no cancellation.
    pub(crate) fn cancelled(mut self) -> Option<Payload> {
        std::mem::take(&mut self.is_armed).then(|| cancelled(self.id))
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if self.is_armed && !self.link.closed().is_cancelled() {
            self.link.send_later(cancelled(self.id));
        }
    }
}
