//! What an open file has to have done for what the kernel asks of it.

use bytes::Bytes;

use crate::waiting::{PendingFlush, PendingRead};

/// What has to be done when a descriptor is closed.
#[derive(Debug)]
pub(crate) enum Flushing {
    /// It is answered, now or later.
    Taken,
    /// These bytes are to be made a call of; the closing waits for it.
    Call(PendingFlush, Bytes),
    /// These bytes are no whole request. They stay, as another descriptor may bring the rest.
    Incomplete(PendingFlush, Bytes),
    /// Who wrote was interrupted before the end: nothing is to be called.
    Dropped(PendingFlush),
    /// More was written than a request may have.
    TooLarge(PendingFlush),
}

/// What comes of a write.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// What is to be made a call of at once.
    pub(crate) request: Option<Bytes>,
    /// Whether a result that nobody has read is gone.
    pub(crate) is_lost: bool,
}

/// Why something cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// A request has no more bytes than it may.
    TooLarge,
    /// The call of what was written before is under way.
    Busy,
}

/// What a read finds.
#[derive(Debug)]
pub(crate) enum Reading {
    /// It is answered, now or later.
    Taken,
    /// These bytes are to be made a call of, first; the read waits for it.
    Call(Bytes),
    /// Nothing was written here: it is to be looked for elsewhere. Others who read wait already.
    Nothing(PendingRead),
}
