//! The real clients: which there are, and how one is driven against an endpoint.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::install::Peers;
use crate::process;
use crate::workspace;

/// A driver starts an interpreter, connects, lists and calls.
const DONE: Duration = Duration::from_secs(60);

/// Protocol revisions before and since 2026-07-28.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Era {
    Legacy,
    Modern,
}

/// One client in one way of choosing its era.
pub(super) struct Client {
    /// The script in `e2e/clients`.
    driver: &'static str,
    /// The era that the client is asked to use: `legacy`, `auto` or `modern`.
    asks_for: &'static str,
    /// The era that it has to end up with at a gateway that serves both.
    pub(super) speaks: Era,
    /// The Python environment, or none for Node.
    python: Option<&'static str>,
    pub(super) is_tried_over_stdio: bool,
}

pub(super) const CLIENTS: [Client; 10] = [
    node("inspector.mjs", "legacy", Era::Legacy, true),
    node("inspector.mjs", "modern", Era::Modern, false),
    node("typescript_v1.mjs", "legacy", Era::Legacy, true),
    node("typescript_v2.mjs", "legacy", Era::Legacy, false),
    node("typescript_v2.mjs", "auto", Era::Modern, false),
    node("typescript_v2.mjs", "modern", Era::Modern, true),
    python("python_v1.py", "mcp-v1", "legacy", Era::Legacy),
    python("python_v2.py", "mcp-v2", "legacy", Era::Legacy),
    python("python_v2.py", "mcp-v2", "auto", Era::Modern),
    python("python_v2.py", "mcp-v2", "modern", Era::Modern),
];

/// The client that tries the servers out.
pub(super) const ANY: &Client = &CLIENTS[4];

const fn node(driver: &'static str, asks_for: &'static str, speaks: Era, stdio: bool) -> Client {
    Client { driver, asks_for, speaks, python: None, is_tried_over_stdio: stdio }
}

const fn python(
    driver: &'static str,
    environment: &'static str,
    asks_for: &'static str,
    speaks: Era,
) -> Client {
    Client { driver, asks_for, speaks, python: Some(environment), is_tried_over_stdio: true }
}

/// The endpoint that a client connects to.
#[derive(Clone)]
pub(super) enum Endpoint {
    Http { url: String, token_file: PathBuf },
    Stdio(Vec<String>),
}

/// The line that a driver prints.
#[derive(Deserialize)]
pub(super) struct Answer {
    pub(super) era: Era,
    pub(super) tools: Vec<String>,
    pub(super) result: Value,
}

impl Answer {
    /// All text of the result, if the call did not fail.
    pub(super) fn text(&self) -> Result<String> {
        let is_error = self.result["isError"].as_bool().unwrap_or(false);
        ensure!(!is_error, "the call failed: {}", self.result);
        let blocks = self.result["content"].as_array().context("the result has no content")?;
        let text: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        Ok(text.join("\n"))
    }

    pub(super) fn has_text(&self, expected: &str) -> Result<()> {
        let text = self.text()?;
        ensure!(text.contains(expected), "expected `{expected}` in {text:?}");
        Ok(())
    }
}

impl Client {
    pub(super) fn name(&self) -> String {
        let (script, _) = self.driver.split_once('.').unwrap_or((self.driver, ""));
        format!("{script} ({})", self.asks_for)
    }

    /// Connects, lists all tools and calls one.
    pub(super) fn drive(
        &self,
        peers: &Peers,
        endpoint: &Endpoint,
        tool: &str,
        arguments: &Value,
    ) -> Result<Answer> {
        let mut command = self.command(peers);
        command.args(["--era", self.asks_for, "--tool", tool]);
        command.arg("--arguments").arg(arguments.to_string());
        match endpoint {
            Endpoint::Http { url, token_file } => {
                command.arg("--url").arg(url).arg("--token-file").arg(token_file);
            }
            Endpoint::Stdio(words) => {
                command.arg("--command").arg(Value::from(words.clone()).to_string());
            }
        }
        let done = process::capture(&mut command, DONE)?;
        if !done.status.success() {
            bail!("the driver ended with {}\n{}{}", done.status, done.stdout, done.stderr);
        }
        let line = done.stdout.lines().next_back().context("the driver printed nothing")?;
        serde_json::from_str(line).with_context(|| format!("the driver printed `{line}`"))
    }

    fn command(&self, peers: &Peers) -> Command {
        let script = workspace::root().join("e2e/clients").join(self.driver);
        match self.python {
            Some(environment) => {
                let mut command = Command::new(peers.python(environment, "python"));
                command.arg("-B").arg(script);
                command
            }
            None => {
                let mut command = Command::new(peers.node());
                command.arg(script).arg("--peers").arg(peers.node_dir());
                command
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ANY, Answer, CLIENTS, Era};

    fn answer(result: serde_json::Value) -> Answer {
        Answer { era: Era::Modern, tools: Vec::new(), result }
    }

    #[test]
    fn a_failed_call_has_no_text() {
        let good = json!({ "content": [{ "type": "text", "text": "Echo: a" }] });
        answer(good).has_text("Echo: a").unwrap();
        let other = json!({ "content": [{ "type": "text", "text": "Echo: b" }] });
        assert!(answer(other).has_text("Echo: a").is_err());
        let bad = json!({ "isError": true, "content": [{ "type": "text", "text": "Echo: a" }] });
        assert!(answer(bad).has_text("Echo: a").is_err());
    }

    #[test]
    fn every_client_has_its_own_name() {
        let names: std::collections::BTreeSet<_> =
            CLIENTS.iter().map(super::Client::name).collect();
        assert_eq!(names.len(), CLIENTS.len());
        assert_eq!(ANY.name(), "typescript_v2 (auto)");
    }
}
