//! Ends a child when the daemon dies, where the kernel offers this (Linux). The only `unsafe` of
//! this crate.
//!
//! The kernel sends the signal when the *thread* that forked ends, so children must be started from
//! a thread that lives as long as the daemon: see `spawner`. The signal reaches the group's leader
//! only, and not a leader that gained privileges by its exec.

use tokio::process::Command;

/// Arranges that the child is killed when the daemon dies in whatever way.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the death signal can only be set between fork and exec")]
pub(crate) fn kill_with_parent(command: &mut Command) {
    let daemon = rustix::process::getpid();
    let set = move || {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // The daemon may have died before the signal was set; then it will never be sent.
        if rustix::process::getppid() == Some(daemon) {
            Ok(())
        } else {
            Err(rustix::io::Errno::SRCH.into())
        }
    };
    // SAFETY: between fork and exec only async-signal-safe work is allowed. The closure makes two
    // system calls and builds an `io::Error` from an error number; it neither allocates nor locks.
    unsafe {
        command.pre_exec(set);
    }
}

/// Does nothing: other systems have no such signal, and their children see the end of their stdin.
#[cfg(not(target_os = "linux"))]
pub(crate) fn kill_with_parent(_command: &mut Command) {}
