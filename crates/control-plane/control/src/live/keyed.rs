//! Locks by key: a caller waits for other callers with the same key, and for no others.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::OwnedMutexGuard;

/// The locks that callers hold or wait for.
#[derive(Debug)]
pub struct KeyedLock<K>(Mutex<HashMap<K, Weak<tokio::sync::Mutex<()>>>>);

impl<K> Default for KeyedLock<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash> KeyedLock<K> {
    /// Waits for the lock of this key. Dropping the returned guard frees it.
    pub async fn take(&self, at: &K) -> OwnedMutexGuard<()> {
        self.turn(at).lock_owned().await
    }

    fn turn(&self, at: &K) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(at).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        turns.insert(at.clone(), Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_keyed_lock_blocks_only_callers_with_the_same_key() {
        let turns = KeyedLock::default();
        let first = turns.take(&"a").await;
        assert!(turns.turn(&"a").try_lock_owned().is_err());
        let other = turns.take(&"b").await;
        drop(first);
        let again = turns.turn(&"a").try_lock_owned().unwrap();
        drop((other, again));
        drop(turns.take(&"c").await);
        assert_eq!(turns.0.lock().unwrap().len(), 1, "a key without a holder is forgotten");
    }
}
