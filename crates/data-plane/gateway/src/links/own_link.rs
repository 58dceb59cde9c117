//! A link besides the shared one of its server, and its users.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use narthex_registry::{FirstList, HeldNames, PinnedList};
use narthex_upstream::{InUse, Inventory, Link};
use narthex_wire::Revision;
use tokio::{sync::OnceCell, task::JoinSet, time::timeout};

/// A link besides the registry's, and the lists of its server on it (D12).
#[derive(Debug)]
pub(crate) struct OwnLink {
    pub(crate) link: Arc<Link>,
    /// The server's lists for a client with these capabilities, as far as the caller may see them.
    pub(crate) inventory: ArcSwap<Inventory>,
    /// The server's first lists on such a link, if the run is frozen to these.
    pub(crate) first: Option<FirstList>,
    /// The accepted part of the server's lists, if the lists are pinned.
    pub(crate) pinned: Option<Arc<PinnedList>>,
}

impl OwnLink {
    /// Notes the server's lists, as far as callers may see them.
    pub(crate) async fn lists(&self, inventory: Inventory) {
        match (&self.first, &self.pinned) {
            (_, Some(pinned)) => pinned.lists(inventory).await,
            (Some(first), None) => self.inventory.store(first.of(&Arc::new(inventory))),
            (None, None) => self.inventory.store(Arc::new(inventory)),
        }
    }

    /// Lends the link with its lists. `None` if another link is about to replace this one.
    pub(crate) fn lend(&self) -> Option<Lent> {
        let link = self.link.enter()?;
        let own = || self.inventory.load_full();
        let inventory = self.pinned.as_ref().map_or_else(own, |pinned| pinned.seen());
        Some(Lent { link, inventory })
    }

    /// The definitions under review in the server's lists, if the lists are pinned.
    pub(crate) fn held(&self) -> Option<Arc<HeldNames>> {
        self.pinned.as_ref().map(|pinned| pinned.held())
    }

    /// Returns the place of a link. It is empty if the link has to be opened, also where it was
    /// closed or retired.
    pub(crate) fn place(cell: &mut Arc<OnceCell<Self>>) -> Arc<OnceCell<Self>> {
        if cell.get().is_some_and(Self::is_over) {
            *cell = Arc::default();
        }
        cell.clone()
    }

    /// True if another link has to be opened in the place of this one.
    pub(crate) fn is_over(&self) -> bool {
        self.link.closed().is_cancelled() || self.link.is_retired()
    }
}

/// A link that was opened besides the shared one, and the lists of its server on it.
pub(crate) struct Lent {
    pub(crate) link: InUse,
    pub(crate) inventory: Arc<Inventory>,
}

/// The users of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LinkKind {
    /// All callers that need nothing special.
    Shared,
    /// Legacy sessions of one revision that servers cannot ask questions.
    Pooled(Revision),
    /// A link of one session: the server knows the client's capabilities, so that it may ask the
    /// client.
    Own,
}

/// Stops links side by side.
pub(crate) async fn stop_all(links: Vec<Arc<Link>>) {
    let mut stopping = JoinSet::new();
    for link in links {
        stopping.spawn(async move {
            if timeout(STOP_DEADLINE, link.stop()).await.is_err() {
                tracing::warn!(server.name = link.name(), "a server does not stop in time");
            }
        });
    }
    while stopping.join_next().await.is_some() {}
}

/// Longest time that servers get to end: more than the end of their input, SIGTERM and SIGKILL
/// take.
pub(crate) const STOP_DEADLINE: Duration = Duration::from_secs(10);
