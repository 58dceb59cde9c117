//! A place where a package is installed, and the main job there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use fs_err as fs;
use serde_json::json;

use crate::peers::Daemon;
use crate::process::{self, Finished};
use crate::workspace;

const READY: Duration = Duration::from_secs(60);
const ANSWERS: Duration = Duration::from_secs(60);
const STOPPED: Duration = Duration::from_secs(30);
const ALIAS: &str = "fixture";

/// A place where narthex is installed.
pub(super) struct Place {
    /// The name in the table.
    pub(super) name: String,
    /// The words that start narthex as a daemon.
    pub(super) up: Vec<String>,
    /// The words that start it for one call.
    pub(super) call: Vec<String>,
    /// True if a signal reaches the daemon. Else it is stopped by a command.
    pub(super) has_signals: bool,
    /// The file of servers, as the place sees it.
    pub(super) config: PathBuf,
    /// The folder of data, as the place sees it.
    pub(super) data: PathBuf,
    /// The folder in which commands start.
    pub(super) folder: PathBuf,
    /// Folders that are removed when the place is left.
    pub(super) _guards: Vec<Box<dyn std::any::Any>>,
}

/// The test server of this build.
pub(super) fn fixture() -> PathBuf {
    workspace::built("narthex-fixture")
}

/// The text of a file that names the test server by its path in the place.
pub(super) fn config(fixture: &Path) -> String {
    let entry = json!({ "command": fixture, "args": ["--stdio"] });
    json!({ "mcpServers": { ALIAS: entry } }).to_string()
}

impl Place {
    /// A program in a folder of this machine, which has the file of servers and the data, too.
    pub(super) fn on_this_machine(
        name: &str,
        program: &Path,
        folder: tempfile::TempDir,
    ) -> Result<Self> {
        let file = folder.path().join("mcp.json");
        fs::write(&file, config(&fixture()))?;
        let words = vec![program.to_string_lossy().into_owned()];
        Ok(Self {
            name: name.to_owned(),
            up: words.clone(),
            call: words,
            has_signals: true,
            config: file,
            data: folder.path().join("data"),
            folder: folder.path().to_path_buf(),
            _guards: vec![Box::new(folder)],
        })
    }

    /// A command without this user's settings and variables.
    fn command(&self, words: &[String]) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(&self.folder).env_clear();
        command.env("PATH", path).env("HOME", &self.folder).env("LANG", "C.UTF-8");
        command
    }

    fn run(&self, words: &[&str]) -> Result<Finished> {
        let done = process::capture(self.command(&self.call).args(words), ANSWERS)?;
        let said = format!("{}{}", done.stdout, done.stderr);
        ensure!(done.status.success(), "{}: {}\n{said}", words.join(" "), done.status);
        Ok(done)
    }

    /// Starts a daemon with one server, calls a tool of it, and stops the daemon. Gives a summary.
    pub(super) fn main_job(&self, version: &str, logs: &Path) -> Result<String> {
        let said = self.run(&["--version"])?.stdout;
        ensure!(said.trim() == format!("narthex {version}"), "it is {said:?}");
        let log =
            logs.join(format!("{}.log", self.name.replace(|c: char| !c.is_alphanumeric(), "-")));
        let daemon = Daemon::start_as(self.command(&self.up), &self.config, &self.data, &log)?;
        daemon.wait_until_ready(&[ALIAS], READY)?;
        let data = self.data.to_string_lossy();
        let called = self.run(&["call", "--data", &data, ALIAS, "echo", "message=packed"])?;
        ensure!(called.stdout.contains("packed"), "the echo is {:?}", called.stdout);
        self.run(&["daemon", "status", "--data", &data])?;
        match self.has_signals {
            true => daemon.stop(STOPPED)?,
            false => daemon.stop_with(STOPPED, || {
                self.run(&["daemon", "stop", "--data", &data]).map(|_| ())
            })?,
        }
        let stop = if self.has_signals { "SIGTERM" } else { "`daemon stop`" };
        Ok(format!("`up`, `call fixture echo`, `daemon status`, {stop}"))
    }
}
