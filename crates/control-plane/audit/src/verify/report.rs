//! The report of a verifier.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::DeclaredChain;

/// A fault of an event or of the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "fault")]
pub enum Fault {
    /// The event's content does not match its hash.
    #[error("it was edited: its content does not match its hash")]
    Edited,
    /// The event is valid by itself, but does not follow the previous event.
    #[error("it does not follow the event before it: one of the two was inserted or replaced")]
    Unlinked,
    /// Events before this one are missing.
    #[error("{count} before it {} removed", were(*.count))]
    Removed {
        /// Number of removed events.
        count: u64,
    },
    /// The event is at another position than its number.
    #[error("it is out of order")]
    Reordered,
    /// The event is recorded twice.
    #[error("it is recorded twice")]
    Doubled,
    /// Events at the end are missing.
    #[error("{count} after it {} removed", were(*.count))]
    TailCut {
        /// Number of removed events.
        count: u64,
    },
    /// The event comes after the declared last one.
    #[error("it comes after the recorded last event")]
    Surplus,
    /// The last event differs from the declared last one.
    #[error("the chain was rewritten: its last event is not the recorded last event")]
    Rewritten,
    /// The end of the chain is not declared.
    #[error("the end of its chain cannot be proved")]
    Undeclared,
    /// The declaration of the chain's end was changed.
    #[error("the record of its chain's end was changed without the key")]
    Forged,
    /// A chain that this chain names as its predecessor is missing or shortened.
    #[error("the earlier chain that it names is missing or incomplete")]
    PredecessorGone,
    /// An event that was moved into the store is missing.
    #[error("it was in the store, and is missing now: its chain was removed or shortened")]
    KnownGone,
    /// The line is no event.
    #[error("it is not an audit event")]
    Unreadable,
    /// The text ends before its last line.
    #[error("the file is incomplete: its last line is missing or does not match")]
    TextCut,
}

/// The first changed or missing event of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// The owner of the chain; empty for the installation, or if it is unknown.
    pub workspace: String,
    /// The writer of the chain.
    pub writer: String,
    /// Number of the event in the chain; 0 if unknown.
    pub seq: u64,
    /// Line of the text, from 1.
    pub line: u64,
    /// The fault.
    #[serde(flatten)]
    pub fault: Fault,
}

/// The result for one chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChainReport {
    /// The declared ends of the chain.
    #[serde(flatten)]
    pub declared: DeclaredChain,
    /// Number of events that were read.
    pub events: u64,
}

/// Recorded events that cannot be verified yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The owner of the events: a workspace, or empty for the installation.
    pub workspace: String,
    /// Number of events that wait in the spool.
    pub events: u64,
    /// True if only some were counted: there are too many, or not all can be read.
    pub is_more: bool,
    /// Time of the oldest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// True if they cannot be moved; false if they are being moved.
    pub is_stuck: bool,
}

/// The result for the whole text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Number of events that were read.
    pub events: u64,
    /// The chains that were declared.
    pub chains: Vec<ChainReport>,
    /// The first broken event of each broken chain, in the order of the text.
    pub broken: Vec<Broken>,
    /// Events that could not be read yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Waiting>,
}

impl Waiting {
    /// Reads the waiting events from the last line of an export.
    #[must_use]
    pub fn at_end(line: &Value) -> Option<Self> {
        serde_json::from_value(line["end"]["waiting"].clone()).ok()
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workspace, events, is_more, since, is_stuck } = self;
        let count = match (events, is_more) {
            (0, true) => "an unknown number of".to_owned(),
            (_, true) => format!("at least {events}"),
            (_, false) => events.to_string(),
        };
        let whose = if workspace.is_empty() { "the installation" } else { workspace };
        let since = since.as_deref().map(|since| format!(", since {since}")).unwrap_or_default();
        let how = if *is_stuck { "cannot be moved" } else { "are still to be moved" };
        write!(f, "{count} events of {whose} {how} from the daemon's disk into the store")?;
        f.write_str(&since)
    }
}

impl Report {
    /// True if no line was changed and none is missing.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.broken.is_empty()
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workspace, writer, seq, line, fault } = self;
        if writer.is_empty() {
            return write!(f, "line {line}: {fault}");
        }
        let whose = if workspace.is_empty() { "the installation" } else { workspace };
        write!(f, "line {line}, event {seq} of {writer} in {whose}: {fault}")
    }
}

fn were(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}
