//! Metadata documents of clients, whose address is the client id.
//!
//! The caller fetches a document within [`FETCH`], with its guard against addresses inside of the
//! network, and follows no redirect.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    client::{Client, ClientId, ClientOrigin, ClientProof},
    client_keys::ClientKeys,
    redirect::RedirectRules,
    text::{ClientName, client_link},
    time::StoredTime,
};
use crate::scopes::Scopes;

/// The limits of a fetch.
pub const FETCH: FetchLimits =
    FetchLimits { time: Duration::from_secs(5), bytes: 64 * 1024, redirects: 0 };
/// The shortest time for which a document is used without another look, and the pause after a
/// failed one.
const LIFE_MIN: Duration = Duration::from_mins(5);
/// The longest time for which a document is used without another look.
const LIFE_MAX: Duration = Duration::from_hours(24);
/// Most redirect URIs of a client.
const REDIRECTS_MAX: usize = 50;

/// The limits of the fetch of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// Longest time.
    pub time: Duration,
    /// Largest document, in bytes.
    pub bytes: usize,
    /// Number of redirects that are followed.
    pub redirects: usize,
}

/// The hosts whose documents are fetched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DocumentHosts {
    /// Any host.
    #[default]
    All,
    /// The hosts of these names; a name that begins with a dot also stands for all names that end
    /// with it.
    Only(Vec<String>),
}

/// The answer of a client's host.
#[derive(Debug, Clone, Copy)]
pub struct FetchedDocument<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The header `Content-Type`.
    pub content_type: Option<&'a str>,
    /// The header `Cache-Control`; several of them are joined by commas.
    pub cache_control: Option<&'a str>,
    /// The header `Age`.
    pub age: Option<&'a str>,
    /// The body.
    pub body: &'a [u8],
}

/// The reason why a document cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The id is no address of a document.
    #[error("the client id is no address of a metadata document")]
    NoAddress,
    /// The settings do not allow the host.
    #[error("metadata documents from this host are not allowed by the server's settings")]
    HostNotAllowed,
    /// The host did not answer within the limits.
    #[error("the client's metadata document cannot be fetched")]
    Unreachable,
    /// The host answered with another status than 200.
    #[error("the client's host answered without a document (status {0})")]
    Status(u16),
    /// The answer is too large, is not JSON, or is no object.
    #[error("the client's metadata document is not JSON of at most 64 KiB")]
    NotJson,
    /// The document is about another client.
    #[error("the client_id in the metadata document differs from its address")]
    OtherClient,
    /// The document contains a secret, or demands a proof that this server does not take.
    #[error(
        "the metadata document must have no secret, and the token_endpoint_auth_method none, or \
         private_key_jwt with public keys"
    )]
    Proof,
    /// The document has no redirect URI that can be admitted.
    #[error("the metadata document has no redirect URI that is allowed here")]
    NoRedirectUri,
    /// The document is for clients that do not use authorization codes.
    #[error("the metadata document does not name the grant type authorization_code")]
    NoCodeGrant,
    /// A field has another type.
    #[error("the metadata document has a field of the wrong type: {0}")]
    BadField(&'static str),
}

/// A document that was good, with the time of the next look.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CachedDocument {
    /// The client that it describes.
    pub client: Client,
    /// Time from which the caller should fetch it again.
    pub look_again_at: StoredTime,
    /// True if the last look failed, so that this is the last good copy.
    pub is_last_good: bool,
}

/// The use of a client's document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentUse {
    /// A human is asked for consent.
    NewConsent,
    /// A code, a refresh token or a consent was given before.
    RunningLogin,
}

impl DocumentHosts {
    /// Checks that the document of a client may be fetched, before the caller does so.
    ///
    /// # Errors
    /// When the id is no address, or the host is not allowed.
    pub fn admit(&self, id: &ClientId) -> Result<url::Url, DocumentError> {
        let url = id.document_url().ok_or(DocumentError::NoAddress)?;
        let host = url.host_str().unwrap_or_default();
        let is_named = |name: &String| match name.strip_prefix('.') {
            Some(bare) => host == bare || host.ends_with(name.as_str()),
            None => host == name,
        };
        match self {
            Self::All => Ok(url),
            Self::Only(names) if names.iter().any(is_named) => Ok(url),
            Self::Only(_) => Err(DocumentError::HostNotAllowed),
        }
    }
}

