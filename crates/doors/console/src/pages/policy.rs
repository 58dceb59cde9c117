//! The rules of a workspace: their text, a test of a call, and what a change takes from runs.

use askama::Template;

use crate::{
    Frame, filters,
    parts::{Moment, Words, form::Field},
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "policy.html")]
pub struct PolicyPage {
    /// The frame.
    pub frame: Frame,
    /// The text of the rules.
    pub rules: Field,
    /// The version that the text began with.
    pub tag: String,
    /// The fields of the tested call.
    pub call: Vec<Field>,
    /// The faults of the text or of the call.
    pub faults: Vec<RuleFault>,
    /// The decision on the tested call.
    pub decision: Option<Decision>,
    /// The changes for active runs, if they were asked for.
    pub preview: Option<Preview>,
    /// The last write of the stored rules.
    pub written: Option<Written>,
    /// The path of the test.
    pub check: String,
    /// The path of the preview.
    pub preview_path: String,
    /// The path that stores the text, for those who may.
    pub save: Option<String>,
}

/// A fault of rules.
#[derive(Debug, Clone)]
pub struct RuleFault {
    /// The fault, with its line.
    pub message: Words,
    /// The way to correct it.
    pub remedy: Words,
}

/// The decision of rules on a call.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The decision in words.
    pub sentence: Words,
    /// True if the call is not allowed as it is.
    pub is_refused: bool,
    /// The rules that match, each with its line if it has a name.
    pub matched: Vec<Words>,
}

/// The changes that the text makes for active runs.
#[derive(Debug, Clone)]
pub struct Preview {
    /// The tools for which the decision changes.
    pub rows: Vec<Changed>,
    /// Number of tools that were asked about.
    pub asked: usize,
    /// True if more tools exist.
    pub is_part: bool,
}

/// A tool for which the decision changes.
#[derive(Debug, Clone)]
pub struct Changed {
    /// The agent of the runs.
    pub agent: Words,
    /// The server.
    pub server: Words,
    /// The tool.
    pub tool: Words,
    /// The decision of the stored rules.
    pub before: &'static str,
    /// The decision of the text.
    pub after: &'static str,
}

/// The last write of rules.
#[derive(Debug, Clone)]
pub struct Written {
    /// The number of writes.
    pub revision: u64,
    /// The time.
    pub at: Moment,
    /// The principal.
    pub by: Words,
}
