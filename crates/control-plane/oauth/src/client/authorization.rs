//! One authorization by a person, from the address for the browser to the code.

#[cfg(test)]
mod tests;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use narthex_model::{ErrorKind, Secret};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use super::{
    Callback, CallbackFault, ClientIdentity, Preset, SETTING_SCOPES,
    callback::{Awaited, state_hash},
};
use crate::{
    metadata::ServerMetadata,
    pkce::{self, Verifier},
    random::random_text,
    scopes::Scopes,
};

/// Lifetime of an attempt, in seconds.
pub const ATTEMPT_LIFE: u64 = 600;
/// Number of random bytes of a state.
const STATE_BYTES: usize = 32;

/// The parts of an authorization request.
#[derive(Debug, Clone)]
pub struct Plan<'a> {
    /// Metadata of the authorization server, as discovered.
    pub metadata: &'a ServerMetadata,
    /// The client.
    pub client: &'a ClientIdentity,
    /// The redirect URI, as registered.
    pub redirect_uri: &'a str,
    /// Value of `resource` (RFC 8707); `None`: leave it out.
    pub resource: Option<&'a str>,
    /// The scopes; an empty set leaves the choice to the server.
    pub scopes: &'a Scopes,
    /// Name of the server in `state`, if all servers share one redirect URI.
    pub place: Option<&'a str>,
    /// The person and the server that the attempt is for.
    pub binding: Binding,
}

/// The person and the server that an attempt is for. An answer counts for these only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The workspace.
    pub workspace: String,
    /// The MCP server.
    pub server: String,
    /// The user; none for a shared connection.
    pub user: Option<String>,
    /// Hash of the login session of the browser; none if there is no login.
    pub session: Option<String>,
}

/// A started authorization, against which the answer is checked. The caller stores it sealed under
/// [`Attempt::key`], and takes it once.
#[derive(Debug)]
pub struct Attempt {
    state_hash: String,
    verifier: Verifier,
    metadata: ServerMetadata,
    client_id: String,
    redirect_uri: String,
    resource: Option<String>,
    scopes: Scopes,
    binding: Binding,
    begun_at: u64,
}

/// The reason why an authorization failed. None of these shows a code, a token or a description by
/// the server.
#[derive(Debug, thiserror::Error)]
pub enum AuthorizationError {
    /// The authorization server has no authorization endpoint.
    #[error("the authorization server has no authorization endpoint")]
    NoEndpoint,
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes")]
    NoRandomness(#[source] getrandom::Error),
    /// The attempt is over.
    #[error("this sign-in took longer than 10 minutes; start it again")]
    Expired,
    /// The answer was brought by another person, or for another server.
    #[error("this sign-in was started by another user or for another server; start it again")]
    Foreign,
    /// The answer belongs to another attempt or another server, or the server refused.
    #[error(transparent)]
    Callback(CallbackFault),
    /// The server refused the scopes.
    #[error(
        "the authorization server refuses the requested scopes ({requested}); it lists {known}; \
         set {SETTING_SCOPES} to those that the server's documentation names"
    )]
    Scopes {
        /// The requested scopes.
        requested: Scopes,
        /// Scopes in the server's metadata.
        known: String,
    },
}

impl AuthorizationError {
    /// The error's kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoEndpoint | Self::Scopes { .. } => ErrorKind::Invalid,
            Self::NoRandomness(_) => ErrorKind::Unavailable,
            Self::Expired | Self::Foreign | Self::Callback(_) => ErrorKind::Unauthenticated,
        }
    }

    /// True if the same authorization should be tried once more, with an empty set of scopes.
    #[must_use]
    pub fn asks_for_other_scopes(&self) -> bool {
        matches!(self, Self::Scopes { requested, .. } if !requested.is_empty())
    }
}

impl Attempt {
    /// Starts an attempt; returns the address for the browser. `now` in seconds since 1970.
    ///
    /// # Errors
    /// When the server has no authorization endpoint, or the operating system gives no random
    /// bytes.
    pub fn begin(plan: Plan<'_>, now: u64) -> Result<(Url, Self), AuthorizationError> {
        let Plan { metadata, client, redirect_uri, resource, scopes, place, binding } = plan;
        let url = metadata.authorization_endpoint.clone();
        let mut url = url.ok_or(AuthorizationError::NoEndpoint)?;
        let random = random_text::<STATE_BYTES>().map_err(AuthorizationError::NoRandomness)?;
        let verifier = Verifier::generate().map_err(AuthorizationError::NoRandomness)?;
        let challenge = verifier.challenge();
        let place = place.map(|place| format!(".{}", URL_SAFE_NO_PAD.encode(place)));
        let state = Secret::new(format!("{random}{}", place.unwrap_or_default()));
        let scope = scopes.to_string();
        let preset = Url::parse(&metadata.issuer).ok().and_then(|issuer| Preset::of(&issuer));
        let required = [
            ("response_type", "code"),
            ("client_id", &client.id),
            ("redirect_uri", redirect_uri),
            ("state", state.expose()),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", pkce::METHOD),
        ];
        let scope = (!scope.is_empty()).then_some(("scope", scope.as_str()));
        let resource_pair = resource.map(|resource| ("resource", resource));
        url.query_pairs_mut()
            .extend_pairs(required)
            .extend_pairs(scope)
            .extend_pairs(resource_pair)
            .extend_pairs(preset.into_iter().flat_map(Preset::authorize_parameters));
        let attempt = Self {
            state_hash: state_hash(state.expose()),
            verifier,
            metadata: metadata.clone(),
            client_id: client.id.clone(),
            redirect_uri: redirect_uri.to_owned(),
            resource: resource.map(str::to_owned),
            scopes: scopes.clone(),
            binding,
            begun_at: now,
        };
        Ok((url, attempt))
    }

