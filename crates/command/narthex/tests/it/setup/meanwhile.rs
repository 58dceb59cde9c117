//! A set-up that waits for a server: killed, stopped by Ctrl-C, or beside an edit of the user.

use super::*;

/// A server that comes up when the test lets it.
struct Gate {
    started: PathBuf,
    go: PathBuf,
    /// The server ends at once while this file is there.
    broken: PathBuf,
}

impl Gate {
    /// Puts the server into Codex's file, alone.
    fn new(home: &Home) -> Self {
        let [started, go, broken] = ["started", "go", "broken"].map(|name| home.place.path(name));
        for fifo in [&started, &go] {
            assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
        }
        let script = format!(
            "[ -e '{broken}' ] && exit 1; echo x > '{}'; cat '{}' > /dev/null; \
            [ -e '{broken}' ] && exit 1; exec '{}' --stdio",
            started.display(),
            go.display(),
            fixture().display(),
            broken = broken.display(),
        );
        let text = format!(
            "# mine\n[mcp_servers.slow]\ncommand = \"sh\"\nargs = [\"-c\", {}]\n\
            env = {{ SLOW_KEY = \"{DOCS_KEY}\" }}\n",
            json!(script)
        );
        home.write("home/.codex/config.toml", &text);
        Self { started, go, broken }
    }

    /// Waits until the server has started.
    fn wait(&self) {
        let seconds = SOON.as_secs().to_string();
        let read = Command::new("timeout").arg(seconds).arg("cat").arg(&self.started).output();
        assert_eq!(read.unwrap().stdout, b"x\n", "the server has not started");
    }

    fn open(&self) {
        fs::write(&self.go, "x").unwrap();
    }
}

