//! The process of a daemon: a handle to it, and signals.

use std::io;

use narthex_model::ErrorKind;
use rustix::{
    fd::OwnedFd,
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use crate::Failure;

/// `None` if there is no such process any more.
pub(super) fn open(pid: u32) -> Result<Option<OwnedFd>, Failure> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let number = number.ok_or_else(|| {
        Failure::new(
            ErrorKind::Invalid,
            format!("process {pid} does not exist; delete daemon.lock"),
        )
    })?;
    match pidfd_open(number, PidfdFlags::NONBLOCK) {
        Ok(process) => Ok(Some(process)),
        Err(Errno::SRCH) => Ok(None),
        Err(error) => Err(refused(pid, error)),
    }
}

/// Sends a signal; a process that has ended already is no failure.
pub(super) fn send(process: &OwnedFd, pid: u32, signal: Signal) -> Result<(), Failure> {
    match pidfd_send_signal(process, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(refused(pid, error)),
    }
}

fn refused(pid: u32, error: Errno) -> Failure {
    let kind = if error == Errno::PERM { ErrorKind::Denied } else { ErrorKind::Unavailable };
    let why = io::Error::from(error);
    let text = format!("process {pid} cannot be reached: {why}; does it belong to another user?");
    Failure::new(kind, text)
}
