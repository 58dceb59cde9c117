//! A link over one channel in each direction: stdio, and HTTP+SSE of revision 2024-11-05.
//!
//! The link's id assigns an answer to its request; the progress token assigns progress to its
//! request.

mod refused;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use narthex_wire::{
    Limits, Message, MessageError, MessageKind, Payload, Raw, meta_key, method, rpc,
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    Frame, LinkError, LinkEvent, aside::BATCH_MAX, ids::Ids, outlet::Outlet, stdio::Input,
};

/// Number of notifications of one request that wait for a slow reader before more are dropped.
const NOTIFICATION_QUEUE: usize = 64;
/// Number of outgoing messages that wait for a slow server before senders wait.
const WRITE_QUEUE: usize = 64;

/// The sending half, shared by all users of the link.
#[derive(Debug)]
pub(crate) struct Duplex {
    outgoing: mpsc::Sender<Outgoing>,
    /// The child's stdin, for messages that need not wait in the queue.
    input: Option<Arc<Input>>,
    pending: Mutex<HashMap<u64, Pending>>,
    ids: Ids,
    outlet: Outlet,
    /// Set at the end of a server that had read no byte of its input.
    has_read_nothing: AtomicBool,
    /// Set at the end of a server that had answered all requests that it had read.
    has_answered_all: AtomicBool,
}

/// A message in the queue of the writer.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) payload: Payload,
    /// The request that fails if this message cannot be written.
    pub(crate) request: Option<u64>,
}

#[derive(Debug)]
struct Pending {
    /// Number of bytes written to the server before the request.
    after: u64,
    answer: oneshot::Sender<Result<Message, LinkError>>,
    notifications: Option<mpsc::Sender<Message>>,
    hears_log: bool,
}

/// A sent request; dropping it before the answer cancels the request at the server.
#[derive(Debug)]
pub(crate) struct DuplexCall {
    id: u64,
    duplex: Arc<Duplex>,
    answer: oneshot::Receiver<Result<Message, LinkError>>,
    notifications: Option<mpsc::Receiver<Message>>,
    /// The answer, if it arrived before the last progress was taken.
    early: Option<Box<Answered>>,
    is_cancellable: bool,
    is_done: bool,
}

/// The outcome of waiting for an answer; an error if the link has dropped the request.
type Answered = Result<Result<Message, LinkError>, oneshot::error::RecvError>;

