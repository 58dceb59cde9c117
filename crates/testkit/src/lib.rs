//! Test support shared by the crates: the fixture MCP server and the header-adding forwarder.
//!
//! Nothing here depends on another narthex crate, so that what is checked with it is checked by an
//! independent reading of the protocol.

pub mod fixture;
