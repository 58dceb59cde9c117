//! Moves what the audit recorded from the disk into the store, in order and once, and says how much
//! of it has not been moved. Chains get a mark of the vault there, so that changes are seen.

mod shipper;
mod spooled;
#[cfg(test)]
mod tests;

pub use shipper::{ShipError, Shipper, row_of, vouched, vouched_text, vouches};
pub use spooled::Spooled;
