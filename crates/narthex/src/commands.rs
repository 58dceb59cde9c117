//! What each command does.

pub(crate) mod call;
mod progress;
mod source;
pub(crate) mod up;
