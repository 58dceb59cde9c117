//! Authorization requests (RFC 6749, 4.1.1; OAuth 2.1): which are shown to a human, and which are
//! refused.
//!
//! Until the redirect URI is verified, a refusal is a page of our own; a redirect could lead
//! anywhere. From then on it is a redirect, with `error`, `state` and `iss`.

use std::time::SystemTime;

use super::{
    answer::{ErrorCode, OAuthError},
    client::{Client, ClientId},
    consent::{PENDING_LIFE, PendingConsent, Redirect},
    door::{Door, Resource},
    params::Params,
    redirect::{RedirectRules, RedirectUri},
    time::StoredTime,
};
use crate::{
    pkce::{CodeChallenge, METHOD},
    scopes::Scopes,
};

/// The longest `state`, in bytes.
const STATE_MAX: usize = 4096;

/// A request whose client id has the form of one. Its parameters are not checked yet.
#[derive(Debug, Clone)]
pub struct AuthorizeRequest {
    params: Params,
    client_id: ClientId,
}

/// The rules of the server for a request.
#[derive(Debug, Clone, Copy)]
pub struct AuthorizeRules<'r> {
    /// The door.
    pub door: &'r Door,
    /// Redirect URIs that clients may have. A client may have registered by older rules.
    pub redirects: &'r RedirectRules,
    /// The scopes that the server supports.
    pub scopes: &'r Scopes,
    /// The treatment of a request that names no resource.
    pub resource: ResourceRule,
}

/// The treatment of a request that names no resource (RFC 8707).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceRule {
    /// It is refused, as by the MCP revision 2026-07-28.
    Demanded,
    /// It is about the door for all servers.
    Defaulted,
}

/// A request that was checked.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The request, for the human's consent.
    pub pending: PendingConsent,
    /// The wish of the client for a page.
    pub prompt: Prompt,
}

/// The wish of a client for a page (OpenID Connect Core, 3.1.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prompt {
    /// A page if one is needed.
    IfNeeded,
    /// No page: an error instead.
    Never,
    /// A page for consent, also if the human is remembered.
    Consent,
}

/// The reason why a request is refused on a page of our own. The page shows nothing of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The parameters cannot be read, or one is given twice.
    #[error("the client sent a request that cannot be read; begin again in the client")]
    Unreadable,
    /// The client id is missing, or is not the id of one client.
    #[error("the client sent no valid client id; remove the server in the client and add it again")]
    BadClientId,
    /// The client is unknown here.
    #[error(
        "the client is not known here any more; remove the server in the client and add it again"
    )]
    UnknownClient,
    /// The redirect URI is missing, or not one of the client's.
    #[error(
        "the client wants the answer at an address that it did not register; remove the server in \
         the client and add it again"
    )]
    BadRedirectUri,
}

/// The refusal of a request.
#[derive(Debug, Clone)]
pub enum AuthorizeRefusal {
    /// A page of our own, with the status 400.
    Page(PageError),
    /// A redirect to the client, whose address was verified.
    Redirect(Redirect),
}

impl AuthorizeRequest {
    /// Reads the query of a request.
    ///
    /// # Errors
    /// When the parameters cannot be read, or the client id has not the form of one.
    pub fn read(query: &str) -> Result<Self, PageError> {
        let params = Params::parse(query.as_bytes()).map_err(|_error| PageError::Unreadable)?;
        let id = params.get("client_id").ok_or(PageError::BadClientId)?;
        let client_id = ClientId::parse(id).map_err(|_error| PageError::BadClientId)?;
        Ok(Self { params, client_id })
    }

    /// The client, which the caller looks up. Without one, the refusal is
    /// [`PageError::UnknownClient`].
    #[must_use]
    pub fn client_id(&self) -> &ClientId {
        &self.client_id
    }

    /// Checks the request of its client.
    ///
    /// Scopes that the client may not get are left out; a request without scopes is one for all
    /// that it may get.
    ///
    /// # Errors
    /// The refusal, as a page or a redirect.
    pub fn check(
        &self,
        client: &Client,
        rules: &AuthorizeRules<'_>,
        now: SystemTime,
    ) -> Result<Checked, AuthorizeRefusal> {
        if client.id != self.client_id {
            return Err(AuthorizeRefusal::Page(PageError::UnknownClient));
        }
        let requested = self.params.get("redirect_uri");
        let redirect_uri = requested
            .and_then(|uri| client.redirect_uri(uri))
            .filter(|uri| rules.redirects.admit(uri.as_str()).is_ok())
            .ok_or(AuthorizeRefusal::Page(PageError::BadRedirectUri))?;
        let redirect = |error| {
            let state = self.params.get("state").filter(|state| state.len() <= STATE_MAX);
            let redirect = Redirect::with_error(&redirect_uri, state, error, rules.door);
            AuthorizeRefusal::Redirect(redirect)
        };
        self.verified(client, rules, redirect_uri.clone(), now).map_err(redirect)
    }

