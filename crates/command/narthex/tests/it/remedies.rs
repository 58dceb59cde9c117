//! Commands that are printed, pasted into a shell: with a workspace other than `default`, and a
//! data folder with a blank in its path (D36).

mod credentials;

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use narthex_model::command::commands_in;
use narthex_testkit::planted;
use serde_json::{Value, json};

use crate::support::{Daemon, Done, PROGRAM, Place, fixture};

const FOLDER: &str = "my data";
const UP: [&str; 7] = ["up", "--data", FOLDER, "--config", "mcp.json", "--listen", "127.0.0.1:0"];

/// A daemon with a folder whose name needs quotes, and the workspace `team` beside `default`.
struct World {
    place: Place,
    _daemon: Daemon,
}

impl World {
    fn new() -> Self {
        let place = Place::with(&json!({}));
        let daemon = place.start(&UP);
        daemon.event("ready");
        let world = Self { place, _daemon: daemon };
        world.run("workspaces create team --name Team").succeeded();
        world
    }

    /// Runs a command as a user types it in the folder.
    fn run(&self, words: &str) -> Done {
        self.place.run(words.split(' ').chain(["--data", FOLDER]))
    }

    fn feed(&self, words: &str, input: &Value) -> Done {
        self.pipe(words, &input.to_string())
    }

    fn pipe(&self, words: &str, input: &str) -> Done {
        let words: Vec<_> = words.split(' ').chain(["--data", FOLDER]).collect();
        self.place.pipe(&words, input)
    }

    /// Every command that was printed, as a line of the shell.
    fn printed(&self, done: &Done) -> Vec<String> {
        let text = format!("{}{}", done.stdout, done.stderr);
        let count = commands_in(&text).len();
        let spans = text.split('`').filter(|span| span.starts_with("narthex "));
        let lines: Vec<_> = spans.map(str::to_owned).collect();
        assert_eq!(lines.len(), count, "{text}");
        lines
    }

    /// The command line with these words, from printed text.
    fn found(&self, done: &Done, words: &str) -> String {
        let lines = self.printed(done);
        let found = lines.iter().find(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("no {words:?} in {done:?}")).clone()
    }

