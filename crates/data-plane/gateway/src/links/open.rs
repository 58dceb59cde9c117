//! Opening links besides the shared ones.

use std::sync::Arc;

use arc_swap::ArcSwap;
use narthex_model::{Alias, CallErrorKind};
use narthex_registry::{FirstList, HeldNames, OpenError, PinnedList, ServerRow};
use narthex_upstream::{ClientIdentity, Dialect, Inventory, Link, LinkEvent};
use tokio::{
    sync::{OnceCell, mpsc},
    time::timeout,
};

use super::{EVENT_QUEUE, Lent};
use crate::{RunView, call::refusal::Refusal, gateway::Shared};

/// A link besides the registry's, and the lists of its server on it (D12).
#[derive(Debug)]
pub(crate) struct OwnLink {
    pub(crate) link: Arc<Link>,
    /// The server's lists for a client with these capabilities, as far as the caller may see them.
    pub(super) inventory: ArcSwap<Inventory>,
    /// The server's first lists on such a link, if the run is frozen to these.
    first: Option<FirstList>,
    /// The part of its lists that is accepted, if they are pinned.
    pinned: Option<Arc<PinnedList>>,
}

impl Shared {
    /// Opens a link besides the shared one, and reads the server's lists for it.
    pub(crate) async fn open_link(
        self: &Arc<Self>,
        row: &ServerRow,
        identity: ClientIdentity,
        run: Option<&Arc<RunView>>,
    ) -> Result<(OwnLink, mpsc::Receiver<LinkEvent>), Refusal> {
        match self.try_open_link(row, identity.clone(), run).await {
            // A server that forgets its session at once may remember the next one.
            Err(refusal) if refusal.is_unseen() => self.try_open_link(row, identity, run).await,
            opened => opened,
        }
    }

    async fn try_open_link(
        self: &Arc<Self>,
        row: &ServerRow,
        identity: ClientIdentity,
        run: Option<&Arc<RunView>>,
    ) -> Result<(OwnLink, mpsc::Receiver<LinkEvent>), Refusal> {
        let client = identity.clone();
        let (events, received) = mpsc::channel(EVENT_QUEUE);
        let alias = &row.name;
        let dialect = (row.dialect == Some(Dialect::Modern)).then_some(Dialect::Legacy);
        // One caller tries whether the server answers `initialize`; others wait for that.
        let turn = match dialect {
            Some(_) => row.legacy.turn().await,
            None => None,
        };
        if row.is_modern_only() {
            let text = format!("server `{alias}` speaks only revision 2026-07-28");
            return Err(Refusal::call(CallErrorKind::TransportError, text));
        }
        let opening = self.registry.open_link_to(row, identity.clone(), dialect, events.clone());
        let opened = match opening.await {
            // The link of an absent client gives way.
            Err(OpenError::Full(full)) => {
                let server = run.zip(row.alias.as_ref()).map(|(run, alias)| run.key(alias));
                match server {
                    Some(server) if self.room_of_all(&server).await => {
                        self.registry.open_link_to(row, identity, dialect, events).await
                    }
                    _ => Err(OpenError::Full(full)),
                }
            }
            opened => opened,
        };
        let link = opened.map_err(|error| Refusal::unopened(error, alias))?;
        drop(turn);
        let within = self.options.settle_timeout;
        let listed = timeout(within, Inventory::fetch(&link, within)).await;
        let refusal = match listed {
            Ok(Ok(inventory)) => {
                let inventory = Arc::new(inventory);
                let first = match run.zip(row.alias.as_ref()) {
                    Some((run, alias)) => self.first_of(run, alias, &client, &inventory).await?,
                    None => None,
                };
                let pinned = match self.registry.pinned_list(row, &inventory).await {
                    Ok(pinned) => pinned,
                    Err(error) => {
                        link.stop().await;
                        let text = format!("server `{alias}` cannot be used: {error}; try again");
                        return Err(Refusal::call(CallErrorKind::TransportError, text));
                    }
                };
                let seen = first.as_ref().map_or(inventory.clone(), |first| first.of(&inventory));
                let own = OwnLink { link, inventory: ArcSwap::new(seen), first, pinned };
                return Ok((own, received));
            }
            Ok(Err(failed)) => Refusal::failed(&failed.error, alias),
            Err(_late) => {
                let text = format!("server `{alias}` did not list its tools in time");
                Refusal::call(CallErrorKind::Timeout, text)
            }
        };
        link.stop().await;
        Err(refusal)
    }
}

impl Shared {
    /// The first lists of a server for a run on a link of this kind; `None` if these are not
    /// frozen. New first lists are stored, so that they survive a restart.
    pub(super) async fn first_of(
        &self,
        run: &Arc<RunView>,
        alias: &Alias,
        client: &ClientIdentity,
        listed: &Arc<Inventory>,
    ) -> Result<Option<FirstList>, Refusal> {
        let Some(variants) = run.variants(alias) else { return Ok(None) };
        let listed = self.looked_at(run, alias, client, listed).await?;
        let (first, is_new) = variants.first_of(alias, client, &listed);
        self.keep_first(run, is_new);
        Ok(Some(first))
    }

    /// The part of a server's lists on a link of this kind that is unchanged since a run's first
    /// lists. All of the lists if they are not frozen.
    pub(super) async fn unchanged(
        &self,
        run: &Arc<RunView>,
        alias: &Alias,
        client: &ClientIdentity,
        listed: Arc<Inventory>,
    ) -> Result<Arc<Inventory>, Refusal> {
        let Some(variants) = run.variants(alias) else { return Ok(listed) };
        let first = self.looked_at(run, alias, client, &listed).await?;
        let (seen, is_new) = variants.unchanged(alias, client, &first, &listed);
        self.keep_first(run, is_new);
        Ok(seen)
    }

    fn keep_first(&self, run: &Arc<RunView>, is_new: bool) {
        if let Some(source) = self.run_source.get().filter(|_| is_new) {
            source.keep_lists(run);
        }
    }
}

impl OwnLink {
    /// Notes the server's lists, as far as callers may see them.
    pub(super) async fn lists(&self, inventory: Inventory) {
        match (&self.first, &self.pinned) {
            (_, Some(pinned)) => pinned.lists(inventory).await,
            (Some(first), None) => self.inventory.store(first.of(&Arc::new(inventory))),
            (None, None) => self.inventory.store(Arc::new(inventory)),
        }
    }

    /// `None` if the server is about to be another.
    pub(crate) fn lend(&self) -> Option<Lent> {
        let link = self.link.enter()?;
        let own = || self.inventory.load_full();
        let inventory = self.pinned.as_ref().map_or_else(own, |pinned| pinned.seen());
        Some(Lent { link, inventory })
    }

    /// The definitions under review in its lists, if these are pinned.
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

    /// True if another link has to be opened in its place.
    pub(crate) fn is_over(&self) -> bool {
        self.link.closed().is_cancelled() || self.link.is_retired()
    }
}
