//! The kinds of principals, and their roles in a workspace.

use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};

/// The kind of an actor other than a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrincipalKind {
    /// A person.
    Human,
    /// A program with tokens of its own, which belongs to one workspace.
    Service,
    /// An MCP client that is registered in one workspace, and acts for a run of it.
    Client,
}

impl PrincipalKind {
    /// The word in tables and documents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Service => "service",
            Self::Client => "client",
        }
    }

    /// Reads the word; `None` if it is none.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Human, Self::Service, Self::Client].into_iter().find(|kind| kind.as_str() == word)
    }
}

impl fmt::Display for PrincipalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The origin that an MCP client may declare for things that it writes (D18).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientOrigin {
    /// An agent produced the client.
    AgentProduced,
    /// The client was imported from elsewhere.
    Imported,
}

impl ClientOrigin {
    /// All of them.
    pub const ALL: [Self; 2] = crate::every![AgentProduced, Imported];

    /// The word in tables and documents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AgentProduced => "agent-produced",
            Self::Imported => "imported",
        }
    }

    /// Reads the word; `None` if it is none.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|origin| origin.as_str() == word)
    }
}

/// The permissions of a principal in one workspace. A principal with several roles has the
/// permissions of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// All of the workspace but the values that a run is resolved to.
    Admin,
    /// Capabilities and agents; of servers and secrets what attaching them takes.
    Author,
    /// Runs: begins, reads and ends them. Alone gets what a run is resolved to.
    Runner,
    /// Reads what happened and who may what; changes nothing.
    Auditor,
}

/// The roles of a principal in one workspace.
pub type Roles = BTreeSet<Role>;

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Admin, Self::Author, Self::Runner, Self::Auditor];

    /// The word in tables and documents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Author => "author",
            Self::Runner => "runner",
            Self::Auditor => "auditor",
        }
    }

    /// Reads the word; `None` if it is none.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_origins_and_kinds_survive_a_round_trip() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
        }
        assert_eq!(Role::parse("operator"), None);
        for origin in ClientOrigin::ALL {
            assert_eq!(ClientOrigin::parse(origin.as_str()), Some(origin));
            assert_eq!(serde_json::to_value(origin).unwrap(), origin.as_str());
        }
        for unfit in ["authored", "canonical", "observed", ""] {
            assert_eq!(ClientOrigin::parse(unfit), None, "{unfit}");
        }
        for kind in [PrincipalKind::Human, PrincipalKind::Service, PrincipalKind::Client] {
            assert_eq!(PrincipalKind::parse(kind.as_str()), Some(kind));
        }
    }
}
