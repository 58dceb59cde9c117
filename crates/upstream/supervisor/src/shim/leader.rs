//! Starts the server, the leader of all processes below the shim.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal};

use super::message::{Order, Pipes};
use crate::confine::apply::Ready;

/// The reason for which a server was not started.
pub(super) enum Fault {
    /// The system's error.
    System(io::Error),
    /// The server could not be confined as requested.
    Unconfined(String),
}

/// Starts the server; the shim's copies of the pipes are closed afterwards.
///
/// The server leads its own session: no terminal of the daemon reaches it, and the session
/// identifies its members if the shim is killed.
pub(super) fn start(order: Order, pipes: Pipes) -> Result<Pid, Fault> {
    let working_dir = order.working_dir.as_deref();
    let ready = order.confinement.as_ref().map(|plan| Ready::make(plan, working_dir));
    let mut ready = ready.transpose().map_err(Fault::Unconfined)?;
    let [stdin, stdout, stderr] = pipes.map(Stdio::from);
    let mut command = match ready.as_mut().and_then(Ready::wrapper) {
        Some((wrapper, words)) => {
            let mut command = Command::new(wrapper);
            command.args(words).arg(order.command);
            command
        }
        None => Command::new(order.command),
    };
    command.args(order.args).env_clear().envs(order.env);
    if let Some(directory) = order.working_dir {
        command.current_dir(directory);
    }
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    before_exec(&mut command, ready);
    let child = command.spawn().map_err(Fault::System)?;
    Pid::from_raw(child.id().cast_signed())
        .ok_or_else(|| Fault::System(io::Error::other("the new process has no id")))
}

#[expect(unsafe_code, reason = "a session can only be made between fork and exec")]
fn before_exec(command: &mut Command, mut confinement: Option<Ready>) {
    let shim = rustix::process::getpid();
    let prepare = move || {
        rustix::process::setsid()?;
        // Should the shim be killed, no other process would end the server.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        if rustix::process::getppid() != Some(shim) {
            return Err(rustix::io::Errno::SRCH.into());
        }
        confinement.as_mut().map_or(Ok(()), Ready::put_on)
    };
    // SAFETY: only async-signal-safe work is allowed after the fork of a process with threads. The
    // shim has one thread, so no lock can be held by another: the closure may even allocate.
    unsafe {
        command.pre_exec(prepare);
    }
}
