//! Requests to the token endpoint and its neighbours.

#[cfg(test)]
mod tests;

use narthex_model::Secret;
use url::Url;

use super::{Attempt, ClientIdentity, Form, FormRequest};
use crate::{jwt::SigningFault, metadata::ServerMetadata, scopes::Scopes, urns::JWT_BEARER};

/// The grant of an assertion (RFC 7523, 2.1).
/// One authorization server, as one client uses it for one resource.
#[derive(Debug, Clone, Copy)]
pub struct TokenEndpoint<'a> {
    /// The server's metadata, as discovered.
    pub metadata: &'a ServerMetadata,
    /// The client.
    pub client: &'a ClientIdentity,
    /// Value of `resource` (RFC 8707); `None`: leave it out.
    pub resource: Option<&'a str>,
    /// The time, in seconds since 1970.
    pub now: u64,
}

/// A request cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestFault {
    /// The authorization server has no such endpoint.
    #[error("the authorization server has no `{0}`")]
    NoEndpoint(&'static str),
    /// The attempt was started by another client, or at another server.
    #[error("the sign-in was started by another client of narthex; start it again")]
    OtherClient,
    /// The client's assertion cannot be signed.
    #[error("the client's assertion cannot be signed: {0}")]
    Proof(SigningFault),
}

impl TokenEndpoint<'_> {
    /// Exchanges a code for tokens (RFC 6749, 4.1.3).
    ///
    /// # Errors
    /// When the attempt belongs to another client, or the request cannot be made.
    pub fn code(&self, attempt: &Attempt, code: &Secret) -> Result<FormRequest, RequestFault> {
        let is_same = attempt.client_id() == self.client.id
            && attempt.metadata().issuer == self.metadata.issuer;
        if !is_same {
            return Err(RequestFault::OtherClient);
        }
        let mut form = Form::of("authorization_code");
        form.add("code", code.expose())
            .add("redirect_uri", attempt.redirect_uri())
            .add("code_verifier", attempt.verifier().expose())
            .add_some("resource", attempt.resource());
        self.token_request(form)
    }

    /// Refreshes tokens (RFC 6749, 6). `scopes` are sent only to servers that need them.
    ///
    /// # Errors
    /// When the request cannot be made.
    pub fn refresh(
        &self,
        refresh_token: &Secret,
        scopes: Option<&Scopes>,
    ) -> Result<FormRequest, RequestFault> {
        let mut form = Form::of("refresh_token");
        form.add("refresh_token", refresh_token.expose());
        self.token_request(self.with_scopes_and_resource(form, scopes))
    }

    /// Asks for a token of the client itself (RFC 6749, 4.4). `audience` is a parameter of some
    /// servers.
    ///
    /// # Errors
    /// When the request cannot be made.
    pub fn client_credentials(
        &self,
        scopes: &Scopes,
        audience: Option<&str>,
    ) -> Result<FormRequest, RequestFault> {
        let mut form = Form::of("client_credentials");
        form.add_some("audience", audience);
        self.token_request(self.with_scopes_and_resource(form, Some(scopes)))
    }

    /// Asks for a token with an assertion of another server, such as an ID-JAG (RFC 7523, 2.1).
    ///
    /// # Errors
    /// When the request cannot be made.
    pub fn assertion(
        &self,
        assertion: &Secret,
        scopes: &Scopes,
    ) -> Result<FormRequest, RequestFault> {
        let mut form = Form::of(JWT_BEARER);
        form.add("assertion", assertion.expose());
        self.token_request(self.with_scopes_and_resource(form, Some(scopes)))
    }

    /// Sends a form of another grant.
    pub(super) fn token_request(&self, form: Form) -> Result<FormRequest, RequestFault> {
        self.request("token_endpoint", self.metadata.token_endpoint.as_ref(), form)
    }

    pub(super) fn with_scopes_and_resource(&self, mut form: Form, scopes: Option<&Scopes>) -> Form {
        let scopes = scopes.map(ToString::to_string);
        form.add_some("scope", scopes.as_deref()).add_some("resource", self.resource);
        form
    }

    /// A request to an endpoint, with the client's proof.
    pub(super) fn request(
        &self,
        name: &'static str,
        url: Option<&Url>,
        mut form: Form,
    ) -> Result<FormRequest, RequestFault> {
        let url = url.ok_or(RequestFault::NoEndpoint(name))?.clone();
        let proof = self.client.prove(&mut form, &self.metadata.issuer, self.now);
        let authorization = proof.map_err(RequestFault::Proof)?;
        Ok(FormRequest { url, authorization, form: form.finish() })
    }
}
