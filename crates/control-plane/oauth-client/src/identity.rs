//! The identity of a person at the company's provider, as an exchange needs it (C31).
//!
//! The identity is a row of the store, as grants are: sealed, and renewed by one process at a time.
//! Tokens of the settings become a row once they are renewed.

use narthex_oauth::{
    client::{
        Asked, ClientIdentity, Exchange, Failure, Given, Identity, IdentitySource, Refusal,
        Subject, TokenEndpoint, TokenGrant, Tokens, shown_url,
    },
    metadata::ServerMetadata,
    scopes::Scopes,
};

use crate::{
    SignInError,
    grant_row::GrantValue,
    guard::Guard,
    holding::Holding,
    identity_row::{At, LoginIdentity, Stored},
    lease::{Right, Wish},
    renewal::written,
    state::Unsaved,
    store::{GrantKey, GrantRow},
};

/// The beginning of the names of rows of identities of settings, by alias.
const OF_SETTINGS: &str = "identity/";

/// The subject of an exchange, with the provider that takes it.
#[derive(Debug)]
pub(crate) struct Proof {
    pub(crate) subject: Subject,
    pub(crate) client: ClientIdentity,
    /// The provider's issuer and token endpoint.
    pub(crate) metadata: ServerMetadata,
    pub(crate) guard: Guard,
}

/// The identity of one person.
#[derive(Debug)]
pub(crate) struct IdentityHolder<'a> {
    holding: &'a Holding,
    alias: &'a str,
    key: GrantKey,
    source: &'a IdentitySource,
}

/// An identity as found: in a row, or in the settings.
struct Known {
    identity: Identity,
    at: At,
    client: ClientIdentity,
    row: Option<GrantRow>,
}

impl<'a> IdentityHolder<'a> {
    /// The person of an exchange.
    ///
    /// # Errors
    /// When the server belongs to no human, whose sign-in could count.
    pub(crate) fn of(
        holding: &'a Holding,
        exchange: &'a Exchange,
        alias: &'a str,
    ) -> Result<Self, SignInError> {
        let source = &exchange.identity;
        let key = match source {
            IdentitySource::Login(provider) => match &holding.key.user {
                Some(user) => LoginIdentity::key(provider, user),
                None => return Err(no_identity(holding, alias, provider)),
            },
            IdentitySource::Given(_) => {
                let server = format!("{OF_SETTINGS}{}", holding.key.server);
                GrantKey { server, ..holding.key.clone() }
            }
        };
        Ok(Self { holding, alias, key, source })
    }

    /// A subject that the provider should take: the ID token, which is renewed first if it has
    /// ended.
    ///
    /// # Errors
    /// When there is no identity, or the identity has ended.
    pub(crate) async fn proof(&self) -> Result<Proof, SignInError> {
        let known = self.known().await?;
        match known.identity.living(self.holding.now()) {
            Some(subject) => Ok(known.proof(subject).await),
            None => self.renewed(known).await,
        }
    }

    /// A subject in place of one that the provider has refused. `None` if nothing can be renewed.
    ///
    /// # Errors
    /// When the identity has ended.
    pub(crate) async fn other_proof(
        &self,
        refused: &Subject,
    ) -> Result<Option<Proof>, SignInError> {
        let known = self.known().await?;
        let living = known.identity.living(self.holding.now());
        match living.filter(|living| living.token != refused.token) {
            // Another task has renewed the identity since.
            Some(subject) => Ok(Some(known.proof(subject).await)),
            None if known.identity.refresh_token.is_none() => Ok(None),
            None => self.renewed(known).await.map(Some),
        }
    }

    /// Drops an identity that the provider takes no more. One of the settings stays.
    pub(crate) async fn end(&self) {
        if let IdentitySource::Given(_) = self.source {
            return;
        }
        let store = &self.holding.parts.options.store;
        if let Err(error) = store.drop_grant(self.key.clone(), None).await {
            tracing::warn!(server.name = %self.alias, %error, "an ended identity is not removed");
        }
    }

    /// The fault of an identity that has ended.
    pub(crate) fn ended(&self) -> SignInError {
        match self.source {
            IdentitySource::Login(provider) => no_identity(self.holding, self.alias, provider),
            IdentitySource::Given(_) => {
                SignInError::IdentityEnded { server: self.alias.to_owned() }
            }
        }
    }

    async fn known(&self) -> Result<Known, SignInError> {
        let row = self.holding.parts.options.store.grant(self.key.clone()).await?;
        let value = row.as_ref().and_then(|row| GrantValue::from_stored(&row.value));
        match self.source {
            IdentitySource::Login(provider) => {
                let hooks = &self.holding.parts.options.hooks;
                let stored = value.and_then(Stored::of);
                let client = hooks.login_client(provider);
                match (stored, client) {
                    // An identity is for the client that it was given to.
                    (Some(stored), Some(client)) if stored.client_id == client.id => {
                        let Stored { identity, at, client_id: _ } = stored;
                        let client = client.listed(at.methods.as_deref());
                        Ok(Known { identity, at, client, row })
                    }
                    (_, None) => Err(no_provider(self.alias, provider)),
                    (_, Some(_)) => Err(no_identity(self.holding, self.alias, provider)),
                }
            }
            IdentitySource::Given(given) => {
                let Given { token_url, client, identity, print } = &**given;
                let stored = value.and_then(Stored::of);
                let stored = stored.filter(|stored| stored.at.print == print.as_str());
                let identity = stored.map_or_else(|| identity.clone(), |stored| stored.identity);
                let (issuer, token_url) = (token_url.to_string(), token_url.clone());
                let print = print.as_str().to_owned();
                let at = At { issuer, token_url, methods: None, print };
                Ok(Known { identity, at, client: client.clone(), row })
            }
        }
    }

