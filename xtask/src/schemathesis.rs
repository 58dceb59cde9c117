//! schemathesis with a daemon: it reads the OpenAPI document, sends what that allows and what it
//! does not, and holds every answer against it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
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

/// Has the document tried with the operator's token and with that of a service, at the same time
/// and each at a daemon of its own.
pub(crate) fn run(peers: &Peers) -> Result<Tally> {
    let dir = workspace::target().join("e2e/openapi");
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    let (first, service) = Tried::start(peers, &dir.join("service"))?;
    let (second, operator) = Tried::start(peers, &dir.join("operator"))?;
    let service_token = service_token(&service.data())?;
    let operator_token = fs::read_to_string(operator.data().join("admin.token"))?;
    let (by_service, by_operator) = thread::scope(|scope| {
        let by_service = scope.spawn(|| service.with(&service_token, &OF_SERVICES));
        let by_operator = operator.with(operator_token.trim(), &[]);
        (by_service.join().expect("a run does not panic"), by_operator)
    });
    let mut tally = Tally::default();
    tally.check("schemathesis, with a service's token", || by_service);
    tally.check("schemathesis, with the operator's token", || by_operator);
    tally.check("SIGTERM stops each daemon and every child", || {
        first.stop(STOPPED)?;
        second.stop(STOPPED)
    });
    Ok(tally)
}

/// The address of a daemon with one server, and the folder of all that is written for it.
struct Tried<'a> {
    peers: &'a Peers,
    url: String,
    dir: PathBuf,
}

impl<'a> Tried<'a> {
    /// Starts the daemon, and waits until its server is ready.
    fn start(peers: &'a Peers, dir: &Path) -> Result<(Daemon, Self)> {
        fs::create_dir_all(dir)?;
        let config = dir.join("mcp.json");
        let fixture = workspace::built("narthex-fixture");
        let fixture = json!({ "transport": "stdio", "command": fixture, "args": ["--stdio"] });
        fs::write(&config, json!({ "servers": { "fixture": fixture } }).to_string())?;
        let mut command = Command::new(workspace::built("narthex"));
        // Entries are stored there.
        command.env("XDG_CONFIG_HOME", dir.join("settings"));
        let (data, log) = (dir.join("data"), dir.join("narthex.log"));
        let daemon = Daemon::start_as(command, &config, &data, &log)?;
        daemon.wait_until_ready(&["fixture"], READY)?;
        let url = daemon.endpoint_url("");
        Ok((daemon, Self { peers, url, dir: dir.to_owned() }))
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Tries everything with one token; prints how much that was.
    fn with(&self, token: &str, further: &[&str]) -> Result<()> {
        let settings = workspace::root().join("e2e/schemathesis.toml");
        let report = self.dir.join("report.json");
        let mut command = Command::new(self.program());
        command.arg("--config-file").arg(settings).arg("run");
        command.arg(workspace::root().join("docs/reference/openapi.json"));
        command.args(["--url", &self.url]);
        command.args(["--header", &format!("Authorization: Bearer {token}")]);
        // `HEAD` is `GET` without a body.
        command.args(["--exclude-method", "HEAD"]).args(further);
        command.args(["--seed", SEED, "--max-examples", EXAMPLES, "--no-color"]);
        command.args(["--report", "json", "--report-json-path"]).arg(&report);
        command.current_dir(&self.dir);
        let done = process::capture(&mut command, DONE)?;
        let log = self.dir.join("schemathesis.log");
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
