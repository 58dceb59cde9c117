//! A stored grant: tokens of one person or client at one authorization server.

#[cfg(test)]
mod tests;

use narthex_model::Secret;
use serde::{Deserialize, Serialize};

use super::{TokenGrant, Tokens};
use crate::{challenge::Bearer, scopes::Scopes};

/// Seconds before the end of an access token at which it is renewed.
const MARGIN: u64 = 30;

/// Tokens, with all that the next request needs. The caller stores it sealed.
///
/// A refresh token is for the client that it was given to: a grant of another issuer or client must
/// be dropped ([`Grant::belongs_to`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The authorization server.
    pub issuer: String,
    /// The client.
    pub client_id: String,
    /// Value of `resource`; `None`: it is left out.
    pub resource: Option<String>,
    /// The scopes that were requested: a later consent asks for them again.
    pub requested: Scopes,
    /// The request that gave the first tokens.
    pub origin: TokenGrant,
    /// The tokens.
    pub tokens: Tokens,
    /// Number of renewals. A store replaces a row only if its number is the one that was read, so
    /// that one of several refreshers wins.
    pub generation: u64,
    /// Private key of the tokens (RFC 9449); reserved, as such tokens are refused so far.
    pub key: Option<Secret>,
}

/// The state of an access token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// It can be used.
    Fresh,
    /// It can be used, and should be renewed first.
    Due,
    /// It has ended.
    Ended,
}

/// The reaction to a refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reaction {
    /// Renew the tokens, and repeat the request once.
    Renew,
    /// A person must agree to these scopes.
    AskForScopes(Scopes),
    /// The grant is of no more use: discover anew, and let a person sign in.
    SignIn,
}

impl Grant {
    /// The reaction to a refused request with the access token, by the challenge of the refusal.
    /// `has_renewed` is true if the tokens were renewed for this request already.
    #[must_use]
    pub fn after_refusal(&self, challenge: Option<&Bearer>, has_renewed: bool) -> Reaction {
        if let Some(challenge) = challenge.filter(|challenge| challenge.is_insufficient_scope()) {
            let challenged = challenge.scope.clone().unwrap_or_default();
            return Reaction::AskForScopes(self.requested.union(&challenged));
        }
        match self.can_renew() && !has_renewed {
            true => Reaction::Renew,
            false => Reaction::SignIn,
        }
    }

    /// The state of the access token; `now` in seconds since 1970.
    ///
    /// A token is due 30 seconds before its end, but at the earliest after half of its lifetime. A
    /// guessed end is a reason to renew only: the server may still take the token.
    #[must_use]
    pub fn freshness(&self, now: u64) -> Freshness {
        let Tokens { obtained_at, expires_at, is_expiry_guessed, .. } = self.tokens;
        let life = expires_at.saturating_sub(obtained_at);
        let is_due = now >= expires_at.saturating_sub(MARGIN.min(life / 2));
        if now >= expires_at && !is_expiry_guessed {
            return Freshness::Ended;
        }
        if is_due && self.can_renew() { Freshness::Due } else { Freshness::Fresh }
    }

    /// True if new tokens can be had without a person.
    #[must_use]
    pub fn can_renew(&self) -> bool {
        self.tokens.refresh_token.is_some() || self.origin.is_repeatable()
    }

    /// True if the grant is of this authorization server and client.
    #[must_use]
    pub fn belongs_to(&self, issuer: &str, client_id: &str) -> bool {
        self.issuer == issuer && self.client_id == client_id
    }

    /// The grant after a renewal. An answer without a refresh token or an ID token keeps the old
    /// one. Store the result before its access token is used.
    #[must_use]
    pub fn renewed(&self, answer: Tokens) -> Self {
        let old = &self.tokens;
        let refresh_token = answer.refresh_token.or_else(|| old.refresh_token.clone());
        let id_token = answer.id_token.or_else(|| old.id_token.clone());
        let tokens = Tokens { refresh_token, id_token, ..answer };
        Self { tokens, generation: self.generation + 1, ..self.clone() }
    }
}

/// Stored bytes are no grant.
#[derive(Debug, thiserror::Error)]
#[error("the stored OAuth tokens cannot be read")]
pub struct StoredGrantFault(#[source] serde_json::Error);

#[derive(Serialize, Deserialize)]
struct Stored {
    issuer: String,
    client_id: String,
    resource: Option<String>,
    requested: Scopes,
    origin: TokenGrant,
    access_token: String,
    refresh_token: Option<String>,
    id_token: Option<String>,
    token_type: String,
    scopes: Scopes,
    obtained_at: u64,
    expires_at: u64,
    is_expiry_guessed: bool,
    generation: u64,
    #[serde(default)]
    key: Option<String>,
}

impl Grant {
    /// The grant as a text, to be sealed and stored by the caller.
    #[must_use]
    pub fn to_stored(&self) -> Secret {
        let text =
            |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.expose().to_owned());
        let Self { issuer, client_id, resource, requested, origin, tokens, generation, key } = self;
        let stored = Stored {
            issuer: issuer.clone(),
            client_id: client_id.clone(),
            resource: resource.clone(),
            requested: requested.clone(),
            origin: *origin,
            access_token: tokens.access_token.expose().to_owned(),
            refresh_token: text(&tokens.refresh_token),
            id_token: text(&tokens.id_token),
            token_type: tokens.token_type.clone(),
            scopes: tokens.scopes.clone(),
            obtained_at: tokens.obtained_at,
            expires_at: tokens.expires_at,
            is_expiry_guessed: tokens.is_expiry_guessed,
            generation: *generation,
            key: text(key),
        };
        Secret::new(serde_json::to_string(&stored).expect("texts and numbers are JSON"))
    }

    /// Reads a text of [`Self::to_stored`].
    ///
    /// # Errors
    /// When the text is another one.
    pub fn from_stored(text: &Secret) -> Result<Self, StoredGrantFault> {
        let stored: Stored = serde_json::from_str(text.expose()).map_err(StoredGrantFault)?;
        let tokens = Tokens {
            access_token: Secret::new(stored.access_token),
            refresh_token: stored.refresh_token.map(Secret::new),
            id_token: stored.id_token.map(Secret::new),
            token_type: stored.token_type,
            scopes: stored.scopes,
            obtained_at: stored.obtained_at,
            expires_at: stored.expires_at,
            is_expiry_guessed: stored.is_expiry_guessed,
        };
        Ok(Self {
            issuer: stored.issuer,
            client_id: stored.client_id,
            resource: stored.resource,
            requested: stored.requested,
            origin: stored.origin,
            tokens,
            generation: stored.generation,
            key: stored.key.map(Secret::new),
        })
    }
}
