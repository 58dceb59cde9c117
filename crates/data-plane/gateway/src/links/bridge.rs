//! Links to servers that speak only legacy, for modern requests whose client can be asked questions
//! (decision 100).
//!
//! A link was opened with the capabilities that the request declares. Over one channel it carries
//! one call at a time, so that a question belongs to that call. Over HTTP the stream of a question
//! identifies its call; a question on the server's own stream belongs to the only open call.

mod turn;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use narthex_model::CallErrorKind;
use narthex_registry::ServerKey;
use narthex_upstream::{ClientIdentity, InUse, Inventory, Link};
use narthex_wire::{Answerable, LogLevel, Message, meta_key, method, rpc};
use tokio::{
    sync::{Notify, oneshot},
    time::{sleep, timeout_at},
};

pub(crate) use self::turn::Turn;
use self::turn::Turns;
use crate::{
    Caller, RunView,
    call::{clock::CallClock, refusal::Refusal, rounds::has_rounds},
    gateway::Shared,
    links::{Chosen, Hearers, LinkKind, OwnLink, hear, slow, stop_all},
    runs::run::RunRow,
};

/// The most links of one run to one server for one set of capabilities.
const LINKS_MAX: usize = 4;
/// The time after which a link that no call uses is closed.
const IDLE: Duration = Duration::from_secs(300);

/// The bridged links of one run.
#[derive(Debug, Default)]
pub(crate) struct Bridges(Mutex<HashMap<GroupKey, Arc<Group>>>);

/// A server, and the questions that its clients can answer.
type GroupKey = (ServerKey, Answerable);

/// The links of one run to one server for one set of capabilities.
#[derive(Debug, Default)]
struct Group {
    links: Mutex<Links>,
    /// Woken when a link is there, free or gone.
    changed: Notify,
    /// The server asks on its own stream while several calls are open: from then on, a link carries
    /// one call at a time.
    asks_aside: AtomicBool,
}

#[derive(Debug, Default)]
struct Links {
    open: Vec<Arc<Bridge>>,
    opening: usize,
}

/// One bridged link.
#[derive(Debug)]
pub(crate) struct Bridge {
    own: OwnLink,
    turns: Turns,
    /// The lowest level that was sent to the server.
    level: Mutex<Option<LogLevel>>,
    group: Arc<Group>,
}

/// The result of a look for a free link.
enum Look {
    Free(Turn),
    /// A link may be opened, and has its place already.
    Room,
    Full,
}

impl Bridges {
    fn groups(&self) -> MutexGuard<'_, HashMap<GroupKey, Arc<Group>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn group(&self, key: &GroupKey) -> Arc<Group> {
        self.groups().entry(key.clone()).or_default().clone()
    }

    /// True if there are as many links as there may be.
    fn has_all(&self, key: &GroupKey) -> bool {
        self.groups().get(key).is_some_and(|group| group.links().live() >= LINKS_MAX)
    }

    /// The links to a server, whatever was declared on them.
    fn of(&self, server: &ServerKey) -> Vec<Arc<Bridge>> {
        let groups = self.groups();
        let its = groups.iter().filter(|((of, _), _)| of == server);
        its.flat_map(|(_, group)| group.links().open.clone()).collect()
    }

    /// Forgets a link that has ended, and its group if that was the last one.
    fn forget(&self, key: &GroupKey, bridge: &Arc<Bridge>) {
        let mut groups = self.groups();
        let mut links = bridge.group.links();
        links.open.retain(|open| !Arc::ptr_eq(open, bridge));
        let is_last = links.open.is_empty() && links.opening == 0;
        drop(links);
        if is_last && groups.get(key).is_some_and(|group| Arc::ptr_eq(group, &bridge.group)) {
            groups.remove(key);
        }
        drop(groups);
        bridge.group.changed.notify_waiters();
    }
}

