//! Requests of the legacy era: each request belongs to a session, and a call continues after its
//! connection closes.

use std::sync::Arc;

use http::{HeaderValue, StatusCode};
use narthex_gateway::{Caller, Session, Step};
use narthex_model::ErrorKind;
use narthex_wire::{
    Message, MessageKind, Payload, Revision,
    headers::{LAST_EVENT_ID, MCP_PROTOCOL_VERSION, MCP_SESSION_ID},
    method,
    rpc::code,
};

use crate::listener::single;
use crate::{
    detached::{Detached, Start},
    door::{Door, Visit, wrong_method},
    hub::{CallChannel, Reader},
    modern::whole,
    post::{Post, accepts, not_acceptable, prefers_stream, trace_context},
    problem::Problem,
    replay::Event,
    respond::{Response, empty, event_stream, json, rpc_error},
    stream::{End, ReaderStream, Shown},
};

/// Answers one message.
pub(crate) async fn receive(post: Post<'_>, message: Message) -> Response {
    if !accepts(&post.visit.parts.headers, "text", "event-stream") {
        return post.refused("accept", not_acceptable());
    }
    if message.kind() == MessageKind::Request && message.method() == method::INITIALIZE {
        // Boxed: this rare path must not enlarge the future of every call.
        return Box::pin(initialize(post, &message)).await;
    }
    let session = match session(post.door, post.visit) {
        Ok(session) => session,
        Err(refusal) => return post.refused("session", refusal.answer(&message)),
    };
    match message.kind() {
        MessageKind::Request => call(post, session, message).await,
        MessageKind::Notification | MessageKind::Result | MessageKind::Error => {
            deliver(post, session, message).await;
            empty(StatusCode::ACCEPTED)
        }
    }
}

/// The reason why a message belongs to no session (S19).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoSession {
    /// The message names no session.
    Unnamed,
    /// The run has no session with this id at this endpoint.
    Unknown,
}

impl NoSession {
    fn status(self) -> StatusCode {
        match self {
            Self::Unnamed => StatusCode::BAD_REQUEST,
            Self::Unknown => StatusCode::NOT_FOUND,
        }
    }

    fn code(self) -> i64 {
        match self {
            Self::Unnamed => code::INVALID_REQUEST,
            Self::Unknown => code::LEGACY_SESSION_NOT_FOUND,
        }
    }

    fn line(self) -> &'static str {
        match self {
            Self::Unnamed => "Mcp-Session-Id is missing; open a session with initialize",
            Self::Unknown => "the session is unknown or has ended; open one with initialize",
        }
    }

    fn answer(self, message: &Message) -> Response {
        let id = (message.kind() == MessageKind::Request).then(|| message.id()).flatten();
        rpc_error(self.status(), id, self.code(), self.line())
    }

    /// The answer to a request without a message.
    pub(crate) fn answer_unasked(self) -> Response {
        rpc_error(self.status(), None, self.code(), self.line())
    }
}

/// The active session that the request names.
pub(crate) fn session(door: &Door, visit: &Visit) -> Result<Arc<Session>, NoSession> {
    let Some(id) = single(&visit.parts.headers, &MCP_SESSION_ID) else {
        return Err(NoSession::Unknown);
    };
    let id = id.ok_or(NoSession::Unnamed)?;
    let session =
        door.gateway.session(&visit.run, &visit.endpoint, id).ok_or(NoSession::Unknown)?;
    session.touch();
    Ok(session)
}

pub(crate) fn caller(visit: &Visit, session: Arc<Session>) -> Caller {
    let (run, endpoint) = (visit.run.clone(), visit.endpoint.clone());
    let trace = trace_context(&visit.parts.headers);
    Caller { run, endpoint, session: Some(session), trace }
}

async fn initialize(post: Post<'_>, message: &Message) -> Response {
    let visit = post.visit;
    let (mut answering, session) =
        Box::pin(post.door.gateway.initialize(&visit.run, &visit.endpoint, message)).await;
    let answer = loop {
        match answering.next().await {
            Some(Step::Answer(answer)) => break answer,
            Some(Step::Message(_) | Step::Break { .. }) => {}
            None => return empty(StatusCode::INTERNAL_SERVER_ERROR),
        }
    };
    let Some(session) = session else { return whole(answer) };
    let mut response = json(StatusCode::OK, answer.payload);
    let Ok(id) = HeaderValue::from_str(&session.id) else {
        return empty(StatusCode::INTERNAL_SERVER_ERROR);
    };
    response.headers_mut().insert(MCP_SESSION_ID, id);
    response
}

/// Handles a message that needs no answer. Boxed: this rare path must not enlarge the future of
/// every call.
pub(crate) async fn deliver(post: Post<'_>, session: Arc<Session>, message: Message) {
    match message.kind() {
        MessageKind::Notification => {
            let caller = caller(post.visit, session);
            Box::pin(post.door.gateway.notify(&caller, message)).await;
        }
        MessageKind::Result | MessageKind::Error => {
            Box::pin(post.door.gateway.respond(&session, message)).await;
        }
        MessageKind::Request => {}
    }
}

