//! `narthex setup`: a home folder with files of eight clients, as people and programs write them,
//! with servers that work, fail, or refuse a key.

mod elsewhere;
mod imported;
mod meanwhile;
mod projects;
mod way_back;

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use fs_err as fs;
use narthex_client_files::edit::{Document, Format};
use narthex_testkit::{
    fixture::{Bearer, Options, Running},
    planted,
};
use serde_json::{Value, json};

use crate::support::{Done, PROGRAM, Place, SOON, fixture};

/// The secrets in the files, which no output may have.
const KEY: &str = "tracker-canary-5711";
const OTHER_KEY: &str = "tracker-canary-5712";
const DOCS_KEY: &str = "docs-canary-5713";
const SCHEMA_KEY: &str = "schema-canary-5714";
const SHELL_KEY: &str = "shell-canary-5715";

// Real clients read them in the step `peers`, too.
const CLAUDE: &str = include_str!("setup/home/.claude.json");
const CURSOR: &str = include_str!("setup/home/.cursor/mcp.json");
const CODE: &str = include_str!("setup/home/.config/Code/User/mcp.json");
const BROKEN: &str = include_str!("setup/home/.codeium/windsurf/mcp_config.json");
const CODEX: &str = include_str!("setup/home/.codex/config.toml");
const GEMINI: &str = include_str!("setup/home/.gemini/settings.json");
const ZED: &str = include_str!("setup/home/.config/zed/settings.json");
const GOOSE: &str = include_str!("setup/home/.config/goose/config.yaml");

/// The files by their path in the home folder.
const FILES: [(&str, &str); 8] = [
    (".claude.json", CLAUDE),
    (".cursor/mcp.json", CURSOR),
    (".config/Code/User/mcp.json", CODE),
    (".codeium/windsurf/mcp_config.json", BROKEN),
    (".codex/config.toml", CODEX),
    (".gemini/settings.json", GEMINI),
    (".config/zed/settings.json", ZED),
    (".config/goose/config.yaml", GOOSE),
];

/// All clients of the files; two of them have no verified row, and so must be named.
const ALL: &str = "claude-code,cursor,vscode,windsurf,codex,gemini-cli,zed,goose";

struct Home {
    place: Place,
    /// The server over HTTP, which takes one key alone.
    url: String,
}

impl Home {
    fn new(url: &str) -> Self {
        let home = Self { place: Place::with(&json!({})), url: url.to_owned() };
        for (name, text) in FILES {
            home.write(&format!("home/{name}"), &home.filled(text));
        }
        // The data directory is the user's usual one.
        fs::create_dir(home.place.path("share")).unwrap();
        std::os::unix::fs::symlink(home.place.path("data"), home.place.path("share/narthex"))
            .unwrap();
        home.write(".vscode/mcp.json", r#"{ "servers": { "of-folder": { "command": "x" } } }"#);
        [KEY, OTHER_KEY, DOCS_KEY, SCHEMA_KEY, SHELL_KEY].into_iter().for_each(planted::remember);
        home
    }

    fn filled(&self, text: &str) -> String {
        let folder = fs::canonicalize(self.place.path("")).unwrap();
        let text = text.replace("FOLDER", &folder.display().to_string());
        text.replace("FIXTURE", &fixture().display().to_string()).replace("URL", &self.url)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.place.path(name).parent().unwrap()).unwrap();
        fs::write(self.place.path(name), text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.place.path("home").join(name)).unwrap()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.place.command(words);
        command.env("HOME", self.place.path("home"));
        command.env("XDG_CONFIG_HOME", self.place.path("home/.config"));
        command.env("XDG_DATA_HOME", self.place.path("share"));
        command.env("NARTHEX_LISTEN", "127.0.0.1:0");
        command
    }

    fn run(&self, words: &[&str]) -> Done {
        Done::from(self.command(words).stdin(Stdio::null()).output().unwrap())
    }

    fn set_up(&self, words: &[&str]) -> Value {
        let words = [&["setup", "--yes", "--json", "--only", ALL], words].concat();
        self.run(&words).succeeded().json()["data"].take()
    }

    /// All files of clients are as they were, and no folder has another file.
    #[track_caller]
    fn is_untouched(&self) {
        for (name, text) in FILES {
            assert_eq!(self.text(name), self.filled(text), "{name}");
        }
        let mut files = Vec::new();
        files_below(&self.place.path("home"), &mut files);
        let known = |file: &PathBuf| {
            let name = file.strip_prefix(self.place.path("home")).unwrap();
            FILES.iter().any(|(own, _)| Path::new(own) == name)
                || name.starts_with(".config/narthex")
        };
        files.retain(|file| !known(file));
        assert_eq!(files, [""; 0].map(PathBuf::from));
    }

