//! A store in memory, for tests and for programs that sign in anew after each start.

use std::{
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use narthex_model::Secret;
use tokio::time::Instant;

use crate::{
    options::Clock,
    store::{
        AttemptRow, ClientKey, GrantFacts, GrantKey, GrantRow, LeaseOutcome, Stored, TokenStore,
    },
    tables::{Renewed, Tables},
};

/// A store in memory. Clones share their rows.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    tables: Arc<Mutex<Tables>>,
    clock: Arc<dyn Clock>,
    /// The zero of the clock of leases.
    started: Instant,
}

impl MemoryStore {
    /// An empty store. Attempts end by this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { tables: Arc::default(), clock, started: Instant::now() }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

fn done<'a, T: Send + 'a>(value: T) -> Stored<'a, T> {
    Box::pin(ready(Ok(value)))
}

impl TokenStore for MemoryStore {
    fn grant(&self, key: GrantKey) -> Stored<'_, Option<GrantRow>> {
        done(self.tables().grant(&key))
    }

    fn grants(
        &self,
        workspace: String,
        user: Option<String>,
    ) -> Stored<'_, Vec<(GrantKey, GrantFacts)>> {
        done(self.tables().grants(&workspace, user.as_deref()))
    }

    fn put_grant(&self, key: GrantKey, value: Secret, facts: GrantFacts) -> Stored<'_, GrantRow> {
        done(self.tables().put_grant(key, value, facts))
    }

    fn lease(&self, key: GrantKey, owner: String, lease_ms: u64) -> Stored<'_, LeaseOutcome> {
        let now_ms = self.now_ms();
        done(self.tables().lease(&key, owner, lease_ms, now_ms))
    }

    fn renew_grant(
        &self,
        key: GrantKey,
        generation: u64,
        value: Secret,
        facts: GrantFacts,
    ) -> Stored<'_, Option<GrantRow>> {
        done(self.tables().renew_grant(&key, Renewed { generation, value, facts }))
    }

    fn note_failure(&self, key: GrantKey, generation: u64, facts: GrantFacts) -> Stored<'_, ()> {
        self.tables().note_failure(&key, generation, facts);
        done(())
    }

    fn drop_grant(&self, key: GrantKey, generation: Option<u64>) -> Stored<'_, bool> {
        done(self.tables().drop_grant(&key, generation))
    }

    fn client(&self, key: ClientKey) -> Stored<'_, Option<Secret>> {
        done(self.tables().client(&key))
    }

    fn put_client(
        &self,
        key: ClientKey,
        value: Secret,
        replaces: Option<Secret>,
    ) -> Stored<'_, Secret> {
        done(self.tables().put_client(key, value, replaces.as_ref()))
    }

    fn drop_client(&self, key: ClientKey) -> Stored<'_, ()> {
        self.tables().drop_client(&key);
        done(())
    }

    fn put_attempt(&self, state_hash: String, attempt: AttemptRow) -> Stored<'_, ()> {
        self.tables().put_attempt(state_hash, attempt, self.clock.now());
        done(())
    }

    fn drop_attempts(&self, key: GrantKey) -> Stored<'_, ()> {
        self.tables().drop_attempts(&key);
        done(())
    }

    fn open_attempts(&self, workspace: String) -> Stored<'_, Vec<String>> {
        done(self.tables().open_attempts(&workspace, self.clock.now()))
    }

    fn take_attempt(&self, state_hash: String) -> Stored<'_, Option<AttemptRow>> {
        let now_s = self.clock.now();
        done(self.tables().take_attempt(&state_hash, now_s))
    }
}
