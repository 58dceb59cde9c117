//! A client's request that waits for a human's consent, the answer to it, and the memory of it.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use narthex_model::{AgentName, PrincipalId, Secret};
use serde::{Deserialize, Serialize};
use url::form_urlencoded;

use super::{
    answer::{ErrorCode, OAuthError},
    client::ClientId,
    code::{CodeRecord, NewCode},
    door::{Door, Resource},
    grant::Grant,
    redirect::{RedirectKind, RedirectUri},
    text::ClientName,
    time::StoredTime,
};
use crate::{pkce::CodeChallenge, scopes::Scopes};

/// Time for which a request waits for its human.
pub const PENDING_LIFE: Duration = Duration::from_mins(10);

/// An authorization request that was checked, and waits for a human. The caller stores it under a
/// token of its own, takes it once, and shows it to one login session.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingConsent {
    /// The client.
    pub client_id: ClientId,
    /// The client's own name for itself.
    pub client_name: ClientName,
    /// The client's own page.
    pub client_link: Option<String>,
    /// The host that the client proved to own; `None` if it proved nothing.
    pub verified_host: Option<String>,
    /// The verified redirect URI of the request.
    pub redirect_uri: RedirectUri,
    /// The scopes that the client would get.
    pub scopes: Scopes,
    /// The resource at which its tokens would be valid.
    pub resource: Resource,
    /// Time from which the request can no longer be answered.
    pub expires_at: StoredTime,
    /// The client's own state, which is sent back as it came.
    pub(super) state: Option<String>,
    pub(super) challenge: CodeChallenge,
}

/// The warning of a page that asks for consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsentWarning {
    /// The client answers at this machine, where any program could: the human has to have begun
    /// this in a program just now.
    Loopback,
    /// The client answers by a scheme of its own, which another program could have taken.
    PrivateUse,
    /// The client answers at a host that it did not prove to own by its id.
    UnverifiedHost,
}

/// The human's choice on the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The human.
    pub user: PrincipalId,
    /// The id of the workspace in which the client may work.
    pub workspace: String,
    /// The agent as which it works, if one was chosen.
    pub agent: Option<AgentName>,
}

/// The consequence of an approval.
#[derive(Debug)]
pub struct Approved {
    /// The code, to be stored.
    pub code: CodeRecord,
    /// The consent, to be remembered.
    pub consent: Consent,
    /// The address to which the browser is sent.
    pub redirect: Redirect,
}

/// The address to which a browser is sent with an answer. It may contain a code, and is not
/// printed.
#[derive(Debug, Clone)]
pub struct Redirect(Secret);

/// A human's remembered consent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    /// The human.
    pub user: PrincipalId,
    /// The client.
    pub client_id: ClientId,
    /// The place that the redirect URI leads to: see [`RedirectUri::place`].
    pub place: String,
    /// The id of the workspace.
    pub workspace: String,
    /// The agent as which the client works, if one was chosen.
    pub agent: Option<AgentName>,
    /// The resource.
    pub resource: Resource,
    /// The scopes.
    pub scopes: Scopes,
    /// Time of the consent.
    pub given_at: StoredTime,
}

impl PendingConsent {
    /// The warnings that the page has to show.
    #[must_use]
    pub fn warnings(&self) -> Vec<ConsentWarning> {
        let host = self.redirect_uri.place();
        match self.redirect_uri.kind() {
            RedirectKind::Loopback => vec![ConsentWarning::Loopback],
            RedirectKind::PrivateUse => vec![ConsentWarning::PrivateUse],
            RedirectKind::Web if self.verified_host.as_ref() == Some(&host) => Vec::new(),
            RedirectKind::Web => vec![ConsentWarning::UnverifiedHost],
        }
    }

    /// True if the request can no longer be answered.
    #[must_use]
    pub fn is_over(&self, now: SystemTime) -> bool {
        StoredTime::of(now) >= self.expires_at
    }

