//! One connection to one server: its published state, and its end.

mod changes;
mod end;
mod life;
mod open;
mod pins;
mod remedy;
mod sign_in;

use std::{
    fmt,
    path::Path,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use narthex_model::{
    Alias, CallErrorKind, RowWarning, ServerDefinition, ServerFailure, ServerState, Target,
    WarningKind,
};
use narthex_upstream::{CutReason, Deadlines, Ended, Link};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use self::pins::Pins;
pub(crate) use self::{
    life::{relist, run},
    pins::Turn,
    sign_in::SignIn,
};
use crate::{ConnectionId, Found, LegacySupport, registry::Shared};

/// Settings of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Limits of the steps of connecting.
    pub(crate) deadlines: Deadlines,
    /// Time without a call after which the server is stopped until the next one; `None`: never.
    pub(crate) idle_stop: Option<Duration>,
    /// True if nothing is connected, because a person must sign in first (D17).
    pub(crate) awaits_consent: bool,
    /// True if the connection takes its credential from the registry's source, if there is one.
    pub(crate) signs_in: bool,
}

/// Facts that are known of a server before a connection to it is made.
#[derive(Debug, Clone, Default)]
pub(crate) struct Before<'a> {
    /// State found on an earlier connection.
    pub(crate) found: Option<&'a Found>,
    /// The file with the server's entry.
    pub(crate) file: Option<Arc<Path>>,
    /// Knowledge of whether a server of this definition answers `initialize`.
    pub(crate) legacy: Arc<LegacySupport>,
    /// The credential of its links.
    pub(crate) sign_in: SignIn,
}

/// The remedy where a person would have to sign in.
const CONSENT: &str = "a person must sign in to it (OAuth), and narthex cannot ask for that yet; \
                       attach a server that accepts a key (`auth` with the mode `apiKey`), or \
                       continue without this one";

impl Settings {
    /// Applies the mount timeout of the definition itself to these settings (R-M11).
    pub(crate) fn of(mut self, definition: &ServerDefinition) -> Self {
        if let Some(own) = definition.mount_timeout {
            self.deadlines = self.deadlines.within(own);
        }
        self
    }
}

/// One connection. Its task owns the link; all other callers see only the state found.
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) definition: Arc<ServerDefinition>,
    pub(crate) settings: Settings,
    found: ArcSwap<Found>,
    /// Locked while the published state changes, so that changes come in their order.
    changing: Mutex<()>,
    changed: watch::Sender<u64>,
    /// The shared link from its creation on, so that the link is stopped even if the attempt to
    /// connect fails or is given up.
    at_hand: Mutex<Weak<Link>>,
    /// Links to the same server that other callers have opened for themselves.
    further: Mutex<Vec<Weak<Link>>>,
    /// Further links that are about to be opened.
    opening: AtomicUsize,
    /// Cancelled when no new call may begin; open calls may finish.
    retired: CancellationToken,
    /// Cancelled to end all open calls and links at once: the registry is closed, or the server was
    /// disabled.
    cut: CancellationToken,
    /// The reason for `cut`, unless the registry is closed.
    off: OnceLock<CutReason>,
    /// True if the reason in `off` is already published in the state.
    is_told: AtomicBool,
    /// True once the cleared secret that caused the cut is set again.
    is_set_again: AtomicBool,
    /// True if a row of the registry shows the connection, or did. Otherwise only a mount has it.
    is_shown: AtomicBool,
    /// True while the shared link is being opened.
    is_connecting: AtomicBool,
    /// Set when the server and every link to it have ended.
    ended: watch::Sender<Option<Ended>>,
    /// True if a caller wants a server that is asleep or probed.
    is_wanted: AtomicBool,
    woken: Notify,
    sign_in: SignIn,
    pins: Pins,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The text of a cut in a mount's row, with the next step: the mount stays cut.
fn lasting(reason: &CutReason) -> String {
    match reason {
        CutReason::SwitchedOff => format!(
            "{reason}, which ended it for the rest of the run; create a new run once it is \
             enabled"
        ),
        CutReason::SecretCleared(_) => reason.to_string(),
    }
}

impl Connection {
    pub(crate) fn new(
        shared: &Shared,
        definition: Arc<ServerDefinition>,
        settings: Settings,
        before: Before<'_>,
    ) -> Self {
        let settings = settings.of(&definition);
        let mut found = match settings.awaits_consent {
            true => Found {
                error: Some(
                    ServerFailure::new(CallErrorKind::AuthUnavailable, CONSENT)
                        .telling_runs(CONSENT),
                ),
                ..Found::new(ServerState::Authenticating)
            },
            false => Found::new(ServerState::Connecting),
        };
        found.legacy = before.legacy;
        if let Some(before) = before.found {
            found.inventory = before.inventory.clone();
            found.had = before.had.clone();
            found.unmatched = before.unmatched.clone();
            found.inventory_version = before.inventory_version;
            found.first.clone_from(&before.first);
            found.changed = before.changed;
            found.pinned.clone_from(&before.pinned);
            found.log = before.log.clone();
            found.health = before.health.clone();
        }
        Self {
            id: ConnectionId(NEXT_ID.fetch_add(1, Ordering::Relaxed)),
            definition,
            settings,
            found: ArcSwap::from_pointee(found),
            changing: Mutex::new(()),
            changed: watch::Sender::new(0),
            at_hand: Mutex::default(),
            further: Mutex::default(),
            opening: AtomicUsize::new(0),
            retired: CancellationToken::new(),
            cut: shared.shutdown.child_token(),
            off: OnceLock::new(),
            is_told: AtomicBool::new(false),
            is_set_again: AtomicBool::new(false),
            is_shown: AtomicBool::new(false),
            is_connecting: AtomicBool::new(false),
            ended: watch::Sender::new(None),
            is_wanted: AtomicBool::new(false),
            woken: Notify::new(),
            sign_in: before.sign_in,
            pins: Pins::new(before.file),
        }
    }

