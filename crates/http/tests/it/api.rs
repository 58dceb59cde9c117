//! The operators' API: rows, changes, verbs, tests, and what happens to servers as it happens.

mod access;
mod attachments;
mod audit;
pub(crate) mod built_in;
mod catalog;
mod changes;
mod children;
mod definitions;
mod env_bindings;
mod events;
mod golden;
mod grants;
mod isolation;
mod kin;
mod once;
mod openapi;
mod outbound;
mod policy;
mod reading;
mod secrets;
mod shares;
mod tenants;
mod tool_table;
mod transfer;
mod tricks;
pub(crate) mod world;
