//! Principals and their permissions: humans, services, MCP clients and their tokens, in one table
//! in memory.
//!
//! No caller waits for the store. The table is read at the start and replaced as a whole at each
//! change. A change by this daemon takes effect at once. A change by another daemon on the same
//! store takes effect within [`crate::POLL`]. A table that could not be compared with the store for
//! [`STALE`] admits no caller.

mod agent_env;
mod change;
mod clients;
mod connection;
mod error;
mod members;
mod principals;
mod table;
mod tokens;
mod workspaces;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use arc_swap::ArcSwap;
use narthex_audit::Audit;
use narthex_login::SessionLimits;
use narthex_model::PrincipalId;
use narthex_store::Store;
use narthex_vault::Vault;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use self::table::AccessTable;
use crate::live::{Polls, STALE};
pub use narthex_login::{McpClientToken, ServiceToken};

pub(crate) use self::clients::{LIVE_MAX, of_client};
pub(crate) use self::principals::{new_id, of_principal};
pub use self::{
    agent_env::EnvNames,
    clients::{ClientRequest, CreatedClient, NewClient, Sees},
    connection::Connection,
    error::AccessError,
    table::{Account, KnownClient, KnownToken},
    tokens::CreatedToken,
};
use crate::{Control, ControlError, SignedIn, login::KnownSession};

/// Permissions of all principals, as this process knows them.
#[derive(Debug)]
pub(crate) struct Access {
    table: ArcSwap<AccessTable>,
    started: Instant,
    /// Milliseconds from the start to the last time at which the table was known to equal the
    /// store; 0 if it is not known.
    confirmed_ms: AtomicU64,
    /// Locked while the table changes or is read anew, so that the newest state comes last.
    changing: tokio::sync::Mutex<()>,
    changes: tokio::sync::watch::Sender<u64>,
    /// Receives the workspaces whose audit records the contents of calls.
    audit: Audit,
    /// Drops the keys of deleted workspaces.
    vault: Option<Vault>,
}

impl Access {
    /// Reads the table from the store; without a store it is empty.
    pub(crate) async fn load(
        store: Option<&Store>,
        vault: Option<&Vault>,
        audit: Audit,
    ) -> Result<Self, ControlError> {
        let access = Self {
            table: ArcSwap::default(),
            started: Instant::now(),
            confirmed_ms: AtomicU64::new(0),
            changing: tokio::sync::Mutex::default(),
            changes: tokio::sync::watch::Sender::default(),
            audit,
            vault: vault.cloned(),
        };
        if let Some(store) = store {
            access.reload(store).await?;
        }
        Ok(access)
    }

    /// Follows changes by other daemons, until the end.
    pub(crate) async fn follow(self: Arc<Self>, store: Store, closing: CancellationToken) {
        let mut polls = Polls::until(closing);
        while polls.next().await {
            let together = self.changing.lock().await;
            if let Err(error) = self.refresh(&store).await {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(cause, "permissions cannot be refreshed from the store");
            }
            drop(together);
        }
    }

    /// Reads the table anew if it has changed, and stores which tokens were used.
    async fn refresh(&self, store: &Store) -> Result<(), ControlError> {
        let table = self.table.load_full();
        let changes = store.principals().changes().await.map_err(ControlError::Store)?;
        let used = table.newly_used();
        if !used.is_empty() {
            store.service_tokens().used(&used).await.map_err(ControlError::Store)?;
            table.mark_stored(&used);
        }
        let seen = table.newly_seen();
        if !seen.is_empty() {
            store.logins().seen(&seen).await.map_err(ControlError::Store)?;
            table.mark_seen(&seen);
        }
        if changes == table.changes && self.is_confirmed() {
            self.confirm();
            return Ok(());
        }
        self.reload(store).await
    }

    /// Reads the table anew. After a failure the table is unconfirmed, and admits no caller.
    async fn reload(&self, store: &Store) -> Result<(), ControlError> {
        let before = self.table.load_full();
        let table = AccessTable::read(store, &before).await.map_err(|error| {
            self.confirmed_ms.store(0, Ordering::Release);
            ControlError::Store(error)
        })?;
        let audited = table.workspaces.values().filter(|one| one.settings.audits_contents);
        self.audit.keep_contents_of(&audited.map(|one| one.id.clone()).collect());
        if let Some(vault) = &self.vault {
            vault.keep_documents_of(&table.workspaces.keys().cloned().collect()).await;
        }
        self.table.store(Arc::new(table));
        self.confirm();
        self.changes.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Counts up when the table has changed.
    pub(crate) fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn confirm(&self) {
        self.confirmed_ms.store(self.now_ms(), Ordering::Release);
    }

    fn is_confirmed(&self) -> bool {
        self.confirmed_ms.load(Ordering::Acquire) > 0
    }

    fn is_fresh(&self) -> bool {
        let confirmed = self.confirmed_ms.load(Ordering::Acquire);
        confirmed > 0
            && u128::from(self.now_ms() - confirmed.min(self.now_ms())) < STALE.as_millis()
    }

    /// Milliseconds since the start of the process; at least 1.
    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
    }
}

