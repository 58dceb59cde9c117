//! The servers of one run: no other part of the registry can be read, or reached, for a run.

use std::{ops::Deref, sync::Arc};

use narthex_model::Alias;
use narthex_registry::{ServerRow, Snapshot};

/// The rows of the servers that a run has, at one moment. Only [`super::RunView::rows`] makes one,
/// and it leaves out servers that the run's policy does not attach.
#[derive(Debug, Clone)]
pub(crate) struct RunRows(Arc<Snapshot>);

/// A row of a server that a run has, by which a link is chosen. Comes from [`RunRows`] alone.
#[derive(Debug, Clone)]
pub(crate) struct RunRow(Arc<ServerRow>);

impl RunRows {
    pub(super) fn new(attached: Arc<Snapshot>) -> Self {
        Self(attached)
    }

    /// The row of an alias; `None` also for a server that the run does not have.
    pub(crate) fn get(&self, alias: &str) -> Option<RunRow> {
        self.0.get(alias).cloned().map(RunRow)
    }

    /// The servers that the run can reach, each under its alias: not the entries that another layer
    /// overrides, and not those without a usable name.
    pub(crate) fn servers(&self) -> impl Iterator<Item = RunRow> {
        let rows = self.0.servers.iter().filter(|row| !row.is_overridden && row.alias.is_some());
        rows.map(|row| RunRow(row.clone()))
    }

    /// All rows that the run sees, for display or for a view.
    pub(crate) fn shown(&self) -> &Arc<Snapshot> {
        &self.0
    }
}

/// Gives access to all facts of a snapshot, none of which leads to a server.
impl Deref for RunRows {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        &self.0
    }
}

impl RunRow {
    /// The alias of the server in its run, which every row of a run has.
    pub(crate) fn alias(&self) -> &Alias {
        self.0.alias.as_ref().expect("only rows with an alias are found by one")
    }
}

impl Deref for RunRow {
    type Target = Arc<ServerRow>;

    fn deref(&self) -> &Arc<ServerRow> {
        &self.0
    }
}
