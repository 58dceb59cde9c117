//! The caller of a request.

use std::sync::Arc;

use narthex_wire::Era;

use crate::{Endpoint, RunView, Session};

/// Proof of the caller's identity: only [`crate::RunTable::identify`] and the doors' sockets make
/// one.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The run whose token was shown.
    pub run: Arc<RunView>,
    /// The endpoint at which the call came in.
    pub endpoint: Endpoint,
    /// The MCP session; legacy only.
    pub session: Option<Arc<Session>>,
    /// The trace context outside of the message, such as in HTTP headers.
    pub trace: Option<Box<TraceContext>>,
}

/// W3C trace context, not checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// `traceparent`; without it the others mean nothing.
    pub parent: Box<str>,
    /// `tracestate`.
    pub state: Option<Box<str>>,
    /// `baggage`.
    pub baggage: Option<Box<str>>,
}

impl Caller {
    /// A caller without trace context outside its messages.
    #[must_use]
    pub fn new(run: Arc<RunView>, endpoint: Endpoint, session: Option<Arc<Session>>) -> Self {
        Self { run, endpoint, session, trace: None }
    }

    /// The era whose rules the caller follows.
    #[must_use]
    pub fn era(&self) -> Era {
        if self.session.is_some() { Era::Legacy } else { Era::Modern }
    }
}
