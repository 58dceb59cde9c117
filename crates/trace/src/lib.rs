//! Tells whoever watches a run what it does, as it does it (R-M35): what was called, how much went
//! in and came out, how it ended and how long it took. Never what was in it.
//!
//! Whoever does something asks [`Tap::begin`], which is one atomic load while nobody watches.
//! Watchers have queues with a limit each: who is too slow loses operations and is told how many,
//! and holds up nobody.

mod line;
mod operation;
mod tally;
mod tap;
#[cfg(test)]
mod tests;
mod top;
mod watcher;

pub use line::{Line, Opened, Source};
pub use operation::{Call, FileOperation, Open, Operation, TOOL_ERROR, What, inside};
pub use tally::{Counted, Rates};
pub use tap::{Counting, QUEUE, Tap};
pub use top::{HEADER, Sort, Top, TopRun, TopServer};
pub use watcher::{Seen, Watcher};
