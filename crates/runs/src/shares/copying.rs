//! Copying files: few at a time, and not for ever.

use std::{sync::Arc, time::Duration};

use narthex_control::ControlError;
use narthex_shares::{ShareError, Stop};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep_until, timeout_at},
};

use super::SharingError;
use crate::RunError;

/// How many are copied at a time: disks do not get faster by more.
const COPYING_MAX: usize = 2;
/// How long whoever wants something copied waits for it, with the time until it begins.
const WITHIN: Duration = Duration::from_secs(90);

/// Who may copy.
#[derive(Debug)]
pub(crate) struct Copying(Arc<Semaphore>);

/// Stops what is copied for somebody who goes away.
struct Waiting(Stop);

impl Default for Copying {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(COPYING_MAX)))
    }
}

impl Copying {
    /// Does what waits for the disk when it is its turn, and keeps the turn until it has ended, also
    /// if nobody waits any more.
    ///
    /// # Errors
    /// When it takes too long: nothing comes of it then. And what `work` says.
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
                // A disk that answers no more is not waited for.
                true => return Err(late()),
                false => working.await,
            },
        };
        Ok(done.map_err(ControlError::Bug)??)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // What is put in place already goes on to its end.
        self.0.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn code(done: Result<(), RunError>) -> &'static str {
        done.unwrap_err().code()
    }

    /// X-M3: what takes too long ends for whoever waits, comes to nothing, and keeps its turn until
    /// it has really ended; whoever waits for a turn waits no longer than that either.
    #[tokio::test(start_paused = true)]
    async fn x_m3_copying_ends_in_time() {
        let copying = Copying::default();
        let mut stuck = Vec::new();
        for _ in 0..COPYING_MAX {
            let (release, released) = mpsc::channel::<()>();
            let (told, mut tells) = tokio::sync::mpsc::unbounded_channel();
            let done = copying.copied(move |stop| {
                released.recv().unwrap();
                told.send(stop.stop()).unwrap();
                Ok(())
            });
            // A blocking task holds the paused clock, so that time is moved by hand.
            let done = tokio::select! {
                done = done => done,
                () = tokio::time::advance(WITHIN + Duration::from_secs(1)) => panic!("too early"),
            };
            stuck.push((release, tells.try_recv().is_err()));
            assert_eq!(code(done), "copy_timed_out");
        }
    }
}
