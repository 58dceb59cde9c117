//! The grants of a workspace, looked up by subject and tool scope.

mod spawn;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::SystemTime,
};

use arc_swap::{ArcSwap, Guard};
use narthex_model::{
    AgentName, AgentType, ArgumentsDigest, Grant, GrantDuration, GrantId, GrantOf, GrantSubject,
    PrincipalId, RunId, SessionId, ToolScope, ToolScopeGrant,
};
use tokio::sync::watch;

pub use self::spawn::{SpawnPermit, SpawnRefusal, Spawning};

/// The actors of a run, and the run itself: subjects of grants, and facts for rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Actors {
    /// The human whose turn it is; during the turn, only this human's grants count (X-E81).
    pub user: Option<PrincipalId>,
    /// The number of the turn; a higher number is newer. 0 before the first turn.
    pub turn: u64,
    /// The run's agent.
    pub agent: Option<AgentName>,
    /// The run's session.
    pub session: Option<SessionId>,
    /// The run itself.
    pub run: Option<RunId>,
    /// The kind of subject for which the agent acts; `None` without an agent.
    pub agent_type: Option<AgentType>,
    /// True if another run created the run.
    pub is_child: bool,
}

/// The present actors of a run. Humans take turns in its session; the other actors never change.
/// Reading takes no lock.
#[derive(Debug, Default)]
pub struct Acting {
    now: ArcSwap<Actors>,
    changed: watch::Sender<()>,
}

impl Acting {
    /// Starts with these actors.
    #[must_use]
    pub fn new(actors: Actors) -> Self {
        Self { now: ArcSwap::from_pointee(actors), changed: watch::Sender::default() }
    }

    /// The present actors, for one decision.
    #[must_use]
    pub fn now(&self) -> Guard<Arc<Actors>> {
        self.now.load()
    }

    /// Gives the turn to this human, unless a turn of the same or a higher number is known. So the
    /// newest turn counts, in whatever order turns arrive.
    pub fn take_turn(&self, number: u64, user: Option<&PrincipalId>) {
        let before = self.now.rcu(|now| match now.turn < number {
            true => Arc::new(Actors { user: user.cloned(), turn: number, ..Actors::clone(now) }),
            false => now.clone(),
        });
        if before.turn < number && before.user.as_ref() != user {
            self.changed.send_replace(());
        }
    }

    /// Signals that another human has the turn, for the owner of an open stream that a grant of the
    /// earlier human allows.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}

/// The facts of a use that grants check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Use<'a> {
    pub(crate) server: &'a str,
    pub(crate) name: &'a str,
    pub(crate) arguments: Option<ArgumentsDigest>,
    pub(crate) at: SystemTime,
}

/// A grant, and its state: it counts, is in use by a call, or no longer counts.
#[derive(Debug)]
pub struct LiveGrant {
    grant: Grant,
    state: AtomicU8,
}

/// The grant counts.
const OPEN: u8 = 0;
/// A call is taking the grant, or has taken it.
const TAKEN: u8 = 1;
/// The grant does not count any more.
const OVER: u8 = 2;

/// The key of tool-scope grants. Two parts, so that a look allocates nothing.
type Key = (GrantSubject, ToolScope);

/// All grants of one workspace that may still count. Lookups take no lock.
#[derive(Debug, Default)]
pub struct Grants {
    by_key: papaya::HashMap<Key, Arc<[Arc<LiveGrant>]>>,
    by_id: papaya::HashMap<GrantId, Arc<LiveGrant>>,
    removed: watch::Sender<()>,
}

impl LiveGrant {
    fn new(grant: Grant, state: u8) -> Self {
        Self { grant, state: AtomicU8::new(state) }
    }

