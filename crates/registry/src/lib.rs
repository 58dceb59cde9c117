//! The embeddable set of upstream connections: configuration, states, inventories, change events.

pub mod config;
