//! Warnings on the row of a server that works only in part.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::for_models;

/// A fault of a server that takes away a part of it and leaves the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RowWarning {
    /// The kind of fault, for programs.
    pub kind: WarningKind,
    /// The fault, what follows from it, and the remedy where there is one. May hold words of the
    /// server.
    pub message: String,
}

/// The kinds of [`RowWarning`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WarningKind {
    /// One of the server's lists cannot be read, so the server has none of it.
    ListFailed,
    /// One of the server's lists was read only in part.
    ListCut,
    /// A list has a name more than once: the first counts.
    ListedTwice,
    /// A definition that strict clients refuse was repaired in merged lists.
    DefinitionRepaired,
    /// A definition that strict clients refuse is not in merged lists.
    DefinitionLeftOut,
    /// The server announces changes of its lists without an end.
    ListChanges,
    /// A gate of the configuration names nothing that the server lists.
    GateUnmatched,
}

impl WarningKind {
    /// The word for programs, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ListFailed => "list_failed",
            Self::ListCut => "list_cut",
            Self::ListedTwice => "listed_twice",
            Self::DefinitionRepaired => "definition_repaired",
            Self::DefinitionLeftOut => "definition_left_out",
            Self::ListChanges => "list_changes",
            Self::GateUnmatched => "gate_unmatched",
        }
    }
}

impl Serialize for WarningKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl RowWarning {
    /// A warning of this kind.
    pub fn new(kind: WarningKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The warning as runs read it; `None` for one that is about the operator's configuration.
    #[must_use]
    pub fn for_runs(&self) -> Option<Self> {
        let message = match self.kind {
            WarningKind::GateUnmatched => return None,
            // The rest of the message is the cause of a failure.
            WarningKind::ListFailed => "one of its lists cannot be read".to_owned(),
            WarningKind::ListCut
            | WarningKind::ListedTwice
            | WarningKind::DefinitionRepaired
            | WarningKind::DefinitionLeftOut
            | WarningKind::ListChanges => for_models(&self.message).into_owned(),
        };
        Some(Self { kind: self.kind, message })
    }
}

impl fmt::Display for RowWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
