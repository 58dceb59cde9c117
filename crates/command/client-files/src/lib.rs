//! Configuration files of MCP clients: read, edited without a change elsewhere, and undone.
//!
//! Other people and programs write these files as well. So an edit touches the bytes of one member
//! only, and is refused where this cannot be done. No part of this crate knows a client's format
//! of servers: callers give paths, names and values.

pub mod edit;
pub mod file;