impl Duplex {
    /// A link and the queue that its writer must empty.
    pub(crate) fn new(
        outlet: Outlet,
        input: Option<Arc<Input>>,
    ) -> (Arc<Self>, mpsc::Receiver<Outgoing>) {
        let (outgoing, queue) = mpsc::channel(WRITE_QUEUE);
        let (pending, ids) = (Mutex::default(), Ids::new());
        let (has_read_nothing, has_answered_all) = <(AtomicBool, AtomicBool)>::default();
        let duplex =
            Self { outgoing, input, pending, ids, outlet, has_read_nothing, has_answered_all };
        (Arc::new(duplex), queue)
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The outlet of the server's own messages.
    pub(crate) fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    pub(crate) fn next_id(&self) -> u64 {
        loop {
            let id = self.ids.next();
            if !self.ids.come_again() || !self.pending().contains_key(&id) {
                return id;
            }
        }
    }

    /// Cancelled when the link has ended.
    pub(crate) fn closed(&self) -> &CancellationToken {
        self.outlet.closed()
    }

    /// Sends a request under `id`, whose payload already carries it.
    pub(crate) async fn request(
        self: &Arc<Self>,
        id: u64,
        payload: Payload,
        wants: Wants,
    ) -> Result<DuplexCall, LinkError> {
        let (answer_to, answer) = oneshot::channel();
        let (notify, notifications) = match wants.progress || wants.log {
            true => Some(mpsc::channel(NOTIFICATION_QUEUE)).unzip(),
            false => (None, None),
        };
        let after = self.input.as_ref().map_or(0, |input| input.written());
        let hears_log = wants.log;
        let pending = Pending { after, answer: answer_to, notifications: notify, hears_log };
        self.pending().insert(id, pending);
        let call = DuplexCall {
            id,
            duplex: self.clone(),
            answer,
            notifications,
            is_cancellable: wants.cancel,
            early: None,
            is_done: false,
        };
        self.write(Outgoing { payload, request: Some(id) }).await?;
        Ok(call)
    }

    /// Sends a notification or a response.
    pub(crate) async fn send(&self, payload: Payload) -> Result<(), LinkError> {
        self.write(Outgoing { payload, request: None }).await
    }

    async fn write(&self, outgoing: Outgoing) -> Result<(), LinkError> {
        if self.closed().is_cancelled() {
            return Err(self.outlet.end());
        }
        if self.input.as_ref().is_some_and(|input| input.write_now(&outgoing.payload)) {
            return Ok(());
        }
        let place = tokio::select! {
            biased;
            () = self.closed().cancelled() => return Err(self.outlet.end()),
            place = self.outgoing.reserve() => place.map_err(|_closed| self.outlet.end())?,
        };
        self.queue(place, outgoing);
        Ok(())
    }

    fn queue(&self, place: mpsc::Permit<'_, Outgoing>, outgoing: Outgoing) {
        if let Some(input) = &self.input {
            input.queue();
        }
        place.send(outgoing);
    }

    /// Fails one request that gets no answer, or did not reach the server.
    pub(crate) fn fail(&self, id: u64, error: LinkError) {
        let pending = self.pending().remove(&id);
        if pending.is_some_and(|pending| pending.answer.send(Err(error)).is_err()) {
            tracing::debug!("a request failed, and its caller has gone");
        }
    }

    /// Fails the request that an unacceptable text of the server answers, so that no caller waits
    /// in vain. If the text is a request itself, refuses it, so that the server does not wait in
    /// vain.
    pub(crate) fn refuse(&self, text: &[u8], why: &MessageError) {
        if let Some(id) = refused::answered_by(text) {
            self.fail(id, LinkError::Protocol(why.to_string()));
        }
        if let Some(id) = refused::asked_by(text) {
            let (id, why) = (Raw::new(id.as_bytes()), format!("the request is unusable: {why}"));
            let code = rpc::code::INVALID_REQUEST;
            self.send_now(rpc::error_response(Some(id), code, &why, None));
        }
    }

    /// Delivers one piece of the server's output, a message or a batch, to its receiver.
    pub(crate) fn take(&self, text: &Bytes, limits: &Limits) {
        self.taken(text, Message::parse_batch_lenient(text, limits, BATCH_MAX));
    }

    /// As [`Self::take`], for a large text, which another thread reads. The reader of the server's
    /// output waits for that thread, so that later messages stay in order.
    pub(crate) async fn take_large(&self, text: Bytes, limits: Limits) {
        let read = {
            let text = text.clone();
            move || Message::parse_batch_lenient(&text, &limits, BATCH_MAX)
        };
        let read = self.outlet.aside().run(read).await;
        self.taken(&text, read);
    }

    fn taken(&self, text: &Bytes, read: Result<Vec<Message>, MessageError>) {
        match read {
            Ok(messages) => messages.into_iter().for_each(|message| self.dispatch(message)),
            // Servers print banners and log lines to stdout by mistake; such a line does not end
            // the link.
            Err(error) => {
                tracing::warn!(%error, "a server sent text that is not a message");
                self.refuse(text, &error);
            }
        }
    }

    /// Delivers one message of the server to its receiver. Never waits.
    pub(crate) fn dispatch(&self, message: Message) {
        match message.kind() {
            MessageKind::Result | MessageKind::Error => self.answered(message),
            MessageKind::Notification => self.notified(message),
            MessageKind::Request => self.asked(message),
        }
    }

    fn answered(&self, message: Message) {
        self.outlet.health().answered();
        // Some servers return a numeric id as a string.
        let as_text = |id: Raw<'_>| id.as_str()?.parse().ok();
        let id = message.id().and_then(|id| id.as_u64().or_else(|| as_text(id)));
        let pending = id.and_then(|id| self.pending().remove(&id));
        let Some(pending) = pending else {
            tracing::debug!("dropped an answer to an unknown request");
            return;
        };
        if pending.answer.send(Ok(message)).is_err() {
            tracing::debug!("dropped an answer whose caller has gone");
        }
    }

    fn notified(&self, message: Message) {
        let token = match message.method() {
            method::PROGRESS => message.get(meta_key::PROGRESS_TOKEN),
            // The messages of a modern subscription carry the id of its request.
            _ => message.meta_value(meta_key::SUBSCRIPTION_ID),
        };
        let token = token.and_then(Raw::as_u64);
        let Some(token) = token else {
            if message.method() == method::MESSAGE {
                self.logged(&message);
            }
            self.outlet.event(LinkEvent::Notification(message));
            return;
        };
        let pending = self.pending();
        let queue = pending.get(&token).and_then(|pending| pending.notifications.as_ref());
        if queue.is_none_or(|queue| queue.try_send(message).is_err()) {
            tracing::debug!("dropped progress of an unknown request");
        }
    }

    /// Delivers a log message to the open requests that want it, before their answers: the message
    /// does not name its request.
    fn logged(&self, message: &Message) {
        let pending = self.pending();
        let hearing = pending.values().filter(|pending| pending.hears_log);
        for queue in hearing.filter_map(|pending| pending.notifications.as_ref()) {
            if queue.try_send(message.clone()).is_err() {
                tracing::debug!("dropped a log message: the caller of its request does not read");
            }
        }
    }

    fn asked(&self, message: Message) {
        let Some(id) = message.id() else { return };
        if message.method() == "ping" {
            self.send_now(rpc::result_response(id, &Bytes::from_static(b"{}")));
            return;
        }
        let refusal = rpc::error_response(
            Some(id),
            rpc::code::INTERNAL_ERROR,
            "too many requests of this server are waiting",
            None,
        );
        if !self.outlet.event(LinkEvent::Request(message)) {
            self.send_now(refusal);
        }
    }

    fn send_now(&self, payload: Payload) {
        match self.outgoing.try_reserve() {
            Ok(place) => self.queue(place, Outgoing { payload, request: None }),
            Err(_) => tracing::debug!("dropped a reply to a server that does not read"),
        }
    }

    /// Ends the link: every waiting request fails, and the link sends its last event once.
    pub(crate) fn close(&self, why: &str) {
        self.end(LinkError::Closed(why.into()));
    }

    /// Ends the link to a server that no longer reads. Requests of which it has read no byte fail
    /// as unread: they may be sent again.
    pub(crate) fn end_unread(&self, why: &str) {
        let read = self.input.as_ref().and_then(|input| input.read_at_most());
        let unread = read.map(|read| self.take_unread(read)).unwrap_or_default();
        // The link ends first: a caller that makes a request again must find that this link has
        // ended.
        self.close(why);
        let error = self.outlet.redacted(LinkError::Unread(why.into()));
        for pending in unread {
            // A caller that has given up meanwhile needs no answer.
            drop(pending.answer.send(Err(error.clone())));
        }
    }

    /// Removes and returns the requests of which a server that has ended has read no byte.
    fn take_unread(&self, read: u64) -> Vec<Pending> {
        self.has_read_nothing.store(read == 0, Ordering::Release);
        let mut pending = self.pending();
        let unread = pending.extract_if(|_, pending| pending.after >= read);
        let unread = unread.map(|(_, pending)| pending).collect();
        self.has_answered_all.store(pending.is_empty(), Ordering::Release);
        unread
    }

    /// True if a server that has ended had read no byte.
    pub(crate) fn has_read_nothing(&self) -> bool {
        self.has_read_nothing.load(Ordering::Acquire)
    }

    /// True if a server that has ended had answered all requests that it had read.
    pub(crate) fn has_answered_all(&self) -> bool {
        self.has_answered_all.load(Ordering::Acquire)
    }

    /// Ends the link for a reason that callers may have to distinguish.
    pub(crate) fn end(&self, end: LinkError) {
        if self.outlet.close(end) {
            self.pending().clear();
        }
    }
}

/// The needs of a request besides its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wants {
    /// True if the caller wants the request's progress messages.
    pub(crate) progress: bool,
    /// True if the server gets a `cancelled` notification when the caller gives up.
    pub(crate) cancel: bool,
    /// True for a stream, which does not end by itself.
    pub(crate) is_stream: bool,
    /// True if the caller wants the log messages that arrive while the request is open.
    pub(crate) log: bool,
}

