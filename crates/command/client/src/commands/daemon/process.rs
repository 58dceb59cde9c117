//! The process of a daemon: a handle to it, and signals.

use std::io;

use narthex_model::ErrorKind;
use rustix::{
    fd::OwnedFd,
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use crate::{Failure, data_dir::DataDir};

/// The process of a data directory's daemon.
pub(super) struct Process {
    pub(super) pid: u32,
    /// A handle to the very process: should it end and its number go to another, nothing is sent.
    pub(super) handle: OwnedFd,
}

impl Process {
    /// The process of the daemon that runs with the data directory; `None` if none runs.
    ///
    /// # Errors
    /// When the daemon's number means another process here, or the process cannot be reached.
    pub(super) fn of_daemon(data: &DataDir) -> Result<Option<Self>, Failure> {
        let Some(holder) = data.holding()? else { return Ok(None) };
        let handle = open(holder.pid)?;
        if data.holding()? != Some(holder) {
            return Ok(None);
        }
        holder.check(data)?;
        // The lock is held, so the daemon lives, and elsewhere.
        let handle = handle.ok_or_else(|| holder.elsewhere(data))?;
        Ok(Some(Self { pid: holder.pid, handle }))
    }

    /// Sends a signal; a process that has ended already is no failure.
    pub(super) fn send(&self, signal: Signal) -> Result<(), Failure> {
        match pidfd_send_signal(&self.handle, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(refused(self.pid, error)),
        }
    }
}

/// `None` if there is no such process.
fn open(pid: u32) -> Result<Option<OwnedFd>, Failure> {
    let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
    match pidfd_open(number, PidfdFlags::NONBLOCK) {
        Ok(process) => Ok(Some(process)),
        Err(Errno::SRCH) => Ok(None),
        Err(error) => Err(refused(pid, error)),
    }
}

fn refused(pid: u32, error: Errno) -> Failure {
    let kind = if error == Errno::PERM { ErrorKind::Denied } else { ErrorKind::Unavailable };
    let why = io::Error::from(error);
    let text = format!("process {pid} cannot be reached: {why}; does it belong to another user?");
    Failure::new(kind, text)
}
