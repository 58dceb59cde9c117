//! The cost of runs: their creation and end, the memory of live ones, and the added cost of a call
//! beside many runs and many servers.
#![expect(clippy::disallowed_types, reason = "synchronous: there is no tokio clock to pause here")]

pub(super) mod count;
mod credentials;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use fs_err as fs;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::count::Counter;
pub(super) use self::credentials::{ByCredential, by_credential};
use super::load::read_within;
use super::plan::Era;
use super::results::{CallCost, RunsCost};
use super::stage::Fixture;
use super::{Options, program};
use crate::peers::Daemon;
use crate::process::{private_kib, run};

const READY: Duration = Duration::from_secs(900);
pub(super) const STOPPED: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(120);
/// The longest time for the creation of all runs.
const CREATED: Duration = Duration::from_secs(3600);
const SYNCS: usize = 200;
/// Duration of one look at a process, and the hundredths of a second that it may use meanwhile.
const LOOK: Duration = Duration::from_secs(2);
const QUIET_TICKS: u64 = 10;
pub(super) const RUNS: &str = "/api/workspaces/default/runs";
/// The request that creates each run.
pub(super) const REQUEST: &str = r#"{"type":"start_session","agent_name":"bench"}"#;
pub(super) const WORKSPACE_TOKEN: &str = "admin.token";

/// Duration of a measured load, and of a quick one.
const WINDOW: Duration = Duration::from_secs(30);
pub(super) const QUICK_WINDOW: Duration = Duration::from_secs(5);

/// Number of runs and servers besides.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) runs: usize,
    pub(super) servers: usize,
    /// True if each server has all of its tools, and false for one.
    pub(super) has_all_tools: bool,
}

pub(super) const ONE: Size = Size { runs: 1, servers: 1, has_all_tools: false };
const MANY: Size = Size { runs: 10_000, servers: 1000, ..ONE };
/// The size at which instructions are counted. Under the program that counts them, each creation
/// takes half a second.
const COUNTED: Size = Size { runs: 1000, servers: 1000, ..ONE };
const QUICK_MANY: Size = Size { runs: 1000, servers: 100, ..ONE };

/// A daemon with so many servers, and a catalog with an agent of one server.
pub(super) struct Stage {
    pub(super) daemon: Daemon,
    pub(super) data: PathBuf,
    _fixture: Fixture,
    _dir: TempDir,
}

/// The measurements of the load generator.
#[derive(Deserialize)]
pub(super) struct Measured {
    runs: u64,
    create_p50_us: f64,
    create_p99_us: f64,
    end_p50_us: f64,
    end_p99_us: f64,
    before_bytes: u64,
    after_bytes: u64,
    /// The token of the first run.
    pub(super) token: String,
}

pub(super) fn measure(options: &Options, logs: &Path) -> Result<Option<RunsCost>> {
    let (many, counted) = if options.quick { (QUICK_MANY, QUICK_MANY) } else { (MANY, COUNTED) };
    let stage = Stage::start(&options.profile, ONE, logs, program("narthex", &options.profile))?;
    let sync_us = sync_us(&stage.data)?;
    let measured = stage.create(&options.profile, many.runs)?;
    stage.daemon.stop(STOPPED)?;
    let Measured { runs, create_p50_us, create_p99_us, end_p50_us, end_p99_us, .. } = measured;
    let added = measured.after_bytes.saturating_sub(measured.before_bytes);
    eprintln!(
        "runs: created in {create_p50_us:.0} µs, ended in {end_p50_us:.0} µs, {} bytes each",
        added / runs.max(1)
    );
    let calls = match Counter::find() {
        Some(counter) => calls(options, counted, logs, &counter)?,
        None => {
            eprintln!("instructions are not counted: that needs valgrind (Debian: the same name)");
            Vec::new()
        }
    };
    Ok(Some(RunsCost {
        runs,
        counted_runs: counted.runs,
        counted_servers: counted.servers,
        create_p50_us,
        create_p99_us,
        end_p50_us,
        end_p99_us,
        sync_us,
        bytes_per_run: super::report::bytes(added) / super::report::bytes(runs.max(1)),
        calls,
    }))
}

