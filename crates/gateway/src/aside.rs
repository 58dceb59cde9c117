//! Work that takes long, away from the threads on which calls go.

use bytes::Bytes;
use narthex_wire::{Message, MessageError};
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::{Gateway, RunView};

/// From how many bytes on a message is read aside: a shorter one takes less time than the change of
/// threads could cost others.
const LARGE: usize = 1024 * 1024;

/// Whether a message is so large that reading it delays others: [`Gateway::parse_aside`] and
/// [`Gateway::parse_batch_aside`] are for such.
#[must_use]
pub fn is_large(message: &Bytes) -> bool {
    message.len() >= LARGE
}

impl Gateway {
    /// Reads a message of a run on a thread that may block. A run has one at a time: further ones
    /// wait.
    ///
    /// # Errors
    /// Those of [`Message::parse`].
    pub async fn parse_aside(&self, run: &RunView, text: Bytes) -> Result<Message, MessageError> {
        let limits = *self.limits();
        aside(run, move || Message::parse(text, &limits)).await
    }

    /// The same of a batch with at most so many messages.
    ///
    /// # Errors
    /// Those of [`Message::parse_batch`].
    pub async fn parse_batch_aside(
        &self,
        run: &RunView,
        text: Bytes,
        most: usize,
    ) -> Result<Vec<Message>, MessageError> {
        let limits = *self.limits();
        aside(run, move || Message::parse_batch(&text, &limits, most)).await
    }
}

async fn aside<T: Send + 'static>(run: &RunView, work: impl FnOnce() -> T + Send + 'static) -> T {
    let turn = run.aside.clone().acquire_owned().await;
    let done = spawn_blocking(move || {
        let done = work();
        // Also where the caller has gone by now.
        drop(turn);
        done
    });
    match done.await.map_err(tokio::task::JoinError::try_into_panic) {
        Ok(done) => done,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The runtime ends, and the caller with it.
        Err(Err(_ended)) => std::future::pending().await,
    }
}

/// The turns of one run.
pub(crate) fn turns() -> std::sync::Arc<Semaphore> {
    std::sync::Arc::new(Semaphore::new(1))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use narthex_model::RunToken;
    use narthex_policy::RunPolicy;

    use super::*;

    fn run() -> RunView {
        RunView::new(&RunToken::generate().unwrap(), RunPolicy::default())
    }

    /// S31: while a run has a large message read, other runs and other work of the thread go on,
    /// and a second one of that run waits.
    #[tokio::test]
    async fn s31_one_large_message_of_a_run_is_read_at_a_time() {
        let (one, other) = (run(), run());
        let (release, released) = sync_channel::<()>(0);
        let (began, begun) = tokio::sync::oneshot::channel();
        let first = aside(&one, move || {
            began.send(()).unwrap();
            released.recv().unwrap();
            1
        });
        let mut first = std::pin::pin!(first);
        let mut second = std::pin::pin!(aside(&one, || 2));
        tokio::select! {
            _ = &mut first => panic!("it is not released yet"),
            started = begun => started.unwrap(),
        }
        assert_eq!(aside(&other, || 3).await, 3);
        tokio::select! {
            biased;
            _ = &mut second => panic!("it comes after the first"),
            () = tokio::task::yield_now() => {}
        }
        assert_eq!(one.aside.available_permits(), 0);
        release.send(()).unwrap();
        assert_eq!(first.await, 1);
        assert_eq!(second.await, 2);
    }
}
