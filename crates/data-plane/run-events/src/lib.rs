//! Reports operations of a run to its watchers, as they happen (R-M35): the operation, its bytes in
//! and out, its end and its duration. Never its contents.
//!
//! A caller of an operation asks [`Tap::begin`], which is one atomic load while no watcher exists.
//! Each watcher has a queue with a limit: a slow watcher loses operations, gets their number, and
//! blocks no caller.

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