/// A set-up that is killed while it waits has changed no file of a client, and can be undone.
#[test]
fn a_killed_set_up_can_be_undone() {
    let home = Home::new("https://tracker.example.com/mcp");
    let gate = Gate::new(&home);
    let before = home.text(".codex/config.toml");
    let mut command = home.command(&["setup", "--yes", "--only", "codex"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    gate.wait();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(home.text(".codex/config.toml"), before);
    assert!(home.settings().exists());
    let undone = home.run(&["setup", "--undo", "--yes", "--json"]).succeeded().json();
    assert_eq!(undone["data"]["cleared_secrets"], json!(["SLOW_KEY"]));
    assert_eq!(home.text(".codex/config.toml"), before);
    assert!(!home.settings().exists() && !home.place.path("data/setup").exists());
}

/// D42: a server that a killed set-up has left in the settings, and that does not work, is taken
/// back with its secret by the set-up that continues.
#[test]
fn d42_a_set_up_takes_back_what_a_killed_one_has_left() {
    let home = Home::new("https://tracker.example.com/mcp");
    let gate = Gate::new(&home);
    let before = home.text(".codex/config.toml");
    let words = ["setup", "--yes", "--json", "--only", "codex"];
    let mut command = home.command(&words);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    gate.wait();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(fs::read_to_string(home.settings()).unwrap().contains("slow"));
    fs::write(&gate.broken, "").unwrap();
    gate.open();
    let data = home.run(&words).succeeded().json()["data"].take();
    assert_eq!((names(&data["moved"]), names(&data["stayed"])), (vec![], vec!["slow"]), "{data}");
    let settings = fs::read_to_string(home.settings()).unwrap();
    assert!(!settings.contains("slow"), "{settings}");
    assert_eq!(home.run(&["secrets", "list", "--quiet"]).succeeded().stdout, "");
    assert_eq!(home.text(".codex/config.toml"), before);
    home.run(&["setup", "--undo", "--yes"]).succeeded();
    assert!(!home.settings().exists() && !home.place.path("data/setup").exists());
}

/// Ctrl-C at the question and during the checks ends the set-up, which says what has changed.
#[test]
fn a_stopped_set_up_says_what_has_changed_and_can_be_undone() {
    let home = Home::new("https://tracker.example.com/mcp");
    let gate = Gate::new(&home);
    let before = home.text(".codex/config.toml");
    // The shell outlives Ctrl-C, which is for all on the terminal.
    let line = format!(
        "trap : INT; stty cols 2000; TERM=xterm HOME={home} XDG_CONFIG_HOME={home}/.config \
         NARTHEX_LISTEN=127.0.0.1:0 {PROGRAM} setup --only codex; echo code $?",
        home = home.place.path("home").display()
    );
    let shown = home.place.on_terminal(&line, "[y/N] ", "\x03");
    assert!(shown.contains("interrupted: nothing has changed\r\n"), "{shown}");
    assert!(shown.contains("code 130"), "{shown}");
    assert!(!home.place.path("data").exists());

    let steps = [("[y/N] ", "y\n"), ("waiting for slow", "\x03")];
    let shown = home.place.at_terminal(&line, &steps);
    let settings = format!("{} has changed; ", home.settings().display());
    for words in [
        "interrupted: no file of a client has changed; 1 secret is in the vault; ",
        &settings,
        "takes back all that was done until now",
        "; the daemon was started, and `narthex daemon stop",
        "code 130",
    ] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
    assert_eq!(home.text(".codex/config.toml"), before);
    home.run(&["setup", "--undo", "--yes"]).succeeded();
    assert!(!home.settings().exists() && !home.place.path("data/setup").exists());

    // Without a terminal, with `--yes`.
    let mut command = home.command(&["setup", "--yes", "--json", "--only", "codex"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    gate.wait();
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
    let done = Done::from(child.wait_with_output().unwrap());
    assert_eq!(done.code, Some(130), "{done:?}");
    let error = &done.json()["error"];
    assert_eq!(error["code"], "interrupted", "{done:?}");
    assert_eq!(error["details"]["changed_files"], json!([]), "{done:?}");
    assert_eq!(error["details"]["secrets"], json!(["SLOW_KEY"]), "{done:?}");
    home.run(&["setup", "--undo", "--yes"]).succeeded();
    assert_eq!(home.text(".codex/config.toml"), before);
    assert!(!home.settings().exists() && !home.place.path("data/setup").exists());
}

/// An entry that its owner changes while a set-up works stays, and so does each other byte.
#[test]
fn a_file_that_changes_meanwhile_keeps_the_change() {
    let home = Home::new("https://tracker.example.com/mcp");
    for (is_entry, from, to) in
        [(false, "# mine", "# yours"), (true, "slow]\n", "slow]\ncwd = \"/\"\n")]
    {
        let gate = Gate::new(&home);
        let mut command = home.command(&["setup", "--yes", "--json", "--only", "codex"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        gate.wait();
        let text = home.text(".codex/config.toml").replace(from, to);
        home.write("home/.codex/config.toml", &text);
        gate.open();
        let done = Done::from(child.wait_with_output().unwrap()).succeeded();
        assert_eq!(names(&done.json()["data"]["moved"]), ["slow"]);
        let now = home.text(".codex/config.toml");
        assert!(now.contains(to) && now.contains("[mcp_servers.narthex]"), "{now}");
        assert_eq!(now.contains("[mcp_servers.slow]"), is_entry, "{now}");
        let problems = done.json()["data"]["problems"].to_string();
        assert_eq!(problems.contains("`slow` was changed meanwhile"), is_entry, "{problems}");
        home.run(&["setup", "--undo", "--yes"]).succeeded();
        assert_eq!(home.text(".codex/config.toml"), text);
        for fifo in [&gate.started, &gate.go] {
            fs::remove_file(fifo).unwrap();
        }
    }
}

/// A file that changes during the question stops the set-up, which would store the old key.
#[test]
fn a_file_that_changes_at_the_question_stops_the_set_up() {
    let home = Home::new("https://tracker.example.com/mcp");
    let line = format!(
        "stty cols 2000; TERM=xterm HOME={home} XDG_CONFIG_HOME={home}/.config \
         NARTHEX_LISTEN=127.0.0.1:0 {PROGRAM} setup --only codex; echo code $?",
        home = home.place.path("home").display()
    );
    let new = home.text(".codex/config.toml").replace(DOCS_KEY, OTHER_KEY);
    let change = || home.write("home/.codex/config.toml", &new);
    let shown = home.place.at_terminal_after(&line, &[("[y/N] ", "y\n")], change);
    let path = home.place.path("home/.codex/config.toml");
    let words =
        format!("nothing was set up: {} has changed meanwhile; run `narthex setup", path.display());
    assert!(shown.contains(&words) && shown.contains("code 1"), "{shown}");
    assert_eq!(home.text(".codex/config.toml"), new);
    assert!(!home.settings().exists() && !home.place.path("data/setup").exists());
    home.run(&["daemon", "status", "--quiet"]).failed(1, &[]);
}