impl DuplexCall {
    /// The next frame. A caller may drop the future and call again.
    pub(crate) async fn next(&mut self) -> Result<Frame, LinkError> {
        let answer = match (self.early.take(), &mut self.notifications) {
            (Some(answer), _) => *answer,
            (None, None) => (&mut self.answer).await,
            (None, Some(notifications)) => tokio::select! {
                biased;
                Some(message) = notifications.recv() => return Ok(Frame::Notification(message)),
                answer = &mut self.answer => answer,
            },
        };
        // A notification and the answer may have arrived since the queue was read, the notification
        // first.
        if let Some(message) = self.notifications.as_mut().and_then(|all| all.try_recv().ok()) {
            self.early = Some(Box::new(answer));
            return Ok(Frame::Notification(message));
        }
        self.is_done = true;
        match answer {
            Ok(answer) => answer.map(Frame::Answer),
            Err(_gone) => Err(match self.duplex.outlet.end() {
                // The server took this request before the server lost the session.
                end @ LinkError::SessionEnded => LinkError::Closed(end.to_string().into()),
                end => end,
            }),
        }
    }
}

impl Drop for DuplexCall {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let was_waiting = self.duplex.pending().remove(&self.id).is_some();
        if was_waiting && self.is_cancellable {
            self.duplex.send_now(cancelled(self.id));
        }
    }
}

/// The notification that asks a server to give up a request.
pub(crate) fn cancelled(id: u64) -> Payload {
    let params = format!(r#"{{"requestId":{id},"reason":"the caller gave up"}}"#);
    rpc::notification(method::CANCELLED, Some(params.as_bytes()))
}
