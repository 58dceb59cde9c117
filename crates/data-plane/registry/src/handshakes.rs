//! Finds out if servers of revision 2026-07-28 also answer `initialize`, by one attempt for each
//! definition.
//!
//! A server's list of versions does not show this: the official SDKs list only 2026-07-28 and
//! answer `initialize` all the same.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use narthex_upstream::ConnectError;
use tokio::{sync, time::Instant};

use crate::digest::Digest;

/// Largest number of remembered definitions. Beyond this number, the registry forgets definitions
/// that have no connection.
const DEFINITIONS_MAX: usize = 4096;
/// Time that a server may take to answer the attempt.
pub(crate) const TRY_DEADLINE: Duration = Duration::from_secs(10);
/// Time during which an attempt that failed for a passing reason counts as a refusal.
pub(crate) const TRY_AGAIN: Duration = Duration::from_secs(30);
/// Time during which an attempt that was not answered in time counts as a refusal.
const TRY_AGAIN_SILENT: Duration = Duration::from_secs(300);

const UNKNOWN: u8 = 0;
const ANSWERS: u8 = 1;
const REFUSES: u8 = 2;
const DOUBTED: u8 = 3;

/// Shared knowledge about the server of one definition: does the server answer `initialize`,
/// although its shared link is of revision 2026-07-28?
#[derive(Debug, Default)]
pub struct LegacySupport {
    state: AtomicU8,
    /// Time at which a doubt ends.
    again: Mutex<Option<Instant>>,
    /// Locked by the one caller that tries.
    trying: sync::Mutex<()>,
}

impl LegacySupport {
    /// True if a link of the handshake may be opened: the server has not refused the handshake.
    /// Takes no lock once the answer is known.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        match self.state.load(Ordering::Acquire) {
            REFUSES => false,
            DOUBTED => self.again().is_none_or(|again| Instant::now() >= again),
            _ => true,
        }
    }

    /// True if the server has answered.
    pub(crate) fn has_answered(&self) -> bool {
        self.state.load(Ordering::Acquire) == ANSWERS
    }

    /// Waits until no other caller is trying the server. `None` when the server is known to answer:
    /// then callers need not wait for each other.
    pub async fn turn(&self) -> Option<sync::MutexGuard<'_, ()>> {
        match self.has_answered() {
            true => None,
            false => Some(self.trying.lock().await),
        }
    }

    /// Stores the outcome of an attempt. Only the server's own refusal is remembered for good.
    pub(crate) fn learn(&self, error: Option<&ConnectError>) {
        match error {
            None => self.state.store(ANSWERS, Ordering::Release),
            Some(error) if error.is_refusal() => self.state.store(REFUSES, Ordering::Release),
            Some(ConnectError::Deadline { .. }) => self.doubt(TRY_AGAIN_SILENT),
            Some(_) => self.doubt(TRY_AGAIN),
        }
    }

    /// Counts a failed attempt as a refusal for some time, unless the server has answered before.
    pub(crate) fn doubt(&self, pause: Duration) {
        let mut again = self.again();
        if matches!(self.state.load(Ordering::Acquire), UNKNOWN | DOUBTED) {
            *again = Some(Instant::now() + pause);
            self.state.store(DOUBTED, Ordering::Release);
        }
    }

    /// Forgets the knowledge.
    pub(crate) fn forget(&self) {
        self.state.store(UNKNOWN, Ordering::Release);
    }

    fn again(&self) -> MutexGuard<'_, Option<Instant>> {
        self.again.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Knowledge about servers, by definition.
#[derive(Debug, Default)]
pub(crate) struct Handshakes(Mutex<HashMap<Digest, Arc<LegacySupport>>>);

impl Handshakes {
    /// The knowledge about a definition, shared by all connections of it.
    pub(crate) fn of(&self, digest: Digest) -> Arc<LegacySupport> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= DEFINITIONS_MAX && !known.contains_key(&digest) {
            known.retain(|_, support| Arc::strong_count(support) > 1);
        }
        known.entry(digest).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use narthex_model::{Alias, HttpTarget, ServerAuth, ServerDefinition, Target};

    use super::*;
    use crate::digest::DigestKey;

    fn digest(number: usize) -> Digest {
        let target = Target::Http(HttpTarget {
            url: format!("http://localhost/{number}"),
            is_sse: false,
            headers: std::collections::BTreeMap::new(),
            auth: ServerAuth::None,
        });
        DigestKey::new(&[0; 32]).of(&ServerDefinition::new(Alias::new("one").unwrap(), target))
    }

    fn refused() -> ConnectError {
        ConnectError::Refused("only 2026-07-28".to_owned())
    }

    fn silent() -> ConnectError {
        ConnectError::Deadline { after: Duration::from_secs(30), hint: String::new() }
    }

    /// D31: a refusal is remembered for good, and other failures for a while.
    #[tokio::test(start_paused = true)]
    async fn only_a_refused_handshake_is_remembered_permanently() {
        let support = LegacySupport::default();
        assert!(support.is_possible());
        support.learn(Some(&silent()));
        assert!(!support.is_possible());
        tokio::time::advance(TRY_AGAIN_SILENT).await;
        assert!(support.is_possible(), "silence may have been the machine's");
        support.learn(Some(&refused()));
        tokio::time::advance(TRY_AGAIN_SILENT * 100).await;
        assert!(!support.is_possible());
        support.forget();
        assert!(support.is_possible());
    }

    /// D31: after an answer, silence of the server is not counted as a refusal.
    #[tokio::test(start_paused = true)]
    async fn silence_after_an_answered_handshake_is_not_remembered() {
        let support = LegacySupport::default();
        assert!(support.turn().await.is_some());
        support.learn(None);
        support.learn(Some(&silent()));
        support.doubt(TRY_AGAIN);
        assert!(support.is_possible());
        assert!(support.turn().await.is_none(), "no attempt waits once the answer is known");
        support.learn(Some(&refused()));
        assert!(!support.is_possible(), "it may be another program by now");
    }

    /// D31: connections of one definition share the outcome, and the number of definitions is
    /// limited.
    #[test]
    fn results_of_handshakes_are_shared_by_definition_and_bounded() {
        let known = Handshakes::default();
        let one = known.of(digest(0));
        one.learn(Some(&refused()));
        assert!(!known.of(digest(0)).is_possible() && known.of(digest(1)).is_possible());
        (1..2 * DEFINITIONS_MAX).for_each(|number| drop(known.of(digest(number))));
        assert!(known.0.lock().unwrap().len() <= DEFINITIONS_MAX);
        assert!(!known.of(digest(0)).is_possible(), "one in use was forgotten");
    }
}
