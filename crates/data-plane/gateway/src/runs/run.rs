//! Runs and their views.

mod arrivals;
mod contents;
mod ends;
mod granted;
mod own;
mod profile;
mod rows;
mod table;
mod usage;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::SystemTime,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use narthex_audit::ToolSet;
use narthex_model::{Alias, BuiltInTools, Reader, RunId, RunToken, Secret, WorkspaceId};
use narthex_policy::{Authority, RunPolicy, Unused};
use narthex_registry::{
    FirstLists, FirstVariants, HeldBack, KeptFurther, MountFault, MountSet, Registry, ServerKey,
    ServerRow, Snapshot,
};
use narthex_traffic::{Meter, MeterKey, MeterKind, RunMeters};
use narthex_upstream::Aside;
use tokio_util::sync::CancellationToken;

use self::{
    contents::RunContents,
    ends::CallEnds,
    own::{Changed, OwnServers},
};
pub use self::{own::Changes, table::RunTable};
pub(crate) use self::{
    rows::{RunRow, RunRows},
    usage::{Act, Held, Usage},
};
use crate::{built_in::Offered, links::bridge::Bridges, view::View};

/// A run as the data plane sees it: its permissions never change.
#[derive(Debug)]
pub struct RunView {
    /// The run's id.
    pub id: RunId,
    /// The run's workspace.
    pub workspace: WorkspaceId,
    /// The servers and tools that the run may use.
    pub policy: RunPolicy,
    /// The run's principals and grants.
    pub authority: Authority,
    /// The time at which the run began.
    pub began: SystemTime,
    token_hash: [u8; 32],
    reader: Reader,
    /// True if the run sees the live configuration beside the daemon's own run.
    is_beside: bool,
    own: OwnServers,
    held_back: HeldBack,
    /// The aliases of the built-in server besides its own name.
    built_in: BTreeSet<Alias>,
    /// The run's tools of the built-in server. `None` stands for the tools of a caller that sees
    /// the whole configuration.
    built_in_tools: Option<BuiltInTools>,
    /// The built-in server's tools for this run, once they are made.
    offered: OnceLock<Arc<Offered>>,
    /// Counts the run's calls.
    pub(crate) meters: RunMeters,
    /// Ends the run's streams and open calls.
    pub(crate) ended: CancellationToken,
    call_ends: CallEnds,
    /// The tools that the run sees, as last recorded (E20).
    pub(crate) tools: ArcSwapOption<ToolSet>,
    /// The view that the run saw last, while the run is used.
    pub(crate) view: ArcSwapOption<LastView>,
    pub(crate) usage: Usage,
    /// The parts that are needed to record the contents of the run's calls.
    pub(crate) contents: RunContents,
    /// The run's links to legacy servers for modern clients that can be asked questions.
    pub(crate) bridges: Bridges,
    /// The grants that the run has used up for calls that certainly no server has seen.
    pub(crate) unused: Unused,
    /// Reads the run's large messages, one at a time.
    pub(crate) aside: Aside,
    /// The missing servers that were last logged.
    missing: Mutex<BTreeSet<Alias>>,
    /// The servers of which a list has shown the run an item.
    shown: ArcSwap<BTreeSet<Alias>>,
}

/// A view, and the snapshot of the run that shows it.
#[derive(Debug)]
pub(crate) struct LastView {
    pub(crate) seq: u64,
    pub(crate) view: Arc<View>,
}

impl RunView {
    /// The daemon's own run, which `token` opens, for clients of the operator: these may read the
    /// reason why a server does not work. Stores only the token's hash.
    #[must_use]
    pub fn new(token: &RunToken, policy: RunPolicy) -> Self {
        Self { reader: Reader::Operator, ..Self::of(token.run_id(), token.hash(), policy) }
    }

    fn of(id: RunId, token_hash: [u8; 32], policy: RunPolicy) -> Self {
        Self {
            id,
            workspace: WorkspaceId::default(),
            policy,
            authority: Authority::default(),
            began: SystemTime::now(),
            own: OwnServers::new(MountSet::default()),
            held_back: HeldBack::default(),
            built_in: BTreeSet::new(),
            built_in_tools: None,
            offered: OnceLock::new(),
            meters: RunMeters::default(),
            ended: CancellationToken::new(),
            call_ends: CallEnds::default(),
            tools: ArcSwapOption::empty(),
            token_hash,
            reader: Reader::Run,
            is_beside: false,
            view: ArcSwapOption::empty(),
            usage: Usage::default(),
            contents: RunContents::default(),
            bridges: Bridges::default(),
            unused: Unused::default(),
            aside: Aside::default(),
            missing: Mutex::default(),
            shown: ArcSwap::default(),
        }
    }

