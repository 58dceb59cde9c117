//! The form of help: the groups of the main page, and the global flags, which only that page shows.

use clap::{Command, CommandFactory};
use narthex_model::command::narthex;

use super::Cli;

/// Commands by group.
type Groups = &'static [(&'static str, &'static [&'static str])];

/// The words behind the program that print the page of all commands.
pub(crate) const ALL: [&str; 2] = ["help", "all"];

/// The commands of the main page: those of a person alone on a machine.
const FIRST: Groups = &[
    ("Use", &["setup", "init", "trust", "up", "open", "search", "add", "tools", "call", "connect"]),
    ("See", &["status", "mcp", "check", "audit", "version"]),
    ("Keep", &["secrets", "profiles", "service", "daemon", "backup", "restore", "uninstall"]),
];

/// The other commands, for those who run agents and for teams.
const MORE: Groups = &[
    (
        "Agents",
        &["runs", "sessions", "grants", "connections", "shares", "mount", "vfs", "strace", "top"],
    ),
    (
        "Catalog",
        &["servers", "capabilities", "agents", "env-bindings", "channels", "export", "import"],
    ),
    (
        "Administer",
        &[
            "policy",
            "limits",
            "usage",
            "workspaces",
            "users",
            "members",
            "tokens",
            "clients",
            "webhooks",
            "whoami",
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

/// Number of columns of the main page and of the text without a command.
const COLUMNS: usize = 80;

/// The lines on further help, of the page of all commands and of the main one.
const ONE_HELP: &str = "Help of a command: narthex COMMAND --help";
const MORE_HELP: &str = "Help of a command: narthex COMMAND --help\n\
    All commands, also for agents and teams: narthex help all";

/// The text of `narthex` without a command.
pub(crate) fn beginning() -> String {
    let first = [
        (narthex("setup", &[]), "move the servers of your MCP clients here; it asks first"),
        (narthex("add NAME", &[]), "add a server of a registry; `search` finds its name"),
        (narthex("tools", &[]), "list the tools of all servers"),
    ];
    let lines = first.map(|(command, about)| format!("  {:<18}{about}\n", command.to_string()));
    format!(
        "narthex stands between AI agents and their MCP servers: it starts the servers,\n\
         and gives all your clients one address for them.\n\nBegin with:\n{}\n\
         More commands: narthex --help",
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
    let main = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{}\n{MORE_HELP}\n\n\
         Global flags:\n{{options}}{{after-help}}",
        listed(&command, FIRST)
    );
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

/// The page of all commands.
pub(crate) fn all() -> String {
    let command = command();
    let (first, more) = (listed(&command, FIRST), listed(&command, MORE));
    format!("Usage: narthex [OPTIONS] <COMMAND>\n{first}{more}\n{ONE_HELP}")
}

/// The groups with the texts of their commands. The width of the names is that of the longest one.
fn listed(command: &Command, groups: Groups) -> String {
    let names = groups.iter().flat_map(|(_, names)| *names);
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (group, names) in groups {
        text.push_str(&format!("\n{group}:\n"));
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let begin = width + 4;
            let lines = wrapped(&about, COLUMNS.saturating_sub(begin));
            let about = lines.join(&format!("\n{}", " ".repeat(begin)));
            text.push_str(&format!("  {name:width$}  {about}\n"));
        }
    }
    text
}

/// The lines of a text, each with so many columns at most.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Hides the global flags in the help of a command and of those below it.
fn page(command: Command, globals: &[clap::Arg]) -> Command {
    command.args(globals).help_template(PAGE).mut_subcommands(|inner| page(inner, globals))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D29: a new user has no server that people sign in to.
    #[test]
    fn d29_the_first_page_names_no_connections() {
        assert!(!beginning().contains("connections"), "{}", beginning());
        let is_first = FIRST.iter().any(|(_, names)| names.contains(&"connections"));
        assert!(!is_first, "{FIRST:?}");
    }

    #[test]
    fn the_first_texts_fit_a_usual_terminal() {
        let pages = [listed(&Cli::command(), FIRST), all(), beginning(), MORE_HELP.to_owned()];
        for line in pages.iter().flat_map(|page| page.lines()) {
            assert!(line.chars().count() <= COLUMNS, "{line}");
        }
        assert_eq!(wrapped("a bc d", 4), ["a bc", "d"]);
    }

    #[test]
    fn each_command_is_in_one_group() {
        let groups = FIRST.iter().chain(MORE);
        let mut grouped: Vec<_> = groups.flat_map(|(_, names)| *names).copied().collect();
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
        let mut all: Vec<_> = shown.map(Command::get_name).collect();
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }
}
