//! Published keys of the company's issuers and of programs. Keys are fetched at the first token,
//! once an hour, and for a token whose key is unknown, within the bounds of [`KeyCache`].

use std::{fmt, sync::Arc, time::SystemTime};

use narthex_login::{
    IssuerOptions,
    oidc::{Client, Metadata},
};
use narthex_oauth::{
    jwt::{JwtFault, Keys},
    server::{ClientId, DocumentError, FETCH, KeyCache},
};
use narthex_oauth_client::Guard;
use url::Url;

use super::{clients::Got, server::DoorServer};

/// The publisher of keys.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeySource<'k> {
    /// An issuer of the settings, whose addresses an operator chose.
    Issuer(&'k IssuerOptions),
    /// A program that names this address for its keys.
    Program(&'k str),
}

/// The reason why keys cannot be fetched.
#[derive(Debug)]
struct Unfetched(String);

impl Unfetched {
    fn of(error: impl fmt::Display) -> Self {
        Self(error.to_string())
    }
}

impl DoorServer {
    /// Checks a token with the keys of its source. `kid` is the id of the key that the token names.
    pub(super) async fn check_with_keys<T>(
        &self,
        source: KeySource<'_>,
        kid: Option<&str>,
        now: SystemTime,
        check: impl Fn(&Keys) -> Result<T, JwtFault>,
    ) -> Result<T, JwtFault> {
        // Strangers name the addresses of programs, and must not displace the keys of issuers.
        let (all, at) = match source {
            KeySource::Issuer(issuer) => (&self.issuer_keys, &*issuer.trusted.issuer),
            KeySource::Program(address) => (&self.keys, address),
        };
        let cache = all.get_or_insert_with(&at.to_owned(), Arc::default);
        let mut known = cache.lock().await;
        if known.begins_fetch(now) {
            self.fetch_keys(source, &mut known, now).await;
        }
        let keys = known.keys().clone();
        drop(known);
        match check(&keys) {
            Err(JwtFault::UnknownKey) => {}
            checked => return checked,
        }
        let mut known = cache.lock().await;
        if known.begins_retry(kid, now) {
            self.fetch_keys(source, &mut known, now).await;
        }
        let keys = known.keys().clone();
        drop(known);
        check(&keys)
    }

    async fn fetch_keys(&self, source: KeySource<'_>, keys: &mut KeyCache, now: SystemTime) {
        let fetched = match source {
            KeySource::Issuer(issuer) => self.keys_of_issuer(issuer).await,
            KeySource::Program(address) => self.keys_of_program(address).await,
        };
        let reason = match fetched {
            Ok(found) => return keys.fetched(found, now),
            Err(Unfetched(reason)) => reason,
        };
        match source {
            KeySource::Issuer(issuer) => tracing::warn!(
                issuer = issuer.name,
                "the keys of an issuer of `oauth.issuers` cannot be fetched: {reason}"
            ),
            KeySource::Program(address) => {
                tracing::info!(url.full = address, "no keys of a client: {reason}");
            }
        }
    }

    /// Fetches keys as a metadata document: from the same hosts, and with the same limits.
    async fn keys_of_program(&self, address: &str) -> Result<Keys, Unfetched> {
        let id = ClientId::parse(address).map_err(Unfetched::of)?;
        let url = self.options.documents.admit(&id).map_err(Unfetched::of)?;
        keys_in(&url, self.get(&url).await)
    }

    async fn keys_of_issuer(&self, issuer: &IssuerOptions) -> Result<Keys, Unfetched> {
        let fetched = tokio::time::timeout(FETCH.time, self.published_keys(issuer)).await;
        fetched.unwrap_or_else(|_late| Err(Unfetched::of("it did not answer in time")))
    }

    async fn published_keys(&self, issuer: &IssuerOptions) -> Result<Keys, Unfetched> {
        let (guard, uri) = match &issuer.jwks_uri {
            Some(uri) => (Guard::of_choice(uri).await, uri.clone()),
            None => {
                let client = Client::new(&issuer.trusted.issuer, "", None);
                let client = client.map_err(Unfetched::of)?;
                let url = client.metadata_url();
                let guard = Guard::of_choice(&url).await;
                let body = body_of(&url, self.get_guarded(&guard, &url).await?)?;
                let metadata = Metadata::read(&client, &body).map_err(Unfetched::of)?;
                (guard, metadata.jwks_uri().clone())
            }
        };
        keys_in(&uri, self.get_guarded(&guard, &uri).await?)
    }

    /// A document at the address that an operator chose, or where that one leads.
    async fn get_guarded(
        &self,
        guard: &Guard,
        url: &Url,
    ) -> Result<Result<Got, DocumentError>, Unfetched> {
        match guard.allowed(url) {
            Some(reach) => Ok(self.get_within(url, reach).await),
            None => Err(Unfetched(format!("{url} is no address that an issuer may name"))),
        }
    }
}

fn keys_in(url: &Url, got: Result<Got, DocumentError>) -> Result<Keys, Unfetched> {
    Keys::read(&body_of(url, got)?).map_err(Unfetched::of)
}

/// The document in an answer.
fn body_of(url: &Url, got: Result<Got, DocumentError>) -> Result<Vec<u8>, Unfetched> {
    match got {
        Ok(Got { status: 200, body, .. }) => Ok(body),
        Ok(Got { status, .. }) => Err(Unfetched(format!("{url} answered with status {status}"))),
        Err(DocumentError::NotJson) => Err(Unfetched(format!("the answer of {url} is too long"))),
        Err(_unreachable) => Err(Unfetched(format!("{url} cannot be reached"))),
    }
}