    fn settings(&self) -> PathBuf {
        self.place.path("home/.config/narthex/settings.json")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // There may be none, or it has ended already.
        let stop = ["daemon", "stop", "--timeout", "5s", "--force", "--quiet"];
        drop(self.command(&stop).stdin(Stdio::null()).output());
    }
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files_below(&path, files),
            false => files.push(path),
        }
    }
}

async fn tracker() -> Running {
    let required_bearer = Some(Bearer(KEY.to_owned()));
    Running::http(Options { required_bearer, ..Options::default() }).await.unwrap()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

/// D42: servers leave the files of clients once narthex has listed their tools, clients reach them
/// through narthex, and an undo brings every byte back.
#[tokio::test(flavor = "multi_thread")]
async fn d42_servers_move_work_and_come_back() {
    let fixture = tracker().await;
    let home = Home::new(&fixture.url);
    let data = home.set_up(&[]);
    assert_eq!(
        names(&data["moved"]),
        ["tracker", "my-files", "files", "tests", "docs", "schema", "shell"]
    );
    let stayed = names(&data["stayed"]);
    assert_eq!(stayed, ["tracker-cursor", "issues", "gone", "wiki"], "{data}");
    names_remedies_and_faults(&data);
    let refused = &data["stayed"][0];
    assert_eq!(refused["from"][0]["name"], "tracker");
    let skipped = data["skipped"].as_array().unwrap().iter();
    let skipped: Vec<_> = skipped.map(|one| one["from"]["name"].as_str().unwrap()).collect();
    assert_eq!(skipped, ["of-extension", "old", "memory"]);

    let clients = data["connected"].as_array().unwrap().iter();
    let clients: Vec<_> = clients.map(|one| one["client"].as_str().unwrap()).collect();
    let expected = ["claude-code", "cursor", "vscode", "codex", "gemini-cli", "zed", "goose"];
    assert_eq!(clients, expected.map(|id| format!("{id}/user")));

    // No key of a server that moved is in a file any more, and what stayed is as it was.
    let place = home.place.path("data").display().to_string();
    for (name, text) in FILES {
        let now = home.text(name);
        for key in [KEY, DOCS_KEY, SCHEMA_KEY, SHELL_KEY] {
            assert!(!now.contains(key), "{name}: {now}");
        }
        let is_connected = now.contains("narthex") && now.contains(&place);
        assert_eq!(is_connected, text != BROKEN, "{name}: {now}");
    }
    assert!(home.text(".cursor/mcp.json").contains(OTHER_KEY));
    assert!(home.text(".claude.json").contains("here-only"));
    assert!(home.text(".gemini/settings.json").contains("\"old\""));
    let settings = fs::read_to_string(home.settings()).unwrap();
    assert!(!settings.contains("canary"), "{settings}");
    assert!(settings.contains("${secret:TRACKER_AUTHORIZATION}"), "{settings}");
    assert!(!settings.contains("tracker-cursor") && !settings.contains("gone"), "{settings}");

    // The key of the vault opens the server, and a client's own entry leads there.
    let call = home.run(&["call", "tracker", "echo", "message=through"]).succeeded();
    assert!(call.stdout.contains("through"), "{call:?}");
    let cursor = Document::parse(Format::Jsonc, home.text(".cursor/mcp.json").as_bytes()).unwrap();
    let entry = cursor.value(&["mcpServers", "narthex"]).unwrap().unwrap();
    assert_eq!(entry["command"], PROGRAM);
    let args = entry["args"].as_array().unwrap().iter().map(|one| one.as_str().unwrap());
    let lines = through(&home, &args.collect::<Vec<_>>());
    assert!(lines.contains("mcp__tracker__echo") && lines.contains("mcp__docs__echo"), "{lines}");

    // Again, there is nothing to do for what has moved.
    let again = home.set_up(&[]);
    assert_eq!(names(&again["moved"]), [""; 0], "{again}");
    assert_eq!(again["connected"], json!([]));
    a_second_run_names_what_stays(&home);

    let undone = home.run(&["setup", "--undo", "--yes", "--json"]).succeeded().json();
    let files = undone["data"]["files"].as_array().unwrap();
    assert!(files.iter().all(|file| file["result"] == "restored"), "{undone}");
    assert_eq!(undone["data"]["kept_secrets"], json!([]));
    home.is_untouched();
    assert!(!home.settings().exists());
    assert!(!home.settings().with_extension("json.lock").exists());
    assert!(!home.place.path("data/setup").exists());
    assert_eq!(home.run(&["secrets", "list", "--quiet"]).succeeded().stdout, "");
    let nothing = home.run(&["setup", "--undo", "--yes"]).succeeded().stdout;
    assert!(nothing.contains("There is no set-up to undo"), "{nothing}");
}

/// A variable that is not set has a remedy, and a file that cannot be read is a problem.
fn names_remedies_and_faults(data: &Value) {
    let unset = data["stayed"][1]["reason"].as_str().unwrap();
    for words in [
        "a variable is not set where the daemon runs: ISSUES_TOKEN; write the value itself in its",
        "place, or set it in this shell and run `narthex daemon stop",
        "then run `narthex setup",
    ] {
        assert!(unset.contains(words), "{words}\n{unset}");
    }
    let problems = data["problems"].as_array().unwrap();
    assert_eq!((problems.len(), &problems[0]["client"]), (1, &json!("windsurf/user")), "{data}");
    assert!(problems[0]["reason"].as_str().unwrap().starts_with("line 3, column "), "{data}");
    assert_eq!(names(&data["by_folder"]), ["elsewhere", "here-only"], "{data}");
}

/// The table of a second run has no entry of narthex itself, and its end has each server that
/// stays and each file that cannot be read.
fn a_second_run_names_what_stays(home: &Home) {
    let shown = home.run(&["setup", "--yes", "--only", ALL]).succeeded().stdout;
    assert!(!shown.contains("narthex itself") && !shown.contains("\nnarthex "), "{shown}");
    assert!(shown.contains("0 servers, connected already"), "{shown}");
    let (table, end) = shown.split_once("\nNo server has moved to narthex.").unwrap();
    assert!(table.contains("is tried") && !table.contains("moves"), "{table}");
    // Each reason stands there once.
    assert!(!table.contains("stays: ") && !table.contains("stays as it is: line"), "{table}");
    let file = |name: &str| home.place.path("home").join(name).display().to_string();
    let folder = "uses it in the folder /srv/elsewhere alone; `narthex mcp add elsewhere --url \
                  https://elsewhere.example.com --data ";
    for words in [
        "\nThese servers stay where they were:\n".to_owned(),
        format!("memory in Goose ({}): it is disabled there", file(".config/goose/config.yaml")),
        format!("old in Gemini CLI ({}): it is disabled", file(".gemini/settings.json")),
        format!("elsewhere in Claude Code ({}): Claude Code {folder}", file(".claude.json")),
        format!("Windsurf ({}): stays as it is: line 3", file(".codeium/windsurf/mcp_config.json")),
    ] {
        assert!(end.contains(&words), "{words}\n{end}");
    }
}

/// Lists the tools through a client's own entry.
fn through(home: &Home, args: &[&str]) -> String {
    let mut child = home
        .command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for line in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "a-client", "version": "1" } } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
    ] {
        writeln!(input, "{line}").unwrap();
    }
    drop(input);
    Done::from(child.wait_with_output().unwrap()).succeeded().stdout
}

