//! Accounts as which clients work without a page, and the rules for their scopes.

use narthex_model::{AgentName, PrincipalId};

use super::{
    answer::{ErrorCode, OAuthError},
    client::Client,
};
use crate::scopes::Scopes;

/// The account as which a client works, as the caller knows it: the person of an assertion, or the
/// service account that an operator gave to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The user, or the principal of the service.
    pub user: PrincipalId,
    /// The id of the workspace in which the client works.
    pub workspace: String,
    /// The agent as which it works, if one is chosen.
    pub agent: Option<AgentName>,
}

/// The rules for an access token without a page.
#[derive(Debug, Clone, Copy)]
pub struct IssueRules<'r> {
    /// The client, which is proved.
    pub client: &'r Client,
    /// The scopes that the server supports.
    pub scopes: &'r Scopes,
}

impl IssueRules<'_> {
    /// The scopes that the client may get, within these limits.
    pub(super) fn given(&self, limits: [Option<&Scopes>; 2]) -> Result<Scopes, OAuthError> {
        let allowed = self.client.allowed(self.scopes);
        let limits = limits.into_iter().flatten().filter(|limit| !limit.is_empty());
        let given = limits.fold(allowed, |given, limit| given.common(limit));
        if given.is_empty() {
            return Err(NO_SCOPES);
        }
        Ok(given)
    }
}

/// The error for a client that may get none of the scopes.
pub(super) const NO_SCOPES: OAuthError =
    OAuthError::new(ErrorCode::InvalidScope, "none of the scopes is supported for this client");
