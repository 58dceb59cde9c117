//! The credentials of one process, by grant and by settings.
//!
//! Entries of one grant can differ, such as before and after a change of an address. Each has a
//! credential of its own, so that the token of one server never goes to another one.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    credential::ServerCredential,
    entry::{Entry, Mode, SignInTarget},
    holding::{Holding, Parts},
    state::Trouble,
    store::GrantKey,
};

/// The credentials of one grant, the one that was asked for last at the end.
type OfGrant = Vec<Arc<ServerCredential>>;

/// The credentials of one process.
#[derive(Default)]
pub(crate) struct Known(Mutex<HashMap<GrantKey, OfGrant>>);

impl Known {
    fn all(&self) -> MutexGuard<'_, HashMap<GrantKey, OfGrant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The credentials of a grant, the one that was asked for last at the end.
    pub(crate) fn of(&self, key: &GrantKey) -> OfGrant {
        self.all().get(key).cloned().unwrap_or_default()
    }

    /// All credentials, by grant.
    pub(crate) fn by_grant(&self) -> Vec<(GrantKey, OfGrant)> {
        self.all().iter().map(|(key, of)| (key.clone(), of.clone())).collect()
    }

    /// Has the servers of a human try again that wait for the identity of this human.
    pub(crate) fn has_new_identity(&self, parts: &Parts, user: &str) {
        let of_user = |key: &GrantKey| key.user.as_deref() == Some(user);
        for (key, of) in self.by_grant().into_iter().filter(|(key, _)| of_user(key)) {
            let waiting: Vec<_> = of.iter().filter(|one| waits_for_identity(one)).collect();
            for one in &waiting {
                one.holding.update(|state| {
                    state.trouble = None;
                    // The exchange comes first again.
                    state.fallback_until = None;
                    state.attempt = None;
                });
            }
            if !waiting.is_empty() {
                parts.changed(&key);
            }
        }
    }

    /// Number of grants.
    pub(crate) fn count(&self) -> usize {
        self.all().len()
    }

    /// The credential of a server with these settings. A new one replaces those of its grant that
    /// no link uses any more.
    pub(crate) fn hold(&self, parts: &Arc<Parts>, server: &SignInTarget) -> Arc<ServerCredential> {
        let SignInTarget { key, alias, url, auth, session: _ } = server;
        let mut all = self.all();
        let of = all.entry(key.clone()).or_default();
        let is_it = |one: &Arc<ServerCredential>| one.holding.entry().is_of(alias, url, auth);
        if let Some(at) = of.iter().position(is_it) {
            let credential = of.remove(at);
            of.push(Arc::clone(&credential));
            return credential;
        }
        of.retain(is_used);
        let is_free = |number: &u32| of.iter().all(|one| one.holding.number != *number);
        let number = (0..u32::MAX).find(is_free).unwrap_or(u32::MAX);
        let entry = Entry::new(alias, url, auth);
        let holding = Arc::new(Holding::new(Arc::clone(parts), key.clone(), entry, number));
        let credential = Arc::new(ServerCredential { holding });
        of.push(Arc::clone(&credential));
        credential
    }
}

/// True if a link has this credential, or a task of it runs.
fn is_used(credential: &Arc<ServerCredential>) -> bool {
    Arc::strong_count(credential) > 1 || Arc::strong_count(&credential.holding) > 1
}

/// True if an exchange has failed, as there was no identity of the human.
fn waits_for_identity(credential: &Arc<ServerCredential>) -> bool {
    let entry = credential.holding.entry();
    let is_waiting = |trouble: &Trouble| trouble.fault.needs_consent();
    matches!(entry.mode, Mode::Exchange(_))
        && credential.holding.with_state(|state| {
            state.fallback_until.is_some() || state.trouble.as_ref().is_some_and(is_waiting)
        })
}
