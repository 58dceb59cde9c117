//! What commands print: results to standard output, all else to standard error.

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use narthex_model::ErrorKind;
pub(crate) use narthex_terminal::{harmless, notice};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{Failure, config};

/// How a command's outcome is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    /// One JSON document; commands that report events print one per line.
    Json,
    /// Only what a script needs.
    Quiet,
}

/// How a word stands out on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Red,
    Yellow,
    Green,
}

impl Format {
    pub(crate) fn is_json(self) -> bool {
        self == Self::Json
    }

    pub(crate) fn is_quiet(self) -> bool {
        self == Self::Quiet
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

/// Whether whoever read standard output has gone: for what would print for ever.
pub(crate) fn reader_is_gone() -> bool {
    let out = io::stdout();
    let mut polled = [PollFd::new(&out, PollFlags::empty())];
    let is_known = poll(&mut polled, Some(&Timespec::default())).is_ok();
    is_known && polled[0].revents().intersects(PollFlags::ERR)
}

/// Prints a result as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value)
        .map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))?;
    line(&text)
}

/// Prints the outcome of an operator's command: `{"ok": true, "data": …}`.
pub(crate) fn done(data: &Value) -> Result<(), Failure> {
    json(&json!({ "ok": true, "data": data }))
}

/// Prints the same, or for people a sentence; nothing for scripts.
pub(crate) fn told(data: &Value, sentence: &str, format: Format) -> Result<ExitCode, Failure> {
    match format {
        Format::Json => done(data)?,
        Format::Text => line(&harmless(sentence))?,
        Format::Quiet => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// A word in colour, where standard output is a terminal that may show some.
pub(crate) fn paint(text: &str, colour: Colour) -> String {
    let code = match colour {
        Colour::Red => 31,
        Colour::Yellow => 33,
        Colour::Green => 32,
    };
    match io::stdout().is_terminal() && config::may_have_colours() {
        true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        false => text.to_owned(),
    }
}

/// So many of something: `1 run`, `2 runs`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
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
