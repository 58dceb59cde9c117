//! Large numbers at one daemon: tools of one server, servers, and runs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Fixture, prepare};
use crate::peers::Daemon;
use crate::process::capture;
use crate::tally::Tally;
use crate::workspace;

const TOOLS: usize = 10_000;
const SERVERS: usize = 300;
const RUNS: u64 = 2_000;
/// Most memory of one live run, in bytes. A run that shares its server keeps its names, its token's
/// hash and its frozen configuration.
const RUN_BYTES: u64 = 64 * 1024;
const READY: Duration = Duration::from_secs(600);
const DONE: Duration = Duration::from_secs(900);
const STOPPED: Duration = Duration::from_secs(60);

pub(super) fn run() -> Result<Tally> {
    let logs = prepare("scale")?;
    let mut tally = Tally::default();
    tally.check(&format!("{TOOLS} tools of one server are listed"), || tools(&logs));
    tally.check(&format!("{SERVERS} servers are ready"), || servers(&logs));
    tally.check(&format!("{RUNS} runs live at one time"), || runs(&logs));
    Ok(tally)
}

/// A daemon over `servers`, in a folder of its own.
fn daemon(
    servers: &Map<String, Value>,
    logs: &Path,
    name: &str,
) -> Result<(Daemon, PathBuf, tempfile::TempDir)> {
    let dir = tempfile::Builder::new().prefix("narthex-soak-").tempdir()?;
    let config = dir.path().join("mcp.json");
    fs::write(&config, json!({ "servers": servers }).to_string())?;
    let data = dir.path().join("data");
    let mut narthex = Command::new(workspace::built("narthex"));
    narthex.env("NARTHEX_SYNTHETIC_TOOLS", "false");
    let daemon = Daemon::start_as(narthex, &config, &data, &logs.join(format!("{name}.log")))?;
    let aliases: Vec<&str> = servers.keys().map(String::as_str).collect();
    daemon.wait_until_ready(&aliases, READY)?;
    Ok((daemon, data, dir))
}

fn entry(fixture: &Fixture) -> Value {
    json!({ "transport": "http", "url": fixture.url })
}

fn tools(logs: &Path) -> Result<()> {
    #[derive(Deserialize)]
    struct Counted {
        tools: usize,
    }
    let fixture = Fixture::start("modern", TOOLS, &logs.join("tools-server.log"))?;
    let servers = Map::from_iter([("many".to_owned(), entry(&fixture))]);
    let (daemon, _data, _dir) = daemon(&servers, logs, "tools")?;
    for path in ["/mcp", "/mcp/many"] {
        let mut command = Command::new(workspace::built("narthex-load"));
        command.args(["tools", "--era", "modern", "--url", &daemon.endpoint_url(path)]);
        command.arg("--bearer-file").arg(daemon.token_file());
        let done = capture(&mut command, DONE)?;
        let counted: Counted = serde_json::from_str(&done.stdout).with_context(|| done.stderr)?;
        ensure!(counted.tools >= TOOLS, "{path} lists {} tools", counted.tools);
    }
    daemon.stop(STOPPED)
}

fn servers(logs: &Path) -> Result<()> {
    let fixture = Fixture::start("modern", 0, &logs.join("servers-server.log"))?;
    let servers = (0..SERVERS).map(|number| (format!("server-{number}"), entry(&fixture)));
    let (daemon, _data, _dir) = daemon(&servers.collect(), logs, "servers")?;
    daemon.stop(STOPPED)
}

fn runs(logs: &Path) -> Result<()> {
    #[derive(Deserialize)]
    struct Measured {
        runs: u64,
        before_bytes: u64,
        after_bytes: u64,
    }
    let fixture = Fixture::start("modern", 0, &logs.join("runs-server.log"))?;
    let servers = Map::from_iter([("one".to_owned(), entry(&fixture))]);
    let (daemon, data, _dir) = daemon(&servers, logs, "runs")?;
    let mut command = Command::new(workspace::built("narthex-load"));
    let url = daemon.endpoint_url("/api/workspaces/default/runs");
    command.args(["runs", "--era", "modern", "--url", &url, "--runs", &RUNS.to_string()]);
    command.args(["--ended", "100", "--body", r#"{"tools":["*"]}"#]);
    command.args(["--watch", &daemon.pid().to_string()]);
    command.arg("--bearer-file").arg(data.join("admin.token"));
    let done = capture(&mut command, DONE)?;
    let measured: Measured = serde_json::from_str(&done.stdout).with_context(|| done.stderr)?;
    ensure!(measured.runs == RUNS, "{} runs were created", measured.runs);
    let each = measured.after_bytes.saturating_sub(measured.before_bytes) / RUNS;
    ensure!(each <= RUN_BYTES, "a run takes {each} bytes, the limit is {RUN_BYTES}");
    daemon.stop(STOPPED)
}
