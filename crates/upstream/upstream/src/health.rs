//! The health of one server: its last answer, its last failure, and the doubt that calls for a
//! check.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use narthex_model::{CallErrorKind, ServerFailure};
use tokio::sync::Notify;

use crate::{ConnectError, Link, LinkError};

/// Health of one server, as its links observe it. All links to the server share one value, and so
/// do later links. Noting an answer takes no lock.
#[derive(Debug, Default)]
pub struct Health {
    /// Time of the server's last answer in milliseconds of Unix time; 0 if there was none.
    answered: AtomicU64,
    failure: Mutex<Option<Arc<Failure>>>,
    /// The greatest [`Doubt`] since the last check.
    doubt: AtomicU8,
    doubted: Notify,
    /// The last failure because of which a person must sign in, since the last check.
    signed_out: Mutex<Option<LinkError>>,
}

/// The doubt that a failure raises about the server, beyond the call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Doubt {
    /// No doubt: only one call failed, or the link ends anyway.
    None = 0,
    /// The server may work for other calls: it is checked, and counts as ready until the result.
    Slight = 1,
    /// The server counts as failed for every caller, until a check shows that it works.
    Grave = 2,
}

/// One failure of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Time of the failure.
    pub at: SystemTime,
    /// The failure, with the error kind of calls that fail for this reason.
    pub what: ServerFailure,
}

impl Health {
    /// Time of the server's last answer to a call, a check, a list or the handshake; `None` if
    /// there was none. A JSON-RPC error is an answer.
    #[must_use]
    pub fn last_success(&self) -> Option<SystemTime> {
        let ms = self.answered.load(Ordering::Relaxed);
        (ms > 0).then(|| SystemTime::UNIX_EPOCH + Duration::from_millis(ms))
    }

    /// The server's last failure. The server may have answered since then.
    #[must_use]
    pub fn last_failure(&self) -> Option<Arc<Failure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The greatest doubt from failures since the last check.
    #[must_use]
    pub fn doubt(&self) -> Doubt {
        match self.doubt.load(Ordering::Acquire) {
            0 => Doubt::None,
            1 => Doubt::Slight,
            _ => Doubt::Grave,
        }
    }

    /// Waits until a failure puts the server in doubt. Cancel safe.
    pub async fn doubted(&self) -> Doubt {
        loop {
            match self.doubt() {
                Doubt::None => self.doubted.notified().await,
                doubt => return doubt,
            }
        }
    }

    /// Clears earlier doubts, at the start and at the end of a check.
    pub fn clear(&self) {
        drop(self.take_signed_out());
        self.doubt.store(Doubt::None as u8, Ordering::Release);
    }

    /// Takes the last failure since the last check because of which a person must sign in.
    #[must_use]
    pub fn take_signed_out(&self) -> Option<LinkError> {
        self.signed_out.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Notes that a further link could not be opened because a person must sign in. Other reasons
    /// prove nothing about the shared link.
    pub fn unconnected(&self, error: &ConnectError) {
        if let Some(error) = error.link().filter(|error| error.needs_sign_in()) {
            self.failed_by(error);
        }
    }

    /// Notes an answer of the server.
    pub(crate) fn answered(&self) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        self.answered.store(ms, Ordering::Relaxed);
    }

    /// Stores a failure; `message` must hold no secret.
    pub fn failed(&self, kind: CallErrorKind, message: &str) {
        let what = ServerFailure::new(kind, message);
        let failure = Some(Arc::new(Failure { at: SystemTime::now(), what }));
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Notes a failure of a request. If the failure is about the server, has the server checked.
    /// The error must hold no secret.
    pub(crate) fn failed_by(&self, error: &LinkError) {
        let is_answer = matches!(error, LinkError::Refused { .. } | LinkError::Request(_));
        if is_answer || matches!(error, LinkError::Cut(_)) {
            return;
        }
        self.failed(error.call_kind(), &error.text());
        if error.needs_sign_in() {
            let mut signed_out = self.signed_out.lock().unwrap_or_else(PoisonError::into_inner);
            *signed_out = Some(error.clone());
        }
        let doubt = error.doubt();
        if doubt > Doubt::None {
            self.doubt.fetch_max(doubt as u8, Ordering::AcqRel);
            self.doubted.notify_one();
        }
    }
}

impl Link {
    /// Stores that the server did not answer a call within this time. A server over HTTP is then
    /// checked. A server on a single channel may still be busy with that call.
    pub fn note_silence(&self, waited: Duration) {
        let (error, health) = (LinkError::Deadline(waited.as_millis()), self.outlet().health());
        match self.is_one_channel() {
            true => health.failed(error.call_kind(), &error.text()),
            false => health.failed_by(&error),
        }
    }