/// The remedy is one that the client understands: Goose and Continue have no variables, so the text
/// `${env:NAME}` would be the value itself.
#[test]
fn the_remedy_for_a_value_of_the_client_is_in_its_own_notation() {
    let home = Home::new("https://tracker.example.com/mcp");
    let goose = |line: &str| {
        format!(
            "extensions:\n  thk:\n    enabled: true\n    type: stdio\n    name: thk\n    \
             description: ''\n    cmd: thk-server\n{line}\n"
        )
    };
    for (only, path, text, words) in [
        (
            "goose",
            "home/.config/goose/config.yaml",
            goose("    env_keys:\n    - THK"),
            "stays: only Goose has the value of `THK`; write the value itself in its place, then",
        ),
        (
            "goose",
            "home/.config/goose/config.yaml",
            goose("    envs:\n      THK_API_KEY: ${env:THK}"),
            "stays: `envs.THK_API_KEY` has `${env:THK}`, which Goose does not fill in; write the \
             value itself in its place, then",
        ),
        (
            "vscode",
            "home/.config/Code/User/mcp.json",
            CODE.replace("FIXTURE", "x"),
            "stays: only VS Code has the value of `wiki-token`; write `${env:NAME}` or the value \
             itself in its place, then",
        ),
    ] {
        home.write(path, &text);
        let shown = home.run(&["setup", "--dry-run", "--only", only]).succeeded().stdout;
        assert!(shown.contains(words), "{words}\n{shown}");
        assert!(!shown.contains("has secrets"), "{shown}");
    }
}

/// On a machine without servers, the set-up names the commands that add one.
#[test]
fn a_set_up_that_finds_no_server_names_the_ways_to_add_one() {
    let home = Home::new("https://tracker.example.com/mcp");
    for (name, _) in FILES {
        fs::remove_file(home.place.path("home").join(name)).unwrap();
    }
    fs::remove_file(home.place.path(".vscode/mcp.json")).unwrap();
    let shown = home.run(&["setup", "--yes"]).succeeded().stdout;
    assert!(shown.contains("There is nothing to set up"), "{shown}");
    for words in ["narthex search WORDS", "narthex add NAME", "narthex mcp add NAME"] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
}

