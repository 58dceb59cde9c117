//! Shapes of profiles of the live configuration.

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    ids::{Alias, RunId},
    page::Listed,
};

/// A profile: a named set of servers and tools that clients see at an address of its own.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Profile {
    /// Its name in the settings file, which may be invalid.
    pub(crate) name: String,
    /// The address of its endpoint, below that of the daemon. Absent if the profile cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    /// Faults of its present content. A profile that was usable before stays in use as it was.
    pub(crate) faults: Vec<ProfileFault>,
    /// The servers of which all is visible.
    pub(crate) servers: Vec<Alias>,
    /// The visible tools of other servers: SERVER.TOOL, where TOOL is a pattern.
    pub(crate) tools: Vec<String>,
    /// The tools with another name or description.
    pub(crate) overrides: Vec<ProfileOverride>,
    /// The run under which the audit has the calls of its clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run_id: Option<RunId>,
    /// Number of open sessions of legacy clients.
    pub(crate) sessions: usize,
    /// The tools of servers that clients see now.
    pub(crate) visible: Vec<ProfileTool>,
}

impl Listed for Profile {
    const PAGE: &str = "ProfilePage";
    const ABOUT: &str = "All profiles of the user's settings file.";
}

/// The reason why the content of a profile is refused.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProfileFault {
    /// The place in the settings file.
    pub(crate) path: String,
    /// The fault and its remedy.
    pub(crate) message: String,
}

/// The words that a profile gives to a tool.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProfileOverride {
    pub(crate) server: Alias,
    /// The server's own name of the tool.
    pub(crate) tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
}

/// A tool as clients of a profile see it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProfileTool {
    /// The name that clients call.
    pub(crate) name: String,
    pub(crate) server: Alias,
    /// The server's own name of the tool, which policy, grants and the audit have.
    pub(crate) tool: String,
}
