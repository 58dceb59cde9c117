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
    /// The W3C `traceparent` that the door was given outside the message, such as an HTTP header.
    pub trace_parent: Option<Box<str>>,
}

impl Caller {
    /// A caller without trace context outside its messages.
    #[must_use]
    pub fn new(run: Arc<RunView>, endpoint: Endpoint, session: Option<Arc<Session>>) -> Self {
        Self { run, endpoint, session, trace_parent: None }
    }

    /// By whose rules the caller speaks.
    #[must_use]
    pub fn era(&self) -> Era {
        if self.session.is_some() { Era::Legacy } else { Era::Modern }
    }
}
