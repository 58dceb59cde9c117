//! Login sessions: how long a sign-in in a browser holds, and how it was proved.

use std::time::{Duration, SystemTime};

use narthex_model::ErrorKind;

/// The method by which a user signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginMethod {
    /// By a passkey.
    Passkey,
    /// At an OpenID provider.
    Oidc,
    /// By a link, which any holder of the admin token can make.
    Link,
    /// By a link that a human who had proved to be one has made. It adds one passkey, after which
    /// the session is one by [`Link`](Self::Link).
    Invitation,
}

impl LoginMethod {
    /// Its name in the store, the API and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passkey => "passkey",
            Self::Oidc => "oidc",
            Self::Link => "link",
            Self::Invitation => "invitation",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut all = [Self::Passkey, Self::Oidc, Self::Link, Self::Invitation].into_iter();
        all.find(|one| one.as_str() == text)
    }

    /// The method of a link whose creator `is_proved` to be human or not.
    #[must_use]
    pub fn of_link(is_proved: bool) -> Self {
        if is_proved { Self::Invitation } else { Self::Link }
    }

    /// True if it proves a human (D15). A link does not: it is made with the admin token, which
    /// lies in a file that an agent of the same user could read. An invitation does not either:
    /// every carrier of the message could read it.
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
    /// Without a request.
    pub idle: Duration,
    /// Whatever happens.
    pub absolute: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self { idle: Duration::from_hours(8), absolute: Duration::from_hours(24 * 7) }
    }
}

/// When a session began and was last used, and how it was proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginSession {
    /// The method by which the user signed in.
    pub method: LoginMethod,
    /// When.
    pub created_at: SystemTime,
    /// The time of its last noted use.
    pub seen_at: SystemTime,
}

/// The reason for which a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionEnd {
    /// It was not used for too long.
    #[error("this sign-in was idle for too long; sign in again")]
    Idle,
    /// It is too old.
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
    /// One that begins now.
    #[must_use]
    pub fn begin(method: LoginMethod, now: SystemTime) -> Self {
        Self { method, created_at: now, seen_at: now }
    }

    /// Checks that it holds at a time.
    ///
    /// # Errors
    /// The reason for which it does not.
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

    /// When it is over, even if it is used.
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
    fn d15_a_link_is_advisory() {
        let proved = |method: LoginMethod| {
            assert_eq!(LoginMethod::parse(method.as_str()), Some(method));
            method.is_authenticated()
        };
        assert!(proved(LoginMethod::Passkey) && proved(LoginMethod::Oidc));
        assert!(!proved(LoginMethod::Link) && !proved(LoginMethod::Invitation));
    }
}