/// Instructions of a small call by a run that sees one server.
pub(super) fn small_call(profile: &str, logs: &Path) -> Result<f64> {
    let counter = Counter::find_or_install()?;
    let narthex = counter.under(&program("narthex", profile), logs);
    let stage = Stage::start(profile, ONE, logs, narthex)?;
    let load = stage.load(profile, stage.daemon.token_file(), "mcp__s0__", QUICK_WINDOW);
    let counted = stage.count(&counter, load)?;
    stage.daemon.stop(STOPPED)?;
    Ok(counted)
}

/// Memory of a daemon with one server and nothing to do, apart from its program and libraries, in
/// KiB.
pub(super) fn idle_kib(profile: &str, logs: &Path) -> Result<u64> {
    let stage = Stage::start(profile, ONE, logs, program("narthex", profile))?;
    wait_until_quiet(stage.daemon.pid())?;
    let kib = private_kib(stage.daemon.pid())?;
    stage.daemon.stop(STOPPED)?;
    Ok(kib)
}

/// Instructions of calls by a run of an agent, and by the one that sees all servers.
fn calls(options: &Options, many: Size, logs: &Path, counter: &Counter) -> Result<Vec<CallCost>> {
    let mut found = [[0.0; 2]; 2];
    for (at, size) in [ONE, many].into_iter().enumerate() {
        let narthex = counter.under(&program("narthex", &options.profile), logs);
        let stage = Stage::start(&options.profile, size, logs, narthex)?;
        let measured = stage.create(&options.profile, size.runs)?;
        let own = stage.data.join("run.token");
        write_secret(&own, &measured.token)?;
        let callers = [(own, "mcp__lib__"), (stage.daemon.token_file().to_path_buf(), "mcp__s0__")];
        for (caller, (token, prefix)) in callers.iter().enumerate() {
            let window = if options.quick { QUICK_WINDOW } else { WINDOW };
            let load = stage.load(&options.profile, token, prefix, window);
            let counted = stage.count(counter, load)?;
            eprintln!(
                "{} runs, {} servers, {prefix}: {counted:.0} instructions per call",
                size.runs, size.servers
            );
            found[caller][at] = counted;
        }
        stage.daemon.stop(STOPPED)?;
    }
    let callers = ["a run of an agent with one server", "a run that sees every server"];
    let cost =
        |(caller, [one, many]): (&str, [f64; 2])| CallCost { caller: caller.to_owned(), one, many };
    Ok(callers.into_iter().zip(found).map(cost).collect())
}

/// The members of a measurement of calls that are read.
#[derive(Deserialize)]
pub(super) struct Calls {
    pub(super) sent: u64,
    right: u64,
    failed: u64,
}

