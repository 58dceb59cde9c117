//! The registry's state at one moment: immutable, replaced as a whole.

use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
    sync::{Arc, Weak},
    time::SystemTime,
};

use narthex_model::{
    Alias, Provenance, RowWarning, ServerDefinition, ServerFailure, ServerState, UnmatchedGate,
    WarningKind,
};
use narthex_supervisor::LogRing;
use narthex_upstream::{Dialect, Health, Inventory, InventoryEntry, Link, ServerFacts};
use narthex_wire::Template;
use tokio::sync::Mutex;

use crate::{LegacySupport, baseline_diff::Baseline, connection::Connection, pins::PinnedSaid};

/// The registry's state at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Rises with every change of any row.
    pub seq: u64,
    /// The rows in the configuration's order.
    pub servers: Vec<Arc<ServerRow>>,
    index: Arc<HashMap<Alias, usize>>,
    is_settled: bool,
    /// True in the last snapshot.
    pub(crate) is_last: bool,
}

/// The state of one server at one moment.
#[derive(Debug, Clone)]
pub struct ServerRow {
    /// The name as configured; a valid alias unless the entry is faulty.
    pub name: String,
    /// The alias; `None` if the name is no valid alias.
    pub alias: Option<Alias>,
    /// The layer of the server's entry (E139).
    pub provenance: Provenance,
    /// The file of the server's entry.
    pub file: Option<Arc<Path>>,
    /// True if an entry of another layer counts instead (E140): shown, never started.
    pub is_overridden: bool,
    /// The configuration; `None` if the entry is faulty.
    pub definition: Option<Arc<ServerDefinition>>,
    /// The state of the server.
    pub found: Arc<Found>,
    /// The connection of the row; each change of the configuration makes a new one. `None` for a
    /// server that is not started at all.
    pub connection: Option<ConnectionId>,
    /// Held while the lists are read because of a call.
    pub(crate) listing: Arc<Mutex<()>>,
    /// The connection itself, if the row belongs to a mount, and not to the registry.
    pub(crate) mounted: Option<Weak<Connection>>,
}

/// Identifies one connection of a registry. No later connection gets the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub(crate) u64);

/// The state of one connection.
#[derive(Debug, Clone)]
pub struct Found {
    /// State, one of five (D21).
    pub state: ServerState,
    /// The present activity of a `connecting` server, for people.
    pub activity: Option<&'static str>,
    /// Reason for `error` or `authenticating`.
    pub error: Option<ServerFailure>,
    /// The address at which a person signs in to the server, if one is open: only in
    /// `authenticating`.
    pub auth_url: Option<String>,
    /// The shared link: only in `ready`, and not while the server is asleep.
    pub link: Option<Arc<Link>>,
    /// The server's last description of itself.
    pub facts: Option<Arc<ServerFacts>>,
    /// True if the server was stopped because no caller used it, and starts with the next call.
    pub is_asleep: bool,
    /// Inventory of the server. It is stored while the server reconnects, but only ready servers
    /// are listed (E72).
    pub inventory: Arc<Inventory>,
    /// Last inventory of a server that is now disabled, or whose entry has a fault. None of it
    /// is listed, but clients may still know it.
    pub had: Arc<Inventory>,
    /// Rises when the inventory changes.
    pub inventory_version: u64,
    /// Definitions and instructions from the first listing of the server in this process.
    pub first: Option<Arc<Baseline>>,
    /// Number of first definitions that differ now, under the same names.
    pub changed: usize,
    /// Gates of the connection's definition without a match in its lists, as logged.
    pub unmatched: Arc<[UnmatchedGate]>,
    /// Faults of the connection that leave it working, at most one of each kind.
    pub warnings: Arc<[RowWarning]>,
    /// Definitions and instructions of the server at the last review, if its definitions are
    /// pinned. The inventory and the facts here are then only the part that callers may see.
    pub pinned: Option<Arc<PinnedSaid>>,
    /// The dialect that the server understands.
    pub dialect: Option<Dialect>,
    /// Knowledge about a server of revision 2026-07-28: does it also answer `initialize`?
    pub legacy: Arc<LegacySupport>,
    /// Number of attempts to reconnect since the loss; 0 once the server is back.
    pub attempt: u32,
    /// True if the last attempt to reconnect has failed, and the next one is not due yet.
    pub is_backing_off: bool,
    /// Number of losses, and the reason for the last one.
    pub losses: u64,
    pub loss: Option<Arc<str>>,
    /// Number of returns after a loss, and the number of the last successful attempt, from 1.
    pub reconnects: u64,
    pub reconnected_by: u32,
    /// Number of kills of a server that did not end when asked to.
    pub forced_kills: u64,
    /// Standard error of the server's processes, over all starts and changes of its configuration
    /// (R-E17), and narthex's notes about them.
    pub log: LogRing,
    /// Time when the server's lists were last read.
    pub last_check: Option<SystemTime>,
    /// True if narthex probes a server in `error`, so that it can come back without a person.
    pub is_probed: bool,
    /// Number of failed attempts to reach a server in `error`.
    pub probes: u64,
    /// Results of the last calls and checks. They change without a new snapshot.
    pub health: Arc<Health>,
}

