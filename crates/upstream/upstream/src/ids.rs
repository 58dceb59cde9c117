//! Ids of the requests on one link, which also are their progress tokens.
//!
//! Several callers may share a link, and a server accepts a message about a request from any of
//! them. So an id is a counter that a keyed permutation has mixed: unique on its link, and not
//! predictable from others. An id is a positive integer of 31 bits, since some servers read ids
//! into 32 bits (`docs/decisions/0084-ids-toward-servers.md`).

use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
};

/// The bits of the halves that the permutation mixes.
const LEFT: u64 = (1 << 16) - 1;
const RIGHT: u64 = (1 << 15) - 1;
const ROUNDS: u64 = 4;

/// Gives each request of a link its id.
#[derive(Debug)]
pub(crate) struct Ids {
    /// Number of ids given so far.
    given: AtomicU64,
    /// The key, from the system's randomness.
    key: RandomState,
}

impl Ids {
    /// Ids under a new key.
    pub(crate) fn new() -> Self {
        Self { given: AtomicU64::new(0), key: RandomState::new() }
    }

    /// The next id, from 1 to 2³¹ − 1. An id is used again only after all others were used.
    pub(crate) fn next(&self) -> u64 {
        loop {
            let id = self.mixed(self.given.fetch_add(1, Ordering::Relaxed));
            // Some servers take 0 for no id.
            if id != 0 {
                return id;
            }
        }
    }

    /// True if ids have started to repeat, so that the next one may still be in use.
    pub(crate) fn come_again(&self) -> bool {
        self.given.load(Ordering::Relaxed) >= 1 << 31
    }

    /// A Feistel network: each round changes one half by a keyed hash of the other. So two
    /// different counts of 31 bits never give the same id.
    fn mixed(&self, count: u64) -> u64 {
        let (mut left, mut right) = (count & LEFT, (count >> 16) & RIGHT);
        for round in 0..ROUNDS {
            match round % 2 {
                0 => left ^= self.key.hash_one((round << 32) | right) & LEFT,
                _ => right ^= self.key.hash_one((round << 32) | left) & RIGHT,
            }
        }
        (right << 16) | left
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// S19: ids are unique on a link and fit 32 bits with a sign. They do not follow from earlier
    /// ids, or from ids of another link.
    #[test]
    fn s19_ids_are_unique_fit_32_bits_and_are_not_consecutive() {
        const COUNT: usize = 100_000;
        let (one, other) = (Ids::new(), Ids::new());
        let ids: Vec<_> = (0..COUNT).map(|_| one.next()).collect();
        assert!(ids.iter().all(|id| (1..=i32::MAX.unsigned_abs().into()).contains(id)));
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), COUNT);
        // By chance about one pair in 2³¹ is consecutive, and one in 2¹⁵ is near.
        let near = ids.windows(2).filter(|two| two[0].abs_diff(two[1]) < 1 << 15).count();
        assert!(near < COUNT / 1000, "{near} ids are near the one before");
        let upper = ids.iter().filter(|id| **id >= 1 << 30).count();
        assert!((COUNT * 2 / 5..COUNT * 3 / 5).contains(&upper), "{upper} in the upper half");
        let same = ids.iter().filter(|id| **id == other.next()).count();
        assert!(same < 3, "{same} ids of another link are the same");
    }

    /// Mixed ids stay unique until all ids were used.
    #[test]
    fn s19_different_counts_have_different_ids() {
        let ids = Ids::new();
        // Among this many random numbers, about 250 pairs would be equal.
        let mut all: Vec<_> = (0..1 << 31).step_by(2047).map(|count| ids.mixed(count)).collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|two| two[0] != two[1]));
        assert!(!ids.come_again());
        ids.given.store(1 << 31, Ordering::Relaxed);
        assert!(ids.come_again());
    }
}
