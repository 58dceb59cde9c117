//! Keys of an entry that other programs have for the tools of a server.

/// Other programs' keys for the tools that they show.
pub(super) const SHOWN: [&str; 3] = ["includeTools", "enabledTools", "enabled_tools"];

/// Other programs' keys for the tools that they hide.
pub(super) const HIDDEN: [&str; 3] = ["excludeTools", "disabledTools", "disabled_tools"];
