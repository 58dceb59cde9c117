//! Checks that a server still answers after a long time without a call (R-E13).

use std::time::Duration;

use tokio::time::timeout;

use super::{Asking, Inner, Link};
use crate::LinkError;

/// Time without a call after which narthex pings the server before the next call.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Longest wait for the answer to the ping.
const PING_DEADLINE: Duration = Duration::from_secs(2);

impl Link {
    /// True if [`Link::check`] would ping the server, or wait for a running check.
    #[must_use]
    pub fn needs_check(&self) -> bool {
        match &self.inner {
            Inner::Http(http) => http.is_checking(),
            // A server that works for another caller may be too busy to answer the ping in time.
            Inner::Stdio(_) | Inner::Sse(_) => {
                !self.uses.is_shared() && self.uses.since_last() > IDLE_MAX
            }
        }
    }

    /// Pings a server on one channel (stdio or SSE) after 30 s without a call. No timer starts the
    /// ping: callers do before a call. If the server does not answer within 2 s, the link ends, so
    /// that the registry connects anew. A server over HTTP needs no ping, because each call shows
    /// whether the server answers. After a failed call over HTTP, waits until the session is
    /// checked.
    ///
    /// # Errors
    /// When the link has ended, or when this check ends the link.
    pub async fn check(&self) -> Result<(), LinkError> {
        if let Inner::Http(http) = &self.inner {
            return http.checked().await;
        }
        if !self.needs_check() {
            return Ok(());
        }
        let _one_at_a_time = self.uses.checking.lock().await;
        if self.uses.since_last() <= IDLE_MAX {
            return Ok(());
        }
        let answered = timeout(PING_DEADLINE, self.ping()).await;
        let error = match answered {
            // An error of the server is an answer, too.
            Ok(Ok(()) | Err(LinkError::Protocol(_) | LinkError::Refused { .. })) => {
                self.uses.touch();
                return Ok(());
            }
            Ok(Err(error)) => error,
            Err(_late) => LinkError::Deadline(PING_DEADLINE.as_millis()),
        };
        let why = format!("it does not answer a ping: {error}");
        match &self.inner {
            Inner::Stdio(stdio) => stdio.duplex.close(&why),
            Inner::Sse(sse) => sse.duplex.close(&why),
            Inner::Http(_) => {}
        }
        Err(self.outlet().end())
    }

    /// Asks the server for a sign of life, in its era.
    ///
    /// # Errors
    /// When no answer arrives.
    pub async fn ping(&self) -> Result<(), LinkError> {
        let asked = match self.facts.revision.is_modern() {
            true => Asking::Discover,
            false => Asking::Ping,
        };
        self.ask(asked, b"").await.map(drop)
    }
}
