//! Output of commands: results to standard output, all else to standard error.
//!
//! All output passes here, so that texts of servers, agents and files cannot control a terminal
//! (S22). A file or a program gets these texts unchanged.

use std::{
    borrow::Cow,
    hash::{BuildHasher, RandomState},
    io::{self, IsTerminal, Write},
    process::ExitCode,
    sync::LazyLock,
    time::SystemTime,
};

pub use crate::terminal::harmless;
use crate::terminal::{InertWriter, inert, inert_json, sentences_fitting};
use narthex_model::{ErrorKind, command::completed};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{Failure, environment};

/// The format of a command's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text,
    /// One JSON document; commands that report events print one per line.
    Json,
    /// Only the values that a script needs.
    Quiet,
}

/// The colour of a word on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    Red,
    Yellow,
    Green,
}

impl Format {
    pub fn is_json(self) -> bool {
        self == Self::Json
    }

    pub fn is_quiet(self) -> bool {
        self == Self::Quiet
    }

    /// True if people read the output.
    #[must_use]
    pub fn is_text(self) -> bool {
        !self.is_json() && !self.is_quiet()
    }
}

/// The mark that [`paint`] puts before a colour's code. No text of others has it, since it is
/// another one in each process.
static MARK: LazyLock<String> =
    LazyLock::new(|| format!("[paint {:016x} ", RandomState::new().hash_one("colour")));

/// Prints a text for a person, besides the result. Commands of the daemon in the text get the flags
/// that lead to that daemon from here.
pub fn notice(text: &str) {
    crate::terminal::notice(&completed(text));
}

/// Prints a result. A closed reader is no failure, so that `narthex tools | head` works.
pub fn line(text: &str) -> Result<(), Failure> {
    let text = text.trim_end_matches('\n');
    match io::stdout().is_terminal() {
        true => put(&coloured(&inert(text))),
        false => put(text),
    }
}

/// Prints sentences of narthex as [`line()`] does, in lines for which a terminal has room.
pub fn sentence(text: &str) -> Result<(), Failure> {
    let text = text.trim_end_matches('\n');
    match io::stdout().is_terminal() {
        true => put(&sentences_fitting(&coloured(&inert(text)))),
        false => put(text),
    }
}

/// Prints a text of JSON as a line.
pub fn json_text(text: &str) -> Result<(), Failure> {
    match io::stdout().is_terminal() {
        true => put(&inert_json(text)),
        false => put(text),
    }
}

fn put(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{}", text.trim_end_matches('\n')).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Standard output for bytes, such as the content of a file.
pub fn raw() -> Box<dyn Write + Send> {
    let out = io::stdout();
    match out.is_terminal() {
        true => Box::new(InertWriter::new(out)),
        false => Box::new(out),
    }
}

/// True if the reader of standard output has closed it: for endless output.
pub fn reader_is_gone() -> bool {
    let out = io::stdout();
    let mut polled = [PollFd::new(&out, PollFlags::empty())];
    let is_known = poll(&mut polled, Some(&Timespec::default())).is_ok();
    is_known && polled[0].revents().intersects(PollFlags::ERR)
}

/// Prints a result as one line of JSON.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value)
        .map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))?;
    json_text(&text)
}

/// Prints the outcome of an operator's command: `{"ok": true, "data": …}`.
pub fn done(data: &Value) -> Result<(), Failure> {
    json(&json!({ "ok": true, "data": data }))
}

/// Prints `data` as [`done`] does for programs, a sentence for people, and nothing for scripts.
pub fn told(data: &Value, sentence: &str, format: Format) -> Result<ExitCode, Failure> {
    told_lines(data, &[sentence.to_owned()], format)
}