    /// Approves the request: a code for the client, bound to it, to its redirect URI and challenge,
    /// and to the human's choice (RFC 6749, 4.1.2). The redirect has `code`, `state` and `iss` (RFC
    /// 9207).
    ///
    /// # Errors
    /// When the request waited for too long, or the operating system gives no random bytes.
    pub fn approve(
        self,
        approval: Approval,
        door: &Door,
        now: SystemTime,
    ) -> Result<Approved, OAuthError> {
        if self.is_over(now) {
            let text = "the request waited for too long; begin again in the client";
            return Err(OAuthError::new(ErrorCode::InvalidRequest, text));
        }
        let Approval { user, workspace, agent } = approval;
        let grant = Grant {
            client_id: self.client_id,
            user,
            workspace,
            agent,
            resource: self.resource,
            scopes: self.scopes,
        };
        let consent = Consent {
            user: grant.user.clone(),
            client_id: grant.client_id.clone(),
            place: self.redirect_uri.place(),
            workspace: grant.workspace.clone(),
            agent: grant.agent.clone(),
            resource: grant.resource.clone(),
            scopes: grant.scopes.clone(),
            given_at: StoredTime::of(now),
        };
        let NewCode { code, record } =
            NewCode::generate(grant, self.redirect_uri.clone(), self.challenge, now)?;
        let answer = [Some(("code", code.expose())), state(self.state.as_deref())];
        let redirect = Redirect::to(&self.redirect_uri, door, answer.into_iter().flatten());
        Ok(Approved { code: record, consent, redirect })
    }

    /// Denies the request: the redirect has `error=access_denied`, `state` and `iss` (RFC 6749,
    /// 4.1.2.1).
    #[must_use]
    pub fn deny(self, door: &Door) -> Redirect {
        let error = OAuthError::new(ErrorCode::AccessDenied, "the user denied the request");
        Redirect::with_error(&self.redirect_uri, self.state.as_deref(), error, door)
    }
}

impl fmt::Debug for PendingConsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingConsent")
            .field("client_id", &self.client_id)
            .field("place", &self.redirect_uri.place())
            .field("scopes", &self.scopes)
            .field("resource", &self.resource)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// The parameter `state`, if the client sent one.
fn state(state: Option<&str>) -> Option<(&'static str, &str)> {
    state.map(|state| ("state", state))
}

impl Redirect {
    /// An address with the parameters of an answer, and the issuer (RFC 9207).
    fn to<'p>(
        uri: &RedirectUri,
        door: &Door,
        answer: impl Iterator<Item = (&'static str, &'p str)>,
    ) -> Self {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(answer).append_pair("iss", door.issuer());
        Self(Secret::new(uri.with(&query.finish())))
    }

    /// An address with an error, for a redirect URI that was verified.
    pub(super) fn with_error(
        uri: &RedirectUri,
        client_state: Option<&str>,
        error: OAuthError,
        door: &Door,
    ) -> Self {
        let code = ("error", error.code.as_str());
        let description = ("error_description", error.description);
        let answer = [Some(code), Some(description), state(client_state)];
        Self::to(uri, door, answer.into_iter().flatten())
    }

    /// The address, for the header `Location`.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

impl Consent {
    /// True if this consent is about the client, place, resource and all scopes of a request of
    /// this human.
    #[must_use]
    pub fn covers(&self, user: &PrincipalId, pending: &PendingConsent) -> bool {
        self.user == *user
            && self.client_id == pending.client_id
            && self.place == pending.redirect_uri.place()
            && self.resource == pending.resource
            && self.scopes.contains_all(&pending.scopes)
    }

    /// True if a request that this consent covers needs no page. A page that has a warning is never
    /// left out: the client did not prove the place of the answer (RFC 6749, 10.2; RFC 8252, 8.6).
    #[must_use]
    pub fn replaces_page(&self, user: &PrincipalId, pending: &PendingConsent) -> bool {
        pending.warnings().is_empty() && self.covers(user, pending)
    }

    /// The choice of this consent, to answer a request without a page.
    #[must_use]
    pub fn approval(&self) -> Approval {
        let Self { user, workspace, agent, .. } = self.clone();
        Approval { user, workspace, agent }
    }
}

#[cfg(test)]
mod tests;
