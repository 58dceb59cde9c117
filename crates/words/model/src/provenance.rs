//! The source of a server's definition.

use serde::{Deserialize, Serialize};

/// The source that declared a server (E139). Only entries of the settings file may be edited or
/// removed by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// The user's settings: the global layer.
    Settings,
    /// The `mcp.json` of the folder that is worked in: the project layer.
    Workspace,
    /// A program, by a call of ours.
    Programmatic,
}

impl Provenance {
    /// The spelling in JSON and tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Workspace => "workspace",
            Self::Programmatic => "programmatic",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Provenance;

    /// E139: one spelling in JSON and elsewhere.
    #[test]
    fn e139_the_spelling_is_the_same_everywhere() {
        for provenance in [Provenance::Settings, Provenance::Workspace, Provenance::Programmatic] {
            let json = serde_json::to_string(&provenance).unwrap();
            assert_eq!(json, format!("\"{}\"", provenance.as_str()));
        }
    }
}