/// Prints `data` as [`done`] does for programs, each sentence in a line for people, and nothing for
/// scripts. A line break inside of a sentence comes from other programs' text, and starts no line.
pub fn told_lines(data: &Value, sentences: &[String], format: Format) -> Result<ExitCode, Failure> {
    match format {
        Format::Json => done(data)?,
        Format::Text => sentences.iter().try_for_each(|one| sentence(&harmless(one)))?,
        Format::Quiet => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// A word in colour, if standard output is a terminal that may show colours.
pub fn paint(text: &str, colour: Colour) -> String {
    let code = match colour {
        Colour::Red => 31,
        Colour::Yellow => 33,
        Colour::Green => 32,
    };
    match io::stdout().is_terminal() && environment::may_have_colours() {
        true => format!("{mark}{code}]{text}{mark}0]", mark = *MARK),
        false => text.to_owned(),
    }
}

/// A line with the colours that [`paint`] has asked for.
fn coloured(line: &str) -> Cow<'_, str> {
    if !line.contains(&*MARK) {
        return Cow::Borrowed(line);
    }
    let mut parts = line.split(&*MARK);
    let mut coloured = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_once(']').unwrap_or_default();
        coloured.push_str(&format!("\u{1b}[{code}m{rest}"));
    }
    coloured.into()
}

/// A count with its noun: `1 run`, `2 runs`.
pub fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Prints a failure in the format that its reader expects.
pub fn failure(failure: &Failure, format: Format) {
    let is_shown = format.is_json() && json(&failure.to_json()).is_ok();
    if !is_shown {
        notice(&format!("error: {failure}"));
    }
}

pub fn is_error_terminal() -> bool {
    io::stderr().is_terminal()
}

/// The time since a moment, in its largest unit.
pub fn age(time: SystemTime, now: SystemTime) -> String {
    // A clock that was set back makes it the present.
    let seconds = now.duration_since(time).unwrap_or_default().as_secs();
    match seconds {
        0..60 => format!("{seconds}s ago"),
        60..3600 => format!("{}m ago", seconds / 60),
        3600..86_400 => format!("{}h ago", seconds / 3600),
        _ => format!("{}d ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use super::*;

    #[test]
    fn ages_are_printed_in_their_largest_unit() {
        let now = SystemTime::now();
        let table = [
            (0, "0s ago"),
            (12, "12s ago"),
            (59, "59s ago"),
            (60, "1m ago"),
            (200, "3m ago"),
            (3599, "59m ago"),
            (3600, "1h ago"),
            (86_399, "23h ago"),
            (200_000, "2d ago"),
        ];
        for (seconds, expected) in table {
            assert_eq!(age(now - Duration::from_secs(seconds), now), expected);
        }
        assert_eq!(age(now + Duration::from_secs(9), now), "0s ago");
    }

    /// S22: narthex's colours work, and colours in other programs' text do not.
    #[test]
    fn s22_only_colours_of_narthex_reach_a_terminal() {
        let ours = format!("{mark}31]FAILED{mark}0] (\u{1b}[32mOK)", mark = *MARK);
        assert_eq!(coloured(&inert(&ours)), "\u{1b}[31mFAILED\u{1b}[0m (\u{fffd}[32mOK)");
        assert_eq!(coloured("[paint 0000000000000000 31]x"), "[paint 0000000000000000 31]x");
    }

    /// S22: commands print by this module; the other files that use standard output are known.
    #[test]
    fn s22_commands_print_only_through_the_output_module() {
        /// Each speaks a protocol, draws tables whose cells are harmless, or only asks whether it
        /// is a terminal.
        const OTHERS: [&str; 6] = [
            "client/src/commands/connect/link.rs",
            "client/src/commands/typed.rs",
            "client/src/output.rs",
            "client/src/terminal.rs",
            "client/src/terminal/lines.rs",
            "narthex/src/commands/top.rs",
        ];
        fn files(folder: &Path, all: &mut Vec<std::path::PathBuf>) {
            for entry in fs_err::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => files(&path, all),
                    false => all.push(path),
                }
            }
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut all = Vec::new();
        for name in ["client/src", "narthex/src"] {
            files(&folder.join(name), &mut all);
        }
        let has_stdout = |path: &Path| fs_err::read_to_string(path).unwrap().contains("stdout()");
        let rust = all.iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
        let mut found: Vec<_> = rust
            .filter(|path| has_stdout(path))
            .map(|path| path.strip_prefix(folder).unwrap().display().to_string())
            .collect();
        found.sort();
        assert_eq!(found, OTHERS);
    }
}
