//! Which definitions of servers wait for a human (S22 to S25): what they say is held against what
//! was pinned, and their names against those of others.
//!
//! Takes lists and gives what becomes of them: knows neither runs nor a store. Looks at many
//! servers go in waves, and what was found of a list is kept for as long as the list is.

mod by_list;
pub mod judge;
pub mod waves;

pub use by_list::ByList;
