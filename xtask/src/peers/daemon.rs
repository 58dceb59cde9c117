//! The daemon under test: its start, its events, and an end that leaves nothing behind.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::clients::Endpoint;
use crate::process::{self, Descendants, Service};
use crate::workspace;

const LISTENING: Duration = Duration::from_secs(30);
/// Time for processes that the daemon has killed before it ended to be gone.
const GONE: Duration = Duration::from_secs(2);

/// A running `narthex up`.
pub(crate) struct Daemon {
    service: Service,
    listening: Listening,
}

/// The first event that `narthex up --json` prints.
#[derive(Deserialize)]
struct Listening {
    url: String,
    token_file: PathBuf,
}

/// The event that all servers have settled.
#[derive(Deserialize)]
struct Ready {
    servers: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    alias: String,
    status: String,
    error: Option<Value>,
}

impl Daemon {
    /// Starts the daemon on a port of its own choice and waits until it listens.
    pub(crate) fn start(config: &Path, data: &Path, log: &Path) -> Result<Self> {
        Self::start_as(Command::new(workspace::built("narthex")), config, data, log)
    }

    /// Starts another build of narthex, or narthex under another program.
    pub(crate) fn start_as(
        mut command: Command,
        config: &Path,
        data: &Path,
        log: &Path,
    ) -> Result<Self> {
        command.args(["up", "--json", "--listen", "127.0.0.1:0"]);
        command.arg("--config").arg(config).arg("--data").arg(data);
        let service = Service::start("narthex up", &mut command, log)?;
        let listening =
            service.wait_for("event listening", LISTENING, |line| event(line, "listening"))?;
        Ok(Self { service, listening })
    }

    /// Waits until all servers have settled; each of them must be ready.
    pub(crate) fn wait_until_ready(&self, aliases: &[&str], within: Duration) -> Result<()> {
        let ready: Ready =
            self.service.wait_for("event ready", within, |line| event(line, "ready"))?;
        for alias in aliases {
            let row = ready.servers.iter().find(|row| row.alias == *alias);
            let status = row.map_or("missing", |row| row.status.as_str());
            let error = row.and_then(|row| row.error.as_ref()).unwrap_or(&Value::Null);
            ensure!(status == "ready", "{alias} is {status}: {error}{}", self.service.quote());
        }
        Ok(())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.service.pid()
    }

    /// One of its HTTP endpoints.
    pub(super) fn http(&self, path: &str) -> Endpoint {
        let url = self.endpoint_url(path);
        Endpoint::Http { url, token_file: self.listening.token_file.clone() }
    }

    pub(crate) fn endpoint_url(&self, path: &str) -> String {
        format!("{}{path}", self.listening.url.trim_end_matches('/'))
    }

    pub(crate) fn token_file(&self) -> &Path {
        &self.listening.token_file
    }

    /// Ends the daemon as a service manager would, and looks for what it has left.
    pub(crate) fn stop(self, within: Duration) -> Result<()> {
        self.stop_by(|service| service.terminate(within))
    }

    /// Ends the daemon by another command, which returns before the daemon has ended.
    pub(crate) fn stop_with(
        self,
        within: Duration,
        ask: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.stop_by(|service| {
            ask()?;
            service.wait(within)
        })
    }

    fn stop_by(self, end: impl FnOnce(Service) -> Result<ExitStatus>) -> Result<()> {
        let descendants = Descendants::of(self.service.pid());
        let log = self.service.quote();
        let status = end(self.service)?;
        ensure!(status.code() == Some(0), "it ended with {status}{log}");
        let left = descendants.left_after(GONE);
        ensure!(left.is_empty(), "these processes are left: {}", left.join(", "));
        Ok(())
    }
}

/// `narthex connect`, as a client would start it.
pub(super) fn stdio(data: &Path, alias: Option<&str>) -> Endpoint {
    let program = workspace::built("narthex").to_string_lossy().into_owned();
    let data = data.to_string_lossy().into_owned();
    let mut words = vec![program, "connect".to_owned(), "--data".to_owned(), data];
    if let Some(alias) = alias {
        words.extend(["--server".to_owned(), alias.to_owned()]);
    }
    Endpoint::Stdio(words)
}

/// `socat`, as the answer to a new run has it for the sockets of the run: for the aggregated
/// endpoint and for one server.
pub(super) fn socat(data: &Path, alias: &str) -> Result<[Endpoint; 2]> {
    let mut command = Command::new(workspace::built("narthex"));
    command.args(["runs", "create", "--json", "--sockets", "--tools", "*"]);
    let done = process::capture(command.arg("--data").arg(data), LISTENING)?;
    let said = format!("{}{}", done.stdout, done.stderr);
    ensure!(done.status.success(), "no run was created: {said}");
    let begun: Value = serde_json::from_str(&done.stdout).context("the answer is no JSON")?;
    let socat = &begun["data"]["socat"];
    Ok([
        Endpoint::Stdio(words(&socat["mcpServers"]["narthex"])?),
        Endpoint::Stdio(words(&socat["mcpServersByAlias"][alias])?),
    ])
}

/// The command line of an entry of `mcpServers`, which has nothing in its environment.
fn words(entry: &Value) -> Result<Vec<String>> {
    ensure!(entry["env"].as_object().is_some_and(Map::is_empty), "an environment: {entry}");
    let arguments = entry["args"].as_array().into_iter().flatten();
    let words = std::iter::once(&entry["command"]).chain(arguments);
    let words = words.map(|word| word.as_str().map(str::to_owned));
    words.collect::<Option<_>>().with_context(|| format!("no command line: {entry}"))
}

/// Reads a line as one kind of event. Other lines, such as the log's, are none.
fn event<T: for<'de> Deserialize<'de>>(line: &str, kind: &str) -> Option<T> {
    let value: Value = serde_json::from_str(line).ok()?;
    (value["event"] == kind).then(|| serde_json::from_value(value).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{Listening, Ready, event};

    #[test]
    fn only_the_wanted_event_is_read() {
        let line = r#"{"event":"listening","url":"http://127.0.0.1:1","token_file":"/d/t","x":1}"#;
        assert_eq!(event::<Listening>(line, "listening").unwrap().url, "http://127.0.0.1:1");
        assert!(event::<Ready>(line, "ready").is_none());
        assert!(event::<Listening>("starting", "listening").is_none());
        let line = r#"{"event":"ready","servers":[{"alias":"a","status":"error","error":"x"}]}"#;
        assert_eq!(event::<Ready>(line, "ready").unwrap().servers[0].status, "error");
    }
}
