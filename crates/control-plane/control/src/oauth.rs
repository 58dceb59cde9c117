//! Sign-ins of narthex at the authorization servers of others: sealed by the vault, in rows of the
//! store.
//!
//! * A value opens at its own row alone. It is sealed under the key of its workspace's documents,
//!   which a change of the master key seals anew, so that all values open as before.
//! * A grant that does not open is reported: a human signs in again. A client that does not open
//!   counts as none, and narthex registers anew. An attempt that does not open counts as none.
//! * Leases and ends of attempts are measured by the clock of the store. No transaction is open
//!   while a request is on its way.

mod keys;
mod watch;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use narthex_model::{Secret, WorkspaceId, command::narthex, with_causes};
use narthex_oauth_client::store::{
    AttemptRow, ClientKey, GrantFacts, GrantKey, GrantRow, LeaseOutcome, StoreFault, Stored,
    TokenStore,
};
use narthex_store::{OAuthAttemptRow, OAuthGrantKey, OAuthGrantRow, StatementError, Store};
use narthex_vault::{Vault, VaultError};
use tokio_util::sync::CancellationToken;

use self::watch::{Early, Taken, Watch};

/// Most attempts to store a client while other processes store theirs.
const ATTEMPTS: usize = 4;
/// Bounds of the pause before a row is read again that another process renews, in milliseconds. A
/// renewal takes much less time than its lease.
const PAUSE_MS: (u64, u64) = (20, 250);

/// The rows of sign-ins in the store, with their values under the vault's keys.
#[derive(Debug)]
pub struct StoredTokens {
    store: Store,
    vault: Vault,
    time: Time,
    /// The owners of the leases that this process has: a late failure ends no lease of another.
    owners: Mutex<HashMap<GrantKey, String>>,
    early: Early,
    taken: Taken,
}

/// The source of the time.
#[derive(Debug)]
enum Time {
    /// The clock of the store.
    OfStore,
    /// Milliseconds since 1970.
    #[cfg(test)]
    Given(Arc<std::sync::atomic::AtomicU64>),
}

impl StoredTokens {
    /// The rows of this store. The vault has its keys in the same store.
    #[must_use]
    pub fn new(store: Store, vault: Vault) -> Self {
        let early = Arc::new(Mutex::new(Some(HashSet::new())));
        let (owners, taken) = (Mutex::default(), Taken::default());
        Self { store, vault, time: Time::OfStore, owners, early, taken }
    }

    /// Follows changes of grants, until `closing` is cancelled, and removes ended attempts. The
    /// caller starts the future as a task of its own, once.
    ///
    /// `changed` gets the key of each grant that was stored, renewed or removed: by another daemon
    /// within [`POLL`](crate::POLL), and by this one too. A grant that was stored and removed
    /// between two polls is among them if this daemon has it. `changed` must not block. The caller
    /// reads the row again, and compares its generation with the one that it has.
    pub fn watch_changes<F>(
        &self,
        closing: CancellationToken,
        changed: F,
    ) -> impl Future<Output = ()> + Send + 'static + use<F>
    where
        F: Fn(GrantKey) + Send + Sync + 'static,
    {
        Watch::new(self.store.clone(), self.early.clone(), self.taken.clone()).run(closing, changed)
    }

    async fn now(&self) -> Result<SystemTime, StoreFault> {
        match &self.time {
            Time::OfStore => self.store.now().await.map_err(failed),
            #[cfg(test)]
            Time::Given(ms) => {
                let ms = ms.load(std::sync::atomic::Ordering::Acquire);
                Ok(UNIX_EPOCH + Duration::from_millis(ms))
            }
        }
    }

    async fn seal(
        &self,
        workspace: &WorkspaceId,
        place: &str,
        value: &Secret,
    ) -> Result<String, StoreFault> {
        let sealed = self.vault.seal_document(workspace, place, value).await;
        sealed.map_err(|error| fault(&error))
    }

    /// Opens a value; `None` if it was changed, or moved from its row.
    async fn open(
        &self,
        workspace: &WorkspaceId,
        place: &str,
        sealed: &str,
    ) -> Result<Option<Secret>, StoreFault> {
        match self.vault.open_document(workspace, place, sealed).await {
            Ok(value) => Ok(Some(value)),
            Err(error @ VaultError::DocumentDamaged { .. }) => {
                tracing::warn!("{error}");
                Ok(None)
            }
            Err(error) => Err(fault(&error)),
        }
    }

    async fn opened(&self, row: OAuthGrantRow) -> Result<GrantRow, StoreFault> {
        let OAuthGrantRow { key, generation, sealed, facts, lease: _ } = row;
        let value = self.open(&key.workspace, &keys::grant_place(&key), &sealed).await?;
        let value = value.ok_or_else(|| damaged(&key))?;
        Ok(GrantRow { value, generation, facts: keys::shown(facts) })
    }