    /// Runs a line of a shell in another folder, with nothing of the environment that leads here.
    fn paste(&self, line: &str, input: &str) -> Done {
        if line.contains("secrets set") {
            planted::remember(input);
        }
        let alike = self.place.command([""; 0]);
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir("/").env_clear();
        shell.envs(alike.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.env_remove("NARTHEX_DATA");
        let path = format!(
            "{}:{}",
            Path::new(PROGRAM).parent().unwrap().display(),
            std::env::var_os("PATH").unwrap().to_str().unwrap()
        );
        shell.env("PATH", path);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        // The command may end without reading its input.
        drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
        Done::from(child.wait_with_output().unwrap())
    }

    fn is_set(&self, name: &str, workspace: &str) -> bool {
        let done = self.run(&format!("secrets list --json --workspace {workspace}"));
        let secrets = done.succeeded().json()["data"]["items"].take();
        let all = secrets.as_array().unwrap();
        all.iter().any(|one| one["name"] == name && one["is_set"] == true)
    }
}

/// An agent of `team` with a server that needs a secret.
fn with_agent(world: &World) {
    let server = json!({ "id": "docs", "url": "http://127.0.0.1:9/mcp",
        "config_schema": { "api_key": { "type": "string", "required": true, "kind": "secret" } } });
    world.feed("servers apply --file - --workspace team", &server).succeeded();
    let agent = json!({ "name": "reader", "mcpServers": {
        "docs": { "ref": "docs", "config": { "api_key": "${DOCS_KEY}" } } } });
    // An agent is stored only while its secret is set.
    let words = ["secrets", "set", "DOCS_KEY", "--workspace", "team", "--data", FOLDER];
    world.place.pipe(&words, "of-the-setup-4711").succeeded();
    world.feed("agents apply --file - --workspace team", &agent).succeeded();
    world.run("secrets clear DOCS_KEY --workspace team").succeeded();
}

/// D36: a secret that a run lacks is set where the run looks for it, by the command that is named.
#[test]
fn d36_a_pasted_remedy_sets_the_secret_of_the_workspace() {
    let world = World::new();
    with_agent(&world);
    let refused = world.run("runs create --agent reader --workspace team");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let line = world.found(&refused, "secrets set DOCS_KEY");
    world.paste(&line, "of-the-team-4711").succeeded();
    assert!(world.is_set("DOCS_KEY", "team"));
    assert!(!world.is_set("DOCS_KEY", "default"));
}

/// D36: the created run is ended by the command that is printed with it.
#[test]
fn d36_a_pasted_command_ends_the_run() {
    let world = World::new();
    world.feed("agents apply --file - --workspace team", &json!({ "name": "idle" })).succeeded();
    let begun = world.run("runs create --agent idle --workspace team").succeeded();
    let line = world.found(&begun, "runs end ");
    let ended = world.paste(&line, "").succeeded();
    assert!(!ended.stdout.contains("not_found"), "{ended:?}");
    let running = world.run("runs list --status running --quiet --workspace team").succeeded();
    assert_eq!(running.stdout.trim(), "");
}

/// D36: each command that a refusal names is accepted by the program, and reaches this daemon and
/// this workspace.
#[test]
fn d36_each_command_of_a_refusal_works_when_pasted() {
    let world = World::new();
    with_agent(&world);
    let refused = [
        "runs show run_nope --workspace team",
        "runs create --agent reader --workspace team",
        "runs create --agent reader --workspace team --json",
        "sessions show ses_nope --workspace team",
        "sessions message ses_nope hello --workspace team",
        "grants show grant_nope --workspace team",
        "grants revoke grant_nope --workspace team",
        "grants approve request_nope --workspace team",
        "clients revoke nope --workspace team",
        "members set nope admin --workspace team",
        "secrets list --workspace team",
        "secrets list",
        "users list",
        "users link nope",
        "servers accept docs nope --workspace team",
        "servers definitions docs --workspace team",
        "env-bindings set DOCS_KEY --agent reader --workspace team",
        "agents preview --file mcp.json --workspace team",
        "runs end 0",
        "mcp test nope",
        "mcp list",
        "call nope tool",
        "check mcp",
        "init",
    ];
    let mut count = 0;
    for words in refused {
        for line in world.printed(&world.run(words)) {
            assert!(line.contains(&format!("{FOLDER}'")), "{words}: {line}");
            let is_of_team = words.contains("--workspace team");
            let groups =
                ["runs", "sessions", "grants", "clients", "secrets", "servers", "users create"];
            let is_of_workspace =
                groups.iter().any(|group| line.starts_with(&format!("narthex {group} ")));
            let has = line.contains("--workspace team");
            assert_eq!(is_of_team && is_of_workspace, has, "{words}: {line}");
            // These stay, stop the daemon, ask at a terminal, or need a name from a search.
            let stays = ["narthex up", "narthex daemon stop", "narthex trust", "narthex init"];
            let stays = stays.into_iter().chain(["narthex add NAME"]);
            count += 1;
            if stays.clone().any(|start| line.starts_with(start)) {
                continue;
            }
            let pasted = world.paste(&line, "pasted-value-77");
            assert_ne!(pasted.code, Some(2), "{words}: {line}: {pasted:?}");
            for wrong in ["no daemon runs", "is not a valid workspace", "there is no workspace"] {
                assert!(!pasted.stderr.contains(wrong), "{words}: {line}: {pasted:?}");
            }
        }
    }
    assert!(count >= 10, "only {count} commands were printed");
}

/// D36, R-C2: a run whose server does not start names the reason, and a command that shows the
/// server's output, in each workspace.
#[test]
fn d36_a_failed_start_names_the_command_for_its_log() {
    let world = World::new();
    let script = "echo opening the repository >&2; echo fatal: no repository >&2; exit 4";
    let server = json!({ "id": "git", "transport": "stdio", "command": "sh",
        "args": ["-c", script] });
    let agent = json!({ "name": "reader", "mcpServers": { "git": { "ref": "git" } } });
    for workspace in ["team", "default"] {
        world.feed(&format!("servers apply --file - --workspace {workspace}"), &server).succeeded();
        world.feed(&format!("agents apply --file - --workspace {workspace}"), &agent).succeeded();
        let refused = world.run(&format!("runs create --agent reader --workspace {workspace}"));
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("exit code 4; it wrote: fatal: no repository"));
        let line = world.found(&refused, "mcp logs git");
        assert!(line.contains(&format!("--workspace {workspace}")), "{line}");
        let logs = world.paste(&line, "").succeeded();
        let lines = "[stderr] opening the repository\n[stderr] fatal: no repository\n";
        assert_eq!(logs.stdout, lines);
        assert!(logs.stderr.contains("last start, which failed"), "{logs:?}");
    }
    let unknown = world.run("mcp logs docs --workspace team");
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    world.paste(&world.found(&unknown, "runs list"), "").succeeded();
}

