//! Files of clients in their own notations: approved with `narthex trust`, and stored in the
//! catalog with `narthex servers apply`.

use fs_err as fs;
use narthex_testkit::planted;
use serde_json::{Value, json};

use crate::support::{Done, PROGRAM, Place};

const CODE: &str = r#"{
	"inputs": [
		{ "type": "promptString", "id": "wiki-token", "password": true },
	],
	"servers": {
		"wiki": {
			"type": "http",
			"url": "https://wiki.example.com/mcp",
			"headers": { "Authorization": "Bearer ${input:wiki-token}" },
		},
		/* The next one needs the folder. */
		"tests": {
			"type": "stdio",
			"command": "./bin/tests",
			"args": ["${workspaceFolder}/all", "ghp_0123456789abcdefghij", "sk-1; steal"],
			"env": { "MODE": "${env:MODE}", "API_KEY": "tests-canary-6711" },
			"envFile": "${workspaceFolder}/.env",
		},
		"notes": { "command": "npx", "args": ["-y", "@example/notes"] },
	},
}"#;

const CODEX: &str = r#"model = "example-model"

[mcp_servers.docs] # by hand
command = "docs-server"
disabled_tools = ["erase"]
tool_timeout_sec = 45

[mcp_servers.docs.env]
DOCS_KEY = "docs-canary-6712"
"#;

const GEMINI: &str = r#"{
  "mcpServers": {
    // Without the dangerous one.
    "tracker": {
      "httpUrl": "https://tracker.example.com/mcp",
      "excludeTools": ["erase"],
      "trust": true
    }
  }
}"#;

const ZED: &str = r#"// Zed settings
{
  "theme": "One Dark",
  "context_servers": {
    "schema": { "command": "schema-server", "args": ["--key", "zed-canary-6713-0123456789"] },
    "of-extension": { "enabled": true, "settings": {} },
  },
}"#;

/// A folder with the project files of four clients.
fn place() -> Place {
    let place = Place::with(&json!({}));
    for (name, text) in [
        (".vscode/mcp.json", CODE),
        (".codex/config.toml", CODEX),
        (".gemini/settings.json", GEMINI),
        (".zed/settings.json", ZED),
    ] {
        fs::create_dir_all(place.path(name).parent().unwrap()).unwrap();
        place.write(name, text);
    }
    let secrets = ["tests-canary-6711", "docs-canary-6712", "zed-canary-6713"];
    secrets.into_iter().for_each(planted::remember);
    place
}

fn root(place: &Place) -> String {
    fs::canonicalize(place.path("")).unwrap().display().to_string()
}

/// The server of a name in the output of `narthex trust --json`.
fn server<'s>(shown: &'s Value, alias: &str) -> &'s Value {
    let mut servers = shown["servers"].as_array().unwrap().iter();
    servers.find(|server| server["alias"] == alias).unwrap()
}

/// D27: a client's file is shown as `narthex setup` would take it, with all that narthex does not
/// keep, and nothing is approved without an answer.
#[test]
fn d27_the_project_file_of_a_client_is_shown_before_its_approval() {
    let (place, path) = (place(), ".vscode/mcp.json");
    let refused = place.run(["trust", path]).failed(1, &["mcp.json is not approved", "--yes"]);
    let root = root(&place);
    for shown in [
        format!("{root}/bin/tests {root}/all ghp_0123456789abcdefghij \"sk-1; steal\""),
        format!("in {root}"),
        "with environment MODE=${env:MODE}".to_owned(),
        "with environment API_KEY=\"[hidden]\"".to_owned(),
        "without `envFile`: narthex reads no such file".to_owned(),
        "https://wiki.example.com/mcp".to_owned(),
        "stays in the file: only VS Code has the value of `wiki-token`".to_owned(),
        "`@example/notes` has no fixed version".to_owned(),
    ] {
        assert!(refused.stdout.contains(&shown), "{shown}\n{}", refused.stdout);
    }
    assert!(!place.path("data").exists());

    let setup = place.printed("setup");
    let done = place.run(["trust", path, "--yes"]).succeeded();
    let then = format!("trusted {path} as it is now; {setup} includes it from now on\n");
    assert!(done.stdout.ends_with(&then), "{done:?}");
    let again = place.run(["trust", path]).succeeded();
    assert!(again.stdout.contains("is trusted already"), "{again:?}");
    let shown = place.run(["trust", path, "--json"]).succeeded().json()["data"].take();
    assert_eq!(shown["format"], "vscode");
    assert_eq!(server(&shown, "tests")["left_out"][0]["field"], "envFile");
    assert_eq!(server(&shown, "tests")["folder"], root);
    let shown = place.run(["trust", "--yes", "--json"]).succeeded().json()["data"].take();
    assert_eq!(shown["format"], "narthex");

    // Another content needs another approval.
    place.write(path, &CODE.replace("./bin/tests", "./bin/other"));
    place.run(["trust", path]).failed(1, &["is not approved"]);
}

