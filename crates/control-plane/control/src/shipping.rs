//! Moves the audit's records from the disk into the store, in order and each once, and counts the
//! remaining ones. The vault marks the stored chains, so that changes by others are noticed.
//!
//! A separate layer: imports no other module of this crate.

mod shipper;
mod spooled;
#[cfg(test)]
mod tests;

pub(crate) use shipper::{ShipError, Shipper, row_of, vouched, vouched_text, vouches};
pub(crate) use spooled::Spooled;
