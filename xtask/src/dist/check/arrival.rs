//! Times each command of a new user, from the installation to the first call.
//!
//! The home folder has the files of two clients. Their server starts by `npx`, whose cache has it.
#![expect(clippy::disallowed_types, reason = "measures real time: nothing here can be paused")]

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{self, Finished};
use crate::workspace;

const DONE: Duration = Duration::from_secs(300);
const ALIAS: &str = "everything";

/// Installs the packages of npm for a user, moves the servers of the clients, and calls a tool.
/// Gives the commands with their seconds.
pub(super) fn measured(packages: &[PathBuf]) -> Result<String> {
    let home = Home::new()?;
    home.warm()?;
    let mut install = vec!["install", "--global", "--offline", "--no-audit", "--no-fund"];
    let packages: Vec<_> = packages.iter().map(|file| file.to_string_lossy()).collect();
    install.extend(packages.iter().map(AsRef::as_ref));
    let (install, _) = home.timed("npm", &install)?;
    let set_up = home.timed("narthex", &["setup", "--yes"]);
    let called = set_up.and_then(|(set_up, done)| {
        ensure!(done.stdout.contains(ALIAS), "{ALIAS} was not moved:\n{}", done.stdout);
        let (call, done) = home.timed("narthex", &["call", ALIAS, "echo", "message=arrived"])?;
        ensure!(done.stdout.contains("arrived"), "the echo is {:?}", done.stdout);
        Ok((set_up, call))
    });
    let left = home.run("narthex", &["uninstall", "--yes", "--delete-data"]);
    let (set_up, call) = called?;
    left.context("the way back")?;
    home.is_as_before()?;
    let all = install + set_up + call;
    Ok(format!(
        "3 commands in {all:.1} s: `npm install --global` {install:.1}, `narthex setup` \
         {set_up:.1}, `narthex call` {call:.1}"
    ))
}

/// A home folder with two clients.
struct Home {
    folder: TempDir,
    entry: Value,
    files: [(&'static str, String); 2],
    /// The settings of npm for this machine, which name its registry.
    npm_settings: String,
}

impl Home {
    fn new() -> Result<Self> {
        let example = fs::read_to_string(workspace::root().join("examples/mcp.json"))?;
        let example: Value = serde_json::from_str(&example)?;
        let entry = example["servers"][ALIAS].clone();
        let entry = json!({ "command": entry["command"], "args": entry["args"] });
        let claude = json!({ "numStartups": 3, "mcpServers": { ALIAS: entry } });
        let args = serde_json::to_string(&entry["args"])?;
        let codex = format!(
            "# By hand.\n[mcp_servers.{ALIAS}]\ncommand = {}\nargs = {args}\n",
            entry["command"]
        );
        let files = [(".claude.json", format!("{claude:#}\n")), (".codex/config.toml", codex)];
        let folder = tempfile::tempdir()?;
        for (name, text) in &files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().context("a path has a folder")?)?;
            fs::write(path, text)?;
        }
        let asked = ["config", "get", "globalconfig"];
        let npm = process::capture(Command::new("npm").args(asked), DONE)?;
        Ok(Self { folder, entry, files, npm_settings: npm.stdout.trim().to_owned() })
    }

    /// Puts the server into the cache of `npx`, and starts nothing of it.
    fn warm(&self) -> Result<()> {
        let args = self.entry["args"].as_array().and_then(|args| args.last());
        let package = args.and_then(Value::as_str).context("the example names a package")?;
        self.run("npx", &["--yes", "--package", package, "--", "true"]).map(drop)
    }

    /// A command without this user's settings, but with the cache of npm.
    fn run(&self, program: &str, args: &[&str]) -> Result<Finished> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let prefix = self.folder.path().join(".npm-global");
        let paths = [prefix.join("bin")].into_iter().chain(std::env::split_paths(&path));
        let mut command = Command::new(program);
        command.args(args).current_dir(self.folder.path()).env_clear();
        command.env("PATH", std::env::join_paths(paths)?).env("HOME", self.folder.path());
        command.env("npm_config_prefix", &prefix).env("LANG", "C.UTF-8");
        command.env("npm_config_globalconfig", &self.npm_settings);
        command.envs(std::env::vars_os().filter(|(name, _)| name == "NODE_EXTRA_CA_CERTS"));
        let done = process::capture(&mut command, DONE)?;
        let said = format!("{}{}", done.stdout, done.stderr);
        ensure!(done.status.success(), "{program} {}: {}\n{said}", args.join(" "), done.status);
        Ok(done)
    }

    /// The seconds of a command, and its output.
    fn timed(&self, program: &str, args: &[&str]) -> Result<(f64, Finished)> {
        let began = Instant::now();
        let done = self.run(program, args)?;
        Ok((began.elapsed().as_secs_f64(), done))
    }

    fn is_as_before(&self) -> Result<()> {
        for (name, text) in &self.files {
            let now = fs::read_to_string(self.folder.path().join(name))?;
            ensure!(now == *text, "{name} is not as it was:\n{now}");
        }
        Ok(())
    }
}
