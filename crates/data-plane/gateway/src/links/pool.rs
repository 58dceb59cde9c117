//! The links that all legacy sessions of one revision share.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use narthex_registry::{HeldNames, ServerKey};
use narthex_wire::Revision;
use tokio::sync::OnceCell;

use super::own_link::OwnLink;
use crate::Caller;

/// The place of a link, which is empty until the link is open.
pub(crate) type Place = Arc<OnceCell<OwnLink>>;

/// The pooled links by server and revision.
#[derive(Debug, Default)]
pub(crate) struct LinkPool(Mutex<HashMap<(ServerKey, Revision), Place>>);

impl LinkPool {
    fn all(&self) -> MutexGuard<'_, HashMap<(ServerKey, Revision), Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of a link; empty if the link has to be opened.
    pub(super) fn place(&self, server: &ServerKey, revision: Revision) -> Place {
        OwnLink::place(self.all().entry((server.clone(), revision)).or_default())
    }

    /// The place of a link as it is; `None` if there never was one.
    pub(super) fn get(&self, server: &ServerKey, revision: Revision) -> Option<Place> {
        self.all().get(&(server.clone(), revision)).cloned()
    }

    /// The servers that have pooled links.
    pub(super) fn servers(&self) -> HashSet<ServerKey> {
        self.all().keys().map(|(server, _)| server.clone()).collect()
    }

    /// Forgets the links to a server.
    pub(super) fn forget(&self, server: &ServerKey) {
        self.all().retain(|(other, _), _| other != server);
    }

    /// The definitions of live servers under review on the links of a caller besides the shared
    /// ones.
    pub(crate) fn held(&self, caller: &Caller) -> HeldNames {
        let mut all = HeldNames::default();
        let Some(session) = &caller.session else { return all };
        session.held_on_own_links().iter().for_each(|held| all.extend(held));
        let is_its = |(server, revision): &(ServerKey, Revision)| {
            let run = &caller.run;
            let is_seen = run.policy.is_attached(&server.alias);
            *revision == session.revision && is_seen && run.key(&server.alias) == *server
        };
        let pool = self.all();
        let pooled = pool.iter().filter(|(key, _)| is_its(key));
        pooled.filter_map(|(_, cell)| cell.get()?.held()).for_each(|held| all.extend(&held));
        all
    }
}
