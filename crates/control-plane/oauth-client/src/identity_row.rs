//! The rows of identities: those of humans at login providers, and those of settings (C31).

use narthex_oauth::{client::Identity, metadata::ServerMetadata};
use url::Url;

use crate::{SignInError, grant_row::GrantValue, guard::Guard, holding::Parts, store::GrantKey};

/// The beginning of the names of rows of identities of humans, by login provider. It has a `/`, so
/// that none is an alias.
const OF_LOGIN: &str = "login/";

/// The human whose identity at a login provider a row has.
pub(crate) fn human_of(key: &GrantKey) -> Option<&str> {
    key.user.as_deref().filter(|_| key.server.starts_with(OF_LOGIN))
}

/// The identity of a human at a login provider, as the provider's token endpoint gave it.
#[derive(Debug, Clone)]
pub struct LoginIdentity {
    /// The name of the login provider.
    pub provider: String,
    /// The provider's issuer.
    pub issuer: String,
    /// The provider's token endpoint.
    pub token_endpoint: Url,
    /// The methods of client authentication that the provider lists.
    pub auth_methods: Option<Vec<String>>,
    /// Narthex's client id at the provider.
    pub client_id: String,
    /// The tokens.
    pub identity: Identity,
}

impl LoginIdentity {
    /// The key of the row of a human's identity at a provider.
    #[must_use]
    pub fn key(provider: &str, user: &str) -> GrantKey {
        GrantKey {
            workspace: narthex_model::WorkspaceId::default().to_string(),
            server: format!("{OF_LOGIN}{provider}"),
            user: Some(user.to_owned()),
        }
    }

    /// The row's value. `now` in seconds since 1970.
    fn value(self, now: u64) -> GrantValue {
        let Self { provider: _, issuer, token_endpoint, auth_methods, client_id, identity } = self;
        let token_url = token_endpoint;
        let at = At { issuer, token_url, methods: auth_methods, print: String::new() };
        at.value(&identity, client_id, now)
    }
}

/// Stores the identity of a human, in place of an earlier one.
///
/// # Errors
/// When the store fails.
pub(crate) async fn keep(
    parts: &Parts,
    user: &str,
    login: LoginIdentity,
) -> Result<(), SignInError> {
    let (key, now) = (LoginIdentity::key(&login.provider, user), parts.now());
    let value = login.value(now);
    let facts = value.facts(Some(now));
    parts.options.store.put_grant(key, value.to_stored(), facts).await?;
    Ok(())
}

/// Drops all identities of a human. True if there was one.
///
/// # Errors
/// When the store fails.
pub(crate) async fn forget(parts: &Parts, user: &str) -> Result<bool, SignInError> {
    let store = &parts.options.store;
    let workspace = LoginIdentity::key("", user).workspace;
    let mut had = false;
    for (key, _) in store.grants(workspace, Some(user.to_owned())).await? {
        if key.server.starts_with(OF_LOGIN) {
            had |= store.drop_grant(key, None).await?;
        }
    }
    Ok(had)
}

/// The place of an identity.
#[derive(Debug)]
pub(crate) struct At {
    pub(crate) issuer: String,
    pub(crate) token_url: Url,
    pub(crate) methods: Option<Vec<String>>,
    /// The settings that the identity is of.
    pub(crate) print: String,
}

/// An identity of a row.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) identity: Identity,
    pub(crate) at: At,
    pub(crate) client_id: String,
}

impl Stored {
    /// Reads the value of a row; `None` for others.
    pub(crate) fn of(value: GrantValue) -> Option<Self> {
        let GrantValue { grant, server, metadata, client: _ } = value;
        let metadata = metadata?;
        let at = At {
            issuer: grant.issuer.clone(),
            token_url: metadata.token_endpoint?,
            methods: metadata.token_endpoint_auth_methods_supported,
            print: server,
        };
        Some(Self { identity: Identity::of_grant(&grant), at, client_id: grant.client_id })
    }
}

impl At {
    /// The provider as narthex knows it.
    pub(crate) fn metadata(&self) -> ServerMetadata {
        ServerMetadata {
            issuer: self.issuer.clone(),
            token_endpoint: Some(self.token_url.clone()),
            token_endpoint_auth_methods_supported: self.methods.clone(),
            ..ServerMetadata::default()
        }
    }

    /// The guard of the provider, which an operator chose.
    pub(crate) async fn guard(&self) -> Guard {
        Guard::of(&self.token_url, std::slice::from_ref(&self.token_url)).await
    }

    /// The value of a row of an identity. `now` in seconds since 1970.
    pub(crate) fn value(&self, identity: &Identity, client_id: String, now: u64) -> GrantValue {
        GrantValue {
            grant: identity.to_grant(self.issuer.clone(), client_id, now),
            server: self.print.clone(),
            metadata: Some(self.metadata()),
            client: None,
        }
    }
}
