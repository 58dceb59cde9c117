//! An operation as the door reports it, and its line for people.

use std::{
    collections::HashSet,
    fmt::{self, Write as _},
};

use serde::{Deserialize, Serialize};

/// The object of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A call, by whichever door.
    Call,
    /// A file of a mount.
    File,
}

/// An operation as the door reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Start time of the operation, in UTC.
    pub at: String,
    /// Microseconds from the start of watching to the start of the operation; 0 if it started
    /// before.
    pub after_us: u64,
    /// `Open`, `Read`, `Write`, `Close`, `Stat`, `List`, `Mount` or `Unmount`.
    pub operation: String,
    /// Path of the operation.
    pub path: String,
    /// File descriptor, if the operation has one.
    pub fd: Option<u64>,
    /// Number of bytes written, or requested at most; `None` for all.
    pub size: Option<i64>,
    /// Result of the operation: a descriptor, or a number of bytes.
    pub result: Option<u64>,
    /// Error of the operation, if it failed.
    pub error: Option<String>,
    /// Duration of the operation in microseconds.
    pub duration_us: u64,
    /// The kind of object that the operation used.
    pub source: Source,
    /// The MCP method of a call.
    pub method: Option<String>,
    /// True if the operation served another reported operation.
    pub is_inner: bool,
}

/// The descriptors whose opening was reported: their lines need no path.
#[derive(Debug, Clone, Default)]
pub struct Opened {
    descriptors: HashSet<u64>,
}

impl Opened {
    /// The line for people, as [`Line::text`]. A descriptor that was opened before the watching
    /// began is shown with its path. Call this for each line in order.
    pub fn text(&mut self, line: &Line, earlier_us: u64, arrow: &str) -> String {
        let is_known = line.fd.is_none_or(|fd| self.descriptors.contains(&fd));
        match (line.operation.as_str(), line.fd, line.result) {
            ("Open", _, Some(fd)) => drop(self.descriptors.insert(fd)),
            ("Close", Some(fd), _) => drop(self.descriptors.remove(&fd)),
            _ => {}
        }
        line.text_with(earlier_us, arrow, !is_known)
    }
}

impl Line {
    /// The line for people: `[  1.234s] Open(path="…") → 5    2ms`. `earlier_us` is added to the
    /// line's time; `arrow` comes before the result.
    #[must_use]
    pub fn text(&self, earlier_us: u64, arrow: &str) -> String {
        self.text_with(earlier_us, arrow, false)
    }

    fn text_with(&self, earlier_us: u64, arrow: &str, has_path: bool) -> String {
        let millis = self.after_us.saturating_add(earlier_us) / 1000;
        let (seconds, millis) = (millis / 1000, millis % 1000);
        let mut text = format!("[{seconds:>3}.{millis:03}s] {}", self.operation);
        // Writing to a string does not fail.
        if self.write_rest(&mut text, arrow, has_path).is_err() {
            text.push('?');
        }
        text
    }

    fn write_rest(&self, text: &mut String, arrow: &str, has_path: bool) -> fmt::Result {
        let given = if self.operation == "Read" { "length" } else { "size" };
        match self.fd {
            Some(fd) => write!(text, "(fd={fd}")?,
            None => write!(text, "(path={:?}", self.path)?,
        }
        if let Some(size) = self.size {
            write!(text, ", {given}={size}")?;
        }
        if has_path && self.fd.is_some() {
            write!(text, ", path={:?}", self.path)?;
        }
        write!(text, ") {arrow} ")?;
        match self.result.filter(|_| self.gives()) {
            Some(result) => write!(text, "{result}")?,
            // Only a failed operation has no result at all.
            None if self.error.is_none() || self.result.is_some() => text.push_str("<nil>"),
            None => {}
        }
        if let Some(error) = &self.error {
            let space = if self.result.is_some() { " " } else { "" };
            write!(text, "{space}[{error}]")?;
        }
        match self.duration_us / 1000 {
            0 => write!(text, "    {}µs", self.duration_us),
            millis => write!(text, "    {millis}ms"),
        }
    }

