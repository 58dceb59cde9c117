//! One connection, from its first message to its last answer.
//!
//! Requests run at the same time; their answers share one writer. Notifications and responses are
//! handled in their order. A client that stops sending still gets its answers. If a client
//! disconnects, or reads nothing for too long, all its calls are cancelled.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use narthex_gateway::{Attended, Caller, Endpoint, Gateway, RunView, Session, is_large};
use narthex_wire::{
    Era, LineError, Message, MessageError, MessageKind, Payload, Raw, Revision, check_stamps,
    classify_downstream, method,
    rpc::{code, error_response, result_response},
};
use tokio::{net::UnixStream, sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    SocketOptions,
    calls::{Calls, IdInUse, payload_of},
    inbox::Inbox,
    writer::{self, Outgoing},
};

/// The most messages of one batch.
const BATCH_MOST: usize = 100;
/// Interval at which the connection marks its session as in use.
const TOUCH: Duration = Duration::from_secs(60);
const NO_SESSION: &str = "this connection has no session: send `initialize` first, or name the \
                          revision `2026-07-28` in the request's `_meta`";

/// State that all connections of a door share.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) gateway: Gateway,
    pub(crate) run: Arc<RunView>,
    pub(crate) options: Arc<SocketOptions>,
}

/// The client's protocol era.
#[derive(Debug)]
enum Speaks {
    /// No message so far has shown the client's era.
    Undecided,
    Modern,
    Legacy(Arc<Session>),
}

/// The reason why the connection stops reading.
#[derive(Debug, PartialEq, Eq)]
enum Stopped {
    /// The client has sent its last message or a line that is too long, or the door is closing.
    Ended,
    /// The session has ended.
    SessionOver,
}

struct Connection {
    place: Place,
    endpoint: Endpoint,
    speaks: Speaks,
    calls: Calls,
    out: mpsc::Sender<Outgoing>,
    /// Marks the session's client as present for as long as the connection exists.
    _attended: Option<Attended>,
}

/// Serves a connection until it ends, or until the drain time after `stop` is over.
pub(crate) async fn serve(
    place: Place,
    endpoint: Endpoint,
    stream: UnixStream,
    stop: CancellationToken,
) {
    let (reader, writer) = stream.into_split();
    let (out, queue) = mpsc::channel(writer::QUEUE);
    let options = place.options.clone();
    let inbox = Inbox::new(reader, place.gateway.limits().message_bytes);
    let calls = Calls::new(place.gateway.clone(), out.clone(), options.requests);
    let speaks = Speaks::Undecided;
    let mut connection = Connection { place, endpoint, speaks, calls, out, _attended: None };
    let mut writing = std::pin::pin!(writer::run(writer, queue, options.write_timeout));
    let written = tokio::select! {
        written = &mut writing => Some(written),
        () = connection.run(inbox, stop) => None,
    };
    let Connection { place, speaks, calls, out, .. } = connection;
    calls.abandon().await;
    drop(out);
    let written = match written {
        Some(written) => written,
        None => writing.await,
    };
    if let Err(error) = written {
        note_cut(&place.gateway, &error);
    }
    if let Speaks::Legacy(session) = speaks {
        place.gateway.end_session(&session).await;
    }
}

fn note_cut(gateway: &Gateway, error: &io::Error) {
    if error.kind() == io::ErrorKind::TimedOut {
        tracing::warn!("closed a connection, because its client does not read");
        gateway.metrics().refused("socket_unread");
    } else {
        tracing::debug!(%error, "the client of a socket has gone");
    }
}

impl Connection {
    async fn run(&mut self, mut inbox: Inbox, stop: CancellationToken) {
        let options = self.place.options.clone();
        if self.read_all(&mut inbox, &stop).await == Stopped::SessionOver {
            return;
        }
        self.calls.cancel_streams();
        tokio::select! {
            () = self.drain() => {}
            () = inbox.hung_up() => {}
            () = drain_deadline(&options, &stop) => {}
        }
    }

