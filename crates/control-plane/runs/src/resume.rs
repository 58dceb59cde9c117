//! Runs and sessions that continue: runs of an earlier process after a restart, sessions that an
//! operator suspends and resumes, and sessions that resume by themselves.

pub(crate) mod automatic;
pub(crate) mod restart;
pub(crate) mod suspension;
