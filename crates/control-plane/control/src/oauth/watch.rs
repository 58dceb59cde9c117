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

/// The last known state of the grants in the store.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) store: Store,
    early: Early,
    /// The numbers of the last changes that are known; `None` before the first reading.
    seen: Option<OAuthChanges>,
    /// All grants, to find the removed ones.
    known: HashSet<OAuthGrantKey>,
}

impl Watch {
    /// A watch that has read nothing yet.
    pub(super) fn new(store: Store, early: Early) -> Self {
        Self { store, early, seen: None, known: HashSet::new() }
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

    /// The grants that were stored, renewed or removed since the last call. The first call gives
    /// those that were asked for before it: they may have changed in between.
    pub(super) async fn news(&mut self) -> Result<Vec<GrantKey>, StatementError> {
        let grants = self.store.oauth_grants();
        let now = grants.changes().await?;
        let Some(seen) = self.seen else {
            let rows = grants.changed_since(0).await?;
            self.known = rows.into_iter().map(|(key, _)| key).collect();
            self.seen = Some(now);
            let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
            return Ok(early.take().into_iter().flatten().collect());
        };
        if now == seen {
            return Ok(Vec::new());
        }
        let is_any_gone = now.dropped != seen.dropped;
        let rows = grants.changed_since(if is_any_gone { 0 } else { seen.last }).await?;
        let mut news = Vec::new();
        if is_any_gone {
            let present = rows.iter().map(|(key, _)| key.clone()).collect();
            let before = mem::replace(&mut self.known, present);
            news.extend(before.difference(&self.known).cloned());
        }
        let mut last = now.last;
        for (key, change) in rows {
            last = last.max(change);
            if change > seen.last {
                self.known.insert(key.clone());
                news.push(key);
            }
        }
        self.seen = Some(OAuthChanges { last, ..now });
        Ok(news.into_iter().map(keys::given).collect())
    }
}
