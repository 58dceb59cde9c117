//! Configuration files of MCP clients: read, edited without a change elsewhere, and undone.
//!
//! Other people and programs write these files as well. So an edit touches the bytes of one member
//! only, and is refused where this cannot be done. [`edit`] and [`mod@file`] know no client.
//! Formats of clients are data: [`clients`] has their rows, and [`servers`] reads entries by them.
//! [`catalog`] converts what was read to servers of the catalog.

pub mod catalog;
pub mod clients;
pub mod connect;
pub mod edit;
pub mod file;
pub mod inventory;
pub mod journal;
mod moment;
pub mod plan;
pub mod rewrite;
pub mod servers;
