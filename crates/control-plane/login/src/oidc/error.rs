//! Errors of a sign-in at an OpenID provider.

use narthex_model::ErrorKind;
use narthex_oauth::{
    client::CallbackFault,
    jwt::{JwtFault, SigningFault},
};

/// An error of a sign-in. None of these shows a code, a token or a secret.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// The issuer in the settings is no trustworthy address.
    #[error("the issuer must be an https address without query and fragment (http on loopback)")]
    BadIssuer,
    /// The provider's metadata cannot be used.
    #[error("the provider's metadata cannot be used: {0}")]
    BadMetadata(&'static str),
    /// The provider or the user refused.
    #[error("the provider did not sign you in ({0})")]
    Declined(String),
    /// The answer does not belong to this attempt.
    #[error("this answer does not belong to the sign-in that was started: {0}")]
    WrongAnswer(&'static str),
    /// The answer of the token endpoint cannot be used.
    #[error("the provider's answer cannot be used: {0}")]
    BadAnswer(&'static str),
    /// The ID token proves nothing here.
    #[error("the provider's ID token is refused: {0}")]
    BadToken(&'static str),
    /// The token is signed with an unknown key.
    #[error("the provider's ID token is signed with a key that the provider does not publish")]
    UnknownKey,
    /// No rule and no human has admitted this person.
    #[error("the provider knows you, but you are not allowed to sign in here; ask an operator")]
    NotAdmitted,
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes")]
    NoRandomness(#[source] getrandom::Error),
}

impl OidcError {
    /// Returns the error's kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::BadIssuer => ErrorKind::Invalid,
            Self::BadMetadata(_) | Self::BadAnswer(_) | Self::NoRandomness(_) => {
                ErrorKind::Unavailable
            }
            Self::Declined(_) | Self::WrongAnswer(_) | Self::BadToken(_) | Self::UnknownKey => {
                ErrorKind::Unauthenticated
            }
            Self::NotAdmitted => ErrorKind::Denied,
        }
    }
}

impl From<CallbackFault> for OidcError {
    fn from(fault: CallbackFault) -> Self {
        match fault {
            CallbackFault::Wrong(reason) => Self::WrongAnswer(reason),
            CallbackFault::Declined(code) => Self::Declined(code),
        }
    }
}

impl From<JwtFault> for OidcError {
    fn from(fault: JwtFault) -> Self {
        match fault {
            JwtFault::NotKeys => Self::BadAnswer("its keys cannot be read"),
            JwtFault::UnknownKey => Self::UnknownKey,
            JwtFault::Malformed => Self::BadToken("it is not a signed token"),
            JwtFault::ForbiddenAlgorithm => {
                Self::BadToken("it is signed by an algorithm that is not allowed")
            }
            JwtFault::AmbiguousKey => Self::BadToken("several keys could have signed it"),
            JwtFault::BadSignature => Self::BadToken("its signature is wrong"),
            JwtFault::WrongIssuer => Self::BadToken("it has another issuer"),
            JwtFault::WrongAudience | JwtFault::WrongClient => {
                Self::BadToken("it is for another client")
            }
            JwtFault::BadClaim(_) => Self::BadToken("it lacks a required claim"),
            JwtFault::WrongType
            | JwtFault::WrongResource
            | JwtFault::Expired
            | JwtFault::TooEarly
            | JwtFault::TooLong => Self::BadToken("it cannot be checked"),
        }
    }
}

impl From<SigningFault> for OidcError {
    fn from(_fault: SigningFault) -> Self {
        Self::BadAnswer("narthex cannot prove itself to it")
    }
}