impl Found {
    /// The state of a server before any contact.
    pub(crate) fn new(state: ServerState) -> Self {
        Self {
            state,
            activity: None,
            error: None,
            auth_url: None,
            link: None,
            facts: None,
            is_asleep: false,
            inventory: Arc::default(),
            had: Arc::default(),
            inventory_version: 0,
            first: None,
            changed: 0,
            unmatched: Arc::default(),
            warnings: Arc::default(),
            pinned: None,
            dialect: None,
            legacy: Arc::default(),
            attempt: 0,
            is_backing_off: false,
            losses: 0,
            loss: None,
            reconnects: 0,
            reconnected_by: 0,
            forced_kills: 0,
            log: LogRing::default(),
            last_check: None,
            is_probed: false,
            probes: 0,
            health: Arc::default(),
        }
    }
}

impl Found {
    /// True if a call need not wait for the server: it is ready, it has failed, or its last attempt
    /// to reconnect has failed and the next one is not due yet.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.state.is_settled() || self.is_backing_off
    }

    /// The reason why the server cannot be used now, without the remark on narthex's next step.
    #[must_use]
    pub fn cause(&self) -> Option<ServerFailure> {
        let failure = self.health.last_failure();
        let known = failure.map(|failure| failure.what.clone());
        match (&self.error, known) {
            // Narthex's remark on its own action follows the cause.
            (Some(error), Some(known))
                if self.is_probed && error.operator_cause().starts_with(known.operator_cause()) =>
            {
                Some(known)
            }
            (Some(error), _) => Some(error.clone()),
            (None, known) => known.filter(|_| self.is_backing_off),
        }
    }
}

impl std::ops::Deref for ServerRow {
    type Target = Found;

    fn deref(&self) -> &Found {
        &self.found
    }
}

impl Default for Snapshot {
    fn default() -> Self {
        Self::new(0, Vec::new())
    }
}

impl Snapshot {
    pub(crate) fn new(seq: u64, servers: Vec<Arc<ServerRow>>) -> Self {
        let index = servers
            .iter()
            .enumerate()
            .filter(|(_, row)| !row.is_overridden)
            .filter_map(|(index, row)| Some((row.alias.clone()?, index)))
            .collect();
        let is_settled = is_settled(&servers);
        Self { seq, servers, index: Arc::new(index), is_settled, is_last: false }
    }

    /// The next snapshot, in which the rows are at the same places.
    pub(crate) fn with_rows(&self, servers: Vec<Arc<ServerRow>>) -> Self {
        let is_settled = is_settled(&servers);
        let (seq, index) = (self.seq + 1, self.index.clone());
        Self { seq, servers, index, is_settled, is_last: false }
    }

    /// Rows of a snapshot followed by rows of mounts, whose aliases replace those of the snapshot:
    /// the view of an owner with its own servers (E7). `seq` is the owner's.
    #[must_use]
    pub fn joined(seq: u64, shared: Vec<Arc<ServerRow>>, own: &[Arc<ServerRow>]) -> Self {
        let is_free = |row: &Arc<ServerRow>| own.iter().all(|own| own.alias != row.alias);
        let mut servers = shared;
        servers.retain(is_free);
        servers.extend_from_slice(own);
        Self::new(seq, servers)
    }

    /// The row of an alias; `None` if there is none.
    #[must_use]
    pub fn get(&self, alias: &str) -> Option<&Arc<ServerRow>> {
        self.index.get(alias).map(|index| &self.servers[*index])
    }

    /// True if no server is still starting.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.is_settled
    }
}

fn is_settled(servers: &[Arc<ServerRow>]) -> bool {
    servers.iter().all(|row| row.state.is_settled())
}

impl ServerRow {
    /// The row of a server that could not be mounted, with the reason.
    #[must_use]
    pub fn failed(alias: Alias, error: ServerFailure) -> Self {
        let found = Found { error: Some(error), ..Found::new(ServerState::Error) };
        Self { found: Arc::new(found), ..Self::bare(alias) }
    }

    /// A row without a configuration and a connection.
    fn bare(alias: Alias) -> Self {
        Self {
            name: alias.as_str().to_owned(),
            alias: Some(alias),
            provenance: Provenance::Programmatic,
            file: None,
            is_overridden: false,
            definition: None,
            found: Arc::new(Found::new(ServerState::Connecting)),
            connection: None,
            listing: Arc::default(),
            mounted: None,
        }
    }

