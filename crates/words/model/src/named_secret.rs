//! Secrets that a local file names by `${secret:NAME}`, and their places in a server's definition.

use std::sync::Arc;

use crate::{Secret, SecretName};

/// A secret that an entry names, and the place of its value (D38).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSecret {
    /// The secret, of workspace `default`.
    pub name: SecretName,
    /// The key in the file, such as `servers.billing.auth.key`.
    pub key: String,
    /// The place of the value in the definition.
    pub place: SecretPlace,
    /// The value that the place holds; `None` while it holds the text of the file.
    pub opened: Option<SecretId>,
}

/// A place in a definition that may hold a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPlace {
    /// A variable of the program's environment.
    Variable(String),
    /// A header of each request.
    Header(String),
    /// A field of the authentication.
    Auth(AuthSecret),
}

/// A field of the authentication that may hold a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthSecret {
    /// The key of mode `apiKey`.
    Key,
    /// The secret of an OAuth client.
    ClientSecret,
    /// The private key of an OAuth client.
    PrivateKey,
    /// The access token of an earlier sign-in.
    AccessToken,
    /// The refresh token of an earlier sign-in.
    RefreshToken,
    /// The secret of the client at the company's provider, of an exchange.
    ProviderSecret,
    /// The ID token of an exchange.
    IdToken,
    /// The refresh token at the company's provider, of an exchange.
    ProviderRefreshToken,
}

/// The identity of one value of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretId {
    /// The name across all workspaces.
    pub key: Arc<str>,
    /// The version of the value.
    pub version: u64,
}

/// The value of a secret, with its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSecret {
    /// The value.
    pub value: Secret,
    /// The identity.
    pub id: SecretId,
}

impl NamedSecret {
    /// True if the value travels in a header of HTTP.
    #[must_use]
    pub fn is_in_header(&self) -> bool {
        matches!(self.place, SecretPlace::Header(_) | SecretPlace::Auth(AuthSecret::Key))
    }
}

impl AuthSecret {
    /// The field's key in the configuration.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::ClientSecret | Self::ProviderSecret => "clientSecret",
            Self::PrivateKey => "privateKey",
            Self::AccessToken => "accessToken",
            Self::RefreshToken | Self::ProviderRefreshToken => "refreshToken",
            Self::IdToken => "idToken",
        }
    }
}
