//! The classes of failures of token requests, and their consequences.

use std::{fmt, time::Duration};

use narthex_model::ErrorKind;

use super::{Reply, shown_code};

/// The longest delay between two tries.
const BACKOFF_MAX: Duration = Duration::from_secs(300);
const BACKOFF_FIRST: Duration = Duration::from_secs(5);

/// The class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The code, refresh token or assertion has ended.
    GrantEnded,
    /// The server does not know the client, or does not accept its proof.
    ClientUnknown,
    /// The server refuses the requested scopes.
    ScopeRefused,
    /// The server refuses the request for another reason, which another try does not change.
    Refused,
    /// The server cannot answer now.
    Unavailable,
}

/// A failed token request. Its text shows an error code and a status only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The class.
    pub failure: Failure,
    /// The error code, or a description by narthex; safe to show.
    pub code: String,
    /// The HTTP status; none if there was no answer.
    pub status: Option<u16>,
    /// The delay that the server asks for.
    pub retry_after: Option<Duration>,
}

/// The consequences of a failure for the stored rows and for the server's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consequence {
    /// True if the stored client is deleted, so that narthex registers anew.
    pub drops_client: bool,
    /// True if the stored tokens are deleted.
    pub drops_tokens: bool,
    /// The next state of the server.
    pub state: NextState,
}

/// The next state of a server after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextState {
    /// A person must sign in.
    Authenticating,
    /// The state stays; the request is repeated after a delay, and the old token serves until its
    /// end.
    Unchanged,
    /// An operator must change the settings.
    Error,
}

impl Failure {
    /// The class of an error code (RFC 6749, 5.2, and those of known providers).
    #[must_use]
    pub fn of_code(code: &str) -> Self {
        match code {
            "invalid_grant"
            | "bad_refresh_token"
            | "bad_verification_code"
            | "invalid_code"
            | "code_already_used"
            | "code_expired"
            | "expired_token"
            | "invalid_refresh_token"
            | "token_expired"
            | "token_revoked"
            | "invalid_auth"
            | "account_inactive"
            | "interaction_required"
            | "login_required"
            | "consent_required" => Self::GrantEnded,
            "invalid_client"
            | "unauthorized_client"
            | "incorrect_client_credentials"
            | "invalid_client_id"
            | "bad_client_secret" => Self::ClientUnknown,
            "invalid_scope" => Self::ScopeRefused,
            "temporarily_unavailable"
            | "server_error"
            | "slow_down"
            | "ratelimited"
            | "rate_limited"
            | "internal_error"
            | "fatal_error" => Self::Unavailable,
            _ => Self::Refused,
        }
    }

    /// The consequences. `is_registered` is true for a client that narthex has registered itself;
    /// others can only be changed by an operator.
    #[must_use]
    pub fn consequence(self, is_registered: bool) -> Consequence {
        let (drops_client, drops_tokens, state) = match self {
            Self::GrantEnded => (false, true, NextState::Authenticating),
            Self::ClientUnknown if is_registered => (true, true, NextState::Authenticating),
            Self::ClientUnknown | Self::Refused => (false, false, NextState::Error),
            Self::ScopeRefused => (false, false, NextState::Authenticating),
            Self::Unavailable => (false, false, NextState::Unchanged),
        };
        Consequence { drops_client, drops_tokens, state }
    }
}

impl Refusal {
    /// A refusal with the server's error code.
    #[must_use]
    pub fn of_code(code: &str, status: Option<u16>) -> Self {
        let failure = Failure::of_code(code);
        Self { failure, code: shown_code(code), status, retry_after: None }
    }

    /// A refusal in words of narthex: the answer is no error, and cannot be used.
    pub(super) fn unusable(reply: &Reply<'_>, reason: &str) -> Self {
        let (failure, status) = (Failure::Refused, reply.status());
        Self { failure, code: reason.to_owned(), status, retry_after: None }
    }

    /// The error's kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self.failure {
            Failure::GrantEnded => ErrorKind::Unauthenticated,
            Failure::ClientUnknown | Failure::ScopeRefused | Failure::Refused => ErrorKind::Invalid,
            Failure::Unavailable => ErrorKind::Unavailable,
        }
    }

    /// The delay before the next try, after this many failed ones.
    #[must_use]
    pub fn delay(&self, failures: u32) -> Duration {
        self.retry_after.unwrap_or_default().min(BACKOFF_MAX).max(backoff(failures))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { failure, code, status, retry_after: _ } = self;
        f.write_str(match failure {
            Failure::GrantEnded => "the sign-in at the authorization server has ended",
            Failure::ClientUnknown => {
                "the authorization server does not accept narthex as a client"
            }
            Failure::ScopeRefused => "the authorization server refuses the requested scopes",
            Failure::Refused => "the authorization server refuses the token request",
            Failure::Unavailable => "the authorization server cannot answer now",
        })?;
        match status {
            Some(status) => write!(f, " (status {status}, {code})"),
            None => write!(f, " ({code})"),
        }
    }
}

impl std::error::Error for Refusal {}

/// The delay after this many failed tries: doubled each time, up to 5 minutes.
#[must_use]
pub fn backoff(failures: u32) -> Duration {
    let doubled = 2_u32.checked_pow(failures.saturating_sub(1));
    doubled
        .and_then(|times| BACKOFF_FIRST.checked_mul(times))
        .unwrap_or(BACKOFF_MAX)
        .min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oauth_c25_each_class_has_its_consequences() {
        let of = |code: &str, is_registered| {
            let Consequence { drops_client, drops_tokens, state } =
                Failure::of_code(code).consequence(is_registered);
            (drops_client, drops_tokens, state)
        };
        assert_eq!(of("invalid_grant", true), (false, true, NextState::Authenticating));
        for code in ["invalid_client", "unauthorized_client"] {
            assert_eq!(of(code, true), (true, true, NextState::Authenticating), "{code}");
            assert_eq!(of(code, false), (false, false, NextState::Error), "{code}");
        }
        assert_eq!(of("invalid_scope", true), (false, false, NextState::Authenticating));
        for code in ["invalid_request", "unsupported_grant_type", "invalid_target", "", "<b>"] {
            assert_eq!(of(code, true), (false, false, NextState::Error), "{code}");
        }
        assert_eq!(of("temporarily_unavailable", true), (false, false, NextState::Unchanged));
    }

    #[test]
    fn oauth_q11_delays_double_up_to_a_limit() {
        let seconds = |failures| backoff(failures).as_secs();
        assert_eq!([0, 1, 2, 3, 4].map(seconds), [5, 5, 10, 20, 40]);
        assert_eq!([7, 8, 40, u32::MAX].map(seconds), [300; 4]);
        let mut refusal = Refusal::of_code("temporarily_unavailable", Some(503));
        refusal.retry_after = Some(Duration::from_secs(17));
        assert_eq!((refusal.delay(1).as_secs(), refusal.delay(4).as_secs()), (17, 40));
        refusal.retry_after = Some(Duration::MAX);
        assert_eq!(refusal.delay(1), BACKOFF_MAX);
    }

    #[test]
    fn refusals_show_codes_only() {
        let refusal = Refusal::of_code("invalid_grant", Some(400)).to_string();
        assert_eq!(
            refusal,
            "the sign-in at the authorization server has ended (status 400, invalid_grant)"
        );
        let hostile = Refusal::of_code("<script>", None).to_string();
        assert_eq!(hostile, "the authorization server refuses the token request (unknown error)");
    }
}
