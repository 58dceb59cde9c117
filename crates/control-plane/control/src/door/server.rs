//! The rules of the door as an authorization server, its documents, and the tokens that this
//! process has seen.

use std::{net::IpAddr, sync::Arc, time::Duration};

use narthex_http_client::Proxies;
use narthex_login::{DoorOptions, LocalConsent};
use narthex_model::{McpClientId, PrincipalId};
use narthex_oauth::{
    TokenHash,
    scopes::{OFFLINE_ACCESS, Scopes},
    server::{
        AccessRecord, AuthorizationServers, ChallengeAnswer, ClientId, Door, DoorPath, Feature,
        Refusal, ServerFeatures, resource_metadata, server_metadata,
    },
};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::{
    bounded::Bounded,
    counted::Counted,
    fetched_keys::{FetchedKeys, no_keys},
    foreign_token::VerifiedToken,
};
use crate::live::KeyedLock;

/// The scope of ordinary work. Rights for single tools are grants of humans, and no scopes.
const SCOPE: &str = "mcp";
/// Most access tokens that are in memory; with more, all are read or verified again.
const TOKENS_MAX: usize = 50_000;
/// Time in which registrations of one address are counted.
const REGISTRATIONS: Duration = Duration::from_hours(1);
/// Most addresses whose registrations are counted.
const SENDERS_MAX: usize = 10_000;
/// Time in which the questions of one service or client are counted.
const QUESTIONS: Duration = Duration::from_mins(1);
/// Most services, and most clients, that ask in this time.
const ASKERS_MAX: usize = 10_000;
/// Most documents and keys of programs that are fetched at a time.
const FETCHES_MAX: usize = 8;

/// The door as an authorization server, for as long as the process lives.
#[derive(Debug)]
pub struct DoorServer {
    pub(super) options: DoorOptions,
    pub(super) scopes: Scopes,
    pub(super) proxies: Arc<Proxies>,
    /// Access tokens that this process has seen.
    pub(super) seen: Bounded<TokenHash, Arc<SeenToken>>,
    /// Locks per program whose document is fetched.
    pub(super) fetching: KeyedLock<ClientId>,
    pub(super) fetches: Semaphore,
    /// The keys of programs that name an address for them.
    pub(super) keys: FetchedKeys,
    /// The keys of the company's own issuers.
    pub(super) issuer_keys: FetchedKeys,
    /// Access tokens of these issuers that this process has verified.
    pub(super) foreign: Bounded<TokenHash, Arc<VerifiedToken>>,
    /// Locks per person whose client is let in.
    pub(super) letting_in: KeyedLock<PrincipalId>,
    /// Registrations by the address of their sender.
    pub(super) registrations: Counted<IpAddr>,
    /// Questions of services about tokens.
    pub(super) questions: Counted<PrincipalId>,
    /// Questions of clients about tokens.
    pub(super) client_questions: Counted<ClientId>,
    /// The scopes that all these issuers need.
    issuer_scopes: Scopes,
}

impl DoorServer {
    pub(crate) fn new(options: DoorOptions, proxies: Arc<Proxies>) -> Self {
        let of_issuers = options.issuers.iter();
        let issuer_scopes =
            of_issuers.fold(Scopes::default(), |all, issuer| all.union(&issuer.scopes));
        Self {
            options,
            scopes: Scopes::default().with(SCOPE),
            proxies,
            seen: Bounded::new(TOKENS_MAX),
            fetching: KeyedLock::default(),
            fetches: Semaphore::new(FETCHES_MAX),
            keys: no_keys(),
            issuer_keys: no_keys(),
            foreign: Bounded::new(TOKENS_MAX),
            letting_in: KeyedLock::default(),
            registrations: Counted::new(REGISTRATIONS, SENDERS_MAX),
            questions: Counted::new(QUESTIONS, ASKERS_MAX),
            client_questions: Counted::new(QUESTIONS, ASKERS_MAX),
            issuer_scopes,
        }
    }

    /// The addresses of the door.
    #[must_use]
    pub fn door(&self) -> &Door {
        &self.options.door
    }

    /// The scopes that ordinary work needs.
    #[must_use]
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// True if a click in a browser of this machine counts where no human has signed in.
    #[must_use]
    pub fn has_local_click(&self) -> bool {
        self.options.consent == LocalConsent::Click
    }

    /// The metadata of the resource at a path, as a client at this host reaches it.
    #[must_use]
    pub fn resource_metadata(&self, host: &str, path: &DoorPath) -> Value {
        let door = self.door().reached_at(host);
        let scopes = if self.gives_tokens() { &self.scopes } else { &self.issuer_scopes };
        resource_metadata(&door, path, &self.options.servers, scopes)
    }

    /// True if narthex is the authorization server of its door, and false if only issuers of the
    /// company are.
    #[must_use]
    pub fn gives_tokens(&self) -> bool {
        self.options.servers == AuthorizationServers::Own
    }

    /// The metadata of the authorization server.
    #[must_use]
    pub fn server_metadata(&self) -> Value {
        let features = ServerFeatures {
            registration: Feature::On,
            client_documents: Feature::On,
            assertions: match self.options.issuers.is_empty() {
                true => Feature::Off,
                false => Feature::On,
            },
            services: Feature::Off,
        };
        let scopes = self.scopes.clone().with(OFFLINE_ACCESS);
        server_metadata(self.door(), features, &scopes)
    }

    /// The challenge for a refused request of a client at this host.
    #[must_use]
    pub fn challenge(&self, refusal: Refusal, host: &str, path: &DoorPath) -> ChallengeAnswer {
        // Tokens of narthex have all of its scopes, so that only one of an issuer lacks some.
        let is_own = self.gives_tokens() && refusal != Refusal::MoreScopes;
        let scopes = if is_own { &self.scopes } else { &self.issuer_scopes };
        refusal.challenge(&self.door().reached_at(host), path, scopes)
    }
}

/// An access token that this process has read from the store.
#[derive(Debug)]
pub(super) struct SeenToken {
    pub(super) record: AccessRecord,
    pub(super) connection: McpClientId,
}
