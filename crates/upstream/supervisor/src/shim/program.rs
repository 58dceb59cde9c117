//! The shim as a program: one thread, which starts the server and waits for its end.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use super::leader::{self, Fault};
use super::message::{self, Report};
use super::tree;
use crate::confine::temporary;

/// The first pause before remaining processes are asked again; it doubles each time.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest pause between looks for processes to kill.
const KILL_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Serves the daemon at the other end of stdin until no process is left of the server's tree.
pub(super) fn run() -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    rustix::thread::set_name(c"narthex-shim")?;
    let wakeups = catch_signals()?;
    let Some((order, pipes)) = message::receive_order(&socket)? else { return Ok(()) };
    // Only copies are left of the daemon's descriptors; stdin would hold its socket open.
    rustix::stdio::dup2_stdin(fs_err::File::open("/dev/null")?.file())?;
    let temporary = order.temporary.clone().map(PathBuf::from);
    match leader::start(order, pipes) {
        Ok(leader) => {
            let id = leader.as_raw_nonzero().get();
            let (leader, phase) = (Some(leader), Phase::Running);
            let mut watch = Watch { socket, wakeups, leader, phase, temporary };
            watch.report(&Report::Started { leader: id });
            watch.until_nobody_is_left()
        }
        // The daemon removes the folder for temporary files then.
        Err(Fault::Unconfined(text)) => message::report(&socket, &Report::Unconfined { text }),
        Err(Fault::System(error)) => {
            let errno = error.raw_os_error().unwrap_or(rustix::io::Errno::IO.raw_os_error());
            message::report(&socket, &Report::Refused { errno })
        }
    }
}

/// Makes ended children known, and the shim deaf to signals that end other programs: it ends after
/// its tree, at the daemon's word. Handlers, unlike ignored signals, are not passed on to the
/// server.
fn catch_signals() -> io::Result<UnixStream> {
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let (wakeups, signals) = UnixStream::pair()?;
    wakeups.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGCHLD, signals)?;
    Ok(wakeups)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No process was asked to end.
    Running,
    /// All processes were asked to end, and are asked again after this pause.
    Terminating(Duration),
    /// All processes were killed, and the tree is read again after this pause.
    Killing(Duration),
}

struct Watch {
    socket: UnixStream,
    wakeups: UnixStream,
    /// The leader, until the shim has reaped it.
    leader: Option<Pid>,
    phase: Phase,
    /// The tree's folder for temporary files, if the tree has one.
    temporary: Option<PathBuf>,
}

impl Watch {
    fn until_nobody_is_left(&mut self) -> io::Result<()> {
        loop {
            let reaped = tree::reap(self.leader);
            if let Some(status) = reaped.leader {
                self.leader = None;
                let others = !reaped.is_empty;
                self.report(&Report::Ended { status: status.as_raw(), others });
            }
            if reaped.is_empty {
                if let Some(folder) = self.temporary.take() {
                    temporary::remove(&folder);
                }
                self.report(&Report::Gone);
                return Ok(());
            }
            if let Phase::Killing(_) = self.phase {
                tree::kill();
            }
            self.wait()?;
        }
    }

    /// Waits for an ended child, for the daemon, or for the phase's pause.
    fn wait(&mut self) -> io::Result<()> {
        let (wakeups, socket) = (self.wakeups.as_fd(), self.socket.as_fd());
        let mut sources = vec![PollFd::from_borrowed_fd(wakeups, PollFlags::IN)];
        // After its end there is nothing more to hear of the daemon.
        if !matches!(self.phase, Phase::Killing(_)) {
            sources.push(PollFd::from_borrowed_fd(socket, PollFlags::IN));
        }
        let pause = match self.phase {
            Phase::Running => None,
            Phase::Terminating(pause) | Phase::Killing(pause) => Some(pause),
        };
        let limit = pause.and_then(|pause| Timespec::try_from(pause).ok());
        let ready = match poll(&mut sources, limit.as_ref()) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            ready => ready?,
        };
        let has_word = sources.get(1).is_some_and(|source| !source.revents().is_empty());
        if ready == 0 {
            self.look_again();
        }
        if has_word {
            self.listen();
        }
        let mut wakeups = &self.wakeups;
        // An empty read is as good: the next look reaps the ended processes.
        drop(wakeups.read(&mut [0; 64]));
        Ok(())
    }

    /// A pause has passed. Processes that the leader left behind are asked again, ever more rarely:
    /// a shell's child that is not yet past its exec loses a signal to its parent's handler.
    fn look_again(&mut self) {
        self.phase = match self.phase {
            Phase::Running => Phase::Running,
            Phase::Terminating(pause) => {
                if self.leader.is_none() {
                    tree::terminate(None);
                }
                Phase::Terminating(pause.saturating_mul(2))
            }
            Phase::Killing(pause) => Phase::Killing((pause * 2).min(KILL_PAUSE_MAX)),
        };
    }

    fn listen(&mut self) {
        let mut socket = &self.socket;
        self.phase = match socket.read(&mut [0; 16]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.phase,
            // The daemon wants it, or is dead.
            Ok(0) | Err(_) => Phase::Killing(PAUSE_MIN),
            Ok(_) => {
                tree::terminate(self.leader);
                Phase::Terminating(PAUSE_MIN)
            }
        };
    }

    fn report(&self, report: &Report) {
        // A daemon that does not take the report is dead: its end of the socket is then closed.
        drop(message::report(&self.socket, report));
    }
}
