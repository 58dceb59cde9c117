//! The meters of one run, which the run holds, so that no call has to look one up.

use std::sync::Arc;

use narthex_model::Alias;

use crate::Meter;

/// The meters that count the calls of a run.
#[derive(Debug, Default)]
pub struct RunMeters {
    /// The meter of the workspace.
    pub workspace: Option<Arc<Meter>>,
    /// The meter of the agent, if the run has one.
    pub agent: Option<Arc<Meter>>,
    /// The meters of the run's own servers, by their alias in the run. The meter of a shared server
    /// counts its calls.
    pub servers: Vec<(Alias, Arc<Meter>)>,
}

impl RunMeters {
    /// The meter of the run's own server; `None` for a shared server.
    #[must_use]
    pub fn server(&self, alias: &Alias) -> Option<&Arc<Meter>> {
        self.servers.iter().find(|(own, _)| own == alias).map(|(_, meter)| meter)
    }
}
