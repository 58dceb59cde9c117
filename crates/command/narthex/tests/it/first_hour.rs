//! Texts of the commands of a first hour on a terminal of 80 columns: no line is longer, unless it
//! is one path or one command to copy.

use fs_err as fs;
use serde_json::json;

use crate::{
    find::{own_path, stocked},
    shop::Shop,
    support::{PROGRAM, fixture},
};

const COLUMNS: usize = 80;

/// The commands in their order, each with its exit code. `URL` is a registry.
const COMMANDS: [(&str, u8); 29] = [
    ("", 0),
    ("--help", 0),
    ("help all", 0),
    ("status", 1),
    ("mcp list", 0),
    ("search weather --registry URL", 0),
    ("search weather --registry http://127.0.0.1:1", 1),
    ("setup --dry-run --only cursor", 0),
    ("setup --yes --only cursor", 0),
    ("status", 0),
    ("mcp list", 0),
    ("tools", 0),
    ("tools files", 0),
    ("tools files echo", 0),
    ("call files echo message=hello", 0),
    ("call files nothing", 1),
    ("add com.example/plain --yes --registry URL", 0),
    ("add com.example/broken --yes --registry URL", 1),
    ("check mcp", 0),
    ("mcp add own -- sh -c 'exit 3'", 0),
    ("mcp list", 0),
    ("audit list", 0),
    ("service", 2),
    ("service status", 1),
    ("up", 1),
    ("daemon status", 0),
    ("setup --undo --yes", 0),
    ("daemon stop", 0),
    ("uninstall --dry-run", 0),
];

/// The line of a shell on a terminal of this width.
fn line(shop: &Shop, words: &str) -> String {
    let home = shop.place.path("home");
    let path = own_path(shop);
    format!(
        "stty cols {COLUMNS} rows 24; HOME={} NARTHEX_LISTEN=127.0.0.1:0 PATH='{path}' {PROGRAM} \
         {}",
        home.display(),
        words.replace("URL", &shop.registry.url)
    )
}

/// The lines as the terminal shows them: without codes, and with the last of several texts in one
/// line.
fn lines(shown: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut parts = shown.split("\u{1b}[");
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        plain.push_str(&part[end..]);
    }
    let last = |line: &str| {
        let line = line.trim_end_matches('\r');
        line.rsplit('\r').next().unwrap_or_default().to_owned()
    };
    plain.split('\n').map(last).collect()
}

/// True for a line that has no blank outside of a command.
fn is_one_piece(line: &str) -> bool {
    !line.trim().split('`').step_by(2).any(|part| part.contains(' '))
}

/// The lines of a text that go beyond the terminal.
fn too_long(shown: &str) -> Vec<String> {
    let mut lines = lines(shown);
    lines.retain(|line| line.chars().count() > COLUMNS && !is_one_piece(line));
    lines
}

#[test]
fn lines_of_the_first_hour_fit_a_usual_terminal() {
    let shop = stocked();
    fs::create_dir_all(shop.place.path("home/.cursor")).unwrap();
    let servers = json!({
        "files": { "command": fixture(), "args": ["--stdio"], "env": { "LOG": "info" } },
        "gone": { "command": "no-such-program-anywhere" },
    });
    let cursor = json!({ "mcpServers": servers }).to_string();
    shop.place.write("home/.cursor/mcp.json", &cursor);
    let run = |(words, code): (&'static str, u8)| {
        let line = format!("{}; echo code $?", line(&shop, words));
        (words, code, shop.place.at_terminal(&line, &[]))
    };
    let all = COMMANDS.map(run);
    // A set-up that has failed may have left its daemon.
    shop.place.run(["daemon", "stop", "--force", "--timeout", "5s", "--quiet"]);
    for (words, code, shown) in &all {
        assert!(shown.contains(&format!("code {code}\r\n")), "narthex {words}: {shown}");
        assert_eq!(too_long(shown), [""; 0], "narthex {words}");
    }
    let up = line(&shop, "up --config mcp.json");
    let shown = shop.place.at_terminal(&up, &[("client.token)\"", "\u{3}")]);
    assert_eq!(too_long(&shown), [""; 0], "narthex up");
}

#[test]
fn only_what_a_person_copies_may_be_longer() {
    let long = "a".repeat(COLUMNS);
    assert_eq!(too_long(&format!("/{long}\r\n  `narthex x {long}`,\r\nshort")), [""; 0]);
    assert_eq!(too_long(&format!("two {long}\r\n")).len(), 1);
    assert_eq!(lines("one\rtwo\r\n\u{1b}[2Kthree\u{1b}[0m"), ["two", "three"]);
}
