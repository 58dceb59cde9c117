//! A profile by which a run sees its servers. A reload of the configuration replaces it, also for
//! runs that are open.

use std::sync::Arc;

use arc_swap::ArcSwap;
use narthex_model::{Alias, Profile};
use tokio::sync::watch;

use crate::{Item, RunPolicy};

/// A profile within the policy of another run. Clones are the same profile.
#[derive(Debug, Clone)]
pub struct LiveProfile(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    within: RunPolicy,
    current: ArcSwap<Profile>,
    /// Counts the replacements.
    changes: watch::Sender<u64>,
}

/// Two values are equal if they are the same profile.
impl PartialEq for LiveProfile {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for LiveProfile {}

impl LiveProfile {
    /// A profile that narrows `within`.
    #[must_use]
    pub fn new(within: RunPolicy, profile: Arc<Profile>) -> Self {
        let current = ArcSwap::new(profile);
        Self(Arc::new(Inner { within, current, changes: watch::Sender::new(0) }))
    }

    /// The profile as it is now.
    #[must_use]
    pub fn current(&self) -> Arc<Profile> {
        self.0.current.load_full()
    }

    /// Replaces the profile. Decisions from now on are made by the new one.
    pub fn replace(&self, profile: Arc<Profile>) {
        self.0.current.store(profile);
        self.0.changes.send_modify(|count| *count += 1);
    }

    /// A receiver of replacements; it may skip some.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// True if anything of a server is visible.
    pub(crate) fn is_attached(&self, alias: &Alias) -> bool {
        let has = || alias.is_built_in() || self.0.current.load().has(alias);
        self.0.within.is_attached(alias) && has()
    }

    /// True if an item is visible; a task is if the tool that made it is.
    pub(crate) fn shows(&self, alias: &Alias, item: &Item, made_by: Option<&str>) -> bool {
        if !self.0.within.shows(alias, item, made_by) {
            return false;
        }
        let profile = self.0.current.load();
        match (profile.exposed(alias), item, made_by) {
            // Every run has the built-in server (X-M1).
            (None, ..) => alias.is_built_in(),
            (Some(exposed), Item::Task(_), Some(tool)) => exposed.tools.lets(tool),
            // These are about no single item: log levels, and lists of the run's own tasks.
            (Some(_), Item::Task(_) | Item::Server, _) => true,
            (Some(exposed), item, _) => item.is_exposed(exposed),
        }
    }
}
