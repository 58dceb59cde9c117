//! The embeddable set of upstream connections: configuration, states, inventories, change events.
//!
//! A [`Registry`] connects every server of a configuration at once and keeps a [`Snapshot`] of
//! all of them. It has no doors, no store and no opinion on who may call what.

pub mod config;

mod connection;
mod registry;
mod snapshot;

pub use registry::{Notice, OpenError, Registry, RegistryOptions};
pub use snapshot::{ServerRow, Snapshot};
