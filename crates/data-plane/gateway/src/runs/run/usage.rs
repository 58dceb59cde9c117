//! The use of a run: an unused run has no task, no view and no list of its own. Also the time of
//! the run's last act; open streams are no acts.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use super::RunView;

/// The users of a run, and the flag of a task that watches its view.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    is_watched: AtomicBool,
    /// True if the run was used since the watching task last checked.
    was_used: AtomicBool,
    /// Sessions and streams.
    held: AtomicUsize,
    /// Calls that are open.
    open: AtomicUsize,
    /// Beginning of the last call, in milliseconds since 1970; 0 before the first.
    acted_at: AtomicU64,
    /// Held while the watching begins or ends.
    turn: Mutex<()>,
}

impl Usage {
    /// Notes that the run is used. `false` if no task watches it yet. Takes no lock.
    pub(crate) fn note(&self) -> bool {
        // `SeqCst` orders this with `rest`: `rest` sees this use, or this call sees the end of the
        // watching.
        if !self.was_used.load(Ordering::SeqCst) {
            self.was_used.store(true, Ordering::SeqCst);
        }
        self.is_watched()
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::SeqCst)
    }

    /// Starts the watching, unless a task watches already.
    pub(crate) fn watch(&self, begin: impl FnOnce()) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_watched() {
            begin();
            self.is_watched.store(true, Ordering::SeqCst);
        }
    }

    /// Ends the watching, unless the run is used or was used since the last call.
    pub(crate) fn rest(&self, end: impl FnOnce()) -> bool {
        let is_used = |was_used| was_used || self.held.load(Ordering::SeqCst) > 0;
        if is_used(self.was_used.swap(false, Ordering::SeqCst)) {
            return false;
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_watched.store(false, Ordering::SeqCst);
        // A user that came in between may have seen the run as watched.
        if is_used(self.was_used.load(Ordering::SeqCst)) {
            self.is_watched.store(true, Ordering::SeqCst);
            return false;
        }
        end();
        true
    }
}

impl Usage {
    /// The time of the run's last act: now, if one of its calls is open.
    pub(crate) fn last_act(&self, now: SystemTime) -> Option<SystemTime> {
        if self.open.load(Ordering::Relaxed) > 0 {
            return Some(now);
        }
        let at = self.acted_at.load(Ordering::Relaxed);
        (at > 0).then(|| SystemTime::UNIX_EPOCH + Duration::from_millis(at))
    }
}

impl RunView {
    /// Number of the run's open calls.
    #[must_use]
    pub fn open_calls(&self) -> usize {
        self.usage.open.load(Ordering::Relaxed)
    }
}

/// A call of a run, which is open until this value is dropped.
#[derive(Debug)]
pub(crate) struct Act(Arc<RunView>);

impl Act {
    pub(crate) fn of(run: &Arc<RunView>) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let at = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        run.usage.acted_at.store(at, Ordering::Relaxed);
        run.usage.open.fetch_add(1, Ordering::Relaxed);
        Self(run.clone())
    }
}

impl Drop for Act {
    fn drop(&mut self) {
        self.0.usage.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A run that is used until this value is dropped.
#[derive(Debug)]
pub(crate) struct Held(Arc<RunView>);

impl Held {
    pub(crate) fn of(run: &Arc<RunView>) -> Self {
        run.usage.held.fetch_add(1, Ordering::SeqCst);
        Self(run.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.usage.held.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use narthex_policy::RunPolicy;

    use super::*;
    use crate::RunToken;

    /// X-E89: a run acts while a call of it is open; sessions and streams alone are no act.
    #[test]
    fn x_e89_a_run_acts_while_a_call_is_open_and_not_by_an_open_stream() {
        let token = RunToken::generate().unwrap();
        let run = Arc::new(RunView::new(&token, RunPolicy::default()));
        let later = SystemTime::now() + Duration::from_secs(3600);
        let held = Held::of(&run);
        run.usage.note();
        assert_eq!(run.last_act(later), None);
        let before = SystemTime::now() - Duration::from_millis(1);
        let acts = [Act::of(&run), Act::of(&run)];
        assert_eq!(run.last_act(later), Some(later));
        drop(acts);
        let last = run.last_act(later).unwrap();
        assert!(before <= last && last <= SystemTime::now(), "{last:?}");
        drop(held);
    }
}
