//! Login sessions: the lifetime and the proof of a sign-in in a browser.

use std::time::{Duration, SystemTime};

use narthex_model::ErrorKind;

/// The method by which a user signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginMethod {
    /// By a passkey.
    Passkey,
    /// At an OpenID provider.
    Oidc,
    /// By a link, which any holder of the admin token can create.
    Link,
    /// By a link from a proved human. It adds one passkey; after that the session counts as one by
    /// [`Link`](Self::Link).
    Invitation,
}

impl LoginMethod {
    /// The name in the store, the API and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passkey => "passkey",
            Self::Oidc => "oidc",
            Self::Link => "link",
            Self::Invitation => "invitation",
        }
    }

    /// The method of this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut all = [Self::Passkey, Self::Oidc, Self::Link, Self::Invitation].into_iter();
        all.find(|one| one.as_str() == text)
    }

    /// The method of a link whose creator `is_proved` to be human, or not.
    #[must_use]
    pub fn of_link(is_proved: bool) -> Self {
        if is_proved { Self::Invitation } else { Self::Link }
    }

    /// True if the method proves a human (D15). A link does not: it is created with the admin
    /// token, which is in a file that an agent of the same user could read. An invitation does not
    /// either: every carrier of the message could read it.
    #[must_use]
    pub fn is_authenticated(self) -> bool {
        match self {
            Self::Passkey | Self::Oidc => true,
            Self::Link | Self::Invitation => false,
        }
    }
}

/// The lifetimes of sessions.
#[derive(Debug, Clone, Copy)]
pub struct SessionLimits {
    /// Longest time without a request.
    pub idle: Duration,
    /// Longest time in any case.
    pub absolute: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self { idle: Duration::from_hours(8), absolute: Duration::from_hours(24 * 7) }
    }
}

/// The start, the last use and the method of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginSession {
    /// The method by which the user signed in.
    pub method: LoginMethod,
    /// Time of sign-in.
    pub created_at: SystemTime,
    /// Time of the last stored use.
    pub seen_at: SystemTime,
}

/// The reason why a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionEnd {
    /// The session was not used for too long.
    #[error("this sign-in was idle for too long; sign in again")]
    Idle,
    /// The session is too old.
    #[error("this sign-in is too old; sign in again")]
    Old,
}

impl SessionEnd {
    /// Returns the error's kind.
    #[must_use]
    pub fn kind(self) -> ErrorKind {
        ErrorKind::Unauthenticated
    }
}

impl LoginSession {
    /// A session that starts now.
    #[must_use]
    pub fn begin(method: LoginMethod, now: SystemTime) -> Self {
        Self { method, created_at: now, seen_at: now }
    }

    /// Checks that the session is valid at this time.
    ///
    /// # Errors
    /// The reason why the session is over.
    pub fn check(&self, limits: &SessionLimits, now: SystemTime) -> Result<(), SessionEnd> {
        // A clock that was set back makes a session younger, never older.
        let since = |then| now.duration_since(then).unwrap_or_default();
        if since(self.created_at) >= limits.absolute {
            Err(SessionEnd::Old)
        } else if since(self.seen_at) >= limits.idle {
            Err(SessionEnd::Idle)
        } else {
            Ok(())
        }
    }

    /// Time at which the session ends, even if it is used.
    #[must_use]
    pub fn expires_at(&self, limits: &SessionLimits) -> SystemTime {
        self.created_at + limits.absolute
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_end_when_they_are_unused_or_old() {
        let limits = SessionLimits::default();
        let start = SystemTime::UNIX_EPOCH + Duration::from_hours(1000);
        let mut session = LoginSession::begin(LoginMethod::Passkey, start);
        let just = Duration::from_millis(1);
        assert_eq!(session.check(&limits, start + limits.idle - just), Ok(()));
        assert_eq!(session.check(&limits, start + limits.idle), Err(SessionEnd::Idle));
        assert_eq!(session.check(&limits, start - Duration::from_hours(2)), Ok(()));
        session.seen_at = start + limits.absolute - just;
        assert_eq!(session.check(&limits, start + limits.absolute - just), Ok(()));
        assert_eq!(session.check(&limits, start + limits.absolute), Err(SessionEnd::Old));
    }

    /// D15: a link by the admin token alone proves no human.
    #[test]
    fn d15_a_sign_in_link_does_not_authenticate_a_human() {
        let proved = |method: LoginMethod| {
            assert_eq!(LoginMethod::parse(method.as_str()), Some(method));
            method.is_authenticated()
        };
        assert!(proved(LoginMethod::Passkey) && proved(LoginMethod::Oidc));
        assert!(!proved(LoginMethod::Link) && !proved(LoginMethod::Invitation));
    }
}
