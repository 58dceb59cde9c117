//! Settings of sign-ins, from the words of the configuration.
//!
//! Presets of known providers are applied later, once the addresses are known
//! ([`Settings::with_preset`]).

#[cfg(test)]
mod tests;

use std::sync::Arc;

use narthex_model::{
    AuthorizationCodeAuth, ClientCredentialsAuth, ClientProof, ErrorKind, OAuthPkce,
    OAuthRegistration, OAuthResource, OAuthScopes, Secret, SecretMethod,
};
use url::Url;

use super::{
    AuthMethod, ClientIdentity, PkceRule, RegistrationRule, ResourceRule,
    SETTING_AUTHORIZATION_SERVER, SETTING_SCOPES, Settings,
};
use crate::{
    address::{AddressFault, Reach},
    jwt::{KeyFault, SigningKey},
    metadata::ServerMetadata,
    scopes::{Scopes, ScopesFault},
};

/// Name of the setting of the token endpoint, for messages.
pub const SETTING_TOKEN_URL: &str = "auth.tokenUrl";
/// Name of the setting of a client's private key, for messages.
pub const SETTING_PRIVATE_KEY: &str = "auth.privateKey";
/// Name of the setting of the algorithm of a private key, for messages.
pub const SETTING_ALGORITHM: &str = "auth.algorithm";

/// The longest name of an algorithm that is shown.
const NAME_MAX: usize = 16;

/// A setting that cannot be used. Its secrets are not shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfiguredFault {
    /// An address that must not get credentials.
    #[error("{setting} cannot be used: {fault}; correct the address")]
    Address {
        /// The setting.
        setting: &'static str,
        /// The reason.
        fault: AddressFault,
    },
    /// Scopes that cannot be sent.
    #[error("{SETTING_SCOPES} cannot be used: {0}; correct the list")]
    Scopes(ScopesFault),
    /// A private key that cannot sign.
    #[error("{SETTING_PRIVATE_KEY} cannot be used: {0}")]
    Key(KeyFault),
    /// An algorithm that the private key does not have.
    #[error(
        "{SETTING_ALGORITHM} is `{named}`, but the private key signs with {known}; remove \
         {SETTING_ALGORITHM}, or give another key"
    )]
    Algorithm {
        /// The algorithm of the settings, as it may be shown.
        named: String,
        /// The algorithm of the key.
        known: &'static str,
    },
}

impl ConfiguredFault {
    /// The kind of the error: the settings must be corrected.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Address { .. } | Self::Scopes(_) | Self::Key(_) | Self::Algorithm { .. } => {
                ErrorKind::Invalid
            }
        }
    }
}

impl Settings {
    /// The settings of a sign-in by a person, before presets.
    ///
    /// # Errors
    /// When an address or a scope cannot be used.
    pub fn of(auth: &AuthorizationCodeAuth) -> Result<Self, ConfiguredFault> {
        let AuthorizationCodeAuth {
            scopes,
            client,
            tokens: _,
            redirect_uri: _,
            resource,
            registration,
            pkce,
            refresh_scope,
            client_name,
            authorization_server,
            legacy,
            keep_alive: _,
            exchange: _,
            auth_error: _,
            grant: _,
        } = auth;
        let client = client.as_ref();
        Ok(Self {
            authorization_server: issuer(authorization_server.as_deref())?,
            pkce: pkce.map(|pkce| match pkce {
                OAuthPkce::Require => PkceRule::Require,
                OAuthPkce::Assume => PkceRule::Assume,
            }),
            resource: resource.as_ref().map(|resource| match resource {
                OAuthResource::Omit => ResourceRule::Omit,
                OAuthResource::Url(url) => ResourceRule::Fixed(url.clone()),
            }),
            refresh_scope: *refresh_scope,
            scopes: scopes_of(scopes)?,
            registration: registration.map_or(RegistrationRule::Auto, |way| match way {
                OAuthRegistration::Auto => RegistrationRule::Auto,
                OAuthRegistration::Preregistered => RegistrationRule::Preregistered,
                OAuthRegistration::Cimd => RegistrationRule::Cimd,
                OAuthRegistration::Dcr => RegistrationRule::Dcr,
            }),
            client: client
                .map(|known| ClientIdentity::new(known.id.clone(), known.secret.clone(), None)),
            client_name: client_name.clone(),
            legacy: *legacy,
        })
    }
}

