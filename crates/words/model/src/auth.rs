//! The configured authentication of requests to a server.

use std::collections::BTreeSet;

use crate::{Secret, SecretName, WorkspaceId};

/// The authentication of requests to a server.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerAuth {
    /// No authentication, as the entry says (E112).
    None,
    /// The entry names no authentication. Requests have none until the server asks for a sign-in.
    Unstated,
    /// One header on every request (E22).
    ApiKey(ApiKeyAuth),
    /// Sign-in by OAuth.
    OAuth(Box<OAuth>),
}

impl ServerAuth {
    /// The mode's spelling in configuration and tables.
    #[must_use]
    pub fn mode(&self) -> &'static str {
        match self {
            Self::None | Self::Unstated => "none",
            Self::ApiKey(_) => "apiKey",
            Self::OAuth(oauth) => oauth.mode(),
        }
    }

    /// True if a person signs in, so that the resulting connection is theirs alone (X-M14).
    #[must_use]
    pub fn is_per_user(&self) -> bool {
        matches!(self, Self::OAuth(oauth) if matches!(**oauth, OAuth::AuthorizationCode(_)))
    }

    /// True if a person must sign in first: no proof of a consent exists yet (D17).
    #[must_use]
    pub fn awaits_consent(&self) -> bool {
        match self {
            Self::None | Self::Unstated | Self::ApiKey(_) => false,
            Self::OAuth(oauth) => {
                matches!(&**oauth, OAuth::AuthorizationCode(auth) if auth.tokens.is_none())
            }
        }
    }

    /// The secrets of the authentication, which must never be shown (D22).
    pub(crate) fn secrets(&self) -> Vec<&Secret> {
        match self {
            Self::None | Self::Unstated => Vec::new(),
            Self::ApiKey(auth) => auth.key.iter().collect(),
            Self::OAuth(oauth) => match &**oauth {
                OAuth::ClientCredentials(auth) => vec![&auth.client_secret],
                OAuth::AuthorizationCode(auth) => {
                    let client = auth.client.iter().filter_map(|client| client.secret.as_ref());
                    let tokens = auth.tokens.iter();
                    let tokens = tokens.flat_map(|tokens| {
                        std::iter::once(&tokens.access_token).chain(&tokens.refresh_token)
                    });
                    client.chain(tokens).collect()
                }
            },
        }
    }
}

/// A static key in a header (E22, E62).
#[derive(Debug, Clone, PartialEq)]
pub struct ApiKeyAuth {
    /// Default `Authorization`.
    pub header_name: String,
    /// Put before the key; default empty.
    pub value_prefix: String,
    /// `None` gives an `error` row of kind `auth_unavailable` without any network call.
    pub key: Option<Secret>,
}

/// The source of a configured header's value, by names alone: for messages to operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderSource {
    /// The header.
    pub header: String,
    /// The key of the configuration that has its value, such as `config.api_key`.
    pub key: String,
    /// The secret that is its value.
    pub secret: Option<SecretName>,
    /// The variables of the daemon that its value has.
    pub variables: Vec<String>,
    /// The workspace of the secret.
    pub workspace: Option<WorkspaceId>,
}

/// The requested OAuth scopes. A set, as their order means nothing (E49).
pub type OAuthScopes = BTreeSet<String>;

/// One of the two ways to sign in by OAuth.
#[derive(Debug, Clone, PartialEq)]
pub enum OAuth {
    /// Without a person (E24).
    ClientCredentials(ClientCredentialsAuth),
    /// A sign-in by a person in a browser (E25).
    AuthorizationCode(AuthorizationCodeAuth),
}

impl OAuth {
    /// The mode's spelling in configuration and tables.
    #[must_use]
    pub fn mode(&self) -> &'static str {
        match self {
            Self::ClientCredentials(_) => "clientCredentials",
            Self::AuthorizationCode(_) => "authorizationCode",
        }
    }
}

/// An exchange of a client's id and secret for a token (E24).
#[derive(Debug, Clone, PartialEq)]
pub struct ClientCredentialsAuth {
    /// The token endpoint, as an absolute URL.
    pub token_url: String,
    /// The client's id.
    pub client_id: String,
    /// The client's secret.
    pub client_secret: Secret,
    /// The requested scopes.
    pub scopes: OAuthScopes,
    /// The audience of the token, as some authorization servers want it.
    pub audience: Option<String>,
    /// The resource of the token, as an absolute URL (RFC 8707).
    pub resource: Option<String>,
}

/// A sign-in in a browser (E25, E26). Nothing is required.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuthorizationCodeAuth {
    /// The requested scopes.
    pub scopes: OAuthScopes,
    /// A client that is registered already.
    pub client: Option<OAuthClient>,
    /// Tokens that exist already.
    pub tokens: Option<OAuthTokens>,
    /// The redirect URI of the browser, as an absolute URL.
    pub redirect_uri: Option<String>,
    /// The resource of the token, as an absolute URL (RFC 8707).
    pub resource: Option<String>,
}

/// A client that an operator has registered.
#[derive(Debug, Clone, PartialEq)]
pub struct OAuthClient {
    /// The client's id.
    pub id: String,
    /// The client's secret; public clients have none.
    pub secret: Option<Secret>,
}

/// Tokens from an earlier sign-in.
#[derive(Debug, Clone, PartialEq)]
pub struct OAuthTokens {
    /// Goes with every request.
    pub access_token: Secret,
    /// Gets the next access token.
    pub refresh_token: Option<Secret>,
    /// When the access token ends, in seconds since 1970 (E96).
    pub expires_at: Option<u64>,
}
