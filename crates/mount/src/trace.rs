//! What operations were done, for whoever watches a process: never what was read or written
//! (R-M35).

use std::{fmt, time::Duration};

use narthex_model::Pid;

use crate::{Code, Operation};

/// Is told of each operation of a namespace when it has ended. Called on the task that did it: must
/// not block.
pub trait Observer: fmt::Debug + Send + Sync {
    /// An operation has ended.
    fn ended(&self, done: Done<'_>);
}

/// An operation that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Done<'a> {
    /// Whose it was.
    pub pid: Pid,
    /// What was done.
    pub operation: Operation,
    /// With what path; also of a descriptor.
    pub path: &'a str,
    /// With which descriptor, if with one.
    pub fd: Option<u64>,
    /// How many bytes were written, or how many were asked for at most.
    pub size: Option<i64>,
    /// What it gave: the descriptor of an open, the bytes of a read; 0 otherwise.
    pub result: Result<u64, Code>,
    /// How long it took.
    pub duration: Duration,
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
    fn r_m35_lines_are_those_of_the_document() {
        let pid = Pid::new(1);
        let path = "/mnt/mcp/1-github/tools/search_repos";
        let done = |operation, fd, size, result, micros| {
            let duration = Duration::from_micros(micros);
            Done { pid, operation, path, fd, size, result, duration }.to_string()
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
}
