//! Child processes that never outlive the step that started them.
//!
//! Each child leads a process group of its own, which is killed when its owner is dropped or when
//! this program is interrupted. Output goes to a log file line by line, so that a failure can be
//! read afterwards; readiness is a line of output, awaited with a deadline.
#![expect(clippy::disallowed_types, reason = "synchronous: there is no tokio clock to pause here")]

mod descendants;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fs_err::File;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

pub(crate) use self::descendants::Descendants;

/// Interval of the checks of a process that should end.
const POLL: Duration = Duration::from_millis(10);
/// Lines kept for a reader. Later ones are only in the log.
const QUEUE: usize = 1024;
/// Lines of a log that an error quotes.
const QUOTED: usize = 25;

/// The process groups that are alive now.
static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Makes Ctrl-C and SIGTERM take the children along.
pub(crate) fn kill_children_on_interrupt() -> Result<()> {
    ctrlc::set_handler(|| {
        for group in GROUPS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            kill_group(*group);
        }
        #[expect(clippy::exit, reason = "a signal handler has no caller to return a code to")]
        std::process::exit(130);
    })
    .context("cannot watch for signals")
}

/// Runs a command in the foreground with its output shown.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let name = describe(command);
    let status = command.status().with_context(|| format!("cannot start {name}"))?;
    if !status.success() {
        bail!("{name} ended with {status}");
    }
    Ok(())
}

/// The output of a command that was shown while it ran.
pub(crate) struct Shown {
    pub(crate) is_success: bool,
    pub(crate) output: String,
}

/// Runs a command with its output shown and kept. The two kinds of output are mixed by lines.
pub(crate) fn show(command: &mut Command) -> Result<Shown> {
    let mut group = Group::spawn(command)?;
    let output = Arc::new(Mutex::new(String::new()));
    let stdout = group.child.stdout.take().expect("stdout is piped");
    let stderr = group.child.stderr.take().expect("stderr is piped");
    let readers = [echo(stdout, Arc::clone(&output)), echo(stderr, Arc::clone(&output))];
    let status = group.child.wait()?;
    drop(group);
    for reader in readers {
        reader.join().ok();
    }
    let output = std::mem::take(&mut *output.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Shown { is_success: status.success(), output })
}

fn echo(from: impl Read + Send + 'static, to: Arc<Mutex<String>>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for line in lines(from) {
            let mut output = to.lock().unwrap_or_else(PoisonError::into_inner);
            println!("{line}");
            output.push_str(&line);
            output.push('\n');
        }
    })
}

/// The lines of an output, up to its end or its first error.
fn lines(from: impl Read) -> impl Iterator<Item = String> {
    let lines = BufReader::new(from).split(b'\n').map_while(Result::ok);
    lines.map(|line| String::from_utf8_lossy(&line).into_owned())
}

