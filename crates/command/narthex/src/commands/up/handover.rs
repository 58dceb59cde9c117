//! The hand-over of the listener to another program in the same process: an update loses no
//! request.
//!
//! The process executes the program anew. So it keeps its number, and a manager of services sees no
//! end. The listener and the lock of the data directory are messages in a socket, which is standard
//! input of the new program. Clients that connect meanwhile wait in the listener's queue.

use std::{
    ffi::OsString,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    net::TcpListener,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::{Command, Stdio},
    time::Duration,
};

use narthex_client::{cli::UpArgs, data_dir::RefusedRestart};
use narthex_model::ErrorKind;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde_json::Value;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::timeout,
};

use super::published::Published;
use crate::{
    Failure, config,
    data_dir::{DaemonLock, DataDir},
    output::harmless,
};

/// The flag of a program that is handed the listener.
const FLAG: &str = "--handed-over";
/// The flag of a program that only finds out if it would start.
const CHECK: &str = "--check";
/// The time in which the next program has to find out if it would start. A keychain may ask.
const PROBE: Duration = Duration::from_secs(30);

/// The lock of the data directory, and the listener of the program before this one.
pub(super) struct Taken {
    pub(super) lock: DaemonLock,
    pub(super) listener: Option<TcpListener>,
}

/// Takes what the program before this one has handed over, or locks the data directory.
///
/// # Errors
/// When another process has the lock, or nothing was handed over.
pub(super) fn take(args: &UpArgs, data: &DataDir) -> Result<Taken, Failure> {
    if !args.handed_over {
        return Ok(Taken { lock: data.lock()?, listener: None });
    }
    let [listener, lock] = receive(io::stdin().as_fd()).map_err(|error| {
        let text =
            format!("{FLAG} is for the daemon itself: standard input has no listener ({error})");
        Failure::new(ErrorKind::Invalid, text)
    })?;
    Ok(Taken { lock: data.handed_lock(lock), listener: Some(listener.into()) })
}

/// All that the next program gets.
pub(super) struct Heir {
    /// The path of this program at its start: an update puts another file there.
    program: OsString,
    listener: OwnedFd,
    lock: OwnedFd,
    requests: Signal,
}

impl Heir {
    /// The heir of a daemon, from now on asked for by SIGUSR2.
    ///
    /// # Errors
    /// When the system has no more handles.
    pub(super) fn of(listener: &impl AsFd, lock: &DaemonLock) -> Result<Self, Failure> {
        Ok(Self {
            program: config::program(),
            listener: listener.as_fd().try_clone_to_owned()?,
            lock: lock.share()?,
            requests: signal(SignalKind::user_defined2())?,
        })
    }

    /// Waits for a request to hand over. If the next program would not start, the request is
    /// refused with the reason, and the daemon serves on.
    ///
    /// # Errors
    /// When a refusal cannot be published.
    pub(super) async fn is_due(&mut self, published: &Published<'_>) -> Result<(), Failure> {
        while self.requests.recv().await.is_some() {
            let Err(why) = self.probe().await else { return Ok(()) };
            let reason = format!("{} does not start: {why}", self.program.display());
            tracing::error!("the daemon is not restarted: {reason}");
            published.change(|state| {
                let number = state.refused.as_ref().map_or(1, |refused| refused.number + 1);
                state.refused = Some(RefusedRestart { number, reason });
            })?;
        }
        std::future::pending().await
    }

    /// Has the next program do its start as far as it can beside this one, with the same listener
    /// and lock.
    async fn probe(&self) -> Result<(), String> {
        let own = arguments().filter(|one| one != "--json" && one != "--quiet");
        let further = [CHECK, "--json"].map(OsString::from);
        let command = self.command(own.chain(further)).map_err(|failure| failure.message)?;
        let mut command = tokio::process::Command::from(command);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        match timeout(PROBE, command.output()).await {
            Ok(Ok(done)) if done.status.success() => Ok(()),
            Ok(Ok(done)) => {
                let said: Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
                Err(match said["error"]["message"].as_str() {
                    Some(message) => message.to_owned(),
                    None => {
                        let said = harmless(String::from_utf8_lossy(&done.stderr).trim());
                        format!("{} {said}", done.status)
                    }
                })
            }
            Ok(Err(error)) => Err(error.to_string()),
            Err(_elapsed) => Err(format!("it takes more than {} s", PROBE.as_secs())),
        }
    }

    /// The command of the next program, with the arguments of this one.
    ///
    /// # Errors
    /// When the listener cannot be put into a message.
    pub(super) fn successor(&self) -> Result<Command, Failure> {
        self.command(arguments())
    }

    /// The next program with these arguments. Standard input has the listener and the lock.
    fn command(&self, arguments: impl Iterator<Item = OsString>) -> Result<Command, Failure> {
        let (ours, theirs) = UnixStream::pair()?;
        send(&ours, [self.listener.as_fd(), self.lock.as_fd()])?;
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(OwnedFd::from(theirs));
        Ok(command)
    }
}

fn arguments() -> impl Iterator<Item = OsString> {
    let own = std::env::args_os().skip(1).filter(|argument| argument != FLAG);
    own.chain([FLAG.into()])
}

/// Sends both handles with one byte, since a message of handles alone is none.
fn send(socket: &UnixStream, handles: [BorrowedFd<'_>; 2]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&handles));
    sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives both handles.
fn receive(socket: BorrowedFd<'_>) -> io::Result<[OwnedFd; 2]> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let handles: Vec<OwnedFd> = control
        .drain()
        .flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(handles) => handles.collect(),
            _ => Vec::new(),
        })
        .collect();
    let count = handles.len();
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, format!("{count} handles, not 2"));
    handles.try_into().map_err(|_handles| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_and_a_lock_reach_the_next_program() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        let lock = data.lock().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let shared = lock.share().unwrap();
        send(&ours, [listener.as_fd(), shared.as_fd()]).unwrap();
        drop((ours, listener, shared, lock));
        // Nothing is free meanwhile.
        assert!(data.is_locked().unwrap());
        TcpListener::bind(address).unwrap_err();
        let [listener, handed] = receive(theirs.as_fd()).unwrap();
        let lock = data.handed_lock(handed);
        assert_eq!(TcpListener::from(listener).local_addr().unwrap(), address);
        assert!(data.is_locked().unwrap());
        drop(lock);
        assert!(!data.is_locked().unwrap());
        receive(theirs.as_fd()).unwrap_err();
    }
}
