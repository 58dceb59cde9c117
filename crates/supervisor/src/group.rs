//! One process group: signals to all of it, and whether anybody is left in it.

use std::sync::{Arc, Mutex, PoisonError};

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

    /// Sends `signal` to every member; says whether the group was still open.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        // Held while signalling, so that nobody closes the group in between.
        let is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_open {
            match rustix::process::kill_process_group(self.id, signal) {
                // No members, or (macOS) only a zombie: there is nobody to tell.
                Ok(()) | Err(Errno::SRCH | Errno::PERM) => {}
                Err(error) => tracing::warn!(
                    process.id = self.id(),
                    %error,
                    "could not signal a process group"
                ),
            }
        }
        *is_open
    }

    /// Ends signalling: the number may belong to strangers from now on.
    pub(crate) fn close(&self) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }

    /// Whether a living process is in the group. Only once the leader is reaped: before, this
    /// would take the leader's exit status away from its owner.
    pub(crate) fn has_members(&self) -> bool {
        // Orphans of the group are ours to reap when the daemon is the container's first process.
        while let Ok(Some(_)) = rustix::process::waitpgid(self.id, WaitOptions::NOHANG) {}
        match rustix::process::test_kill_process_group(self.id) {
            Err(Errno::SRCH) => false,
            Ok(()) | Err(_) => living::any_in(self.id()),
        }
    }
}

/// Whoever holds this answers for the group: dropping it kills what is left.
#[derive(Debug)]
pub(crate) struct GroupOwner(pub(crate) Arc<Group>);

impl Drop for GroupOwner {
    fn drop(&mut self) {
        self.0.signal(Signal::KILL);
        self.0.close();
    }
}

/// A zombie that its parent never reaps stays in its group for ever. Linux lets us look.
#[cfg(target_os = "linux")]
mod living {
    pub(super) fn any_in(group: u32) -> bool {
        let Ok(entries) = fs_err::read_dir("/proc") else { return true };
        entries.flatten().any(|entry| {
            let is_process = entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit);
            is_process
                && fs_err::read(entry.path().join("stat"))
                    .is_ok_and(|stat| is_alive_in(&String::from_utf8_lossy(&stat), group))
        })
    }

    /// Reads state and group out of `pid (name) state parent group …`. The name may hold
    /// anything, so the fields are counted from its last parenthesis.
    fn is_alive_in(stat: &str, group: u32) -> bool {
        let Some((_, fields)) = stat.rsplit_once(')') else { return false };
        let mut fields = fields.split_ascii_whitespace();
        let state = fields.next();
        let in_group = fields.nth(1).and_then(|field| field.parse().ok()) == Some(group);
        in_group && !matches!(state, Some("Z" | "X"))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn fields_are_counted_after_the_name() {
            assert!(is_alive_in("7 (a) b) S 1 42 42 0", 42));
            assert!(!is_alive_in("7 (a) Z 1 42 42 0", 42));
            assert!(!is_alive_in("7 (a) S 42 7 42 0", 42));
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod living {
    pub(super) fn any_in(_group: u32) -> bool {
        true
    }
}
