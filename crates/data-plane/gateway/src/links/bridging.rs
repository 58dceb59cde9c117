//! Opens bridged links, and gives calls their turns on them.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use narthex_model::CallErrorKind;
use narthex_upstream::{ClientIdentity, InUse, Inventory};
use narthex_wire::{Answerable, Message, meta_key};
use tokio::{sync::oneshot, time::timeout_at};

use super::{
    Chosen, Hearers, LinkKind,
    bridge::{Bridge, Group, GroupKey, LINKS_MAX, Look, Turn, Turns},
    hear, slow,
};
use crate::{
    Caller, RunView,
    clock::CallClock,
    refusal::{Refusal, unknown_server},
    runs::run::RunRow,
    shared::Shared,
    view::has_rounds,
};

/// The questions that the client of a modern request to a legacy server can be asked; none for any
/// other method than those during which a server may ask.
pub(crate) fn answerable(request: &Message) -> Answerable {
    if !has_rounds(request.method()) {
        return Answerable::default();
    }
    let declared = request.meta_value(meta_key::CLIENT_CAPABILITIES);
    declared.filter(|raw| raw.as_bytes() != b"{}").map(Answerable::of).unwrap_or_default()
}

impl Shared {
    /// A link whose server knows which questions this request's client can be asked, and the turn
    /// of its call on the link.
    pub(crate) async fn bridged(
        self: &Arc<Self>,
        caller: &Caller,
        row: &RunRow,
        answerable: Answerable,
        clock: CallClock,
    ) -> Result<(Chosen, Turn), Refusal> {
        let mut row = row.clone();
        let key = (caller.run.key(row.alias()), answerable);
        loop {
            let deadline = clock.deadline(self.options.timeout(&row));
            let taking = self.take_turn(caller, &key);
            let taken = timeout_at(deadline, Box::pin(taking)).await;
            let late = |_late| match caller.run.bridges.has_all(&key) {
                true => Err(busy(&row)),
                false => Err(slow(&row)),
            };
            match taken.unwrap_or_else(late) {
                Ok((link, inventory, turn)) => {
                    let kind = LinkKind::Own;
                    return Ok((Chosen { row, link, inventory, kind }, turn));
                }
                // The link was opened on a connection that another has replaced meanwhile (E41).
                Err(refusal)
                    if self.is_changed(&caller.run, &row)
                        && !matches!(refusal, Refusal::Cancelled) =>
                {
                    row = self.settled_by(&caller.run, row.alias(), clock).await?;
                }
                Err(refusal) => return Err(refusal),
            }
        }
    }

    async fn take_turn(
        self: &Arc<Self>,
        caller: &Caller,
        key: &GroupKey,
    ) -> Result<(InUse, Arc<Inventory>, Turn), Refusal> {
        loop {
            let group = caller.run.bridges.group(key);
            let changed = group.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match group.look() {
                Look::Free(turn) => {
                    let Some(lent) = turn.bridge().own.lend() else { continue };
                    if !lent.link.needs_check() || lent.link.check().await.is_ok() {
                        return Ok((lent.link, lent.inventory, turn));
                    }
                }
                Look::Room => self.open_anyhow(&caller.run, &group, key).await?,
                Look::Full => changed.await,
            }
        }
    }

    /// Opens a link in a task of its own: if the caller's time ends, the link still opens for the
    /// next caller.
    async fn open_anyhow(
        self: &Arc<Self>,
        run: &Arc<RunView>,
        group: &Arc<Group>,
        key: &GroupKey,
    ) -> Result<(), Refusal> {
        let (done, opened) = oneshot::channel();
        let (shared, run) = (self.clone(), run.clone());
        let (group, key) = (group.clone(), key.clone());
        self.spawn(async move {
            let opening = shared.open_bridge(&run, &group, &key);
            let opened = tokio::select! {
                biased;
                () = shared.shutdown.cancelled() => Err(Refusal::Cancelled),
                () = run.ended.cancelled() => Err(Refusal::Cancelled),
                opened = opening => opened,
            };
            if opened.is_err() {
                group.opened(None);
            }
            drop(done.send(opened));
        });
        opened.await.unwrap_or(Err(Refusal::Cancelled))
    }

    async fn open_bridge(
        self: &Arc<Self>,
        run: &Arc<RunView>,
        group: &Arc<Group>,
        key: &GroupKey,
    ) -> Result<(), Refusal> {
        let (server, answerable) = key;
        let rows = self.snapshot(run);
        let row = rows.get(server.alias.as_str());
        let row = row.ok_or_else(|| unknown_server(&server.alias))?;
        self.room().of_bridge(run, server).await?;
        let capabilities = Bytes::from(answerable.to_legacy());
        let identity = ClientIdentity { capabilities, ..self.own_identity() };
        let (own, events) = self.open_link(&row, identity, Some(run)).await?;
        let link = own.link.clone();
        let (turns, level) = (Turns::default(), Mutex::default());
        let bridge = Arc::new(Bridge { own, turns, level, group: group.clone() });
        group.opened(Some(bridge.clone()));
        let (shared, run, key) = (self.clone(), run.clone(), key.clone());
        self.spawn(async move {
            let over = async {
                tokio::select! {
                    biased;
                    () = shared.shutdown.cancelled() => {}
                    // Open calls get their answers, and waiting ones are ended.
                    () = run.ended.cancelled() => bridge.link().drained().await,
                    () = bridge.idle() => {}
                }
            };
            hear(Hearers::Bridge(bridge.clone()), &link, events, over).await;
            run.bridges.forget(&key, &bridge);
        });
        Ok(())
    }
}

fn busy(row: &RunRow) -> Refusal {
    let text = format!(
        "all {LINKS_MAX} connections of this run to server `{}` for clients that answer questions \
         are in use; answer the open questions, or try again later",
        row.name
    );
    Refusal::call(CallErrorKind::LimitExceeded, text)
}
