//! The commands and documents in the README and the pages of `docs/` are valid.

use std::{collections::BTreeSet, path::Path};

use fs_err as fs;
use narthex_audit::kind;
use narthex_model::{CallErrorKind, ErrorKind};
use narthex_registry::config::{self, Entry, Env, LoadContext};
use narthex_wire::rpc;
use serde_json::Value;

use crate::support::Place;

/// A fenced block: its language and its text.
struct Block {
    place: String,
    language: String,
    text: String,
}

impl Block {
    /// True if it is for a file of another program, which `client_pages` looks at.
    fn is_for_a_client(&self) -> bool {
        self.place.contains("/docs/start/clients/")
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}

/// The README and all pages, by name. Decisions are of their time, and may show old commands.
fn documents() -> Vec<(String, String)> {
    let mut all = Vec::from(["README.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("decisions") {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                all.push(path);
            }
        }
    }
    all.into_iter()
        .map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap()))
        .collect()
}

fn blocks(language: &str) -> Vec<Block> {
    let in_document = |(name, text): (String, String)| {
        let parts: Vec<&str> = text.split("\n```").collect();
        assert_eq!(parts.len() % 2, 1, "{name} has a fence that is not closed");
        // Every second part is inside a fence and begins with the language.
        let block = parts.into_iter().skip(1).step_by(2).map(|part| {
            let (language, text) = part.split_once('\n').unwrap_or((part, ""));
            Block { place: name.clone(), language: language.to_owned(), text: text.to_owned() }
        });
        block.collect::<Vec<_>>()
    };
    let all = documents().into_iter().flat_map(in_document);
    let found: Vec<_> = all.filter(|block| block.language == language).collect();
    assert!(!found.is_empty(), "no document has a block of {language}");
    found
}

/// The commands that the documents show in code and after a prompt: the words after the program.
fn commands() -> Vec<String> {
    let mut commands = Vec::new();
    for (_, text) in documents() {
        let spans = text.split('`').filter(|span| !span.contains('\n'));
        commands.extend(spans.filter_map(|span| span.strip_prefix("narthex ")).map(str::to_owned));
        for line in text.lines() {
            let typed = line.strip_prefix("$ narthex ");
            let typed = typed.or_else(|| line.strip_prefix("$ cargo run --release -- "));
            let typed = typed.map(|typed| typed.split('#').next().unwrap_or(typed));
            commands.extend(typed.map(str::to_owned));
        }
    }
    commands
}

/// Commands that have subcommands.
const GROUPS: &[&str] = &[
    "agents",
    "audit",
    "capabilities",
    "channels",
    "check",
    "clients",
    "daemon",
    "env-bindings",
    "grants",
    "limits",
    "mcp",
    "members",
    "policy",
    "runs",
    "secrets",
    "servers",
    "service",
    "sessions",
    "shares",
    "tokens",
    "users",
    "vfs",
    "webhooks",
    "workspaces",
];

#[test]
fn shown_commands_and_flags_exist() {
    let place = Place::new();
    let global = place.run(["--help"]).succeeded().stdout;
    let mut seen = BTreeSet::new();
    for command in commands() {
        let mut words = command.split([' ', '[', ']']).peekable();
        let first = words.next().unwrap_or_default();
        if first.starts_with('-') {
            place.run([first]).succeeded();
            continue;
        }
        let mut path = vec![first];
        if GROUPS.contains(&first) {
            path.extend(words.next());
        }
        let help = place.run(path.iter().chain(&["--help"])).succeeded().stdout;
        for flag in words.filter(|word| word.starts_with("--") && word.len() > 2) {
            let pages = [&help, &global];
            let mut words = pages.iter().flat_map(|page| page.split_whitespace());
            let is_listed = words.any(|word| word.trim_matches(',') == flag);
            assert!(is_listed, "`narthex {}` has no {flag}", path.join(" "));
        }
        seen.insert(path.join(" "));
    }
    assert!(seen.len() > 40, "only these commands were found: {seen:?}");
}

/// D13: every shown rule could be set, and the shown parts of the schema are the schema's.
#[test]
fn d13_shown_rules_compile() {
    for Block { place, text, .. } in blocks("cedar") {
        if let Err(faults) = narthex_control::RuleSet::compile(&text) {
            panic!("{place}: {faults}");
        }
    }
    for Block { place, text, .. } in blocks("cedarschema") {
        assert_eq!(text.trim(), narthex_control::POLICY_SCHEMA.trim(), "{place}");
    }
}

