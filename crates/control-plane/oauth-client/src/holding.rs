//! The credential of one server for one holder: its settings, its state, and its running task.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use narthex_model::ErrorKind;
use narthex_oauth::{
    client::{ATTEMPT_LIFE, StepUp, backoff},
    scopes::Scopes,
};
use narthex_upstream::CredentialFault;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::{
    SignInError, SignInOptions,
    belonging::belongs,
    entry::{Entry, Mode},
    fetch::Fetcher,
    grant_row::Held,
    guard::Guard,
    state::{Kind, OpenAttempt, State, Trouble},
    store::{GrantFacts, GrantKey, GrantRow},
    work::{Started, Task, Work, WorkKind},
};

/// Seconds before a failure is tried again that another try does not mend.
const FAULT_LASTS: u64 = 60;
/// The longest delay that a server may ask for, in seconds.
const DELAY_MAX: u64 = 300;
/// Number of operations whose step-ups are counted.
const OPERATIONS_MAX: usize = 256;

/// The parts that all credentials of one process share.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) options: SignInOptions,
    pub(crate) fetcher: Fetcher,
    pub(crate) changes: broadcast::Sender<GrantKey>,
    /// Grants for which a request for tokens has failed, with its facts.
    pub(crate) failures: broadcast::Sender<(GrantKey, GrantFacts)>,
    /// The signal that ends waiting tasks.
    pub(crate) stop: CancellationToken,
}

impl Parts {
    /// The time, in seconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.options.clock.now()
    }

    /// Tells subscribers that a grant was given or dropped.
    pub(crate) fn changed(&self, key: &GrantKey) {
        // Without subscribers the message goes nowhere.
        drop(self.changes.send(key.clone()));
    }

    /// Tells the owner and subscribers that a request for tokens has failed.
    pub(crate) fn failed(&self, key: &GrantKey, facts: &GrantFacts) {
        self.options.hooks.on_tokens_failed(key, facts);
        drop(self.failures.send((key.clone(), facts.clone())));
    }
}

/// The credential of one server for one holder.
pub(crate) struct Holding {
    pub(crate) parts: Arc<Parts>,
    pub(crate) key: GrantKey,
    /// The settings, which never change: a token of one server cannot come to another.
    entry: Arc<Entry>,
    /// The number of this credential among those of its key.
    pub(crate) number: u32,
    state: ArcSwap<State>,
    work: Work,
    step_ups: Mutex<BTreeMap<String, StepUp>>,
    has_keep_alive: AtomicBool,
    sign_outs: AtomicU64,
}

