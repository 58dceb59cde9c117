//! One MCP session of a legacy client (revisions up to 2025-11-25).

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use narthex_model::Alias;
use narthex_upstream::{ClientIdentity, Inventory, Link};
use narthex_wire::{Message, Payload, Raw, Revision, Rewrite};
use tokio::{
    sync::{OnceCell, mpsc},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Endpoint, RunView,
    hub::{FollowKey, Following},
    log_level::LogLevel,
    metrics::OpenCount,
    view::View,
};

/// How many messages wait for a client that has no stream open.
const OUTBOX: usize = 64;
/// How many questions of servers may wait for one client.
const ASKS_MAX: usize = 64;
/// How long a call may wait for a human or a model at the client's side, and a question for its
/// answer.
pub(crate) const ASK_TIMEOUT: Duration = Duration::from_secs(600);

/// The identifier of a session: the node's id, and 192 random bits.
pub type SessionId = Arc<str>;

/// One MCP session.
#[derive(Debug)]
pub struct Session {
    /// Its id, also where the door shows none.
    pub id: SessionId,
    /// Whose it is.
    pub run: Arc<RunView>,
    /// Where it was opened; it is unknown at any other endpoint.
    pub endpoint: Endpoint,
    /// The negotiated revision.
    pub revision: Revision,
    pub(crate) client: ClientIdentity,
    pub(crate) outbox: mpsc::Sender<Payload>,
    outbox_reader: Mutex<Option<mpsc::Receiver<Payload>>>,
    pub(crate) closed: CancellationToken,
    state: Mutex<State>,
    next_ask: AtomicU64,
    next_call: AtomicU64,
    _count: OpenCount,
}

#[derive(Debug)]
struct State {
    log_level: Option<LogLevel>,
    /// By the client's ids.
    open_calls: HashMap<Bytes, Open>,
    /// By our ids.
    asks: HashMap<u64, Ask>,
    links: HashMap<Alias, Arc<OnceCell<OwnLink>>>,
    /// What is followed; `None` as long as the server has not answered.
    subscriptions: HashMap<FollowKey, Option<Following>>,
    view: Option<Arc<View>>,
    last_used: Instant,
}

/// An open call as its session knows it.
#[derive(Debug)]
struct Open {
    number: u64,
    server: Option<Alias>,
    cancelled: CancellationToken,
}

/// A question of a server that waits for the client's answer.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) link: Arc<Link>,
    /// The server's own id, as JSON.
    pub(crate) id: Bytes,
    /// The open calls that it may belong to.
    calls: Vec<u64>,
    /// All calls that it may belong to have ended: an answer may still come, but it keeps no place
    /// from other questions.
    is_over: bool,
    since: Instant,
}

/// A link besides the registry's, and what the server lists on it (D12).
#[derive(Debug)]
pub(crate) struct OwnLink {
    pub(crate) link: Arc<Link>,
    /// What the server lists for a client with these capabilities.
    pub(crate) inventory: ArcSwap<Inventory>,
}

