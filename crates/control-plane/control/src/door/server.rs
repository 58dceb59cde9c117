//! The rules of the door as an authorization server, its documents, and the tokens that this
//! process has seen.

use std::sync::Arc;

use narthex_http_client::Proxies;
use narthex_login::{DoorOptions, LocalConsent};
use narthex_model::McpClientId;
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

use super::fetched_keys::FetchedKeys;
use crate::live::KeyedLock;

/// The scope of ordinary work. Rights for single tools are grants of humans, and no scopes.
const SCOPE: &str = "mcp";
/// Most documents and keys of programs that are fetched at a time.
const FETCHES_MAX: usize = 8;

/// The door as an authorization server, for as long as the process lives.
#[derive(Debug)]
pub struct DoorServer {
    pub(super) options: DoorOptions,
    pub(super) scopes: Scopes,
    pub(super) proxies: Arc<Proxies>,
    /// Access tokens that this process has seen.
    pub(super) seen: papaya::HashMap<TokenHash, Arc<SeenToken>>,
    /// Locks per program whose document is fetched.
    pub(super) fetching: KeyedLock<ClientId>,
    pub(super) fetches: Semaphore,
    /// The keys of programs that name an address for them.
    pub(super) keys: FetchedKeys,
}

impl DoorServer {
    pub(crate) fn new(options: DoorOptions, proxies: Arc<Proxies>) -> Self {
        Self {
            options,
            scopes: Scopes::default().with(SCOPE),
            proxies,
            seen: papaya::HashMap::new(),
            fetching: KeyedLock::default(),
            fetches: Semaphore::new(FETCHES_MAX),
            keys: FetchedKeys::default(),
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
        resource_metadata(&door, path, &AuthorizationServers::Own, &self.scopes)
    }

    /// The metadata of the authorization server.
    #[must_use]
    pub fn server_metadata(&self) -> Value {
        let features = ServerFeatures {
            registration: Feature::On,
            client_documents: Feature::On,
            assertions: Feature::Off,
            services: Feature::Off,
        };
        let scopes = self.scopes.clone().with(OFFLINE_ACCESS);
        server_metadata(self.door(), features, &scopes)
    }

    /// The challenge for a refused request of a client at this host.
    #[must_use]
    pub fn challenge(&self, refusal: Refusal, host: &str, path: &DoorPath) -> ChallengeAnswer {
        refusal.challenge(&self.door().reached_at(host), path, &self.scopes)
    }
}

/// An access token that this process has read from the store.
#[derive(Debug)]
pub(super) struct SeenToken {
    pub(super) record: AccessRecord,
    pub(super) connection: McpClientId,
}
