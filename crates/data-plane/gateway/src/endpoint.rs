//! The endpoints of a run.

use narthex_model::Alias;

/// An endpoint of a run; each run has both kinds (D2).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// All servers of the run, with qualified names.
    Aggregated,
    /// One server, with its own names.
    Transparent(Alias),
}