impl Control {
    /// Returns the token of a service, with its account; `None` for an unknown, revoked or expired
    /// token.
    ///
    /// # Errors
    /// When this process could not read the store for so long that the token may have been revoked
    /// meanwhile.
    pub fn authenticate(&self, token: &str) -> Result<Option<Arc<KnownToken>>, AccessError> {
        let access = &self.shared.access;
        let Some(known) = access.table.load().find(token) else { return Ok(None) };
        if access.is_fresh() { Ok(Some(known)) } else { Err(AccessError::Stale) }
    }

    /// Returns the MCP client of a token; `None` for an unknown, revoked or expired token.
    ///
    /// # Errors
    /// When this process could not read the store for so long that the client may have been revoked
    /// meanwhile.
    pub fn authenticate_client(
        &self,
        token: &str,
    ) -> Result<Option<Arc<KnownClient>>, AccessError> {
        let access = &self.shared.access;
        let Some(client) = access.table.load().find_client(token) else { return Ok(None) };
        if access.is_fresh() { Ok(Some(client)) } else { Err(AccessError::Stale) }
    }

    /// Reads the table anew if another daemon has changed it: an object that the caller has just
    /// found in the store may be missing in memory.
    pub(crate) async fn catch_up(&self) -> Result<(), ControlError> {
        let access = &self.shared.access;
        let _together = access.changing.lock().await;
        access.refresh(self.needed_store()?).await
    }

    /// True if permissions were compared with the store recently enough to count.
    pub(crate) fn is_access_fresh(&self) -> bool {
        self.shared.access.is_fresh()
    }

    /// A counter of changes of permissions, by this daemon or another.
    #[must_use]
    pub fn access_changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.shared.access.changes()
    }

    /// The human who is signed in with the session that has this hash; `None` if there is no valid
    /// one.
    pub(crate) fn session_of(
        &self,
        hash: &str,
        limits: &SessionLimits,
    ) -> Result<Option<SignedIn>, AccessError> {
        let access = &self.shared.access;
        let table = access.table.load();
        let found = table.sessions.get(hash).and_then(|session| session.signed_in(hash, limits));
        if found.is_none() || access.is_fresh() { Ok(found) } else { Err(AccessError::Stale) }
    }

    /// The account of the session with this hash, also if the session is no longer valid.
    pub(crate) fn session_owner(&self, hash: &str) -> Option<Arc<Account>> {
        self.access().sessions.get(hash).map(|session| session.account().clone())
    }

    /// The sessions of a human by their hashes, also those that are no longer valid.
    pub(crate) fn sessions_of(&self, human: &PrincipalId) -> Vec<(String, Arc<KnownSession>)> {
        let table = self.access();
        let all = table.sessions.iter().filter(|(_, session)| session.account().id == *human);
        all.map(|(hash, session)| (hash.clone(), session.clone())).collect()
    }

    /// The table as it is now.
    pub(crate) fn access(&self) -> Arc<AccessTable> {
        self.shared.access.table.load_full()
    }
}

#[cfg(test)]
mod tests {
    use narthex_model::{Secret, WorkspaceId};
    use narthex_store::Workspace;
    use narthex_vault::{KeyFile, SealedBackend};

    use super::*;
    use crate::SecretRows;

    /// X-M29: when a workspace is deleted, by this daemon or another one, its key leaves the memory
    /// of each daemon that hears of it.
    #[tokio::test]
    async fn x_m29_the_key_of_a_deleted_workspace_leaves_the_memory() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store.db")).await.unwrap();
        let rows = Arc::new(SecretRows::new(store.clone()));
        let keys = Arc::new(KeyFile::new(folder.path().join("master.key")));
        let vault = Vault::new(Arc::new(SealedBackend::start(rows, keys).await.unwrap()));
        let access = Access::load(Some(&store), Some(&vault), Audit::disabled()).await.unwrap();
        let team = WorkspaceId::new("team").unwrap();
        let workspace = Workspace::new(team.clone(), "team".to_owned());
        store.workspaces().create(&workspace).await.unwrap();
        access.refresh(&store).await.unwrap();
        let text = Secret::new("canary");
        let sealed = vault.seal_document(&team, "run", &text).await.unwrap();
        access.reload(&store).await.unwrap();
        assert_eq!(vault.open_document(&team, "run", &sealed).await.unwrap(), text);
        assert!(store.workspaces().delete(&team, true).await.unwrap());
        access.refresh(&store).await.unwrap();
        vault.open_document(&team, "run", &sealed).await.unwrap_err();
    }
}
