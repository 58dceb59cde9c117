//! Maps with a bound, for what this process remembers of tokens and addresses that strangers name.

use std::{fmt, hash::Hash};

/// A map that drops all its entries when a new one finds the map full. Reads take no lock.
pub(super) struct Bounded<K, V> {
    entries: papaya::HashMap<K, V>,
    most: usize,
}

impl<K: Clone + Eq + Hash, V: Clone> Bounded<K, V> {
    /// A map with at most this many entries.
    pub(super) fn new(most: usize) -> Self {
        Self { entries: papaya::HashMap::new(), most }
    }

    pub(super) fn get(&self, key: &K) -> Option<V> {
        self.entries.pin().get(key).cloned()
    }

    pub(super) fn insert(&self, key: K, value: V) {
        let entries = self.entries.pin();
        if entries.len() >= self.most {
            entries.clear();
        }
        entries.insert(key, value);
    }

    /// The value of a key, which is made if there is none.
    pub(super) fn get_or_insert_with(&self, key: &K, make: impl FnOnce() -> V) -> V {
        let entries = self.entries.pin();
        if let Some(known) = entries.get(key) {
            return known.clone();
        }
        if entries.len() >= self.most {
            entries.clear();
        }
        entries.get_or_insert_with(key.clone(), make).clone()
    }

    pub(super) fn remove(&self, key: &K) {
        self.entries.pin().remove(key);
    }
}

impl<K, V> fmt::Debug for Bounded<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bounded").field("most", &self.most).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// S31: strangers can name any number of tokens and addresses.
    #[test]
    fn s31_door_a8_the_number_of_entries_is_bounded() {
        let map = Bounded::new(4);
        let make = |key: u32| map.get_or_insert_with(&key, || Arc::new(key));
        let first = make(0);
        assert!(Arc::ptr_eq(&first, &make(0)));
        for key in 1..100 {
            make(key);
            map.insert(key + 1000, Arc::new(key));
            assert!(map.entries.pin().len() <= 4);
        }
        assert!(!Arc::ptr_eq(&first, &make(0)));
        map.remove(&0);
        assert_eq!(map.get(&0), None);
        assert!(!format!("{map:?}").contains("99"), "entries are not printed");
    }
}
