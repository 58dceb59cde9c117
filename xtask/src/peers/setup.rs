//! `narthex setup` in a home folder with files of real clients: the clients make calls through
//! narthex by the entries that it wrote, and the way back leaves nothing.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::clients::{ANY, Endpoint};
use super::install::{Agents, Peers};
use crate::process;
use crate::tally::Tally;
use crate::workspace;

const DONE: Duration = Duration::from_secs(120);
/// All clients of the home folder.
const CLIENTS: &str = "claude-code,codex,cursor";
/// The tool that each client calls, and how its name ends where a client puts its own before it.
const TOOL: &str = "mcp__everything__echo";
const MESSAGE: &str = "through narthex";

/// A home folder with the files of three clients.
struct Home {
    dir: TempDir,
    files: Vec<(&'static str, String)>,
}

/// Runs the set-up, a call of each client, and the way back.
pub(super) fn check(tally: &mut Tally, peers: &Peers) -> Result<()> {
    let agents = Agents::install()?;
    let home = Home::new(peers)?;
    tally.check("setup moves the servers of three clients", || home.is_set_up());
    tally.check("the Inspector calls through the entry in Cursor's file", || {
        let answer = ANY.drive(peers, &home.entry()?, TOOL, &json!({ "message": MESSAGE }))?;
        answer.has_text(MESSAGE)?;
        home.inspects(peers)
    });
    tally.check("mcp-remote calls by the address", || {
        let remote = home.remote(peers, &agents)?;
        let answer = ANY.drive(peers, &remote, TOOL, &json!({ "message": MESSAGE }))?;
        answer.has_text(MESSAGE)
    });
    for agent in ["claude", "codex"] {
        tally.check(&format!("the agent {agent} calls through its own file"), || {
            home.calls_by(peers, &agents, agent)
        });
    }
    tally.check("setup --undo brings the files back", || home.is_undone());
    tally.check("uninstall --delete-data leaves nothing", || home.is_left());
    Ok(())
}

impl Home {
    fn new(peers: &Peers) -> Result<Self> {
        let server = |name: &str| {
            let script = peers.module(&format!("@modelcontextprotocol/{name}"));
            script.join("dist/index.js").to_string_lossy().into_owned()
        };
        let node = peers.node().to_string_lossy().into_owned();
        let everything = json!({ "type": "stdio", "command": node,
            "args": [server("server-everything")] });
        let claude = json!({ "numStartups": 3, "mcpServers": { "everything": everything } });
        let cursor = format!(
            "{{\n  // Notes of the team.\n  \"mcpServers\": {{\n    \"memory\": {{\n      \
             \"command\": {node:?},\n      \"args\": [{:?}],\n    }},\n  }},\n}}\n",
            server("server-memory")
        );
        let codex = format!(
            "# By hand.\nmodel = \"stand-in\"\n\n[mcp_servers.everything]\ncommand = {node:?}\n\
             args = [{:?}]\n",
            server("server-everything")
        );
        let files = vec![
            (".claude.json", format!("{claude:#}\n")),
            (".cursor/mcp.json", cursor),
            (".codex/config.toml", codex),
        ];
        let dir = tempfile::Builder::new().prefix("narthex-home-").tempdir()?;
        for (name, text) in &files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().context("a file without a folder")?)?;
            fs::write(path, text)?;
        }
        Ok(Self { dir, files })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A command of narthex as the user of the home folder types it.
    fn narthex(&self, words: &[&str]) -> Result<Value> {
        let mut command = Command::new(workspace::built("narthex"));
        command.args(words).arg("--json").current_dir(self.dir.path());
        self.environment(&mut command);
        let done = process::capture(&mut command, DONE)?;
        let said = format!("{}{}", done.stdout, done.stderr);
        ensure!(done.status.success(), "`narthex {}` ended so:\n{said}", words.join(" "));
        let mut answer: Value = serde_json::from_str(&done.stdout).context(said)?;
        Ok(answer["data"].take())
    }