#[test]
fn a_dry_run_shows_all_and_writes_nothing() {
    let home = Home::new("https://tracker.example.com/mcp");
    let shown = home.run(&["setup", "--dry-run", "--only", ALL]).succeeded().stdout;
    for words in [
        "Claude Code, Gemini CLI",
        "tracker-cursor",
        "headers.Authorization",
        "is called `My Files` in Claude Code",
        "stays: only VS Code has the value of `wiki-token`",
        "stays: it is disabled there",
        "stays as it is: line 3, column ",
        "of this folder, stays as it is: of-folder",
        "is tried",
        "stays: Claude Code uses it in the folder /srv/elsewhere alone; `narthex mcp add elsewhere",
        "`narthex mcp add here-only ",
        "reads the variable ISSUES_TOKEN, which is not set here: set it where the daemon starts",
        "a daemon that a client or a service starts needs it, too. Better store the value with \
         `narthex secrets set ISSUES_TOKEN",
        "write `${secret:ISSUES_TOKEN}` as the whole value in your settings",
        "Nothing has changed: this was a dry run.",
    ] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
    home.is_untouched();
    assert!(!home.place.path("data").exists());
    assert!(!home.place.path("home/.config/narthex").exists());

    // A client whose form is not confirmed is named, and left alone.
    let shown = home.run(&["setup", "--dry-run", "--json"]).succeeded().json();
    let problem = &shown["data"]["problems"][0];
    assert_eq!(problem["client"], "windsurf/user", "{shown}");
    let broken = home.place.path("home/.codeium/windsurf/mcp_config.json");
    assert_eq!(problem["file"], json!(broken));
    assert!(problem["reason"].as_str().unwrap().starts_with("line 3, column "), "{shown}");
    let of_folder = &shown["data"]["by_folder"][0];
    assert_eq!(
        (&of_folder["name"], &of_folder["folder"], &of_folder["secrets"]),
        (&json!("elsewhere"), &json!("/srv/elsewhere"), &json!([]))
    );
    // The client starts a program in its folder.
    let folder = fs::canonicalize(home.place.path("")).unwrap();
    let here = home.place.printed(&format!("mcp add here-only --cwd {}", folder.display()));
    let here = format!("{} -- here", here.trim_matches('`'));
    assert_eq!(shown["data"]["by_folder"][1]["add"], here);
    let left_alone = shown["data"]["left_alone"].as_array().unwrap().iter();
    let left_alone: Vec<_> = left_alone.map(|file| file["client"].as_str().unwrap()).collect();
    assert_eq!(left_alone, ["windsurf/user"]);
    let names = names(&shown["data"]["servers"]);
    assert!(names.contains(&"tracker") && names.contains(&"tracker-cursor"), "{names:?}");
}