/// D27: addresses and programs with a client's placeholders are shown as narthex would write them.
#[test]
fn d27_the_placeholders_of_a_client_are_shown_with_what_they_complete() {
    let place = place();
    place.write(
        ".vscode/mcp.json",
        r#"{
      "inputs": [{ "type": "promptString", "id": "team-host" }],
      "servers": {
        "host": { "type": "http", "url": "https://${env:DOCS_HOST}/mcp?key=hidden-1-0123456789",
                  "headers": { "X-Key": "Bearer ${env:DOCS_KEY}" } },
        "asked": { "type": "http", "url": "https://${input:team-host}/mcp" },
        "home": { "command": "${userHome}/bin/run", "args": ["${workspaceFolder}/a"],
                  "cwd": "${userHome}" }
      }
    }"#,
    );
    let shown = place.run(["trust", ".vscode/mcp.json"]).failed(1, &["is not approved"]).stdout;
    let root = root(&place);
    for words in [
        "https://${env:DOCS_HOST}/mcp?key=…",
        "with headers X-Key\n",
        "gets your variables DOCS_KEY\n",
        "https://${env:TEAM_HOST}/mcp",
        &format!("${{env:HOME}}/bin/run {root}/a\n"),
        "in ${env:HOME}\n",
    ] {
        assert!(shown.contains(words), "no {words}: {shown}");
    }
    assert!(!shown.contains("hidden-1"), "{shown}");
}

/// D27: neither letters that look like a secret, nor a host that a parser finds elsewhere, nor a
/// path or name that is not what it seems, hides what runs.
#[test]
fn d27_a_clients_file_hides_nothing_that_runs() {
    let place = place();
    let servers = json!({
        "package": { "command": "npx", "args": ["-y", "weather2mcpserverx@1.0.0"],
                     "env": { "NODE_OPTIONS": "--require=a0123456789abcdef" } },
        "long": { "command": "tool0123456789abcdef", "args": ["gist0123456789abcdef"] },
        "slashes": { "url": "http:///127.0.0.1:18765/a1b2c3d4e5f6a7b8c9" },
        "letters": { "url": "https://\u{435}.example/a1b2c3d4e5f6a7b8c9" },
        "home": { "command": "~/bin/tool" },
        "narthex": { "command": "./evil/run" },
        "gate": { "command": "./evil/narthex", "args": ["connect"] },
    });
    place.write(".vscode/mcp.json", &json!({ "servers": servers }).to_string());
    let shown = place.run(["trust", ".vscode/mcp.json"]).failed(1, &["is not approved"]).stdout;
    let root = root(&place);
    for words in [
        "npx -y weather2mcpserverx@1.0.0\n",
        "NODE_OPTIONS=--require=a0123456789abcdef\n",
        "tool0123456789abcdef gist0123456789abcdef\n",
        "http://127.0.0.1:18765/[hidden]\n",
        "https://xn--",
        "nothing: `command` begins with a `~` or a `$NAME`",
        &format!("{root}/evil/run\n"),
        &format!("{root}/evil/narthex connect\n"),
    ] {
        assert!(shown.contains(words), "no {words}: {shown}");
    }
    assert!(!shown.contains("narthex itself"), "{shown}");
}

