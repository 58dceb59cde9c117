//! Limits of traffic (O100): calls are counted, refused beyond a limit, and released.
//!
//! Up to three meters count a call: those of its server, of its agent and of its workspace. Meters
//! are atomics; no lock is taken, and no call waits. Either all meters admit the call or none
//! counts it.

mod admission;
mod clock;
mod meter;
mod run_meters;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
    time::SystemTime,
};

use narthex_model::{Alias, WorkspaceId};

pub use admission::{Admission, Counted, Exceeded, LimitKind, LimitScope};
use clock::Clock;
pub use meter::Meter;
pub use run_meters::RunMeters;

/// The workspace, agent or server whose calls a meter counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MeterKey {
    /// The workspace that owns it.
    pub workspace: WorkspaceId,
    /// Its kind.
    pub kind: MeterKind,
    /// The id or name of the thing; the workspace's own id for a workspace.
    pub name: Arc<str>,
}

/// Kinds of things whose calls are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MeterKind {
    /// A workspace.
    Workspace,
    /// An agent of the catalog.
    Agent,
    /// A server of the catalog.
    Server,
    /// A server of the local configuration, or a run's own server.
    LocalServer,
}

/// The number of calls that a meter has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayCount {
    /// Days since 1970, in UTC.
    pub day: u32,
    /// The calls of that day.
    pub calls: u64,
}

/// Returns the time; only tests have another clock than the system's.
pub type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// All meters that are shared. Clones are handles to the same ones.
#[derive(Clone)]
pub struct Meters {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Clock,
    home: WorkspaceId,
    meters: papaya::HashMap<MeterKey, Arc<Meter>>,
    /// Held for writing while meters are forgotten, so that no caller gets a forgotten one.
    forgetting: RwLock<()>,
    /// The meters of the servers of the local configuration, found without making a key.
    local: papaya::HashMap<Alias, Arc<Meter>>,
}

impl MeterKind {
    /// Every kind.
    pub const ALL: [Self; 4] = narthex_model::every![Workspace, Agent, Server, LocalServer];

    /// Its spelling in stored counts.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Agent => "agent",
            Self::Server => "server",
            Self::LocalServer => "local_server",
        }
    }

    /// The kind of a spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// The scope that callers see.
    #[must_use]
    pub fn scope(self) -> LimitScope {
        match self {
            Self::Workspace => LimitScope::Workspace,
            Self::Agent => LimitScope::Agent,
            Self::Server | Self::LocalServer => LimitScope::Server,
        }
    }
}

impl Meters {
    /// No meter yet. Servers of the local configuration belong to `home`.
    #[must_use]
    pub fn new(home: WorkspaceId) -> Self {
        Self::with_clock(home, Arc::new(SystemTime::now))
    }

    /// Makes meters with a clock of the caller's own.
    #[must_use]
    pub fn with_clock(home: WorkspaceId, wall: WallClock) -> Self {
        let (meters, local) = (papaya::HashMap::new(), papaya::HashMap::new());
        let (clock, forgetting) = (Clock::new(wall), RwLock::default());
        Self { shared: Arc::new(Shared { clock, home, meters, forgetting, local }) }
    }

    /// The meter of a key; it begins at zero, without limits, if there was none. Waits while
    /// `forget_unused` runs, so it is for beginnings and not for calls.
    #[must_use]
    pub fn get(&self, key: &MeterKey) -> Arc<Meter> {
        if key.kind == MeterKind::LocalServer
            && key.workspace == self.shared.home
            && let Ok(alias) = Alias::new(&key.name)
        {
            return self.local(&alias);
        }
        let _stays = self.shared.forgetting.read().unwrap_or_else(PoisonError::into_inner);
        let meters = self.shared.meters.pin();
        meters.get_or_insert_with(key.clone(), || Arc::new(Meter::new(key.clone()))).clone()
    }

    /// The meter of a key, if it is used or has counted a call.
    #[must_use]
    pub fn find(&self, key: &MeterKey) -> Option<Arc<Meter>> {
        self.shared.meters.pin().get(key).cloned()
    }

    /// The meter of a server of the local configuration.
    #[must_use]
    pub fn local(&self, alias: &Alias) -> Arc<Meter> {
        let local = self.shared.local.pin();
        if let Some(meter) = local.get(alias) {
            return meter.clone();
        }
        let new = || {
            let workspace = self.shared.home.clone();
            let (kind, name) = (MeterKind::LocalServer, alias.as_str().into());
            Arc::new(Meter::new(MeterKey { workspace, kind, name }))
        };
        local.get_or_insert_with(alias.clone(), new).clone()
    }

    /// All meters, in no order.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Meter>> {
        let mut all: Vec<_> = self.shared.meters.pin().values().cloned().collect();
        all.extend(self.shared.local.pin().values().cloned());
        all
    }

    /// Forgets unused meters that have counted nothing since yesterday began. Meters of servers of
    /// the local configuration are few and stay.
    pub fn forget_unused(&self) {
        let today = self.today();
        let _alone = self.shared.forgetting.write().unwrap_or_else(PoisonError::into_inner);
        let is_used = |meter: &Arc<Meter>| Arc::strong_count(meter) > 1 || meter.is_recent(today);
        self.shared.meters.pin().retain(|_, meter| is_used(meter));
    }

    /// The day, counted from 1970 in UTC.
    #[must_use]
    pub fn today(&self) -> u32 {
        self.shared.clock.now().day
    }

    /// The rest of the day in milliseconds.
    #[must_use]
    pub fn day_left_ms(&self) -> u64 {
        self.shared.clock.now().day_left_ms
    }

    /// Looks at the system's clock anew: the clock of timers stops while a machine sleeps.
    pub fn set_clock(&self) {
        self.shared.clock.set();
    }
}

impl Default for Meters {
    fn default() -> Self {
        Self::new(WorkspaceId::default())
    }
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meters").field("shared", &self.shared.meters.len()).finish_non_exhaustive()
    }
}
