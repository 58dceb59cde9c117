//! The requests of one connection: those that run, and those that wait for their turn.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use narthex_gateway::{Caller, Gateway, Step};
use narthex_wire::{Message, Payload, Raw, method};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, Id, JoinSet},
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

/// A request that waits, or whose task has not ended.
#[derive(Debug)]
struct Open {
    /// True once the answer is on its way: the client may use the id again as soon as it reads the
    /// answer, which can be before the task has ended.
    answered: Arc<AtomicBool>,
    /// The task that runs the request; `None` while the request waits.
    task: Option<AbortHandle>,
    /// True if the request never ends by itself: a caller must end it.
    is_stream: bool,
}

impl Open {
    fn is_of(&self, task: Id) -> bool {
        self.task.as_ref().is_some_and(|handle| handle.id() == task)
    }
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
        if self.open.get(&id).is_some_and(|open| !open.answered.load(Ordering::Acquire)) {
            return Err(IdInUse);
        }
        let is_stream = request.method() == method::SUBSCRIPTIONS_LISTEN;
        self.open.insert(id, Open { answered: Arc::default(), task: None, is_stream });
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
            let Some(open) = self.open.get_mut(&id) else { continue };
            let (gateway, out) = (self.gateway.clone(), self.out.clone());
            let answered = open.answered.clone();
            open.task = Some(self.tasks.spawn(async move {
                answer(gateway, caller, request, &out, &answered).await;
                id
            }));
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
        let Some(ended) = self.tasks.join_next_with_id().await else {
            return std::future::pending().await;
        };
        let failed = match ended {
            Ok((task, id)) => {
                // Another request may have the id by now.
                if self.open.get(&id).is_some_and(|open| open.is_of(task)) {
                    self.open.remove(&id);
                }
                None
            }
            Err(error) if error.is_panic() => self.remove_failed(error.id()),
            // The request was cancelled, and its entry was removed then.
            Err(_) => None,
        };
        self.start_waiting();
        failed
    }

    /// Removes the request of a task that panicked. `None` if the panic came after its answer, and
    /// another request has the id.
    fn remove_failed(&mut self, task: Id) -> Option<Bytes> {
        let (id, open) = self.open.iter().find(|(_, open)| open.is_of(task))?;
        let (id, is_answered) = (id.clone(), open.answered.load(Ordering::Acquire));
        self.open.remove(&id);
        (!is_answered).then_some(id)
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

async fn answer(
    gateway: Gateway,
    caller: Caller,
    request: Message,
    out: &mpsc::Sender<Outgoing>,
    answered: &AtomicBool,
) {
    // Boxed, so that a long stream does not hold the memory that only its start needs.
    let mut answering = Box::pin(gateway.call(&caller, request)).await;
    while let Some(step) = answering.next().await {
        if matches!(step, Step::Answer(_)) {
            answered.store(true, Ordering::Release);
        }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use narthex_audit::Audit;
    use narthex_gateway::{Endpoint, GatewayOptions, RunToken, RunView};
    use narthex_policy::RunPolicy;
    use narthex_registry::{Registry, RegistryOptions};
    use narthex_supervisor::BaseEnvironment;
    use narthex_testkit::messages::stamp;
    use narthex_upstream::ClientIdentity;
    use narthex_wire::{Limits, Revision};
    use serde_json::json;

    use super::*;

    fn gateway() -> Gateway {
        let identity = ClientIdentity {
            info: Bytes::from_static(br#"{"name":"narthex-test","version":"0"}"#),
            capabilities: Bytes::from_static(b"{}"),
            revision: Revision::LEGACY_LATEST,
        };
        let options = RegistryOptions::new(identity, BaseEnvironment::from_process());
        let registry = Registry::new(options).unwrap();
        Gateway::new(registry, Audit::disabled(), GatewayOptions::default()).unwrap()
    }

    /// A client may use an id again as soon as it has read the answer, which can be before the door
    /// has seen the end of the call.
    #[tokio::test]
    async fn an_answered_id_is_free_at_once() {
        let gateway = gateway();
        let run = RunView::new(&RunToken::generate().unwrap(), RunPolicy::AllAttached);
        let caller = Caller::new(Arc::new(run), Endpoint::Aggregated, None);
        let mut ask = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
        stamp(&mut ask["params"]);
        let ask = || Message::parse(ask.to_string().into(), &Limits::default()).unwrap();
        let (out, mut answers) = mpsc::channel(4);
        let mut calls = Calls::new(gateway, out, 4);
        for _round in 0..3 {
            assert_eq!(calls.add(caller.clone(), ask()), Ok(()));
            assert_eq!(calls.add(caller.clone(), ask()), Err(IdInUse));
            assert!(matches!(answers.recv().await, Some(Outgoing::Message(_))));
        }
        // Three ends of calls with one id leave nothing.
        for _round in 0..3 {
            assert_eq!(calls.ended().await, None);
        }
        assert!(calls.is_empty());
    }
}
