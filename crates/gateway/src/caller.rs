//! Who calls, and through which endpoint.

use std::sync::Arc;

use narthex_model::Alias;
use narthex_wire::Era;

use crate::{RunView, Session};

/// One of the two kinds of endpoint that every run has (D2).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// All attachments, under qualified names.
    Aggregated,
    /// One server, under its own names.
    Transparent(Alias),
}

/// Proof of who calls: only [`crate::RunTable::identify`] and the doors' sockets make one.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The run whose token was shown.
    pub run: Arc<RunView>,
    /// Where the call came in.
    pub endpoint: Endpoint,
    /// The MCP session; legacy only.
    pub session: Option<Arc<Session>>,
}

impl Caller {
    /// By whose rules the caller speaks.
    #[must_use]
    pub fn era(&self) -> Era {
        if self.session.is_some() { Era::Legacy } else { Era::Modern }
    }
}
