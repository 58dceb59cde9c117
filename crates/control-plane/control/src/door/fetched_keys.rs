//! Keys of programs that name an address for them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use narthex_oauth::server::KeyCache;

/// Most addresses whose keys are kept.
const ADDRESSES_MAX: usize = 256;

/// The fetched keys of programs, by their address.
#[derive(Debug, Default)]
pub(super) struct FetchedKeys(Mutex<HashMap<String, Arc<tokio::sync::Mutex<KeyCache>>>>);

impl FetchedKeys {
    /// The keys of an address. Those of all others are dropped when there are too many.
    pub(super) fn at(&self, address: &str) -> Arc<tokio::sync::Mutex<KeyCache>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= ADDRESSES_MAX && !all.contains_key(address) {
            all.clear();
        }
        all.entry(address.to_owned()).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn door_a8_the_number_of_kept_addresses_is_bounded() {
        let keys = FetchedKeys::default();
        let first = keys.at("https://app.example/0");
        assert!(Arc::ptr_eq(&first, &keys.at("https://app.example/0")));
        for n in 0..=ADDRESSES_MAX {
            keys.at(&format!("https://app.example/{n}"));
        }
        assert!(!Arc::ptr_eq(&first, &keys.at("https://app.example/0")));
        assert!(keys.0.lock().unwrap().len() <= ADDRESSES_MAX);
    }
}
