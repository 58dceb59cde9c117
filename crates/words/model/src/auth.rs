//! The configured authentication of requests to a server.

mod address;
mod client;
mod exchange;

use std::collections::BTreeSet;

pub use address::{CredentialAddressFault, check_credential_address};
pub use client::OAuthClient;
pub use exchange::{
    ExchangeFallback, ExchangeIdentity, ExchangeKind, GivenIdentity, OAuthExchange,
};

use serde::{Serialize, Serializer};

use crate::{AuthErrorPattern, Secret, SecretName, ServerId, WorkspaceId};

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

    /// True if requests have no credential by this setting: it is missing, or asks for none.
    #[must_use]
    pub fn sends_nothing(&self) -> bool {
        match self {
            Self::None | Self::Unstated => true,
            Self::ApiKey(_) | Self::OAuth(_) => false,
        }
    }

    /// True if a person signs in, so that the resulting connection is theirs alone (X-M14).
    #[must_use]
    pub fn is_per_user(&self) -> bool {
        matches!(self, Self::OAuth(oauth) if matches!(**oauth, OAuth::AuthorizationCode(_)))
    }

    /// The grant of a server of the catalog; `None` if the grant is the one of the row's alias.
    #[must_use]
    pub fn grant(&self) -> Option<&SharedGrant> {
        match self {
            Self::None | Self::Unstated | Self::ApiKey(_) => None,
            Self::OAuth(oauth) => match &**oauth {
                OAuth::ClientCredentials(auth) => auth.grant.as_ref(),
                OAuth::AuthorizationCode(auth) => auth.grant.as_ref(),
            },
        }
    }

    /// The tool error that counts as a refused token.
    #[must_use]
    pub fn auth_error(&self) -> Option<&AuthErrorPattern> {
        match self {
            Self::None | Self::Unstated | Self::ApiKey(_) => None,
            Self::OAuth(oauth) => match &**oauth {
                OAuth::ClientCredentials(auth) => auth.auth_error.as_ref(),
                OAuth::AuthorizationCode(auth) => auth.auth_error.as_ref(),
            },
        }
    }

    /// Sets the grant of a server of the catalog. Does nothing without OAuth.
    pub fn set_grant(&mut self, grant: SharedGrant) {
        match self {
            Self::None | Self::Unstated | Self::ApiKey(_) => {}
            Self::OAuth(oauth) => match &mut **oauth {
                OAuth::ClientCredentials(auth) => auth.grant = Some(grant),
                OAuth::AuthorizationCode(auth) => auth.grant = Some(grant),
            },
        }
    }

    /// True if a person must sign in first: no proof of a consent exists yet (D17).
    #[must_use]
    pub fn awaits_consent(&self) -> bool {
        match self {
            Self::None | Self::Unstated | Self::ApiKey(_) => false,
            Self::OAuth(oauth) => match &**oauth {
                OAuth::ClientCredentials(_) => false,
                OAuth::AuthorizationCode(auth) => auth.tokens.is_none() && auth.exchange.is_none(),
            },
        }
    }

    /// The exchange that gives tokens without a browser, if the settings have one.
    #[must_use]
    pub fn exchange(&self) -> Option<&OAuthExchange> {
        match self {
            Self::None | Self::Unstated | Self::ApiKey(_) => None,
            Self::OAuth(oauth) => match &**oauth {
                OAuth::ClientCredentials(_) => None,
                OAuth::AuthorizationCode(auth) => auth.exchange.as_deref(),
            },
        }
    }

    /// Removes the sign-in in a browser that follows a refused exchange, for a process in which no
    /// person signs in.
    pub fn without_fallback(&mut self) {
        if let Self::OAuth(oauth) = self
            && let OAuth::AuthorizationCode(auth) = &mut **oauth
            && let Some(exchange) = &mut auth.exchange
        {
            exchange.fallback = None;
        }
    }

    /// The secrets of the authentication, which must never be shown (D22).
    pub(crate) fn secrets(&self) -> Vec<&Secret> {
        match self {
            Self::None | Self::Unstated => Vec::new(),
            Self::ApiKey(auth) => auth.key.iter().collect(),
            Self::OAuth(oauth) => match &**oauth {
                OAuth::ClientCredentials(auth) => vec![auth.proof.secret()],
                OAuth::AuthorizationCode(auth) => {
                    let client = auth.client.iter().filter_map(|client| client.secret.as_ref());
                    let tokens = auth.tokens.iter();
                    let tokens = tokens.flat_map(|tokens| {
                        std::iter::once(&tokens.access_token).chain(&tokens.refresh_token)
                    });
                    let exchange = auth.exchange.iter();
                    let exchange = exchange.flat_map(|exchange| exchange.secrets());
                    client.chain(tokens).chain(exchange).collect()
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

/// An exchange of a client's id and proof for a token (E24).
#[derive(Debug, Clone, PartialEq)]
pub struct ClientCredentialsAuth {
    /// The token endpoint, as an absolute URL. `None` finds it through the server's metadata.
    pub token_url: Option<String>,
    /// The client's id.
    pub client_id: String,
    /// The client's proof.
    pub proof: ClientProof,
    /// The requested scopes.
    pub scopes: OAuthScopes,
    /// The audience of the token, as some authorization servers want it.
    pub audience: Option<String>,
    /// The resource of the token, as an absolute URL (RFC 8707).
    pub resource: Option<String>,
    /// The issuer of the authorization server, instead of the one that the server names.
    pub authorization_server: Option<String>,
    /// The tool error that counts as a refused token. `None`: HTTP alone says so.
    pub auth_error: Option<AuthErrorPattern>,
    /// The grant of a server of the catalog. `None` takes the one of the row's alias.
    pub grant: Option<SharedGrant>,
}

/// The grant that all runs of a workspace share for one server of the catalog. Where humans sign
/// in, all runs of one human share it.
///
/// Aliases of runs are chosen freely, so that two servers may have one alias.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedGrant {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The server's name among the grants of the workspace.
    pub server: String,
}

/// The beginning of the names of grants of the catalog. It has a `/`, so that none is an alias.
const OF_CATALOG: &str = "catalog/";

impl SharedGrant {
    /// The grant of a server of the catalog.
    #[must_use]
    pub fn of_catalog(workspace: &WorkspaceId, id: &ServerId) -> Self {
        Self { workspace: workspace.clone(), server: Self::name_of(id.as_str()) }
    }

    /// The name of the grants of a server of the catalog.
    #[must_use]
    pub fn name_of(id: &str) -> String {
        format!("{OF_CATALOG}{id}")
    }

    /// The id of the server of the catalog whose grants have this name; `None` for the grant of an
    /// alias.
    #[must_use]
    pub fn catalog_id(name: &str) -> Option<&str> {
        name.strip_prefix(OF_CATALOG)
    }
}

/// The proof of a client that acts without a person.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientProof {
    /// A secret that client and authorization server share.
    Secret {
        /// The secret.
        secret: Secret,
        /// The place of the secret in requests. `None` leaves the choice to the server's metadata.
        method: Option<SecretMethod>,
    },
    /// A private key that signs assertions (RFC 7523).
    Key {
        /// The key, in PEM.
        pem: Secret,
        /// The key's name in the published set of keys (`kid`).
        key_id: Option<String>,
        /// The algorithm of the signatures. `None` takes the one of the key's type.
        algorithm: Option<String>,
    },
}

impl ClientProof {
    /// The secret part of the proof.
    #[must_use]
    pub fn secret(&self) -> &Secret {
        match self {
            Self::Secret { secret, method: _ } => secret,
            Self::Key { pem, key_id: _, algorithm: _ } => pem,
        }
    }

    /// The secret part of the proof, to be replaced.
    pub(crate) fn secret_mut(&mut self) -> &mut Secret {
        match self {
            Self::Secret { secret, method: _ } => secret,
            Self::Key { pem, key_id: _, algorithm: _ } => pem,
        }
    }

    /// The registered name of the method of client authentication, if the settings pin one.
    #[must_use]
    pub fn method(&self) -> Option<&'static str> {
        match self {
            Self::Secret { method, secret: _ } => method.map(SecretMethod::word),
            Self::Key { .. } => Some(PRIVATE_KEY_JWT),
        }
    }
}

/// The registered name of the proof by a private key.
pub const PRIVATE_KEY_JWT: &str = "private_key_jwt";

/// Registered names of the algorithms of private keys.
pub const KEY_ALGORITHMS: [&str; 2] = ["ES256", "RS256"];

/// The place of a client's secret in requests to the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum SecretMethod {
    /// The header `Authorization`.
    #[serde(rename = "client_secret_basic")]
    Basic,
    /// The form.
    #[serde(rename = "client_secret_post")]
    Post,
}

