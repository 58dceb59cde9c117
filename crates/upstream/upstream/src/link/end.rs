//! The end of a link.

use std::time::Duration;

use super::{Inner, Link};
use crate::{CutReason, LinkError};

/// The way in which a link ended (R-E18).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// As narthex requested it.
    Gracefully,
    /// The child, or a part of its group, had to be killed.
    Killed,
}

impl Link {
    /// True if a program has ended by itself after it was used, and had answered all that it had
    /// read: it may be made to end after each answer.
    #[must_use]
    pub fn ended_in_order(&self) -> bool {
        match &self.inner {
            Inner::Stdio(stdio) => stdio.duplex.has_answered_all() && self.uses.was_used(),
            Inner::Http(_) | Inner::Sse(_) => false,
        }
    }

    /// Ends the link because a person has revoked what it needs. Waiting callers get this reason;
    /// the link is still to be stopped.
    pub fn cut(&self, reason: &CutReason) {
        let error = LinkError::Cut(reason.clone());
        match &self.inner {
            Inner::Stdio(stdio) => stdio.duplex.end(error),
            Inner::Sse(sse) => sse.duplex.end(error),
            Inner::Http(http) => {
                http.outlet().close(error);
            }
        }
    }

    /// Stops the link: a child is ended with its whole group, a session is given back. What still
    /// waits for an answer fails.
    pub async fn stop(&self) -> Ended {
        match &self.inner {
            Inner::Stdio(stdio) => return stdio.stop().await,
            Inner::Http(http) => http.stop(Duration::from_secs(2)).await,
            Inner::Sse(sse) => sse.duplex.close("it was stopped"),
        }
        Ended::Gracefully
    }
}
