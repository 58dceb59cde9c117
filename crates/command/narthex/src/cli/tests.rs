//! Commands that are printed, compared with the command line.

mod reference;

use std::path::{Path, PathBuf};

use fs_err as fs;
use narthex_model::command::{Chosen, commands_in, narthex};

use super::*;

/// A folder that needs quotes.
const DATA: &str = "/srv/it's a folder";

fn chosen() -> Chosen {
    Chosen { flags: vec![("--data", DATA.to_owned())], workspace: Some("team".to_owned()) }
}

/// The words of a command as it is printed.
fn printed(template: &'static str, value: &str) -> Vec<String> {
    let count = template.matches("{}").count();
    let values = vec![&value as &dyn std::fmt::Display; count];
    let text = format!("`{}`", narthex(template, &values).with(&chosen()));
    let [words] = &commands_in(&text)[..] else { panic!("{text}") };
    words.clone()
}

fn parsed(words: &[String]) -> Result<(Cli, Option<String>), clap::Error> {
    let program = std::ffi::OsString::from("narthex");
    read(std::iter::once(program).chain(words.iter().map(Into::into)))
}

/// Each command without further ones, by its path, and whether it takes `--workspace`.
fn leaves(command: &clap::Command, path: &str, found: &mut Vec<(String, bool)>) {
    if !command.has_subcommands() {
        let takes = command.get_arguments().any(|one| one.get_long() == Some("workspace"));
        found.push((path.to_owned(), takes));
    }
    for one in command.get_subcommands() {
        leaves(one, format!("{path} {}", one.get_name()).trim(), found);
    }
}

/// D36: a printed command has `--workspace` exactly where the command line takes it. Without one,
/// logs and tests are those of the daemon's own servers, and lists those of all workspaces, so each
/// caller of these says whether it has one.
#[test]
fn d36_printed_commands_have_the_workspace_flag_where_accepted() {
    let mut all = Vec::new();
    leaves(&help::command(), "", &mut all);
    assert!(all.len() > 50, "{all:?}");
    all.retain(|(path, _)| !["mcp list", "mcp logs", "mcp test"].contains(&path.as_str()));
    for (path, takes) in all {
        let words = printed(path.clone().leak(), "");
        let has = words.iter().any(|word| word == "--workspace");
        assert_eq!(has, takes, "narthex {path}");
    }
}

/// Every file of the program's sources.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false if path.extension().is_some_and(|end| end == "rs") => found.push(path),
            false => {}
        }
    }
}

/// The templates of a source, each in quotes after the name of the function or in a list of it.
fn templates(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, name) in text.match_indices("narthex(") {
        let before = &text[..at];
        let is_other = before.ends_with(|c: char| c.is_alphanumeric() || "_:!".contains(c));
        if is_other || before.ends_with("fn ") {
            continue;
        }
        let rest = &text[at + name.len()..];
        let end = rest.find(", &[").unwrap_or(0);
        found.extend(rest[..end].split('"').skip(1).step_by(2).map(str::to_owned));
    }
    found
}

/// D36: the command line takes every command that the program prints, with any values, and the
/// command is about the workspace and the folder that are meant.
#[test]
fn d36_the_command_line_accepts_every_printed_command() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut files = Vec::new();
    for folder in fs::read_dir(crates).unwrap() {
        for entry in fs::read_dir(folder.unwrap().path()).unwrap() {
            sources(&entry.unwrap().path().join("src"), &mut files);
        }
    }
    let mut count = 0;
    for file in files.iter().filter(|file| !file.ends_with("tests.rs")) {
        for template in templates(&fs::read_to_string(file).unwrap()) {
            count += 1;
            let template: &'static str = template.leak();
            let taken = ["it's a b", "a1", "7"].map(|value| parsed(&printed(template, value)));
            let place = file.strip_prefix(crates).unwrap().display();
            let taken = taken.into_iter().find_map(Result::ok);
            let (cli, workspace) =
                taken.unwrap_or_else(|| panic!("{place}: `narthex {template}` is not taken"));
            assert_eq!(cli.common.data.as_deref(), Some(Path::new(DATA)), "{place}: {template}");
            let words = printed(template, "a1");
            let has = words.iter().any(|word| word == "--workspace");
            assert_eq!(workspace.as_deref() == Some("team"), has, "{place}: {template}");
        }
    }
    assert!(count > 40, "only {count} commands were found");
}
