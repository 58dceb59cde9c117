//! The profiles that a registry publishes beside its servers.

use std::sync::{Arc, PoisonError};

use tokio::sync::watch;

use crate::{Declared, Profiles, Registry, config::ProfileEntry};

impl Registry {
    /// The profiles of the live configuration.
    #[must_use]
    pub fn profiles(&self) -> Arc<Profiles> {
        self.shared.profiles.borrow().clone()
    }

    /// A receiver of each set of profiles.
    #[must_use]
    pub fn profile_changes(&self) -> watch::Receiver<Arc<Profiles>> {
        self.shared.profiles.subscribe()
    }

    /// Sets the profiles, of a configuration with these servers. Returns them if they differ from
    /// the ones before.
    pub fn set_profiles(
        &self,
        entries: &[ProfileEntry],
        declared: &[Declared],
    ) -> Option<Arc<Profiles>> {
        let servers = declared.iter().map(Declared::name).collect();
        // Two callers must not each start from the same set.
        let turn = self.shared.profiles_turn.lock();
        let _turn = turn.unwrap_or_else(PoisonError::into_inner);
        let before = self.profiles();
        let next = before.next(entries, &servers);
        if next == *before {
            return None;
        }
        let next = Arc::new(next);
        self.shared.profiles.send_replace(next.clone());
        Some(next)
    }
}
