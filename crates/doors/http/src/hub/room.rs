//! The buffer for the stored events of all streams. It has a maximum of bytes; each run and each
//! workspace may use only a part of it.
//!
//! Adding an event changes only atomic counters. Only an event that overfills a part takes locks.
//! Then the run that stores the most bytes loses its oldest events, whichever of its streams they
//! belong to. An event that a present reader has not read yet stays, and its call waits instead.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use narthex_gateway::Parts;
use narthex_model::{RunId, WorkspaceId};

use super::{Channel, channel::Oldest, lock};

/// Number of closed streams that the list may have in addition to the number of open streams.
const LISTED_MIN: usize = 64;

/// The buffer of all runs.
#[derive(Debug)]
pub(crate) struct Room {
    parts: Parts,
    used: AtomicUsize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    runs: HashMap<RunId, Weak<RunRoom>>,
    workspaces: HashMap<WorkspaceId, Weak<AtomicUsize>>,
}

/// One run's part of the buffer.
#[derive(Debug)]
pub(crate) struct RunRoom {
    all: Arc<Room>,
    run: RunId,
    workspace: WorkspaceId,
    used: AtomicUsize,
    used_in_workspace: Arc<AtomicUsize>,
    /// Number of events of all the run's streams so far.
    events: AtomicU64,
    /// Number of streams that the run has.
    open: AtomicUsize,
    /// The streams that store events, ordered by the oldest event that each had when it was added.
    streams: Mutex<BinaryHeap<Reverse<Listed>>>,
}

/// A stream, and the count of its oldest event.
#[derive(Debug)]
struct Listed {
    oldest: u64,
    channel: Weak<Channel>,
}

impl PartialEq for Listed {
    fn eq(&self, other: &Self) -> bool {
        self.oldest == other.oldest
    }
}

impl Eq for Listed {}

impl PartialOrd for Listed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Listed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.oldest.cmp(&other.oldest)
    }
}

impl Room {
    /// Creates a buffer of `total` bytes.
    pub(crate) fn new(total: usize) -> Arc<Self> {
        let (used, table) = (AtomicUsize::new(0), Mutex::default());
        Arc::new(Self { parts: Parts::of(total), used, table })
    }

    /// The part of a run; all streams of the run share it.
    pub(crate) fn of(self: &Arc<Self>, run: RunId, workspace: &WorkspaceId) -> Arc<RunRoom> {
        let mut table = lock(&self.table);
        if let Some(known) = table.runs.get(&run).and_then(Weak::upgrade) {
            return known;
        }
        let known = table.workspaces.get(workspace).and_then(Weak::upgrade);
        let used_in_workspace = known.unwrap_or_default();
        table.workspaces.insert(workspace.clone(), Arc::downgrade(&used_in_workspace));
        let made = Arc::new(RunRoom {
            all: self.clone(),
            run,
            workspace: workspace.clone(),
            used: AtomicUsize::new(0),
            used_in_workspace,
            events: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            streams: Mutex::default(),
        });
        table.runs.insert(run, Arc::downgrade(&made));
        made
    }

    /// The run that stores the most bytes, in one workspace or in all.
    fn largest(&self, of: Option<&WorkspaceId>) -> Option<Arc<RunRoom>> {
        let runs: Vec<_> = lock(&self.table).runs.values().filter_map(Weak::upgrade).collect();
        let runs = runs.into_iter().filter(|run| of.is_none_or(|of| run.workspace == *of));
        runs.max_by_key(|run| run.used.load(Ordering::Relaxed))
    }
}

impl RunRoom {
    /// Returns the count of the next event.
    pub(crate) fn next_event(&self) -> u64 {
        self.events.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: usize) {
        for used in self.counts() {
            used.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        for used in self.counts() {
            used.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    fn counts(&self) -> [&AtomicUsize; 3] {
        [&self.used, &*self.used_in_workspace, &self.all.used]
    }

    /// Counts one more stream of the run.
    pub(crate) fn opened(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one stream of the run less.
    pub(crate) fn closed(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Adds a stream to the list in which the run finds its oldest events.
    pub(crate) fn list(&self, channel: &Arc<Channel>, oldest: u64) {
        let mut streams = lock(&self.streams);
        // Removes closed streams when they outnumber the open ones.
        if streams.len() > LISTED_MIN + 2 * self.open.load(Ordering::Relaxed) {
            streams.retain(|Reverse(listed)| listed.channel.strong_count() > 0);
        }
        streams.push(Reverse(Listed { oldest, channel: Arc::downgrade(channel) }));
    }

    /// True if each part can store `more` further bytes.
    pub(crate) fn has_room(&self, more: usize) -> bool {
        let Parts { run, workspace, total } = self.all.parts;
        let most = [run, workspace, total];
        self.counts().into_iter().zip(most).all(|(used, most)| has_room(used, most, more))
    }

    /// Drops old events until each part can store `more` further bytes. Returns true if that
    /// succeeds.
    pub(crate) fn make_room(&self, more: usize) -> bool {
        let Parts { run, workspace, total } = self.all.parts;
        let run_is_full = || !has_room(&self.used, run, more);
        let workspace_is_full = || !has_room(&self.used_in_workspace, workspace, more);
        let all_is_full = || !has_room(&self.all.used, total, more);
        if run_is_full() {
            self.drop_oldest(&run_is_full);
        }
        if workspace_is_full()
            && let Some(largest) = self.all.largest(Some(&self.workspace))
        {
            largest.drop_oldest(&workspace_is_full);
        }
        if all_is_full()
            && let Some(largest) = self.all.largest(None)
        {
            largest.drop_oldest(&all_is_full);
        }
        self.has_room(more)
    }

    /// Drops the oldest events of this run for as long as `is_wanted` returns true.
    fn drop_oldest(&self, is_wanted: &impl Fn() -> bool) {
        let mut streams = lock(&self.streams);
        let mut unread = Vec::new();
        while is_wanted()
            && let Some(Reverse(mut listed)) = streams.pop()
        {
            let Some(channel) = listed.channel.upgrade() else { continue };
            match channel.drop_oldest(listed.oldest) {
                Oldest::None => {}
                Oldest::Now(oldest) => {
                    listed.oldest = oldest;
                    streams.push(Reverse(listed));
                }
                Oldest::Unread => unread.push(Reverse(listed)),
            }
        }
        streams.extend(unread);
    }
}

fn has_room(used: &AtomicUsize, most: usize, more: usize) -> bool {
    used.load(Ordering::Relaxed).saturating_add(more) <= most
}

impl Drop for RunRoom {
    fn drop(&mut self) {
        let mut table = lock(&self.all.table);
        // Meanwhile another part may have been created for the run.
        if table.runs.get(&self.run).is_some_and(|known| known.strong_count() == 0) {
            table.runs.remove(&self.run);
        }
        if Arc::strong_count(&self.used_in_workspace) == 1 {
            table.workspaces.remove(&self.workspace);
        }
    }
}
