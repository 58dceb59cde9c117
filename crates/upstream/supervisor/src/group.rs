//! One process group: signals to all of its members, and a check for remaining ones.

use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

/// The group that a child leads. Its number is the leader's process id.
///
/// The number stays reserved while the leader is unreaped or any member lives. Afterwards the
/// kernel may give it to strangers, so `close` ends all signalling for good.
#[derive(Debug)]
pub(crate) struct Group {
    id: Pid,
    is_open: Mutex<bool>,
}

impl Group {
    pub(crate) fn new(id: Pid) -> Self {
        Self { id, is_open: Mutex::new(true) }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id.as_raw_nonzero().get().unsigned_abs()
    }

    /// Sends `signal` to every member, while the group is open.
    pub(crate) fn signal(&self, signal: Signal) {
        // Held while signalling, so that no other task closes the group in between.
        let is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_open {
            match rustix::process::kill_process_group(self.id, signal) {
                // The group has no members, or (macOS) only a zombie: no process needs the signal.
                Ok(()) | Err(Errno::SRCH | Errno::PERM) => {}
                Err(error) => tracing::warn!(
                    process.id = self.id(),
                    %error,
                    "could not signal a process group"
                ),
            }
        }
    }

    /// Ends signalling: the number may belong to strangers from now on.
    pub(crate) fn close(&self) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }

    /// True if a living process is in the group. Only once the leader is reaped: before, this would
    /// take the leader's exit status away from its owner.
    pub(crate) fn has_members(&self) -> bool {
        // The daemon must reap orphans of the group when it is the container's first process.
        while let Ok(Some(_)) = rustix::process::waitpgid(self.id, WaitOptions::NOHANG) {}
        match rustix::process::test_kill_process_group(self.id) {
            Err(Errno::SRCH) => false,
            Ok(()) | Err(_) => living::any_in(self.id()),
        }
    }
}

/// A zombie that its parent never reaps stays in its group for ever. On Linux narthex can check.
#[cfg(target_os = "linux")]
mod living {
    pub(super) fn any_in(group: u32) -> bool {
        let Ok(all) = crate::proc::processes() else { return true };
        all.iter().any(|stat| stat.group.unsigned_abs() == group && !stat.is_dead)
    }
}

#[cfg(not(target_os = "linux"))]
mod living {
    pub(super) fn any_in(_group: u32) -> bool {
        true
    }
}
