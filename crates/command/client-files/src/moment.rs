//! Moments between two writes, at which a process may end, and changes that a system may report as
//! failed. Tests end their process at each moment, and have such changes reported.

/// A change that a file system may report as failed although the file has its new content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// A file gets the name of another.
    Rename,
    /// A folder is made to last.
    Sync,
}

/// Marks a moment. Does nothing outside of tests.
#[cfg(not(test))]
#[inline]
pub(crate) fn passed() {}

/// Passes the outcome of a change on. Does nothing outside of tests.
#[cfg(not(test))]
#[inline]
pub(crate) fn outcome(_change: Change, made: std::io::Result<()>) -> std::io::Result<()> {
    made
}

#[cfg(test)]
pub(crate) use tests::{outcome, passed};

#[cfg(test)]
pub(crate) mod tests {
    //! A count of moments, at whose end the process is killed, and the change that fails.

    use std::cell::Cell;
    use std::io;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    use super::Change;

    /// Number of moments that this process passed.
    static PASSED: AtomicUsize = AtomicUsize::new(0);
    /// The moment at which the process ends.
    static LAST: AtomicUsize = AtomicUsize::new(usize::MAX);

    pub(crate) fn passed() {
        if PASSED.fetch_add(1, Ordering::SeqCst) + 1 == LAST.load(Ordering::SeqCst) {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
    }

    thread_local! {
        /// The change that is reported as failed in this thread.
        static FAILING: Cell<Option<Change>> = const { Cell::new(None) };
    }

    pub(crate) fn outcome(change: Change, made: io::Result<()>) -> io::Result<()> {
        made.and_then(|()| match FAILING.get() == Some(change) {
            true => Err(io::ErrorKind::InvalidInput.into()),
            false => Ok(()),
        })
    }

    /// Has changes of this kind reported as failed in this thread, from now on.
    pub(crate) fn report_as_failed(change: Option<Change>) {
        FAILING.set(change);
    }

    /// Number of moments until now.
    pub(crate) fn passed_so_far() -> usize {
        PASSED.load(Ordering::SeqCst)
    }

    /// Has the process end at this moment, counted from 1.
    pub(crate) fn end_at(moment: usize) {
        LAST.store(moment, Ordering::SeqCst);
    }
}