    /// Notes that a row of the registry shows the connection.
    pub(crate) fn has_row(&self) {
        self.is_shown.store(true, Ordering::Release);
    }

    pub(crate) fn is_shown(&self) -> bool {
        self.is_shown.load(Ordering::Acquire)
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(crate) fn alias(&self) -> &Alias {
        &self.definition.alias
    }

    /// Writes to the server's log which headers are empty: by their names alone, and once, as
    /// headers are filled in only once (R-E47).
    fn note_empty_headers(&self) {
        let Target::Http(target) = &self.definition.target else { return };
        for name in target.empty_headers() {
            let found = self.found();
            found.log.append(&format!(
                "[narthex] the header `{name}` is empty: check the variables in its value"
            ));
        }
    }

    /// The state found so far.
    pub(crate) fn found(&self) -> Arc<Found> {
        self.found.load_full()
    }

    /// True if the pool may hand out the connection for this server: it is usable now or will be.
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_ending() && self.found.load().state != ServerState::Error
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.retired.is_cancelled() || self.cut.is_cancelled()
    }

    /// Ends the connection after its open calls.
    pub(crate) fn retire(&self) {
        self.retired.cancel();
        self.refuse_calls();
    }

    /// Ends the connection at once, since the server was disabled.
    pub(crate) fn cut(&self) {
        self.cut_because(CutReason::SwitchedOff);
    }

    /// Ends the connection at once, and publishes the reason to callers that have it mounted.
    pub(crate) fn cut_for(&self, shared: &Shared, reason: CutReason) {
        self.cut_because(reason);
        self.is_told.store(true, Ordering::Release);
        self.is_set_again.store(false, Ordering::Release);
        self.update(shared, |_cut_off| {});
    }

    /// Shows that the secret for which the connection was cut is set again. The connection stays
    /// cut.
    pub(crate) fn secret_set_again(&self, shared: &Shared) {
        if matches!(self.off.get(), Some(CutReason::SecretCleared(_))) {
            self.is_set_again.store(true, Ordering::Release);
            self.update(shared, |_cut_off| {});
        }
    }

    /// The present reason for the cut.
    fn cut_reason(&self) -> Option<CutReason> {
        let mut reason = self.off.get()?.clone();
        if let CutReason::SecretCleared(secret) = &mut reason {
            secret.is_set_again = self.is_set_again.load(Ordering::Acquire);
        }
        Some(reason)
    }

    fn cut_because(&self, reason: CutReason) {
        // Open calls receive the first reason.
        drop(self.off.set(reason));
        self.cut.cancel();
        self.refuse_calls();
    }

    /// Refuses new calls from now on, also those of a caller with an older snapshot: the task that
    /// ends the links may be late (E40).
    fn refuse_calls(&self) {
        let shared = self.found().link.clone();
        shared.into_iter().chain(self.further()).for_each(|link| link.retire());
    }

    /// Starts a server that is asleep. Asks for an early attempt if the server is probed, and for a
    /// new address if the server waits for a sign-in.
    pub(crate) fn wake(&self) {
        let found = self.found.load();
        let waits = found.state == ServerState::Authenticating;
        if found.is_asleep || found.is_probed || waits {
            self.is_wanted.store(true, Ordering::Release);
            self.woken.notify_one();
        }
    }

    /// Changes the found state and publishes it.
    pub(crate) fn update(&self, shared: &Shared, change: impl FnOnce(&mut Found)) {
        let _in_order = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Found::clone(&self.found.load());
        change(&mut found);
        // No later change brings the server back.
        if self.is_told.load(Ordering::Acquire)
            && let Some(reason) = self.cut_reason()
        {
            found.state = ServerState::Error;
            found.activity = None;
            found.link = None;
            (found.is_asleep, found.is_probed) = (false, false);
            found.error = Some(ServerFailure::new(reason.call_kind(), lasting(&reason)));
        }
        if found.state != ServerState::Authenticating {
            found.auth_url = None;
        }
        let found = Arc::new(found);
        self.found.store(found.clone());
        self.changed.send_modify(|seq| *seq += 1);
        shared.show(self.id, found);
    }

