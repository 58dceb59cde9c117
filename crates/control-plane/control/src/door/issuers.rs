//! The company's own issuers, and their keys. Keys are fetched at the first token, once an hour,
//! and for a token whose key is unknown, within the bounds of [`KeyCache`].

use std::{sync::Arc, time::SystemTime};

use narthex_login::{
    IssuerOptions,
    oidc::{Client, Metadata},
};
use narthex_oauth::{
    jwt::{Jwt, JwtFault, Keys},
    server::{DocumentError, FETCH, KeyCache},
};
use narthex_oauth_client::Guard;
use url::Url;

use super::{clients::Got, server::DoorServer};

impl DoorServer {
    /// The issuer that a token names, if it is one of the settings.
    pub(super) fn issuer_of(&self, token: &Jwt) -> Option<&Arc<IssuerOptions>> {
        let claimed = token.claimed_issuer()?;
        self.options.issuers.iter().find(|one| one.trusted.issuer == claimed)
    }

    /// Checks a token with the keys of its issuer.
    pub(super) async fn checked<T>(
        &self,
        issuer: &IssuerOptions,
        kid: Option<&str>,
        now: SystemTime,
        check: impl Fn(&Keys) -> Result<T, JwtFault>,
    ) -> Result<T, JwtFault> {
        let cache = self.issuer_keys.at(&issuer.trusted.issuer);
        let mut known = cache.lock().await;
        if known.begins_fetch(now) {
            self.fetch_issuer_keys(issuer, &mut known, now).await;
        }
        let keys = known.keys().clone();
        drop(known);
        match check(&keys) {
            Err(JwtFault::UnknownKey) => {}
            checked => return checked,
        }
        let mut known = cache.lock().await;
        if known.begins_retry(kid, now) {
            self.fetch_issuer_keys(issuer, &mut known, now).await;
        }
        let keys = known.keys().clone();
        drop(known);
        check(&keys)
    }

    async fn fetch_issuer_keys(
        &self,
        issuer: &IssuerOptions,
        keys: &mut KeyCache,
        now: SystemTime,
    ) {
        let fetched = tokio::time::timeout(FETCH.time, self.published_keys(issuer)).await;
        match fetched.unwrap_or_else(|_late| Err("it did not answer in time".to_owned())) {
            Ok(found) => keys.fetched(found, now),
            Err(reason) => tracing::warn!(
                issuer = issuer.name,
                "the keys of an issuer of `oauth.issuers` cannot be fetched: {reason}"
            ),
        }
    }

    async fn published_keys(&self, issuer: &IssuerOptions) -> Result<Keys, String> {
        let (guard, uri) = match &issuer.jwks_uri {
            Some(uri) => (Guard::of_choice(uri).await, uri.clone()),
            None => {
                let client = Client::new(&issuer.trusted.issuer, "", None);
                let client = client.map_err(|error| error.to_string())?;
                let place = client.metadata_url();
                let guard = Guard::of_choice(&place).await;
                let body = self.body_of(&guard, &place).await?;
                let metadata = Metadata::read(&client, &body).map_err(|error| error.to_string())?;
                (guard, metadata.jwks_uri().clone())
            }
        };
        Keys::read(&self.body_of(&guard, &uri).await?).map_err(|fault| fault.to_string())
    }

    /// A document of an issuer: at the address that an operator chose, or where that one leads.
    async fn body_of(&self, guard: &Guard, url: &Url) -> Result<Vec<u8>, String> {
        let Some(reach) = guard.allowed(url) else {
            return Err(format!("{url} is no address that an issuer may name"));
        };
        match self.get_within(url, reach).await {
            Ok(Got { status: 200, body, .. }) => Ok(body),
            Ok(Got { status, .. }) => Err(format!("{url} answered with status {status}")),
            Err(DocumentError::NotJson) => Err(format!("the answer of {url} is too long")),
            Err(_unreachable) => Err(format!("{url} cannot be reached")),
        }
    }
}
