//! A daemon under load for minutes: what it holds must not grow, and every answer must be right.
#![expect(clippy::disallowed_types, reason = "measures real time: nothing here can be paused")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Fixture, prepare};
use crate::peers::Daemon;
use crate::process::{Descendants, capture};
use crate::tally::Tally;
use crate::workspace;

const READY: Duration = Duration::from_secs(60);
const DONE: Duration = Duration::from_secs(120);
const STOPPED: Duration = Duration::from_secs(60);
/// Rounds that fill caches and pools, before anything is compared.
const WARM_UP: usize = 3;
/// Most memory that a process may hold beyond the most of the warm-up: allocators keep some of
/// their former memory. A leak of one kilobyte per call passes this within a minute.
const MEMORY_SLACK: u64 = 48 * 1024 * 1024;
const FILES_SLACK: usize = 64;
const CONNECTIONS: &str = "16";

/// The resources that a process holds at one moment.
#[derive(Debug, Clone, Copy)]
struct Holds {
    memory_bytes: u64,
    files: usize,
    children: usize,
}

pub(super) fn run(lasting: Duration) -> Result<Tally> {
    let logs = prepare("load")?;
    let mut stage = Stage::start(&logs)?;
    let until = Instant::now() + lasting;
    let mut held = Vec::new();
    let mut tally = Tally::default();
    while Instant::now() < until || held.len() <= WARM_UP {
        let number = held.len() + 1;
        tally.check(&format!("round {number}"), || stage.round());
        held.push(Holds::of(stage.daemon.pid())?);
        println!("       {}", held[held.len() - 1]);
    }
    let (warm, later) = held.split_at(WARM_UP);
    tally.check("memory does not grow", || {
        is_flat(warm, later, |held| held.memory_bytes, MEMORY_SLACK)
    });
    tally.check("open files do not grow", || {
        is_flat(warm, later, |held| held.files as u64, FILES_SLACK as u64)
    });
    tally.check("children do not grow", || is_flat(warm, later, |held| held.children as u64, 0));
    tally.check("the daemon ends and leaves nothing", || stage.daemon.stop(STOPPED));
    Ok(tally)
}

/// The last value is compared with the most of the warm-up.
fn is_flat(warm: &[Holds], later: &[Holds], of: impl Fn(&Holds) -> u64, slack: u64) -> Result<()> {
    let most = warm.iter().map(&of).max().context("there was a warm-up")?;
    let last = later.last().map(&of).context("there were rounds")?;
    ensure!(last <= most + slack, "{last}, after at most {most} at the start");
    Ok(())
}

impl std::fmt::Display for Holds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { memory_bytes, files, children } = self;
        write!(f, "{} MiB, {files} files, {children} children", memory_bytes / 1024 / 1024)
    }
}

impl Holds {
    fn of(process: u32) -> Result<Self> {
        Ok(Self {
            memory_bytes: crate::process::private_kib(process)? * 1024,
            files: fs::read_dir(format!("/proc/{process}/fd"))?.count(),
            children: Descendants::of(process).ids().len(),
        })
    }
}

/// A daemon over servers of both eras and both transports.
struct Stage {
    daemon: Daemon,
    _fixtures: [Fixture; 2],
    config: std::path::PathBuf,
    servers: Value,
    rounds: u32,
    _dir: tempfile::TempDir,
}

/// Era of the callers, the server that they call, and the path of its endpoint.
const CALLS: [(&str, &str); 6] = [
    ("legacy", "old-http"),
    ("modern", "old-http"),
    ("legacy", "new-http"),
    ("modern", "new-http"),
    ("legacy", "program"),
    ("modern", "program"),
];

impl Stage {
    fn start(logs: &Path) -> Result<Self> {
        let old = Fixture::start("legacy", 50, &logs.join("old-http.log"))?;
        let new = Fixture::start("modern", 50, &logs.join("new-http.log"))?;
        let program = workspace::built("narthex-fixture");
        let servers = json!({
            "old-http": { "transport": "http", "url": old.url },
            "new-http": { "transport": "http", "url": new.url },
            "program": { "transport": "stdio", "command": program, "args": ["--stdio"] },
        });
        let dir = tempfile::Builder::new().prefix("narthex-soak-").tempdir()?;
        let config = dir.path().join("mcp.json");
        fs::write(&config, json!({ "servers": servers }).to_string())?;
        let data = dir.path().join("data");
        let daemon = Daemon::start(&config, &data, &logs.join("narthex.log"))?;
        daemon.wait_until_ready(&["old-http", "new-http", "program"], READY)?;
        Ok(Self { daemon, _fixtures: [old, new], config, servers, rounds: 0, _dir: dir })
    }

    /// Calls every server in both eras, opens and leaves sessions, and edits the configuration.
    fn round(&mut self) -> Result<()> {
        for (era, alias) in CALLS {
            self.call(era, &format!("/mcp/{alias}"), "")?;
            self.call(era, "/mcp", &format!("mcp__{alias}__"))?;
        }
        self.idle()?;
        self.edit()
    }

    fn load(&self, kind: &str, era: &str, path: &str) -> Command {
        let mut command = Command::new(workspace::built("narthex-load"));
        command.args([kind, "--era", era, "--url", &self.daemon.endpoint_url(path)]);
        command.arg("--bearer-file").arg(self.daemon.token_file());
        command.args(["--watch", &self.daemon.pid().to_string()]);
        command
    }

    fn call(&self, era: &str, path: &str, prefix: &str) -> Result<()> {
        #[derive(Deserialize)]
        struct Outcome {
            sent: u64,
            right: u64,
            first_problem: Option<String>,
        }
        let mut command = self.load("run", era, path);
        command.args(["--connections", CONNECTIONS, "--prefix", prefix]);
        command.args(["--warm-up-ms", "100", "--window-ms", "1000"]);
        let done = capture(&mut command, DONE)?;
        let outcome: Outcome = serde_json::from_str(&done.stdout).with_context(|| done.stderr)?;
        let Outcome { sent, right, first_problem } = outcome;
        let problem = first_problem.unwrap_or_default();
        let is_right = right > 0 && right == sent;
        ensure!(is_right, "{era} callers of {path} {prefix}: {right} of {sent} right: {problem}");
        Ok(())
    }

    /// Opens sessions with streams and leaves them without a word.
    fn idle(&self) -> Result<()> {
        let mut command = self.load("idle", "legacy", "/mcp");
        command.args(["--sessions", "100", "--streams"]);
        let done = capture(&mut command, DONE)?;
        ensure!(done.status.success(), "sessions could not be opened: {}", done.stderr);
        Ok(())
    }

    /// Has the program started anew with another environment.
    fn edit(&mut self) -> Result<()> {
        self.rounds += 1;
        self.servers["program"]["env"] = json!({ "ROUND": self.rounds.to_string() });
        let next = self.config.with_extension("next");
        fs::write(&next, json!({ "servers": self.servers }).to_string())?;
        fs::rename(next, &self.config)?;
        Ok(())
    }
}
