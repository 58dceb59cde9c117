//! Moves the audit's records from the disk into the store, in order and once, and counts those that
//! have not been moved. Chains get a mark of the vault there, so that changes are noticed.

mod shipper;
mod spooled;
#[cfg(test)]
mod tests;

pub use shipper::{ShipError, Shipper, row_of, vouched, vouched_text, vouches};
pub use spooled::Spooled;
