//! Starts children, all from one thread that lives as long as the daemon.
//!
//! The thread matters: a child's parent-death signal fires when the thread that forked it ends, and
//! worker threads of a runtime may end at any time.

use std::io;
use std::panic::AssertUnwindSafe;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::Pid;
use tokio::net::unix::pipe;
use tokio::process::{ChildStderr, Command};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::group::Group;
use crate::hold::Hold;
use crate::parent_death::kill_with_parent;
use crate::watch::Watch;
use crate::{ChildIo, ConfinementFault, ProcessSpec, SpawnError};

/// Starts waiting in line; a caller beyond waits for room.
const QUEUE: usize = 64;

/// A running child. Dropping the whole value kills its tree: the fields are in order, since the
/// group's id is only valid until the child is reaped.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) owner: HoldOwner,
    pub(crate) watch: Watch,
    pub(crate) io: ChildIo,
    pub(crate) stderr: ChildStderr,
}

/// The owner of a child: dropping it kills all that is left of the child.
#[derive(Debug)]
pub(crate) struct HoldOwner(pub(crate) Arc<Hold>);

impl Drop for HoldOwner {
    fn drop(&mut self) {
        self.0.kill();
        self.0.close();
    }
}

type Job = Box<dyn FnOnce() + Send>;

static QUEUE_TO_THREAD: Mutex<Option<mpsc::Sender<Job>>> = Mutex::new(None);

/// Starts the child of `spec`, below a shim if there is one, otherwise in its own group.
pub(crate) async fn start(spec: &ProcessSpec) -> Result<Started, SpawnError> {
    check(spec)?;
    #[cfg(target_os = "linux")]
    if let Some(program) = spec.shim.program() {
        return crate::shimmed::start(spec, program).await;
    }
    if spec.confinement.as_ref().is_some_and(|asked| !asked.is_none()) {
        return Err(SpawnError::unconfined(spec, ConfinementFault::NoShim));
    }
    let spec = spec.clone();
    let command = spec.command.clone();
    let job = move || fork(&spec).map_err(|source| SpawnError::from_io(source, &spec));
    on_thread(&command, job).await?
}

/// Does `job` on the thread; when the caller gave up meanwhile, its result is dropped there.
pub(crate) async fn on_thread<T: Send + 'static>(
    command: &str,
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SpawnError> {
    let runtime = Handle::current();
    let (reply, answer) = oneshot::channel();
    let job: Job = Box::new(move || {
        let _entered = runtime.enter();
        drop(reply.send(job()));
    });
    let queue =
        queue().map_err(|source| SpawnError::Exhausted { command: command.to_owned(), source })?;
    queue.send(job).await.map_err(|_closed| SpawnError::SpawnerGone)?;
    answer.await.map_err(|_dropped| SpawnError::SpawnerGone)
}

fn fork(spec: &ProcessSpec) -> io::Result<Started> {
    let mut child = build(spec).spawn()?;
    let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let id = id.ok_or_else(|| io::Error::other("the new process has no id"))?;
    let owner = HoldOwner(Arc::new(Hold::Group(Group::new(id))));
    let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).expect("both are piped");
    let stderr = child.stderr.take().expect("stderr is piped");
    let stdin = pipe::Sender::from_owned_fd(stdin.into_owned_fd()?)?;
    let io = ChildIo { stdin, stdout };
    Ok(Started { owner, watch: Watch::Child(child), io, stderr })
}

fn build(spec: &ProcessSpec) -> Command {
    let mut command = Command::new(&spec.command);
    command.args(&spec.args).env_clear().envs(spec.base_environment.iter());
    command.envs(spec.env.iter().map(|(name, value)| (name, value)));
    if let Some(directory) = &spec.working_dir {
        command.current_dir(directory);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    kill_with_parent(&mut command);
    command
}

/// Refuses texts that the operating system could not pass on, and names their place.
fn check(spec: &ProcessSpec) -> Result<(), SpawnError> {
    let refuse_zero = |text: &str, place: &dyn Fn() -> String| match text.contains('\0') {
        true => Err(SpawnError::ZeroByte { place: place() }),
        false => Ok(()),
    };
    if spec.command.is_empty() {
        return Err(SpawnError::EmptyCommand);
    }
    refuse_zero(&spec.command, &|| "the command".to_owned())?;
    for (index, argument) in spec.args.iter().enumerate() {
        refuse_zero(argument, &|| format!("argument {}", index + 1))?;
    }
    for (name, value) in &spec.env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(SpawnError::VariableName { name: name.replace('\0', "\\0") });
        }
        refuse_zero(value, &|| format!("the value of `{name}`"))?;
    }
    Ok(())
}

/// The way to the thread, which the first caller starts.
fn queue() -> io::Result<mpsc::Sender<Job>> {
    let mut slot = QUEUE_TO_THREAD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(queue) = slot.as_ref() {
        return Ok(queue.clone());
    }
    let (queue, jobs) = mpsc::channel(QUEUE);
    std::thread::Builder::new().name("narthex-spawner".to_owned()).spawn(move || serve(jobs))?;
    Ok(slot.insert(queue).clone())
}

/// Runs until the process ends: the static sender never goes away.
fn serve(mut jobs: mpsc::Receiver<Job>) {
    while let Some(job) = jobs.blocking_recv() {
        // If a panic ended this thread, the kernel would kill every child of the daemon.
        if std::panic::catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("starting a process panicked");
        }
    }
}