    /// Renews the identity at the provider, or takes over the result of another task.
    async fn renewed(&self, known: Known) -> Result<Proof, SignInError> {
        let parts = &self.holding.parts;
        if known.identity.refresh_token.is_none() {
            return Err(self.ended());
        }
        let row = match &known.row {
            Some(row) if known.is_in(row) => row.clone(),
            Some(_) | None => {
                let value = known.at.value(&known.identity, known.client.id.clone(), parts.now());
                let facts = value.facts(None);
                parts.options.store.put_grant(self.key.clone(), value.to_stored(), facts).await?
            }
        };
        let wish = Wish { key: &self.key, owner: self.owner(), server: self.alias };
        let generation = row.generation;
        match wish.right(parts, |other| other.generation == generation).await? {
            Right::Mine => self.refresh(Known { row: Some(row), ..known }).await,
            Right::Written(_) => {
                let known = self.known().await?;
                let subject = known.identity.renewed_subject(parts.now());
                match subject {
                    Some(subject) => Ok(known.proof(subject).await),
                    None => Err(self.ended()),
                }
            }
            Right::Gone => Err(self.ended()),
        }
    }

    /// The owner of leases: servers of one human share the identity, and never renew it at once.
    fn owner(&self) -> String {
        let GrantKey { workspace, server, .. } = &self.holding.key;
        format!("{} {workspace} {server}", self.holding.owner())
    }

    /// Sends the refresh token, and stores the answer before it is used.
    async fn refresh(&self, known: Known) -> Result<Proof, SignInError> {
        let parts = &self.holding.parts;
        let (now, none) = (parts.now(), Scopes::default());
        let (Some(token), Some(row)) = (&known.identity.refresh_token, &known.row) else {
            return Err(self.ended());
        };
        let (metadata, guard) = (known.at.metadata(), known.at.guard().await);
        let endpoint =
            TokenEndpoint { metadata: &metadata, client: &known.client, resource: None, now };
        let fault = |fault| SignInError::Request { server: self.alias.to_owned(), fault };
        let request = endpoint.refresh(token, None).map_err(fault)?;
        let fetched = parts.fetcher.post_form(&guard, &request).await;
        let asked = Asked { grant: TokenGrant::Refresh, scopes: &none, now };
        let tokens = match Tokens::read(&fetched.reply(), asked) {
            Ok(tokens) => tokens,
            Err(refusal) => return Err(self.fail(row, &known.at, refusal).await),
        };
        let identity = known.identity.renewed(tokens);
        let value = known.at.value(&identity, known.client.id.clone(), now);
        let facts = value.facts(Some(now));
        let unsaved = Unsaved { generation: row.generation, value, facts };
        if written(parts, &self.key, &unsaved).await?.is_none() {
            // The human has signed in or out meanwhile.
            let known = self.known().await?;
            let subject = known.identity.living(now).ok_or_else(|| self.ended())?;
            return Ok(known.proof(subject).await);
        }
        let subject = identity.renewed_subject(now).ok_or_else(|| self.ended())?;
        Ok(Known { identity, ..known }.proof(subject).await)
    }

    /// Carries out the consequences of a refused renewal (C25).
    async fn fail(&self, row: &GrantRow, at: &At, refusal: Refusal) -> SignInError {
        tracing::warn!(
            server.name = %self.alias,
            %refusal,
            "the identity of a person cannot be renewed"
        );
        if refusal.failure == Failure::GrantEnded {
            let store = &self.holding.parts.options.store;
            let dropped = store.drop_grant(self.key.clone(), Some(row.generation)).await;
            if let Err(error) = dropped {
                tracing::warn!(server.name = %self.alias, %error, "an ended identity stays");
            }
            return self.ended();
        }
        let mut facts = row.facts.clone();
        facts.failed_at = Some(self.holding.now());
        facts.failure = Some(refusal.to_string());
        let store = &self.holding.parts.options.store;
        // This ends the lease.
        let noted = store.note_failure(self.key.clone(), row.generation, facts).await;
        if let Err(error) = noted {
            tracing::warn!(server.name = %self.alias, %error, "a failure is not stored");
        }
        let (server, endpoint) = (self.alias.to_owned(), shown_url(&at.token_url));
        SignInError::Token { server, endpoint, refusal }
    }
}

impl Known {
    /// True if a row has this identity.
    fn is_in(&self, row: &GrantRow) -> bool {
        let stored = GrantValue::from_stored(&row.value).and_then(Stored::of);
        stored.is_some_and(|stored| {
            stored.identity == self.identity && stored.at.print == self.at.print
        })
    }

    async fn proof(&self, subject: Subject) -> Proof {
        let (metadata, guard) = (self.at.metadata(), self.at.guard().await);
        Proof { subject, client: self.client.clone(), metadata, guard }
    }
}

/// The fault of a human whose identity narthex does not have.
fn no_identity(holding: &Holding, alias: &str, provider: &str) -> SignInError {
    let page = holding.parts.options.hooks.login_page(provider);
    SignInError::NoIdentity {
        server: alias.to_owned(),
        provider: provider.to_owned(),
        page: page.map(Box::new),
    }
}

/// The fault of a login provider that the daemon does not have.
pub(crate) fn no_provider(alias: &str, provider: &str) -> SignInError {
    SignInError::NoProvider { server: alias.to_owned(), provider: provider.to_owned() }
}