/// D36, R-C2: the log of a server of a run is found in the workspace of the run, by the name of its
/// mount or its own.
#[test]
fn d36_logs_of_runs_are_found_in_their_workspace() {
    let world = World::new();
    let script = "echo here I am >&2; exec \"$0\" --stdio";
    let server = json!({ "id": "fix", "transport": "stdio", "command": "sh",
        "args": ["-c", script, fixture()] });
    let agent = json!({ "name": "reader", "mcpServers": { "fix": { "ref": "fix" } } });
    world.feed("servers apply --file - --workspace team", &server).succeeded();
    world.feed("agents apply --file - --workspace team", &agent).succeeded();
    world.run("runs create --agent reader --workspace team").succeeded();
    let log = ["mcp", "logs", "1-fix", "--workspace", "team", "--data", FOLDER];
    world.place.until_logged(&log, 1);
    for name in ["1-fix", "fix"] {
        let logs = world.run(&format!("mcp logs {name} --workspace team"));
        assert_eq!(logs.succeeded().stdout, "[stderr] here I am\n", "{name}");
    }
    assert_eq!(world.run("mcp logs 1-fix --workspace default").code, Some(1));
}

/// D36: an absent name is reported with the command that lists those there are, in its workspace.
#[test]
fn d36_an_unknown_name_is_reported_with_the_command_that_lists_names() {
    let world = World::new();
    for words in [
        "agents get nope",
        "capabilities get nope",
        "servers get nope",
        "servers definitions nope",
        "tokens revoke tok_0011223344556677",
        "clients revoke prn_0011223344556677",
        "channels remove nope",
        "webhooks remove nope",
        "secrets clear NOPE",
        "grants show gra_0a1b2c3d4e5f6071",
        "sessions show ses_0a1b2c3d4e5f",
        "runs show run_0a1b2c3d4e5f",
        "shares show nope",
    ] {
        let refused = world.run(&format!("{words} --workspace team"));
        assert_eq!(refused.code, Some(1), "{refused:?}");
        let line = world.found(&refused, " list");
        assert!(line.contains("--workspace team"), "{words}: {line}");
        world.paste(&line, "").succeeded();
    }
    for words in ["agents get nope", "tokens revoke tok_0011223344556677", "secrets clear NOPE"] {
        let refused = world.run(&format!("{words} --workspace nope"));
        let lines = world.printed(&refused);
        assert!(lines.len() == 1 && lines[0].contains("workspaces list"), "{refused:?}");
    }
    world.run("users create ada").succeeded();
    world.run("users disable ada").succeeded();
    let refused = world.run("users link ada");
    world.paste(&world.found(&refused, "--undo"), "").succeeded();
    let taken = world.place.run(UP);
    world.paste(&world.found(&taken, "status"), "").succeeded();
    let refused = world.run("agents list --workspace nope");
    world.paste(&world.found(&refused, "workspaces list"), "").succeeded();
    for words in ["agents list", "capabilities list", "servers list", "policy show"] {
        let none = world.run(&format!("{words} --workspace team")).succeeded();
        // Rules are printed as they are stored, and none are no text.
        let (told, other) = match words {
            "policy show" => (&none.stderr, &*none.stdout),
            _ => (&none.stdout, ""),
        };
        assert!(told.starts_with("There are no ") && other.is_empty(), "{none:?}");
        assert!(world.printed(&none)[0].contains("--workspace team"), "{none:?}");
    }
}

/// A run is shown and ended by the number that tables have.
#[test]
fn commands_accept_the_number_of_a_run() {
    let world = World::new();
    let agent = json!({ "name": "reader" });
    world.feed("agents apply --file - --workspace team", &agent).succeeded();
    let begun = world.run("runs create --agent reader --workspace team --quiet").succeeded();
    let id = begun.stdout.split(' ').next().unwrap();
    let shown = world.run("runs show 1 --workspace team").succeeded();
    assert!(shown.stdout.contains(id), "{shown:?}");
    let ended = world.run("runs end 1 --workspace team").succeeded();
    assert!(ended.stdout.contains(id), "{ended:?}");
    let shown = world.run("runs show 1 --workspace team").succeeded();
    assert!(shown.stdout.contains("  tools           -\n"), "{shown:?}");
    assert!(shown.stdout.contains("It has ended. The tools of a run are shown"), "{shown:?}");
    let unknown = world.run("runs end 7 --workspace team");
    world.paste(&world.found(&unknown, "runs list"), "").succeeded();
}

/// A workspace of which everything was taken that people put there is empty, also after a run, for
/// whose documents narthex keeps a key there.
#[test]
fn a_workspace_is_empty_after_its_last_run() {
    let world = World::new();
    let agent = json!({ "name": "reader" });
    world.feed("agents apply --file - --workspace team", &agent).succeeded();
    let run = world.run("runs create --agent reader --workspace team --quiet").succeeded();
    let run = run.stdout.split(' ').next().unwrap().to_owned();
    world.run(&format!("runs end {run} --workspace team")).succeeded();
    world.run("agents delete reader --workspace team").succeeded();
    world.run("workspaces delete team").succeeded();
}
