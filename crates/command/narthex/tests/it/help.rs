//! Texts of `--help`, as a golden file: a change of the command line is seen as one.

use std::path::Path;

use fs_err as fs;

use crate::support::Place;

const COMMANDS: &[&[&str]] = &[
    &[],
    &["up"],
    &["search"],
    &["add"],
    &["call"],
    &["tools"],
    &["status"],
    &["open"],
    &["connect"],
    &["mount"],
    &["vfs"],
    &["vfs", "ls"],
    &["vfs", "cat"],
    &["vfs", "write"],
    &["vfs", "call"],
    &["vfs", "stat"],
    &["setup"],
    &["trust"],
    &["completions"],
    &["mcp"],
    &["mcp", "list"],
    &["mcp", "test"],
    &["mcp", "logs"],
    &["mcp", "reload"],
    &["mcp", "add"],
    &["mcp", "import"],
    &["mcp", "remove"],
    &["mcp", "enable"],
    &["mcp", "disable"],
    &["mcp", "reconnect"],
    &["mcp", "authorize"],
    &["runs"],
    &["runs", "create"],
    &["runs", "list"],
    &["runs", "claim"],
    &["runs", "show"],
    &["runs", "end"],
    &["strace"],
    &["top"],
    &["sessions"],
    &["sessions", "suspend"],
    &["sessions", "resume"],
    &["servers", "list"],
    &["servers", "definitions"],
    &["servers", "accept"],
    &["capabilities", "get"],
    &["agents", "apply"],
    &["agents", "delete"],
    &["agents", "attach"],
    &["agents", "detach"],
    &["agents", "attachments"],
    &["export"],
    &["import"],
    &["secrets", "set"],
    &["secrets", "list"],
    &["secrets", "clear"],
    &["secrets", "rotate-key"],
    &["usage"],
    &["backup"],
    &["restore"],
    &["limits", "get"],
    &["limits", "set"],
    &["connections"],
    &["connections", "connect"],
    &["shares"],
    &["shares", "get"],
    &["shares", "comment"],
    &["channels"],
    &["channels", "set"],
    &["webhooks"],
    &["webhooks", "set"],
    &["policy"],
    &["policy", "show"],
    &["policy", "set"],
    &["policy", "check"],
    &["users"],
    &["users", "create"],
    &["users", "list"],
    &["users", "link"],
    &["users", "disable"],
    &["users", "passkeys", "list"],
    &["users", "passkeys", "remove"],
    &["workspaces", "list"],
    &["workspaces", "create"],
    &["workspaces", "change"],
    &["workspaces", "delete"],
    &["members", "list"],
    &["members", "set"],
    &["members", "remove"],
    &["tokens", "create"],
    &["tokens", "revoke"],
    &["check", "mcp"],
    &["init"],
    &["service"],
    &["service", "install"],
    &["service", "status"],
    &["service", "logs"],
    &["service", "port"],
    &["service", "uninstall"],
    &["daemon", "stop"],
    &["daemon", "restart"],
    &["daemon", "status"],
];

/// With `UPDATE_GOLDEN` set, the test writes the file instead.
#[test]
fn help_matches_the_golden_file() {
    let place = Place::new();
    let mut text = String::new();
    for words in COMMANDS {
        let done = place.run(words.iter().chain(&["--help"])).succeeded();
        let name = std::iter::once(&"narthex").chain(*words).copied().collect::<Vec<_>>().join(" ");
        text.push_str(&format!("## {name}\n\n{}\n", done.stdout));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/help.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    for (line, (old, new)) in golden.lines().zip(text.lines()).enumerate() {
        assert_eq!(old, new, "line {} of help.txt; UPDATE_GOLDEN=1 renews it", line + 1);
    }
    assert_eq!(golden.len(), text.len());
}

/// A new user sees three commands, each of which exists.
#[test]
fn without_a_command_the_first_three_are_named() {
    let place = Place::new();
    let done = place.run::<&str>([]).succeeded();
    let named: Vec<_> = done.stdout.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    let words = named.iter().map(|line| line.split_whitespace().nth(1).unwrap());
    assert_eq!(words.clone().count(), 3, "{done:?}");
    for word in words {
        place.run([word, "--help"]).succeeded();
    }
    assert!(done.stdout.contains("narthex --help"), "{done:?}");
    // A faulty command line is no question of a new user.
    let done = place.run(["--json"]);
    assert!(done.code == Some(2) && done.stdout.contains("requires a subcommand"), "{done:?}");
}

/// Words of teams are on no page that a new user reads first, and the page of all commands has
/// them.
#[test]
fn the_main_page_has_the_commands_of_one_person() {
    let place = Place::new();
    let main = place.run(["--help"]).succeeded().stdout;
    let all = place.run(["help", "all"]).succeeded().stdout;
    let names = |page: &str| -> Vec<String> {
        let rows = page.lines().filter_map(|line| line.strip_prefix("  "));
        let rows = rows.filter(|row| row.starts_with(|first: char| first.is_ascii_lowercase()));
        rows.filter_map(|row| row.split_whitespace().next()).map(str::to_owned).collect()
    };
    let (first, every) = (names(&main), names(&all));
    for name in ["setup", "add", "tools", "status", "service", "uninstall"] {
        assert!(first.iter().any(|one| one == name), "{name}: {main}");
    }
    for name in ["workspaces", "members", "grants", "agents", "webhooks"] {
        assert!(first.iter().all(|one| one != name), "{name}: {main}");
        assert!(every.iter().any(|one| one == name), "{name}: {all}");
    }
    assert!(first.iter().all(|name| every.contains(name)), "{all}");
    assert!(main.contains("narthex help all"), "{main}");
    // Help of one command is as before.
    assert!(place.run(["help", "members"]).succeeded().stdout.contains("Usage: narthex members"));
}

/// Shells complete the commands for operators, too.
#[test]
fn completions_know_every_command() {
    let script = Place::new().run(["completions", "bash"]).succeeded().stdout;
    for words in COMMANDS.iter().filter(|words| words.len() == 2) {
        let function =
            format!("narthex__subcmd__{}", words.join("__subcmd__").replace('-', "__subcmd__"));
        assert!(script.contains(&function), "{function}");
    }
}

/// Packages have a manual page of each command, with the texts of its help.
#[test]
fn the_manual_has_a_page_of_each_shown_command() {
    let place = Place::new();
    place.run(["man", "pages"]).succeeded();
    for words in COMMANDS {
        let name = std::iter::once(&"narthex").chain(*words).copied().collect::<Vec<_>>().join("-");
        let page = fs::read_to_string(place.path(&format!("pages/{name}.1"))).unwrap();
        assert!(page.contains(".TH ") && page.contains(".SH SYNOPSIS"), "{name}: {page}");
    }
    let page = fs::read_to_string(place.path("pages/narthex-servers-apply.1")).unwrap();
    assert!(page.contains("Create or replace servers from files"), "{page}");
    assert!(!place.path("pages/narthex-man.1").exists());
}
