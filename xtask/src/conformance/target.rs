//! The servers, the gateway in front of them, and the forwarder that adds the token.
//!
//! The suites cannot send a token, so a forwarder adds it and leaves everything else as it is: the
//! `Host` that a suite sends must reach the gateway, which has to refuse a foreign one.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use fs_err as fs;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::servers::{SERVERS, Server};
use crate::peers::{Daemon, Peers};
use crate::process::Service;
use crate::workspace;

const READY: Duration = Duration::from_secs(30);
const STOPPED: Duration = Duration::from_secs(20);

pub(super) struct Target {
    /// The servers themselves, by their names.
    direct: Vec<(&'static str, String)>,
    /// The gateway's address.
    origin: String,
    daemon: Daemon,
    _services: Vec<Service>,
    _dir: TempDir,
}

impl Target {
    pub(super) fn start(peers: &Peers, logs: &Path) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("narthex-").tempdir()?;
        let (mut services, mut direct) = (Vec::new(), Vec::new());
        for server in &SERVERS {
            let (service, url) = start(server.name, &mut server.command(peers), logs)?;
            services.push(service);
            direct.push((server.name, url));
        }
        let entry = |(name, url): &(&str, String)| {
            ((*name).to_owned(), json!({ "transport": "http", "url": url }))
        };
        let entries: Map<String, Value> = direct.iter().map(entry).collect();
        let config = dir.path().join("mcp.json");
        fs::write(&config, json!({ "servers": entries }).to_string())?;
        let daemon = Daemon::start(&config, &dir.path().join("data"), &logs.join("narthex.log"))?;
        daemon.wait_until_ready(&SERVERS.each_ref().map(|server| server.name), READY)?;

        let mut command = Command::new(workspace::built("narthex-forwarder"));
        command.args(["--listen", "127.0.0.1:0", "--to", &daemon.endpoint_url("")]);
        command.arg("--bearer-file").arg(daemon.token_file());
        let (forwarder, origin) = start("narthex-forwarder", &mut command, logs)?;
        services.push(forwarder);
        Ok(Self { direct, origin, daemon, _services: services, _dir: dir })
    }

    /// A server itself.
    pub(super) fn direct(&self, server: &Server) -> &str {
        let found = self.direct.iter().find(|(name, _)| *name == server.name);
        found.map_or("", |(_, url)| url)
    }

    /// A server through its transparent endpoint.
    pub(super) fn gateway(&self, server: &Server) -> String {
        format!("{}/mcp/{}", self.origin.trim_end_matches('/'), server.name)
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
