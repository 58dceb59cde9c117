//! The built-in server, which every run has without an attachment (X-M1). The gateway answers its
//! requests: the built-in server costs no process, no link and no task. A [`BuiltInServer`] defines
//! and runs its tools.

mod offered;
mod tools;

use narthex_upstream::ServerCapabilities;

pub use self::tools::{
    BuiltInAnswer, BuiltInCall, BuiltInResult, BuiltInServer, BuiltInTool, Lacking,
};
pub(crate) use self::{offered::Offered, tools::BuiltIn};

/// The capabilities that the built-in server declares.
pub(crate) const BUILT_IN: ServerCapabilities = ServerCapabilities {
    tools: true,
    prompts: false,
    resources: false,
    subscribe: false,
    completions: false,
    logging: false,
    tasks: false,
    list_changed: true,
};