impl FetchedDocument<'_> {
    /// Reads the document of a client (Client ID Metadata Document, 4). Redirect URIs that the
    /// rules do not allow are left out, as the document is written for all servers.
    ///
    /// # Errors
    /// When the answer has no document, or not one that describes this client.
    pub fn read(
        &self,
        id: &ClientId,
        rules: &RedirectRules,
        now: SystemTime,
    ) -> Result<CachedDocument, DocumentError> {
        if self.status != 200 {
            return Err(DocumentError::Status(self.status));
        }
        if !self.content_type.is_some_and(is_json) || self.body.len() > FETCH.bytes {
            return Err(DocumentError::NotJson);
        }
        let document: Value =
            serde_json::from_slice(self.body).map_err(|_error| DocumentError::NotJson)?;
        let fields = Fields(document.as_object().ok_or(DocumentError::NotJson)?);
        Ok(CachedDocument {
            client: fields.client(id, rules, now)?,
            look_again_at: StoredTime::of(now).plus(self.life()),
            is_last_good: false,
        })
    }

    /// Time for which the host allows to use the document, between 5 minutes and 24 hours.
    /// `Expires` is not read: hosts that send it alone are asked more often.
    fn life(&self) -> Duration {
        let control = self.cache_control.unwrap_or_default().to_ascii_lowercase();
        let directives = || control.split(',').map(str::trim);
        if directives().any(|one| matches!(one, "no-store" | "no-cache")) {
            return LIFE_MIN;
        }
        let seconds = |name: &str| {
            let value = directives().find_map(|one| one.strip_prefix(name)?.strip_prefix('='));
            value.and_then(|value| value.trim_matches('"').parse::<u64>().ok())
        };
        let fresh = seconds("s-maxage").or_else(|| seconds("max-age")).unwrap_or_default();
        let age = self.age.and_then(|age| age.trim().parse().ok()).unwrap_or_default();
        Duration::from_secs(fresh.saturating_sub(age)).clamp(LIFE_MIN, LIFE_MAX)
    }
}

impl CachedDocument {
    /// True if the caller should fetch the document before this use.
    #[must_use]
    pub fn is_old(&self, now: SystemTime) -> bool {
        StoredTime::of(now) >= self.look_again_at
    }

    /// The copy after a failed look: the last good one stays, and is looked for again in 5 minutes.
    #[must_use]
    pub fn after_failure(self, now: SystemTime) -> Self {
        let look_again_at = StoredTime::of(now).plus(LIFE_MIN);
        Self { look_again_at, is_last_good: true, ..self }
    }

    /// The copy after a good look: the new one, with the times of the client as they were.
    #[must_use]
    pub fn after_success(self, mut new: Self) -> Self {
        new.client.created_at = self.client.created_at;
        new.client.used_at = self.client.used_at;
        new
    }

    /// The client for a use; `None` if only the last good copy is there and a human would be asked.
    /// Running logins survive days in which the client's host sends errors.
    #[must_use]
    pub fn client_for(&self, document_use: DocumentUse) -> Option<&Client> {
        let is_usable = match document_use {
            DocumentUse::RunningLogin => true,
            DocumentUse::NewConsent => !self.is_last_good,
        };
        is_usable.then_some(&self.client)
    }
}

/// True for `application/json` and types that end with `+json`.
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_other = essence.starts_with("application/") && essence.ends_with("+json");
    essence == "application/json" || is_other
}

/// The fields of a document.
struct Fields<'d>(&'d serde_json::Map<String, Value>);

impl<'d> Fields<'d> {
    fn client(
        &self,
        id: &ClientId,
        rules: &RedirectRules,
        now: SystemTime,
    ) -> Result<Client, DocumentError> {
        if self.text("client_id")? != Some(id.as_str()) {
            return Err(DocumentError::OtherClient);
        }
        let proof = self.proof()?;
        if self.0.contains_key("grant_types")
            && !self.texts("grant_types")?.contains(&"authorization_code")
        {
            return Err(DocumentError::NoCodeGrant);
        }
        let uris = self.texts("redirect_uris")?.into_iter().take(REDIRECTS_MAX);
        let redirect_uris: Vec<_> = uris.filter_map(|uri| rules.admit(uri).ok()).collect();
        if redirect_uris.is_empty() {
            return Err(DocumentError::NoRedirectUri);
        }
        let scopes = self.text("scope")?.map(Scopes::read).transpose();
        Ok(Client {
            id: id.clone(),
            name: ClientName::of(self.text("client_name")?.unwrap_or_default()),
            link: self.text("client_uri")?.and_then(client_link),
            redirect_uris,
            proof,
            scopes: scopes.map_err(|_error| DocumentError::BadField("scope"))?,
            application_type: self.text("application_type")?.map(str::to_owned),
            origin: ClientOrigin::Document,
            created_at: StoredTime::of(now),
            used_at: None,
        })
    }

    /// The proof of the client. A document is public, so that it has no secret.
    fn proof(&self) -> Result<ClientProof, DocumentError> {
        let secrets = ["client_secret", "client_secret_expires_at"];
        let has_secret = secrets.iter().any(|name| self.0.contains_key(*name));
        let method = self.text("token_endpoint_auth_method")?.unwrap_or("none");
        match (method, has_secret) {
            ("none", false) => Ok(ClientProof::Public),
            ("private_key_jwt", false) => {
                let keys = ClientKeys::read(self.0.get("jwks"), self.text("jwks_uri")?);
                keys.map(ClientProof::Keys).ok_or(DocumentError::Proof)
            }
            _ => Err(DocumentError::Proof),
        }
    }

    fn text(&self, name: &'static str) -> Result<Option<&'d str>, DocumentError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(DocumentError::BadField(name)),
        }
    }

    fn texts(&self, name: &'static str) -> Result<Vec<&'d str>, DocumentError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(all)) => {
                let texts = all.iter().map(Value::as_str).collect::<Option<_>>();
                texts.ok_or(DocumentError::BadField(name))
            }
            Some(_) => Err(DocumentError::BadField(name)),
        }
    }
}

#[cfg(test)]
mod tests;
