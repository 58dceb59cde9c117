//! Copying of files: few at a time, and within a time limit.

use std::{sync::Arc, time::Duration};

use narthex_control::ControlError;
use narthex_shares::{ShareError, Stop};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep_until, timeout_at},
};

use super::SharingError;
use crate::RunError;

/// Number of copies at a time: disks do not get faster by more.
const COPYING_MAX: usize = 2;
/// Longest time that a caller waits for a copy, including the wait for its begin.
const WITHIN: Duration = Duration::from_secs(90);

/// The limited places for copies at the same time.
#[derive(Debug)]
pub(crate) struct Copying(Arc<Semaphore>);

/// Stops the copying for a caller that disconnects.
struct Waiting(Stop);

impl Default for Copying {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(COPYING_MAX)))
    }
}

impl Copying {
    /// Runs work that waits for the disk, once a place is free. The work keeps the place until it
    /// has ended, also if the caller no longer waits.
    ///
    /// # Errors
    /// When the work takes too long: then it has no effect. Also the error of `work`.
    pub(crate) async fn copied<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Stop) -> Result<T, SharingError> + Send + 'static,
    ) -> Result<T, RunError> {
        let deadline = Instant::now() + WITHIN;
        let late = || RunError::from(SharingError::Files(ShareError::Stopped));
        let turn = timeout_at(deadline, self.0.clone().acquire_owned()).await;
        let turn = turn.map_err(|_elapsed| late())?;
        let waiting = Waiting(Stop::default());
        let stop = waiting.0.clone();
        let mut working = tokio::task::spawn_blocking(move || {
            let done = work(&stop);
            drop(turn);
            done
        });
        let done = tokio::select! {
            biased;
            done = &mut working => done,
            () = sleep_until(deadline) => match waiting.0.stop() {
                // The caller does not wait for a disk that does not answer any more.
                true => return Err(late()),
                false => working.await,
            },
        };
        Ok(done.map_err(ControlError::Bug)??)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.0.stop() {
            tracing::debug!("copying continues, although its caller has gone");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::{task::yield_now, time::advance};

    use super::*;

    /// Work that waits until it is released, and then reports whether it was stopped.
    async fn stuck(
        copying: &Copying,
        released: mpsc::Receiver<()>,
        told: mpsc::SyncSender<bool>,
    ) -> Result<(), RunError> {
        let work = move |stop: &Stop| {
            released.recv().unwrap();
            told.send(stop.check().is_err()).unwrap();
            Ok(())
        };
        copying.copied(work).await
    }

    /// X-M3: work that takes too long ends for its caller, has no effect, and keeps its turn until
    /// it has really ended; no caller waits for a turn for longer than that either.
    #[tokio::test(start_paused = true)]
    async fn x_m3_copying_that_takes_too_long_fails_and_keeps_its_turn_until_its_end() {
        let copying = Copying::default();
        let (told, tells) = mpsc::sync_channel(2);
        let (first, released) = mpsc::sync_channel(2);
        let mut waiting = Box::pin(stuck(&copying, released, told.clone()));
        tokio::select! {
            biased;
            done = &mut waiting => panic!("{done:?}"),
            () = yield_now() => {}
        }
        advance(WITHIN).await;
        assert_eq!(waiting.await.unwrap_err().code(), "copy_timed_out");
        // A caller that disconnects stops its work.
        let (second, released) = mpsc::sync_channel(2);
        let mut leaving = Box::pin(stuck(&copying, released, told));
        tokio::select! {
            biased;
            done = &mut leaving => panic!("{done:?}"),
            () = yield_now() => {}
        }
        drop(leaving);
        assert_eq!(copying.0.available_permits(), 0, "both are at it still");
        let mut third = Box::pin(copying.copied(|_stop| Ok(())));
        tokio::select! {
            biased;
            done = &mut third => panic!("{done:?}"),
            () = yield_now() => {}
        }
        advance(WITHIN).await;
        assert_eq!(third.await.unwrap_err().code(), "copy_timed_out");
        for one in [first, second] {
            one.send(()).unwrap();
        }
        assert!(tells.recv().unwrap() && tells.recv().unwrap(), "they were stopped");
        copying.copied(|_stop| Ok(())).await.unwrap();
    }
}