#[test]
fn nothing_changes_without_an_answer() {
    let home = Home::new("https://tracker.example.com/mcp");
    let done = home.run(&["setup"]).failed(1, &["nothing has changed", "narthex setup --yes"]);
    assert!(done.stdout.contains("tracker"), "{done:?}");
    let refused = home.run(&["setup", "--json"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.json()["error"]["details"]["servers"].is_array(), "{refused:?}");
    home.run(&["setup", "--only", "cursr"]).failed(2, &["--only", "did you mean `cursor`?"]);
    home.run(&["setup", "--undo", "--only", "codex"]).failed(2, &["--only"]);
    let line = format!(
        "HOME={home} XDG_CONFIG_HOME={home}/.config {PROGRAM} setup --only codex",
        home = home.place.path("home").display()
    );
    let shown = home.place.on_terminal(&line, "[y/N] ", "n\n");
    let question = "Try 2 servers, move those that work to narthex, and connect 1 client to it?";
    assert!(shown.contains(question), "{shown}");
    let quit = "Quit first: Codex CLI";
    let at = shown.find(quit).unwrap_or_else(|| panic!("{quit}\n{shown}"));
    assert!(shown.find(question).is_some_and(|question| at < question), "{shown}");
    home.is_untouched();
    assert!(!home.place.path("data").exists());
}

/// A token and an address of another daemon lead nowhere else, and the entry of a client leads to
/// this data directory and these settings without the variables of this shell.
#[tokio::test(flavor = "multi_thread")]
async fn variables_of_the_shell_lead_to_no_other_daemon() {
    let fixture = tracker().await;
    let home = Home::new(&fixture.url);
    home.write("own.toml", "");
    let run = |words: &[&str]| {
        let mut command = home.command(&[words, &["--settings", "own.toml", "--json"]].concat());
        command.env("NARTHEX_TOKEN", "nrt_of-another").env("NARTHEX_DAEMON_URL", "http://[::1]:1");
        Done::from(command.stdin(Stdio::null()).output().unwrap())
    };
    let done = run(&["setup", "--yes", "--only", "claude-code,codex"]).succeeded().json();
    assert_eq!(done["data"]["problems"], json!([]), "{done}");
    let entries: Value = serde_json::from_str(&home.text(".claude.json")).unwrap();
    let arguments = entries["mcpServers"]["narthex"]["args"].as_array().unwrap();
    let expected = ["--data", "/data", "--settings", "own.toml"];
    assert_eq!(arguments.len(), 5, "{arguments:?}");
    for (word, expected) in arguments.iter().filter(|word| *word != "connect").zip(expected) {
        assert!(word.as_str().unwrap().ends_with(expected), "{arguments:?}");
    }
    run(&["setup", "--undo", "--yes"]).succeeded();
    home.is_untouched();
}

/// A file with a second name is named and left with its servers, which fails the set-up at its end,
/// and an undo removes no file of the user.
#[tokio::test(flavor = "multi_thread")]
async fn files_beside_those_of_clients_stay() {
    let fixture = tracker().await;
    let home = Home::new(&fixture.url);
    let linked = home.place.path("dotfiles.json");
    fs::hard_link(home.place.path("home/.cursor/mcp.json"), &linked).unwrap();
    home.write("home/.narthex-config", "mine");
    let done = home.run(&["setup", "--yes", "--json", "--only", ALL]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let error = done.json()["error"].take();
    let message = error["message"].as_str().unwrap();
    let path = home.place.path("home/.cursor/mcp.json").display().to_string();
    let expected = format!("the set-up is not complete, since it could not write {path}; mend");
    assert!(message.starts_with(&expected), "{message}");
    let data = &error["details"];
    let problem = data["problems"][0].to_string();
    assert!(problem.contains("cursor/user") && problem.contains("2 names"), "{data}");
    assert_eq!(fs::read_to_string(&linked).unwrap(), home.filled(CURSOR));
    assert!(names(&data["moved"]).contains(&"docs"), "{data}");
    assert!(!names(&data["moved"]).contains(&"files"), "{data}");
    let mut stayed = data["stayed"].as_array().unwrap().iter();
    let files = stayed.find(|one| one["name"] == "files").unwrap();
    assert_eq!(files["from"][0]["client"], "cursor/user", "{data}");
    let reason = files["reason"].as_str().unwrap();
    assert!(reason.contains("this file could not be written"), "{data}");

    let words = ["setup", "--yes", "--only", ALL];
    let again = home.run(&words).failed(1, &[&expected]).stdout;
    let line = format!("  files in Cursor ({path}): it works through narthex, but this file could");
    assert!(again.contains(&line), "{again}");
    assert!(again.contains("No server has moved to narthex."), "{again}");
    fs::remove_file(&linked).unwrap();
    let mended = home.set_up(&[]);
    assert_eq!(names(&mended["moved"]), ["files"], "{mended}");
    home.run(&["setup", "--undo", "--yes"]).succeeded();
    assert_eq!(home.text(".narthex-config"), "mine");
    fs::remove_file(home.place.path("home/.narthex-config")).unwrap();
    home.is_untouched();
}

/// Edits of others between a set-up and its undo stay, and exactly the own parts go.
#[tokio::test(flavor = "multi_thread")]
async fn foreign_edits_outlive_an_undo() {
    let fixture = tracker().await;
    let home = Home::new(&fixture.url);
    home.set_up(&[]);
    let change = |name: &str, from: &str, to: &str| {
        let text = home.text(name);
        assert!(text.contains(from), "{text}");
        home.write(&format!("home/{name}"), &text.replacen(from, to, 1));
    };
    change(".claude.json", "\"numStartups\": 214", "\"numStartups\": 215");
    change(".codex/config.toml", "model = \"example-model\"", "model = \"other\" # mine");
    change(".config/goose/config.yaml", "GOOSE_PROVIDER: example", "GOOSE_PROVIDER: other");
    change(".config/narthex/settings.json", "{", "{ // mine\n");
    let done = home.run(&["setup", "--undo", "--yes", "--json"]).succeeded().json();
    let results: Vec<_> = done["data"]["files"].as_array().unwrap().iter().collect();
    let of = |client: &str| {
        let mut results = results.iter().filter(|file| file["client"] == client);
        results.next().unwrap()["result"].as_str().unwrap()
    };
    assert_eq!((of("claude-code/user"), of("zed/user")), ("taken_out", "restored"));
    for (name, text) in FILES {
        let expected = home.filled(text);
        let expected = match name {
            ".claude.json" => expected.replace("214", "215"),
            ".codex/config.toml" => expected.replace("\"example-model\"", "\"other\" # mine"),
            ".config/goose/config.yaml" => expected.replace("R: example", "R: other"),
            _ => expected,
        };
        assert_eq!(home.text(name), expected, "{name}");
    }
    let settings = fs::read_to_string(home.settings()).unwrap();
    assert!(settings.contains("// mine") && !settings.contains("tracker"), "{settings}");
    // Each file has its servers and keys back, so no copy is needed.
    assert!(!home.place.path("data/setup").exists());
}

/// The entry of narthex that its owner has edited between two set-ups is taken out with all else,
/// and its file is named once.
#[tokio::test(flavor = "multi_thread")]
async fn an_edited_entry_of_narthex_goes_with_the_undo() {
    let fixture_of_key = tracker().await;
    let home = Home::new(&fixture_of_key.url);
    home.set_up(&[]);
    let mut all: Value = serde_json::from_str(&home.text(".claude.json")).unwrap();
    let servers = &mut all["mcpServers"];
    servers["narthex"]["env"] = json!({ "NARTHEX_LOG": "debug" });
    let args = ["--stdio", "--tools", "2"];
    let late = json!({ "type": "stdio", "command": fixture(), "args": args });
    servers["late"] = late.clone();
    home.write("home/.claude.json", &all.to_string());
    let data = home.set_up(&[]);
    assert_eq!(names(&data["moved"]), ["late"], "{data}");

    let done = home.run(&["setup", "--undo", "--yes"]).succeeded().stdout;
    let path = home.place.path("home/.claude.json").display().to_string();
    let words = format!(
        "Claude Code: {path} was changed by others since the set-up: its entry `narthex`, which \
         was edited, is taken out, and a copy of the file with it stays; the other changes stay: \
         start a new session\n"
    );
    assert!(done.contains(&words), "{words}\n{done}");
    assert_eq!(done.matches(&path).count(), 1, "{done}");
    let backups = home.place.path("data/setup/backups");
    let words = format!("The files from before are in {}.\n", backups.display());
    assert!(done.contains(&words), "{words}\n{done}");
    let now: Value = serde_json::from_str(&home.text(".claude.json")).unwrap();
    let mut before: Value = serde_json::from_str(&home.filled(CLAUDE)).unwrap();
    before["mcpServers"]["late"] = late;
    assert_eq!(now["mcpServers"], before["mcpServers"]);
    // The edited entry is in that copy, and nowhere else.
    let mut copies = Vec::new();
    files_below(&backups, &mut copies);
    let copies: Vec<_> = copies.iter().map(|copy| fs::read_to_string(copy).unwrap()).collect();
    assert!(matches!(&copies[..], [copy] if copy.contains("NARTHEX_LOG")), "{copies:?}");
}

/// Keys that an import has copied into the settings move to the vault with their servers, and an
/// undo brings the settings back as the import has left them.
#[test]
fn keys_that_an_import_has_copied_move_to_the_vault() {
    let home = Home::new("https://tracker.example.com/mcp");
    let told = home.run(&["mcp", "import", "--yes", "--from", "codex"]).succeeded().stdout;
    assert!(told.contains("moves those of variables and headers to the vault; "), "{told}");
    let imported = fs::read_to_string(home.settings()).unwrap();
    assert!(imported.contains(DOCS_KEY), "the import copies keys");
    let words = ["setup", "--yes", "--json", "--only", "codex"];
    let data = home.run(&words).succeeded().json()["data"].take();
    assert_eq!((names(&data["moved"]), &data["secrets"]), (vec!["docs"], &json!(["DOCS_KEY"])));
    let settings = fs::read_to_string(home.settings()).unwrap();
    assert!(!settings.contains("canary"), "{settings}");
    let settings: Value = serde_json::from_str(&settings).unwrap();
    let servers = &settings["mcp"]["servers"];
    assert_eq!(servers["docs"]["env"], json!({ "DOCS_KEY": "${secret:DOCS_KEY}" }));
    // It fails, and was there before.
    assert_eq!(names(&data["stayed"]), ["issues"], "{data}");
    assert!(servers["issues"].is_object(), "{settings}");
    home.run(&["call", "docs", "echo", "message=through"]).succeeded();

    // The server is known by its names, too, also to another import.
    let again = home.run(&words).succeeded().json()["data"].take();
    assert_eq!((names(&again["moved"]), &again["secrets"]), (vec![], &json!([])), "{again}");
    let connected = home.text(".codex/config.toml");
    home.write("home/.codex/config.toml", &home.filled(CODEX));
    let import = ["mcp", "import", "--json", "--yes", "--from", "codex"];
    let servers = home.run(&import).succeeded().json()["data"]["servers"].take();
    for name in ["docs", "issues"] {
        let mut of_name = servers.as_array().unwrap().iter().filter(|one| one["name"] == name);
        assert_eq!(of_name.next().unwrap()["result"], "present", "{servers}");
    }
    home.write("home/.codex/config.toml", &connected);
    home.run(&["setup", "--undo", "--yes"]).succeeded();
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), imported);
    assert_eq!(home.run(&["secrets", "list", "--quiet"]).succeeded().stdout, "");
    assert_eq!(home.text(".codex/config.toml"), home.filled(CODEX));
}

