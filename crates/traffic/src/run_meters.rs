//! The meters of one run, which it keeps, so that none is looked for while a call waits.

use std::sync::Arc;

use narthex_model::Alias;

use crate::Meter;

/// What counts the calls of a run.
#[derive(Debug, Default)]
pub struct RunMeters {
    /// That of its workspace.
    pub workspace: Option<Arc<Meter>>,
    /// That of its agent, if it is a run of one.
    pub agent: Option<Arc<Meter>>,
    /// Those of the servers that it has for itself, by the alias that they have in it. What is not
    /// here is counted by the meter of the server that all share.
    pub servers: Vec<(Alias, Arc<Meter>)>,
}

impl RunMeters {
    /// That of a server that the run has for itself.
    #[must_use]
    pub fn server(&self, alias: &Alias) -> Option<&Arc<Meter>> {
        self.servers.iter().find(|(own, _)| own == alias).map(|(_, meter)| meter)
    }
}
