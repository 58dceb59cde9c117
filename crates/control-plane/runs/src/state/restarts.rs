//! Runs of earlier processes that may begin again here.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use narthex_control::KeyedLock;
use narthex_model::RunId;
use tokio::time::Instant;

/// Time for which the store is not searched again for a token that opens nothing.
const ABSENT_FOR: Duration = Duration::from_secs(30);
/// Number of such tokens that are remembered.
const ABSENT_MAX: usize = 4096;

/// Facts of runs that are not in the gateway's table.
#[derive(Debug, Default)]
pub(crate) struct Restarts {
    /// Hashes of tokens that open nothing, each with the time until which the store is not searched
    /// for it. Run ids would not do: a forged token names a run as well, and must not block the
    /// token that opens that run.
    absent: Mutex<HashMap<[u8; 32], Instant>>,
    /// Locks per run for its new begin.
    pub(crate) beginning: KeyedLock<RunId>,
}

impl Restarts {
    /// True if a token with this hash opens nothing.
    pub(crate) fn is_absent(&self, hash: &[u8; 32]) -> bool {
        self.absent().get(hash).is_some_and(|until| Instant::now() < *until)
    }

    /// Notes that a token with this hash opens nothing.
    pub(crate) fn note_absent(&self, hash: [u8; 32]) {
        let (mut absent, now) = (self.absent(), Instant::now());
        if absent.len() >= ABSENT_MAX {
            absent.retain(|_, until| now < *until);
        }
        // Further tokens are looked for in the store each time.
        if absent.len() < ABSENT_MAX {
            absent.insert(hash, now + ABSENT_FOR);
        }
    }

    fn absent(&self) -> MutexGuard<'_, HashMap<[u8; 32], Instant>> {
        self.absent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use narthex_gateway::RunToken;

    use super::*;

    /// The store is not searched twice for a token that opens nothing. The token blocks no other
    /// token of its run.
    #[tokio::test(start_paused = true)]
    async fn an_unknown_token_does_not_block_other_tokens_of_its_run() {
        let (kept, run) = (Restarts::default(), RunId::new([7; 6]));
        let [wrong, right] = [(); 2].map(|()| RunToken::of_run(run).unwrap().hash());
        kept.note_absent(wrong);
        assert!(kept.is_absent(&wrong) && !kept.is_absent(&right));
        tokio::time::advance(ABSENT_FOR).await;
        assert!(!kept.is_absent(&wrong));
        for number in 0..=ABSENT_MAX {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&number.to_le_bytes());
            kept.note_absent(hash);
        }
        assert_eq!(kept.absent().len(), ABSENT_MAX);
    }
}
