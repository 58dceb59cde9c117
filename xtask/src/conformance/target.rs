//! The fixture server, the gateway in front of it, and the forwarder that adds the token.
//!
//! The suites cannot send a token, so a forwarder adds it and leaves everything else as it is: the
//! `Host` that a suite sends must reach the gateway, which has to refuse a foreign one.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use fs_err as fs;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::peers::Daemon;
use crate::process::Service;
use crate::workspace;

const READY: Duration = Duration::from_secs(30);
const STOPPED: Duration = Duration::from_secs(20);

/// The transparent endpoint of the one server that is configured.
const ENDPOINT: &str = "/mcp/fixture";

pub(super) struct Target {
    /// The fixture server itself.
    pub(super) direct: String,
    /// The fixture server through the transparent endpoint.
    pub(super) gateway: String,
    daemon: Daemon,
    _services: [Service; 2],
    _dir: TempDir,
}

impl Target {
    pub(super) fn start(logs: &Path) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("narthex-").tempdir()?;
        let mut command = Command::new(workspace::built("narthex-fixture"));
        command.args(["--http", "127.0.0.1:0"]);
        let (fixture, direct) = start("narthex-fixture", &mut command, logs)?;

        let config = dir.path().join("mcp.json");
        let entry = json!({ "fixture": { "transport": "http", "url": direct } });
        fs::write(&config, json!({ "servers": entry }).to_string())?;
        let daemon = Daemon::start(&config, &dir.path().join("data"), &logs.join("narthex.log"))?;
        daemon.wait_until_ready(&["fixture"], READY)?;

        let mut command = Command::new(workspace::built("narthex-forwarder"));
        command.args(["--listen", "127.0.0.1:0", "--to", &daemon.endpoint_url("")]);
        command.arg("--bearer-file").arg(daemon.token_file());
        let (forwarder, origin) = start("narthex-forwarder", &mut command, logs)?;
        let gateway = format!("{}{ENDPOINT}", origin.trim_end_matches('/'));
        Ok(Self { direct, gateway, daemon, _services: [fixture, forwarder], _dir: dir })
    }

    pub(super) fn stop(self) -> Result<()> {
        self.daemon.stop(STOPPED)
    }
}

/// Starts a program which prints one JSON line with its `url` when it is ready.
fn start(name: &str, command: &mut Command, logs: &Path) -> Result<(Service, String)> {
    let service = Service::start(name, command, &logs.join(format!("{name}.log")))?;
    let url = service.wait_for("line with its url", READY, |line| {
        let value: Value = serde_json::from_str(line).ok()?;
        value["url"].as_str().map(str::to_owned)
    })?;
    Ok((service, url))
}