impl Session {
    pub(crate) fn open(
        node_id: &str,
        run: Arc<RunView>,
        endpoint: Endpoint,
        client: ClientIdentity,
        count: OpenCount,
    ) -> Result<Arc<Self>, getrandom::Error> {
        let mut random = [0; 24];
        getrandom::fill(&mut random)?;
        let (outbox, reader) = mpsc::channel(OUTBOX);
        Ok(Arc::new(Self {
            id: format!("{node_id}-{}", URL_SAFE_NO_PAD.encode(random)).into(),
            run,
            endpoint,
            revision: client.revision,
            client,
            outbox,
            outbox_reader: Mutex::new(Some(reader)),
            closed: CancellationToken::new(),
            state: Mutex::new(State {
                log_level: None,
                open_calls: HashMap::new(),
                asks: HashMap::new(),
                links: HashMap::new(),
                subscriptions: HashMap::new(),
                view: None,
                last_used: Instant::now(),
            }),
            next_ask: AtomicU64::new(1),
            next_call: AtomicU64::new(1),
            _count: count,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the server sends by itself, outside any call. The door takes it once.
    #[must_use]
    pub fn take_outbox(&self) -> Option<mpsc::Receiver<Payload>> {
        self.outbox_reader.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Cancelled when the session has ended: by its client, by idleness, or with its run.
    #[must_use]
    pub fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// Says that the client is still there. Doors call it while a stream is open.
    pub fn touch(&self) {
        self.state().last_used = Instant::now();
    }

    pub(crate) fn last_used(&self) -> Instant {
        let state = self.state();
        if state.open_calls.is_empty() { state.last_used } else { Instant::now() }
    }

    /// Whether servers may ask this client something, so that each needs a link for it alone.
    pub(crate) fn can_be_asked(&self) -> bool {
        let capabilities = Raw::new(&self.client.capabilities);
        ["sampling", "elicitation", "roots", "tasks"]
            .iter()
            .any(|name| capabilities.get(name).is_some())
    }

    /// Puts a message into the outbox. A client that never reads loses the newest.
    pub(crate) fn deliver(&self, payload: Payload) {
        if self.outbox.try_send(payload).is_err() {
            tracing::debug!(
                session.id = %self.id,
                "dropped a message to a client that does not read"
            );
        }
    }

    /// Registers an open call under the client's id; the token is cancelled when the client gives
    /// the call up. `None` if a call with this id is open already.
    pub(crate) fn open_call(self: &Arc<Self>, id: Bytes) -> Option<OpenCall> {
        let number = self.next_call.fetch_add(1, Ordering::Relaxed);
        let cancelled = CancellationToken::new();
        let mut state = self.state();
        state.last_used = Instant::now();
        if state.open_calls.contains_key(&id) {
            return None;
        }
        let open = Open { number, server: None, cancelled: cancelled.clone() };
        state.open_calls.insert(id.clone(), open);
        drop(state);
        Some(OpenCall { session: self.clone(), id, number, cancelled })
    }

    /// Gives up everything that is open.
    pub(crate) fn close(&self) {
        self.closed.cancel();
        for call in self.state().open_calls.values() {
            call.cancelled.cancel();
        }
    }

    /// Gives up the call with this id; `false` if there is none.
    pub(crate) fn cancel_call(&self, id: &[u8]) -> bool {
        let call = self.state().open_calls.remove(id);
        if let Some(call) = &call {
            call.cancelled.cancel();
        }
        call.is_some()
    }

    /// Takes a server's question: gives it an id of ours, under which the answer will come. Where
    /// nothing says to which `call` it belongs, it may be any that is open at the server. `None` if
    /// too many are waiting.
    pub(crate) fn ask(
        &self,
        link: &Arc<Link>,
        question: &Message,
        call: Option<&OpenCall>,
    ) -> Option<Payload> {
        let id = Bytes::copy_from_slice(question.id()?.as_bytes());
        let ours = self.next_ask.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state();
        state.asks.retain(|_, ask| ask.since.elapsed() < ASK_TIMEOUT);
        if state.asks.len() >= ASKS_MAX {
            let over = state.asks.iter().filter(|(_, ask)| ask.is_over).map(|(ours, _)| *ours);
            let oldest = over.min()?;
            state.asks.remove(&oldest);
        }
        let calls = match call {
            Some(call) => vec![call.number],
            None => {
                let open = state
                    .open_calls
                    .values()
                    .filter(|call| call.server.as_ref() == Some(link.alias()));
                open.map(|call| call.number).collect()
            }
        };
        let since = Instant::now();
        state.asks.insert(ours, Ask { link: link.clone(), id, calls, is_over: false, since });
        drop(state);
        let rewrite =
            Rewrite { id: Some(ours.to_string().into_bytes().into()), ..Rewrite::default() };
        Some(rewrite.apply(question))
    }

    /// The question that a response answers; each is answered once.
    pub(crate) fn answered(&self, response: &Message) -> Option<Ask> {
        let ours = response.id().and_then(Raw::as_u64)?;
        let mut state = self.state();
        state.last_used = Instant::now();
        state.asks.remove(&ours)
    }

    /// What a server's `notifications/cancelled` means to the client: its question under our id.
    /// `None` if the question is not open.
    pub(crate) fn ask_cancelled(&self, link: &Arc<Link>, notice: &Message) -> Option<Payload> {
        let id = notice.get("requestId")?;
        let mut state = self.state();
        let is_it = |ask: &Ask| Arc::ptr_eq(&ask.link, link) && ask.id == id.as_bytes();
        let ours = state.asks.iter().find_map(|(ours, ask)| is_it(ask).then_some(*ours))?;
        state.asks.remove(&ours);
        drop(state);
        let mut rewrite = Rewrite::default();
        rewrite.body.set("requestId", ours.to_string().into_bytes());
        Some(rewrite.apply(notice))
    }

    pub(crate) fn own_link_cell(&self, alias: &Alias) -> Arc<OnceCell<OwnLink>> {
        let mut state = self.state();
        let cell = state.links.entry(alias.clone()).or_default();
        if cell.get().is_some_and(|own| own.link.closed().is_cancelled()) {
            *cell = Arc::default();
        }
        cell.clone()
    }

    /// The links that serve this session alone.
    pub(crate) fn own_links(&self) -> Vec<Arc<Link>> {
        let state = self.state();
        state.links.values().filter_map(|cell| cell.get().map(|own| own.link.clone())).collect()
    }

    pub(crate) fn take_own_links(&self) -> Vec<Arc<Link>> {
        let links = std::mem::take(&mut self.state().links);
        links.into_values().filter_map(|cell| cell.get().map(|own| own.link.clone())).collect()
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        self.state().log_level = Some(level);
    }

    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.state().log_level
    }

    /// Notes a subscription: from here on, changes are told. `false` if it is followed already.
    pub(crate) fn subscribe(&self, key: &FollowKey) -> bool {
        self.state().subscriptions.entry(key.clone()).or_default().is_none()
    }

    /// Keeps what follows a subscription, unless it was ended in the meantime.
    pub(crate) fn follows(&self, key: &FollowKey, following: Following) {
        if let Some(place) = self.state().subscriptions.get_mut(key) {
            *place = Some(following);
        }
    }

    /// Ends a subscription.
    pub(crate) fn unsubscribe(&self, key: &FollowKey) {
        self.state().subscriptions.remove(key);
    }

    pub(crate) fn is_subscribed(&self, key: &FollowKey) -> bool {
        self.state().subscriptions.contains_key(key)
    }

    pub(crate) fn end_subscriptions(&self) {
        self.state().subscriptions.clear();
    }

    pub(crate) fn view(&self, seq: u64) -> Option<Arc<View>> {
        self.state().view.clone().filter(|view| view.seq == seq)
    }

    /// What the client was shown last, which may be out of date.
    pub(crate) fn last_view(&self) -> Option<Arc<View>> {
        self.state().view.clone()
    }

    pub(crate) fn forget_view(&self) {
        self.state().view = None;
    }

    pub(crate) fn set_view(&self, view: Arc<View>) {
        self.state().view = Some(view);
    }
}

/// An open call; dropping it frees the client's id.
#[derive(Debug)]
pub(crate) struct OpenCall {
    session: Arc<Session>,
    id: Bytes,
    number: u64,
    pub(crate) cancelled: CancellationToken,
}

impl OpenCall {
    /// Notes which server the call goes to.
    pub(crate) fn goes_to(&self, server: &Alias) {
        if let Some(open) = self.session.state().open_calls.get_mut(&self.id) {
            open.server = Some(server.clone());
        }
    }

    /// Whether a question of this call's server waits for the client.
    pub(crate) fn is_asking(&self) -> bool {
        let state = self.session.state();
        state
            .asks
            .values()
            .any(|ask| ask.calls.contains(&self.number) && ask.since.elapsed() < ASK_TIMEOUT)
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let mut state = self.session.state();
        // Its place may be another call's by now, if the client gave it up.
        if state.open_calls.get(&self.id).is_some_and(|open| open.number == self.number) {
            state.open_calls.remove(&self.id);
        }
        for ask in state.asks.values_mut().filter(|ask| ask.calls.contains(&self.number)) {
            ask.calls.retain(|number| *number != self.number);
            ask.is_over = ask.calls.is_empty();
        }
    }
}
