//! The kinds of objects in the catalog of a workspace.

use std::fmt;

/// A kind of object of the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CatalogKind {
    /// A server: how it is reached, and what configuration it takes.
    Server,
    /// A named bundle of attachments, which agents include.
    Capability,
    /// An agent, with attachments of its own.
    Agent,
}

impl CatalogKind {
    /// All of them; each refers to those before it alone.
    pub const ALL: [Self; 3] = crate::every![Server, Capability, Agent];
}

impl fmt::Display for CatalogKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "server",
            Self::Capability => "capability",
            Self::Agent => "agent",
        })
    }
}
