//! Stops copying before its end.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use crate::ShareError;

const GOES_ON: u8 = 0;
const STOPPED: u8 = 1;
const SETTLED: u8 = 2;

/// Stops copying. Clones are handles to the same value.
///
/// A copy is either stopped without a result, or settled, and then it runs to its end: never both,
/// in any order of the two calls.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicU8>);

impl Stop {
    /// Stops the copy. Returns `false` if files are already being moved into place: the copy ends
    /// soon, and the caller must wait for it.
    #[must_use]
    pub fn stop(&self) -> bool {
        self.leave(STOPPED)
    }

    /// Checks that the copy is not stopped.
    ///
    /// # Errors
    /// When it is stopped.
    pub fn check(&self) -> Result<(), ShareError> {
        match self.0.load(Ordering::Acquire) {
            STOPPED => Err(ShareError::Stopped),
            _ => Ok(()),
        }
    }

    /// Goes on to its end from here, unless it is stopped.
    pub(crate) fn settle(&self) -> Result<(), ShareError> {
        if self.leave(SETTLED) { Ok(()) } else { Err(ShareError::Stopped) }
    }

    fn leave(&self, to: u8) -> bool {
        match self.0.compare_exchange(GOES_ON, to, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(now) => now == to,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_stop_and_settle_decides() {
        let stopped = Stop::default();
        assert!(stopped.check().is_ok());
        assert!(stopped.clone().stop() && stopped.stop());
        assert!(matches!(stopped.check(), Err(ShareError::Stopped)));
        assert!(matches!(stopped.settle(), Err(ShareError::Stopped)));
        let settled = Stop::default();
        settled.settle().unwrap();
        assert!(!settled.stop());
        assert!(settled.check().is_ok());
    }
}
