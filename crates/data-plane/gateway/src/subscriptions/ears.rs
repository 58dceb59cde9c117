//! Delivers messages that name no call, but belong to the only open call of their link: log
//! messages on a legacy HTTP server's own stream, for the modern call that names a level (E171),
//! and questions of a program, for a client without a stream of its own.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, Weak,
    atomic::{AtomicU64, Ordering},
};

use narthex_upstream::{Frame, Link};
use tokio::sync::mpsc;

/// Number of messages that wait for one call.
const QUEUE: usize = 64;

/// The open calls that get messages of their servers from outside of the calls' own streams.
#[derive(Debug, Default)]
pub(crate) struct Ears {
    open: Mutex<Vec<Listed>>,
    next: AtomicU64,
}

#[derive(Debug)]
struct Listed {
    number: u64,
    link: Weak<Link>,
    sender: mpsc::Sender<Frame>,
}

/// A call's registration in [`Ears`], until it is dropped.
#[derive(Debug)]
pub(crate) struct Ear {
    ears: Arc<Ears>,
    number: u64,
    heard: mpsc::Receiver<Frame>,
}

impl Ears {
    fn open(&self) -> MutexGuard<'_, Vec<Listed>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if no call gets such messages.
    pub(super) fn is_empty(&self) -> bool {
        self.open().is_empty()
    }

    /// A place for a call on a link.
    pub(crate) fn listen(self: &Arc<Self>, link: &Arc<Link>) -> Ear {
        let (sender, heard) = mpsc::channel(QUEUE);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open().push(Listed { number, link: Arc::downgrade(link), sender });
        Ear { ears: self.clone(), number, heard }
    }

    /// Sends a message to the only open call of a link. `false` if there is no single call, or it
    /// does not read.
    pub(crate) fn tell(&self, link: &Arc<Link>, frame: impl FnOnce() -> Frame) -> bool {
        let open = self.open();
        let mut its = open.iter().filter(|one| std::ptr::eq(one.link.as_ptr(), Arc::as_ptr(link)));
        // A second open call would be a second use of the link.
        let alone = its.next().filter(|_| link.has_one_use());
        alone.is_some_and(|one| one.sender.try_send(frame()).is_ok())
    }
}

impl Ear {
    /// The next message; waits for ever after the last one. Safe to drop and call again.
    pub(crate) async fn heard(&mut self) -> Frame {
        match self.heard.recv().await {
            Some(frame) => frame,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.ears.open().retain(|one| one.number != self.number);
    }
}