/// Settings of a client that gets tokens without a person (RFC 6749, 4.4).
#[derive(Debug, Clone)]
pub struct ClientCredentials {
    /// The settings of discovery and of requests, before presets. They have no client: it is
    /// [`Self::client_at`].
    pub settings: Settings,
    /// The token endpoint; `None` finds it through the server's metadata.
    pub token_url: Option<Url>,
    /// The audience of the tokens, as some authorization servers want it.
    pub audience: Option<String>,
    client: ClientIdentity,
    pins_method: bool,
}

impl ClientCredentials {
    /// Reads the settings.
    ///
    /// # Errors
    /// When an address, a scope or the private key cannot be used.
    pub fn of(auth: &ClientCredentialsAuth) -> Result<Self, ConfiguredFault> {
        let ClientCredentialsAuth {
            token_url,
            client_id,
            proof,
            scopes,
            audience,
            resource,
            authorization_server,
            auth_error: _,
            grant: _,
        } = auth;
        let token_url = match token_url {
            Some(url) => Some(address(SETTING_TOKEN_URL, url)?),
            None => None,
        };
        let settings = Settings {
            authorization_server: issuer(authorization_server.as_deref())?,
            resource: resource.clone().map(ResourceRule::Fixed),
            scopes: scopes_of(scopes)?,
            ..Settings::default()
        };
        let (client, pins_method) = match proof {
            ClientProof::Secret { secret, method } => {
                let client = ClientIdentity::new(client_id.clone(), Some(secret.clone()), None);
                let pinned = method.map(|method| match method {
                    SecretMethod::Basic => AuthMethod::Basic,
                    SecretMethod::Post => AuthMethod::Post,
                });
                (client.registered_as(pinned.unwrap_or_default()), pinned.is_some())
            }
            ClientProof::Key { pem, key_id, algorithm } => {
                let key = signing_key(pem, key_id.clone(), algorithm.as_deref())?;
                (ClientIdentity::with_key(client_id.clone(), Arc::new(key)), true)
            }
        };
        Ok(Self { settings, token_url, audience: audience.clone(), client, pins_method })
    }

    /// The client with its method of authentication. Without a pinned one, the server's metadata
    /// decides; a token endpoint without metadata gets the secret in the form (E97).
    #[must_use]
    pub fn client_at(&self, metadata: Option<&ServerMetadata>) -> ClientIdentity {
        let client = self.client.clone();
        match metadata {
            _ if self.pins_method => client,
            Some(metadata) => {
                client.listed(metadata.token_endpoint_auth_methods_supported.as_deref())
            }
            None => client.registered_as(AuthMethod::Post),
        }
    }
}

/// Reads a private key. Lines may end in `\n` as two characters, as in files of variables.
fn signing_key(
    pem: &Secret,
    id: Option<String>,
    algorithm: Option<&str>,
) -> Result<SigningKey, ConfiguredFault> {
    let pem = Secret::new(pem.expose().replace("\\n", "\n"));
    let key = SigningKey::from_pem(&pem, id).map_err(ConfiguredFault::Key)?;
    match algorithm {
        Some(named) if named != key.algorithm() => {
            Err(ConfiguredFault::Algorithm { named: shown(named), known: key.algorithm() })
        }
        Some(_) | None => Ok(key),
    }
}

/// The name of an algorithm as it may be shown.
fn shown(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).take(NAME_MAX).collect()
}

fn issuer(text: Option<&str>) -> Result<Option<String>, ConfiguredFault> {
    let Some(text) = text else { return Ok(None) };
    // The issuer is compared as it is written.
    address(SETTING_AUTHORIZATION_SERVER, text).map(|_url| Some(text.to_owned()))
}

/// Reads an address that gets credentials: https, or http on loopback.
pub(super) fn address(setting: &'static str, text: &str) -> Result<Url, ConfiguredFault> {
    let fault = |fault| ConfiguredFault::Address { setting, fault };
    let url = Url::parse(text).map_err(|_error| fault(AddressFault::NotUrl))?;
    Reach::of(&url).check(&url).map_err(fault)?;
    Ok(url)
}

/// Reads scopes; an empty list leaves the choice to the server.
fn scopes_of(scopes: &OAuthScopes) -> Result<Option<Scopes>, ConfiguredFault> {
    let text = scopes.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
    let scopes = Scopes::read(&text).map_err(ConfiguredFault::Scopes)?;
    Ok((!scopes.is_empty()).then_some(scopes))
}
