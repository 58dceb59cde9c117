//! `narthex mcp import`: a home folder with files of eight clients, as people and programs write
//! them.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use fs_err as fs;
use narthex_testkit::planted;
use serde_json::{Value, json};

use crate::support::{Done, PROGRAM, Place};

/// The secrets in the files, which no output may have.
const SECRETS: [&str; 5] = [
    "claude-canary-4711",
    "cursor-canary-4712",
    "codex-canary-4713",
    "zed-canary-4714",
    "args-canary-4715",
];

const CLAUDE: &str = r#"{
  "numStartups": 214,
  "mcpServers": {
    "tracker": {
      "type": "http",
      "url": "https://tracker.example.com/mcp",
      "headers": { "Authorization": "Bearer claude-canary-4711" }
    },
    "My Files": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "@example/files@1.0.0", "--root", "/home/ada"],
      "env": { "LOG": "${FILES_LOG:-info}" },
      "timeout": 30000
    },
    "narthex": { "type": "http", "url": "http://127.0.0.1:7717/mcp" }
  },
  "projects": {
    "FOLDER": { "mcpServers": { "here-only": { "command": "here" } } }
  }
}"#;

const CURSOR: &str = r#"{
  // Shared with the others.
  "mcpServers": {
    "tracker": {
      "url": "https://tracker.example.com/mcp",
      "headers": { "Authorization": "Bearer cursor-canary-4712" },
    },
    "files": {
      "command": "npx",
      "args": ["-y", "@example/files@1.0.0", "--root", "/home/ada"],
      "env": { "LOG": "info" },
    },
  },
}"#;

const CODE: &str = r#"{
	"inputs": [
		{ "type": "promptString", "id": "wiki-token", "password": true },
	],
	"servers": {
		"wiki": {
			"type": "sse",
			"url": "https://wiki.example.com/sse",
			"headers": { "Authorization": "Bearer ${input:wiki-token}" },
			"gallery": true,
		},
		/* The next one needs the folder. */
		"tests": {
			"type": "stdio",
			"command": "node",
			"args": ["${workspaceFolder}/tests.js"],
			"envFile": "${workspaceFolder}/.env",
		},
	},
}"#;

const CODEX: &str = r#"# Settings of ada.
model = "example-model"

[mcp_servers.docs] # by hand
command = "docs-server"
enabled_tools = ["search", "read"]
tool_timeout_sec = 45

[mcp_servers.docs.env]
DOCS_KEY = "codex-canary-4713"

[mcp_servers.issues]
url = "https://issues.example.com/mcp"
bearer_token_env_var = "ISSUES_TOKEN"
"#;

const GEMINI: &str = r#"{
  "mcp": { "excluded": ["old"] },
  "mcpServers": {
    "old": { "url": "https://old.example.com/sse" },
    "tracker": {
      "httpUrl": "https://tracker.example.com/mcp",
      "headers": { "Authorization": "Bearer claude-canary-4711" },
      "trust": true
    }
  }
}"#;

const GOOSE: &str = "\
# Edited by hand once.
GOOSE_PROVIDER: example
extensions:
  developer:
    enabled: true
    type: builtin
    name: developer
  memory:
    enabled: false
    type: stdio
    name: memory
    description: ''
    cmd: memory-server
    args:
    - --key
    - args-canary-4715
";

const ZED: &str = r#"// Zed settings
{
  "theme": "One Dark",
  "context_servers": {
    "schema": { "command": "schema", "env": { "SCHEMA_TOKEN": "zed-canary-4714" } },
    "of-extension": { "enabled": true, "settings": {} },
  },
}"#;

const BROKEN: &str = "{\n  \"mcpServers\": {\n    \"a\": { \"command\": }\n  }\n}";

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

const SETTINGS: &str = "home/.config/narthex/settings.json";

struct Home {
    place: Place,
}

impl Home {
    fn new() -> Self {
        let home = Self { place: Place::with(&json!({})) };
        for (name, text) in FILES {
            home.write(&format!("home/{name}"), &home.filled(text));
        }
        home.write(".vscode/mcp.json", r#"{ "servers": { "of-folder": { "command": "x" } } }"#);
        SECRETS.into_iter().for_each(planted::remember);
        home
    }

    fn filled(&self, text: &str) -> String {
        let folder = fs::canonicalize(self.place.path("")).unwrap();
        text.replace("FOLDER", &folder.display().to_string())
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.place.path(name).parent().unwrap()).unwrap();
        fs::write(self.place.path(name), text).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.place.command([&["mcp", "import"], words].concat());
        self.at_home(&mut command);
        command
    }

    fn at_home(&self, command: &mut Command) {
        command.env("HOME", self.place.path("home"));
        command.env("XDG_CONFIG_HOME", self.place.path("home/.config"));
    }

