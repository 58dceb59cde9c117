//! The daemon's side of a shim: its start, orders to it, and its reports (Linux).

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::sleep;

use crate::confine::{Abilities, ConfinementFault, Plan, temporary};
use crate::hold::Hold;
use crate::proc;
use crate::shim::ARGUMENT;
use crate::shim::message::{Order, Report, TERMINATE, send_pipes};
use crate::spawner::{self, HoldOwner, Started};
use crate::watch::Watch;
use crate::{ChildIo, ProcessSpec, SpawnError};

/// The pause between looks at a session that has lost its shim.
const SWEEP_PAUSE: Duration = Duration::from_millis(10);

/// The way to one shim. Its end, also by the daemon's death, is the order to kill.
#[derive(Debug)]
pub(crate) struct Orders {
    leader: AtomicU32,
    socket: Mutex<Option<UnixStream>>,
}

impl Orders {
    fn new(socket: UnixStream) -> Self {
        Self { leader: AtomicU32::new(0), socket: Mutex::new(Some(socket)) }
    }

    pub(crate) fn leader(&self) -> u32 {
        self.leader.load(Ordering::Acquire)
    }

    pub(crate) fn terminate(&self) {
        // An error means that the shim is gone, as its missing reports show, too.
        self.with(|mut socket| drop(socket.write(&TERMINATE)));
    }

    pub(crate) fn kill(&self) {
        self.with(|socket| drop(socket.shutdown(Shutdown::Write)));
    }

