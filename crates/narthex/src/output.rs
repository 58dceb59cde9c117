//! The only place that prints: results to standard output, all else to standard error.

use std::io::{self, IsTerminal, Write};

use narthex_model::ErrorKind;
use serde::Serialize;

use crate::failure::Failure;

/// How a command's outcome is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    /// One JSON document; commands that report events print one per line.
    Json,
}

impl Format {
    pub(crate) fn is_json(self) -> bool {
        self == Self::Json
    }
}

/// Prints a result. A reader that went away is no failure, so that `narthex tools | head` works.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{}", text.trim_end_matches('\n')).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Prints a result as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value)
        .map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))?;
    line(&text)
}

/// Tells a person something that is not the result.
#[expect(clippy::print_stderr, reason = "what is no result goes to standard error")]
pub(crate) fn notice(text: &str) {
    eprintln!("{text}");
}

/// Shows why a command failed, where its reader looks.
pub(crate) fn failure(failure: &Failure, format: Format) {
    let is_shown = format.is_json() && json(&failure.to_json()).is_ok();
    if !is_shown {
        notice(&format!("error: {failure}"));
    }
}

pub(crate) fn is_error_terminal() -> bool {
    io::stderr().is_terminal()
}
