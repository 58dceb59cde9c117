//! The meters of one run, which it keeps, so that none is looked for while a call waits.

use std::sync::Arc;

use narthex_model::Alias;

use crate::Meter;

/// The meters that count the calls of a run.
#[derive(Debug, Default)]
pub struct RunMeters {
    /// The meter of its workspace.
    pub workspace: Option<Arc<Meter>>,
    /// The meter of its agent, if it is a run of one.
    pub agent: Option<Arc<Meter>>,
    /// The meters of the servers that it has for itself, by the alias that they have in it. Other
    /// servers are counted by the meter of the shared server.
    pub servers: Vec<(Alias, Arc<Meter>)>,
}

impl RunMeters {
    /// The meter of a server that the run has for itself.
    #[must_use]
    pub fn server(&self, alias: &Alias) -> Option<&Arc<Meter>> {
        self.servers.iter().find(|(own, _)| own == alias).map(|(_, meter)| meter)
    }
}
