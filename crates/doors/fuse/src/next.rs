//! The work that an open file needs before a request of the kernel can be answered.

use bytes::Bytes;

use crate::waiting::{PendingFlush, PendingRead};

/// The work to do when a descriptor is closed.
#[derive(Debug)]
pub(crate) enum Flushing {
    /// The handle answers the request itself, now or later.
    Taken,
    /// Calls the tool with these bytes; the closing waits for the call.
    Call(PendingFlush, Bytes),
    /// These bytes are an incomplete request. The handle stores them, as another descriptor may
    /// write the rest.
    Incomplete(PendingFlush, Bytes),
    /// The writer was interrupted before the end: no call is made.
    Dropped(PendingFlush),
    /// More was written than a request may have.
    TooLarge(PendingFlush),
}

/// The outcome of a write.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// The bytes to call at once.
    pub(crate) request: Option<Bytes>,
    /// True if a result that no reader has read is gone.
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

/// The outcome of a read.
#[derive(Debug)]
pub(crate) enum Reading {
    /// The handle answers the request itself, now or later.
    Taken,
    /// Calls the tool with these bytes first; the read waits for the call.
    Call(Bytes),
    /// No request was written here: the result is to be looked for elsewhere. Other readers already
    /// wait.
    Nothing(PendingRead),
}