/// Every text that looks like an `mcp.json` loads without a fault, and every other example is JSON.
#[test]
fn shown_configurations_load() {
    let mut servers = 0;
    for Block { place, text, .. } in
        blocks("json").into_iter().filter(|block| !block.is_for_a_client())
    {
        let document: Value = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{place}: {error} in {text}"));
        if document.get("servers").is_none() && document.get("mcpServers").is_none() {
            continue;
        }
        let env = |_: &str| Some("filled-in".to_owned());
        let file = Path::new(&place);
        let context = LoadContext { file, workspace_root: Path::new("/"), env: Env::Values(&env) };
        for entry in config::parse(text.as_bytes(), &context).unwrap().entries {
            servers += 1;
            assert!(matches!(entry, Entry::Server(_)), "{entry:?}");
        }
    }
    assert!(servers > 2);
}

/// `status` without a daemon fails with 1; settings that are wrong would make it 2.
#[test]
fn shown_settings_are_accepted() {
    for Block { text, .. } in blocks("toml").into_iter().filter(|block| !block.is_for_a_client()) {
        let place = Place::new();
        place.write("narthex.toml", &text);
        place.set_mode("narthex.toml", 0o600);
        place.run(["status", "--settings", "narthex.toml"]).failed(1, &["narthex up"]);
    }
}

/// Each row of the table of settings names one in the file and, where its value can be shown to be
/// wrong, its variable.
#[test]
fn the_table_of_settings_is_true() {
    let text = fs::read_to_string(root().join("docs/reference/configuration.md")).unwrap();
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows = text.lines().map(cells).filter(|cells| {
        cells.len() > 4 && cells[2].starts_with("`NARTHEX_") && cells[1].starts_with('`')
    });
    let place = Place::new();
    let mut count = 0;
    for row in rows {
        let (path, variable) = (row[1].trim_matches('`'), row[2].trim_matches('`'));
        place.write("narthex.toml", &format!("{path} = {{}}\n"));
        let wrong = place.run(["status", "--settings", "narthex.toml"]);
        wrong.failed(2, &[&format!("`{path}` must be")]);
        let default = row[3].trim_matches('`').trim_end_matches(['s', 'm']);
        if default.parse::<u64>().is_ok() {
            let mut command = place.command(["status"]);
            let told = command.env(variable, "?").output().unwrap().stderr;
            let told = String::from_utf8(told).unwrap();
            assert!(told.contains(&format!("{variable} must be")), "{told}");
        }
        count += 1;
    }
    assert!(count > 15, "only {count} rows were found");
}

/// D24: the page of errors has every kind, with the code that the table gives it.
#[test]
fn d24_the_page_of_errors_lists_every_kind_with_its_code() {
    let text = fs::read_to_string(root().join("docs/reference/errors.md")).unwrap();
    for kind in ErrorKind::ALL {
        let code = rpc::code_for(kind).to_string().replace('-', "−");
        let row = text.lines().find(|line| line.starts_with(&format!("| `{kind}` |")));
        assert!(row.is_some_and(|row| row.contains(&format!("| {code} |"))), "{kind} {code}");
    }
    for kind in CallErrorKind::ALL {
        assert!(text.contains(&format!("`{kind}`")), "{kind}");
    }
}

/// S32: the page of the audit lists every kind of event, and none that there is not.
#[test]
fn s32_the_page_of_the_audit_has_every_kind() {
    let text = fs::read_to_string(root().join("docs/reference/audit.md")).unwrap();
    let (_, rows) = text.split_once("| kind | when |\n|---|---|\n").unwrap();
    let rows = rows.lines().take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').nth(1).unwrap());
    let listed: Vec<_> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let known: BTreeSet<_> = kind::ALL.iter().copied().collect();
    assert_eq!(known.len(), kind::ALL.len(), "two kinds have one name");
    assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), known);
    assert_eq!(listed.len(), known.len(), "a kind is listed twice");
}

/// The messages of `docs/guides/troubleshooting.md` are those that the program prints.
#[test]
fn the_page_of_symptoms_quotes_messages_of_the_program() {
    let page = fs::read_to_string(root().join("docs/guides/troubleshooting.md")).unwrap();
    let sources = sources();
    let headings = page.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`'));
    let mut count = 0;
    for heading in headings {
        for part in heading.split('…').map(str::trim).filter(|part| part.len() > 3) {
            assert!(sources.contains(part), "no message has `{part}` of `{heading}`");
        }
        count += 1;
    }
    assert!(count > 10, "only {count} headings were found");
}

/// The code of all crates outside their folders of tests, with the strings of several lines joined.
fn sources() -> String {
    let mut folders = vec![root().join("crates")];
    let mut all = String::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("tests") && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                all.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    let lines: Vec<_> = all.split("\\\n").map(str::trim_start).collect();
    lines.concat()
}
