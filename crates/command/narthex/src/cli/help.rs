//! The form of help: the groups of the main page, and the global flags, which only that page shows.

use clap::{Command, CommandFactory};

use super::Cli;

/// The commands of the main page by group. Everyday commands come first, rare ones last.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Use", &["init", "trust", "up", "tools", "call", "connect", "mount"]),
    ("See", &["status", "runs", "sessions", "strace", "top", "usage", "audit", "shares"]),
    (
        "Operate",
        &[
            "mcp",
            "servers",
            "capabilities",
            "agents",
            "secrets",
            "grants",
            "policy",
            "limits",
            "check",
            "export",
            "import",
            "daemon",
        ],
    ),
    (
        "Administer",
        &[
            "workspaces",
            "users",
            "members",
            "tokens",
            "clients",
            "channels",
            "webhooks",
            "env-bindings",
            "backup",
            "whoami",
            "vfs",
            "completions",
        ],
    ),
];

/// The help page of a command below the main one.
const PAGE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{all-args}\n\n\
    Global flags: narthex --help{after-help}";

/// The command line with its help.
pub(crate) fn command() -> Command {
    let command = Cli::command();
    let globals: Vec<_> = command
        .get_arguments()
        .filter(|argument| argument.is_global_set())
        .map(|argument| argument.clone().hide(true))
        .collect();
    let main = main_page(&command);
    command.help_template(main).mut_subcommands(|inner| page(inner, &globals))
}

/// The template of the main page. The width of the names is that of the longest one.
fn main_page(command: &Command) -> String {
    let names = GROUPS.iter().flat_map(|(_, names)| *names);
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (group, names) in GROUPS {
        text.push_str(&format!("\n{group}:\n"));
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {name:width$}  {about}\n"));
        }
    }
    text.push_str(
        "\nHelp of a command: narthex COMMAND --help\n\nGlobal flags:\n{options}{after-help}",
    );
    text
}

/// Hides the global flags in the help of a command and of those below it.
fn page(command: Command, globals: &[clap::Arg]) -> Command {
    command.args(globals).help_template(PAGE).mut_subcommands(|inner| page(inner, globals))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_in_one_group_of_the_main_page() {
        let mut grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let command = Cli::command();
        let mut all: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }
}
