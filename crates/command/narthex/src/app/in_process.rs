//! Credentials of a process without a store. One process alone may work with the keys of a data
//! directory (decision 142), so a command beside the daemon has no tokens of people, and names the
//! command that uses those of the daemon. Tokens for which no person is needed stay in memory.

use std::{future::ready, sync::Arc};

use narthex_model::{AuthorizationCodeAuth, OAuth, ServerAuth, command::narthex};
use narthex_oauth_client::SignIns;
use narthex_upstream::{
    AtHand, CredentialFault, CredentialQuery, CredentialSource, Credentials, Obtaining,
    RefusedRequest,
};

/// Gives tokens for which no person is needed.
#[derive(Debug)]
pub(super) struct WithoutPeople(pub(super) SignIns);

/// The missing credential of one server.
#[derive(Debug)]
struct Missing {
    alias: String,
    /// True if the server needs a token by its entry.
    is_needed: bool,
}

impl CredentialSource for WithoutPeople {
    fn credentials(&self, query: CredentialQuery<'_>) -> Option<Arc<dyn Credentials>> {
        let is_needed = match &query.target.auth {
            ServerAuth::OAuth(oauth) => match &**oauth {
                OAuth::ClientCredentials(_) => return self.0.credentials(query),
                OAuth::AuthorizationCode(auth) if has_identity(auth) => {
                    let CredentialQuery { alias, target, holder } = query;
                    let mut target = target.clone();
                    target.auth.without_fallback();
                    return self.0.credentials(CredentialQuery { alias, target: &target, holder });
                }
                OAuth::AuthorizationCode(_) => true,
            },
            ServerAuth::Unstated => false,
            ServerAuth::None | ServerAuth::ApiKey(_) => return None,
        };
        Some(Arc::new(Missing { alias: query.alias.to_string(), is_needed }))
    }
}

/// True if the settings have the identity of a person, so that no human is needed.
fn has_identity(auth: &AuthorizationCodeAuth) -> bool {
    auth.exchange.as_ref().is_some_and(|exchange| exchange.given().is_some())
}

impl Missing {
    fn fault(&self) -> CredentialFault {
        let authorize = narthex("mcp authorize {}", &[&self.alias]);
        let why = format!(
            "it needs a sign-in, and only the daemon has those; add it to the daemon's servers, \
             sign in with `{authorize}`, then leave out --config"
        );
        CredentialFault::Unusable { why }
    }
}

impl Credentials for Missing {
    fn at_hand(&self) -> AtHand {
        match self.is_needed {
            true => AtHand::Ask,
            false => AtHand::Ready(None),
        }
    }

    fn obtain(&self) -> Obtaining<'_> {
        let obtained = if self.is_needed { Err(self.fault()) } else { Ok(None) };
        Box::pin(ready(obtained))
    }

    fn refused(&self, refusal: RefusedRequest) -> Obtaining<'_> {
        let is_bearer =
            refusal.challenges.iter().any(|one| one.to_ascii_lowercase().contains("bearer"));
        let fault = match self.is_needed || refusal.status == 401 && is_bearer {
            true => self.fault(),
            false => CredentialFault::Rejected { status: refusal.status },
        };
        Box::pin(ready(Err(fault)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that asks for nothing is called without a token, and its first refusal names
    /// the command.
    #[tokio::test]
    async fn oauth_c1_a_command_beside_the_daemon_names_the_command_that_signs_in() {
        let missing = Missing { alias: "linear".to_owned(), is_needed: false };
        assert_eq!(missing.obtain().await, Ok(None));
        let refused = |status, challenge: &str| RefusedRequest {
            status,
            challenges: vec![challenge.to_owned()],
            sent: None,
            operation: "initialize".to_owned(),
            is_repeated: false,
        };
        let fault = missing.refused(refused(401, "Bearer scope=\"mcp\"")).await.unwrap_err();
        assert!(fault.to_string().contains("`narthex mcp authorize linear`"), "{fault}");
        let other = missing.refused(refused(401, "Basic realm=\"x\"")).await.unwrap_err();
        assert_eq!(other, CredentialFault::Rejected { status: 401 });
        let needed = Missing { alias: "linear".to_owned(), is_needed: true };
        assert_eq!(needed.obtain().await, Err(fault));
    }
}
