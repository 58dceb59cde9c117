//! Reports the end of a run to its open calls.

use std::sync::{
    OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use tokio_util::sync::CancellationToken;

/// Number of threads whose calls share no lock.
const PARTS: usize = 8;

/// Notifies open calls of modern clients that their run has ended: one token for the calls of each
/// thread, since waiting on a token takes a lock of it.
#[derive(Debug, Default)]
pub(crate) struct CallEnds(OnceLock<[CancellationToken; PARTS]>);

impl CallEnds {
    /// The token for calls of this thread, which is cancelled with `ended`.
    pub(crate) fn here(&self, ended: &CancellationToken) -> &CancellationToken {
        let parts = self.0.get_or_init(|| std::array::from_fn(|_| ended.child_token()));
        &parts[part()]
    }
}

/// The part that the calls of this thread use.
fn part() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PART: usize = NEXT.fetch_add(1, Ordering::Relaxed) % PARTS;
    }
    PART.with(|part| *part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E7: the end of a run ends the calls of all threads, and later calls, too.
    #[test]
    fn e7_the_end_of_a_run_reaches_all_threads() {
        let (ended, ends) = (CancellationToken::new(), CallEnds::default());
        let tokens = || {
            let here =
                || std::thread::scope(|s| s.spawn(|| ends.here(&ended).clone()).join().unwrap());
            (0..=PARTS).map(|_| here()).collect::<Vec<_>>()
        };
        let before = tokens();
        assert!(before.iter().all(|token| !token.is_cancelled()));
        ended.cancel();
        assert!(before.iter().chain(&tokens()).all(CancellationToken::is_cancelled));
        assert!(CallEnds::default().here(&ended).is_cancelled());
    }
}
