//! What each command does.

pub(crate) mod call;
pub(crate) mod completions;
pub(crate) mod connect;
mod in_process;
mod progress;
mod source;
pub(crate) mod status;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod up;
