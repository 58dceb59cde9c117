//! Values for lists, for as long as a caller holds the list.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use narthex_upstream::Inventory;

/// One value for each list, by the list's address. No other list gets the address of a dropped one
/// as long as this map points to it.
#[derive(Debug)]
pub(crate) struct ByList<T>(HashMap<usize, (Weak<Inventory>, T)>);

impl<T> Default for ByList<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> ByList<T> {
    /// The value for a list, if there is one.
    #[must_use]
    pub(crate) fn get(&self, list: &Arc<Inventory>) -> Option<&T> {
        self.0.get(&Arc::as_ptr(list).addr()).map(|(_, value)| value)
    }

    /// Stores the value for a list, and replaces an earlier one.
    pub(crate) fn insert(&mut self, list: &Arc<Inventory>, value: T) {
        self.0.insert(Arc::as_ptr(list).addr(), (Arc::downgrade(list), value));
    }

    /// Removes the lists that no caller holds.
    pub(crate) fn forget_gone(&mut self) {
        self.0.retain(|_, (list, _)| list.strong_count() > 0);
    }

    /// Number of lists with a value.
    #[must_use]
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_list_is_forgotten_when_the_list_is_dropped() {
        let list = || Arc::new(Inventory::new([]));
        let (one, other) = (list(), list());
        let mut known = ByList::default();
        known.insert(&one, 1);
        // Another list with the same content has no value.
        assert_eq!((known.get(&one), known.get(&other)), (Some(&1), None));
        known.insert(&other, 2);
        drop(one);
        assert_eq!(known.count(), 2);
        known.forget_gone();
        assert_eq!((known.count(), known.get(&other)), (1, Some(&2)));
        // The place of a dropped list stays taken until it is forgotten.
        drop(other);
        for _ in 0..100 {
            assert_eq!(known.get(&list()), None);
        }
    }
}
