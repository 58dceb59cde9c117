//! The requests of one connection: those that run, and those that wait for their turn.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use narthex_gateway::{Caller, Gateway, Step};
use narthex_wire::{Message, Payload, Raw, method};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinError, JoinSet},
};

use crate::writer::Outgoing;

/// Maximum number of requests that wait while others run. A client may send answers to questions of
/// running calls after these requests, so the door keeps reading until the queue is full.
const WAITING_MOST: usize = 1024;

/// The open requests of one connection. Dropping this value cancels all of them.
#[derive(Debug)]
pub(crate) struct Calls {
    gateway: Gateway,
    out: mpsc::Sender<Outgoing>,
    running_most: usize,
    waiting: VecDeque<(Caller, Message)>,
    waiting_bytes: usize,
    open: HashMap<Bytes, Open>,
    tasks: JoinSet<Bytes>,
}

/// A request that has not been answered.
#[derive(Debug)]
struct Open {
    /// The task that runs the request; `None` while the request waits.
    task: Option<AbortHandle>,
    /// True if the request never ends by itself: a caller must end it.
    is_stream: bool,
}

/// The error for a request whose id another open request has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IdInUse;

impl Calls {
    pub(crate) fn new(gateway: Gateway, out: mpsc::Sender<Outgoing>, running_most: usize) -> Self {
        Self {
            gateway,
            out,
            running_most: running_most.max(1),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            open: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// True if the connection may read a further request.
    pub(crate) fn has_room(&self) -> bool {
        let bytes_most = self.gateway.limits().message_bytes;
        self.waiting.len() < WAITING_MOST && self.waiting_bytes < bytes_most
    }

    /// True if every request has been answered.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Starts a request, or queues it.
    pub(crate) fn add(&mut self, caller: Caller, request: Message) -> Result<(), IdInUse> {
        let id = id_of(&request);
        if self.open.contains_key(&id) {
            return Err(IdInUse);
        }
        let is_stream = request.method() == method::SUBSCRIPTIONS_LISTEN;
        self.open.insert(id, Open { task: None, is_stream });
        self.waiting_bytes += request.bytes().len();
        self.waiting.push_back((caller, request));
        self.start_waiting();
        Ok(())
    }

    fn start_waiting(&mut self) {
        while self.tasks.len() < self.running_most
            && let Some((caller, request)) = self.waiting.pop_front()
        {
            self.waiting_bytes -= request.bytes().len();
            let id = id_of(&request);
            let task = answer(self.gateway.clone(), caller, request, self.out.clone());
            let done = id.clone();
            let task = self.tasks.spawn(async move {
                task.await;
                done
            });
            if let Some(open) = self.open.get_mut(&id) {
                open.task = Some(task);
            }
        }
    }

    /// Cancels the request with this id, which then gets no answer. Unknown ids are ignored.
    pub(crate) fn cancel(&mut self, id: &[u8]) {
        let Some(open) = self.open.remove(id) else { return };
        match open.task {
            Some(task) => task.abort(),
            None => self.waiting.retain(|(_, request)| {
                let stays = request.id().map(Raw::as_bytes) != Some(id);
                if !stays {
                    self.waiting_bytes -= request.bytes().len();
                }
                stays
            }),
        }
    }

    /// Cancels streams, which would never end by themselves.
    pub(crate) fn cancel_streams(&mut self) {
        let is_stream = |open: &(&Bytes, &Open)| open.1.is_stream;
        let ids: Vec<Bytes> =
            self.open.iter().filter(is_stream).map(|(id, _)| id.clone()).collect();
        for id in ids {
            self.cancel(&id);
        }
    }

    /// Waits until one request has ended, and starts the next one. Waits for ever if no request
    /// runs. Returns the id of a request that ended without an answer through a panic in the
    /// gateway.
    pub(crate) async fn ended(&mut self) -> Option<Bytes> {
        let Some(ended) = self.tasks.join_next().await else { return std::future::pending().await };
        let failed = match ended {
            Ok(id) => {
                self.open.remove(&id);
                None
            }
            Err(error) if error.is_panic() => self.remove_failed(&error),
            // The request was cancelled, and its entry was removed then.
            Err(_) => None,
        };
        self.start_waiting();
        failed
    }

    fn remove_failed(&mut self, error: &JoinError) -> Option<Bytes> {
        let is_failed = |open: &Open| open.task.as_ref().is_some_and(|t| t.id() == error.id());
        let found = self.open.iter().find(|(_, open)| is_failed(open));
        let id = found.map(|(id, _)| id.clone())?;
        self.open.remove(&id);
        Some(id)
    }

    /// Cancels all requests, and waits until their tasks have ended.
    pub(crate) async fn abandon(mut self) {
        self.tasks.shutdown().await;
    }
}

fn id_of(request: &Message) -> Bytes {
    let id = request.id().map(Raw::as_bytes).unwrap_or_default();
    // A copy: a slice would keep the whole message in memory.
    Bytes::copy_from_slice(id)
}

async fn answer(gateway: Gateway, caller: Caller, request: Message, out: mpsc::Sender<Outgoing>) {
    // Boxed, so that a long stream does not hold the memory that only its start needs.
    let mut answering = Box::pin(gateway.call(&caller, request)).await;
    while let Some(step) = answering.next().await {
        let Some(payload) = payload_of(step) else { continue };
        if out.send(Outgoing::Message(payload)).await.is_err() {
            return;
        }
    }
}

/// The payload that a step writes, if any.
pub(crate) fn payload_of(step: Step) -> Option<Payload> {
    match step {
        Step::Message(payload) => Some(payload),
        // Only streams over HTTP can be resumed.
        Step::Break { .. } => None,
        Step::Answer(answer) => Some(answer.payload),
    }
}
