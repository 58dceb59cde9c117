//! A provider in the settings, and the rules that admit its persons.

use std::collections::BTreeMap;

use narthex_model::Secret;
use url::Url;

use super::{Identity, OidcError};
use crate::passkey::is_loopback;

/// Narthex as a client of one provider.
#[derive(Debug, Clone)]
pub struct Client {
    /// The provider's identifier, under which its metadata is found.
    pub issuer: Url,
    /// The identifier as written. It is compared letter by letter.
    pub issuer_text: String,
    /// Narthex's client id at the provider.
    pub client_id: String,
    /// Narthex's client secret at the provider; `None` for a public client, which only PKCE
    /// protects.
    pub client_secret: Option<Secret>,
    /// True if narthex keeps the identity of each human for exchanges (C31).
    pub keeps_identity: bool,
    /// The origins of servers that may have tokens for these identities; `None`: there is no list.
    pub exchange_servers: Option<Vec<String>>,
}

impl Client {
    /// A client of this issuer.
    ///
    /// # Errors
    /// When the issuer is no trustworthy address.
    pub fn new(
        issuer: &str,
        client_id: impl Into<String>,
        client_secret: Option<Secret>,
    ) -> Result<Self, OidcError> {
        let url = Url::parse(issuer).map_err(|_error| OidcError::BadIssuer)?;
        let is_safe = url.scheme() == "https" || url.scheme() == "http" && is_loopback(&url);
        let is_plain = url.query().is_none() && url.fragment().is_none();
        let has_nobody = url.username().is_empty() && url.password().is_none();
        if !is_safe || !is_plain || !has_nobody {
            return Err(OidcError::BadIssuer);
        }
        let (issuer_text, client_id) = (issuer.to_owned(), client_id.into());
        Ok(Self {
            issuer: url,
            issuer_text,
            client_id,
            client_secret,
            keeps_identity: false,
            exchange_servers: None,
        })
    }

    /// The client that keeps the identity of each human, if it should.
    #[must_use]
    pub fn keeping_identity(self, keeps_identity: bool) -> Self {
        Self { keeps_identity, ..self }
    }

    /// The client whose identities lead to tokens for servers of these origins alone.
    #[must_use]
    pub fn exchanging_for(self, exchange_servers: Option<Vec<String>>) -> Self {
        Self { exchange_servers, ..self }
    }

    /// The address of the provider's metadata.
    #[must_use]
    pub fn metadata_url(&self) -> Url {
        let mut url = self.issuer.clone();
        let path = format!("{}/.well-known/openid-configuration", url.path().trim_end_matches('/'));
        url.set_path(&path);
        url
    }
}

/// A claim that admits a person: its name, and a value that it must equal or contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Name of the claim, such as `groups`.
    pub name: String,
    /// Value of the claim, such as `platform`.
    pub value: String,
}

/// Rules that admit a person without a human's decision. By default they admit no person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Admission {
    /// Domains of verified e-mail addresses, in lower case.
    pub email_domains: Vec<String>,
    /// Claims, any of which is enough.
    pub claims: Vec<Claim>,
}

impl Admission {
    /// True if the rules admit an unknown person.
    #[must_use]
    pub fn admits(&self, identity: &Identity) -> bool {
        let Self { email_domains, claims } = self;
        let domain = identity.verified_email().and_then(|email| email.rsplit_once('@'));
        let domain = domain.map(|(_, domain)| domain.to_ascii_lowercase());
        domain.is_some_and(|domain| email_domains.contains(&domain))
            || claims.iter().any(|claim| has(&identity.claims, claim))
    }
}

fn has(claims: &BTreeMap<String, serde_json::Value>, wanted: &Claim) -> bool {
    match claims.get(&wanted.name) {
        Some(serde_json::Value::String(text)) => *text == wanted.value,
        Some(serde_json::Value::Array(all)) => all.iter().any(|one| one == wanted.value.as_str()),
        _ => false,
    }
}
