//! `narthex setup` in a home folder with files of eight clients: the clients make calls through
//! narthex by the entries that it wrote, and the way back leaves nothing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::clients::{ANY, Endpoint};
use super::install::{Agents, Peers};
use crate::process::{self, Service};
use crate::tally::Tally;
use crate::workspace;

const DONE: Duration = Duration::from_secs(120);
const READY: Duration = Duration::from_secs(30);
/// The files of the home folder, which the tests of `narthex setup` have, too.
const HOME: &str = "crates/command/narthex/tests/it/setup/home";
/// All clients of the files; two of them have no verified row, and so must be named.
const CLIENTS: &str = "claude-code,cursor,vscode,windsurf,codex,gemini-cli,zed,goose";
/// The servers that work, by their names in narthex, and those that stay where they are.
const MOVED: [&str; 7] = ["docs", "files", "my-files", "schema", "shell", "tests", "tracker"];
const STAYED: [&str; 4] = ["gone", "issues", "tracker-cursor", "wiki"];
/// The only file that cannot be read.
const BROKEN: &str = ".codeium/windsurf/mcp_config.json";
/// The file that its client writes all the time.
const CLAUDE: &str = ".claude.json";
/// The key of the server over HTTP, and other values of servers that move.
const KEY: &str = "tracker-canary-5711";
const SECRETS: [&str; 4] = [KEY, "docs-canary-5713", "schema-canary-5714", "shell-canary-5715"];
/// The folders that belong to narthex.
const OWN: [&str; 4] =
    [".local/share/narthex", ".config/narthex", ".cache/narthex", ".config/systemd"];
/// The tool that each client calls, and how its name ends where a client puts its own before it.
const TOOL: &str = "mcp__tracker__echo";
const TOOL_END: &str = "tracker__echo";
const MESSAGE: &str = "through narthex";

/// A home folder with the files of eight clients.
struct Home {
    /// The folder with the home folder and with the one where commands are typed.
    dir: TempDir,
    /// The files by their path in the home folder.
    files: Vec<(PathBuf, String)>,
    _tracker: Service,
}

/// Runs the set-up, a call of each client, and the way back.
pub(super) fn check(tally: &mut Tally, peers: &Peers, logs: &Path) -> Result<()> {
    let agents = Agents::install()?;
    let home = Home::new(logs)?;
    tally.check("setup moves the servers of eight clients", || home.is_set_up());
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
    tally.check("setup --undo brings every file back, byte for byte", || home.is_undone());
    tally.check("uninstall --delete-data leaves nothing", || home.is_left());
    Ok(())
}