    pub(crate) fn close(&self) {
        drop(self.socket.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn with(&self, order: impl FnOnce(&UnixStream)) {
        if let Some(socket) = &*self.socket.lock().unwrap_or_else(PoisonError::into_inner) {
            order(socket);
        }
    }
}

/// Starts a shim, and the child of `spec` below it.
pub(crate) async fn start(spec: &ProcessSpec, program: PathBuf) -> Result<Started, SpawnError> {
    let mut plan = plan(spec)?;
    let temporary = own_temporary(spec, plan.as_mut())?;
    let (ours, theirs) = UnixStream::pair().map_err(|source| no_room(spec, source))?;
    let socket = ours.try_clone().map_err(|source| no_room(spec, source))?;
    // From now on, dropping the owner ends the shim and all processes below it.
    let owner = HoldOwner(Arc::new(Hold::Shim(Orders::new(ours))));
    let shim = launch(spec, program.clone(), theirs).await?;
    let mut shimmed = Shimmed::new(shim, socket).map_err(|source| no_room(spec, source))?;
    let order = order(spec, plan, temporary.as_ref());
    shimmed.temporary = temporary;
    let pipes = Pipes::new().map_err(|source| no_room(spec, source))?;
    let gone = |source| SpawnError::ShimGone {
        command: spec.command.clone(),
        program: program.clone(),
        source,
    };
    let (io, stderr) = shimmed.order(order, pipes).await.map_err(gone)?;
    match shimmed.next().await {
        Some(Report::Started { leader }) => {
            shimmed.leader = leader;
            if let Hold::Shim(orders) = &*owner.0 {
                orders.leader.store(leader.unsigned_abs(), Ordering::Release);
            }
            Ok(Started { owner, watch: Watch::Shim(Box::new(shimmed)), io, stderr })
        }
        Some(Report::Refused { errno }) => {
            Err(SpawnError::from_io(io::Error::from_raw_os_error(errno), spec))
        }
        Some(Report::Unconfined { text }) => {
            Err(SpawnError::unconfined(spec, ConfinementFault::Failed { text }))
        }
        Some(Report::Ended { .. } | Report::Gone) | None => {
            Err(gone(io::ErrorKind::UnexpectedEof.into()))
        }
    }
}

fn no_room(spec: &ProcessSpec, source: io::Error) -> SpawnError {
    SpawnError::Exhausted { command: spec.command.clone(), source }
}

/// Starts the shim itself. It sees nothing of any environment, nor of the child's secrets in its
/// arguments: these go through the socket.
async fn launch(
    spec: &ProcessSpec,
    program: PathBuf,
    socket: UnixStream,
) -> Result<Child, SpawnError> {
    let name = spec.server_name.clone().unwrap_or_default();
    let job = move || {
        let mut command = Command::new(&program);
        command.arg0("narthex").arg(ARGUMENT).arg(name.replace('\0', "")).env_clear();
        // The allocator of the program narthex takes memory in pieces that suit a daemon.
        command.env("MIMALLOC_ARENA_EAGER_COMMIT", "0");
        command.stdin(OwnedFd::from(socket)).stdout(Stdio::null()).stderr(Stdio::null());
        // The shim ends by itself, after its tree; killing it first would free the tree.
        command.process_group(0).kill_on_drop(false);
        command.spawn().map_err(|source| (program, source))
    };
    let started = spawner::on_thread(&spec.command, job).await?;
    started.map_err(|(program, source)| SpawnError::from_shim(source, program, spec))
}

/// The pipes of one child, both ends.
struct Pipes {
    ours: (ChildIo, ChildStderr),
    theirs: [OwnedFd; 3],
}

impl Pipes {
    fn new() -> io::Result<Self> {
        let (stdin, to_stdin) = io::pipe()?;
        let (from_stdout, stdout) = io::pipe()?;
        let (from_stderr, stderr) = io::pipe()?;
        let stdio = ChildIo {
            stdin: pipe::Sender::from_owned_fd(to_stdin.into())?,
            stdout: ChildStdout::from_std(OwnedFd::from(from_stdout).into())?,
        };
        let from_stderr = ChildStderr::from_std(OwnedFd::from(from_stderr).into())?;
        Ok(Self {
            ours: (stdio, from_stderr),
            theirs: [stdin.into(), stdout.into(), stderr.into()],
        })
    }
}

/// The state of the tree below a shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// The leader lives.
    Running,
    /// The leader has ended. `others` is true if other processes of the tree run.
    Ended { others: bool },
    /// No process is left.
    Gone,
    /// The shim was killed, and its leader with it. Other processes of the tree may still run.
    Lost,
}

/// A shim, and its reports.
#[derive(Debug)]
pub(crate) struct Shimmed {
    shim: Child,
    socket: Lines<BufReader<tokio::net::UnixStream>>,
    leader: i32,
    standing: Standing,
    status: Option<ExitStatus>,
    /// The tree's folder for temporary files. The shim removes it; if the shim cannot, dropping
    /// this value does.
    temporary: Option<TempDir>,
}

impl Shimmed {
    fn new(shim: Child, socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let socket = BufReader::new(tokio::net::UnixStream::from_std(socket)?).lines();
        Ok(Self {
            shim,
            socket,
            leader: 0,
            standing: Standing::Running,
            status: None,
            temporary: None,
        })
    }

    /// Sends the shim the order to start.
    async fn order(&mut self, order: Order, pipes: Pipes) -> io::Result<(ChildIo, ChildStderr)> {
        let text = serde_json::to_vec(&order)?;
        let length = u32::try_from(text.len()).map_err(io::Error::other)?;
        let socket = self.socket.get_mut().get_mut();
        let [stdin, stdout, stderr] = &pipes.theirs;
        send_pipes(&*socket, [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()], length)?;
        socket.write_all(&text).await?;
        Ok(pipes.ours)
    }

    /// The next report; `None` when the shim is gone. Nothing is lost when this is not waited for
    /// to its end.
    async fn next(&mut self) -> Option<Report> {
        let line = self.socket.next_line().await.ok().flatten()?;
        serde_json::from_str(&line).ok()
    }

