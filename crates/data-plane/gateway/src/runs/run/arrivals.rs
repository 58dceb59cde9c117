//! First lists of servers that had listed nothing when the run began.

use std::sync::Arc;

use narthex_model::Alias;
use narthex_registry::KeptLists;
use narthex_upstream::Inventory;

use super::RunView;

impl RunView {
    /// The run's servers of the catalog that list for the first time since the run began, each with
    /// its lists: a human has signed in, or the server is back.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = (Alias, Arc<Inventory>)> {
        let awaited = self.own.awaited().into_iter();
        awaited.filter(|(alias, _)| self.held_back.server(alias).is_some())
    }

    /// Freezes a server that had listed nothing to the reviewed part of its lists.
    pub(crate) fn arrived(&self, alias: &Alias, reviewed: &Arc<Inventory>) {
        self.own.arrived(alias, reviewed);
    }

    /// The first lists of the run's servers on shared links, so far, to be stored.
    #[must_use]
    pub fn first_lists(&self) -> KeptLists {
        self.own.first_lists()
    }
}
