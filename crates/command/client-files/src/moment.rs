//! Moments between two writes, at which a process may end. Tests end theirs at each of them.

/// Marks a moment. Does nothing outside of tests.
#[cfg(not(test))]
#[inline]
pub(crate) fn passed() {}

#[cfg(test)]
pub(crate) use tests::passed;

#[cfg(test)]
pub(crate) mod tests {
    //! A count of moments, at whose end the process is killed.

    use std::sync::atomic::{AtomicUsize, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    /// Number of moments that this process passed.
    static PASSED: AtomicUsize = AtomicUsize::new(0);
    /// The moment at which the process ends.
    static LAST: AtomicUsize = AtomicUsize::new(usize::MAX);

    pub(crate) fn passed() {
        if PASSED.fetch_add(1, Ordering::SeqCst) + 1 == LAST.load(Ordering::SeqCst) {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
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