    /// The stored grant.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    fn is(&self, state: u8) -> bool {
        self.state.load(Ordering::Acquire) == state
    }

    /// True if a use that the grant allowed may continue: the grant is neither revoked nor out of
    /// time, and its user still has the turn.
    pub(crate) fn counts(&self, actors: &Actors, now: SystemTime) -> bool {
        !self.is(OVER) && self.has_time(now) && self.is_theirs(actors)
    }

    /// True if the grant's subject is an actor of the run.
    fn is_theirs(&self, actors: &Actors) -> bool {
        match &self.grant.subject {
            GrantSubject::User(user) => actors.user.as_ref() == Some(user),
            GrantSubject::Agent(agent) => actors.agent.as_ref() == Some(agent),
        }
    }

    /// True if a call took the grant, and it was not revoked since.
    pub(crate) fn is_taken(&self) -> bool {
        self.is(TAKEN)
    }

    /// Takes it for one call: of several at once, one succeeds.
    pub(crate) fn take(&self) -> bool {
        let taken = self.state.compare_exchange(OPEN, TAKEN, Ordering::AcqRel, Ordering::Acquire);
        taken.is_ok()
    }

    /// Gives it back untouched.
    pub(crate) fn put_back(&self) {
        // A grant that is over stays over.
        let _was = self.state.compare_exchange(TAKEN, OPEN, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Ends the grant: it counts no more.
    pub(crate) fn end(&self) {
        self.state.store(OVER, Ordering::Release);
    }

    fn is_for_run(&self, actors: &Actors) -> bool {
        match self.grant.duration {
            GrantDuration::Once | GrantDuration::Persistent => true,
            GrantDuration::Run(run) => actors.run == Some(run),
            GrantDuration::Session(session) | GrantDuration::OnceIn(session) => {
                actors.session == Some(session)
            }
        }
    }

    fn has_time(&self, now: SystemTime) -> bool {
        self.grant.expires_at.is_none_or(|end| now < end)
    }

    /// True if the grant allows this use, provided that it still counts.
    fn allows(&self, actors: &Actors, wanted: &Use<'_>) -> bool {
        let GrantOf::ToolScope(of) = &self.grant.of else { return false };
        let ToolScopeGrant { scope: _, server, tool, arguments } = of;
        self.has_time(wanted.at)
            && self.is_theirs(actors)
            && self.is_for_run(actors)
            && server.as_ref().is_none_or(|server| server.as_str() == wanted.server)
            && tool.as_ref().is_none_or(|tool| tool == wanted.name)
            && arguments.is_none_or(|arguments| wanted.arguments == Some(arguments))
    }
}

impl Grants {
    /// Adds a grant that counts. A known grant does not change.
    pub fn add(&self, grant: Grant) {
        self.put(grant, OPEN);
    }

    /// Adds a grant that a call has already taken, in this daemon or another, for later rounds of
    /// that call. A known grant becomes taken.
    pub fn add_taken(&self, grant: Grant) {
        let id = grant.id;
        self.put(grant, TAKEN);
        if let Some(live) = self.get(id) {
            // A call may have taken it already.
            let _ = live.take();
        }
    }

    fn put(&self, grant: Grant, state: u8) {
        let (id, live) = (grant.id, Arc::new(LiveGrant::new(grant, state)));
        let by_id = self.by_id.pin();
        if by_id.try_insert(id, live.clone()).is_err() {
            return;
        }
        let GrantOf::ToolScope(of) = &live.grant.of else { return };
        let key = (live.grant.subject.clone(), of.scope.clone());
        let with = |others: &[Arc<LiveGrant>]| others.iter().chain([&live]).cloned().collect();
        self.by_key.pin().update_or_insert_with(key, |others| with(others), || with(&[]));
    }

    /// Removes a grant: it no longer counts, not even for a call that is about to take it. Returns
    /// `false` if the grant is unknown.
    pub fn remove(&self, id: GrantId) -> bool {
        let by_id = self.by_id.pin();
        let Some(live) = by_id.remove(&id) else { return false };
        live.end();
        if let GrantOf::ToolScope(of) = &live.grant.of {
            let key = (live.grant.subject.clone(), of.scope.clone());
            let without = |others: &[Arc<LiveGrant>]| {
                others.iter().filter(|other| other.grant.id != id).cloned().collect::<Arc<[_]>>()
            };
            let by_key = self.by_key.pin();
            by_key.update(key.clone(), |others| without(others));
            // Another thread may have added a grant here meanwhile.
            let _removed = by_key.remove_if(&key, |_, others| others.is_empty());
        }
        self.removed.send_replace(());
        true
    }

    /// Signals the removal of a grant, for the owner of an open stream that a grant allows.
    #[must_use]
    pub fn removals(&self) -> watch::Receiver<()> {
        self.removed.subscribe()
    }

    /// The grant of an id; `None` if it is unknown.
    #[must_use]
    pub fn get(&self, id: GrantId) -> Option<Arc<LiveGrant>> {
        self.by_id.pin().get(&id).cloned()
    }

    /// The ids of all grants.
    #[must_use]
    pub fn ids(&self) -> Vec<GrantId> {
        self.by_id.pin().keys().copied().collect()
    }

    /// Number of grants.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// True if there is no grant.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The grant by which `scope` may be used: a lasting one if there is one, otherwise one for a
    /// single call.
    pub(crate) fn find(
        &self,
        actors: &Actors,
        scope: &ToolScope,
        wanted: &Use<'_>,
    ) -> Option<Arc<LiveGrant>> {
        let user = actors.user.clone().map(GrantSubject::User);
        let agent = actors.agent.clone().map(GrantSubject::Agent);
        let by_key = self.by_key.pin();
        let mut single = None;
        for subject in [user, agent].into_iter().flatten() {
            let Some(granted) = by_key.get(&(subject, scope.clone())) else { continue };
            for live in granted.iter().filter(|live| live.is(OPEN)) {
                if !live.allows(actors, wanted) {
                    continue;
                }
                if !live.grant.duration.is_single() {
                    return Some(live.clone());
                }
                single.get_or_insert_with(|| live.clone());
            }
        }
        single
    }

    /// A grant for a single call that this call has taken before, if it covers `scope` still.
    pub(crate) fn taken(
        &self,
        actors: &Actors,
        scope: &ToolScope,
        wanted: &Use<'_>,
        paid: &[GrantId],
    ) -> Option<Arc<LiveGrant>> {
        let by_id = self.by_id.pin();
        let mut mine = paid.iter().filter_map(|id| by_id.get(id));
        let covers = |live: &&Arc<LiveGrant>| {
            let is_scope = matches!(&live.grant.of, GrantOf::ToolScope(of) if of.scope == *scope);
            is_scope && live.is_taken() && live.allows(actors, wanted)
        };
        mine.find(covers).cloned()
    }
}
