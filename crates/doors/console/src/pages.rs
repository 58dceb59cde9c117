//! The pages: a struct with a template of the same name for each, and for each row that is live.
//!
//! Pages import no other page, except the samples of [`kitchen_sink`].

pub mod agents;
pub mod approval;
pub mod approvals;
pub mod audit;
pub mod catalog;
pub mod clients;
pub mod connect;
pub mod fault;
pub mod grants;
pub mod home;
pub mod kitchen_sink;
pub mod me;
pub mod onward;
pub mod operator;
pub mod play;
pub mod policy;
pub mod registry;
pub mod runs;
pub mod search;
pub mod secrets;
pub mod server;
pub mod servers;
pub mod settings;
pub mod tools;

#[cfg(test)]
mod tests;
