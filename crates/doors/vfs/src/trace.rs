//! The trace of operations for observers of a process: never the bytes that were read or written
//! (R-M35).

use std::{borrow::Cow, fmt, time::Duration};

use narthex_model::Pid;
use serde::{Deserialize, Serialize};

use crate::{Code, Operation};

/// Receives each operation of a namespace when it has ended. Called on the task that did the
/// operation: must not block.
pub trait Observer: fmt::Debug + Send + Sync {
    /// An operation has ended.
    fn ended(&self, done: Done<'_>);

    /// True if an observer watches now. Facts that take time to determine are only determined then.
    fn is_watched(&self) -> bool {
        true
    }
}

/// An operation that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done<'a> {
    /// Whose it was.
    pub pid: Pid,
    /// The operation.
    pub operation: Operation,
    /// The path of the operation, or of its descriptor.
    pub path: &'a str,
    /// The descriptor, if the operation has one.
    pub fd: Option<u64>,
    /// Number of bytes written, or most bytes requested; `None` for all that there are.
    pub size: Option<i64>,
    /// The result: the descriptor of an open, the number of bytes of a read; 0 otherwise.
    pub result: Result<u64, Code>,
    /// True if the called tool itself reports a failure (R-O12). Determined only while an observer
    /// watches.
    pub is_tool_error: bool,
    /// True if the process that did the operation elsewhere has reported its failure.
    pub is_told: bool,
    /// Duration of the operation.
    pub duration: Duration,
}

/// An operation that failed at a folder before it reached the namespace with the mounts. The
/// folder's process sends this report to that namespace, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report<'a> {
    /// The operation, as [`Operation::as_str`] spells it.
    pub operation: Cow<'a, str>,
    /// The reason of the failure, as [`Code::as_str`] spells it.
    pub code: Cow<'a, str>,
    /// The size of [`Done::size`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Duration of the operation.
    pub duration_us: u64,
}

impl Report<'_> {
    /// The report of an operation that has ended; `None` if it succeeded or is reported elsewhere.
    #[must_use]
    pub fn of(done: &Done<'_>) -> Option<Self> {
        let code = done.result.err().filter(|_| !done.is_told)?;
        Some(Self {
            operation: done.operation.as_str().into(),
            code: code.as_str().into(),
            size: done.size,
            duration_us: u64::try_from(done.duration.as_micros()).unwrap_or(u64::MAX),
        })
    }

    /// The reported operation. `None` if one of its words is unknown.
    #[must_use]
    pub fn done<'p>(&self, pid: Pid, path: &'p str) -> Option<Done<'p>> {
        Some(Done {
            pid,
            operation: Operation::parse(&self.operation)?,
            path,
            fd: None,
            size: self.size,
            result: Err(Code::parse(&self.code)?),
            is_tool_error: false,
            is_told: false,
            duration: Duration::from_micros(self.duration_us),
        })
    }
}

/// A line as `narthex strace` shows it, without the time: `Open(path="…") → 5    2ms`.
impl fmt::Display for Done<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.operation.as_str())?;
        match (self.operation, self.fd, self.size) {
            (Operation::Read, Some(fd), Some(size)) => write!(f, "(fd={fd}, length={size})")?,
            (_, Some(fd), Some(size)) => write!(f, "(fd={fd}, size={size})")?,
            (_, Some(fd), None) => write!(f, "(fd={fd})")?,
            (_, None, _) => write!(f, "(path={:?})", self.path)?,
        }
        match (self.operation, self.result) {
            (_, Err(code)) => write!(f, " → [{code}]")?,
            (Operation::Open | Operation::Read, Ok(result)) => write!(f, " → {result}")?,
            (_, Ok(_)) => f.write_str(" → <nil>")?,
        }
        if self.is_tool_error {
            f.write_str(" [tool_error]")?;
        }
        write!(f, "    {}", Took(self.duration))
    }
}

/// A duration in ms, or in µs below one of them.
struct Took(Duration);

impl fmt::Display for Took {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            0 => write!(f, "{}µs", self.0.as_micros()),
            ms => write!(f, "{ms}ms"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_m35_trace_lines_match_the_document() {
        let pid = Pid::new(1);
        let path = "/mnt/mcp/1-github/tools/search_repos";
        let done = |operation, fd, size, result, micros| {
            let duration = Duration::from_micros(micros);
            let (is_tool_error, is_told) = (false, false);
            let done =
                Done { pid, operation, path, fd, size, result, is_tool_error, is_told, duration };
            done.to_string()
        };
        assert_eq!(
            done(Operation::Open, None, None, Ok(5), 2_000),
            r#"Open(path="/mnt/mcp/1-github/tools/search_repos") → 5    2ms"#,
        );
        let write = done(Operation::Write, Some(5), Some(45), Ok(0), 350_000);
        assert_eq!(write, "Write(fd=5, size=45) → <nil>    350ms");
        let read = done(Operation::Read, Some(5), Some(1_048_576), Ok(2048), 1_000);
        assert_eq!(read, "Read(fd=5, length=1048576) → 2048    1ms");
        assert_eq!(done(Operation::Close, Some(5), None, Ok(0), 0), "Close(fd=5) → <nil>    0µs");
        let failed = done(Operation::Write, Some(5), Some(2), Err(Code::Permission), 90);
        assert_eq!(failed, "Write(fd=5, size=2) → [PERMISSION]    90µs");
    }

    /// A failure that is reported elsewhere is not reported again.
    #[test]
    fn only_failures_not_yet_reported_become_a_report() {
        let (pid, path) = (Pid::new(1), "/mnt/mcp/1-a/tools/x");
        let text = r#"{"operation":"Write","code":"INVALID","size":7,"duration_us":90}"#;
        let report: Report<'_> = serde_json::from_str(text).expect("it is one");
        let done = report.done(pid, path).expect("both words are known");
        assert_eq!((done.operation, done.result), (Operation::Write, Err(Code::Invalid)));
        assert_eq!(Report::of(&done).as_ref(), Some(&report));
        assert_eq!(serde_json::to_string(&report).expect("it is text"), text);
        assert_eq!(Report::of(&Done { is_told: true, ..done }), None);
        assert_eq!(Report::of(&Done { result: Ok(7), ..done }), None);
        let other = Report { code: "NOTHING".into(), ..report };
        assert_eq!(other.done(pid, path), None);
    }
}
