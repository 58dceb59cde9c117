//! Ceremonies that wait for their answer: held in memory for a short time, and taken once.
//!
//! The answer has to come to the same process. Nothing is stored: after a crash, the user starts
//! the ceremony anew.

use std::{collections::HashMap, fmt, sync::Mutex, time::Duration};

use tokio::time::Instant;

use crate::{Token, TokenHash};

/// Values that wait for their answer, each under its own token.
pub struct Pending<T> {
    life: Duration,
    most: usize,
    waiting: Mutex<HashMap<TokenHash, (Instant, T)>>,
}

/// The reason why no further value is accepted.
#[derive(Debug, thiserror::Error)]
pub enum PendingFull {
    /// Too many values wait. There is a limit, as any stranger can start a ceremony.
    #[error("too many sign-ins are in progress; try again in a few minutes")]
    Full,
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes")]
    NoRandomness(#[source] getrandom::Error),
}

impl<T> Pending<T> {
    /// Room for `most` values, each for the time `life`.
    #[must_use]
    pub fn new(life: Duration, most: usize) -> Self {
        Self { life, most, waiting: Mutex::default() }
    }

    /// Stores a value; returns the token for taking it.
    ///
    /// # Errors
    /// When too many values wait, or the operating system gives no random bytes.
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

    /// Removes a value, and returns it if it has not expired. A second call returns `None`.
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
    async fn a_pending_value_is_taken_once_before_its_deadline() {
        let pending = Pending::new(LIFE, 8);
        let (first, second) = (pending.put(1).unwrap(), pending.put(2).unwrap());
        assert_eq!(pending.take("no such token"), None);
        assert_eq!(pending.take(first.expose()), Some(1));
        assert_eq!(pending.take(first.expose()), None, "a second time");
        tokio::time::advance(LIFE).await;
        assert_eq!(pending.take(second.expose()), None, "too late");
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_pending_values_is_limited() {
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
