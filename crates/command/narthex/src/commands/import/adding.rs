//! The command that adds one server of a client's file to the user's settings, ready for a shell.

use std::collections::{BTreeMap, BTreeSet};

use narthex_client::terminal::{inert_json, is_harmful};
use narthex_client_files::servers::{FoundServer, Target, Text, ToolLists};
use narthex_model::{
    Alias, SecretName,
    command::{CommandLine, narthex},
};
use serde_json::Value;

/// The numbers that a name may get at its end.
const NUMBERS: std::ops::Range<u32> = 2..100;

/// Names that a further server and its secrets cannot have.
#[derive(Debug, Default)]
pub(in crate::commands) struct Taken {
    pub(in crate::commands) servers: BTreeSet<String>,
    pub(in crate::commands) secrets: BTreeSet<String>,
}

/// The way to add a server of a client's file.
pub(in crate::commands) enum Way {
    /// A command adds it.
    Add(Adding),
    /// A command would have a secret of it.
    ByHand,
    /// narthex cannot use its entry, for this reason.
    Refused(String),
}

/// A command that adds a server, with the names of its secrets in place of their values.
pub(in crate::commands) struct Adding {
    pub(in crate::commands) command: CommandLine,
    /// The secrets that the command names.
    pub(in crate::commands) secrets: Vec<SecretName>,
    /// The variables that the server needs and that are not set here.
    unset: Vec<String>,
}

impl Way {
    /// The way for a server under this name. `secrets` are names that other secrets have; those of
    /// the command are taken from then on. `unset` are variables to set before.
    pub(in crate::commands) fn of(
        server: &FoundServer,
        alias: &Alias,
        secrets: &mut BTreeSet<String>,
        unset: Vec<String>,
    ) -> Self {
        let adding = Adding::of(server, alias, secrets);
        adding.map_or(Self::ByHand, |adding| Self::Add(Adding { unset, ..adding }))
    }
}

impl Adding {
    /// The command for a server under this name; `None` if the server has a secret at a place that
    /// cannot name one, such as an argument.
    fn of(server: &FoundServer, alias: &Alias, taken: &mut BTreeSet<String>) -> Option<Self> {
        let nameable = server.nameable_secrets();
        if server.secrets().len() > nameable.len() {
            return None;
        }
        let mut names = BTreeMap::<String, SecretName>::new();
        for secret in nameable {
            let name = SecretName::for_server(alias, &secret.key, |name| taken.contains(name));
            taken.insert(name.as_str().to_owned());
            names.insert(secret.key, name);
        }
        let command = command(server, alias, &names);
        Some(Self { command, secrets: names.into_values().collect(), unset: Vec::new() })
    }

    /// The way to add the server, as a clause. `effect` says what the command does.
    pub(in crate::commands) fn told(&self, effect: &str) -> String {
        let add = format!("`{}` {effect}", self.command);
        let set = |name: &SecretName| format!("`{}`", narthex("secrets set {}", &[&name.as_str()]));
        let store = match &self.secrets[..] {
            [] => None,
            [one] => Some(format!("store its secret first with {}", set(one))),
            more => {
                let all: Vec<_> = more.iter().map(set).collect();
                Some(format!("store its secrets first with {}", all.join(", ")))
            }
        };
        let names = self.unset.join(", ");
        let variables = (!names.is_empty())
            .then(|| format!("set {names}, which it reads, here and where the daemon starts"));
        let steps: Vec<_> = variables.into_iter().chain(store).collect();
        match steps.is_empty() {
            true => add,
            false => format!("{}, then {add}", steps.join(", ")),
        }
    }
}

fn command(
    server: &FoundServer,
    alias: &Alias,
    names: &BTreeMap<String, SecretName>,
) -> CommandLine {
    // The words of the server follow, so the words here are no whole command.
    let start = "mcp add";
    let add = narthex(start, &[]).words([alias.as_str()]);
    let pair = |key: &str, value: &Text| match names.get(key) {
        Some(name) => format!("{key}=${{secret:{}}}", name.as_str()),
        None => format!("{key}={}", value.expose()),
    };
    match &server.target {
        _ if has_more(server) || has_odd_words(server) => {
            add.words([in_one_line(server.entry_naming(names).expose())])
        }
        Target::Remote { is_sse, url, headers } => {
            let add = add.words(is_sse.then_some("--sse")).option("--url", url.expose());
            let headers = headers.iter();
            headers.fold(add, |add, (key, value)| add.option("--header", pair(key, value)))
        }
        Target::Stdio { command, args, env, cwd } => {
            let variables = env.iter();
            let add =
                variables.fold(add, |add, (key, value)| add.option("--env", pair(key, value)));
            let add = cwd.iter().fold(add, |add, folder| add.option("--cwd", folder));
            add.passing_on(std::iter::once(command).chain(args).map(Text::expose))
        }
    }
}

/// True for a server with facts that no flag has, so that its whole entry is the description.
fn has_more(server: &FoundServer) -> bool {
    server.is_disabled
        || server.timeout_ms.is_some()
        || server.start_timeout_ms.is_some()
        || server.tools != ToolLists::default()
}

/// True for a server with words that a terminal does not show as they are, or that a flag would not
/// take as a name. JSON has another notation for them.
fn has_odd_words(server: &FoundServer) -> bool {
    let is_odd = |text: &str| text.contains(is_hidden);
    let is_odd_pair = |(key, value): (&String, &Text)| {
        key.starts_with('-') || key.contains('=') || is_odd(key) || is_odd(value.expose())
    };
    match &server.target {
        Target::Remote { url, headers, .. } => {
            is_odd(url.expose()) || headers.iter().any(is_odd_pair)
        }
        Target::Stdio { command, args, env, cwd } => {
            let mut words = std::iter::once(command).chain(args).map(Text::expose);
            words.any(is_odd) || cwd.as_deref().is_some_and(is_odd) || env.iter().any(is_odd_pair)
        }
    }
}

fn is_hidden(c: char) -> bool {
    c.is_control() || is_harmful(c)
}

/// The entry in one line, without characters that a terminal does not show.
fn in_one_line(entry: &str) -> String {
    let line = |all: Value| inert_json(&all.to_string()).into_owned();
    serde_json::from_str(entry).map_or_else(|_| entry.to_owned(), line)
}

/// A name that no server has: that of the entry, or with `end` behind it, or with a number behind
/// that. It is taken from then on.
pub(in crate::commands) fn free_name(name: &str, end: &str, taken: &mut BTreeSet<String>) -> Alias {
    let with_end = format!("{name}-{end}");
    let numbered = NUMBERS.map(|number| format!("{with_end}-{number}"));
    let names = [name.to_owned(), with_end.clone()].into_iter().chain(numbered);
    let mut names = names.map(|name| Alias::suggest(&name));
    let free = names.find(|alias| !taken.contains(alias.as_str()));
    let alias = free.unwrap_or_else(|| Alias::suggest(name));
    taken.insert(alias.as_str().to_owned());
    alias
}

#[cfg(test)]
mod tests;
