//! A second process, which frees the folder when the first one was killed.
//!
//! It reads from a pipe which mount it is to watch over, and then waits for the pipe's end. That
//! end comes with the end of the first process, for any reason. It has a process group of its own,
//! so that a signal to the first one's does not reach it.

use std::{
    ffi::OsString,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, Command, ExitCode, Stdio},
};

use crate::mounter::descriptors;

/// The first argument by which the program knows that it is to watch.
const ARGUMENT: &str = "__watch_mount";

/// Watches over a mount if this process was started to do so; `Some` is what `main` must return
/// then. To be called at the very start of `main`.
#[must_use]
pub fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    // No reader is left for the reason.
    Some(watch(io::stdin().lock()).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
}

/// Waits for the end of `told`, and takes the mount away, at its present place, unless `told`
/// reports that this is done. Any other mount at the folder stays.
fn watch(told: impl Read) -> io::Result<()> {
    let mut told = BufReader::new(told);
    let mut device = String::new();
    told.read_line(&mut device)?;
    let mut end = Vec::new();
    told.read_to_end(&mut end)?;
    let device = device.trim();
    match end.is_empty() {
        true => crate::free(device),
        false => Ok(()),
    }
}

/// The second process, as the first one has it.
#[derive(Debug)]
pub(crate) struct Watcher {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Watcher {
    /// Starts it. To be called before anything is mounted, so that it holds nothing of that.
    pub(crate) fn start(program: OsString) -> io::Result<Self> {
        descriptors::keep()?;
        let mut child = Command::new(program)
            // The run's token may be in it, which is no business of the second process.
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .arg(ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            .process_group(0)
            .spawn()?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }

    /// Sends the device of the mount to watch.
    pub(crate) fn watch_over(&mut self, device: &str) -> io::Result<()> {
        match &mut self.pipe {
            Some(pipe) => writeln!(pipe, "{device}"),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Reports that the folder is free, and waits for the watcher's end. Blocks for a moment.
    pub(crate) fn dismiss(&mut self) -> io::Result<()> {
        if let Some(mut pipe) = self.pipe.take() {
            // The watcher may have been killed: then it cannot be notified.
            if let Err(error) = pipe.write_all(b"free\n") {
                tracing::debug!(%error, "the watcher of the mount had ended before");
            }
        }
        self.child.wait().map(drop)
    }
}

impl Drop for Watcher {
    /// The watcher takes away the mount that is left then.
    fn drop(&mut self) {
        self.pipe = None;
        if let Err(error) = self.child.wait() {
            tracing::debug!(%error, "the watcher of a mount could not be awaited");
        }
    }
}
