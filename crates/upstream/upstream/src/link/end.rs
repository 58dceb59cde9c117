//! The end of a link.

use std::time::Duration;

use super::{Inner, Link};
use crate::{CutReason, LinkError};

/// The way in which a link ended (R-E18).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The link ended in the requested way.
    Gracefully,
    /// The child, or a part of its group, had to be killed.
    Killed,
}

impl Link {
    /// True if a program ended by itself after use, with all requests that it had read answered.
    /// Such a program may be one that ends after each answer.
    #[must_use]
    pub fn ended_in_order(&self) -> bool {
        match &self.inner {
            Inner::Stdio(stdio) => stdio.duplex.has_answered_all() && self.uses.was_used(),
            Inner::Http(_) | Inner::Sse(_) => false,
        }
    }

    /// Ends the link because a person has disabled the server or cleared its secret. Waiting
    /// callers get this reason. The caller of this function still has to stop the link.
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

    /// Stops the link: kills a child's whole group, or ends the session at the server. Requests
    /// without an answer fail.
    pub async fn stop(&self) -> Ended {
        match &self.inner {
            Inner::Stdio(stdio) => return stdio.stop().await,
            Inner::Http(http) => http.stop(Duration::from_secs(2)).await,
            Inner::Sse(sse) => sse.duplex.close("it was stopped"),
        }
        Ended::Gracefully
    }
}