    /// Checks all but the redirect URI.
    fn verified(
        &self,
        client: &Client,
        rules: &AuthorizeRules<'_>,
        redirect_uri: RedirectUri,
        now: SystemTime,
    ) -> Result<Checked, OAuthError> {
        self.check_form()?;
        let pending = PendingConsent {
            client_id: client.id.clone(),
            client_name: client.name.clone(),
            client_link: client.link.clone(),
            verified_host: client.verified_host(),
            redirect_uri,
            scopes: self.scopes(client, rules.scopes)?,
            resource: self.resource(rules)?,
            expires_at: StoredTime::of(now).plus(PENDING_LIFE),
            state: self.params.get("state").map(str::to_owned),
            challenge: self.challenge()?,
        };
        let prompt = match self.params.get("prompt") {
            Some("none") => Prompt::Never,
            Some(prompt) if prompt.split(' ').any(|one| one == "consent") => Prompt::Consent,
            Some(_) | None => Prompt::IfNeeded,
        };
        Ok(Checked { pending, prompt })
    }

    fn check_form(&self) -> Result<(), OAuthError> {
        let refuse = |code, text| Err(OAuthError::new(code, text));
        if self.params.get("request").is_some() {
            return refuse(
                ErrorCode::RequestNotSupported,
                "the parameter request is not supported",
            );
        }
        if self.params.get("request_uri").is_some() {
            let text = "the parameter request_uri is not supported";
            return refuse(ErrorCode::RequestUriNotSupported, text);
        }
        match self.params.get("response_type") {
            None => return refuse(ErrorCode::InvalidRequest, "the response_type is missing"),
            Some("code") => {}
            Some(_) => {
                let text = "the response_type must be code";
                return refuse(ErrorCode::UnsupportedResponseType, text);
            }
        }
        if self.params.get("response_mode").is_some_and(|mode| mode != "query") {
            return refuse(ErrorCode::InvalidRequest, "the response_mode must be query");
        }
        if self.params.get("state").is_some_and(|state| state.len() > STATE_MAX) {
            return refuse(ErrorCode::InvalidRequest, "the state is longer than 4096 bytes");
        }
        Ok(())
    }

    fn challenge(&self) -> Result<CodeChallenge, OAuthError> {
        let refuse = |text| OAuthError::new(ErrorCode::InvalidRequest, text);
        let text = self.params.get("code_challenge");
        let text = text.ok_or(refuse("the code_challenge is missing"))?;
        // A missing method would mean a challenge that is the verifier itself (RFC 7636, 4.3).
        if self.params.get("code_challenge_method") != Some(METHOD) {
            return Err(refuse("the code_challenge_method must be S256"));
        }
        CodeChallenge::parse(text).ok_or(refuse("the code_challenge is no SHA-256 hash"))
    }

    fn scopes(&self, client: &Client, supported: &Scopes) -> Result<Scopes, OAuthError> {
        let invalid = |text| OAuthError::new(ErrorCode::InvalidScope, text);
        let allowed = client.allowed(supported);
        let Some(text) = self.params.get("scope") else { return Ok(allowed) };
        let asked = Scopes::read(text).map_err(|_error| invalid("the scope is malformed"))?;
        if asked.is_empty() {
            return Ok(allowed);
        }
        let given = allowed.common(&asked);
        if given.is_empty() {
            return Err(invalid("none of the scopes is supported for this client"));
        }
        Ok(given)
    }

    fn resource(&self, rules: &AuthorizeRules<'_>) -> Result<Resource, OAuthError> {
        named_resource(&self.params, rules.door)?.map_or_else(
            || match rules.resource {
                ResourceRule::Defaulted => Ok(rules.door.aggregated()),
                ResourceRule::Demanded => {
                    let text = "the parameter resource is missing";
                    Err(OAuthError::new(ErrorCode::InvalidTarget, text))
                }
            },
            Ok,
        )
    }
}

/// The one resource that a request names; `None` if it names none.
///
/// # Errors
/// When it names several, or none of this server (`invalid_target`).
pub(super) fn named_resource(params: &Params, door: &Door) -> Result<Option<Resource>, OAuthError> {
    let invalid = |text| OAuthError::new(ErrorCode::InvalidTarget, text);
    let mut named: Option<Resource> = None;
    for text in params.all("resource") {
        let resource = door.named(text);
        let resource = resource.map_err(|_error| invalid("the resource is not of this server"))?;
        if named.replace(resource.clone()).is_some_and(|other| other != resource) {
            return Err(invalid("the request must name one resource"));
        }
    }
    Ok(named)
}

impl AuthorizeRefusal {
    /// The refusal of a request for which the client wants no page, but one is needed (OpenID
    /// Connect Core, 3.1.2.6): no human is signed in, or the human has to consent.
    #[must_use]
    pub fn needs_page(pending: &PendingConsent, is_signed_in: bool, door: &Door) -> Self {
        let error = if is_signed_in {
            OAuthError::new(ErrorCode::ConsentRequired, "the user has to consent on a page")
        } else {
            OAuthError::new(ErrorCode::LoginRequired, "the user has to sign in on a page")
        };
        let state = pending.state.as_deref();
        Self::Redirect(Redirect::with_error(&pending.redirect_uri, state, error, door))
    }
}

#[cfg(test)]
mod tests;
