//! The faults of a set of rules.

use narthex_model::command::narthex;
use std::fmt;

use cedar_policy::{ParseErrors, ValidationError, ValidationWarning};
use miette::Diagnostic;
use serde::Serialize;

/// One fault of a set of rules, and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RuleFault {
    /// The line of the fault, from 1; `None` if the fault concerns the whole text.
    pub line: Option<usize>,
    /// The id of the rule, if it is known.
    pub rule: Option<String>,
    /// The fault.
    pub message: String,
    /// The remedy.
    pub remedy: String,
}

/// All faults of a set of rules, in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct RuleFaults(pub Vec<RuleFault>);

impl RuleFault {
    /// A fault of the text as a whole.
    pub(crate) fn whole(message: String, remedy: &str) -> Self {
        Self { line: None, rule: None, message, remedy: remedy.to_owned() }
    }

    /// The place of the fault: a rule, or a line. For people, and as a path in a document.
    #[must_use]
    pub fn place(&self) -> String {
        match (&self.rule, self.line) {
            (Some(rule), _) => format!("rule `{rule}`"),
            (None, Some(line)) => format!("line {line}"),
            (None, None) => String::new(),
        }
    }
}

impl fmt::Display for RuleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, &self.rule) {
            (Some(line), Some(rule)) => write!(f, "line {line}, rule `{rule}`: ")?,
            (Some(line), None) => write!(f, "line {line}: ")?,
            (None, Some(rule)) => write!(f, "rule `{rule}`: ")?,
            (None, None) => {}
        }
        write!(f, "{}; {}", self.message, self.remedy)
    }
}

impl fmt::Display for RuleFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&all.join("\n"))
    }
}

/// The number of a line, from 1.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

/// The faults that the parser reports.
pub(crate) fn unreadable(text: &str, errors: &ParseErrors) -> Vec<RuleFault> {
    let fault = |error: &cedar_policy::ParseError| {
        let line = first_label(error).map(|offset| line_of(text, offset));
        let remedy = remedy_of(error, "see docs/guides/policy.md for the form of a rule");
        RuleFault { line, rule: None, message: error.to_string(), remedy }
    };
    errors.iter().map(fault).collect()
}

/// The fault that the validator reports for a rule that begins at a line.
pub(crate) fn invalid(error: &ValidationError, rule: &str, line: usize) -> RuleFault {
    let schema = narthex("policy schema", &[]);
    let remedy = remedy_of(error, &format!("`{schema}` shows what rules may name"));
    said(&error.to_string(), remedy, rule, line)
}

/// The fault of a rule that could be saved, but probably does not do what its author wants.
pub(crate) fn suspicious(warning: &ValidationWarning, rule: &str, line: usize) -> RuleFault {
    let remedy = remedy_of(warning, "correct it, or leave the rule out");
    said(&warning.to_string(), remedy, rule, line)
}

fn said(message: &str, remedy: String, rule: &str, line: usize) -> RuleFault {
    let own = format!("for policy `{rule}`, ");
    let message = message.strip_prefix(&own).unwrap_or(message).to_owned();
    RuleFault { line: Some(line), rule: Some(rule.to_owned()), message, remedy }
}

fn first_label(error: &dyn Diagnostic) -> Option<usize> {
    error.labels()?.map(|label| label.offset()).min()
}

fn remedy_of(error: &dyn Diagnostic, otherwise: &str) -> String {
    error.help().map_or_else(|| otherwise.to_owned(), |help| help.to_string())
}