    /// The key under which the attempt is stored: [`Callback::state_hash`] of its answer.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.state_hash
    }

    /// Checks the browser's answer, and returns the code. `binding` is what the caller knows about
    /// the request that brought the answer.
    ///
    /// # Errors
    /// When the attempt is over, the answer belongs to something else, or the server refused.
    pub fn redeem<'c>(
        &self,
        callback: &'c Callback,
        binding: &Binding,
        now: u64,
    ) -> Result<&'c Secret, AuthorizationError> {
        if self.has_ended(now) {
            return Err(AuthorizationError::Expired);
        }
        if self.binding != *binding {
            return Err(AuthorizationError::Foreign);
        }
        let awaited = Awaited {
            state_hash: &self.state_hash,
            issuer: &self.metadata.issuer,
            sends_issuer: self.metadata.sends_issuer,
        };
        callback.code(awaited).map_err(|fault| match fault {
            CallbackFault::Declined(code) if code == "invalid_scope" => self.scopes_refused(),
            fault => AuthorizationError::Callback(fault),
        })
    }

    fn scopes_refused(&self) -> AuthorizationError {
        let known = self.metadata.scopes_supported.as_ref().filter(|known| !known.is_empty());
        let known = known.map_or_else(|| "none".to_owned(), ToString::to_string);
        AuthorizationError::Scopes { requested: self.scopes.clone(), known }
    }

    /// True if the attempt is over, so that its record can be deleted.
    #[must_use]
    pub fn has_ended(&self, now: u64) -> bool {
        now >= self.begun_at.saturating_add(ATTEMPT_LIFE)
    }

    /// The authorization server's metadata, for the token request.
    #[must_use]
    pub fn metadata(&self) -> &ServerMetadata {
        &self.metadata
    }

    /// The client's id, for the token request.
    #[must_use]
    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    /// The requested scopes.
    #[must_use]
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// The person and the server that the attempt is for.
    #[must_use]
    pub fn binding(&self) -> &Binding {
        &self.binding
    }

    /// Value of `resource`, if the request had one.
    #[must_use]
    pub fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }

    pub(super) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    pub(super) fn verifier(&self) -> &Verifier {
        &self.verifier
    }
}

/// Stored bytes are no attempt.
#[derive(Debug, thiserror::Error)]
#[error("the stored sign-in cannot be read; start it again")]
pub struct StoredAttemptFault;

#[derive(Serialize, Deserialize)]
struct Stored {
    state_hash: String,
    verifier: String,
    metadata: Value,
    client_id: String,
    redirect_uri: String,
    resource: Option<String>,
    scopes: Scopes,
    binding: Binding,
    begun_at: u64,
}

impl Attempt {
    /// The attempt as a text, to be sealed and stored by the caller.
    #[must_use]
    pub fn to_stored(&self) -> Secret {
        let stored = Stored {
            state_hash: self.state_hash.clone(),
            verifier: self.verifier.expose().to_owned(),
            metadata: self.metadata.to_json(),
            client_id: self.client_id.clone(),
            redirect_uri: self.redirect_uri.clone(),
            resource: self.resource.clone(),
            scopes: self.scopes.clone(),
            binding: self.binding.clone(),
            begun_at: self.begun_at,
        };
        Secret::new(serde_json::to_string(&stored).expect("texts and numbers are JSON"))
    }

    /// Reads a text of [`Self::to_stored`].
    ///
    /// # Errors
    /// When the text is another one.
    pub fn from_stored(text: &Secret) -> Result<Self, StoredAttemptFault> {
        let stored: Stored =
            serde_json::from_str(text.expose()).map_err(|_error| StoredAttemptFault)?;
        Ok(Self {
            state_hash: stored.state_hash,
            verifier: Verifier::from_stored(Secret::new(stored.verifier)),
            metadata: ServerMetadata::from_json(&stored.metadata).ok_or(StoredAttemptFault)?,
            client_id: stored.client_id,
            redirect_uri: stored.redirect_uri,
            resource: stored.resource,
            scopes: stored.scopes,
            binding: stored.binding,
            begun_at: stored.begun_at,
        })
    }
}