/// Shows the key alone.
impl fmt::Debug for Holding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holding").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Holding {
    pub(crate) fn new(parts: Arc<Parts>, key: GrantKey, entry: Entry, number: u32) -> Self {
        Self {
            parts,
            key,
            entry: Arc::new(entry),
            number,
            state: ArcSwap::default(),
            work: Work::default(),
            step_ups: Mutex::default(),
            has_keep_alive: AtomicBool::new(false),
            sign_outs: AtomicU64::new(0),
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.parts.now()
    }

    pub(crate) fn entry(&self) -> Arc<Entry> {
        Arc::clone(&self.entry)
    }

    pub(crate) fn state(&self) -> Arc<State> {
        self.state.load_full()
    }

    /// Reads the state without counting a reference, for each request.
    pub(crate) fn with_state<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.state.load())
    }

    /// Changes the state. The change may be repeated.
    pub(crate) fn update(&self, change: impl Fn(&mut State)) {
        drop(self.state.rcu(|state| {
            let mut next = State::clone(state);
            change(&mut next);
            next
        }));
    }

    /// The owner of leases: two credentials of one grant never renew it at once.
    pub(crate) fn owner(&self) -> String {
        let owner = &self.parts.options.owner;
        match self.number {
            0 => owner.clone(),
            number => format!("{owner}#{number}"),
        }
    }

    /// The property that decides about requests.
    pub(crate) fn kind(&self) -> Kind {
        match &self.entry.mode {
            Mode::Person(_) => Kind::Person,
            Mode::Faulty(_) => Kind::Faulty,
            Mode::Machine(machine) if machine.token_url.is_some() => Kind::EagerMachine,
            Mode::Machine(_) => Kind::LazyMachine,
            Mode::Exchange(_) if self.is_of_person() => Kind::Person,
            // A request without a token is no human's.
            Mode::Exchange(_) if self.key.user.is_some() => Kind::EagerMachine,
            Mode::Exchange(_) => Kind::LazyMachine,
        }
    }

    /// True if the tokens come from an exchange.
    pub(crate) fn is_exchanged(&self) -> bool {
        matches!(self.entry.mode, Mode::Exchange(_))
    }

    /// True if a person signs in now in place of the exchange.
    fn is_of_person(&self) -> bool {
        let now = self.now();
        self.entry.falls_back() && self.with_state(|state| state.is_of_person(now))
    }

    /// Has a person sign in for a while in place of the exchange, which was refused for good.
    pub(crate) fn fall_back(&self) {
        let until = self.now().saturating_add(ATTEMPT_LIFE);
        self.update(|state| {
            state.fallback_until = Some(until);
            state.trouble = None;
        });
    }

    pub(crate) async fn guard(&self) -> Guard {
        Guard::of(&self.entry.url, &self.entry.chosen()).await
    }

    /// Starts a task on the shared runtime, or gives the one that runs.
    pub(crate) fn start(&self, kind: WorkKind, task: Task) -> Started {
        self.work.start(&self.parts.options, kind, task)
    }

    /// True if the store was read, or a task is reading it.
    pub(crate) fn may_have_read(&self) -> bool {
        let runs = self.work.running().is_some();
        runs || self.with_state(|state| state.read_at.is_some() || state.held.is_some())
    }

    /// Waits for the end of the running task, if there is one.
    pub(crate) async fn rest(&self) {
        if let Some(running) = self.work.running() {
            drop(running.wait().await);
        }
    }

    /// Counts a consent to more scopes for an operation; the scopes to ask for, or `None` after too
    /// many (C22).
    pub(crate) fn step_up(
        &self,
        operation: &str,
        requested: &Scopes,
        challenged: &Scopes,
    ) -> Option<Scopes> {
        let mut step_ups = self.step_ups.lock().unwrap_or_else(PoisonError::into_inner);
        if step_ups.len() >= OPERATIONS_MAX && !step_ups.contains_key(operation) {
            step_ups.clear();
        }
        step_ups.entry(operation.to_owned()).or_default().next(requested, challenged)
    }

    /// Forgets the counted consents, as an operator starts a sign-in.
    pub(crate) fn clear_step_ups(&self) {
        self.step_ups.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// True the first time.
    pub(crate) fn begins_keep_alive(&self) -> bool {
        !self.has_keep_alive.swap(true, Ordering::Relaxed)
    }

    /// Takes over a row of the store as the grant. Tells subscribers if the server was waiting for
    /// a person, or could not be called: a renewal in time is no change.
    ///
    /// # Errors
    /// When the row cannot be read.
    pub(crate) fn adopt(&self, row: &GrantRow) -> Result<(), SignInError> {
        let now = self.now();
        let was_waiting = self.with_state(|state| {
            let is_usable = state.usable(now).is_some();
            !is_usable && (state.attempt.is_some() || state.trouble.is_some())
        });
        self.take(row)?;
        if was_waiting {
            self.parts.changed(&self.key);
        }
        Ok(())
    }

    /// Takes over a row that a person's consent has given: no attempt is open any more. Tells the
    /// owner and subscribers.
    ///
    /// # Errors
    /// When the row cannot be read.
    pub(crate) fn given(&self, row: &GrantRow) -> Result<(), SignInError> {
        let now = self.now();
        self.take(row)?;
        self.update(|state| {
            state.attempt = None;
            state.read_at = Some(now);
            state.wanted = Scopes::default();
        });
        self.parts.options.hooks.on_tokens_changed(&self.key, Some(&row.facts));
        self.parts.changed(&self.key);
        Ok(())
    }

    /// Takes over a row, if it is one of this server: a token of another one is forgotten.
    fn take(&self, row: &GrantRow) -> Result<(), SignInError> {
        let held = Arc::new(Held::of(row, &self.entry.alias)?);
        if !belongs(&held, &self.entry) {
            self.forget();
            return Ok(());
        }
        self.update(|state| {
            // An open attempt for further scopes stays open.
            let requested = &held.value.grant.requested;
            let is_open = |open: &Arc<OpenAttempt>| !requested.contains_all(&open.scopes);
            state.attempt = state.attempt.take().filter(is_open);
            state.facts = held.facts.clone();
            state.held = Some(Arc::clone(&held));
            state.refused = None;
            state.trouble = None;
            state.unsaved = None;
            state.reopens_at = None;
            state.fallback_until = None;
        });
        Ok(())
    }

    /// Shows the facts of a row whose grant is known already: another process may have failed to
    /// renew it.
    pub(crate) fn see_facts(&self, row: &GrantRow) {
        self.update(|state| state.facts = row.facts.clone());
    }

    /// Forgets the grant, whose row is gone. Tells the owner and subscribers.
    pub(crate) fn forget(&self) {
        if self.drop_held() {
            self.parts.options.hooks.on_tokens_changed(&self.key, None);
            self.parts.changed(&self.key);
        }
    }

    /// Forgets the grant of this generation, whose row is gone. Tells the owner and subscribers.
    pub(crate) fn forget_generation(&self, generation: u64) {
        let is_it = self.with_state(|state| {
            state.held.as_ref().is_some_and(|held| held.generation == generation)
        });
        if is_it {
            self.forget();
        }
    }

    /// Forgets the grant; true if there was one.
    pub(crate) fn drop_held(&self) -> bool {
        let had = self.with_state(|state| state.held.is_some());
        self.update(|state| {
            if state.held.take().is_some() {
                // The exchange comes first again.
                state.fallback_until = None;
            }
            state.refused = None;
            state.unsaved = None;
            state.facts.expires_at = None;
            state.facts.can_renew = false;
        });
        had
    }

    /// Number of sign-outs so far.
    pub(crate) fn sign_outs(&self) -> u64 {
        self.sign_outs.load(Ordering::Acquire)
    }

    /// Forgets the grant and the open attempt, which the caller has ended.
    pub(crate) fn signed_out(&self) {
        let now = self.now();
        self.sign_outs.fetch_add(1, Ordering::AcqRel);
        self.drop_held();
        self.update(|state| {
            state.attempt = None;
            state.reopens_at = None;
            state.trouble = None;
            state.read_at = Some(now);
        });
    }

    /// Forgets the open attempt of this hash, which gives no tokens in this process. Another one
    /// may be opened from this time on.
    pub(crate) fn attempt_ended(&self, state_hash: &str, reopens_at: u64) {
        self.update(|state| {
            let is_it = |open: &Arc<OpenAttempt>| open.state_hash == state_hash;
            if state.attempt.as_ref().is_some_and(is_it) {
                state.attempt = None;
                state.reopens_at = Some(reopens_at);
            }
        });
    }

    /// Notes a failure, and the time of the next try. The first failure in a row allows another try
    /// at once (E98).
    pub(crate) fn note_trouble(&self, error: &SignInError, fault: &CredentialFault) {
        let now = self.now();
        let is_passing = matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Timeout);
        let asked = error.retry_after().map_or(0, |delay| delay.as_secs().min(DELAY_MAX));
        self.update(|state| {
            let failures = state.failures().saturating_add(1);
            let own = match failures {
                1 => Duration::ZERO,
                more => backoff(more - 1),
            };
            let delay = if is_passing { own.as_secs().max(asked) } else { FAULT_LASTS };
            let until = now.saturating_add(delay);
            state.trouble = Some(Trouble { fault: fault.clone(), until, failures });
        });
    }
}

/// The reason for which requests cannot be sent.
pub(crate) fn fault_of(error: &SignInError) -> CredentialFault {
    let why = error.to_string();
    match error.kind() {
        ErrorKind::Invalid | ErrorKind::Bug | ErrorKind::NotFound => {
            CredentialFault::Unusable { why }
        }
        ErrorKind::Unauthenticated | ErrorKind::Denied => {
            let address = error.page().map(Url::to_string);
            CredentialFault::NeedsConsent { why, address, scopes: Vec::new() }
        }
        ErrorKind::Conflict
        | ErrorKind::Exhausted
        | ErrorKind::Unavailable
        | ErrorKind::Timeout => {
            CredentialFault::Unavailable { why, retry_after: error.retry_after() }
        }
    }
}