    /// The state of the server's health.
    #[must_use]
    pub fn health(&self) -> &Health {
        self.outlet().health()
    }
}

impl LinkError {
    /// The error's text with the texts of its causes.
    pub(crate) fn text(&self) -> String {
        narthex_model::with_causes(self)
    }

    /// The doubt that the failure raises about the server. The end of a link raises none, because
    /// the link itself reports its end.
    fn doubt(&self) -> Doubt {
        match self {
            Self::AuthRejected { .. } => Doubt::Grave,
            Self::SignIn { is_step_up: true, .. } => Doubt::None,
            Self::SignIn { .. } if self.is_unreachable() => Doubt::Slight,
            Self::SignIn { .. } => Doubt::Grave,
            Self::BrokenOff(error) => error.doubt(),
            Self::Client(error) if !error.may_have_arrived() => Doubt::Grave,
            Self::Status { status: 404 | 410 | 502..=504, .. } => Doubt::Grave,
            Self::Status { status: 405 | 500.., .. }
            | Self::Client(_)
            | Self::Protocol(_)
            | Self::Deadline(_) => Doubt::Slight,
            Self::Status { .. }
            | Self::Closed(_)
            | Self::Unread(_)
            | Self::Cut(_)
            | Self::SessionEnded
            | Self::Refused { .. }
            | Self::Request(_) => Doubt::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D30: a failure of the server asks for a check; a failure of one call does not.
    #[test]
    fn d30_only_failures_of_the_server_ask_for_a_check() {
        let doubt = |error: &LinkError| {
            let health = Health::default();
            health.failed_by(error);
            (health.doubt(), health.last_failure().is_some())
        };
        for code in [404, 410, 502, 503, 504] {
            assert_eq!(doubt(&LinkError::status(code)), (Doubt::Grave, true), "{code}");
        }
        for code in [405, 500, 501, 520] {
            assert_eq!(doubt(&LinkError::status(code)), (Doubt::Slight, true), "{code}");
        }
        for code in [400, 409, 413, 429] {
            assert_eq!(doubt(&LinkError::status(code)), (Doubt::None, true), "{code}");
        }
        let rejected = LinkError::AuthRejected { status: 401 };
        assert_eq!(doubt(&rejected), (Doubt::Grave, true));
        assert_eq!(doubt(&LinkError::Deadline(7)), (Doubt::Slight, true));
        // The link itself reports its end, and an answer is no failure.
        assert_eq!(doubt(&LinkError::Closed("gone".into())), (Doubt::None, true));
        let refused = LinkError::Refused { code: -32603, text: String::new() };
        assert_eq!(doubt(&refused), (Doubt::None, false));
    }

    /// D30: the greatest doubt counts until it is read, and no wake-up is left over.
    #[tokio::test]
    async fn d30_a_doubt_about_a_server_is_reported_once() {
        let health = Health::default();
        assert!(health.last_success().is_none());
        health.answered();
        assert!(health.last_success().is_some_and(|at| at <= SystemTime::now()));
        health.failed_by(&LinkError::status(502));
        health.failed_by(&LinkError::status(500));
        assert_eq!(health.doubted().await, Doubt::Grave);
        health.clear();
        let again = health.doubted();
        tokio::pin!(again);
        let polled =
            std::future::poll_fn(|cx| std::task::Poll::Ready(again.as_mut().poll(cx).is_ready()));
        assert!(!polled.await, "nothing has failed since");
        assert!(health.last_failure().unwrap().what.operator_cause().contains("HTTP 500"));
    }
}
