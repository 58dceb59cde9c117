//! The operators' API: rows, changes, verbs, tests, and what happens to servers as it happens.

mod access;
mod catalog;
mod changes;
mod golden;
mod isolation;
mod reading;
mod secrets;
mod tenants;
pub(crate) mod world;
