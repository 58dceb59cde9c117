//! The servers of the measurement of one era: two fixtures, nginx and narthex.
//!
//! The servers speak one era only, so that every hop is of the same era and nothing is translated.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use fs_err as fs;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::nginx::{Nginx, Running};
use super::plan::{Era, TOOLS, Way};
use super::program;
use crate::peers::Daemon;
use crate::process::{Service, capture};

const READY: Duration = Duration::from_secs(60);
const STOPPED: Duration = Duration::from_secs(30);
const ALIASES: [&str; 2] = ["first", "second"];

pub(super) struct Stage {
    pub(super) era: Era,
    pub(super) profile: String,
    pub(super) nginx_config: String,
    fixtures: Vec<Fixture>,
    nginx: Running,
    daemon: Daemon,
    _dir: TempDir,
}

/// A server over HTTP.
pub(super) struct Fixture {
    url: String,
    _service: Service,
}

impl Stage {
    pub(super) fn start(era: Era, nginx: &Nginx, profile: &str, logs: &Path) -> Result<Self> {
        let narthex = program("narthex", profile);
        Self::start_with(era, nginx, profile, logs, narthex)
    }

    /// Starts the stage with narthex under another program, which watches it.
    pub(super) fn start_with(
        era: Era,
        nginx: &Nginx,
        profile: &str,
        logs: &Path,
        mut narthex: Command,
    ) -> Result<Self> {
        // So that all carry the same: 200 tools, and results as their server wrote them.
        narthex.env("NARTHEX_SYNTHETIC_TOOLS", "false");
        narthex.env("NARTHEX_LIMITS_OUTPUT_TOKENS", "100000000");
        let dir = tempfile::Builder::new().prefix("narthex-bench-").tempdir()?;
        let own = own_tools(era, profile, logs)?;
        let extra = TOOLS.checked_sub(own).context("the fixture has more tools than are wanted")?;
        let mut fixtures = Vec::new();
        for alias in ALIASES {
            fixtures.push(Fixture::start(era, profile, extra, &logs.join(format!("{alias}.log")))?);
        }
        let log = logs.join("nginx.log");
        let nginx = nginx.start(&fixtures[0].url, &dir.path().join("nginx"), &log)?;
        let config = write_config(dir.path(), &fixtures)?;
        let (data, log) = (dir.path().join("data"), logs.join("narthex.log"));
        let daemon = Daemon::start_as(narthex, &config, &data, &log)?;
        daemon.wait_until_ready(&ALIASES, READY)?;
        let nginx_config = nginx.config.clone();
        let profile = profile.to_owned();
        Ok(Self { era, profile, nginx_config, fixtures, nginx, daemon, _dir: dir })
    }

    pub(super) fn url(&self, way: Way) -> String {
        match way {
            Way::Direct => self.fixtures[0].url.clone(),
            Way::Nginx => self.nginx.url.clone(),
            Way::Transparent => self.daemon.endpoint_url(&format!("/mcp/{}", ALIASES[0])),
            Way::Aggregated => self.daemon.endpoint_url("/mcp"),
        }
    }

    /// The prefixes of the names of tools, for each server in reach.
    pub(super) fn prefixes(way: Way) -> Vec<String> {
        match way {
            Way::Direct | Way::Nginx | Way::Transparent => vec![String::new()],
            Way::Aggregated => ALIASES.map(|alias| format!("mcp__{alias}__")).to_vec(),
        }
    }

    /// The processes between the load generator and the servers.
    pub(super) fn processes(&self, way: Way) -> Vec<u32> {
        match way {
            Way::Direct => Vec::new(),
            Way::Nginx => self.nginx.processes(),
            Way::Transparent | Way::Aggregated => vec![self.daemon.pid()],
        }
    }

    pub(super) fn fixture_urls(&self) -> impl Iterator<Item = &str> {
        self.fixtures.iter().map(|fixture| fixture.url.as_str())
    }

    pub(super) fn token_file(&self) -> PathBuf {
        self.daemon.token_file().to_path_buf()
    }

    pub(super) fn stop(self) -> Result<()> {
        self.daemon.stop(STOPPED)
    }
}

impl Fixture {
    pub(super) fn start(era: Era, profile: &str, extra: usize, log: &Path) -> Result<Self> {
        let mut command = program("narthex-fixture", profile);
        command.args(["--http", "127.0.0.1:0", "--eras", era.name()]);
        command.args(["--tools", &extra.to_string()]);
        let service = Service::start("narthex-fixture", &mut command, log)?;
        let url = service.wait_for("line with its url", READY, |line| {
            let value: Value = serde_json::from_str(line).ok()?;
            value["url"].as_str().map(str::to_owned)
        })?;
        Ok(Self { url, _service: service })
    }
}

impl Fixture {
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

/// Number of tools that a fixture has before any is added.
pub(super) fn own_tools(era: Era, profile: &str, logs: &Path) -> Result<usize> {
    #[derive(Deserialize)]
    struct Counted {
        tools: usize,
    }
    let fixture = Fixture::start(era, profile, 0, &logs.join("count.log"))?;
    let mut command = program("narthex-load", profile);
    command.args(["tools", "--url", &fixture.url, "--era", era.name()]);
    let done = capture(&mut command, READY)?;
    let counted: Counted = serde_json::from_str(&done.stdout).with_context(|| done.stderr)?;
    Ok(counted.tools)
}

fn write_config(dir: &Path, fixtures: &[Fixture]) -> Result<PathBuf> {
    let config = dir.join("mcp.json");
    let entry = |fixture: &Fixture| json!({ "transport": "http", "url": fixture.url });
    let servers: serde_json::Map<String, Value> =
        ALIASES.iter().zip(fixtures).map(|(a, f)| ((*a).to_owned(), entry(f))).collect();
    fs::write(&config, json!({ "servers": servers }).to_string())?;
    Ok(config)
}