    /// A run in any workspace, with servers of its own. The run has these servers whatever `policy`
    /// allows, and no other run sees them (E7). They are released when the run ends or is dropped.
    #[must_use]
    pub fn with_servers(
        token: &RunToken,
        workspace: WorkspaceId,
        policy: RunPolicy,
        servers: MountSet,
    ) -> Self {
        Self::kept(token.run_id(), token.hash(), workspace, policy, servers)
    }

    /// As [`Self::with_servers`], for a run that is restarted by its stored id and the hash of its
    /// token.
    #[must_use]
    pub fn kept(
        id: RunId,
        token_hash: [u8; 32],
        workspace: WorkspaceId,
        policy: RunPolicy,
        servers: MountSet,
    ) -> Self {
        let own = OwnServers::new(servers);
        let meters = RunMeters { servers: own.aliases().map(lone).collect(), ..<_>::default() };
        let policy = with_own(policy, &own);
        Self { own, workspace, meters, ..Self::of(id, token_hash, policy) }
    }

    /// The run with these principals and grants.
    #[must_use]
    pub fn with_authority(self, authority: Authority) -> Self {
        Self { authority, ..self }
    }

    /// The run with further aliases for the built-in server.
    #[must_use]
    pub fn with_built_in(self, built_in: BTreeSet<Alias>) -> Self {
        Self { built_in, ..self }
    }

    /// The run with these tools of the built-in server (D29).
    #[must_use]
    pub fn with_built_in_tools(self, tools: BuiltInTools) -> Self {
        Self { built_in_tools: Some(tools), ..self }
    }

    /// The run with servers that failed to start: calls to them get the reason.
    #[must_use]
    pub fn with_failed(self, faults: Vec<MountFault>) -> Self {
        let own = self.own.with_failed(faults);
        let policy = with_own(self.policy, &own);
        Self { own, policy, ..self }
    }

    /// The run with the secrets that it was created with. The record of its calls has no such
    /// secret. Secrets of its servers are known without this.
    #[must_use]
    pub fn with_secrets(self, secrets: Vec<Secret>) -> Self {
        Self { contents: RunContents::with_secrets(secrets), ..self }
    }

    /// The run with its own servers frozen to their first lists (D10).
    #[must_use]
    pub fn frozen_to(self, first: FirstLists) -> Self {
        Self { own: self.own.with_first(first), ..self }
    }

    /// Notes that a list shows the run the items of these servers. These items are then not absent
    /// for it when the servers are disabled or fail (D30).
    pub(crate) fn note_shown(&self, snapshot: &Snapshot) {
        let has_any = |row: &&Arc<ServerRow>| !row.is_overridden && !row.inventory.is_empty();
        let rows = snapshot.servers.iter().filter(has_any);
        let aliases = rows.filter_map(|row| row.alias.as_ref());
        let attached = aliases.filter(|alias| self.policy.is_attached(alias));
        let shown = self.shown.load();
        let new: Vec<_> = attached.filter(|alias| !shown.contains(*alias)).cloned().collect();
        if !new.is_empty() {
            self.shown.rcu(|shown| {
                let mut more = BTreeSet::clone(shown);
                more.extend(new.iter().cloned());
                more
            });
        }
    }

    /// True if a list has shown the run an item of this server.
    pub(crate) fn was_shown(&self, alias: &Alias) -> bool {
        self.shown.load().contains(alias)
    }

    /// True if a server's lists are frozen in this run.
    pub(crate) fn is_frozen(&self, alias: &Alias) -> bool {
        self.own.is_frozen(alias)
    }

    /// The items that the run's servers of the catalog define otherwise now than in their first
    /// lists, each with all that the server lists: see [`narthex_registry::FirstList::changed`].
    pub(crate) fn changed(&self) -> impl Iterator<Item = Changed> {
        let changed = self.own.changed().into_iter();
        changed.filter(|(alias, ..)| self.held_back.server(alias).is_some())
    }

