//! Whole trees: all processes that a server starts end with it, whatever they do to escape (D22).

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use narthex_supervisor::{ExitInfo, Process, ProcessSpec, Shim, SpawnError};
use rustix::process::{Pid, Signal, getpid, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::task::TaskTracker;

use crate::support::{DEAF, LEAVER, POLITE, Witness, drain, in_time, shell, start};

/// Deaf to SIGTERM; holds the witness's pipe.
const HOLDER: &str = "trap \"\" TERM; exec 3>witness; echo up >&3; exec sleep 1000";

/// Starts a process that leaves group and session, and one more behind two forks.
fn runaways(after: &str) -> String {
    format!(
        "setsid sh -c '{HOLDER}' </dev/null >/dev/null 2>&1 & \
         (setsid sh -c '(setsid sh -c \"$0\" &) & exit 0' '{HOLDER}' </dev/null >/dev/null 2>&1 &) \
         {after}"
    )
}

struct Scene {
    directory: tempfile::TempDir,
    witness: Witness,
    tracker: TaskTracker,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let witness = Witness::new(&directory.path().join("witness"));
        Self { directory, witness, tracker: TaskTracker::new() }
    }

    fn spec(&self, script: &str) -> ProcessSpec {
        let mut spec = shell(script);
        spec.working_dir = Some(self.directory.path().to_owned());
        spec.stop_grace = Duration::from_millis(100);
        spec
    }

    /// Waits until `count` holders hold the pipe.
    async fn held_by(&mut self, count: usize) {
        for _ in 0..count {
            assert_eq!(self.witness.line().await, "up\n");
        }
    }
}

fn stat(id: u32) -> Vec<String> {
    let stat = fs_err::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_ascii_whitespace().map(str::to_owned).collect()
}

/// The shim of a process is its leader's parent.
pub(crate) fn shim_of(process: &Process) -> Pid {
    Pid::from_raw(stat(process.id())[1].parse().unwrap()).unwrap()
}

#[tokio::test]
async fn d22_a_stop_reaches_processes_that_left_group_and_session() {
    let mut scene = Scene::new();
    let spec = scene.spec(&runaways("; echo ready; exec sleep 1000"));
    let (process, _io) = start(spec, &scene.tracker).await;
    scene.held_by(2).await;
    let exit = in_time(process.stop()).await;
    assert!(exit.forced, "the runaways are deaf");
    scene.witness.all_gone().await;
}

/// R-E18: a tree that ends when it is asked to does not count as forced.
#[tokio::test]
async fn r_e18_polite_runaways_end_without_force() {
    let mut scene = Scene::new();
    let script = "setsid sh -c 'exec 3>witness; echo up >&3; exec sleep 1000' & \
                  echo ready; exec sleep 1000";
    let mut spec = scene.spec(script);
    spec.stop_grace = Duration::from_secs(20);
    let (process, _io) = start(spec, &scene.tracker).await;
    scene.held_by(1).await;
    let exit = in_time(process.stop()).await;
    assert_eq!(exit, ExitInfo { code: None, signal: Some(15), forced: false });
    scene.witness.all_gone().await;
}

#[tokio::test]
async fn d22_runaways_end_when_the_leader_does() {
    let mut scene = Scene::new();
    let spec = scene.spec(&runaways("; read go; exit 3"));
    let (process, mut io) = Process::spawn(spec, &scene.tracker).await.unwrap();
    scene.held_by(2).await;
    io.stdin.write_all(b"go\n").await.unwrap();
    let exit = in_time(process.exited()).await;
    assert_eq!(exit, ExitInfo { code: Some(3), signal: None, forced: true });
    scene.witness.all_gone().await;
}

#[tokio::test]
async fn d22_a_dropped_handle_kills_runaways_too() {
    let mut scene = Scene::new();
    let spec = scene.spec(&runaways("; echo ready; exec sleep 1000"));
    let (process, _io) = start(spec, &scene.tracker).await;
    scene.held_by(2).await;
    let exited = process.exited();
    drop(process);
    assert!(in_time(exited).await.forced);
    scene.witness.all_gone().await;
}

