//! Registries of MCP servers: search them, read their descriptions of servers, and turn one into an
//! entry of narthex's files.
//!
//! The API is the MCP registry API v0.1, of the official registry or of any other. `document` has
//! the descriptions (`server.json`), `client` reads them, `cache` stores them for work offline, and
//! `ways`, `inputs` and `entry` make the entry. `bundle` unpacks bundles. No text of a registry is
//! trusted: names and versions have checked forms, and a placeholder in such a text stays text.

pub mod address;
pub mod bundle;
pub mod cache;
mod catalog;
pub mod client;
pub mod document;
pub mod entry;
pub mod inputs;
pub mod ways;

#[cfg(test)]
mod attacks;
mod compose;
mod runtime;
mod slot;
#[cfg(test)]
mod testing;
mod unreached;
mod words;
