//! The commands that need a part of the server: its libraries, its files or an app.

pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod completions;
mod configured;
mod followed;
pub(crate) mod import;
mod in_process;
pub(crate) mod init;
pub(crate) mod mount;
mod packages;
pub(crate) mod policy;
mod progress;
pub(crate) mod restore;
pub(crate) mod service_port;
pub(crate) mod setup;
mod source;
pub(crate) mod strace;
pub(crate) mod tools;
pub(crate) mod top;
pub(crate) mod trust;
pub(crate) mod uninstall;
pub(crate) mod up;
pub(crate) mod vfs;

pub(crate) use configured::configured;
use narthex_client::commands::{across, catalog, waiting};
