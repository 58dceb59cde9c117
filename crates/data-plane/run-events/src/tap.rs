//! The tap: connects the callers of operations with their watchers.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use narthex_model::{Alias, RunId};

use crate::{
    Call, Counted, FileOperation, Open, Operation, Watcher, What,
    operation::{is_inside, told_path},
    tally::Tally,
    watcher::Queue,
};

/// Number of operations that may wait for one watcher. Further operations are lost.
pub const QUEUE: usize = 4096;

/// The watchers of each run.
type Watched = HashMap<RunId, Watchers>;

/// The watchers of one run. A holder can send to them, also after the end of the run.
pub(crate) type Watchers = Vec<Arc<Queue>>;

tokio::task_local! {
    /// The watchers of the run whose work this is, as they were when the work began.
    static HELD: (RunId, Watchers);
}

/// The place where operations are reported and watched. Clones are handles to the same tap.
#[derive(Debug, Clone, Default)]
pub struct Tap {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Number of watchers and counters. While it is 0, nothing else is read.
    attention: AtomicUsize,
    /// The watchers, read without a lock.
    watched: ArcSwap<Watched>,
    /// The counters of runs, while a reader counts.
    board: ArcSwapOption<Board>,
    /// Number of active counters; locked while the first starts and the last ends.
    counting: Mutex<usize>,
}

/// The counters of runs.
#[derive(Debug, Default)]
struct Board(papaya::HashMap<RunId, Arc<Tally>>);

/// Counts the calls of all runs for as long as it lives.
#[derive(Debug)]
pub struct Counting {
    tap: Tap,
}

impl Tap {
    /// True if there is any watcher or counter: one atomic load.
    #[inline]
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.shared.attention.load(Ordering::Relaxed) > 0
    }

    /// True if this run has a watcher.
    #[must_use]
    pub fn is_watching(&self, run: RunId) -> bool {
        self.is_watched() && self.shared.watched.load().contains_key(&run)
    }

    /// Starts the report of a call of a run; `None` if the run is not watched, and `call` is not
    /// called then.
    #[inline]
    #[must_use]
    pub fn begin(&self, run: RunId, call: impl FnOnce() -> Call) -> Option<Box<Open>> {
        if self.is_watched() { self.begin_watched(run, call) } else { None }
    }

    #[cold]
    fn begin_watched(&self, run: RunId, call: impl FnOnce() -> Call) -> Option<Box<Open>> {
        let tally = self.shared.board.load().as_ref().map(|board| board.of(run));
        let watchers = self.watchers(run);
        if tally.is_none() && watchers.is_empty() {
            return None;
        }
        Some(Box::new(Open::new(self.clone(), run, call(), tally, watchers)))
    }

    fn watchers(&self, run: RunId) -> Watchers {
        self.shared.watched.load().get(&run).cloned().unwrap_or_default()
    }

    /// Runs work that may outlive its run. The run's present watchers get the work's file
    /// operations even if the run ends meanwhile, and only then the end.
    pub async fn holding<T>(&self, run: RunId, work: impl Future<Output = T>) -> T {
        let watchers = if self.is_watched() { self.watchers(run) } else { Watchers::new() };
        match watchers.is_empty() {
            true => work.await,
            false => HELD.scope((run, watchers), work).await,
        }
    }

    /// Reports a file operation of a mount. `alias` is the run's name for the server.
    pub fn file(&self, run: RunId, alias: Option<&Alias>, done: FileOperation<'_>) {
        if !self.is_watched() {
            return;
        }
        let FileOperation { name, path, fd, size, result, error, took } = done;
        let now = SystemTime::now();
        let held = HELD.try_with(|(held, watchers)| (*held == run).then(|| watchers.clone()));
        let held = held.ok().flatten().unwrap_or_default();
        self.tell(run, alias, &held, || Operation {
            what: What::File { name, path: told_path(path), fd },
            began: now.checked_sub(took).unwrap_or(now),
            size,
            result,
            error,
            took,
            is_inner: is_inside(),
        });
    }

    /// Reports to the watchers of a run; once it has ended, to those of the operation's beginning.
    pub(crate) fn tell(
        &self,
        run: RunId,
        alias: Option<&Alias>,
        before: &[Arc<Queue>],
        operation: impl Fn() -> Operation,
    ) {
        let watched = self.shared.watched.load();
        let queues = watched.get(&run).map_or(before, Vec::as_slice);
        for queue in queues.iter().filter(|queue| queue.wants(alias)) {
            queue.tell(operation());
        }
    }

    /// Watches a run from now on: the operations of these servers, or all without names.
    #[must_use]
    pub fn watch(&self, run: RunId, aliases: Vec<Alias>) -> Watcher {
        self.watch_with_room(run, aliases, QUEUE)
    }

    pub(crate) fn watch_with_room(&self, run: RunId, of: Vec<Alias>, room: usize) -> Watcher {
        let (queue, receiver) = Queue::new(of, room);
        let queue = Arc::new(queue);
        self.shared.watched.rcu(|watched| {
            let mut watched = Watched::clone(watched);
            watched.entry(run).or_default().push(queue.clone());
            watched
        });
        self.shared.attention.fetch_add(1, Ordering::SeqCst);
        Watcher::new(self.clone(), run, receiver, queue.lost())
    }

    /// Takes a watcher out that has gone.
    pub(crate) fn forget(&self, watcher: &Watcher) {
        self.shared.attention.fetch_sub(1, Ordering::SeqCst);
        self.shared.watched.rcu(|watched| {
            let mut watched = Watched::clone(watched);
            if let Some(queues) = watched.get_mut(&watcher.run()) {
                queues.retain(|queue| !queue.is_of(watcher));
            }
            watched.retain(|_, queues| !queues.is_empty());
            watched
        });
    }

    /// Ends the watching of a run: its watchers get the end once running operations have ended.
    /// Also drops the run's counts.
    pub fn run_ended(&self, run: RunId) {
        if let Some(board) = &*self.shared.board.load() {
            board.0.pin().remove(&run);
        }
        if self.shared.watched.load().contains_key(&run) {
            self.shared.watched.rcu(|watched| {
                let mut watched = Watched::clone(watched);
                watched.remove(&run);
                watched
            });
        }
    }

    /// Counts the calls of all runs from now on, until the returned value is dropped.
    #[must_use]
    pub fn count(&self) -> Counting {
        let mut counting = self.shared.counting.lock().unwrap_or_else(PoisonError::into_inner);
        if *counting == 0 {
            self.shared.board.store(Some(Arc::default()));
        }
        *counting += 1;
        self.shared.attention.fetch_add(1, Ordering::SeqCst);
        Counting { tap: self.clone() }
    }
}

impl Board {
    fn of(&self, run: RunId) -> Arc<Tally> {
        self.0.pin().get_or_insert_with(run, || Arc::new(Tally::new())).clone()
    }
}

impl Counting {
    /// The counts of a run since counting began.
    #[must_use]
    pub fn of(&self, run: RunId) -> Counted {
        let board = self.tap.shared.board.load();
        let tally = board.as_ref().and_then(|board| board.0.pin().get(&run).cloned());
        tally.map_or_else(Counted::nothing, |tally| tally.counted())
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        let shared = &self.tap.shared;
        let mut counting = shared.counting.lock().unwrap_or_else(PoisonError::into_inner);
        shared.attention.fetch_sub(1, Ordering::SeqCst);
        *counting -= 1;
        if *counting == 0 {
            shared.board.store(None);
        }
    }
}