/// True if a program answers to the arguments, such as `--version`, with success.
pub(crate) fn answers(program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The status and the output of a command that ended.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command to its end within a deadline and keeps its output.
pub(crate) fn capture(command: &mut Command, within: Duration) -> Result<Finished> {
    let name = describe(command);
    let mut group = Group::spawn(command)?;
    let stdout = collect(group.child.stdout.take().expect("stdout is piped"));
    let stderr = collect(group.child.stderr.take().expect("stderr is piped"));
    let status = group.wait(within)?;
    drop(group);
    let text = |reader: thread::JoinHandle<String>| reader.join().unwrap_or_default();
    let (stdout, stderr) = (text(stdout), text(stderr));
    match status {
        Some(status) => Ok(Finished { status, stdout, stderr }),
        None => bail!("{name} was not done after {within:?}\n{stdout}{stderr}"),
    }
}

fn collect(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // The output before an error is still worth quoting.
        if let Err(error) = from.read_to_end(&mut bytes) {
            bytes.extend_from_slice(format!("(output broke off: {error})").as_bytes());
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// A long-running program: a server under test, or the daemon itself.
pub(crate) struct Service {
    name: String,
    group: Group,
    lines: Receiver<String>,
    log: PathBuf,
}

impl Service {
    /// Starts a program whose output, both kinds of it, goes to `log`.
    pub(crate) fn start(name: &str, command: &mut Command, log: &Path) -> Result<Self> {
        let mut group = Group::spawn(command)?;
        let file = Arc::new(Mutex::new(File::create(log)?));
        let (sender, lines) = sync_channel(QUEUE);
        let stdout = group.child.stdout.take().expect("stdout is piped");
        let stderr = group.child.stderr.take().expect("stderr is piped");
        follow(stdout, Arc::clone(&file), sender.clone());
        follow(stderr, file, sender);
        Ok(Self { name: name.to_owned(), group, lines, log: log.to_path_buf() })
    }

    /// The process id of the program itself.
    pub(crate) fn pid(&self) -> u32 {
        self.group.child.id()
    }

    /// Reads on until a line gives a value.
    pub(crate) fn wait_for<T>(
        &self,
        what: &str,
        within: Duration,
        mut wanted: impl FnMut(&str) -> Option<T>,
    ) -> Result<T> {
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    if let Some(value) = wanted(&line) {
                        return Ok(value);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    bail!("{}: no {what} within {within:?}{}", self.name, self.quote())
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("{} ended without {what}{}", self.name, self.quote())
                }
            }
        }
    }

    /// Asks the program to end, as SIGTERM does, and waits for it.
    pub(crate) fn terminate(self, within: Duration) -> Result<ExitStatus> {
        let pid = Pid::from_child(&self.group.child);
        kill_process(pid, Signal::TERM).with_context(|| format!("cannot stop {}", self.name))?;
        self.wait(within)
    }

    /// Waits for the end of a program that was asked to end.
    pub(crate) fn wait(mut self, within: Duration) -> Result<ExitStatus> {
        match self.group.wait(within)? {
            Some(status) => Ok(status),
            None => bail!(
                "{} still runs {within:?} after it was told to end{}",
                self.name,
                self.quote()
            ),
        }
    }

    /// The end of the log, for an error message.
    pub(crate) fn quote(&self) -> String {
        let text = fs_err::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let end = lines[lines.len().saturating_sub(QUOTED)..].join("\n    ");
        format!("\n  {} says:\n    {end}", self.log.display())
    }
}

fn follow(
    from: impl Read + Send + 'static,
    log: Arc<Mutex<File>>,
    waiting: SyncSender<String>,
) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for line in lines(from) {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            // A full disk shows elsewhere; the child must be drained in any case.
            writeln!(log, "{line}").ok();
            drop(log);
            // No reader may wait for lines any more; the log has them all.
            waiting.try_send(line).ok();
        }
    })
}

/// A child that leads its own process group.
struct Group {
    child: Child,
    id: i32,
}

impl Group {
    fn spawn(command: &mut Command) -> Result<Self> {
        let name = describe(command);
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let id = Pid::from_child(&child).as_raw_nonzero().get();
        GROUPS.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        Ok(Self { child, id })
    }

    fn wait(&mut self, within: Duration) -> Result<Option<ExitStatus>> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            thread::park_timeout(POLL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        kill_group(self.id);
        self.child.wait().ok();
        GROUPS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// Kills what is left of a group. One that is gone already is no error.
fn kill_group(id: i32) {
    if let Some(pid) = Pid::from_raw(id) {
        kill_process_group(pid, Signal::KILL).ok();
    }
}

fn describe(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(|arg| arg.to_string_lossy()));
    words.join(" ")
}

/// Memory of a process that no file backs, in KiB.
pub(crate) fn private_kib(process: u32) -> Result<u64> {
    let status = fs_err::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
    kib.context("the kernel shows no RssAnon")
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::{Service, capture};

    const SOON: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn captures_both_outputs_and_the_status() {
        let done = capture(&mut shell("echo out; echo err >&2; exit 3"), SOON).unwrap();
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(done.status.code(), Some(3));
    }

    #[test]
    fn a_deadline_ends_a_command_and_its_children() {
        let slow = capture(&mut shell("echo early; sleep 60 & wait"), Duration::from_millis(50));
        let message = slow.err().expect("it takes a minute").to_string();
        assert!(message.contains("was not done"), "{message}");
    }

    #[test]
    fn a_service_is_ready_after_its_line_and_ends_on_request() {
        let dir = tempfile::tempdir().unwrap();
        let script = "trap 'exit 7' TERM; echo noise; echo port 42; while :; do sleep 0.01; done";
        let service = Service::start("it", &mut shell(script), &dir.path().join("log")).unwrap();
        let port = service.wait_for("port", SOON, |l| l.strip_prefix("port ").map(str::to_owned));
        assert_eq!(port.unwrap(), "42");
        assert_eq!(service.terminate(SOON).unwrap().code(), Some(7));
    }

    #[test]
    fn the_error_of_a_service_that_ends_early_quotes_its_output() {
        let dir = tempfile::tempdir().unwrap();
        let service = Service::start("it", &mut shell("echo alas"), &dir.path().join("log"));
        let ready: anyhow::Result<()> = service.unwrap().wait_for("port", SOON, |_| None);
        let message = ready.unwrap_err().to_string();
        assert!(message.contains("ended without port") && message.contains("alas"), "{message}");
    }
}
