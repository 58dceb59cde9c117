//! The types of agents, and the servers that a workspace lets agents have that act for no one
//! person.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The subject that the runs of an agent act for (X-M15).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentType {
    /// The human who drives the run.
    #[default]
    Worker,
    /// Others: it starts and leads their runs.
    Orchestrator,
    /// No person is present: a clock or an event creates its runs.
    Scheduled,
}

/// The setting that lets agents other than workers have servers that each person signs in to
/// (X-E31).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OauthOnOrchestrators {
    /// No.
    #[default]
    Off,
    /// In runs that a person drives; in others such a server reports that it needs one.
    OnAttended,
    /// As workers may.
    On,
}

impl AgentType {
    /// All of them.
    pub const ALL: [Self; 3] = crate::every![Worker, Orchestrator, Scheduled];

    /// The word in documents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Orchestrator => "orchestrator",
            Self::Scheduled => "scheduled",
        }
    }

    /// True if the agent acts for the human who drives the run.
    #[must_use]
    pub fn is_worker(&self) -> bool {
        *self == Self::Worker
    }
}

impl OauthOnOrchestrators {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Off, Self::OnAttended, Self::On];

    /// The word in tables and documents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::OnAttended => "on_attended",
            Self::On => "on",
        }
    }

    /// Reads the word; `None` if it is none.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == word)
    }
}

impl fmt::Display for AgentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for OauthOnOrchestrators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_types_and_oauth_settings_survive_a_round_trip() {
        for one in OauthOnOrchestrators::ALL {
            assert_eq!(OauthOnOrchestrators::parse(one.as_str()), Some(one));
            assert_eq!(serde_json::to_value(one).unwrap(), one.as_str());
        }
        for one in AgentType::ALL {
            assert_eq!(serde_json::to_value(one).unwrap(), one.as_str());
            assert_eq!(one.is_worker(), one == AgentType::default());
        }
        for wrong in ["", "On", "attended", "on-attended"] {
            assert_eq!(OauthOnOrchestrators::parse(wrong), None, "{wrong}");
        }
    }
}