    /// True if models may get this text of a server about itself, on any link.
    pub(crate) fn may_be_told(&self, alias: &Alias, text: &str) -> bool {
        self.own.may_be_told(alias, text)
    }

    /// The first lists of a server on links besides the shared ones; `None` if these are not
    /// frozen.
    pub(crate) fn variants(&self, alias: &Alias) -> Option<&FirstVariants> {
        self.own.variants(alias)
    }

    /// The run with the definitions of its servers that are under review.
    #[must_use]
    pub fn with_held_back(self, held_back: HeldBack) -> Self {
        Self { held_back, ..self }
    }

    /// The definitions of the run's servers that are under review.
    #[must_use]
    pub fn held_back(&self) -> &HeldBack {
        &self.held_back
    }

    /// The first lists of the run's servers on links besides the shared ones, so far, to be stored.
    #[must_use]
    pub fn further_lists(&self) -> KeptFurther {
        self.own.further_lists()
    }

    /// The run with the stored first lists of its servers on links besides the shared ones.
    #[must_use]
    pub fn with_further_lists(self, kept: KeptFurther) -> Self {
        Self { own: self.own.with_further(kept), ..self }
    }

    /// True if an alias means the same server in another run of the workspace: the same server of
    /// the catalog, or the same shared server.
    #[must_use]
    pub fn shares_server(&self, alias: &Alias, other: &Self) -> bool {
        let attached = [self, other].iter().all(|run| run.policy.is_attached(alias));
        attached
            && self.workspace == other.workspace
            && match (self.own.catalog(alias), other.own.catalog(alias)) {
                (Some(own), Some(theirs)) => own == theirs,
                _ => self.key(alias) == other.key(alias),
            }
    }

    /// The run's alias of the built-in server, if this text is one (X-M1).
    #[must_use]
    pub fn built_in(&self, alias: &str) -> Option<Alias> {
        match self.built_in.get(alias) {
            Some(alias) => Some(alias.clone()),
            None => Some(Alias::built_in()).filter(|own| own.as_str() == alias),
        }
    }

    /// True if an alias means the built-in server.
    #[must_use]
    pub fn is_built_in(&self, alias: &Alias) -> bool {
        alias.is_built_in() || self.built_in.contains(alias)
    }

    /// The aliases of the built-in server besides its own name.
    pub(crate) fn built_in_names(&self) -> impl Iterator<Item = &Alias> {
        self.built_in.iter()
    }

    /// The run's tools of the built-in server, if they were named.
    pub(crate) fn built_in_tools(&self) -> Option<&BuiltInTools> {
        self.built_in_tools.as_ref()
    }

    /// The run's tools of the built-in server, which `make` makes once.
    pub(crate) fn offered(&self, make: impl FnOnce() -> Arc<Offered>) -> &Arc<Offered> {
        self.offered.get_or_init(make)
    }

    pub(crate) fn built_in_aliases(&self) -> impl Iterator<Item = Alias> {
        std::iter::once(Alias::built_in()).chain(self.built_in.iter().cloned())
    }

    /// The run with meters for its calls (O100). An own server without a meter here is counted in
    /// this run alone.
    #[must_use]
    pub fn with_meters(mut self, meters: RunMeters) -> Self {
        let RunMeters { workspace, agent, servers } = meters;
        self.meters.workspace = workspace;
        self.meters.agent = agent;
        for (alias, meter) in servers {
            let own = self.meters.servers.iter_mut().find(|(own, _)| *own == alias);
            if let Some((_, own)) = own {
                *own = meter;
            }
        }
        self
    }

    /// The aliases of the run's own servers.
    pub fn own_servers(&self) -> impl Iterator<Item = &Alias> {
        self.own.aliases()
    }

    /// The token that ends open calls of modern clients on this thread.
    pub(crate) fn calls_end(&self) -> &CancellationToken {
        self.call_ends.here(&self.ended)
    }

    /// True if the run has ended: no call begins in it any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Resolves when the run has ended.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// The tools that the run sees at the aggregated endpoint, as last recorded (E20). `None`
    /// before the first record.
    #[must_use]
    pub fn tools(&self) -> Option<Arc<ToolSet>> {
        self.tools.load_full()
    }

