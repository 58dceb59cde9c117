//! Children for tests, and eyes to see whether they are gone.

use std::path::Path;
use std::time::Duration;

use narthex_supervisor::{BaseEnvironment, ChildIo, Process, ProcessSpec, Shim};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

/// No wait in these tests may need longer, on however busy a machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// A leader and a child of its, both deaf to SIGTERM.
pub(crate) const DEAF: &str = "trap '' TERM; sleep 1000 & echo ready; wait";
/// A leader that ends at once and leaves a process behind.
pub(crate) const LEAVER: &str = "sleep 1000 >/dev/null 2>&1 & echo ready; exit 3";
/// As `LEAVER`, but the process left behind ignores SIGTERM.
pub(crate) const DEAF_LEAVER: &str =
    "trap '' TERM; sleep 1000 >/dev/null 2>&1 & echo ready; exit 3";
/// Ends when asked.
pub(crate) const POLITE: &str = "echo ready; exec sleep 1000";

pub(crate) fn shell(script: &str) -> ProcessSpec {
    let mut spec = ProcessSpec::new("sh", BaseEnvironment::from_process());
    spec.args = vec!["-c".to_owned(), script.to_owned()];
    spec.shim = shim();
    spec
}

/// The shim of this crate: the tests' own `main` cannot be one.
pub(crate) fn shim() -> Shim {
    Shim::Program(env!("CARGO_BIN_EXE_narthex-shim").into())
}

/// As `shell`, with only the process group to control the child.
pub(crate) fn unshimmed(script: &str) -> ProcessSpec {
    ProcessSpec { shim: Shim::Absent, ..shell(script) }
}

/// Starts a script and waits for the `ready` on its stdout.
pub(crate) async fn start(spec: ProcessSpec, tracker: &TaskTracker) -> (Process, ChildIo) {
    let (process, mut io) = Process::spawn(spec, tracker).await.unwrap();
    let mut line = String::new();
    in_time(BufReader::new(&mut io.stdout).read_line(&mut line)).await.unwrap();
    assert_eq!(line, "ready\n");
    (process, io)
}

pub(crate) async fn read_all(io: &mut ChildIo) -> String {
    let mut text = String::new();
    in_time(io.stdout.read_to_string(&mut text)).await.unwrap();
    text
}

pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    timeout(DEADLINE, future).await.expect("this must not take so long")
}

/// Waits for all tasks, so that every child is reaped.
pub(crate) async fn drain(tracker: &TaskTracker) {
    tracker.close();
    in_time(tracker.wait()).await;
}

/// A named pipe that scripts hold open (`exec 3>path`). Its end proves that all holders are gone.
pub(crate) struct Witness {
    pipe: BufReader<pipe::Receiver>,
}

impl Witness {
    pub(crate) fn new(path: &Path) -> Self {
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
        let pipe = pipe::OpenOptions::new().open_receiver(path).unwrap();
        Self { pipe: BufReader::new(pipe) }
    }

    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        in_time(self.pipe.read_line(&mut line)).await.unwrap();
        line
    }

    pub(crate) async fn all_gone(mut self) {
        let mut rest = String::new();
        in_time(self.pipe.read_to_string(&mut rest)).await.unwrap();
    }
}

/// Processes of `group` that live, or that this process has not reaped.
pub(crate) fn members(group: u32) -> usize {
    let own = std::process::id().to_string();
    let processes = fs_err::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|entry| fs_err::read(entry.path().join("stat")).ok());
    stats
        .filter(|stat| {
            let stat = String::from_utf8_lossy(stat);
            let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
            fields[2] == group.to_string() && (fields[0] != "Z" || fields[1] == own)
        })
        .count()
}