    fn environment(&self, command: &mut Command) {
        command.env("HOME", self.dir.path()).env("NARTHEX_LISTEN", "127.0.0.1:0");
        for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"] {
            command.env_remove(name);
        }
    }

    fn is_set_up(&self) -> Result<()> {
        let done = self.narthex(&["setup", "--yes", "--only", CLIENTS])?;
        let names = |member: &str, key: &str| -> Vec<String> {
            let all = done[member].as_array().map(Vec::as_slice).unwrap_or_default();
            all.iter().filter_map(|one| one[key].as_str().map(str::to_owned)).collect()
        };
        let mut moved = names("moved", "name");
        moved.sort_unstable();
        ensure!(moved == ["everything", "memory"], "these moved: {moved:?} in {done}");
        let connected = names("connected", "client").len();
        ensure!(connected == self.files.len(), "{connected} clients are connected: {done}");
        for (name, _) in &self.files {
            let text = fs::read_to_string(self.path(name))?;
            let is_moved = text.contains("narthex") && !text.contains("server-");
            ensure!(is_moved, "{name} has its servers still, or no entry of narthex:\n{text}");
        }
        Ok(())
    }

    /// The entry of narthex that Cursor's file has.
    fn own_entry(&self) -> Result<Value> {
        let text = fs::read_to_string(self.path(".cursor/mcp.json"))?;
        let start = text.find("\"narthex\"").context("no entry of narthex")?;
        let entry = text[start..].split_once(':').context("no entry of narthex")?.1;
        let mut values = serde_json::Deserializer::from_str(entry).into_iter::<Value>();
        Ok(values.next().context("no entry of narthex")??)
    }

    /// The program of that entry, in this home folder.
    fn entry(&self) -> Result<Endpoint> {
        let entry = self.own_entry()?;
        let mut words = vec![
            "env".to_owned(),
            format!("HOME={}", self.dir.path().display()),
            entry["command"].as_str().context("an entry without a command")?.to_owned(),
        ];
        let arguments = entry["args"].as_array().context("an entry without arguments")?;
        words.extend(arguments.iter().filter_map(Value::as_str).map(str::to_owned));
        Ok(Endpoint::Stdio(words))
    }

    /// Has the Inspector start the entry itself. It reads no comments, so it gets a file without
    /// them.
    fn inspects(&self, peers: &Peers) -> Result<()> {
        let launcher = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";
        let file = self.path("inspector.json");
        let servers = json!({ "mcpServers": { "narthex": self.own_entry()? } });
        fs::write(&file, servers.to_string())?;
        let mut command = Command::new(peers.node());
        command.arg(peers.module(launcher)).arg("--cli").arg("--config").arg(&file);
        command.args(["--server", "narthex", "--method", "tools/call", "--tool-name", TOOL]);
        command.arg("--tool-args-json").arg(json!({ "message": MESSAGE }).to_string());
        command.args(["--format", "json", "--quiet"]);
        self.environment(&mut command);
        let done = process::capture(&mut command, DONE)?;
        fs::remove_file(file)?;
        let said = format!("{}{}", done.stdout, done.stderr);
        ensure!(done.status.success() && done.stdout.contains(MESSAGE), "{said}");
        Ok(())
    }

    /// `mcp-remote`, which makes a program of an address.
    fn remote(&self, peers: &Peers, agents: &Agents) -> Result<Endpoint> {
        let daemon = self.narthex(&["daemon", "status"])?;
        let url = daemon["url"].as_str().context("the daemon has no address")?;
        let token = self.path(".local/share/narthex/client.token");
        // The token is in no argument of the program.
        let script = format!(
            "AUTH=\"Bearer $(cat '{}')\" HOME='{}' exec '{}' '{}' '{url}/mcp' --header \
             'Authorization:${{AUTH}}' --transport http-only",
            token.display(),
            self.path("remote").display(),
            peers.node().display(),
            agents.module("mcp-remote").join("dist/proxy.js").display(),
        );
        Ok(Endpoint::Stdio(["sh", "-c", &script].map(str::to_owned).to_vec()))
    }

    fn calls_by(&self, peers: &Peers, agents: &Agents, agent: &str) -> Result<()> {
        let mut command = Command::new(peers.node());
        command.arg(workspace::root().join("e2e/clients/agents.mjs"));
        command.arg("--agents").arg(agents.dir()).args(["--agent", agent]);
        command.arg("--home").arg(self.dir.path()).args(["--tool", "everything__echo"]);
        command.arg("--arguments").arg(json!({ "message": MESSAGE }).to_string());
        let done = process::capture(&mut command, DONE)?;
        ensure!(done.status.success(), "{}{}", done.stdout, done.stderr);
        let line = done.stdout.lines().next_back().context("the driver printed nothing")?;
        let answer: Value = serde_json::from_str(line)?;
        let result = answer["result"].as_str().unwrap_or_default();
        ensure!(result.contains(MESSAGE), "the agent got {answer}");
        Ok(())
    }

    /// Files that no client has written are as they were, byte for byte. Claude Code writes its own
    /// file all the time: it has its servers back.
    fn is_undone(&self) -> Result<()> {
        let undone = self.narthex(&["setup", "--undo", "--yes"])?;
        for (name, before) in &self.files {
            let now = fs::read_to_string(self.path(name))?;
            if *name == ".claude.json" {
                let servers = |text: &str| -> Result<Value> {
                    Ok(serde_json::from_str::<Value>(text)?["mcpServers"].take())
                };
                ensure!(servers(&now)? == servers(before)?, "{name} differs:\n{now}\n{undone}");
            } else {
                ensure!(now == *before, "{name} differs:\n{now}\n{undone}");
            }
        }
        Ok(())
    }

    fn is_left(&self) -> Result<()> {
        let done = self.narthex(&["uninstall", "--yes", "--delete-data"])?;
        // Clients keep logs of their own, which have the name of the entry.
        for own in [".local/share/narthex", ".config/narthex", ".config/systemd"] {
            ensure!(!self.path(own).exists(), "{own} is left:\n{done}");
        }
        Ok(())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let mut command = Command::new(workspace::built("narthex"));
        command.args(["daemon", "stop", "--force", "--timeout", "5s", "--quiet"]);
        self.environment(&mut command);
        // It ran no more, unless a check has failed.
        drop(process::capture(&mut command, DONE));
    }
}
