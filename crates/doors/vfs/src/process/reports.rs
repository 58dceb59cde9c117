//! Reports the operations of a process, and the failures around it.

use tokio::time::Instant;

use super::Process;
use crate::{Done, Failure, Operation, Place};

impl Process {
    /// Notes a failure that a frontend for the process's files met by itself, as that of the last
    /// operation at a path, and reports it. Not noted if the path is of no mount that the process
    /// may open.
    pub fn note(&self, operation: Operation, path: &str, failure: Failure) {
        self.note_since(Instant::now(), (operation, path), None, failure);
    }

    /// As [`Process::note`], for an operation that began at `began`, with the given number of
    /// bytes.
    pub fn note_since(
        &self,
        began: Instant,
        (operation, path): (Operation, &str),
        bytes: Option<usize>,
        failure: Failure,
    ) {
        let size = bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        self.observe((operation, path), (None, size), Err(&failure), began);
        // A path that leads nowhere in a mount is looked up in that mount all the same.
        let above = || Place::parse(path.rsplit_once('/').map_or("", |(above, _)| above));
        let Ok(Place::In(name, _)) = Place::parse(path).or_else(|_| above()) else { return };
        let mut state = self.state();
        let name = state.kin.also.get(&name).cloned().unwrap_or(name);
        if state.kin.allowed.contains(&name) {
            state.failures.insert(name, failure);
        }
    }

    pub(super) fn observe(
        &self,
        what: (Operation, &str),
        with: (Option<u64>, Option<i64>),
        result: Result<u64, &Failure>,
        began: Instant,
    ) {
        self.ended(self.done(what, with, result, began));
    }

    pub(super) fn done<'p>(
        &self,
        (operation, path): (Operation, &'p str),
        (fd, size): (Option<u64>, Option<i64>),
        result: Result<u64, &Failure>,
        began: Instant,
    ) -> Done<'p> {
        Done {
            pid: self.pid,
            operation,
            path,
            fd,
            size,
            result: result.map_err(|failure| failure.code),
            is_tool_error: false,
            is_told: result.is_err_and(|failure| failure.is_told),
            duration: began.elapsed(),
        }
    }

    pub(super) fn ended(&self, done: Done<'_>) {
        if let Some(observer) = &self.shared.observer {
            observer.ended(done);
        }
    }
}