impl SecretMethod {
    /// All methods.
    pub const ALL: [Self; 2] = [Self::Basic, Self::Post];

    /// The registered name of the method.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
        }
    }
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
    /// The resource of the token (RFC 8707). `None` takes the discovered one.
    pub resource: Option<OAuthResource>,
    /// The way to a client id. `None` takes the first possible one.
    pub registration: Option<OAuthRegistration>,
    /// The rule for authorization servers that do not list S256. `None` takes the preset of a known
    /// provider, or else refuses such servers.
    pub pkce: Option<OAuthPkce>,
    /// True if refresh requests carry the scopes. `None` takes the preset of a known provider.
    pub refresh_scope: Option<bool>,
    /// The name of the client in registrations.
    pub client_name: Option<String>,
    /// The issuer of the authorization server, instead of the one that the server names.
    pub authorization_server: Option<String>,
    /// True if a server without metadata is tried as of MCP 2025-03-26.
    pub legacy: bool,
    /// True if idle grants are renewed before their refresh token ends.
    pub keep_alive: bool,
    /// The exchange that gives the tokens, in place of a sign-in at the authorization server.
    pub exchange: Option<Box<OAuthExchange>>,
    /// The tool error that counts as a refused token. `None`: HTTP alone says so.
    pub auth_error: Option<AuthErrorPattern>,
    /// The grants of a server of the catalog, one for each human. `None` takes the one of the row's
    /// alias.
    pub grant: Option<SharedGrant>,
}