    fn run(&self, words: &[&str]) -> Done {
        Done::from(self.command(words).stdin(Stdio::null()).output().unwrap())
    }

    /// The entries of the settings.
    fn stored(&self) -> Value {
        let text = fs::read_to_string(self.place.path(SETTINGS)).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["mcp"]["servers"].take()
    }

    /// All files of clients are as they were.
    #[track_caller]
    fn is_untouched(&self) {
        for (name, text) in FILES {
            let now = fs::read_to_string(self.place.path("home").join(name)).unwrap();
            assert_eq!(now, self.filled(text), "{name}");
        }
        let names = |folder: &Path| {
            let names = fs::read_dir(folder).unwrap();
            names.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
        };
        assert_eq!(names(&self.place.path("home/.cursor")).len(), 1);
        assert_eq!(names(&self.place.path("home/.config/goose")).len(), 1);
    }
}

fn one<'v>(list: &'v Value, key: &str, value: &str) -> Vec<&'v Value> {
    list.as_array().unwrap().iter().filter(|item| item[key] == value).collect()
}

#[test]
fn a_dry_run_shows_all_and_writes_nothing() {
    let home = Home::new();
    let outcome = home.run(&["--dry-run", "--json"]).succeeded().json();
    let data = &outcome["data"];
    assert_eq!((&outcome["ok"], &data["is_stored"]), (&json!(true), &json!(false)));
    assert!(!home.place.path("home/.config/narthex").exists(), "not even a lock");
    home.is_untouched();

    let broken = &one(&data["files"], "status", "broken")[..];
    let [broken] = broken else { panic!("{data}") };
    assert_eq!((&broken["client"], &broken["line"]), (&json!("windsurf/user"), &json!(3)));
    let of_folder = one(&data["files"], "status", "of_folder");
    let clients: Vec<_> = of_folder.iter().map(|file| &file["client"]).collect();
    assert_eq!(clients, ["claude-code/local", "vscode/workspace"]);

    let results = |name: &str| {
        let servers = one(&data["servers"], "name", name);
        servers.iter().map(|one| one["result"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(results("tracker"), ["add", "differs"]);
    for name in ["my-files", "files", "wiki", "tests", "docs", "issues", "old", "schema", "memory"]
    {
        assert_eq!(results(name), ["add"], "{name}");
    }
    let tracker = one(&data["servers"], "name", "tracker")[0];
    assert_eq!(tracker["secrets"], json!(["headers.Authorization"]));
    let from: Vec<_> =
        tracker["from"].as_array().unwrap().iter().map(|one| &one["client"]).collect();
    assert_eq!(from, ["claude-code/user", "gemini-cli/user"], "equal servers are one");
    let skipped: Vec<_> = data["skipped"].as_array().unwrap().iter().collect();
    let skipped: Vec<_> = skipped.iter().map(|one| &one["from"]["name"]).collect();
    assert_eq!(skipped, ["of-extension"], "narthex itself is no server that is left out");
    let wiki = one(&data["servers"], "name", "wiki")[0];
    assert_eq!(wiki["unset_variables"], json!(["WIKI_TOKEN"]));
}

/// The table of a person names all that the JSON has.
#[test]
fn the_table_names_what_becomes_of_each_server() {
    let home = Home::new();
    let shown = home.run(&["--dry-run"]).succeeded().stdout;
    for words in [
        "Claude Code, Gemini CLI",
        "line 3, column ",
        "of this folder, not imported: of-folder",
        "add, disabled",
        "2 servers, and narthex itself",
        "not imported: Claude Code uses it in the folder ",
        "`narthex mcp add here-only ",
        "has another server of this name, which counts, and Cursor (",
        "has this one, which differs in `headers`; store its secret first with `narthex secrets \
         set TRACKER_CURSOR_AUTHORIZATION",
        "adds this one as well",
        "is called `My Files` in Claude Code",
        "has secrets: env.DOCS_KEY",
        "has secrets: args[1]",
        "the client asks for `wiki-token`: set WIKI_TOKEN where the daemon starts",
        "reads the variable ISSUES_TOKEN, which is not set here: set it where the daemon starts",
        "a daemon that a client or a service starts needs it, too. Better store the value with \
         `narthex secrets set ISSUES_TOKEN",
        "write `${secret:ISSUES_TOKEN}` as the whole value in your settings",
        "reads the variable FILES_LOG\n",
        "the folder of the client becomes the folder of the daemon",
        "node ${workspaceFolder}/tests.js",
        "without `envFile`: narthex reads no such file",
        "without `gallery`",
        "Nothing has changed: this was a dry run.",
    ] {
        let is_there = shown.contains(words);
        // Fields for people are not worth a line.
        assert_eq!(is_there, words != "without `gallery`", "{words}\n{shown}");
    }
}

#[test]
fn an_import_copies_the_servers_and_changes_no_file_of_a_client() {
    let home = Home::new();
    home.write(
        SETTINGS,
        "{\n  // mine\n  \"mcp\": { \"servers\": {\n    \"docs\": {\"transport\": \
                          \"stdio\", \"command\": \"mine\"}\n  } }\n}\n",
    );
    home.place.set_mode(SETTINGS, 0o600);
    let data = home.run(&["--yes", "--json"]).succeeded().json()["data"].take();
    let docs = one(&data["servers"], "name", "docs")[0];
    assert_eq!(docs["result"], "taken");
    home.is_untouched();
    let text = fs::read_to_string(home.place.path(SETTINGS)).unwrap();
    assert!(text.starts_with("{\n  // mine\n"), "{text}");
    assert_eq!(home.place.mode(SETTINGS), 0o600);
    home.write(SETTINGS, &text.replace("// mine\n", "\n"));
    let stored = home.stored();
    assert_eq!(stored["docs"]["command"], "mine");
    assert_eq!(
        stored["tracker"],
        json!({
            "transport": "http",
            "url": "https://tracker.example.com/mcp",
            "headers": { "Authorization": "Bearer claude-canary-4711" },
        })
    );
    assert_eq!(
        stored["my-files"],
        json!({
            "transport": "stdio",
            "command": "npx",
            "args": ["-y", "@example/files@1.0.0", "--root", "/home/ada"],
            "env": { "LOG": "${env:FILES_LOG:-info}" },
            "timeoutMs": 30000,
        })
    );
    assert_eq!(stored["wiki"]["headers"]["Authorization"], "Bearer ${env:WIKI_TOKEN}");
    assert_eq!(stored["tests"]["args"], json!(["${workspaceRoot}/tests.js"]));
    assert_eq!(
        (&stored["memory"]["disabled"], &stored["old"]["disabled"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(stored["old"]["transport"], "sse");

    // A second import adds nothing. An import of the other file names the server that is there.
    let again = home.run(&["--yes"]).succeeded();
    assert!(again.stdout.contains("There is nothing to import"), "{again:?}");
    assert_eq!(home.stored(), stored);
    let other = home.run(&["--yes", "--json", "--from", "cursor"]).succeeded().json();
    assert_eq!(one(&other["data"]["servers"], "name", "tracker")[0]["result"], "taken");
}

/// The daemon takes the entries as they are stored.
#[test]
fn imported_servers_are_those_of_the_daemon() {
    let home = Home::new();
    let done = home.run(&["--from", "codex,goose", "--yes"]).succeeded();
    assert!(done.stdout.contains("Copied 3 servers into"), "{done:?}");
    assert!(done.stdout.contains("2 secrets are in that file now"), "{done:?}");
    assert!(done.stdout.contains("No daemon runs, so nothing uses them yet; "), "{done:?}");
    assert!(done.stdout.contains("`narthex up --detach"), "{done:?}");
    assert_eq!(home.place.mode(SETTINGS), 0o600);
    assert_eq!(home.stored()["docs"]["tools"], json!({ "allow": ["search", "read"] }));
    let mut list = home.place.command(["mcp", "list", "--json"]);
    home.at_home(&mut list);
    let list = Done::from(list.env("ISSUES_TOKEN", "x").output().unwrap()).succeeded().json();
    assert_eq!(list["data"]["configured"], json!(["docs", "issues", "memory"]));
}

/// The end says if the running daemon has the servers.
#[test]
fn an_import_says_if_the_running_daemon_uses_the_servers() {
    let home = Home::new();
    let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    for (is_at_home, expected) in
        [(true, "The running daemon uses them now; "), (false, "does not read that file")]
    {
        let client = if is_at_home { "codex" } else { "goose" };
        let daemon = home.place.start_with(&words, |command| {
            if is_at_home {
                home.at_home(command);
            }
        });
        daemon.event("ready");
        let done = home.run(&["--from", client, "--yes"]).succeeded().stdout;
        assert!(done.contains(expected), "{done}");
    }
}

#[test]
fn nothing_is_stored_without_an_answer() {
    let home = Home::new();
    let done = home.run(&[]).failed(1, &["denied", "nothing has changed", "--yes"]);
    assert!(done.stdout.contains("tracker"), "{done:?}");
    let outcome = home.run(&["--json"]);
    assert_eq!(outcome.code, Some(1));
    let details = &outcome.json()["error"]["details"];
    assert_eq!(details["is_stored"], false);
    assert!(!home.place.path(SETTINGS).exists());
    let line = format!(
        "HOME={home} XDG_CONFIG_HOME={home}/.config {PROGRAM} mcp import --from codex",
        home = home.place.path("home").display()
    );
    let shown = home.place.on_terminal(&line, "[y/N] ", "n\n");
    assert!(shown.contains("Copy these 2 servers into"), "{shown}");
    assert!(!home.place.path(SETTINGS).exists());
    let shown = home.place.on_terminal(&line, "[y/N] ", "y\n");
    assert!(shown.contains("Copied 2 servers"), "{shown}");
    assert_eq!(home.stored()["docs"]["command"], "docs-server");
    home.is_untouched();
}

#[test]
fn faults_are_named_with_their_remedy() {
    let home = Home::new();
    home.run(&["--from", "cursr"]).failed(2, &["`cursr`", "did you mean `cursor`?"]);
    home.run(&["--dry-run", "--yes"]).failed(2, &["--yes"]);
    home.write(SETTINGS, "{}");
    home.place.set_mode(SETTINGS, 0o644);
    home.run(&["--yes"]).failed(1, &["denied", "0644", "chmod 600"]);
    assert_eq!(fs::read_to_string(home.place.path(SETTINGS)).unwrap(), "{}");
    // Without secrets the mode does not matter.
    home.run(&["--yes", "--from", "vscode"]).succeeded();
    home.write(SETTINGS, "{ \"mcp\": { \"servers\": [] } }");
    home.run(&["--dry-run"]).failed(1, &["invalid", "settings.json", "line 1, column "]);
}

/// The remedy for a second server of a name says which file has which, and its commands work as
/// they are printed.
#[test]
fn the_commands_for_a_second_server_of_a_name_work_when_they_are_pasted() {
    let home = Home::new();
    let entry = |command: &str, key: &str| {
        let entry = json!({ "command": command, "args": ["a b"], "env": { "NOTES_KEY": key } });
        json!({ "mcpServers": { "notes": entry } }).to_string()
    };
    home.write("home/.claude.json", &entry("notes-a", "claude-canary-4711"));
    home.write("home/.cursor/mcp.json", &entry("notes-b", "cursor-canary-4712"));
    let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let daemon = home.place.start_with(&words, |command| home.at_home(command));
    daemon.event("ready");
    let shown = home.run(&["--yes", "--from", "claude-code,cursor"]).succeeded().stdout;
    let file = |name: &str| home.place.path("home").join(name).display().to_string();
    let expected = format!(
        "Claude Code ({}) has another server of this name, which counts, and Cursor ({}) has this \
         one, which differs in `command`, `env`; ",
        file(".claude.json"),
        file(".cursor/mcp.json")
    );
    assert!(shown.contains(&expected), "{expected}\n{shown}");
    let taken = home.run(&["--dry-run", "--from", "cursor"]).succeeded().stdout;
    let expected = format!(
        "{} has another server of this name, and Cursor ({}) has this one; store its secret ",
        home.place.path(SETTINGS).display(),
        file(".cursor/mcp.json")
    );
    assert!(taken.contains(&expected), "{expected}\n{taken}");

    let paste = |start: &str, input: &str| {
        let mut commands = shown.split('`').filter(|text| text.starts_with(start));
        let line = commands.next().unwrap().replacen("narthex", PROGRAM, 1);
        let alike = home.command(&[]);
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir("/").env_clear();
        shell.envs(alike.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.env_remove("NARTHEX_DATA");
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
        Done::from(child.wait_with_output().unwrap()).succeeded()
    };
    paste("narthex secrets set NOTES_CURSOR_NOTES_KEY", "cursor-canary-4712");
    paste("narthex mcp add notes-cursor", "");
    let stored = home.stored();
    assert_eq!(
        stored["notes-cursor"],
        json!({
            "transport": "stdio",
            "command": "notes-b",
            "args": ["a b"],
            "env": { "NOTES_KEY": "${secret:NOTES_CURSOR_NOTES_KEY}" },
        })
    );
    assert_eq!(stored["notes"]["command"], "notes-a");
}

/// A second server has a secret that no command should have. The import names the set-up that moves
/// the server, or says that the server stays.
#[test]
fn a_second_server_with_a_secret_word_is_told_its_fate() {
    let home = Home::new();
    let entry = |command: &str| {
        let entry = json!({ "command": command, "args": ["--key", "import-canary-4713"] });
        json!({ "mcpServers": { "notes": entry } }).to_string()
    };
    home.write("home/.claude.json", &entry("notes-a"));
    for (command, end) in [
        ("notes-b", " moves all servers of Cursor that work to narthex, also this one"),
        ("./notes-b", " leaves it in its file: it depends on the folder in which Cursor works; "),
    ] {
        home.write("home/.cursor/mcp.json", &entry(command));
        let shown = home.run(&["--dry-run", "--from", "claude-code,cursor"]).succeeded().stdout;
        let begin = "this one has a secret that no command should have";
        assert!(shown.contains(begin) && shown.contains(end), "{shown}");
        assert!(shown.contains("`narthex setup --only cursor"), "{shown}");
        assert!(!shown.contains("import-canary-4713"), "{shown}");
    }
}
