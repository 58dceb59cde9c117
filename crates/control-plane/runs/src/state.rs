//! The parts of [`Runs`](crate::Runs) that are in memory alone. They import neither each other nor
//! the code that uses them.

pub(crate) mod claims;
pub(crate) mod expiries;
pub(crate) mod failed_starts;
pub(crate) mod restarts;
pub(crate) mod resting;
pub(crate) mod watched;
