//! A provider's metadata (OpenID Connect Discovery).

use serde::Deserialize;
use url::{Host, Url};

use super::{Client, OidcError};

/// The checked parts of a provider's metadata.
#[derive(Debug, Clone)]
pub struct Metadata {
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) jwks_uri: Url,
    /// True if its redirects carry `iss` (RFC 9207).
    pub(super) sends_issuer: bool,
    /// Methods of client authentication.
    pub(super) auth_methods: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Document {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    response_types_supported: Option<Vec<String>>,
}

impl Metadata {
    /// Reads the document at [`Client::metadata_url`].
    ///
    /// # Errors
    /// When the text cannot be read, names another issuer, or has addresses that a provider must
    /// not name (S9).
    pub fn read(client: &Client, body: &[u8]) -> Result<Self, OidcError> {
        let document: Document = serde_json::from_slice(body)
            .map_err(|_error| OidcError::BadMetadata("it is not an OpenID configuration"))?;
        // Letter by letter, or one provider could speak for another (S20).
        if document.issuer != client.issuer_text {
            return Err(OidcError::BadMetadata("its issuer differs from the one in the settings"));
        }
        let has_code = |types: &Vec<String>| types.iter().any(|one| one == "code");
        if document.response_types_supported.as_ref().is_some_and(|types| !has_code(types)) {
            return Err(OidcError::BadMetadata("it does not support the authorization code flow"));
        }
        Ok(Self {
            authorization_endpoint: endpoint(client, &document.authorization_endpoint)?,
            token_endpoint: endpoint(client, &document.token_endpoint)?,
            jwks_uri: endpoint(client, &document.jwks_uri)?,
            sends_issuer: document.authorization_response_iss_parameter_supported,
            auth_methods: document.token_endpoint_auth_methods_supported,
        })
    }

    /// The address of the provider's keys.
    #[must_use]
    pub fn jwks_uri(&self) -> &Url {
        &self.jwks_uri
    }
}

/// An address that the metadata names: of the issuer's scheme, and on the issuer's host or on one
/// with a public name.
fn endpoint(client: &Client, text: &str) -> Result<Url, OidcError> {
    let url = Url::parse(text)
        .map_err(|_error| OidcError::BadMetadata("one of its endpoints is not an address"))?;
    if url.scheme() != client.issuer.scheme() {
        return Err(OidcError::BadMetadata(
            "one of its endpoints has another scheme than the issuer",
        ));
    }
    let is_elsewhere = url.host() != client.issuer.host();
    let has_public_name = match url.host() {
        Some(Host::Domain(name)) => name.contains('.') && !name.ends_with(".localhost"),
        Some(Host::Ipv4(_) | Host::Ipv6(_)) | None => false,
    };
    if is_elsewhere && !has_public_name {
        return Err(OidcError::BadMetadata("one of its endpoints has no public host name"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(OidcError::BadMetadata(
            "one of its endpoints has a user name, password or fragment",
        ));
    }
    Ok(url)
}
