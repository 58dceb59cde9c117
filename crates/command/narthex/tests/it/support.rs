//! A folder of a test's own, the program run in it, and the daemon as a guard.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Read, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{
        OnceLock,
        mpsc::{Receiver, sync_channel},
    },
    thread,
    time::{Duration, SystemTime},
};

use fs_err as fs;
use narthex_testkit::planted;
use serde_json::{Value, json};
use tempfile::{NamedTempFile, TempDir};

/// Longer than anything here takes, however busy the machine is.
pub(crate) const SOON: Duration = Duration::from_secs(60);

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_narthex");

/// A folder with an `mcp.json` and a data directory.
pub(crate) struct Place {
    dir: TempDir,
}

/// The output of a command, and its exit code.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A running `narthex up --json`.
pub(crate) struct Daemon {
    child: Child,
    lines: Receiver<String>,
}

impl Place {
    /// A place with one server, the fixture over stdio.
    pub(crate) fn new() -> Self {
        Self::with(&json!({ "fixture": fixture_entry() }))
    }

    pub(crate) fn with(servers: &Value) -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        place.write("mcp.json", &json!({ "servers": servers }).to_string());
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Puts a text in place of the present one, at once: a daemon that follows the file reads no
    /// half of it.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        let before = fs::metadata(&path).map(|metadata| metadata.permissions());
        // Files with tokens must not be readable for others.
        let mode = before.unwrap_or_else(|_missing| std::fs::Permissions::from_mode(0o600));
        let mut file = NamedTempFile::new_in(path.parent().unwrap()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        fs::set_permissions(file.path(), mode).unwrap();
        file.persist(path).unwrap();
    }

