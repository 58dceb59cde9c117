//! What the registry looks like at one moment: immutable, swapped whole.

use std::{collections::HashMap, sync::Arc};

use narthex_model::{Alias, CallError, ServerDefinition, ServerState};
use narthex_upstream::{Dialect, Inventory, Link};
use tokio::sync::Mutex;

/// The registry at one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Rises with every change of any row.
    pub seq: u64,
    /// The rows in the configuration's order.
    pub servers: Vec<Arc<ServerRow>>,
    index: HashMap<Alias, usize>,
}

/// One server at one moment.
#[derive(Debug, Clone)]
pub struct ServerRow {
    /// The name as configured; a valid alias unless the entry is faulty.
    pub name: String,
    /// The alias; `None` if the name is no valid one.
    pub alias: Option<Alias>,
    /// One of five (D21).
    pub state: ServerState,
    /// What a `connecting` server is busy with, for people.
    pub activity: Option<&'static str>,
    /// Why it is in `error`.
    pub error: Option<CallError>,
    /// The configuration; `None` if the entry is faulty.
    pub definition: Option<Arc<ServerDefinition>>,
    /// The shared link, only in `ready`.
    pub link: Option<Arc<Link>>,
    /// What the server has. Kept while it reconnects, but only ready servers are listed (E72).
    pub inventory: Arc<Inventory>,
    /// Rises when the inventory changes.
    pub inventory_version: u64,
    /// What the server was found to speak.
    pub dialect: Option<Dialect>,
    /// Held while the lists are read because of a call.
    pub(crate) listing: Arc<Mutex<()>>,
}

impl Snapshot {
    pub(crate) fn new(seq: u64, servers: Vec<Arc<ServerRow>>) -> Self {
        let index = servers
            .iter()
            .enumerate()
            .filter_map(|(index, row)| Some((row.alias.clone()?, index)))
            .collect();
        Self { seq, servers, index }
    }

    /// The row of an alias.
    #[must_use]
    pub fn get(&self, alias: &str) -> Option<&Arc<ServerRow>> {
        self.index.get(alias).map(|index| &self.servers[*index])
    }

    /// Whether no server is still starting.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.servers.iter().all(|row| row.state.is_settled())
    }
}

impl ServerRow {
    /// Whether calls can go to the server now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state == ServerState::Ready
    }
}
