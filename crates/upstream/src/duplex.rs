//! A link over one channel in each direction: stdio, and HTTP+SSE of revision 2024-11-05.
//!
//! Answers find their request by the id that this link gave it, progress by the token.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use narthex_wire::{Message, MessageKind, Payload, meta_key, method, rpc};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{Frame, LinkError, LinkEvent};

/// How many notifications of one request wait for a slow reader before further ones are dropped.
const NOTIFICATION_QUEUE: usize = 64;
/// How many outgoing messages wait for a slow server before senders wait.
const WRITE_QUEUE: usize = 64;

/// The sending half, shared by everybody who uses the link.
#[derive(Debug)]
pub(crate) struct Duplex {
    outgoing: mpsc::Sender<Payload>,
    pending: Mutex<HashMap<u64, Pending>>,
    next_id: AtomicU64,
    events: mpsc::Sender<LinkEvent>,
    closed: CancellationToken,
    reason: Mutex<Option<Arc<str>>>,
}

#[derive(Debug)]
struct Pending {
    answer: oneshot::Sender<Message>,
    notifications: Option<mpsc::Sender<Message>>,
}

/// One request on its way; dropping it before the answer cancels the request at the server.
#[derive(Debug)]
pub(crate) struct DuplexCall {
    id: u64,
    duplex: Arc<Duplex>,
    answer: oneshot::Receiver<Message>,
    notifications: Option<mpsc::Receiver<Message>>,
    is_cancellable: bool,
    is_done: bool,
}

impl Duplex {
    /// A link and the queue that its writer must empty.
    pub(crate) fn new(events: mpsc::Sender<LinkEvent>) -> (Arc<Self>, mpsc::Receiver<Payload>) {
        let (outgoing, queue) = mpsc::channel(WRITE_QUEUE);
        let duplex = Self {
            outgoing,
            pending: Mutex::default(),
            next_id: AtomicU64::new(1),
            events,
            closed: CancellationToken::new(),
            reason: Mutex::default(),
        };
        (Arc::new(duplex), queue)
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Cancelled when the link has ended.
    pub(crate) fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    pub(crate) fn reason(&self) -> Arc<str> {
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        reason.clone().unwrap_or_else(|| "it was closed".into())
    }

    /// Sends a request under `id`, whose payload already carries it.
    pub(crate) async fn request(
        self: &Arc<Self>,
        id: u64,
        payload: Payload,
        wants: Wants,
    ) -> Result<DuplexCall, LinkError> {
        let (answer_to, answer) = oneshot::channel();
        let (notify, notifications) = match wants.progress {
            true => Some(mpsc::channel(NOTIFICATION_QUEUE)).unzip(),
            false => (None, None),
        };
        let pending = Pending { answer: answer_to, notifications: notify };
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).insert(id, pending);
        let call = DuplexCall {
            id,
            duplex: self.clone(),
            answer,
            notifications,
            is_cancellable: wants.cancel,
            is_done: false,
        };
        self.send(payload).await?;
        Ok(call)
    }

    /// Sends a notification or a response.
    pub(crate) async fn send(&self, payload: Payload) -> Result<(), LinkError> {
        tokio::select! {
            biased;
            () = self.closed.cancelled() => Err(LinkError::Closed(self.reason())),
            sent = self.outgoing.send(payload) => {
                sent.map_err(|_closed| LinkError::Closed(self.reason()))
            }
        }
    }

    /// Takes one message from the server to where it belongs. Never waits.
    pub(crate) fn dispatch(&self, message: Message) {
        match message.kind() {
            MessageKind::Result | MessageKind::Error => self.answered(message),
            MessageKind::Notification => self.notified(message),
            MessageKind::Request => self.asked(message),
        }
    }

    fn answered(&self, message: Message) {
        let id = message.id().and_then(narthex_wire::Raw::as_u64);
        let pending = id
            .and_then(|id| self.pending.lock().unwrap_or_else(PoisonError::into_inner).remove(&id));
        let Some(pending) = pending else {
            tracing::debug!("dropped an answer to a request that is not waiting");
            return;
        };
        if pending.answer.send(message).is_err() {
            tracing::debug!("dropped an answer whose caller has gone");
        }
    }

    fn notified(&self, message: Message) {
        let token = match message.method() {
            method::PROGRESS => message.get(meta_key::PROGRESS_TOKEN),
            // The messages of a modern subscription carry the id of its request.
            _ => message.meta_value(meta_key::SUBSCRIPTION_ID),
        };
        let token = token.and_then(narthex_wire::Raw::as_u64);
        let Some(token) = token else {
            self.event(LinkEvent::Notification(message));
            return;
        };
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = pending.get(&token).and_then(|pending| pending.notifications.as_ref());
        if queue.is_none_or(|queue| queue.try_send(message).is_err()) {
            tracing::debug!("dropped progress that nobody waits for");
        }
    }

    fn asked(&self, message: Message) {
        let Some(id) = message.id() else { return };
        if message.method() == "ping" {
            self.send_now(rpc::result_response(id, &bytes::Bytes::from_static(b"{}")));
            return;
        }
        let refusal = rpc::error_response(
            Some(id),
            rpc::code::INTERNAL_ERROR,
            "too many requests of this server are waiting",
            None,
        );
        if !self.event(LinkEvent::Request(message)) {
            self.send_now(refusal);
        }
    }

    /// Hands on something that came in another way than over this channel.
    pub(crate) fn announce(&self, event: LinkEvent) {
        self.event(event);
    }

    fn event(&self, event: LinkEvent) -> bool {
        let sent = self.events.try_send(event);
        if sent.is_err() {
            tracing::warn!("dropped a message of the server: too many are waiting");
        }
        sent.is_ok()
    }

    fn send_now(&self, payload: Payload) {
        if self.outgoing.try_send(payload).is_err() {
            tracing::debug!("dropped a reply to a server that does not read");
        }
    }

    /// Ends the link: every waiting request fails, the event goes out once.
    pub(crate) fn close(&self, why: &str) {
        {
            let mut reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
            if reason.is_some() {
                return;
            }
            *reason = Some(why.into());
        }
        self.closed.cancel();
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.event(LinkEvent::Closed(why.into()));
    }
}

/// What a request needs besides its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wants {
    /// A queue for its progress.
    pub(crate) progress: bool,
    /// A `cancelled` notification when the caller gives up.
    pub(crate) cancel: bool,
}

impl DuplexCall {
    /// The next frame. Safe to drop and call again.
    pub(crate) async fn next(&mut self) -> Result<Frame, LinkError> {
        let answer = if let Some(notifications) = &mut self.notifications {
            tokio::select! {
                biased;
                Some(message) = notifications.recv() => return Ok(Frame::Notification(message)),
                answer = &mut self.answer => answer,
            }
        } else {
            (&mut self.answer).await
        };
        self.is_done = true;
        match answer {
            Ok(message) => Ok(Frame::Answer(message)),
            Err(_gone) => Err(LinkError::Closed(self.duplex.reason())),
        }
    }
}

impl Drop for DuplexCall {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut pending = self.duplex.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let was_waiting = pending.remove(&self.id).is_some();
        drop(pending);
        if was_waiting && self.is_cancellable {
            self.duplex.send_now(cancelled(self.id));
        }
    }
}

/// The notification that tells a server to give up a request.
pub(crate) fn cancelled(id: u64) -> Payload {
    let params = format!(r#"{{"requestId":{id},"reason":"the caller gave up"}}"#);
    rpc::notification(method::CANCELLED, Some(params.as_bytes()))
}
