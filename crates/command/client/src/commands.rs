//! The commands that only need a daemon.

pub mod across;
pub mod attachments;
pub mod catalog;
pub mod channels;
pub mod clients;
pub mod connect;
pub mod daemon;
pub mod definitions;
pub mod env_bindings;
mod files;
pub mod grants;
mod manifest_servers;
pub mod mcp;
pub mod members;
pub mod policy;
pub mod runs;
pub mod secrets;
pub mod sessions;
pub mod shares;
pub mod status;
mod streams;
pub mod tokens;
pub mod traffic;
pub mod transfer;
pub mod users;
pub mod waiting;
pub mod workspaces;