    async fn read_all(&mut self, inbox: &mut Inbox, stop: &CancellationToken) -> Stopped {
        let mut touches = tokio::time::interval(TOUCH);
        loop {
            let over = self.session().map(|session| session.closed().clone());
            tokio::select! {
                biased;
                () = stop.cancelled() => return Stopped::Ended,
                () = cancelled(over) => return Stopped::SessionOver,
                failed = self.calls.ended() => self.answer_failed(failed).await,
                read = inbox.read(), if self.calls.has_room() => match read {
                    Ok(true) => if self.receive_lines(inbox).await.is_err() {
                        return Stopped::Ended;
                    },
                    Ok(false) => return Stopped::Ended,
                    Err(error) => {
                        tracing::debug!(%error, "could not read from a socket");
                        return Stopped::Ended;
                    }
                },
                _ = touches.tick() => if let Some(session) = self.session() {
                    session.touch();
                },
            }
        }
    }

    /// Waits until every open request has ended.
    async fn drain(&mut self) {
        while !self.calls.is_empty() {
            let failed = self.calls.ended().await;
            self.answer_failed(failed).await;
        }
    }

    fn session(&self) -> Option<&Arc<Session>> {
        match &self.speaks {
            Speaks::Legacy(session) => Some(session),
            Speaks::Undecided | Speaks::Modern => None,
        }
    }

    fn caller(&self) -> Caller {
        let session = self.session().cloned();
        Caller::new(self.place.run.clone(), self.endpoint.clone(), session)
    }