    pub(crate) fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).unwrap().permissions().mode() & 0o777
    }

    pub(crate) fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// The program in this folder, with nothing of the tester's own settings.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(PROGRAM);
        command.env_clear();
        for name in ["PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.current_dir(self.dir.path());
        command.env("NARTHEX_DATA", self.path("data"));
        command.env("XDG_CONFIG_HOME", self.path("config"));
        // A busy machine is no reason for a run not to begin.
        command.env("NARTHEX_TIMEOUTS_MOUNT", "60s");
        command.args(words);
        command
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Done {
        Done::from(self.command(words).stdin(Stdio::null()).output().unwrap())
    }

    /// This command as it is printed to be pasted: with the data directory of this place.
    pub(crate) fn printed(&self, words: &str) -> String {
        format!("`narthex {words} --data {}`", self.path("data").display())
    }

    /// Runs a command that reads these lines and then the end of its input.
    pub(crate) fn feed(&self, words: &[&str], lines: &[Value]) -> Done {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.pipe(words, &text)
    }

    /// Runs a command that reads this text. If it sets a secret, no output may have the value any
    /// more.
    pub(crate) fn pipe(&self, words: &[&str], text: &str) -> Done {
        if words.starts_with(&["secrets", "set"]) {
            planted::remember(text);
        }
        let mut command = self.command(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The command may have failed without reading its input.
        drop(child.stdin.take().unwrap().write_all(text.as_bytes()));
        Done::from(child.wait_with_output().unwrap())
    }

    /// Waits until a command for a server's log shows `count` lines. Lines may arrive after the
    /// server is ready, since the daemon reads the server's answers at the same time.
    #[track_caller]
    pub(crate) fn until_logged(&self, words: &[&str], count: usize) {
        let began = SystemTime::now();
        loop {
            let shown = self.run([words, &["--json"]].concat()).succeeded().json();
            if shown["data"]["lines"].as_array().unwrap().len() >= count {
                return;
            }
            assert!(began.elapsed().unwrap() < SOON, "no {count} lines: {shown}");
        }
    }

    /// Runs a shell line on a terminal of its own, and types the text once the prompt is shown.
    /// Returns the terminal's output.
    pub(crate) fn on_terminal(&self, line: &str, prompt: &str, typed: &str) -> String {
        self.at_terminal(line, &[(prompt, typed)])
    }

    /// As [`Self::on_terminal`], with several prompts, each answered when it is shown.
    pub(crate) fn at_terminal(&self, line: &str, steps: &[(&str, &str)]) -> String {
        self.at_terminal_after(line, steps, || {})
    }

    /// As [`Self::at_terminal`], with an act before each answer.
    pub(crate) fn at_terminal_after(
        &self,
        line: &str,
        steps: &[(&str, &str)],
        act: impl Fn(),
    ) -> String {
        let alike = self.command([""; 0]);
        let mut script = Command::new("script");
        script.args(["-qec", line, "/dev/null"]).current_dir(self.path(""));
        script.env_clear().envs(alike.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut shown = Vec::new();
        let mut byte = [0];
        for (prompt, typed) in steps {
            while !shown.ends_with(prompt.as_bytes()) {
                output.read_exact(&mut byte).unwrap_or_else(|error| {
                    panic!("{error}: {}", String::from_utf8_lossy(&shown));
                });
                shown.push(byte[0]);
            }
            act();
            input.write_all(typed.as_bytes()).unwrap();
        }
        output.read_to_end(&mut shown).unwrap();
        child.wait().unwrap();
        String::from_utf8(shown).unwrap()
    }

    /// Starts the daemon on a free port and waits until all servers have settled.
    pub(crate) fn up(&self) -> Daemon {
        let daemon = self.start(&["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
        daemon.event("ready");
        daemon
    }

    pub(crate) fn start(&self, words: &[&str]) -> Daemon {
        self.start_with(words, |_command| {})
    }

    /// Starts a daemon by a command that `change` has changed.
    pub(crate) fn start_with(&self, words: &[&str], change: impl FnOnce(&mut Command)) -> Daemon {
        let mut command = self.command(words);
        command.arg("--json").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        change(&mut command);
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = sync_channel(1000);
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Daemon { child, lines }
    }
}

impl Done {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The output as one JSON document per line.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// Checks the exit code and that the error line has all of these words.
    #[track_caller]
    pub(crate) fn failed(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in {self:?}");
        }
        self
    }
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        planted::said("standard output", &output.stdout);
        planted::said("standard error", &output.stderr);
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Daemon {
    /// The next event of this kind; those before it are passed over.
    #[track_caller]
    pub(crate) fn event(&self, kind: &str) -> Value {
        loop {
            let line = self.lines.recv_timeout(SOON);
            let line = line.unwrap_or_else(|error| panic!("no event {kind}: {error}"));
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["event"] == kind {
                return event;
            }
        }
    }

    /// The first row of this server that is printed.
    #[track_caller]
    pub(crate) fn server(&self, alias: &str) -> Value {
        loop {
            let row = self.event("server");
            if row["alias"] == alias {
                return row;
            }
        }
    }

    /// The first row of this server that is printed in this state.
    #[track_caller]
    pub(crate) fn server_in(&self, alias: &str, state: &str) -> Value {
        loop {
            let row = self.server(alias);
            if row["status"] == state {
                return row;
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Waits for its end; the last lines can still be read.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Both fail if it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Every process below this one.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let output = Command::new("ps").args(["-e", "-o", "pid=,ppid="]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let pairs: Vec<(u32, u32)> = text
        .lines()
        .filter_map(|line| {
            let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
            Some((numbers.next()?, numbers.next()?))
        })
        .collect();
    let mut found = vec![pid];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(pairs.iter().filter(|pair| pair.1 == parent).map(|pair| pair.0));
        next += 1;
    }
    found.split_off(1)
}

pub(crate) fn fixture_entry() -> Value {
    json!({ "transport": "stdio", "command": fixture(), "args": ["--stdio"] })
}

/// The fixture server, built if it is older than its source.
pub(crate) fn fixture() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let path = Path::new(PROGRAM).with_file_name("narthex-fixture");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dev/testkit/src");
        let built = fs::metadata(&path).and_then(|metadata| metadata.modified());
        if built.is_ok_and(|built| built > newest(&source)) {
            return path;
        }
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "-p", "narthex-testkit", "--bin", "narthex-fixture"]);
        if path.parent().is_some_and(|dir| dir.ends_with("release")) {
            cargo.arg("--release");
        }
        cargo.arg("--target-dir").arg(path.parent().and_then(Path::parent).unwrap());
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(cargo.status().unwrap().success(), "the fixture server does not build");
        path
    })
}

fn newest(path: &Path) -> SystemTime {
    let metadata = fs::metadata(path).unwrap();
    let own = metadata.modified().unwrap();
    if !metadata.is_dir() {
        return own;
    }
    let below = fs::read_dir(path).unwrap().map(|entry| newest(&entry.unwrap().path()));
    below.chain([own]).max().unwrap_or(own)
}
