//! What a process tells of what it does, and of what failed around it.

use tokio::time::Instant;

use super::Process;
use crate::{Done, Failure, Operation, Place};

impl Process {
    /// Notes a failure that whoever shows its files has met by itself, as that of what was done
    /// last at a path, and tells of it. Nothing is noted where the path is of no mount that it may
    /// open.
    pub fn note(&self, operation: Operation, path: &str, failure: Failure) {
        self.tell(operation, path, &failure);
        let Ok(Place::In(name, _)) = Place::parse(path) else { return };
        let mut state = self.state();
        let name = state.kin.also.get(&name).cloned().unwrap_or(name);
        if state.kin.allowed.contains(&name) {
            state.failures.insert(name, failure);
        }
    }

    /// Tells of a failure that whoever shows its files has met by itself.
    pub fn tell(&self, operation: Operation, path: &str, failure: &Failure) {
        self.observe((operation, path), (None, None), Err(failure), Instant::now());
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
