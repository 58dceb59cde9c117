//! The runs by which clients see the live configuration through its profiles.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use arc_swap::ArcSwap;
use narthex_audit::AuditFull;
use narthex_model::McpClientId;
use narthex_registry::Profiles;
use papaya::HashMap;

use crate::RunView;

/// A run for each profile, made from the daemon's own run.
#[derive(Debug, Default)]
pub(crate) struct ProfileRuns {
    base: OnceLock<Arc<RunView>>,
    /// Read by calls without a lock.
    applied: ArcSwap<Applied>,
    /// The runs of registered clients, each of which sees by one profile, or all.
    clients: HashMap<McpClientId, Arc<RunView>>,
    /// Held while the runs are made anew.
    turn: Mutex<()>,
}

#[derive(Debug, Default)]
struct Applied {
    /// The profiles for which the runs were made last.
    profiles: Option<Arc<Profiles>>,
    runs: BTreeMap<String, Arc<RunView>>,
}

impl ProfileRuns {
    /// Makes runs for profiles from now on. Only the first call counts.
    pub(crate) fn begin(&self, base: &Arc<RunView>) -> bool {
        self.base.set(base.clone()).is_ok()
    }

    /// The daemon's own run.
    pub(crate) fn base(&self) -> Option<Arc<RunView>> {
        self.base.get().cloned()
    }

    /// True for the daemon's own run, whose clients choose a profile by the address.
    pub(crate) fn is_base(&self, run: &RunView) -> bool {
        self.base.get().is_some_and(|base| base.id == run.id)
    }

    /// The run of a profile.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<RunView>> {
        self.applied.load().runs.get(name).cloned()
    }

    /// All runs of profiles, by the name of the profile.
    pub(crate) fn all(&self) -> Vec<Arc<RunView>> {
        self.applied.load().runs.values().cloned().collect()
    }

    /// Makes the runs fit the profiles. `begin` lets a new run begin. Returns the runs of profiles
    /// that do not exist any more, which the caller ends.
    pub(crate) fn apply(
        &self,
        profiles: &Arc<Profiles>,
        begin: impl Fn(&Arc<RunView>) -> Result<(), AuditFull>,
    ) -> Vec<Arc<RunView>> {
        let Some(base) = self.base.get() else { return Vec::new() };
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.applied.load();
        if before.profiles.as_ref().is_some_and(|last| Arc::ptr_eq(last, profiles)) {
            return Vec::new();
        }
        let (mut left, mut runs, mut is_whole) = (before.runs.clone(), BTreeMap::new(), true);
        for profile in profiles.iter().filter_map(|one| one.profile.as_ref()) {
            let name = profile.name().as_str();
            if let Some(run) = left.remove(name) {
                if let Some(live) = run.policy.profile()
                    && !Arc::ptr_eq(&live.current(), profile)
                {
                    live.replace(profile.clone());
                }
                runs.insert(name.to_owned(), run);
                continue;
            }
            let run = Arc::new(RunView::in_profile(base, profile.clone()));
            match begin(&run) {
                Ok(()) => drop(runs.insert(name.to_owned(), run)),
                Err(error) => {
                    is_whole = false;
                    tracing::warn!(profile = name, "a profile cannot be used yet: {error}");
                }
            }
        }
        // Otherwise the next caller tries again.
        let profiles = is_whole.then(|| profiles.clone());
        self.applied.store(Arc::new(Applied { profiles, runs }));
        let mut gone: Vec<_> = left.into_values().collect();
        let clients = self.clients.pin();
        let of_gone = |run: &RunView| gone.iter().any(|gone| gone.policy == run.policy);
        let left: Vec<_> =
            clients.iter().filter(|(_, run)| of_gone(run)).map(|(id, _)| id.clone()).collect();
        gone.extend(left.iter().filter_map(|id| clients.remove(id).cloned()));
        gone
    }

    /// The run of a registered client.
    pub(crate) fn of_client(&self, client: &McpClientId) -> Option<Arc<RunView>> {
        self.clients.pin().get(client).cloned()
    }

    /// The run of a registered client: `new`, which begins, if there is none. `true` if it has
    /// begun now.
    pub(crate) fn begin_client(
        &self,
        client: &McpClientId,
        new: RunView,
        begin: impl Fn(&Arc<RunView>) -> Result<(), AuditFull>,
    ) -> Result<(Arc<RunView>, bool), AuditFull> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = self.of_client(client) {
            return Ok((run, false));
        }
        let run = Arc::new(new);
        begin(&run)?;
        self.clients.pin().insert(client.clone(), run.clone());
        Ok((run, true))
    }

    /// Forgets the run of a registered client, and returns it.
    pub(crate) fn leave(&self, client: &McpClientId) -> Option<Arc<RunView>> {
        self.clients.pin().remove(client).cloned()
    }
}
