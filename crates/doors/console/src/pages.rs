//! The pages: a struct with a template of the same name for each, and for each row that is live.
//!
//! Pages import no other page, except the samples of [`kitchen_sink`].

pub mod audit;
pub mod fault;
pub mod home;
pub mod kitchen_sink;
pub mod onward;
pub mod play;
pub mod policy;
pub mod search;
pub mod servers;
pub mod tools;

#[cfg(test)]
mod tests;
