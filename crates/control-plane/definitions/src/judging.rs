//! Decides which definitions of servers wait for a human (S22 to S25): compares their content with
//! the pinned one, and their names with those of other servers.
//!
//! Takes lists and rows of the store and returns verdicts: asks neither runs nor a store. Looks at
//! many servers go in waves, and findings on a list are kept for as long as the list exists.
//!
//! A layer above the rest of the crate, which imports nothing of it.

mod by_list;
pub mod judge;
pub mod waves;

pub use by_list::ByList;
