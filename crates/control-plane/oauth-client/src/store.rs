//! The store of grants, clients and attempts, as the sign-ins need it.
//!
//! Values are sealed by the store or by its caller's vault; this crate passes them as [`Secret`].

use std::{fmt, pin::Pin, sync::Arc};

use narthex_model::{PrincipalId, Secret};
use serde::{Deserialize, Serialize};

/// An operation of a store.
pub type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreFault>> + Send + 'a>>;

/// A failure of the store. Its text holds no secret.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the store of sign-ins failed: {0}")]
pub struct StoreFault(pub Arc<str>);

/// The key of a grant: one server, for one human or shared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GrantKey {
    /// The workspace; the local one for live mode.
    pub workspace: String,
    /// The server: an alias in live mode, the server's id in the catalog.
    pub server: String,
    /// The human; `None` for a shared grant.
    pub user: Option<String>,
}

impl GrantKey {
    /// True if a sign-in can begin only in a browser in which the human of the grant is signed in
    /// to narthex: else, one human could be led to connect their account for another one. The
    /// holder of the admin token has no such browser.
    #[must_use]
    pub fn needs_own_browser(&self) -> bool {
        let user = self.user.as_deref();
        user.is_some_and(|user| user != PrincipalId::local_admin().as_str())
    }
}

/// A stored grant.
#[derive(Debug, Clone)]
pub struct GrantRow {
    /// [`narthex_oauth::client::Grant::to_stored`].
    pub value: Secret,
    /// Number of the writes of this row; grows with each.
    pub generation: u64,
    /// Facts for rows and metrics, in the clear.
    pub facts: GrantFacts,
}

/// The facts of a grant that may be shown. Times in seconds since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantFacts {
    /// The authorization server.
    pub issuer: String,
    /// The granted scopes, with blanks between them.
    pub scopes: String,
    /// The end of the access token.
    pub expires_at: Option<u64>,
    /// True if it can be renewed without a human.
    pub can_renew: bool,
    /// The last request for tokens that succeeded.
    pub succeeded_at: Option<u64>,
    /// The last request for tokens that failed.
    pub failed_at: Option<u64>,
    /// The reason for the last failure, if none succeeded since. No text of a server.
    pub failure: Option<String>,
}

/// The result of asking for the right to renew a grant.
#[derive(Debug, Clone)]
pub enum LeaseOutcome {
    /// The caller alone may renew this grant until the lease ends.
    Taken(GrantRow),
    /// Another process renews it. Read the row again after this many milliseconds.
    Held {
        /// Milliseconds.
        wait_ms: u64,
    },
    /// There is no such grant.
    Absent,
}

/// The key of a registered client.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClientKey {
    /// The workspace.
    pub workspace: String,
    /// The authorization server.
    pub issuer: String,
    /// The preferred redirect URI of the client, below the base of narthex: a client is registered
    /// for one redirect URI.
    pub redirect_base: String,
}

/// A kept attempt, with the facts that finish it.
#[derive(Debug, Clone)]
pub struct AttemptRow {
    /// The grant that the attempt is for. An attempt ends with its workspace, server or human.
    pub key: GrantKey,
    /// [`narthex_oauth::client::Attempt::to_stored`] and what else the process needs, as JSON.
    pub value: Secret,
    /// The end of its life, in seconds since 1970.
    pub expires_at: u64,
}

/// The store. Each method is atomic; of several writers with one generation, one wins.
pub trait TokenStore: Send + Sync + fmt::Debug {
    /// A grant.
    fn grant(&self, key: GrantKey) -> Stored<'_, Option<GrantRow>>;

    /// All grants of a workspace, and of one user if one is named, with their facts.
    fn grants(
        &self,
        workspace: String,
        user: Option<String>,
    ) -> Stored<'_, Vec<(GrantKey, GrantFacts)>>;

    /// Stores a grant by consent: replaces any other, and ends its lease.
    fn put_grant(&self, key: GrantKey, value: Secret, facts: GrantFacts) -> Stored<'_, GrantRow>;

    /// Takes the lease of a grant for `owner`, for `lease_ms` milliseconds from this call on. The
    /// holder of a lease gets it again. The time is the store's own.
    fn lease(&self, key: GrantKey, owner: String, lease_ms: u64) -> Stored<'_, LeaseOutcome>;

    /// Stores a renewed grant, and ends the lease. `None` if the generation is no longer this one,
    /// so that another has written since.
    fn renew_grant(
        &self,
        key: GrantKey,
        generation: u64,
        value: Secret,
        facts: GrantFacts,
    ) -> Stored<'_, Option<GrantRow>>;

    /// Stores the facts of a failed renewal, and ends the lease. The grant stays.
    fn note_failure(&self, key: GrantKey, generation: u64, facts: GrantFacts) -> Stored<'_, ()>;

    /// Removes a grant if it still has this generation; any if `None`. True if it was there.
    fn drop_grant(&self, key: GrantKey, generation: Option<u64>) -> Stored<'_, bool>;

    /// The registered client ([`narthex_oauth::client::RegisteredClient::to_stored`]).
    fn client(&self, key: ClientKey) -> Stored<'_, Option<Secret>>;

    /// Stores a client. Of two processes that register at once, the first wins: the result is the
    /// stored one. `replaces`: the client that this one follows.
    fn put_client(
        &self,
        key: ClientKey,
        value: Secret,
        replaces: Option<Secret>,
    ) -> Stored<'_, Secret>;

    /// Removes a client.
    fn drop_client(&self, key: ClientKey) -> Stored<'_, ()>;

    /// Keeps an attempt under the hash of its state. A workspace has a limited number of open
    /// attempts: beyond it, those that end first make room.
    fn put_attempt(&self, state_hash: String, attempt: AttemptRow) -> Stored<'_, ()>;

    /// Removes all attempts for a grant, of whatever process.
    fn drop_attempts(&self, key: GrantKey) -> Stored<'_, ()>;

    /// The hashes of the open attempts of a workspace.
    fn open_attempts(&self, workspace: String) -> Stored<'_, Vec<String>>;

    /// Takes an attempt, once. `None` if there is none, or it has ended.
    fn take_attempt(&self, state_hash: String) -> Stored<'_, Option<AttemptRow>>;
}
