//! Ceremonies that wait for their answer: kept in memory, taken once, for a short while.
//!
//! An answer has to come to the process that asked. Nothing of it is stored, so that a user starts
//! a ceremony anew which a crash interrupts.

use std::{collections::HashMap, fmt, sync::Mutex, time::Duration};

use tokio::time::Instant;

use crate::{Token, TokenHash};

/// Things that wait for their answer, each under a token of its own.
pub struct Pending<T> {
    life: Duration,
    most: usize,
    waiting: Mutex<HashMap<TokenHash, (Instant, T)>>,
}

/// The reason for which nothing more is taken.
#[derive(Debug, thiserror::Error)]
pub enum PendingFull {
    /// Any stranger can begin a ceremony, so there is a limit to how many wait.
    #[error("too many sign-ins are in progress; try again in a few minutes")]
    Full,
    /// The system has no randomness to give.
    #[error("the operating system gives no random bytes")]
    NoRandomness(#[source] getrandom::Error),
}

impl<T> Pending<T> {
    /// Room for `most`, each for as long as `life`.
    #[must_use]
    pub fn new(life: Duration, most: usize) -> Self {
        Self { life, most, waiting: Mutex::default() }
    }

    /// Keeps one, and gives the token under which it can be taken.
    ///
    /// # Errors
    /// When too many wait, or the operating system gives no random bytes.
    pub fn put(&self, value: T) -> Result<Token, PendingFull> {
        let token = Token::generate().map_err(PendingFull::NoRandomness)?;
        let now = Instant::now();
        let mut waiting = self.lock();
        if waiting.len() >= self.most {
            waiting.retain(|_, (until, _)| *until > now);
        }
        if waiting.len() >= self.most {
            return Err(PendingFull::Full);
        }
        waiting.insert(token.hash(), (now + self.life, value));
        Ok(token)
    }

    /// Takes one away, in time or not: a second answer finds nothing.
    pub fn take(&self, token: &str) -> Option<T> {
        let (until, value) = self.lock().remove(&TokenHash::of(token))?;
        (until > Instant::now()).then_some(value)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<TokenHash, (Instant, T)>> {
        self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("waiting", &self.lock().len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(300);

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_taken_once_and_in_time() {
        let pending = Pending::new(LIFE, 8);
        let (first, second) = (pending.put(1).unwrap(), pending.put(2).unwrap());
        assert_eq!(pending.take("no such token"), None);
        assert_eq!(pending.take(first.expose()), Some(1));
        assert_eq!(pending.take(first.expose()), None, "a second time");
        tokio::time::advance(LIFE).await;
        assert_eq!(pending.take(second.expose()), None, "too late");
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_wait_than_there_is_room_for() {
        let pending = Pending::new(LIFE, 3);
        for number in 0..3 {
            pending.put(number).unwrap();
        }
        assert!(matches!(pending.put(3), Err(PendingFull::Full)));
        tokio::time::advance(LIFE).await;
        let late = pending.put(4).unwrap();
        assert_eq!(pending.take(late.expose()), Some(4));
    }
}
