//! Tokens of a server in exchange for a person's identity at the company's provider.

use serde::Serialize;

use super::client::OAuthClient;
use crate::Secret;

/// An exchange of a person's identity for a token of the server, without a browser (RFC 8693).
#[derive(Debug, Clone, PartialEq)]
pub struct OAuthExchange {
    /// The result of the exchange at the provider.
    pub kind: ExchangeKind,
    /// The identity, and the provider that exchanges it.
    pub identity: ExchangeIdentity,
    /// The audience of the token, as some providers want it. An identity assertion has the
    /// authorization server of the server as its audience.
    pub audience: Option<String>,
    /// The way to a token after the exchange was refused for good; `None`: there is no other way.
    pub fallback: Option<ExchangeFallback>,
}

/// The result of the exchange at the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ExchangeKind {
    /// An identity assertion (ID-JAG), for which the server's authorization server gives a token.
    IdJag,
    /// The token of the server itself.
    Token,
}

impl ExchangeKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::IdJag, Self::Token];

    /// The kind's spelling in the configuration.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::IdJag => "idJag",
            Self::Token => "token",
        }
    }
}

/// The way to a token after an exchange was refused for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ExchangeFallback {
    /// A person signs in at the authorization server of the server, in a browser.
    SignIn,
}

impl ExchangeFallback {
    /// All ways.
    pub const ALL: [Self; 1] = [Self::SignIn];

    /// The way's spelling in the configuration.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::SignIn => "signIn",
        }
    }
}

/// The identity of a person at the company's provider.
#[derive(Debug, Clone, PartialEq)]
pub enum ExchangeIdentity {
    /// The identity that narthex has of the human who drives the run, from their last sign-in with
    /// this login provider.
    Login(String),
    /// Tokens of the settings.
    Given(Box<GivenIdentity>),
}

impl ExchangeIdentity {
    /// The name of the login provider; `None` for tokens of the settings.
    #[must_use]
    pub fn provider(&self) -> Option<&str> {
        match self {
            Self::Login(provider) => Some(provider),
            Self::Given(_) => None,
        }
    }
}

/// The identity of a person as tokens of the settings. One of the two tokens is there.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenIdentity {
    /// The provider's token endpoint, as an absolute URL.
    pub token_url: String,
    /// The client at the provider.
    pub client: OAuthClient,
    /// The person's ID token.
    pub id_token: Option<Secret>,
    /// The person's refresh token at the provider, which gives the next ID token.
    pub refresh_token: Option<Secret>,
}

impl OAuthExchange {
    /// The tokens of the settings.
    #[must_use]
    pub fn given(&self) -> Option<&GivenIdentity> {
        match &self.identity {
            ExchangeIdentity::Login(_) => None,
            ExchangeIdentity::Given(given) => Some(given),
        }
    }

    /// The tokens of the settings, to be replaced.
    pub(crate) fn given_mut(&mut self) -> Option<&mut GivenIdentity> {
        match &mut self.identity {
            ExchangeIdentity::Login(_) => None,
            ExchangeIdentity::Given(given) => Some(given),
        }
    }

    /// The secrets of the settings.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.given().into_iter().flat_map(|given| {
            given.client.secret.iter().chain(&given.id_token).chain(&given.refresh_token)
        })
    }
}
