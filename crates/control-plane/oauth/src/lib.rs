//! OAuth 2.1 as values: narthex as a client of authorization servers, as a protected resource, and
//! as an authorization server.
//!
//! State machines over values: this crate knows no database, no HTTP server and no HTTP client. The
//! caller sends their requests, passes them the answers and the time, and stores their values.

mod address;
pub mod challenge;
pub mod client;
pub mod jwt;
pub mod metadata;
pub mod pkce;
mod random;
pub mod scopes;
pub mod server;
mod token_hash;
pub mod urns;

pub use address::{AddressFault, Reach};
pub use token_hash::TokenHash;