impl Group {
    fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self) -> Look {
        let mut links = self.links();
        let asks_aside = self.asks_aside.load(Ordering::Relaxed);
        let is_free = |bridge: &&Arc<Bridge>| {
            let is_alone = asks_aside || bridge.link().is_one_channel();
            !bridge.own.is_over() && (!is_alone || bridge.turns.is_empty())
        };
        if let Some(free) = links.open.iter().find(is_free) {
            return Look::Free(Turn::of(free));
        }
        // One link is opened at a time: this call may use the next one, too.
        if links.opening > 0 || links.live() >= LINKS_MAX {
            return Look::Full;
        }
        links.opening += 1;
        Look::Room
    }

    fn opened(&self, bridge: Option<Arc<Bridge>>) {
        let mut links = self.links();
        links.opening = links.opening.saturating_sub(1);
        links.open.extend(bridge);
        drop(links);
        self.changed.notify_waiters();
    }
}

impl Links {
    fn live(&self) -> usize {
        self.open.iter().filter(|bridge| !bridge.own.is_over()).count()
    }
}

impl Bridge {
    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.own.link
    }

    pub(crate) fn own(&self) -> &OwnLink {
        &self.own
    }

    /// The level to send on the link so that a call hears messages from `level` on; `None` if the
    /// server has got a level as low before.
    pub(crate) fn lowers(&self, level: LogLevel) -> Option<LogLevel> {
        let mut told = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let is_lower = told.is_none_or(|told| level < told);
        *told = if is_lower { Some(level) } else { *told };
        is_lower.then_some(level)
    }

    /// Brings a log message of the server's own stream to the only open call.
    pub(crate) fn tell(&self, message: &Message) {
        // On one channel the call hears it anyhow.
        if message.method() == method::MESSAGE && !self.link().is_one_channel() {
            self.turns.give(message);
        }
    }

    /// Brings a question outside of a call's stream to the only open call.
    pub(crate) async fn ask(&self, question: &Message) {
        let open = self.turns.len();
        if open > 1 {
            self.group.asks_aside.store(true, Ordering::Relaxed);
            let why =
                "several calls are open on this connection, and the question names none of them";
            self.link().refuse(question, rpc::code::INTERNAL_ERROR, why).await;
        } else if open == 0 {
            self.link().refuse_undeclared(question).await;
        } else if !self.turns.give(question) {
            let why = "too many requests to this client are open";
            self.link().refuse(question, rpc::code::INTERNAL_ERROR, why).await;
        }
    }

    /// Waits until no call has used the link for long. From then on none can.
    async fn idle(&self) {
        loop {
            let since = self.link().idle();
            if since.is_some_and(|since| since >= IDLE) && self.link().retire_unused() {
                return;
            }
            sleep(IDLE - since.unwrap_or_default().min(IDLE - Duration::from_millis(1))).await;
        }
    }
}

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
            let deadline = clock.deadline(self.timeout(&row));
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
        let row = row.ok_or_else(|| crate::call::route::unknown_server(&server.alias))?;
        self.room_for_bridge(run, server).await?;
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

    /// Makes room for one more link of a run: an unused one gives way.
    async fn room_for_bridge(&self, run: &RunView, server: &ServerKey) -> Result<(), Refusal> {
        let most = self.registry.processes_of_run();
        if run.bridges.of(server).len() < most || self.reclaim_bridge(run, server).await {
            return Ok(());
        }
        let text = format!(
            "this run has {most} connections to server `{}` for clients that answer questions, \
             which is the limit; try again later",
            server.alias
        );
        Err(Refusal::call(CallErrorKind::LimitExceeded, text))
    }

    /// Ends the link of a run to a server that has been idle for longest; `false` if all are in
    /// use.
    async fn reclaim_bridge(&self, run: &RunView, server: &ServerKey) -> bool {
        let idle = |bridge: Arc<Bridge>| Some((bridge.link().idle()?, bridge));
        let mut idle: Vec<_> = run.bridges.of(server).into_iter().filter_map(idle).collect();
        idle.sort_by_key(|(since, _)| std::cmp::Reverse(*since));
        let Some((_, bridge)) = idle.into_iter().find(|(_, one)| one.link().retire_unused()) else {
            return false;
        };
        stop_all(vec![bridge.link().clone()]).await;
        true
    }

    /// As [`Self::reclaim_bridge`], for a link of any run.
    pub(crate) async fn reclaim_any_bridge(&self, server: &ServerKey) -> bool {
        for run in self.runs.all() {
            if self.reclaim_bridge(&run, server).await {
                return true;
            }
        }
        false
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