async fn call(post: Post<'_>, session: Arc<Session>, message: Message) -> Response {
    let door = post.door;
    let mut call = Detached::new(&door.gateway, caller(post.visit, session.clone()), message);
    let start = match tokio::time::timeout(door.options.quiet, &mut call).await {
        // The status is 200 for every answer: to legacy clients a 404 would mean that their session
        // has ended.
        Ok((_, Some(Step::Answer(answer)))) if !prefers_stream(&post.visit.parts.headers) => {
            return json(StatusCode::OK, answer.payload);
        }
        // The client has cancelled the call: there is no answer, and the stream ends.
        Ok((_, None)) => return event_stream(Payload::default()),
        Ok(opened) => Start::Opened(Box::new(opened)),
        Err(_quiet) => match call.take() {
            Some(opening) => Start::Opening(opening),
            None => return empty(StatusCode::INTERNAL_SERVER_ERROR),
        },
    };
    stream(door, &session, |channel| pump(channel, start))
}

/// Opens a stream in the session, spawns the task that fills it, and answers with the stream.
pub(crate) fn stream<F>(
    door: &Door,
    session: &Arc<Session>,
    fill: impl FnOnce(CallChannel) -> F,
) -> Response
where
    F: Future<Output = ()> + Send + 'static,
{
    let opened = door.hub.streams(session, door.gateway.tasks()).open_call();
    let Ok(call) = opened else { return empty(StatusCode::INTERNAL_SERVER_ERROR) };
    let channel = call.channel().clone();
    door.gateway.tasks().spawn(fill(call));
    match channel.read(None, is_primed(session)) {
        Some(reader) => show(door, session, reader, vec![]),
        None => empty(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// True if the stream starts with an event without data. Clients of older revisions would try to
/// read such an event as a message.
fn is_primed(session: &Session) -> bool {
    session.revision >= Revision::V2025_11_25
}

/// Puts a call's steps into its stream, even while no client reads it.
async fn pump(call: CallChannel, start: Start) {
    let (mut answering, mut step) = match start {
        Start::Opening(opening) => opening.await,
        Start::Opened(opened) => *opened,
    };
    let is_breakable = call.is_breakable();
    while let Some(taken) = step {
        match taken {
            Step::Message(message) => call.channel().push(Event::Message(message)).await,
            Step::Break { retry_ms } if is_breakable => {
                call.channel().push(Event::Break(retry_ms)).await;
            }
            Step::Break { .. } => {}
            Step::Answer(answer) => {
                call.channel().push(Event::Message(answer.payload)).await;
                return;
            }
        }
        step = answering.next().await;
    }
}

/// Opens the stream of messages that belong to no call, or resumes a stream whose connection was
/// lost.
pub(crate) fn get(door: &Door, visit: &Visit) -> Response {
    let session = match session_of_stream(door, visit) {
        Ok(session) => session,
        Err(response) => return *response,
    };
    let headers = &visit.parts.headers;
    if !accepts(headers, "text", "event-stream") {
        return not_acceptable();
    }
    let reader = match single(headers, &LAST_EVENT_ID) {
        None => None,
        Some(Some(id)) => door.hub.existing(&session).and_then(|streams| streams.resume(id)),
        Some(None) => own_stream(door, &session),
    };
    let Some(reader) = reader else {
        let text = "this session does not have this event, or not any more";
        return Problem::new(ErrorKind::Invalid, text).answer();
    };
    let ends = vec![
        Box::pin(session.closed().clone().cancelled_owned()),
        Box::pin(door.options.closing.clone().cancelled_owned()),
    ];
    show(door, &session, reader, ends)
}

fn show(door: &Door, session: &Arc<Session>, reader: Reader, ends: Vec<End>) -> Response {
    let shown = Shown {
        session: session.clone(),
        keep_alive: door.options.keep_alive,
        open: door.gateway.metrics().stream_opened(),
        attended: session.attend(),
    };
    event_stream(ReaderStream::new(reader, shown, ends))
}

fn own_stream(door: &Door, session: &Arc<Session>) -> Option<Reader> {
    let own = door.hub.streams(session, door.gateway.tasks()).own();
    let own = own.inspect_err(|error| tracing::error!(%error, "no randomness")).ok()?;
    own.read(None, is_primed(session))
}

/// Ends a session.
pub(crate) async fn delete(door: &Door, visit: &Visit) -> Response {
    match session_of_stream(door, visit) {
        Ok(session) => {
            Box::pin(door.gateway.end_session(&session)).await;
            empty(StatusCode::NO_CONTENT)
        }
        Err(response) => *response,
    }
}

/// The session that a GET or DELETE names. Modern clients must not send these methods.
fn session_of_stream(door: &Door, visit: &Visit) -> Result<Arc<Session>, Box<Response>> {
    let version = single(&visit.parts.headers, &MCP_PROTOCOL_VERSION);
    let revision = version.map(|version| version.map(Revision::parse));
    let is_modern = matches!(revision, Some(Some(Some(revision))) if revision.is_modern());
    let says_legacy = matches!(revision, Some(Some(Some(_)))) && !is_modern;
    let refusal = match session(door, visit) {
        Ok(_) if matches!(revision, None | Some(Some(None))) => {
            Problem::new(ErrorKind::Invalid, "this MCP-Protocol-Version is not known").answer()
        }
        Ok(session) => return Ok(session),
        Err(_) if is_modern => wrong_method("POST"),
        Err(NoSession::Unnamed) if !says_legacy => wrong_method("POST"),
        Err(refusal) => refusal.answer_unasked(),
    };
    Err(Box::new(refusal))
}