/// D27: a daemon in the folder of the file reads its own notation, and asks for its own approval.
#[test]
fn d27_an_approval_for_a_client_starts_no_daemon() {
    let place = place();
    place.write(".vscode/mcp.json", r#"{ "servers": { "one": { "command": "false" } } }"#);
    place.run(["trust", ".vscode/mcp.json", "--yes"]).succeeded();
    let mut up = place.command(["up", "--listen", "127.0.0.1:0"]);
    let up = Done::from(up.current_dir(place.path(".vscode")).output().unwrap());
    up.failed(1, &["is not trusted yet"]);
}

/// D27: on a terminal the question says what the approval is for.
#[test]
fn d27_the_question_names_the_command_that_takes_the_file_up() {
    let place = place();
    let line = format!("{PROGRAM} trust .gemini/settings.json");
    let shown = place.on_terminal(&line, "[y/N] ", "n\n");
    assert!(shown.contains("includes it, and may start this? [y/N]"), "{shown}");
    assert!(shown.contains("without `trust`: each client asks for approvals by itself"), "{shown}");
    assert!(!place.path("data").exists());
}

/// D27: no name in a client's file moves the cursor over a line above.
#[test]
fn d27_control_characters_in_a_clients_file_are_inert() {
    let place = place();
    let tricks = "x\u{1b}[1A\u{1b}[2K\u{202e}\r\u{9b}1A";
    let mut entry = json!({ "command": "false", "args": [tricks], "env": { "A": tricks } });
    entry[tricks] = json!(true);
    let mut servers =
        json!({ "one": entry, "two": { "type": tricks, "url": "https://a.example" } });
    servers[tricks] = json!({});
    place.write(".vscode/mcp.json", &json!({ "servers": servers }).to_string());
    for words in [&["trust", ".vscode/mcp.json"][..], &["setup", "--dry-run", "--only", "vscode"]] {
        let done = place.run(words);
        let is_plain = |text: &str| !text.contains(['\u{1b}', '\u{202e}', '\r', '\u{9b}']);
        assert!(is_plain(&done.stdout) && is_plain(&done.stderr), "{words:?}: {done:?}");
        assert!(done.stdout.contains("one"), "{done:?}");
    }
}

/// A line break in the name of a server hides no other name in the table of files.
#[test]
fn a_line_break_in_a_name_cuts_no_table() {
    let place = place();
    let servers = json!({ "first\nline": { "command": "a" }, "zz-last": { "command": "b" } });
    place.write(".vscode/mcp.json", &json!({ "servers": servers }).to_string());
    let done = place.run(["setup", "--dry-run", "--only", "vscode"]);
    let mut lines = done.stdout.lines();
    let row = lines.find(|line| line.contains("stays as it is: first")).unwrap();
    assert!(row.contains("line, zz-last") && row.contains(".vscode/mcp.json"), "{done:?}");
}

#[test]
fn trust_names_the_file_or_the_client_that_is_meant() {
    let place = place();
    place.write("other.toml", CODEX);
    let own = format!("here that is {}/.codex/config.toml", root(&place));
    let words = ["other.toml is no file that Codex CLI has in a project", &own];
    place.run(["trust", "other.toml", "--format", "codex"]).failed(1, &words);
    let cursr = ["trust", "mcp.json", "--format", "cursr"];
    place.run(cursr).failed(2, &["--format", "did you mean `cursor`?"]);
    place.write(".vscode/mcp.json", r#"{ "servers": {} }"#);
    place.run(["trust", ".vscode/mcp.json", "--yes", "--format", "narthex"]).succeeded();
    place.run(["trust", ".vscode/mcp.json"]).failed(1, &["is not approved"]);
    place.write(".codex/config.toml", "[mcp_servers\n");
    place.run(["trust", ".codex/config.toml"]).failed(1, &[".codex/config.toml: line 1, column"]);
}

/// X-M12: the files of clients are stored in the catalog by the same reader. No secret of them is,
/// and each value that the catalog does not take is named.
#[test]
fn x_m12_files_of_clients_become_servers_of_the_catalog() {
    let place = place();
    let _daemon = place.up();
    let apply = |path: &str| place.run(["servers", "apply", "--file", path]);

    let gemini = apply(".gemini/settings.json").succeeded();
    assert_eq!(gemini.stdout, "created the server tracker\n");
    let lost = "mcpServers.tracker: without `trust`: each client asks for approvals by itself";
    assert!(gemini.stderr.contains(lost), "{gemini:?}");
    let tracker = place.run(["servers", "get", "tracker", "--json"]).succeeded().json();
    let tracker = &tracker["data"]["definition"];
    assert_eq!(tracker["tools"], json!({ "deny": ["erase"] }));

    // A literal key becomes the name of a secret, which must be set first.
    let set = place.printed("secrets set DOCS_KEY");
    let told = "mcp_servers.docs.env.DOCS_KEY: the value looks like a secret and is not stored";
    let place_of_key = "`mcp_servers.docs.env.DOCS_KEY` (line 9): ";
    apply(".codex/config.toml").failed(1, &[told, place_of_key, &set]);
    place.pipe(&["secrets", "set", "DOCS_KEY"], "docs-canary-6712").succeeded();
    apply(".codex/config.toml").succeeded();
    let docs = place.run(["servers", "get", "docs"]).succeeded().stdout;
    assert!(docs.contains("\"$secret\": \"DOCS_KEY\"") && docs.contains("45000"), "{docs}");

    // An argument and a folder of the client are refused at their places.
    let zed = [".zed/settings.json: `context_servers.schema.args[1]` (line 5): ", "secrets set"];
    apply(".zed/settings.json").failed(1, &zed);
    let code = ["`servers.tests.args[0]` (line 15): ", "`${workspaceFolder}` is a variable"];
    apply(".vscode/mcp.json").failed(1, &code);
    let servers = place.run(["servers", "list", "--quiet"]).succeeded().stdout;
    assert_eq!(servers, "docs\ntracker\n");
}

/// X-M12: a file elsewhere, and standard input, are read in the notation of `--format`.
#[test]
fn x_m12_the_format_names_the_client() {
    let place = place();
    let _daemon = place.up();
    place.write("other.toml", "[mcp_servers.one]\nurl = \"https://one.example.com/mcp\"\n");
    let refused = place.run(["servers", "apply", "--file", "other.toml"]);
    refused.failed(1, &["files of .toml are not read"]);
    let words = ["servers", "apply", "--format", "codex", "--file", "other.toml"];
    assert_eq!(place.run(words).succeeded().stdout, "created the server one\n");
    let words = ["servers", "apply", "--format", "gemini-cli", "--file", "-"];
    assert_eq!(place.pipe(&words, GEMINI).succeeded().stdout, "created the server tracker\n");
    // The notation of narthex keeps its rules, also at the path of a client.
    fs::create_dir_all(place.path(".cursor")).unwrap();
    let own =
        json!({ "mcpServers": { "two": { "url": "https://two.example.com/mcp", "colour": 1 } } });
    place.write(".cursor/mcp.json", &own.to_string());
    let words = ["servers", "apply", "--format", "narthex", "--file", ".cursor/mcp.json"];
    place.run(words).failed(1, &["`mcpServers.two.colour` (line 1): "]);
    let of_cursor = place.run(["servers", "apply", "--file", ".cursor/mcp.json"]).succeeded();
    assert!(of_cursor.stderr.contains("without `colour`: "), "{of_cursor:?}");
    let agents = ["agents", "apply", "--format", "codex", "--file", "other.toml"];
    place.run(agents).failed(2, &["--format applies to files of servers only"]);
}
