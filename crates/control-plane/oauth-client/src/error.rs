//! Failures of sign-ins: the failed step, the address, and the remedy. None shows a secret.

use std::{sync::Arc, time::Duration};

use narthex_model::{ErrorKind, command::narthex};
use narthex_oauth::client::{
    AuthorizationError, CallbackFault, ConfiguredFault, DeviceError, DiscoveryError, Refusal,
    RegistrationError, RequestFault, WayError,
};
use url::Url;

use crate::store::StoreFault;

/// The reason why a sign-in, or the renewal of its tokens, failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SignInError {
    /// The address of the server cannot be read.
    #[error("the address of the server `{server}` cannot be used; correct its `url`")]
    BadUrl {
        /// The server.
        server: String,
    },
    /// The settings cannot be used.
    #[error(transparent)]
    Settings(#[from] ConfiguredFault),
    /// The entry has no sign-in by a person.
    #[error(
        "no person can sign in to `{server}`: its entry has `auth.mode: {mode}`; set it to \
         \"authorizationCode\", or remove `auth`"
    )]
    NoPerson {
        /// The server.
        server: String,
        /// The mode of the entry.
        mode: &'static str,
    },
    /// The tokens come from an exchange, and not from a sign-in at the server.
    #[error(
        "no person signs in to `{server}` itself: narthex gets its tokens for the identity of the \
         person at the company's provider; set `auth.exchange.fallback` to \"signIn\", or remove \
         `auth.exchange`, to sign in to the server"
    )]
    ByExchange {
        /// The server.
        server: String,
    },
    /// The daemon has no such login provider, or keeps no identities of it.
    #[error(
        "`{server}` needs the sign-in of each human with `{provider}`, but the daemon keeps none: \
         set `keep_identity = true` in [signin.oidc.{provider}], or correct \
         auth.exchange.identityProvider"
    )]
    NoProvider {
        /// The server.
        server: String,
        /// The login provider.
        provider: String,
    },
    /// The operator has not listed the server as one that may have such tokens.
    #[error(
        "`{server}` may have no tokens for the identities of `{provider}`: the operator of the \
         daemon has to add {origin} to `exchange_servers` in [signin.oidc.{provider}]"
    )]
    NotListed {
        /// The server.
        server: String,
        /// The login provider.
        provider: String,
        /// The server's origin.
        origin: String,
    },
    /// Narthex has no identity of the human at the login provider.
    #[error(
        "`{server}` needs the sign-in of the human who drives the run with `{provider}`: sign in \
         to narthex{} with `{provider}`, in a browser, and call again",
        at(page.as_deref())
    )]
    NoIdentity {
        /// The server.
        server: String,
        /// The login provider.
        provider: String,
        /// The page at which the human signs in to narthex.
        page: Option<Box<Url>>,
    },
    /// The entry names no client that could redeem an assertion.
    #[error(
        "`{server}` needs a client at {issuer} that redeems assertions of the company's provider; \
         register one there, and set auth.client.clientId"
    )]
    NoClient {
        /// The server.
        server: String,
        /// The authorization server.
        issuer: String,
    },
    /// The identity of the settings has ended.
    #[error(
        "the identity of the person for `{server}` has ended; set another ID token or refresh \
         token in `auth.exchange`"
    )]
    IdentityEnded {
        /// The server.
        server: String,
    },
    /// The sign-in of one person was not started in that person's browser.
    #[error(
        "a person signs in to `{server}` for themselves: start the sign-in in their own browser, \
         on the page of their connections"
    )]
    NoSession {
        /// The server.
        server: String,
    },
    /// The server answers without a sign-in, and names no authorization server.
    #[error(
        "`{server}` answers requests without a sign-in, and names no authorization server; set \
         `auth.mode` to \"none\""
    )]
    NotAsked {
        /// The server.
        server: String,
    },
    /// No authorization server was found.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// There is no way to a client id.
    #[error(transparent)]
    Way(#[from] WayError),
    /// The registration failed.
    #[error(transparent)]
    Registration(#[from] RegistrationError),
    /// The authorization cannot be started, or its answer cannot be used.
    #[error(transparent)]
    Authorization(Arc<AuthorizationError>),
    /// The answer cannot be read.
    #[error(transparent)]
    Callback(#[from] CallbackFault),
    /// The answer belongs to no open attempt.
    #[error(
        "no open sign-in belongs to this answer: it has ended after 10 minutes, was finished \
         already, or was replaced by a later one; begin it again"
    )]
    NoAttempt {
        /// The server, if the answer names it.
        server: String,
    },
    /// The authorization server refuses the scopes; the next attempt asks for none (Q19).
    #[error(
        "the authorization server refuses the requested scopes ({requested}); sign in again at \
         {url}, which leaves the choice to the server"
    )]
    OtherScopes {
        /// The refused scopes.
        requested: String,
        /// The address of the next attempt.
        url: Box<Url>,
    },
    /// The token endpoint refused.
    #[error("tokens of `{server}` cannot be had from {endpoint}: {refusal}{}", remedy(refusal))]
    Token {
        /// The server.
        server: String,
        /// The token endpoint, as it may be shown.
        endpoint: String,
        /// The refusal.
        refusal: Refusal,
    },
    /// A request cannot be made.
    #[error("the request for tokens of `{server}` cannot be made: {fault}")]
    Request {
        /// The server.
        server: String,
        /// The reason.
        fault: RequestFault,
    },
    /// The server names another authorization server, at which the client of the settings is not
    /// known to be registered (C21).
    #[error(
        "`{server}` names another authorization server ({now}) than the one of its tokens \
         ({before}); register narthex there and set auth.client.clientId, or sign out with \
         `{command}` if the client of the settings is registered at both",
        command = narthex("mcp sign-out {}", &[.server])
    )]
    IssuerMoved {
        /// The server.
        server: String,
        /// The authorization server of the tokens, as it may be shown.
        before: String,
        /// The one that the server names, as it may be shown.
        now: String,
    },
    /// The consent on another device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Too many consents on other devices are open.
    #[error("too many sign-ins on other devices are open; wait until one has ended")]
    TooManyDevices,
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes")]
    NoRandomness,
    /// An access token has characters that no header can have.
    #[error("the access token of `{server}` has characters that cannot be sent; give another one")]
    BadToken {
        /// The server.
        server: String,
    },
    /// A stored value cannot be read.
    #[error(
        "the stored sign-in of `{server}` cannot be read; sign in anew with `{command}`",
        command = narthex("mcp reauthorize {}", &[.server])
    )]
    Unreadable {
        /// The server.
        server: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// Another process renews the tokens for too long.
    #[error("another process renews the tokens of `{server}`; try again")]
    Busy {
        /// The server.
        server: String,
    },
    /// The process is stopping.
    #[error("narthex is stopping")]
    Stopped,
}

