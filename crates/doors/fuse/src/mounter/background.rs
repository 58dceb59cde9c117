//! Continues in the background: the program is started once more, in a session of its own, and
//! reports over a socket when it is ready.
//!
//! The socket is its standard input, and it inherits no other descriptor. It holds no resource of
//! the caller of the first process then: not its terminal, its pipes, its locks or its working
//! folder.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read, Write},
    net::Shutdown,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::{Command, Stdio},
};

use crate::mounter::descriptors;

/// The first argument by which the program knows that it is the second process.
const ARGUMENT: &str = "__in_background";
/// The end mark of the second process's text.
const READY: u8 = 0;
/// The most bytes of that text.
const SAID_MAX: u64 = 1 << 20;

/// The outcome of the start of the second process.
#[derive(Debug)]
pub enum Begun {
    /// The process is ready, and has sent this text.
    Ready(String),
    /// The process has ended before it was ready.
    Ended {
        /// Its exit code, if no signal has ended it.
        code: Option<i32>,
        /// The text that it has printed to its standard output.
        printed: Vec<u8>,
        /// The reason, for people, if it has sent one.
        why: String,
    },
}

/// The command line, without what is for the second process alone.
pub fn arguments() -> impl Iterator<Item = OsString> {
    let is_ours = is_second();
    std::env::args_os()
        .enumerate()
        .filter(move |(at, _)| !(is_ours && *at == 1))
        .map(|(_, one)| one)
}

/// True if this is the second process.
#[must_use]
pub fn is_second() -> bool {
    std::env::args_os().nth(1).is_some_and(|first| first == ARGUMENT)
}

/// Starts this program once more with the same arguments, and waits until it is ready or has ended.
/// Its standard error is the log. Blocks.
///
/// # Errors
/// When it cannot be started.
pub fn begin(program: &OsStr, log: File) -> io::Result<Begun> {
    descriptors::keep()?;
    let (ours, its) = UnixStream::pair()?;
    let mut command = Command::new(program);
    command.arg(ARGUMENT).args(std::env::args_os().skip(1));
    command.stdin(OwnedFd::from(its)).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn()?;
    // The socket's other end is the child's alone: otherwise its closing could not be seen.
    drop(command);
    let mut said = Vec::new();
    ours.take(SAID_MAX).read_to_end(&mut said)?;
    if said.pop_if(|last| *last == READY).is_some() {
        return Ok(Begun::Ready(String::from_utf8_lossy(&said).into_owned()));
    }
    let mut printed = Vec::new();
    if let Some(stdout) = &mut child.stdout {
        stdout.take(SAID_MAX).read_to_end(&mut printed)?;
    }
    let why = String::from_utf8_lossy(&said).into_owned();
    Ok(Begun::Ended { code: child.wait()?.code(), printed, why })
}

/// Has the second process leave the terminal of the first one. To be called before all else.
///
/// # Errors
/// When the system does not let it go.
pub fn leave() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(())
}

/// Makes the second process leave the folder that the first one was started in, which a user may
/// want to unmount. To be called once all files with possibly relative paths were read.
///
/// # Errors
/// When the system does not let it go.
pub fn leave_folder() -> io::Result<()> {
    rustix::process::chdir("/")?;
    Ok(())
}

/// Reports to the caller of the first process why the second one ends. Others may write to the same
/// log.
///
/// # Errors
/// When the caller does not wait for it any more.
pub fn ended(why: &str) -> io::Result<()> {
    first()?.write_all(why.as_bytes())
}

/// Reports to the caller of the first process that the second one is ready, with a text.
///
/// # Errors
/// When the caller does not wait for it any more.
pub fn ready(said: &str) -> io::Result<()> {
    let mut socket = first()?;
    socket.write_all(said.as_bytes())?;
    socket.write_all(&[READY])?;
    socket.shutdown(Shutdown::Write)
}

/// The socket to the first process.
fn first() -> io::Result<UnixStream> {
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}
