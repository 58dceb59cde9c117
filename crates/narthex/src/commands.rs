//! What each command does.

pub(crate) mod attachments;
pub(crate) mod audit;
pub(crate) mod call;
pub(crate) mod catalog;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod connect;
pub(crate) mod daemon;
pub(crate) mod env_bindings;
mod in_process;
pub(crate) mod init;
pub(crate) mod mcp;
pub(crate) mod members;
mod progress;
pub(crate) mod runs;
pub(crate) mod secrets;
mod source;
pub(crate) mod status;
pub(crate) mod tokens;
pub(crate) mod tools;
pub(crate) mod traffic;
pub(crate) mod transfer;
pub(crate) mod trust;
pub(crate) mod up;
pub(crate) mod users;
mod waiting;
pub(crate) mod workspaces;