/// Each of these lives for a moment only: it starts the next and ends.
#[tokio::test]
async fn d22_a_process_that_forks_and_ends_repeatedly_is_killed() {
    let scene = Scene::new();
    let comet = scene.directory.path().join("comet");
    fs_err::write(&comet, "trap '' TERM\nsh ./comet & exit 0\n").unwrap();
    let spec =
        scene.spec("trap '' TERM; exec 3>witness; setsid sh ./comet & echo ready; exec sleep 1000");
    let (process, _io) = start(spec, &scene.tracker).await;
    assert!(in_time(process.stop()).await.forced);
    scene.witness.all_gone().await;
}

/// R-M19.
#[tokio::test]
async fn d22_many_processes_that_restart_each_other_are_killed() {
    let scene = Scene::new();
    let keeper = scene.directory.path().join("keeper");
    fs_err::write(&keeper, "trap '' TERM\nwhile :; do setsid sleep 1000 & wait; done\n").unwrap();
    let script = "exec 3>witness; i=0; while [ $i -lt 50 ]; do setsid sh ./keeper & i=$((i+1)); \
                  done; echo ready; wait";
    let (process, _io) = start(scene.spec(script), &scene.tracker).await;
    assert!(in_time(process.stop()).await.forced);
    scene.witness.all_gone().await;
}

/// R-M18.
#[tokio::test]
async fn the_server_of_a_killed_shim_ends() {
    let scene = Scene::new();
    let script = "exec 3>witness; trap '' TERM; sleep 1000 & echo ready; wait";
    let (process, _io) = start(scene.spec(script), &scene.tracker).await;
    kill_process(shim_of(&process), Signal::KILL).unwrap();
    let exit = in_time(process.exited()).await;
    assert_eq!(exit, ExitInfo { code: None, signal: None, forced: true });
    scene.witness.all_gone().await;
    drain(&scene.tracker).await;
}

/// R-M17: signals for the daemon's group or terminal reach neither the shim nor the server.
#[tokio::test]
async fn r_m17_shim_and_server_have_their_own_process_groups() {
    let tracker = TaskTracker::new();
    let (process, mut io) = start(shell("echo ready; exec cat"), &tracker).await;
    let shim = shim_of(&process);
    let number = shim.as_raw_nonzero().get();
    assert_eq!(stat(number.unsigned_abs())[2], number.to_string(), "the shim leads a group");
    assert_eq!(stat(process.id())[2], process.id().to_string(), "the server leads a group");
    assert_eq!(stat(process.id())[3], process.id().to_string(), "the server leads a session");
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        kill_process(shim, signal).unwrap();
    }
    io.stdin.write_all(b"still there\n").await.unwrap();
    let mut line = String::new();
    in_time(BufReader::new(&mut io.stdout).read_line(&mut line)).await.unwrap();
    assert_eq!(line, "still there\n");
    let exit = in_time(process.stop()).await;
    assert_eq!(exit.signal, Some(15), "the server was not started deaf");
}

/// The shim holds no copy of the server's pipes: their ends reach the daemon.
#[tokio::test]
async fn closed_pipes_are_seen_while_the_server_runs() {
    let tracker = TaskTracker::new();
    let script = "exec >&- 2>&-; read line; exit 4";
    let (process, mut io) = Process::spawn(shell(script), &tracker).await.unwrap();
    assert_eq!(crate::support::read_all(&mut io).await, "");
    drop(io.stdin);
    assert_eq!(in_time(process.exited()).await.code, Some(4), "read saw the end of its input");
}

/// Neither the daemon's socket nor anything else of it leaks to a server.
#[tokio::test]
async fn a_server_inherits_three_files() {
    let tracker = TaskTracker::new();
    let script = "for fd in $(seq 0 9); do [ -e /proc/$$/fd/$fd ] && echo $fd; done; exit 0";
    let (_process, mut io) = Process::spawn(shell(script), &tracker).await.unwrap();
    let open = crate::support::read_all(&mut io).await;
    assert_eq!(open, "0\n1\n2\n");
}