    /// Handles all complete lines that were read.
    ///
    /// # Errors
    /// When a line is too long. The client has then received an error, and nothing after the line
    /// is read.
    async fn receive_lines(&mut self, inbox: &mut Inbox) -> Result<(), LineError> {
        loop {
            match inbox.next_line() {
                Ok(Some(line)) => self.receive(line).await,
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.place.gateway.metrics().refused("message");
                    self.refuse(None, code::INVALID_REQUEST, &error.to_string()).await;
                    return Err(error);
                }
            }
        }
    }

    async fn receive(&mut self, line: Bytes) {
        let gateway = &self.place.gateway;
        let parsed = match is_large(&line) {
            false => Message::parse(line.clone(), gateway.limits()),
            true => Box::pin(gateway.parse_aside(&self.place.run, line.clone())).await,
        };
        match parsed {
            Ok(message) => self.take(message).await,
            Err(MessageError::Batch) if self.has_batches() => self.take_batch(&line).await,
            Err(error) => self.refuse_message(&error, Message::refused_id(&line)).await,
        }
    }

    fn has_batches(&self) -> bool {
        self.session().is_some_and(|session| session.revision == Revision::V2025_03_26)
    }

    /// Handles the messages of a batch one by one. Each request gets a separate answer.
    async fn take_batch(&mut self, line: &Bytes) {
        let gateway = &self.place.gateway;
        let parsed = match is_large(line) {
            false => Message::parse_batch(line, gateway.limits(), BATCH_MOST),
            true => {
                let run = &self.place.run;
                Box::pin(gateway.parse_batch_aside(run, line.clone(), BATCH_MOST)).await
            }
        };
        match parsed {
            Ok(messages) => {
                for message in messages {
                    self.take(message).await;
                }
            }
            Err(error) => self.refuse_message(&error, None).await,
        }
    }

    async fn take(&mut self, message: Message) {
        match message.kind() {
            MessageKind::Request => self.take_request(message).await,
            MessageKind::Notification => self.take_notification(message).await,
            MessageKind::Result | MessageKind::Error => {
                if let Speaks::Legacy(session) = &self.speaks {
                    self.place.gateway.respond(session, message).await;
                }
            }
        }
    }

    async fn take_request(&mut self, request: Message) {
        let is_modern = classify_downstream(&request, None) == Era::Modern
            || request.method() == method::SERVER_DISCOVER;
        match (&self.speaks, request.method()) {
            (Speaks::Legacy(_), method::INITIALIZE) => {
                let text = "this connection has been initialized already";
                self.refuse(request.id(), code::INVALID_REQUEST, text).await;
            }
            (Speaks::Legacy(_), _) => self.call(request).await,
            // Also allowed after a modern request, since a client may first probe which era the
            // door supports.
            (Speaks::Undecided | Speaks::Modern, method::INITIALIZE) if !is_modern => {
                self.initialize(&request).await;
            }
            (Speaks::Undecided, _) if is_modern => {
                self.speaks = Speaks::Modern;
                self.call(request).await;
            }
            (Speaks::Modern, _) => self.call(request).await,
            (Speaks::Undecided, method::PING) => {
                if let Some(id) = request.id() {
                    self.send(result_response(id, &Bytes::from_static(b"{}"))).await;
                }
            }
            (Speaks::Undecided, _) => {
                self.refuse(request.id(), code::INVALID_REQUEST, NO_SESSION).await;
            }
        }
    }

    async fn call(&mut self, request: Message) {
        if self.session().is_none()
            && let Err(fault) = check_stamps(&request, None)
        {
            let data = fault.data();
            let (id, text) = (request.id(), fault.to_string());
            return self.send(error_response(id, fault.code(), &text, data.as_deref())).await;
        }
        let caller = self.caller();
        let id = request.clone();
        if let Err(IdInUse) = self.calls.add(caller, request) {
            let text = "a request with this id is still open";
            self.refuse(id.id(), code::INVALID_REQUEST, text).await;
        }
    }

    async fn initialize(&mut self, request: &Message) {
        let Place { gateway, run, .. } = &self.place;
        let (mut answering, session) = gateway.initialize(run, &self.endpoint, request).await;
        let outbox = session.as_ref().and_then(|session| session.take_outbox());
        // Set before the next `await`: if the connection is cancelled there, `serve` must find the
        // session and end it.
        if let Some(session) = session {
            self._attended = Some(session.attend());
            self.speaks = Speaks::Legacy(session);
        }
        while let Some(step) = answering.next().await {
            if let Some(payload) = payload_of(step) {
                self.send(payload).await;
            }
        }
        if let Some(outbox) = outbox {
            self.push(Outgoing::Outbox(outbox)).await;
        }
    }

    async fn take_notification(&mut self, notification: Message) {
        let cancelled = (notification.method() == method::CANCELLED)
            .then(|| notification.get("requestId").map(|id| id.as_bytes().to_vec()))
            .flatten();
        let caller = self.caller();
        match (&self.speaks, cancelled) {
            (Speaks::Undecided, _) => {}
            (Speaks::Modern, Some(id)) => self.calls.cancel(&id),
            (Speaks::Legacy(_), Some(id)) => {
                self.place.gateway.notify(&caller, notification).await;
                // Cancels the call even if the gateway has not seen it yet.
                self.calls.cancel(&id);
            }
            (Speaks::Modern | Speaks::Legacy(_), None) => {
                self.place.gateway.notify(&caller, notification).await;
            }
        }
    }

    async fn answer_failed(&self, failed: Option<Bytes>) {
        if let Some(id) = failed {
            tracing::error!("a call failed inside the gateway");
            self.refuse(Some(Raw::new(&id)), code::INTERNAL_ERROR, "internal error").await;
        }
    }

    async fn refuse_message(&self, error: &MessageError, id: Option<Raw<'_>>) {
        self.place.gateway.metrics().refused("message");
        let code = match error {
            MessageError::Json(_) => code::PARSE_ERROR,
            MessageError::TooLarge { .. } | MessageError::Batch | MessageError::Envelope(_) => {
                code::INVALID_REQUEST
            }
        };
        self.refuse(id, code, &error.to_string()).await;
    }

    async fn refuse(&self, id: Option<Raw<'_>>, code: i64, text: &str) {
        self.send(error_response(id, code, text, None)).await;
    }

    async fn send(&self, payload: Payload) {
        self.push(Outgoing::Message(payload)).await;
    }

    async fn push(&self, outgoing: Outgoing) {
        if self.out.send(outgoing).await.is_err() {
            tracing::trace!("the writer of this socket has ended");
        }
    }
}

async fn cancelled(token: Option<CancellationToken>) {
    match token {
        Some(token) => token.cancelled_owned().await,
        None => std::future::pending().await,
    }
}

/// Waits until the door stops, and then for the drain time.
async fn drain_deadline(options: &SocketOptions, stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep_until(Instant::now() + options.drain_timeout).await;
}