    async fn advance(&mut self) {
        self.standing = match self.next().await {
            Some(Report::Ended { status, others }) => {
                self.status = Some(ExitStatus::from_raw(status));
                Standing::Ended { others }
            }
            Some(Report::Gone) => Standing::Gone,
            Some(Report::Started { .. } | Report::Refused { .. } | Report::Unconfined { .. }) => {
                self.standing
            }
            None => Standing::Lost,
        };
    }

    pub(crate) async fn leader_ended(&mut self) {
        while self.standing == Standing::Running {
            self.advance().await;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self.standing, Standing::Ended { others: false } | Standing::Gone)
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.standing == Standing::Lost
    }

    pub(crate) fn status(&self) -> Option<ExitStatus> {
        self.status
    }

    /// Waits until no process of the tree lives and the shim is reaped.
    pub(crate) async fn gone(&mut self) {
        while !matches!(self.standing, Standing::Gone | Standing::Lost) {
            self.advance().await;
        }
        if self.is_lost() {
            tracing::warn!(
                process.id = self.leader,
                "the shim of a process was killed; the other processes of its session are killed \
                 too"
            );
            self.sweep().await;
            if let Some(folder) = &self.temporary {
                temporary::remove(folder.path());
            }
        } else if let Some(folder) = self.temporary.take() {
            // The shim has removed it by now.
            drop(folder.keep());
        }
        if let Err(error) = self.shim.wait().await {
            tracing::warn!(process.id = self.leader, %error, "could not reap a shim");
        }
    }

    /// Kills the processes that stayed in the leader's session. Without a shim, only a process that
    /// made its own session is not found.
    async fn sweep(&self) {
        loop {
            let all = proc::processes().unwrap_or_default();
            let left = all.iter().filter(|stat| stat.session == self.leader && !stat.is_dead);
            let left: Vec<_> = left.filter_map(|stat| proc::pid(stat.id)).collect();
            if left.is_empty() {
                return;
            }
            for id in left {
                // A remaining process is found by the next look.
                rustix::process::kill_process(id, Signal::KILL).ok();
            }
            sleep(SWEEP_PAUSE).await;
        }
    }
}

/// The child's confinement, checked against the system's abilities.
fn plan(spec: &ProcessSpec) -> Result<Option<Plan>, SpawnError> {
    let Some(asked) = spec.confinement.as_ref().filter(|asked| !asked.is_none()) else {
        return Ok(None);
    };
    let file = SpawnError::find(spec)?;
    let abilities = Abilities::probe(spec.search_path().as_deref());
    let plan = Plan::make(asked, spec, Some(&file), &abilities);
    plan.map(Some).map_err(|fault| SpawnError::unconfined(spec, fault))
}

/// Makes the folder for temporary files of a program that gets its own.
fn own_temporary(
    spec: &ProcessSpec,
    plan: Option<&mut Plan>,
) -> Result<Option<TempDir>, SpawnError> {
    let Some(place) = plan.and_then(Plan::own_temporary) else { return Ok(None) };
    let made = temporary::make(spec).map_err(|fault| SpawnError::unconfined(spec, fault))?;
    *place = made.path().as_os_str().to_owned();
    Ok(Some(made))
}

fn order(spec: &ProcessSpec, confinement: Option<Plan>, temporary: Option<&TempDir>) -> Order {
    let own = temporary.map(|folder| folder.path().as_os_str().to_owned());
    let own_variable = own.clone().map(|folder| (temporary::VARIABLE.into(), folder));
    let base = spec.base_environment.iter().map(|(name, value)| (name.into(), value.into()));
    let declared = spec.env.iter().map(|(name, value)| (name.into(), value.into()));
    // The last of a name counts.
    let env: Vec<(OsString, OsString)> = base.chain(own_variable).chain(declared).collect();
    Order {
        command: spec.command.clone().into(),
        args: spec.args.iter().map(OsString::from).collect(),
        env,
        working_dir: spec.working_dir.clone().map(PathBuf::into_os_string),
        confinement,
        temporary: own,
    }
}
