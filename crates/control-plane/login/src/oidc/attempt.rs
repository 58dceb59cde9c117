//! One sign-in at a provider, from the redirect to the request for tokens.

use std::sync::Arc;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use narthex_model::Secret;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};
use url::{Url, form_urlencoded};

use super::{Client, Metadata, OidcError};
use crate::{Token, TokenHash};

/// The requested scopes.
const SCOPES: &str = "openid email profile";

/// A started sign-in, against which the answer is checked. Store it where only the browser that
/// started it can reach it, and take it once.
#[derive(Debug)]
pub struct Attempt {
    pub(super) client: Arc<Client>,
    pub(super) metadata: Arc<Metadata>,
    redirect_uri: String,
    state: TokenHash,
    pub(super) nonce: TokenHash,
    verifier: Token,
}

/// The provider's answer, as delivered by the browser.
#[derive(Debug, Default)]
pub struct Callback {
    state: Option<Secret>,
    code: Option<Secret>,
    issuer: Option<String>,
    error: Option<String>,
}

/// The request that exchanges the code for tokens.
#[derive(Debug)]
pub struct TokenRequest {
    /// The address for the POST request.
    pub url: Url,
    /// Value of the header `Authorization`, if there is one.
    pub authorization: Option<Secret>,
    /// The body, as `application/x-www-form-urlencoded`.
    pub form: Secret,
}

impl Attempt {
    /// Starts an attempt; returns the address for the browser.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn begin(
        client: Arc<Client>,
        metadata: Arc<Metadata>,
        redirect_uri: String,
    ) -> Result<(Url, Self), OidcError> {
        let random = || Token::generate().map_err(OidcError::NoRandomness);
        let (state, nonce, verifier) = (random()?, random()?, random()?);
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose()));
        let mut url = metadata.authorization_endpoint.clone();
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.client_id)
            .append_pair("redirect_uri", &redirect_uri)
            .append_pair("scope", SCOPES)
            .append_pair("state", state.expose())
            .append_pair("nonce", nonce.expose())
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        let (state, nonce) = (state.hash(), nonce.hash());
        Ok((url, Self { client, metadata, redirect_uri, state, nonce, verifier }))
    }

    /// Checks the browser's answer, and returns the next request to the provider.
    ///
    /// # Errors
    /// When the answer belongs to another attempt or another provider, or the provider refused.
    pub fn redeem(&self, callback: &Callback) -> Result<TokenRequest, OidcError> {
        let state = callback.state.as_ref().ok_or(OidcError::WrongAnswer("it has no state"))?;
        // Compares hashes, so that the time it takes leaks nothing of the state itself.
        if TokenHash::of(state.expose()) != self.state {
            return Err(OidcError::WrongAnswer("its state belongs to another sign-in"));
        }
        match &callback.issuer {
            Some(issuer) if *issuer != self.client.issuer_text => {
                return Err(OidcError::WrongAnswer("it comes from another provider"));
            }
            None if self.metadata.sends_issuer => {
                return Err(OidcError::WrongAnswer("it does not name its provider"));
            }
            Some(_) | None => {}
        }
        if let Some(error) = &callback.error {
            return Err(OidcError::Declined(harmless(error)));
        }
        let code = callback.code.as_ref().ok_or(OidcError::WrongAnswer("it has no code"))?;
        Ok(self.token_request(code))
    }

    fn token_request(&self, code: &Secret) -> TokenRequest {
        let Client { client_id, client_secret, .. } = &*self.client;
        let in_header = client_secret.as_ref().filter(|_| !self.metadata.wants_secret_in_body);
        let in_body = client_secret.as_ref().filter(|_| self.metadata.wants_secret_in_body);
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code.expose())
            .append_pair("redirect_uri", &self.redirect_uri)
            .append_pair("code_verifier", self.verifier.expose());
        if in_header.is_none() {
            form.append_pair("client_id", client_id);
        }
        if let Some(secret) = in_body {
            form.append_pair("client_secret", secret.expose());
        }
        // Both halves are encoded as in a form first (RFC 6749, 2.3.1).
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let authorization = in_header.map(|secret| {
            let pair = format!("{}:{}", encoded(client_id), encoded(secret.expose()));
            Secret::new(format!("Basic {}", STANDARD.encode(pair)))
        });
        let url = self.metadata.token_endpoint.clone();
        TokenRequest { url, authorization, form: Secret::new(form.finish()) }
    }

    /// The address of the provider's signing keys.
    #[must_use]
    pub fn jwks_uri(&self) -> &Url {
        &self.metadata.jwks_uri
    }
}

impl Callback {
    /// Reads the query of the redirect.
    ///
    /// # Errors
    /// When a parameter is given twice, so that its value is ambiguous.
    pub fn read(query: &str) -> Result<Self, OidcError> {
        let mut callback = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.into_owned();
            let is_second = match &*name {
                "state" => callback.state.replace(Secret::new(value)).is_some(),
                "code" => callback.code.replace(Secret::new(value)).is_some(),
                "iss" => callback.issuer.replace(value).is_some(),
                "error" => callback.error.replace(value).is_some(),
                _ => false,
            };
            if is_second {
                return Err(OidcError::WrongAnswer("it has a parameter twice"));
            }
        }
        Ok(callback)
    }
}

/// An error code as it may be shown: other texts are left out.
fn harmless(code: &str) -> String {
    let is_code = code.len() <= 64 && code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    if is_code { code.to_owned() } else { "unknown error".to_owned() }
}