    /// The row of a part of narthex that has tools like a server.
    #[must_use]
    pub fn built_in(alias: Alias, inventory: Arc<Inventory>) -> Self {
        let found = Found { inventory, ..Found::new(ServerState::Ready) };
        Self { found: Arc::new(found), ..Self::bare(alias) }
    }

    /// The row for a viewer that sees only `inventory`. Without `tells_models`, the server's
    /// instructions are left out.
    #[must_use]
    pub fn seen_as(&self, inventory: Arc<Inventory>, tells_models: bool) -> Self {
        let mut found = Found { inventory, ..(*self.found).clone() };
        if !tells_models {
            let silent = |facts: Arc<ServerFacts>| Arc::new(facts.without_instructions());
            found.facts = found.facts.map(silent);
        }
        Self { found: Arc::new(found), ..self.clone() }
    }

    /// This row for a run for which the server's lists are not reviewed yet: calls wait.
    #[must_use]
    pub(crate) fn awaited(&self) -> Self {
        let mut row = self.seen_as(Arc::default(), false).that_had(Arc::default());
        let found = Arc::make_mut(&mut row.found);
        found.state = ServerState::Connecting;
        found.activity = Some("connecting");
        found.link = None;
        row
    }

    /// This row with the server's last inventory.
    #[must_use]
    pub(crate) fn that_had(mut self, had: Arc<Inventory>) -> Self {
        Arc::make_mut(&mut self.found).had = had;
        self
    }

    /// True if a tool has an output schema. This includes a tool that is not available now, because
    /// it is under review or the server had it before.
    #[must_use]
    pub fn is_shaped(&self, tool: &str) -> bool {
        self.known().find_map(|all| all.tool(tool)).is_some_and(InventoryEntry::is_shaped)
    }

    /// Gates of the present entry without a match in the server's present lists, or in its last
    /// lists while the server is unavailable. Empty while the server has never listed.
    #[must_use]
    pub fn unmatched(&self) -> Vec<UnmatchedGate> {
        let listed = self.pinned.as_ref().map_or(&self.inventory, |said| said.listed());
        let listed = if listed.is_empty() { &self.had } else { listed };
        let Some(definition) = &self.definition else { return Vec::new() };
        if listed.is_empty() && self.first.is_none() {
            return Vec::new();
        }
        definition.gates.unmatched(&listed.names())
    }

    /// Faults that disable a part of the server and leave the rest: those of its connection, of its
    /// lists, and of gates without a match.
    #[must_use]
    pub fn warnings(&self) -> Vec<RowWarning> {
        let listed = self.pinned.as_ref().map_or(&self.inventory, |said| said.listed());
        let gates = self.unmatched().into_iter();
        let gates = gates.map(|gate| RowWarning::new(WarningKind::GateUnmatched, gate.to_string()));
        self.warnings.iter().chain(listed.warnings()).cloned().chain(gates).collect()
    }

    /// The names of the server's tools, also of those that are not available now.
    pub fn known_tools(&self) -> impl Iterator<Item = &str> {
        let names: BTreeSet<_> =
            self.known().flat_map(|all| &all.tools).map(|tool| &*tool.key).collect();
        names.into_iter()
    }

    /// The names of the server's prompts, also of those that are not available now.
    pub fn known_prompts(&self) -> impl Iterator<Item = &str> {
        let names: BTreeSet<_> =
            self.known().flat_map(|all| &all.prompts).map(|prompt| &*prompt.key).collect();
        names.into_iter()
    }

    /// True if the URI is a resource or fits a template of the server, also one that is not
    /// available now.
    #[must_use]
    pub fn knows_resource(&self, uri: &str) -> bool {
        self.known().any(|all| {
            all.resources.iter().any(|entry| *entry.key == *uri)
                || all.templates.iter().any(|entry| Template::parse(&entry.key).matches(uri))
        })
    }

    fn known(&self) -> impl Iterator<Item = &Inventory> {
        let held = self.pinned.as_ref().map(|said| &**said.listed());
        [Some(&*self.inventory), held, Some(&*self.had)].into_iter().flatten()
    }

    /// True if the server's entry pins its definitions.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.definition.as_ref().is_some_and(|definition| definition.pins_definitions)
    }

    /// True if models may receive these instructions of the server, on any link. For a pinned
    /// server, only the reviewed text may be sent.
    #[must_use]
    pub fn lets_tell(&self, text: &str) -> bool {
        let seen = || self.facts.as_ref().and_then(|facts| facts.instructions());
        !self.is_pinned() || seen().is_some_and(|seen| seen == text)
    }

    /// True if the server is known to have no link of the `initialize` handshake: its shared link
    /// is of revision 2026-07-28, and the handshake was refused.
    #[must_use]
    pub fn is_modern_only(&self) -> bool {
        self.dialect == Some(Dialect::Modern) && !self.legacy.is_possible()
    }

    /// True if calls can go to the server now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state == ServerState::Ready
    }
}