#[tokio::test]
async fn a_missing_or_wrong_shim_is_reported() {
    for (program, is_gone) in [("/nowhere/narthex-shim", false), ("/bin/true", true)] {
        let mut spec = shell("exit 0");
        spec.shim = Shim::Program(program.into());
        let error = Process::spawn(spec, &TaskTracker::new()).await.unwrap_err();
        let said = error.to_string();
        assert!(said.contains(program) && said.contains("narthex-shim of this"), "{said}");
        assert_eq!(matches!(error, SpawnError::ShimGone { .. }), is_gone, "{error:?}");
        assert_eq!(matches!(error, SpawnError::Shim { .. }), !is_gone, "{error:?}");
    }
}

/// Runs one of the ignored tests below as a separate process.
fn rerun(name: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--ignored", "--nocapture"]).current_dir(directory);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    command
}

#[tokio::test]
async fn d22_runaways_of_a_killed_daemon_end() {
    let mut scene = Scene::new();
    let directory = scene.directory.path().to_owned();
    let mut daemon = rerun("trees::daemon_with_runaways", &directory).spawn().unwrap();
    scene.held_by(3).await;
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    scene.witness.all_gone().await;
}

#[tokio::test]
#[ignore = "the daemon of d22_runaways_of_a_killed_daemon_end, run as its own process"]
async fn daemon_with_runaways() {
    let script = runaways(&format!("; {HOLDER}"));
    let tracker = TaskTracker::new();
    let (_process, _io) = Process::spawn(shell(&script), &tracker).await.unwrap();
    // A sibling must not hold the socket that shows the first shim the daemon's death.
    let (_sibling, _io) = Process::spawn(shell("exec sleep 1000"), &tracker).await.unwrap();
    std::io::stdout().flush().unwrap();
    // Ends when its stdin does, should a person run it by hand.
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
}

/// S31: runs in a separate process, so that no other test's files and children are counted.
#[test]
fn s31_a_thousand_starts_and_stops_leave_no_process_and_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let status = rerun("trees::thousand_cycles", directory.path()).status().unwrap();
    assert!(status.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the process of s31_a_thousand_starts_and_stops_leave_no_process_and_no_file"]
async fn thousand_cycles() {
    let files = || fs_err::read_dir("/proc/self/fd").unwrap().count();
    // The actor of a process closes its last files after it has reported the end.
    let warm_up = TaskTracker::new();
    cycle(0, &warm_up).await;
    drain(&warm_up).await;
    let tracker = TaskTracker::new();
    let before = files();
    for number in 0..1000 {
        cycle(number, &tracker).await;
    }
    drain(&tracker).await;
    assert_eq!(files(), before);
    let own = getpid().as_raw_nonzero().to_string();
    let processes = fs_err::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|entry| fs_err::read(entry.path().join("stat")).ok());
    let children = stats.filter(|stat| {
        let stat = String::from_utf8_lossy(stat);
        stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(1) == Some(own.as_str())
    });
    assert_eq!(children.count(), 0);
}

async fn cycle(number: usize, tracker: &TaskTracker) {
    let script = match number % 10 {
        0 => DEAF,
        1 => LEAVER,
        _ => POLITE,
    };
    let mut spec = shell(script);
    spec.stop_grace = Duration::from_millis(10);
    let (process, _io) = start(spec, tracker).await;
    in_time(process.stop()).await;
}

#[tokio::test]
async fn a_shim_is_small() {
    let tracker = TaskTracker::new();
    let (process, _io) = start(shell(POLITE), &tracker).await;
    let shim = shim_of(&process).as_raw_nonzero();
    let status = fs_err::read_to_string(format!("/proc/{shim}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    let kib: u64 = line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib < 1024, "{line}");
    assert!(status.contains("Threads:\t1\n"), "{status}");
}
