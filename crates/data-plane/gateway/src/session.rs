//! One MCP session of a legacy client (revisions up to 2025-11-25).

pub(crate) mod table;

mod asks;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use narthex_model::Alias;
use narthex_registry::HeldNames;
use narthex_upstream::{ClientIdentity, Link};
use narthex_wire::{LogLevel, Payload, Raw, Revision, translate::capabilities_to_modern};
use tokio::{
    sync::{Notify, OnceCell, mpsc},
    time::Instant,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::asks::Ask;
pub(crate) use self::asks::{ASKS_MAX, Asker, TWO_MEANINGS};
use crate::{
    Endpoint, Place, Places, RunView,
    links::OwnLink,
    lists::awaited_pages::Pages,
    metrics::OpenCount,
    runs::run::Held,
    subscriptions::{FollowKey, Following},
    tasks::TaskRoutes,
    view::View,
};

/// Number of messages that wait for a client without an open stream.
const OUTBOX: usize = 64;
/// Number of subscriptions at one server that are made again when a session's own link was lost.
const OWN_SUBSCRIPTIONS_MAX: usize = 1000;
/// Longest wait of a call for a human or a model at the client's side, and of a question for its
/// answer.
pub(crate) const ASK_TIMEOUT: Duration = Duration::from_secs(600);

/// The identifier of a session: the node's id, and 192 random bits.
pub type SessionId = Arc<str>;

/// One MCP session.
#[derive(Debug)]
pub struct Session {
    /// The session's id, also if the door shows none.
    pub id: SessionId,
    /// The session's run.
    pub run: Arc<RunView>,
    /// The endpoint at which the session was opened. The session is unknown at any other.
    pub endpoint: Endpoint,
    /// The negotiated revision.
    pub revision: Revision,
    pub(crate) client: ClientIdentity,
    /// The capabilities that a modern server may use in questions to this client, as JSON.
    pub(crate) declared: Bytes,
    pub(crate) tasks: Arc<TaskRoutes>,
    pub(crate) pages: Pages,
    pub(crate) outbox: mpsc::Sender<Payload>,
    outbox_reader: Mutex<Option<mpsc::Receiver<Payload>>>,
    pub(crate) closed: CancellationToken,
    state: Mutex<State>,
    /// Number of open streams and connections of the session's client.
    attended: Arc<AtomicUsize>,
    next_ask: AtomicU64,
    next_call: AtomicU64,
    /// Woken when a call ends.
    call_ended: Notify,
    _count: OpenCount,
}

#[derive(Debug)]
struct State {
    log_level: Option<LogLevel>,
    /// The open calls, by the client's ids.
    open_calls: HashMap<Bytes, Open>,
    /// The open questions, by the gateway's ids.
    asks: HashMap<u64, Ask>,
    links: HashMap<Alias, Arc<OnceCell<OwnLink>>>,
    /// The followed resources and tasks.
    subscriptions: HashMap<FollowKey, Subscription>,
    /// The resources subscribed to on the session's own links, to be repeated on links that replace
    /// these.
    own_subscriptions: HashMap<Alias, BTreeSet<Arc<str>>>,
    /// Guards that end these subscriptions when they are not allowed any more.
    own_watches: HashMap<(Alias, Arc<str>), DropGuard>,
    view: Option<Arc<View>>,
    /// Marks the run as used until the session is closed, however long a caller still holds the
    /// session.
    held: Option<Held>,
    /// The session's place in the table of sessions, while it is in the table.
    place: Option<Place>,
    /// The places for questions of servers, once the session is in the table.
    questions: Option<Places>,
    last_used: Instant,
}

/// Marks the session's client as present until this value is dropped.
#[derive(Debug)]
pub struct Attended(Arc<AtomicUsize>);

impl Drop for Attended {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A subscription on a link that several share.
#[derive(Debug, Default)]
struct Subscription {
    /// `None` as long as the server has not answered.
    following: Option<Following>,
    /// The subscription's place among all followed subjects.
    _place: Option<Place>,
    /// Guard that ends the subscription when it is not allowed any more.
    watch: Option<DropGuard>,
}

/// An open call as its session knows it.
#[derive(Debug)]
struct Open {
    number: u64,
    server: Option<Alias>,
    cancelled: CancellationToken,
}

impl Session {
    pub(crate) fn open(
        node_id: &str,
        run: Arc<RunView>,
        endpoint: Endpoint,
        client: ClientIdentity,
        tasks: Arc<TaskRoutes>,
        count: OpenCount,
    ) -> Result<Arc<Self>, getrandom::Error> {
        let mut random = [0; 24];
        getrandom::fill(&mut random)?;
        let (outbox, reader) = mpsc::channel(OUTBOX);
        let held = Held::of(&run);
        Ok(Arc::new(Self {
            id: format!("{node_id}-{}", URL_SAFE_NO_PAD.encode(random)).into(),
            run,
            endpoint,
            revision: client.revision,
            declared: capabilities_to_modern(Raw::new(&client.capabilities), client.revision)
                .into(),
            client,
            tasks,
            pages: Pages::default(),
            outbox,
            outbox_reader: Mutex::new(Some(reader)),
            closed: CancellationToken::new(),
            state: Mutex::new(State {
                log_level: None,
                open_calls: HashMap::new(),
                asks: HashMap::new(),
                links: HashMap::new(),
                subscriptions: HashMap::new(),
                own_subscriptions: HashMap::new(),
                own_watches: HashMap::new(),
                view: None,
                held: Some(held),
                place: None,
                questions: None,
                last_used: Instant::now(),
            }),
            attended: Arc::default(),
            next_ask: AtomicU64::new(1),
            next_call: AtomicU64::new(1),
            call_ended: Notify::new(),
            _count: count,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The messages that servers send by themselves, outside of any call. The door takes the
    /// receiver once; `None` after that.
    #[must_use]
    pub fn take_outbox(&self) -> Option<mpsc::Receiver<Payload>> {
        self.outbox_reader.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// True if the client has opened the stream of the session, on which messages outside of any
    /// call reach it.
    pub(crate) fn has_stream(&self) -> bool {
        self.outbox_reader.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Cancelled when the session has ended: by its client, by idleness, or with its run.
    #[must_use]
    pub fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// Notes that a stream or a connection of the client is open, until the result is dropped.
    /// Meanwhile the session's own links give way to no other session.
    #[must_use]
    pub fn attend(&self) -> Attended {
        self.attended.fetch_add(1, Ordering::AcqRel);
        Attended(self.attended.clone())
    }

    pub(crate) fn is_attended(&self) -> bool {
        self.attended.load(Ordering::Acquire) > 0
    }

    pub(crate) fn has_open_call(&self) -> bool {
        !self.state().open_calls.is_empty()
    }

    /// True if a question of a server may still be answered.
    pub(crate) fn is_asked_by(&self, server: &Alias) -> bool {
        let state = self.state();
        state.asks.values().any(|ask| !ask.is_over && ask.is_of(server))
    }

    /// Stores the session's place in the table, and the places for its questions.
    pub(crate) fn has_place(&self, place: Place, questions: Places) {
        let mut state = self.state();
        state.place = Some(place);
        state.questions = Some(questions);
    }

    pub(crate) fn leave_place(&self) {
        let place = self.state().place.take();
        drop(place);
    }

    /// Notes that the client is still there. Doors call it while a stream is open.
    pub fn touch(&self) {
        self.state().last_used = Instant::now();
    }

    pub(crate) fn last_used(&self) -> Instant {
        let state = self.state();
        if state.open_calls.is_empty() { state.last_used } else { Instant::now() }
    }

    /// True if servers may ask this client questions, so that each server needs a link for it
    /// alone.
    pub(crate) fn can_be_asked(&self) -> bool {
        let capabilities = Raw::new(&self.client.capabilities);
        ["sampling", "elicitation", "roots", "tasks"]
            .iter()
            .any(|name| capabilities.get(name).is_some())
    }

    /// Puts a message into the outbox. A client that never reads loses the newest messages.
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

    /// Waits until no call is open.
    pub(crate) async fn quiet(&self) {
        loop {
            let ended = self.call_ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.state().open_calls.is_empty() {
                return;
            }
            ended.await;
        }
    }

    /// Gives up all open calls and subscriptions.
    pub(crate) fn close(&self) {
        self.closed.cancel();
        let mut state = self.state();
        state.held = None;
        for call in state.open_calls.values() {
            call.cancelled.cancel();
        }
    }

    /// Cancels the open call with this id; `false` if there is no such call.
    pub(crate) fn cancel_call(&self, id: &[u8]) -> bool {
        let call = self.state().open_calls.remove(id);
        if let Some(call) = &call {
            call.cancelled.cancel();
        }
        call.is_some()
    }

    pub(crate) fn own_link_cell(&self, alias: &Alias) -> Arc<OnceCell<OwnLink>> {
        let mut state = self.state();
        OwnLink::place(state.links.entry(alias.clone()).or_default())
    }

    /// The definitions under review on links that serve this session alone.
    pub(crate) fn held_on_own_links(&self) -> Vec<Arc<HeldNames>> {
        let state = self.state();
        state.links.values().filter_map(|cell| cell.get()?.held()).collect()
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

    /// Notes a subscription: from here on, changes are reported. `false` if it is followed already.
    pub(crate) fn subscribe(&self, key: &FollowKey, place: Place) -> bool {
        let mut state = self.state();
        let new = || Subscription { _place: Some(place), ..Subscription::default() };
        state.subscriptions.entry(key.clone()).or_insert_with(new).following.is_none()
    }

    /// Stores the follower of a subscription, unless the subscription was ended meanwhile.
    pub(crate) fn follows(&self, key: &FollowKey, following: Following) {
        if let Some(place) = self.state().subscriptions.get_mut(key) {
            place.following = Some(following);
        }
    }

    /// Stores the guard that ends a subscription in time, unless the subscription was ended
    /// meanwhile.
    pub(crate) fn watch(&self, key: &FollowKey, watch: DropGuard) {
        if let Some(place) = self.state().subscriptions.get_mut(key) {
            place.watch = Some(watch);
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
        let mut state = self.state();
        state.subscriptions.clear();
        state.own_watches.clear();
    }

    /// Notes a request to start or end a subscription on a link of the session's own. A
    /// subscription that the server refused would be refused again.
    pub(crate) fn note_own_subscription(&self, alias: &Alias, uri: &str, is_start: bool) {
        let mut state = self.state();
        let uris = state.own_subscriptions.entry(alias.clone()).or_default();
        if !is_start {
            uris.remove(uri);
            state.own_watches.remove(&(alias.clone(), uri.into()));
        } else if uris.len() < OWN_SUBSCRIPTIONS_MAX {
            uris.insert(uri.into());
        }
    }

    /// Stores the guard that ends a subscription on a link of the session's own in time.
    pub(crate) fn watch_own(&self, alias: &Alias, uri: Arc<str>, watch: DropGuard) {
        self.state().own_watches.insert((alias.clone(), uri), watch);
    }

    pub(crate) fn own_subscriptions(&self, alias: &Alias) -> BTreeSet<Arc<str>> {
        self.state().own_subscriptions.get(alias).cloned().unwrap_or_default()
    }

    pub(crate) fn view(&self, seq: u64) -> Option<Arc<View>> {
        self.state().view.clone().filter(|view| view.seq == seq)
    }

    /// The view that the client was shown last, which may be out of date.
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
    pub(crate) session: Arc<Session>,
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

    /// True if a question of this call's server waits for the client.
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
        // Another call may have the id by now, if the client has given up this call.
        if state.open_calls.get(&self.id).is_some_and(|open| open.number == self.number) {
            state.open_calls.remove(&self.id);
        }
        for ask in state.asks.values_mut().filter(|ask| ask.calls.contains(&self.number)) {
            ask.calls.retain(|number| *number != self.number);
            ask.is_over = ask.calls.is_empty();
            if ask.is_over {
                // A question without a call frees its place for other questions.
                ask.place = None;
            }
        }
        drop(state);
        self.session.call_ended.notify_waiters();
    }
}
