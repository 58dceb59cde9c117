//! Reasons why a sign-in fails.

use narthex_http_client::ClientError;
use narthex_login::{PasskeyError, PendingFull, SessionEnd, oidc::OidcError};
use narthex_model::{ErrorKind, PrincipalName, command::narthex};

/// An error of a sign-in that has signed no human in and changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// Sign-in is off.
    #[error("no human signs in at this process; start the daemon with `{}`", narthex("up", &[]))]
    NoSignIn,
    /// The link is unknown, used or expired. The text does not say which.
    #[error("this link was used already or is too old; ask for a new one")]
    DeadLink,
    /// Only humans can have links.
    #[error("only humans that are not disabled can sign in")]
    NoHuman,
    /// The address has no host name, to which passkeys belong.
    #[error(
        "passkeys need a host name, and browsers reach this daemon by an IP address; set \
         `http.public_url` to a name, such as http://localhost:7717"
    )]
    NoPasskeys,
    /// The ceremony was answered before, or has expired.
    #[error("this sign-in step expired or was already used; try again")]
    NoCeremony,
    /// No human has this passkey (any more), or its owner is disabled.
    #[error("this passkey is not registered here")]
    UnknownPasskey,
    /// The person has no such passkey.
    #[error("there is no such passkey")]
    NoSuchPasskey,
    /// The human has no such session.
    #[error("there is no such sign-in; reload the page")]
    NoSuchSession,
    /// Each tried name belongs to another principal.
    #[error("no free name was found for this account; try again")]
    NoName,
    /// A human has the passkey already.
    #[error("this passkey is registered already")]
    PasskeyTaken,
    /// The link comes from the holder of the admin token, which proves no human, although humans
    /// can prove to be human here.
    #[error(
        "this sign-in adds no passkey, since its link proves no human. Sign in with a passkey or \
         at a provider. If you have neither, ask an operator who does: the links that they make at \
         {sign_in} add one passkey each"
    )]
    AddsNoPasskey {
        /// The address of the sign-in page.
        sign_in: String,
    },
    /// A program with the admin token must not remove a human's proof.
    #[error(
        "only a human who signed in with a passkey or at a provider can remove a passkey: sign in \
         at {sign_in}. If all passkeys are lost, start the daemon with \
         `NARTHEX_GRANTS_REQUIRE_PROOF=false {}`, and try again",
        narthex("up", &[])
    )]
    NotProved {
        /// The address of the sign-in page.
        sign_in: String,
    },
    /// The passkey was used twice at the same time, which an honest one is not.
    #[error("this passkey was used twice at once; try again")]
    PasskeyRaced,
    /// A ceremony failed.
    #[error(transparent)]
    Passkey(#[from] PasskeyError),
    /// Too many ceremonies are open.
    #[error(transparent)]
    Pending(#[from] PendingFull),
    /// No provider has this name.
    #[error("there is no sign-in provider of this name")]
    UnknownProvider,
    /// The provider refuses, or its answer is not credible.
    #[error(transparent)]
    Oidc(#[from] OidcError),
    /// The provider cannot be reached.
    #[error("the sign-in provider cannot be reached")]
    Unreachable(#[source] ClientError),
    /// The provider takes too long.
    #[error("the sign-in provider takes too long")]
    TooSlow,
    /// The provider answers with an error.
    #[error("the sign-in provider answered with status {0}")]
    Status(u16),
    /// The human is disabled, and gets no link; operators see this error.
    #[error(
        "`{0}` is disabled, so no link can sign them in; enable the account with `{command}`",
        command = narthex("users disable {} --undo", &[.0])
    )]
    NoLink(PrincipalName),
    /// The human is disabled.
    #[error("this account is disabled; ask an operator")]
    Disabled,
    /// The session has ended.
    #[error(transparent)]
    Ended(#[from] SessionEnd),
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes")]
    Randomness(#[source] getrandom::Error),
}

impl LoginError {
    /// The kind of failure (D24).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSignIn
            | Self::NoPasskeys
            | Self::PasskeyTaken
            | Self::NoName
            | Self::NoHuman => ErrorKind::Conflict,
            Self::UnknownProvider | Self::NoSuchPasskey | Self::NoSuchSession => {
                ErrorKind::NotFound
            }
            Self::DeadLink | Self::NoCeremony | Self::UnknownPasskey | Self::PasskeyRaced => {
                ErrorKind::Unauthenticated
            }
            Self::Passkey(error) => error.kind(),
            Self::Pending(PendingFull::Full) => ErrorKind::Exhausted,
            Self::Oidc(error) => error.kind(),
            Self::TooSlow => ErrorKind::Timeout,
            Self::Pending(PendingFull::NoRandomness(_))
            | Self::Unreachable(_)
            | Self::Status(_)
            | Self::Randomness(_) => ErrorKind::Unavailable,
            Self::Disabled
            | Self::NoLink(_)
            | Self::AddsNoPasskey { .. }
            | Self::NotProved { .. } => ErrorKind::Denied,
            Self::Ended(end) => end.kind(),
        }
    }
}