/// An undo shows what it would do, asks once, and says what still runs.
#[test]
fn an_undo_asks_once_and_says_what_still_runs() {
    let home = Home::new("https://tracker.example.com/mcp");
    home.run(&["setup", "--yes", "--only", "codex"]).succeeded();
    let connected = home.text(".codex/config.toml");
    let file = |name: &str| home.place.path("home").join(name).display().to_string();
    let expected = [
        format!("  Codex CLI: {} comes back as it was before.\n", file(".codex/config.toml")),
        format!(
            "  narthex: {} is removed, since it did not exist before.\n",
            home.settings().display()
        ),
        "  1 secret in the vault is cleared, unless changed since or needed by your settings: \
         DOCS_KEY.\n"
            .to_owned(),
    ];
    let shown = home.run(&["setup", "--undo", "--dry-run"]).succeeded().stdout;
    for words in &expected {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
    assert!(shown.contains("Nothing has changed: this was a dry run."), "{shown}");
    let dry = home.run(&["setup", "--undo", "--dry-run", "--json"]).succeeded().json();
    assert_eq!(dry["data"]["secrets"], json!(["DOCS_KEY"]), "{dry}");

    let refused = ["nothing was undone, and nothing has changed", "narthex setup --undo --yes"];
    home.run(&["setup", "--undo"]).failed(1, &refused);
    home.run(&["setup", "--undo", "--yes", "--dry-run"]).failed(2, &["--dry-run"]);
    let line = format!(
        "HOME={home} XDG_CONFIG_HOME={home}/.config {PROGRAM} setup --undo",
        home = home.place.path("home").display()
    );
    let shown = home.place.on_terminal(&line, "[y/N] ", "n\n");
    assert!(shown.contains("Take all of this back?"), "{shown}");
    assert_eq!(home.text(".codex/config.toml"), connected);
    assert!(home.settings().exists());

    let shown = home.place.on_terminal(&line, "[y/N] ", "y\n");
    let running = home.place.printed("daemon stop");
    let running = format!("The daemon still runs in the background; {running} stops it.");
    assert!(shown.contains(&running), "{running}\n{shown}");
    home.is_untouched();
    home.run(&["daemon", "status", "--quiet"]).succeeded();
}

/// An uninstallation undoes the set-up and stops the daemon; nothing is left if the data go.
#[tokio::test(flavor = "multi_thread")]
async fn an_uninstallation_leaves_nothing() {
    let fixture = tracker().await;
    let home = Home::new(&fixture.url);
    home.set_up(&[]);
    let shown = home.run(&["uninstall", "--dry-run", "--delete-data"]).succeeded().stdout;
    let data = home.place.path("data");
    let deleted = format!("{} is deleted", data.display());
    let store = data.join("store.db").display().to_string();
    let daemon = "The daemon, process ";
    for words in ["come back as they were", daemon, &deleted, &store, "was a dry run"] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
    home.run(&["uninstall"]).failed(1, &["nothing was removed", "narthex uninstall --yes"]);
    assert!(home.text(".claude.json").contains("narthex"));

    let done = home.run(&["uninstall", "--yes", "--delete-data", "--json"]).succeeded().json();
    let done = &done["data"];
    assert!(done["stopped_daemon"].is_u64(), "{done}");
    assert_eq!((&done["left"], &done["removed_service"]), (&json!([]), &Value::Null), "{done}");
    home.is_untouched();
    assert!(!data.exists());
    assert!(!home.place.path("home/.config/narthex").exists());
    // Again, there is nothing to remove.
    home.run(&["uninstall", "--yes", "--delete-data"]).succeeded();
}

/// While a file of a client cannot be brought back, the daemon and the data stay.
#[tokio::test(flavor = "multi_thread")]
async fn an_uninstallation_stops_at_a_file_that_cannot_be_brought_back() {
    let fixture = tracker().await;
    let home = Home::new(&fixture.url);
    home.set_up(&[]);
    let connected = home.text(".codex/config.toml");
    home.write("home/.codex/config.toml", "[broken");
    let dry = ["uninstall", "--dry-run", "--delete-data"];
    let shown = home.run(&dry).succeeded().stdout;
    let path = home.place.path("home/.codex/config.toml").display().to_string();
    for words in [
        "The files of Claude Code, ".to_owned(),
        format!("{path} cannot be brought back: line 1, column "),
        "Nothing else is removed until that is mended; then run `narthex uninstall --delete-data"
            .to_owned(),
    ] {
        assert!(shown.contains(&words), "{words}\n{shown}");
    }
    assert!(!shown.contains("Codex CLI") && !shown.contains("deleted"), "{shown}");
    let shown = home.run(&[&dry[..], &["--json"]].concat()).succeeded().json();
    let present = &shown["data"]["present"];
    assert_eq!(present["faults"][0]["client"], "codex/user", "{shown}");
    assert_eq!((&present["deletes"], &present["deletes_settings"]), (&Value::Null, &json!(false)));
    let done = home.run(&["uninstall", "--yes", "--delete-data"]);
    done.failed(1, &[".codex/config.toml cannot be brought back"]);
    home.run(&["daemon", "status", "--quiet"]).succeeded();
    assert!(home.place.path("data/setup/backups").is_dir());
    // With the fault gone the rest follows, and data that are kept are there for later.
    home.write("home/.codex/config.toml", &connected);
    let done = home.run(&["uninstall", "--yes"]).succeeded().stdout;
    assert!(done.contains("stay, and a later installation uses them"), "{done}");
    home.is_untouched();
    assert!(home.place.path("data/store.db").exists());
}

/// The copy of a client's file that cannot come back byte for byte stays.
#[tokio::test(flavor = "multi_thread")]
async fn an_uninstallation_keeps_the_only_copies_of_files() {
    let fixture = tracker().await;
    let home = Home::new(&fixture.url);
    home.set_up(&[]);
    fs::remove_file(home.place.path("home/.codex/config.toml")).unwrap();
    let setup = home.place.path("data/setup");
    let done = home.run(&["uninstall", "--yes", "--delete-data"]).succeeded().stdout;
    let words = format!(
        "Deleted all that narthex had in {}, but for what stays:\n{setup} stays: it has the only \
         copies of files from before the set-up; delete it with `rm -r {setup}`.\n",
        home.place.path("data").display(),
        setup = setup.display()
    );
    assert!(done.contains(&words), "{words}\n{done}");
    assert!(!done.contains("The files from before") && !done.contains("store.db"), "{done}");
    assert!(!home.place.path("data/store.db").exists());
    let done = home.run(&["uninstall", "--yes", "--delete-data", "--json"]).succeeded().json();
    assert_eq!(done["data"]["left"], json!([setup]), "{done}");
    let mut copies = Vec::new();
    files_below(&setup.join("backups"), &mut copies);
    let mut copies = copies.iter().map(|copy| fs::read_to_string(copy).unwrap());
    assert!(copies.any(|text| text == home.filled(CODEX)));
    fs::remove_dir_all(&setup).unwrap();
    home.run(&["uninstall", "--yes", "--delete-data"]).succeeded();
    assert!(!home.place.path("data").exists());
}

/// The settings belong to the daemon of the usual data directory.
#[tokio::test(flavor = "multi_thread")]
async fn an_uninstallation_of_a_second_daemon_keeps_the_settings_of_the_first() {
    let fixture = tracker().await;
    let home = Home::new(&fixture.url);
    home.set_up(&[]);
    let settings = fs::read_to_string(home.settings()).unwrap();
    let second = home.place.path("second").display().to_string();
    home.run(&["up", "--detach", "--config", "mcp.json", "--data", &second]).succeeded();
    let words = ["uninstall", "--delete-data", "--data", &second];
    let shown = home.run(&[&words[..], &["--dry-run"]].concat()).succeeded().stdout;
    let kept = format!("{} is kept", home.settings().display());
    assert!(shown.contains(&kept), "{shown}");
    let done = home.run(&[&words[..], &["--yes"]].concat()).succeeded().stdout;
    assert!(done.contains(&format!("{} stays: ", home.settings().display())), "{done}");
    assert!(!Path::new(&second).exists());
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), settings);
    home.run(&["daemon", "status", "--quiet"]).succeeded();
    home.run(&["setup", "--undo", "--yes"]).succeeded();
}

/// Nothing is deleted from a folder that narthex has not made, also if a daemon ran with it.
#[test]
fn an_uninstallation_deletes_nothing_of_a_project() {
    let home = Home::new("http://127.0.0.1:1");
    home.write("project/shares/logo.svg", "x");
    home.write("project/store.db.sql", "x");
    home.place.set_mode("project", 0o700);
    let project = home.place.path("project").display().to_string();
    home.run(&["up", "--detach", "--config", "mcp.json", "--data", &project]).succeeded();
    for flag in ["--dry-run", "--yes"] {
        let done = home.run(&["uninstall", "--delete-data", flag, "--data", &project]);
        done.failed(1, &["nothing was removed", "narthex.dir", "`rm -r "]);
    }
    home.run(&["daemon", "status", "--quiet", "--data", &project]).succeeded();
    home.run(&["uninstall", "--yes", "--data", &project]).succeeded();
    home.run(&["daemon", "status", "--quiet", "--data", &project]).failed(1, &[]);
    for file in ["shares/logo.svg", "store.db.sql", "store.db"] {
        assert!(home.place.path("project").join(file).exists(), "{file}");
    }
}
