//! Decides which definitions of servers wait for a human (S22 to S25): compares their content with
//! the pinned one, and their names with those of other servers.
//!
//! Takes lists and rows of the store and returns verdicts; calls neither runs nor a store. Reviews
//! of many servers run in waves, and findings on a list are stored for as long as the list exists.
//!
//! A layer above the rest of the crate. Only [`reviews`](crate::reviews) imports it.

mod by_list;
pub(crate) mod judge;
pub(crate) mod waves;

pub(crate) use by_list::ByList;
