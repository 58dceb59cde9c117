//! Runs long work on threads that may block, so that the threads of calls stay free.

use std::sync::Arc;

use bytes::Bytes;
use tokio::{
    sync::Semaphore,
    task::{JoinError, JoinHandle, spawn_blocking},
};

/// Number of bytes from which on a message is read on another thread. A change of threads could
/// delay other calls by more time than reading a shorter message takes.
pub(crate) const LARGE: usize = 1024 * 1024;

/// The most messages in a batch of a server (revision 2025-03-26).
pub(crate) const BATCH_MAX: usize = 100;

/// True if reading a message of this size delays other calls: read the message with [`Aside`].
#[must_use]
pub fn is_large(message: &Bytes) -> bool {
    message.len() >= LARGE
}

/// Serializes the long work of one run, or of one server: one piece of work runs at a time, and
/// further pieces wait.
#[derive(Debug, Clone)]
pub struct Aside(Arc<Semaphore>);

impl Default for Aside {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl Aside {
    /// Runs work on a thread that may block, once all earlier work is done. A future that is
    /// dropped before the work starts has done nothing. Work that has started runs to its end.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        done(self.begin(work).await).await
    }

    /// Starts work once all earlier work is done.
    pub(crate) async fn begin<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        // The semaphore is never closed.
        let turn = Arc::clone(&self.0).acquire_owned().await;
        spawn_blocking(move || {
            let done = work();
            // The turn ends here, even if the caller has stopped waiting.
            drop(turn);
            done
        })
    }

    /// True if work is running.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.0.available_permits() == 0
    }
}

/// The result of work that has started. A caller may drop the future and call again until the
/// result has arrived.
pub(crate) async fn done<T>(working: impl Future<Output = Result<T, JoinError>>) -> T {
    match working.await.map_err(JoinError::try_into_panic) {
        Ok(done) => done,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The runtime ends, and the caller with it.
        Err(Err(_ended)) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    /// S31: while a large message is read, other readers and other tasks of the thread continue. A
    /// second piece of the same message waits for its turn.
    #[tokio::test]
    async fn s31_pieces_of_one_message_are_read_one_at_a_time() {
        let (one, other) = (Aside::default(), Aside::default());
        let (release, released) = sync_channel::<()>(0);
        let (began, begun) = tokio::sync::oneshot::channel();
        let first = one.run(move || {
            began.send(()).unwrap();
            released.recv().unwrap();
            1
        });
        let mut first = std::pin::pin!(first);
        let mut second = std::pin::pin!(one.run(|| 2));
        tokio::select! {
            _ = &mut first => panic!("it is not released yet"),
            started = begun => started.unwrap(),
        }
        assert_eq!(other.run(|| 3).await, 3);
        tokio::select! {
            biased;
            _ = &mut second => panic!("it comes after the first"),
            () = tokio::task::yield_now() => {}
        }
        assert!(one.is_busy() && !other.is_busy());
        release.send(()).unwrap();
        assert_eq!(first.await, 1);
        assert_eq!(second.await, 2);
    }
}
