//! Follows changes of grants by other daemons on the store.

use std::{
    collections::HashSet,
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use narthex_oauth_client::store::GrantKey;
use narthex_store::{OAuthChanges, OAuthGrantKey, StatementError, Store};
use tokio_util::sync::CancellationToken;

use super::keys;
use crate::live::Polls;

/// Number of polls between two removals of ended attempts: about ten minutes.
const POLLS_PER_SWEEP: u32 = 300;

/// Keys that were asked for before changes are followed; `None` once they are.
pub(super) type Early = Arc<Mutex<Option<HashSet<GrantKey>>>>;
/// Keys of grants that this daemon has read or stored since the last poll.
pub(super) type Taken = Arc<Mutex<HashSet<GrantKey>>>;

/// The last known state of the grants in the store.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) store: Store,
    early: Early,
    /// Grants that may be in this daemon's memory and not in `known`: such a grant may have been
    /// stored and removed between two polls.
    taken: Taken,
    /// Those that were taken from `taken`, and not compared with the store yet.
    unproved: HashSet<OAuthGrantKey>,
    /// Removed grants that the next news repeat: a task may have read the row before its removal,
    /// and noted it in the memory after the first news.
    again: Vec<OAuthGrantKey>,
    /// The numbers of the last changes that are known; `None` before the first reading.
    seen: Option<OAuthChanges>,
    /// All grants, to find the removed ones.
    known: HashSet<OAuthGrantKey>,
}

impl Watch {
    /// A watch that has read nothing yet.
    pub(super) fn new(store: Store, early: Early, taken: Taken) -> Self {
        let (unproved, again, known) = (HashSet::new(), Vec::new(), HashSet::new());
        Self { store, early, taken, unproved, again, seen: None, known }
    }

    /// Reads changes at each poll, until `closing` is cancelled.
    pub(super) async fn run<F>(mut self, closing: CancellationToken, changed: F)
    where
        F: Fn(GrantKey) + Send + Sync + 'static,
    {
        let mut polls = Polls::until(closing);
        let mut count: u32 = 0;
        while polls.next().await {
            match self.news().await {
                Ok(news) => news.into_iter().for_each(&changed),
                Err(error) => {
                    tracing::warn!("changes of sign-ins cannot be read from the store: {error}");
                }
            }
            if count.is_multiple_of(POLLS_PER_SWEEP)
                && let Err(error) = self.sweep().await
            {
                tracing::debug!(%error, "ended sign-ins are not removed");
            }
            count = count.wrapping_add(1);
        }
    }

    async fn sweep(&self) -> Result<(), StatementError> {
        let now = self.store.now().await?;
        self.store.oauth_attempts().sweep(now).await
    }

    /// The grants that were stored, renewed or removed since the last call. Two calls report a
    /// removed one.
    ///
    /// The first call gives those that were asked for before it: they may have changed in between.
    pub(super) async fn news(&mut self) -> Result<Vec<GrantKey>, StatementError> {
        // Taken before the store is read: a row that was there before is there, or was removed.
        self.take();
        let grants = self.store.oauth_grants();
        let now = grants.changes().await?;
        let Some(seen) = self.seen else {
            let rows = grants.changed_since(0).await?;
            self.known = rows.into_iter().map(|(key, _)| key).collect();
            self.seen = Some(now);
            let unproved = mem::take(&mut self.unproved);
            self.again = unproved.difference(&self.known).cloned().collect();
            let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
            let mut news = early.take().unwrap_or_default();
            news.extend(unproved.into_iter().map(keys::given));
            return Ok(news.into_iter().collect());
        };
        let is_any_gone = now.dropped != seen.dropped || !self.unproved.is_subset(&self.known);
        if now == seen && !is_any_gone {
            self.unproved.clear();
            return Ok(mem::take(&mut self.again).into_iter().map(keys::given).collect());
        }
        let rows = grants.changed_since(if is_any_gone { 0 } else { seen.last }).await?;
        let mut news: HashSet<_> = mem::take(&mut self.again).into_iter().collect();
        let unproved = mem::take(&mut self.unproved);
        if is_any_gone {
            let present = rows.iter().map(|(key, _)| key.clone()).collect();
            let mut before = mem::replace(&mut self.known, present);
            before.extend(unproved);
            self.again = before.difference(&self.known).cloned().collect();
            news.extend(self.again.iter().cloned());
        }
        let mut last = now.last;
        for (key, change) in rows {
            last = last.max(change);
            if change > seen.last {
                self.known.insert(key.clone());
                news.insert(key);
            }
        }
        self.seen = Some(OAuthChanges { last, ..now });
        Ok(news.into_iter().map(keys::given).collect())
    }

    /// Takes the keys of grants that this daemon has read or stored since the last call.
    fn take(&mut self) {
        let taken = mem::take(&mut *self.taken.lock().unwrap_or_else(PoisonError::into_inner));
        // A key that is none has no row.
        self.unproved.extend(taken.iter().filter_map(|key| keys::grant(key).ok()));
    }
}
