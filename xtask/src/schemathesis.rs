//! schemathesis with a daemon: it reads the OpenAPI document, sends what that allows and what it
//! does not, and holds every answer against it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde_json::{Value, json};

use crate::peers::{Daemon, Peers};
use crate::process;
use crate::tally::Tally;
use crate::workspace;

/// Longest time for the run, which sends some thousand requests.
const DONE: Duration = Duration::from_secs(900);
const READY: Duration = Duration::from_secs(60);
const STOPPED: Duration = Duration::from_secs(20);
const CREATED: Duration = Duration::from_secs(60);
/// The seed for the choice of the requests, always the same.
const SEED: &str = "1";
/// Number of examples per operation, beside those that cover each limit of each parameter.
const EXAMPLES: &str = "3";
/// The paths that a service may use at all; all others are refused before anything is read.
const OF_SERVICES: [&str; 2] = ["--include-path-regex", "^/api/(workspaces|me|openapi)"];
/// Roles that together read nearly everything, and change the things that a team changes.
const ROLES: [&str; 3] = ["author", "runner", "auditor"];

/// Has the document tried with the operator's token, and with that of a service.
pub(crate) fn run(peers: &Peers) -> Result<Tally> {
    let dir = workspace::target().join("e2e/openapi");
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    fs::create_dir_all(&dir)?;
    let (config, data) = (dir.join("mcp.json"), dir.join("data"));
    let fixture = workspace::built("narthex-fixture");
    let fixture = json!({ "transport": "stdio", "command": fixture, "args": ["--stdio"] });
    fs::write(&config, json!({ "servers": { "fixture": fixture } }).to_string())?;
    let mut command = Command::new(workspace::built("narthex"));
    // Entries are stored there.
    command.env("XDG_CONFIG_HOME", dir.join("settings"));
    let daemon = Daemon::start_as(command, &config, &data, &dir.join("narthex.log"))?;
    let mut tally = Tally::default();
    tally.check("the server is ready", || daemon.wait_until_ready(&["fixture"], READY));
    let tried = Tried { peers, daemon: &daemon, dir: &dir };
    tally.check("schemathesis, with a service's token", || {
        tried.with(&service_token(&data)?, "service", &OF_SERVICES)
    });
    tally.check("schemathesis, with the operator's token", || {
        tried.with(fs::read_to_string(data.join("admin.token"))?.trim(), "operator", &[])
    });
    tally.check("SIGTERM stops the daemon and every child", || daemon.stop(STOPPED));
    Ok(tally)
}

struct Tried<'a> {
    peers: &'a Peers,
    daemon: &'a Daemon,
    dir: &'a Path,
}

impl Tried<'_> {
    /// Tries everything with one token; prints how much that was.
    fn with(&self, token: &str, who: &str, further: &[&str]) -> Result<()> {
        let settings = workspace::root().join("e2e/schemathesis.toml");
        let report = self.dir.join(format!("{who}.json"));
        let mut command = Command::new(self.program());
        command.arg("--config-file").arg(settings).arg("run");
        command.arg(workspace::root().join("docs/reference/openapi.json"));
        command.args(["--url", &self.daemon.endpoint_url("")]);
        command.args(["--header", &format!("Authorization: Bearer {token}")]);
        // `HEAD` is `GET` without a body.
        command.args(["--exclude-method", "HEAD"]).args(further);
        command.args(["--seed", SEED, "--max-examples", EXAMPLES, "--no-color"]);
        command.args(["--report", "json", "--report-json-path"]).arg(&report);
        command.current_dir(self.dir);
        let done = process::capture(&mut command, DONE)?;
        let log = self.dir.join(format!("{who}.log"));
        fs::write(&log, &done.stdout)?;
        let summary = done.stdout.lines().filter(|line| is_count(line));
        summary.for_each(|line| println!("       {}", line.trim()));
        let words = format!("see {}\n{}{}", log.display(), end(&done.stdout), done.stderr);
        ensure!(done.status.success(), "it ended with {}; {words}", done.status);
        Ok(())
    }

    fn program(&self) -> PathBuf {
        self.peers.python("schemathesis", "schemathesis")
    }
}

fn is_count(line: &str) -> bool {
    ["Selected:", "Tested:", "generated"].iter().any(|word| line.contains(word))
}

/// The end of a text, as much as fits on a screen.
fn end(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

fn service_token(data: &Path) -> Result<String> {
    let mut command = Command::new(workspace::built("narthex"));
    command.args(["tokens", "create", "tester", "--json"]);
    command.args(ROLES.iter().flat_map(|role| ["--role", role]));
    command.arg("--data").arg(data);
    let done = process::capture(&mut command, CREATED)?;
    ensure!(done.status.success(), "{}{}", done.stdout, done.stderr);
    let made: Value = serde_json::from_str(&done.stdout)?;
    let token = made["data"]["token"].as_str().context("it printed no token")?;
    Ok(token.to_owned())
}
