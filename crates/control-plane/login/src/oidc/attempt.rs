//! One sign-in at a provider, from the redirect to the request for tokens.

use std::sync::Arc;

use narthex_model::Secret;
use narthex_oauth::{
    client::{self, Awaited, ClientIdentity, Form, FormRequest, state_hash},
    pkce::{self, Verifier},
};
use url::Url;

use super::{Client, Metadata, OidcError};
use crate::{Token, TokenHash};

/// The requested scopes.
const SCOPES: &str = "openid email profile";
/// The requested scopes where the identity is kept: the last one gives a refresh token.
const KEPT_SCOPES: &str = "openid email profile offline_access";

/// A started sign-in, against which the answer is checked. Store it where only the browser that
/// started it can reach it, and take it once.
#[derive(Debug)]
pub struct Attempt {
    pub(super) client: Arc<Client>,
    pub(super) metadata: Arc<Metadata>,
    redirect_uri: String,
    state_hash: String,
    pub(super) nonce: TokenHash,
    verifier: Verifier,
}

/// The provider's answer, as delivered by the browser.
#[derive(Debug)]
pub struct Callback(client::Callback);

/// The request that exchanges the code for tokens.
pub type TokenRequest = FormRequest;

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
        let (state, nonce) = (random()?, random()?);
        let verifier = Verifier::generate().map_err(OidcError::NoRandomness)?;
        let scopes = if client.keeps_identity { KEPT_SCOPES } else { SCOPES };
        let mut url = metadata.authorization_endpoint.clone();
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.client_id)
            .append_pair("redirect_uri", &redirect_uri)
            .append_pair("scope", scopes)
            .append_pair("state", state.expose())
            .append_pair("nonce", nonce.expose())
            .append_pair("code_challenge", verifier.challenge().as_str())
            .append_pair("code_challenge_method", pkce::METHOD);
        let (state_hash, nonce) = (state_hash(state.expose()), nonce.hash());
        Ok((url, Self { client, metadata, redirect_uri, state_hash, nonce, verifier }))
    }

    /// Checks the browser's answer, and returns the next request to the provider.
    ///
    /// # Errors
    /// When the answer belongs to another attempt or another provider, or the provider refused.
    pub fn redeem(&self, callback: &Callback) -> Result<TokenRequest, OidcError> {
        let awaited = Awaited {
            state_hash: &self.state_hash,
            issuer: &self.client.issuer_text,
            sends_issuer: self.metadata.sends_issuer,
        };
        self.token_request(callback.0.code(awaited)?)
    }

    fn token_request(&self, code: &Secret) -> Result<TokenRequest, OidcError> {
        let mut form = Form::of("authorization_code");
        form.add("code", code.expose())
            .add("redirect_uri", &self.redirect_uri)
            .add("code_verifier", self.verifier.expose());
        let Client { issuer_text, client_id, client_secret, .. } = &*self.client;
        let client = ClientIdentity::new(client_id, client_secret.clone(), self.auth_methods());
        // Only assertions have a time, and this client makes none.
        let authorization = client.prove(&mut form, issuer_text, 0)?;
        let url = self.metadata.token_endpoint.clone();
        Ok(TokenRequest { url, authorization, form: form.finish() })
    }

    /// The methods of client authentication that the provider lists.
    #[must_use]
    pub fn auth_methods(&self) -> Option<&[String]> {
        self.metadata.auth_methods.as_deref()
    }

    /// The address of the provider's token endpoint.
    #[must_use]
    pub fn token_endpoint(&self) -> &Url {
        &self.metadata.token_endpoint
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
        Ok(Self(client::Callback::read(query)?))
    }
}