/// The parameter `resource` of a sign-in (RFC 8707).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OAuthResource {
    /// Left out, for authorization servers that refuse it.
    Omit,
    /// An absolute URL.
    Url(String),
}

impl OAuthResource {
    /// The word of [`OAuthResource::Omit`] in the configuration.
    pub const OMIT: &'static str = "omit";

    /// The value's spelling in the configuration.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Omit => Self::OMIT,
            Self::Url(url) => url,
        }
    }
}

/// The spelling in the configuration.
impl Serialize for OAuthResource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The way to a client id at an authorization server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OAuthRegistration {
    /// The first possible of the others.
    Auto,
    /// The client id of the settings.
    Preregistered,
    /// A client id metadata document.
    Cimd,
    /// Dynamic client registration (RFC 7591).
    Dcr,
}

impl OAuthRegistration {
    /// All ways.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Preregistered, Self::Cimd, Self::Dcr];

    /// The way's spelling in the configuration.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Preregistered => "preregistered",
            Self::Cimd => "cimd",
            Self::Dcr => "dcr",
        }
    }
}

/// The rule for authorization servers that do not list S256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OAuthPkce {
    /// Refuse them.
    Require,
    /// Use S256 nevertheless.
    Assume,
}

impl OAuthPkce {
    /// All rules.
    pub const ALL: [Self; 2] = [Self::Require, Self::Assume];

    /// The rule's spelling in the configuration.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Require => "require",
            Self::Assume => "assume",
        }
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_of_settings_are_written_as_they_are_read() {
        for way in OAuthRegistration::ALL {
            assert_eq!(json!(way), way.word());
        }
        for rule in OAuthPkce::ALL {
            assert_eq!(json!(rule), rule.word());
        }
        for method in SecretMethod::ALL {
            assert_eq!(json!(method), method.word());
        }
        for kind in ExchangeKind::ALL {
            assert_eq!(json!(kind), kind.word());
        }
        for way in ExchangeFallback::ALL {
            assert_eq!(json!(way), way.word());
        }
        assert_eq!(json!(OAuthResource::Omit), "omit");
        assert_eq!(json!(OAuthResource::Url("https://x.example".into())), "https://x.example");
    }

    #[test]
    fn o92_the_grant_of_a_catalog_server_is_the_one_of_no_alias() {
        let grant = |workspace: &str, id: &str| {
            let workspace = WorkspaceId::new(workspace).unwrap();
            SharedGrant::of_catalog(&workspace, &ServerId::new(id).unwrap())
        };
        let one = grant("team", "orders");
        assert!(crate::Alias::new(&one.server).is_err(), "{}", one.server);
        assert_ne!(one, grant("other", "orders"));
        assert_ne!(one, grant("team", "order"));
        assert_eq!(SharedGrant::catalog_id(&one.server), Some("orders"));
        assert_eq!(SharedGrant::catalog_id("orders"), None);
    }
}
