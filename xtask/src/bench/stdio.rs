//! Calls to one server over stdio: directly through its pipes, and through narthex.
//!
//! The callers share the one process in both cases, so what narthex adds is its door, its pipeline
//! and one more hop, and not a process.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use fs_err as fs;
use serde_json::json;
use tempfile::TempDir;

use super::load::{Sample, read};
use super::plan::{Era, Selection};
use super::results::StdioRow;
use super::{Options, program};
use crate::peers::Daemon;

const CALLERS: [usize; 3] = [1, 8, 64];
const ALIAS: &str = "child";
const READY: Duration = Duration::from_secs(60);
const STOPPED: Duration = Duration::from_secs(30);

/// A daemon with one server over stdio.
struct Stage {
    era: Era,
    daemon: Daemon,
    _dir: TempDir,
}

pub(super) fn measure(
    options: &Options,
    selection: &Selection,
    logs: &Path,
) -> Result<Vec<StdioRow>> {
    let mut rows = Vec::new();
    for era in Era::ALL.into_iter().filter(|era| selection.names_era(*era)) {
        let stage = Stage::start(era, options, logs)?;
        let callers = CALLERS.into_iter().filter(|callers| selection.names_connections(*callers));
        for callers in callers {
            let mut row = StdioRow { era, callers, direct: Vec::new(), narthex: Vec::new() };
            for round in 1..=options.rounds() {
                let direct = direct(era, callers, options)?;
                eprintln!("{} stdio {callers:>2} direct  {round}: {direct}", era.name());
                let narthex = stage.through_narthex(callers, options)?;
                eprintln!("{} stdio {callers:>2} narthex {round}: {narthex}", era.name());
                row.direct.push(direct);
                row.narthex.push(narthex);
            }
            rows.push(row);
        }
        stage.daemon.stop(STOPPED)?;
    }
    Ok(rows)
}

fn server(era: Era, profile: &str) -> Vec<String> {
    let fixture = program("narthex-fixture", profile);
    let fixture = fixture.get_program().to_string_lossy().into_owned();
    [fixture.as_str(), "--stdio", "--eras", era.name()].map(str::to_owned).to_vec()
}

fn windows(command: &mut Command, options: &Options) {
    let (warm_up, window) = if options.quick { ("200", "500") } else { ("500", "2000") };
    command.args(["--warm-up-ms", warm_up, "--window-ms", window]);
}

fn direct(era: Era, callers: usize, options: &Options) -> Result<Sample> {
    let mut command = program("narthex-load", &options.profile);
    command.args(["stdio", "--era", era.name(), "--callers", &callers.to_string()]);
    windows(&mut command, options);
    command.arg("--").args(server(era, &options.profile));
    read(&mut command)
}

impl Stage {
    fn start(era: Era, options: &Options, logs: &Path) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("narthex-bench-").tempdir()?;
        let words = server(era, &options.profile);
        let (command, args) = words.split_first().context("a command has a program")?;
        let entry = json!({ "transport": "stdio", "command": command, "args": args });
        let config = dir.path().join("mcp.json");
        fs::write(&config, json!({ "servers": { ALIAS: entry } }).to_string())?;
        let (data, log) = (dir.path().join("data"), logs.join("narthex-stdio.log"));
        let narthex = program("narthex", &options.profile);
        let daemon = Daemon::start_as(narthex, &config, &data, &log)?;
        daemon.wait_until_ready(&[ALIAS], READY)?;
        Ok(Self { era, daemon, _dir: dir })
    }

    fn through_narthex(&self, callers: usize, options: &Options) -> Result<Sample> {
        let mut command = program("narthex-load", &options.profile);
        let url = self.daemon.endpoint_url(&format!("/mcp/{ALIAS}"));
        command.args(["run", "--url", &url, "--era", self.era.name()]);
        command.arg("--bearer-file").arg(self.daemon.token_file());
        command.args(["--watch", &self.daemon.pid().to_string()]);
        command.args(["--connections", &callers.to_string()]);
        windows(&mut command, options);
        read(&mut command)
    }
}