    /// Remembers a key that is read before changes are followed.
    fn ask(&self, key: &GrantKey) {
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(early) = early.as_mut() {
            early.insert(key.clone());
        }
    }

    /// Remembers a key whose grant the caller gets, so that its removal is found.
    fn give(&self, key: &GrantKey) {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<GrantKey, String>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn put_one_client(
        &self,
        key: ClientKey,
        value: Secret,
        replaces: Option<Secret>,
    ) -> Result<Secret, StoreFault> {
        let of = keys::client(&key)?;
        let place = keys::client_place(&of);
        let sealed = self.seal(&of.workspace, &place, &value).await?;
        let clients = self.store.oauth_clients();
        for _ in 0..ATTEMPTS {
            let Some(before) = clients.find(&of).await.map_err(failed)? else {
                if clients.add(&of, &sealed).await.map_err(failed)? {
                    return Ok(value);
                }
                continue;
            };
            match self.open(&of.workspace, &place, &before).await? {
                Some(stored) if replaces.as_ref() != Some(&stored) => return Ok(stored),
                Some(_) | None => {}
            }
            if clients.replace(&of, &before, &sealed).await.map_err(failed)? {
                return Ok(value);
            }
        }
        let text = "other processes changed the registered client at the same time; try again";
        Err(StoreFault(text.into()))
    }
}

impl TokenStore for StoredTokens {
    fn grant(&self, key: GrantKey) -> Stored<'_, Option<GrantRow>> {
        Box::pin(async move {
            self.ask(&key);
            let of = keys::grant(&key)?;
            match self.store.oauth_grants().find(&of).await.map_err(failed)? {
                Some(row) => {
                    let row = self.opened(row).await?;
                    self.give(&key);
                    Ok(Some(row))
                }
                None => Ok(None),
            }
        })
    }

