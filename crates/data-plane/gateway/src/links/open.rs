//! Opening links besides the shared ones.

use std::sync::Arc;

use arc_swap::ArcSwap;
use narthex_model::CallErrorKind;
use narthex_registry::{OpenError, ServerRow};
use narthex_upstream::{ClientIdentity, Dialect, Inventory, LinkEvent};
use tokio::{sync::mpsc, time::timeout};

use crate::{RunView, links::OwnLink, refusal::Refusal, shared::Shared};

/// Number of messages of a server that wait for one session.
const EVENT_QUEUE: usize = 256;

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
            // The link of an absent client ends to make room.
            Err(OpenError::Full(full)) => {
                let server = run.zip(row.alias.as_ref()).map(|(run, alias)| run.key(alias));
                match server {
                    Some(server) if self.room().of_all(&server).await => {
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
                    Some((run, alias)) => {
                        self.run_source.first_of(run, alias, &client, &inventory).await?
                    }
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