    /// True if the run has a view and a task that updates the view: from its first use until it was
    /// unused for a while.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.usage.is_watched()
    }

    /// The time of the run's last call, as far as this process knows: `now`, if a call is open.
    /// Pings, sessions and streams are no calls.
    #[must_use]
    pub fn last_act(&self, now: SystemTime) -> Option<SystemTime> {
        self.usage.last_act(now)
    }

    /// True if the run sees exactly the shared servers. All such runs share their views.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.policy == RunPolicy::AllAttached && self.own.is_empty()
    }

    /// The reader of failures of the run's servers: the operator for the daemon's own run, an agent
    /// for any other (D28).
    #[must_use]
    pub fn reader(&self) -> Reader {
        self.reader
    }

    /// The server that an alias means in this run. An own server of the run keeps its alias also if
    /// the shared configuration begins to use it.
    pub(crate) fn key(&self, alias: &Alias) -> ServerKey {
        self.own.key(alias)
    }

    pub(crate) fn has_own(&self) -> bool {
        !self.own.is_empty()
    }

    /// True if no other run can reach a server over the same connection.
    pub(crate) fn is_alone_at(&self, alias: &Alias) -> bool {
        self.own.is_alone(alias)
    }

    /// True if an alias means a server that the run has for itself.
    pub(crate) fn owns(&self, alias: &Alias) -> bool {
        self.own.aliases().any(|own| own == alias)
    }

    pub(crate) fn own_keys(&self) -> impl Iterator<Item = ServerKey> {
        self.own.keys()
    }

    pub(crate) fn release(&self) {
        self.own.release();
    }

    /// The servers that the run has, and no others.
    pub(crate) fn rows(&self, registry: &Registry) -> RunRows {
        RunRows::new(match self.is_plain() {
            true => registry.snapshot(),
            false => self.own.snapshot(registry, &self.policy),
        })
    }

    /// As [`Self::rows`], for a caller that reads the rows once; the snapshot is not stored.
    pub(crate) fn rows_once(&self, registry: &Registry) -> RunRows {
        RunRows::new(match self.is_plain() {
            true => registry.snapshot(),
            false => self.own.snapshot_once(registry, &self.policy),
        })
    }

    /// Forgets the parts that are made anew when the run is used.
    pub(crate) fn forget_seen(&self) {
        self.view.store(None);
        self.own.forget_joined();
        self.contents.forget_known();
    }

    pub(crate) fn changes(&self, registry: &Registry) -> Changes {
        self.own.changes(registry, &self.policy)
    }

    /// Logs the servers that the run names and cannot have: once for all of them, and again only
    /// when others are missing (E90). A server that is still starting is not missing yet, and a
    /// server without tools is never missing (E93).
    pub(crate) fn tell_missing(&self, snapshot: &Snapshot) {
        let RunPolicy::Attached(named) = &self.policy else { return };
        let is_missing = |alias: &&Alias| {
            let row = snapshot.get(alias.as_str());
            row.is_none_or(|row| row.state.is_settled() && !row.is_ready())
        };
        let named = named.iter().filter(|alias| !self.is_built_in(alias));
        let missing: BTreeSet<Alias> = named.filter(is_missing).cloned().collect();
        let mut told = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if !missing.is_empty() && missing != *told {
            let names = missing.iter().map(Alias::as_str).collect::<Vec<_>>().join(", ");
            tracing::warn!(run.id = %self.id, "servers that this run names do not exist: {names}");
        }
        *told = missing;
    }
}

/// A run has its own servers whatever its policy names.
fn with_own(policy: RunPolicy, own: &OwnServers) -> RunPolicy {
    match policy {
        policy @ (RunPolicy::AllAttached | RunPolicy::Profile(_)) => policy,
        RunPolicy::Attached(mut named) => {
            named.extend(own.aliases().cloned());
            RunPolicy::Attached(named)
        }
    }
}

/// A meter for a server that no other run has.
fn lone(alias: &Alias) -> (Alias, Arc<Meter>) {
    let (workspace, kind) = (WorkspaceId::default(), MeterKind::LocalServer);
    let key = MeterKey { workspace, kind, name: alias.as_str().into() };
    (alias.clone(), Arc::new(Meter::new(key)))
}