    fn grants(
        &self,
        workspace: String,
        user: Option<String>,
    ) -> Stored<'_, Vec<(GrantKey, GrantFacts)>> {
        Box::pin(async move {
            let here = keys::workspace(&workspace)?;
            let rows = self.store.oauth_grants().all(&here, user.as_deref()).await;
            let rows = rows.map_err(failed)?.into_iter();
            Ok(rows.map(|(key, facts)| (keys::given(key), keys::shown(facts))).collect())
        })
    }

    fn put_grant(&self, key: GrantKey, value: Secret, facts: GrantFacts) -> Stored<'_, GrantRow> {
        Box::pin(async move {
            let of = keys::grant(&key)?;
            let sealed = self.seal(&of.workspace, &keys::grant_place(&of), &value).await?;
            let row = self.store.oauth_grants().put(&of, &sealed, &keys::facts(facts)).await;
            let OAuthGrantRow { generation, facts, .. } = row.map_err(failed)?;
            self.owners().remove(&key);
            self.give(&key);
            Ok(GrantRow { value, generation, facts: keys::shown(facts) })
        })
    }

    fn lease(&self, key: GrantKey, owner: String, lease_ms: u64) -> Stored<'_, LeaseOutcome> {
        Box::pin(async move {
            self.ask(&key);
            let of = keys::grant(&key)?;
            let (now, length) = (self.now().await?, Duration::from_millis(lease_ms));
            let row = self.store.oauth_grants().lease(&of, &owner, now, length).await;
            let Some(row) = row.map_err(failed)? else { return Ok(LeaseOutcome::Absent) };
            let is_own = row.lease.as_ref().is_some_and(|(holder, _)| *holder == owner);
            if is_own {
                self.give(&key);
                self.owners().insert(key, owner);
                return self.opened(row).await.map(LeaseOutcome::Taken);
            }
            // Without a lease it has ended since: to be asked for again.
            let until = row.lease.map_or(now, |(_, until)| until);
            let left = until.duration_since(now).unwrap_or_default().as_millis();
            let (least, most) = PAUSE_MS;
            let wait_ms = u64::try_from(left).unwrap_or(most).clamp(least, most);
            Ok(LeaseOutcome::Held { wait_ms })
        })
    }

    fn renew_grant(
        &self,
        key: GrantKey,
        generation: u64,
        value: Secret,
        facts: GrantFacts,
    ) -> Stored<'_, Option<GrantRow>> {
        Box::pin(async move {
            let of = keys::grant(&key)?;
            let sealed = self.seal(&of.workspace, &keys::grant_place(&of), &value).await?;
            let (grants, facts) = (self.store.oauth_grants(), keys::facts(facts));
            let row = grants.renew(&of, generation, &sealed, &facts).await.map_err(failed)?;
            self.owners().remove(&key);
            self.give(&key);
            Ok(row.map(|row| {
                let OAuthGrantRow { generation, facts, .. } = row;
                GrantRow { value, generation, facts: keys::shown(facts) }
            }))
        })
    }

    fn note_failure(&self, key: GrantKey, generation: u64, facts: GrantFacts) -> Stored<'_, ()> {
        Box::pin(async move {
            let of = keys::grant(&key)?;
            let owner = self.owners().get(&key).cloned().unwrap_or_default();
            let (grants, facts) = (self.store.oauth_grants(), keys::facts(facts));
            grants.note_failure(&of, generation, &facts, &owner).await.map_err(failed)?;
            self.owners().remove(&key);
            Ok(())
        })
    }

    fn drop_grant(&self, key: GrantKey, generation: Option<u64>) -> Stored<'_, bool> {
        Box::pin(async move {
            let of = keys::grant(&key)?;
            let is_dropped = self.store.oauth_grants().remove(&of, generation).await;
            let is_dropped = is_dropped.map_err(failed)?;
            self.owners().remove(&key);
            Ok(is_dropped)
        })
    }

    fn client(&self, key: ClientKey) -> Stored<'_, Option<Secret>> {
        Box::pin(async move {
            let of = keys::client(&key)?;
            let sealed = self.store.oauth_clients().find(&of).await.map_err(failed)?;
            let Some(sealed) = sealed else { return Ok(None) };
            self.open(&of.workspace, &keys::client_place(&of), &sealed).await
        })
    }

    fn put_client(
        &self,
        key: ClientKey,
        value: Secret,
        replaces: Option<Secret>,
    ) -> Stored<'_, Secret> {
        Box::pin(self.put_one_client(key, value, replaces))
    }

    fn drop_client(&self, key: ClientKey) -> Stored<'_, ()> {
        Box::pin(async move {
            let of = keys::client(&key)?;
            self.store.oauth_clients().remove(&of).await.map(drop).map_err(failed)
        })
    }

    fn put_attempt(&self, state_hash: String, attempt: AttemptRow) -> Stored<'_, ()> {
        Box::pin(async move {
            let AttemptRow { key, value, expires_at } = attempt;
            let key = keys::grant(&key)?;
            let place = keys::attempt_place(&state_hash, &key);
            let sealed = self.seal(&key.workspace, &place, &value).await?;
            let life = Duration::from_secs(expires_at);
            let expires_at = UNIX_EPOCH.checked_add(life).unwrap_or(UNIX_EPOCH);
            let row = OAuthAttemptRow { key, sealed, expires_at };
            let now = self.now().await?;
            self.store.oauth_attempts().put(&state_hash, &row, now).await.map_err(failed)
        })
    }

    fn drop_attempts(&self, key: GrantKey) -> Stored<'_, ()> {
        Box::pin(async move {
            let of = keys::grant(&key)?;
            self.store.oauth_attempts().drop_of(&of).await.map_err(failed)
        })
    }

    fn open_attempts(&self, workspace: String) -> Stored<'_, Vec<String>> {
        Box::pin(async move {
            let here = keys::workspace(&workspace)?;
            let now = self.now().await?;
            self.store.oauth_attempts().open(&here, now).await.map_err(failed)
        })
    }

    fn take_attempt(&self, state_hash: String) -> Stored<'_, Option<AttemptRow>> {
        Box::pin(async move {
            let now = self.now().await?;
            let row = self.store.oauth_attempts().take(&state_hash, now).await;
            let Some(row) = row.map_err(failed)? else { return Ok(None) };
            let OAuthAttemptRow { key, sealed, expires_at } = row;
            let place = keys::attempt_place(&state_hash, &key);
            let value = self.open(&key.workspace, &place, &sealed).await?;
            let life = expires_at.duration_since(UNIX_EPOCH).unwrap_or_default();
            Ok(value.map(|value| AttemptRow {
                key: keys::given(key),
                value,
                expires_at: life.as_secs(),
            }))
        })
    }
}

fn failed(error: StatementError) -> StoreFault {
    fault(&error)
}

fn fault(error: &dyn std::error::Error) -> StoreFault {
    StoreFault(with_causes(error).into())
}

/// The fault of a grant that does not open, with its remedy.
fn damaged(key: &OAuthGrantKey) -> StoreFault {
    let OAuthGrantKey { workspace, server, user } = key;
    let remedy = match user {
        None if *workspace == WorkspaceId::default() => {
            format!("with `{}`", narthex("mcp authorize {}", &[server]))
        }
        None | Some(_) => "to it".to_owned(),
    };
    let text = format!(
        "the stored sign-in to `{server}` cannot be decrypted: it was changed or moved in the \
         store; sign in again {remedy}"
    );
    StoreFault(text.into())
}

#[cfg(test)]
mod tests;