    /// Shows a warning of this kind with the server's row, or removes it. A new warning is logged.
    pub(crate) fn warn(&self, shared: &Shared, kind: WarningKind, message: Option<String>) {
        let is_there = self.found().warnings.iter().any(|one| one.kind == kind);
        if !is_there && message.is_none() {
            return;
        }
        if let Some(message) = message.as_ref().filter(|_| !is_there) {
            tracing::warn!(server.name = %self.alias(), "{message}");
        }
        self.update(shared, |found| {
            let mut warnings = found.warnings.to_vec();
            warnings.retain(|one| one.kind != kind);
            warnings.extend(message.map(|message| RowWarning::new(kind, message)));
            found.warnings = warnings.into();
        });
    }

    /// True if a server over HTTP may be opening a session at this moment.
    fn is_opening_session(&self) -> bool {
        let is_remote = matches!(self.definition.target, Target::Http(_));
        is_remote && self.is_connecting.load(Ordering::Acquire)
    }

    /// Waits until the server is ready or has failed, or the connection is given up.
    pub(crate) async fn settled(&self) -> Arc<Found> {
        self.once(|found| found.state.is_settled()).await
    }

    /// Waits as [`Self::settled`] does, but at most for the attempt to reconnect that is under way
    /// or due first.
    pub(crate) async fn decided(&self) -> Arc<Found> {
        self.once(Found::is_decided).await
    }

    /// Waits until the server is not asleep, or the connection is given up.
    pub(crate) async fn awake(&self) -> Arc<Found> {
        self.once(|found| {
            // The server may have been awake and fallen asleep again since the last check.
            self.wake();
            !found.is_asleep
        })
        .await
    }

    /// Asks for an early attempt to reach a probed server, and waits for the outcome.
    pub(crate) async fn probed(&self) -> Arc<Found> {
        let before = self.found().probes;
        self.wake();
        self.once(|found| !found.is_probed || found.probes != before).await
    }

    async fn once(&self, is_so: impl Fn(&Found) -> bool) -> Arc<Found> {
        let mut changed = self.changed.subscribe();
        loop {
            changed.borrow_and_update();
            let found = self.found();
            if is_so(&found) || self.is_ending() {
                // A caller that wakes on this change and then reads the row must see the same
                // state.
                drop(self.changing.lock().unwrap_or_else(PoisonError::into_inner));
                return found;
            }
            tokio::select! {
                // The sender exists as long as the connection.
                _ = changed.changed() => {}
                () = self.retired.cancelled() => {}
                () = self.cut.cancelled() => {}
            }
        }
    }

    /// Waits until the server has ended, and every link to it.
    pub(crate) async fn ended(&self) -> Ended {
        let mut ended = self.ended.subscribe();
        let known = ended.wait_for(Option::is_some).await;
        // The sender exists as long as the connection.
        known.ok().and_then(|known| *known).unwrap_or(Ended::Gracefully)
    }

    /// True if the connection was given up before it was ready.
    pub(crate) fn was_replaced(&self, found: &Found) -> bool {
        self.is_ending() && !found.state.is_settled()
    }

    fn has_at_hand(&self, link: &Arc<Link>) {
        let mut at_hand = self.at_hand.lock().unwrap_or_else(PoisonError::into_inner);
        *at_hand = Arc::downgrade(link);
    }

    fn at_hand(&self) -> Option<Arc<Link>> {
        self.at_hand.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    fn further(&self) -> Vec<Arc<Link>> {
        let mut further = self.further.lock().unwrap_or_else(PoisonError::into_inner);
        further.retain(|link| link.strong_count() > 0);
        further.iter().filter_map(Weak::upgrade).collect()
    }

    /// A place for one more process of a server that is a program. `None` if the server has as many
    /// processes as it may have, including the shared one.
    pub(crate) fn reserve(self: &Arc<Self>, most: usize) -> Option<Place> {
        self.opening.fetch_add(1, Ordering::AcqRel);
        let place = Place(self.clone());
        let is_program = matches!(self.definition.target, Target::Stdio(_));
        let count = 1 + self.further_count() + self.opening.load(Ordering::Acquire);
        (!is_program || count <= most).then_some(place)
    }

    /// Number of open links of other callers.
    pub(crate) fn further_count(&self) -> usize {
        self.further().iter().filter(|link| !link.closed().is_cancelled()).count()
    }

    /// Stores a link that a caller has opened, so that the link ends with the connection. Returns
    /// `false` if the connection is ending already.
    pub(crate) fn keep(&self, link: &Arc<Link>) -> bool {
        let mut further = self.further.lock().unwrap_or_else(PoisonError::into_inner);
        further.push(Arc::downgrade(link));
        !self.is_ending()
    }
}

/// Held while a further link is opened, until the link is stored.
pub(crate) struct Place(Arc<Connection>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.opening.fetch_sub(1, Ordering::AcqRel);
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("id", &self.id)
            .field("alias", self.alias())
            .field("state", &self.found.load().state)
            .finish_non_exhaustive()
    }
}
