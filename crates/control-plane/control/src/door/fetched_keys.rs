//! The keys of issuers and programs in memory, by their address.

use std::sync::Arc;

use narthex_oauth::server::KeyCache;

use super::bounded::Bounded;

/// Most addresses whose keys are in memory.
const ADDRESSES_MAX: usize = 256;

/// The fetched keys, by their address.
pub(super) type FetchedKeys = Bounded<String, Arc<tokio::sync::Mutex<KeyCache>>>;

/// An empty map.
pub(super) fn no_keys() -> FetchedKeys {
    Bounded::new(ADDRESSES_MAX)
}
