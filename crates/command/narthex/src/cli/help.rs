//! The form of help: the groups of the main page, and the global flags, which only that page shows.

use clap::{Command, CommandFactory};
use narthex_model::command::narthex;

use super::Cli;

/// The commands of the main page by group. Everyday commands come first, rare ones last.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Use",
        &["setup", "init", "trust", "up", "search", "add", "tools", "call", "connect", "mount"],
    ),
    ("See", &["status", "open", "runs", "sessions", "strace", "top", "usage", "audit", "shares"]),
    (
        "Operate",
        &[
            "connections",
            "mcp",
            "profiles",
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
            "service",
            "uninstall",
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
            "restore",
            "version",
            "whoami",
            "vfs",
            "completions",
        ],
    ),
];

/// The texts of commands that have one type for the three kinds of objects of the catalog.
static CATALOG: [(&str, [(&str, &str); 4]); 3] = [
    (
        "servers",
        [
            ("list", "List the servers of a workspace"),
            ("get", "Print a server in the form that `apply` reads"),
            ("apply", "Create or replace servers from files"),
            ("delete", "Delete a server that no other object refers to"),
        ],
    ),
    (
        "capabilities",
        [
            ("list", "List the capabilities of a workspace"),
            ("get", "Print a capability in the form that `apply` reads"),
            ("apply", "Create or replace capabilities from files"),
            ("delete", "Delete a capability that no other object refers to"),
        ],
    ),
    (
        "agents",
        [
            ("list", "List the agents of a workspace"),
            ("get", "Print an agent in the form that `apply` reads"),
            ("apply", "Create or replace agents from files"),
            ("delete", "Delete an agent that no other object refers to"),
        ],
    ),
];

/// The text of `narthex` without a command.
pub(crate) fn beginning() -> String {
    let first = [
        (narthex("setup", &[]), "move the servers of your MCP clients here; it asks first"),
        (narthex("add NAME", &[]), "add a server of a registry; `search` finds its name"),
        (narthex("tools", &[]), "list the tools of all servers"),
    ];
    let lines = first.map(|(command, about)| format!("  {:<18}{about}\n", command.to_string()));
    format!(
        "narthex stands between AI agents and their MCP servers: it starts the servers, and gives \
         all\nyour clients one address for them.\n\nBegin with:\n{}\n\
         All commands: narthex --help",
        lines.concat(),
    )
}

/// The help page of a command below the main one.
const PAGE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{all-args}\n\n\
    Global flags: narthex --help{after-help}";

/// The command line with its help.
pub(crate) fn command() -> Command {
    let command = with_kinds(Cli::command());
    let globals: Vec<_> = command
        .get_arguments()
        .filter(|argument| argument.is_global_set())
        .map(|argument| argument.clone().hide(true))
        .collect();
    let main = main_page(&command);
    command.help_template(main).mut_subcommands(|inner| page(inner, &globals))
}

/// Names the kind of object in the texts of commands for the catalog.
fn with_kinds(command: Command) -> Command {
    command.mut_subcommands(|group| {
        let texts = CATALOG.iter().find(|(name, _)| *name == group.get_name());
        let Some((_, texts)) = texts else { return group };
        group.mut_subcommands(|inner| {
            let text = texts.iter().find(|(name, _)| *name == inner.get_name());
            match text {
                Some((_, about)) => inner.about(*about),
                None => inner,
            }
        })
    })
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
        let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
        let mut all: Vec<_> = shown.map(Command::get_name).collect();
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }
}