impl Stage {
    pub(super) fn start(profile: &str, size: Size, logs: &Path, narthex: Command) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("narthex-bench-").tempdir()?;
        let (config, data) = (dir.path().join("mcp.json"), dir.path().join("data"));
        let fixture = Fixture::start(Era::Legacy, profile, 0, &logs.join("runs.log"))?;
        // One of its tools is enough: what is measured is the number of servers.
        let mut entry = json!({ "transport": "http", "url": fixture.url() });
        if !size.has_all_tools {
            entry["tools"] = json!({ "allow": ["echo"] });
        }
        // Callgrind watches each instruction, so a thousand of servers take their time.
        entry["mountTimeout"] = json!("600s");
        let names: Vec<String> = (0..size.servers).map(|number| format!("s{number}")).collect();
        let servers: serde_json::Map<String, Value> =
            names.iter().map(|name| (name.clone(), entry.clone())).collect();
        fs::write(&config, json!({ "servers": servers }).to_string())?;
        let daemon = Daemon::start_as(narthex, &config, &data, &logs.join("narthex-runs.log"))?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        daemon.wait_until_ready(&names, READY)?;
        let lib = json!({ "id": "lib", "type": "http", "url": fixture.url() });
        let agent = json!({ "name": "bench", "mcpServers": { "lib": { "ref": "lib" } } });
        for (kind, object) in [("servers", lib), ("agents", agent)] {
            let file = dir.path().join(format!("{kind}.json"));
            fs::write(&file, object.to_string())?;
            let mut apply = program("narthex", profile);
            run(apply.args([kind, "apply", "--quiet", "-f"]).arg(&file).arg("--data").arg(&data))?;
        }
        Ok(Self { daemon, data, _fixture: fixture, _dir: dir })
    }

    pub(super) fn create(&self, profile: &str, runs: usize) -> Result<Measured> {
        let mut command = program("narthex-load", profile);
        command.args(["runs", "--url", &self.daemon.endpoint_url(RUNS), "--era", "modern"]);
        command.arg("--bearer-file").arg(self.data.join(WORKSPACE_TOKEN));
        command.args(["--body", REQUEST, "--runs", &runs.to_string()]);
        command.args(["--watch", &self.daemon.pid().to_string()]);
        read_within(&mut command, CREATED)
    }

    pub(super) fn load(
        &self,
        profile: &str,
        token: &Path,
        prefix: &str,
        window: Duration,
    ) -> Command {
        let mut command = program("narthex-load", profile);
        command.args(["run", "--url", &self.daemon.endpoint_url("/mcp"), "--era", "modern"]);
        command.arg("--bearer-file").arg(token).args(["--work", "echo", "--prefix", prefix]);
        command.args(["--warm-up-ms", "0"]);
        command.args(["--window-ms", &window.as_millis().to_string()]);
        command
    }

    /// The instructions of each call of a load generator.
    pub(super) fn count(&self, counter: &Counter, mut load: Command) -> Result<f64> {
        let process = self.daemon.pid();
        // One-time costs are not counted.
        let _: Calls = read_within(&mut load, SOON)?;
        wait_until_quiet(process)?;
        counter.count(process, || {
            let calls: Calls = read_within(&mut load, SOON)?;
            ensure!(calls.right == calls.sent, "{} of {} failed", calls.failed, calls.sent);
            wait_until_quiet(process)?;
            Ok(calls.sent)
        })
    }
}

pub(super) fn write_secret(path: &Path, text: &str) -> Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(text.as_bytes())?;
    Ok(())
}

/// Waits until a process does next to nothing by itself.
pub(super) fn wait_until_quiet(process: u32) -> Result<()> {
    let deadline = Instant::now() + SOON * 10;
    let mut last = ticks(process)?;
    while Instant::now() < deadline {
        std::thread::park_timeout(LOOK);
        let now = ticks(process)?;
        if now <= last + QUIET_TICKS {
            return Ok(());
        }
        last = now;
    }
    anyhow::bail!("process {process} is never quiet")
}

/// The processor time of a process, in hundredths of a second.
pub(super) fn ticks(process: u32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name before it may have blanks.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<u64> = rest.split(' ').skip(12).take(2).flat_map(str::parse).collect();
    ensure!(fields.len() == 2, "process {process} shows no processor time");
    Ok(fields.iter().sum())
}

/// The time until some kilobytes are on the disk: the median.
fn sync_us(dir: &Path) -> Result<f64> {
    let path = dir.join("sync.bench");
    let mut file = fs::File::create(&path)?;
    let mut took = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        file.write_all(&[0; 4096])?;
        let begin = Instant::now();
        file.file().sync_data()?;
        took.push(begin.elapsed());
    }
    took.sort_unstable();
    fs::remove_file(&path)?;
    Ok(took[SYNCS / 2].as_secs_f64() * 1e6)
}
