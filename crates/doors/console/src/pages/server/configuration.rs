//! The configuration of a server as it counts now, each value with its origin. No secret is in it.

use askama::Template;

use super::ServerTabs;
use crate::{Frame, filters, parts::Words};

/// The page.
#[derive(Debug, Template)]
#[template(path = "server_configuration.html")]
pub struct ServerConfigurationPage {
    /// The frame.
    pub frame: Frame,
    /// The links to the pages of the server.
    pub tabs: ServerTabs,
    /// The place at which the entry is changed, in a sentence.
    pub place: Words,
    /// A command that changes the entry, or shows its faults.
    pub command: Option<String>,
    /// The settings.
    pub settings: Vec<Setting>,
    /// Entries of the same name that do not count.
    pub others: Vec<Words>,
    /// The reason why the entry cannot be used.
    pub fault: Option<Words>,
}

/// A setting.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The key of the entry.
    pub key: Words,
    /// The value in words. Secrets are named alone.
    pub value: Words,
    /// The origin of the value.
    pub origin: Words,
}