    /// True if its result is shown: of file operations, only opening and reading have one.
    fn gives(&self) -> bool {
        self.source == Source::Call || matches!(self.operation.as_str(), "Open" | "Read")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/mnt/mcp/1-github/tools/search_repos";

    fn line(operation: &str, source: Source, after_ms: u64, took_us: u64) -> Line {
        Line {
            at: "2026-11-23T10:00:00.000Z".to_owned(),
            after_us: after_ms * 1000,
            operation: operation.to_owned(),
            path: PATH.to_owned(),
            fd: None,
            size: None,
            result: None,
            error: None,
            duration_us: took_us,
            source,
            method: None,
            is_inner: false,
        }
    }

    #[test]
    fn r_m35_lines_match_the_document() {
        let open = Line { result: Some(5), ..line("Open", Source::File, 1234, 2000) };
        let lines = [
            open.text(0, "→"),
            Line { fd: Some(5), size: Some(45), ..line("Write", Source::File, 1236, 350_000) }
                .text(0, "→"),
            Line {
                fd: Some(5),
                size: Some(1_048_576),
                result: Some(2048),
                ..line("Read", Source::File, 1586, 1000)
            }
            .text(0, "→"),
            Line { fd: Some(5), ..line("Close", Source::File, 1587, 0) }.text(0, "→"),
        ];
        assert_eq!(
            lines.join("\n"),
            "[  1.234s] Open(path=\"/mnt/mcp/1-github/tools/search_repos\") → 5    2ms\n\
             [  1.236s] Write(fd=5, size=45) → <nil>    350ms\n\
             [  1.586s] Read(fd=5, length=1048576) → 2048    1ms\n\
             [  1.587s] Close(fd=5) → <nil>    0µs"
        );
    }

    #[test]
    fn r_m35_a_descriptor_opened_before_the_watch_is_shown_with_its_path() {
        let mut opened = Opened::default();
        let write = Line { fd: Some(5), size: Some(2), ..line("Write", Source::File, 1, 0) };
        let open = Line { result: Some(5), ..line("Open", Source::File, 3, 0) };
        let close = Line { fd: Some(5), ..line("Close", Source::File, 4, 0) };
        let with_path = format!("(fd=5, size=2, path={PATH:?})");
        for (line, told) in [
            (&write, with_path.as_str()),
            (&open, "(path="),
            (&write, "(fd=5, size=2)"),
            (&close, "(fd=5)"),
            (&write, &with_path),
        ] {
            let text = opened.text(line, 0, "→");
            assert!(text.contains(told), "{told}: {text}");
        }
    }

    #[test]
    fn r_m35_a_call_is_one_line() {
        let call = line("Write", Source::Call, 0, 350_123);
        let call = Line { size: Some(45), result: Some(2048), ..call };
        let told = format!("[ 61.000s] Write(path=\"{PATH}\", size=45) -> 2048    350ms");
        assert_eq!(call.text(61_000_000, "->"), told);
        let failed = Line { error: Some("tool_error".to_owned()), ..call.clone() };
        assert!(failed.text(0, "→").ends_with(" → 2048 [tool_error]    350ms"));
        let refused = Line { result: None, error: Some("denied".to_owned()), ..call };
        assert!(refused.text(0, "→").ends_with(" → [denied]    350ms"));
        let written = Line {
            fd: Some(3),
            size: Some(2),
            result: Some(2),
            ..line("Write", Source::File, 0, 9)
        };
        let failed = Line { error: Some("tool_error".to_owned()), ..written.clone() };
        assert!(failed.text(0, "→").ends_with("Write(fd=3, size=2) → <nil> [tool_error]    9µs"));
        let failed = Line { result: None, error: Some("INVALID".to_owned()), ..written };
        assert!(failed.text(0, "→").ends_with("Write(fd=3, size=2) → [INVALID]    9µs"));
        let whole = Line { fd: Some(3), result: Some(29), ..line("Read", Source::File, 0, 9) };
        assert!(whole.text(0, "→").ends_with("Read(fd=3) → 29    9µs"), "all was asked for");
        let list = Line { result: Some(7), ..line("Read", Source::Call, 5, 9) };
        assert_eq!(list.text(0, "→"), format!("[  0.005s] Read(path=\"{PATH}\") → 7    9µs"));
    }

    /// A name by a client cannot move a cursor.
    #[test]
    fn control_characters_of_a_name_are_escaped() {
        let path = "/mnt/mcp/1-a/tools/\u{1b}[2J\n\"".to_owned();
        let text = Line { path, ..line("Write", Source::Call, 0, 1) }.text(0, "→");
        assert!(text.contains(r#"tools/\u{1b}[2J\n\"""#), "{text}");
    }

    #[test]
    fn a_line_survives_a_round_trip_through_json() {
        let line = Line { error: Some("timeout".into()), ..line("Read", Source::Call, 1, 2) };
        let text = serde_json::to_string(&line).unwrap();
        assert!(text.contains(r#""source":"call""#), "{text}");
        assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line);
    }
}
