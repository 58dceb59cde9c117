//! The page of the command line: the commands and their flags, as the command line has them.

use clap::{Arg, Command};

use super::*;

/// The page. The text above the mark is written by hand.
const PAGE: &str = "../../../docs/reference/cli.md";

const MARK: &str = "<!-- From here on generated from the command line: UPDATE_GOLDEN=1 -->\n";

/// The flag that most commands have alike. The page has it once, below those of all commands.
const WORKSPACE: &str = "| `--workspace <WORKSPACE>` | The workspace, in commands on objects of a \
                         workspace [default: `default`] |\n";

/// Text of a cell: in one line, without the characters that tables and HTML use. Code keeps `<`.
fn cell(text: &str) -> String {
    let mut line = String::new();
    for (at, part) in text.replace('\n', " ").replace('|', "\\|").split('`').enumerate() {
        let tick = if at > 0 { "`" } else { "" };
        let part = if at % 2 == 0 { part.replace('<', "&lt;") } else { part.to_owned() };
        line.push_str(&format!("{tick}{part}"));
    }
    line
}

fn about(command: &Command) -> String {
    command.get_about().map(|text| cell(&text.to_string())).unwrap_or_default()
}

/// The commands of a command that help shows.
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help")
}

/// The meaning of an argument, with its default and its values where the text has none.
fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let mut text = help.map(|help| cell(&help.to_string())).unwrap_or_default();
    if !argument.get_action().takes_values() {
        return text;
    }
    let defaults = argument.get_default_values().iter();
    let defaults: Vec<_> = defaults.map(|value| format!("`{}`", value.display())).collect();
    if !defaults.is_empty() {
        text.push_str(&format!(" [default: {}]", defaults.join(", ")));
    }
    let values = argument.get_possible_values();
    let values: Vec<_> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
    if !values.is_empty() {
        text.push_str(&format!(" [values: {}]", values.join(", ")));
    }
    text
}

/// True for the flag of [`WORKSPACE`], but not for a flag of the same name with another meaning.
fn is_workspace(argument: &Arg) -> bool {
    let help = argument.get_help().map(ToString::to_string);
    argument.get_long() == Some("workspace") && help.as_deref() == Some("The workspace")
}

/// A table of arguments and flags, positional arguments first; empty if there are none.
fn table(command: &Command, is_global: bool) -> String {
    let is_listed = |one: &&Arg| {
        let is_own = !matches!(one.get_id().as_str(), "help" | "version");
        let is_hidden = one.is_hide_set() || is_workspace(one);
        !is_hidden && is_own && one.is_global_set() == is_global
    };
    let mut all: Vec<_> = command.get_arguments().filter(is_listed).collect();
    all.sort_by_key(|one| !one.is_positional());
    let row = |one: &Arg| {
        let name = one.to_string().replace('|', "\\|");
        let short = one.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
        format!("| {short}`{name}` | {} |\n", meaning(one))
    };
    let rows: String = all.into_iter().map(row).collect();
    if rows.is_empty() { rows } else { format!("\n| argument | meaning |\n|---|---|\n{rows}") }
}

/// The text below a command's help: examples as code, each other paragraph as it is.
fn examples(command: &Command) -> String {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut page = String::new();
    for paragraph in text.split("\n\n").filter(|text| !text.is_empty()) {
        match paragraph.split_once(":\n  ") {
            Some((title, lines)) => {
                let language = if lines.starts_with('{') { "json" } else { "sh" };
                let lines = lines.replace("\n  ", "\n");
                page.push_str(&format!("\n{title}:\n\n```{language}\n{lines}\n```\n"));
            }
            None => page.push_str(&format!("\n{paragraph}\n")),
        }
    }
    page
}

/// The section of a command, and those of its commands below it.
fn section(command: &mut Command, depth: usize) -> String {
    let usage = command.render_usage().to_string().replace("Usage: ", "");
    let usage = usage.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let name = command.get_bin_name().unwrap_or_default().to_owned();
    let mut page = format!("\n{} {name}\n\n{}.\n", "#".repeat(depth), about(command));
    if command.has_subcommands() {
        page.push_str(&format!("\n{}\n", links(command)));
        let names: Vec<_> = shown(command).map(|one| one.get_name().to_owned()).collect();
        for name in names {
            let one = command.find_subcommand_mut(&name).unwrap();
            page.push_str(&section(one, depth + 1));
        }
        return page;
    }
    page.push_str(&format!("\n```text\n{usage}\n```\n{}", table(command, false)));
    page.push_str(&examples(command));
    page
}

/// A link to the section of a command.
fn link(command: &Command) -> String {
    let path = command.get_bin_name().unwrap_or_default();
    format!("[{}](#{})", command.get_name(), path.replace(' ', "-"))
}

/// Links to the commands of a command, one a line.
fn links(command: &Command) -> String {
    shown(command).map(link).collect::<Vec<_>>().join(",\n")
}

/// The commands of a command, each with a link to its section.
fn list(command: &Command) -> String {
    let row = |one: &Command| format!("| {} | {} |\n", link(one), about(one));
    let rows: String = shown(command).map(row).collect();
    format!("| command | does |\n|---|---|\n{rows}")
}

fn generated() -> String {
    let mut command = help::command();
    command.build();
    let mut page = format!("\n## Flags of all commands\n{}", table(&command, true));
    page.push_str(WORKSPACE);
    page.push_str(&format!("\n## Commands\n\n{}", list(&command)));
    let names: Vec<_> = shown(&command).map(|one| one.get_name().to_owned()).collect();
    for name in names {
        page.push_str(&section(command.find_subcommand_mut(&name).unwrap(), 2));
    }
    page
}

/// With `UPDATE_GOLDEN` set, the test writes the generated part of the page instead.
#[test]
fn the_page_of_the_command_line_matches_clap() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let (by_hand, old) = page.split_once(MARK).expect("the mark is there");
    let new = generated();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, format!("{by_hand}{MARK}{new}")).unwrap();
        return;
    }
    for (old, new) in old.lines().zip(new.lines()) {
        assert_eq!(old, new, "docs/reference/cli.md; UPDATE_GOLDEN=1 renews it");
    }
    assert_eq!(old.len(), new.len(), "docs/reference/cli.md; UPDATE_GOLDEN=1 renews it");
}
