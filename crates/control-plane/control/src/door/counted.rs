//! Requests of strangers and services, counted by their sender in windows of a fixed length.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

/// The requests of each sender in its present window.
pub(super) struct Counted<K> {
    window: Duration,
    most: usize,
    senders: Mutex<HashMap<K, Window>>,
}

/// A sender's window.
#[derive(Debug, Clone, Copy)]
struct Window {
    begun: SystemTime,
    requests: usize,
}

impl<K: Clone + Eq + Hash> Counted<K> {
    /// Counts within windows of this length, for at most this many senders at a time.
    pub(super) fn new(window: Duration, most: usize) -> Self {
        Self { window, most, senders: Mutex::default() }
    }

    /// Counts a request. Returns the number of earlier ones in the sender's window; `None` if too
    /// many other senders are counted.
    pub(super) fn count(&self, sender: &K, now: SystemTime) -> Option<usize> {
        let is_open = |window: &Window| {
            let age = now.duration_since(window.begun).unwrap_or_default();
            age < self.window
        };
        let mut senders = self.lock();
        if senders.len() >= self.most && !senders.contains_key(sender) {
            senders.retain(|_, window| is_open(window));
            if senders.len() >= self.most {
                return None;
            }
        }
        let new = Window { begun: now, requests: 0 };
        let window = senders.entry(sender.clone()).or_insert(new);
        if !is_open(window) {
            *window = new;
        }
        let before = window.requests;
        window.requests = before.saturating_add(1);
        Some(before)
    }

    /// Takes back a counted request that came to nothing.
    pub(super) fn uncount(&self, sender: &K) {
        if let Some(window) = self.lock().get_mut(sender) {
            window.requests = window.requests.saturating_sub(1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Window>> {
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> fmt::Debug for Counted<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted").field("window", &self.window).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn door_a4_requests_are_counted_by_sender_and_window() {
        let counted = Counted::new(MINUTE, 10);
        let start = UNIX_EPOCH + Duration::from_hours(1000);
        for before in 0..3 {
            assert_eq!(counted.count(&"a", start), Some(before));
        }
        assert_eq!(counted.count(&"b", start), Some(0), "another sender");
        counted.uncount(&"a");
        let last = start + MINUTE - Duration::from_secs(1);
        assert_eq!(counted.count(&"a", last), Some(2), "one came to nothing");
        assert_eq!(counted.count(&"a", start + MINUTE), Some(0), "another window");
        // A clock that goes back opens no new window.
        assert_eq!(counted.count(&"a", start), Some(1));
    }

    /// S31.
    #[test]
    fn s31_door_a13_the_number_of_counted_senders_is_bounded() {
        let counted = Counted::new(MINUTE, 2);
        let start = UNIX_EPOCH + Duration::from_hours(1000);
        assert_eq!(counted.count(&1, start), Some(0));
        assert_eq!(counted.count(&2, start), Some(0));
        assert_eq!(counted.count(&3, start), None);
        assert_eq!(counted.count(&1, start), Some(1), "a known sender stays");
        assert_eq!(counted.count(&3, start + MINUTE), Some(0), "others are over");
        assert_eq!(counted.lock().len(), 1);
    }
}