impl Home {
    fn new(logs: &Path) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("narthex-home-").tempdir()?;
        let folder = dir.path().join("folder");
        fs::create_dir(&folder)?;
        let (tracker, url) = tracker(dir.path(), logs)?;
        let filled = |text: &str| {
            let fixture = workspace::built("narthex-fixture");
            let text = text.replace("FOLDER", &folder.display().to_string());
            text.replace("FIXTURE", &fixture.display().to_string()).replace("URL", &url)
        };
        let mut files = Vec::new();
        let root = workspace::root().join(HOME);
        for path in files_below(&root)? {
            let text = filled(&fs::read_to_string(&path)?);
            let name = path.strip_prefix(&root)?.to_path_buf();
            let place = dir.path().join("home").join(&name);
            fs::create_dir_all(place.parent().context("a file without a folder")?)?;
            fs::write(&place, &text)?;
            files.push((name, text));
        }
        ensure!(files.len() == 8, "{HOME} has {} files", files.len());
        Ok(Self { dir, files, _tracker: tracker })
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.home().join(name)
    }

    /// A command of narthex as the user of the home folder types it.
    fn narthex(&self, words: &[&str]) -> Result<Value> {
        let mut command = Command::new(workspace::built("narthex"));
        command.args(words).arg("--json").current_dir(self.dir.path().join("folder"));
        self.environment(&mut command);
        let done = process::capture(&mut command, DONE)?;
        let said = format!("{}{}", done.stdout, done.stderr);
        ensure!(done.status.success(), "`narthex {}` ended so:\n{said}", words.join(" "));
        let mut answer: Value = serde_json::from_str(&done.stdout).context(said)?;
        Ok(answer["data"].take())
    }

    fn environment(&self, command: &mut Command) {
        command.env("HOME", self.home()).env("NARTHEX_LISTEN", "127.0.0.1:0");
        for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"] {
            command.env_remove(name);
        }
    }

    fn is_set_up(&self) -> Result<()> {
        let done = self.narthex(&["setup", "--yes", "--only", CLIENTS])?;
        let names = |member: &str, key: &str| -> Vec<String> {
            let all = done[member].as_array().map(Vec::as_slice).unwrap_or_default();
            let mut names: Vec<_> =
                all.iter().filter_map(|one| one[key].as_str().map(str::to_owned)).collect();
            names.sort_unstable();
            names
        };
        let moved = names("moved", "name");
        ensure!(moved == MOVED, "these moved: {moved:?} in {done}");
        let stayed = names("stayed", "name");
        ensure!(stayed == STAYED, "these stayed: {stayed:?} in {done}");
        let connected = names("connected", "client").len();
        ensure!(connected == self.files.len() - 1, "{connected} clients are connected: {done}");
        for (name, before) in &self.files {
            let text = fs::read_to_string(self.path(name))?;
            if name.as_path() == Path::new(BROKEN) {
                ensure!(text == *before, "{BROKEN} has changed:\n{text}");
                continue;
            }
            let is_moved =
                text.contains("narthex") && !SECRETS.iter().any(|one| text.contains(one));
            let name = name.display();
            ensure!(is_moved, "{name} has a key still, or no entry of narthex:\n{text}");
        }
        self.has_no_others()
    }

    /// All files but those of the clients lie in narthex's own folders.
    fn has_no_others(&self) -> Result<()> {
        for path in files_below(&self.home())? {
            let name = path.strip_prefix(self.home())?;
            let is_known = self.files.iter().any(|(own, _)| own == name)
                || OWN.iter().any(|own| name.starts_with(own));
            ensure!(is_known, "{} is new, and not in a folder of narthex", name.display());
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
            format!("HOME={}", self.home().display()),
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
        command.arg("--home").arg(self.home()).args(["--tool", TOOL_END]);
        command.arg("--arguments").arg(json!({ "message": MESSAGE }).to_string());
        let before = fs::read(self.path(CLAUDE))?;
        let done = process::capture(&mut command, DONE)?;
        // Counts and dates that Claude Code writes into its own file are taken back, so that the
        // undo can be compared byte by byte. Tests have the undo of a file that it has rewritten.
        fs::write(self.path(CLAUDE), before)?;
        ensure!(done.status.success(), "{}{}", done.stdout, done.stderr);
        let line = done.stdout.lines().next_back().context("the driver printed nothing")?;
        let answer: Value = serde_json::from_str(line)?;
        let result = answer["result"].as_str().unwrap_or_default();
        ensure!(result.contains(MESSAGE), "the agent got {answer}");
        Ok(())
    }

    fn is_undone(&self) -> Result<()> {
        let undone = self.narthex(&["setup", "--undo", "--yes"])?;
        self.is_as_before().with_context(|| undone.to_string())
    }

    fn is_as_before(&self) -> Result<()> {
        for (name, before) in &self.files {
            let now = fs::read_to_string(self.path(name))?;
            ensure!(now == *before, "{} differs:\n{now}", name.display());
        }
        Ok(())
    }

    fn is_left(&self) -> Result<()> {
        let done = self.narthex(&["uninstall", "--yes", "--delete-data"])?;
        // Clients keep logs of their own, which have the name of the entry.
        for own in OWN {
            ensure!(!self.path(own).exists(), "{own} is left:\n{done}");
        }
        self.is_as_before()
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

/// The server over HTTP, which takes one key alone, and its address.
fn tracker(dir: &Path, logs: &Path) -> Result<(Service, String)> {
    let key = dir.join("tracker.key");
    fs::write(&key, KEY)?;
    let mut command = Command::new(workspace::built("narthex-fixture"));
    command.args(["--http", "127.0.0.1:0", "--require-bearer-file"]).arg(key);
    let service = Service::start("tracker", &mut command, &logs.join("tracker.log"))?;
    let url = service.wait_for("address", READY, |line| {
        let said: Value = serde_json::from_str(line).ok()?;
        Some(said["url"].as_str()?.to_owned())
    })?;
    Ok((service, url))
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => files.extend(files_below(&entry.path())?),
            false => files.push(entry.path()),
        }
    }
    Ok(files)
}