fn remedy(refusal: &Refusal) -> &'static str {
    match refusal.kind() {
        ErrorKind::Unavailable => "; try again later",
        ErrorKind::Unauthenticated => "; sign in again",
        _ => "; check the client's id, its secret and the scopes of the entry",
    }
}

fn at(page: Option<&Url>) -> String {
    page.map(|page| format!(" at {page}")).unwrap_or_default()
}

impl SignInError {
    /// The error's kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::BadUrl { .. }
            | Self::NoPerson { .. }
            | Self::ByExchange { .. }
            | Self::NoClient { .. }
            | Self::NoProvider { .. }
            | Self::NotAsked { .. }
            | Self::NotListed { .. }
            | Self::Way(_)
            | Self::IssuerMoved { .. }
            | Self::BadToken { .. } => ErrorKind::Invalid,
            Self::Settings(fault) => fault.kind(),
            Self::Discovery(error) => error.kind(),
            Self::Registration(error) => error.kind(),
            Self::Authorization(error) => error.kind(),
            Self::Device(error) => error.kind(),
            Self::Token { refusal, .. } => refusal.kind(),
            Self::Callback(_)
            | Self::NoAttempt { .. }
            | Self::NoSession { .. }
            | Self::NoIdentity { .. }
            | Self::IdentityEnded { .. }
            | Self::OtherScopes { .. }
            | Self::Unreadable { .. } => ErrorKind::Unauthenticated,
            Self::Request { .. } => ErrorKind::Invalid,
            Self::TooManyDevices => ErrorKind::Exhausted,
            Self::NoRandomness | Self::Store(_) | Self::Busy { .. } | Self::Stopped => {
                ErrorKind::Unavailable
            }
        }
    }

    /// The address at which the same person should be sent on at once (Q19).
    #[must_use]
    pub fn goes_on_at(&self) -> Option<&Url> {
        match self {
            Self::OtherScopes { url, .. } => Some(url),
            _ => None,
        }
    }

    /// The page at which the human of the server can end the failure.
    #[must_use]
    pub fn page(&self) -> Option<&Url> {
        match self {
            Self::NoIdentity { page, .. } => page.as_deref(),
            _ => None,
        }
    }

    /// The delay that the authorization server asks for.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Token { refusal, .. } => refusal.retry_after,
            Self::Registration(RegistrationError::Unavailable { retry_after, .. }) => *retry_after,
            _ => None,
        }
    }
}

impl From<AuthorizationError> for SignInError {
    fn from(error: AuthorizationError) -> Self {
        Self::Authorization(Arc::new(error))
    }
}
