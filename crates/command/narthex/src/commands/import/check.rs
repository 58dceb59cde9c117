//! Entries checked as the daemon will read them, before one of them is stored.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use narthex_client_files::{
    plan::{Origin, Outcome, Plan, Planned},
    servers::{FoundServer, Placeholder, Target, variable_notation},
};
use narthex_model::{Alias, ConfigFault};
use narthex_registry::config::{Entry, Env, LoadContext, Variables, parse};
use serde_json::{Value, json};

use super::adding::Way;
use crate::config;

/// The field of an entry with the file of its variables.
const ENV_FILE: &str = "envFile";

/// Values in place of variables that are not set here, and may be where the daemon starts.
const UNSET: &str = "unset";
const UNSET_ADDRESS: &str = "http://unset.invalid";

/// The reasons for which narthex refuses servers that would be added, by their place in the plan.
pub(in crate::commands) fn refused(
    plan: &Plan,
    file: &Path,
    root: &Path,
) -> BTreeMap<usize, String> {
    let variables = assumed(plan);
    let context = LoadContext { file, workspace_root: root, env: Env::Values(&*variables) };
    let servers = plan.servers.iter().enumerate();
    let added = servers.filter(|(_, one)| one.outcome == Outcome::Add);
    let refused = added
        .filter_map(|(at, one)| Some((at, reason(&one.server, one.alias.as_str(), &context)?)));
    refused.collect()
}

/// Gives the way to add a server under a name by a command, with names for its secrets that are not
/// among these. `file` is the settings file, and `root` the folder of the daemon.
pub(in crate::commands) fn ways<'p>(
    file: &'p Path,
    root: &'p Path,
) -> impl Fn(&FoundServer, &Alias, &mut BTreeSet<String>) -> Way + 'p {
    move |server: &FoundServer, alias: &Alias, secrets: &mut BTreeSet<String>| {
        let unset = unset(server).into_iter().map(str::to_owned).collect();
        match fault(server, alias, file, root) {
            Some(reason) => Way::Refused(reason),
            None => Way::of(server, alias, secrets, unset),
        }
    }
}

/// The reason for which narthex refuses a server under this name.
fn fault(server: &FoundServer, alias: &Alias, file: &Path, root: &Path) -> Option<String> {
    let variables = with_values(std::iter::once(server));
    let context = LoadContext { file, workspace_root: root, env: Env::Values(&*variables) };
    reason(server, alias.as_str(), &context)
}

fn reason(server: &FoundServer, alias: &str, context: &LoadContext<'_>) -> Option<String> {
    let entry: Value = serde_json::from_str(server.entry().expose()).ok()?;
    let document = json!({ "servers": { alias: entry } }).to_string();
    match parse(document.as_bytes(), context) {
        Err(error) => Some(error.to_string()),
        Ok(loaded) => loaded.entries.iter().find_map(|entry| match entry {
            Entry::Fault(fault) => Some(words(fault)),
            Entry::Server(_) => None,
        }),
    }
}

/// The variables of this process, with values for those that a server needs and that are not set.
pub(in crate::commands) fn assumed(plan: &Plan) -> Variables {
    with_values(plan.servers.iter().map(|one| &one.server))
}

fn with_values<'s>(servers: impl Iterator<Item = &'s FoundServer>) -> Variables {
    let mut needed = BTreeSet::new();
    let mut addresses = BTreeSet::new();
    for server in servers {
        needed.extend(needs(server).map(str::to_owned));
        if let Target::Remote { url, .. } = &server.target {
            let begin = url.expose().strip_prefix("${env:");
            let name = begin.and_then(|rest| rest.split_once('}'));
            addresses.extend(name.map(|(name, _)| name.to_owned()));
        }
    }
    Arc::new(move |name| {
        config::placeholder(name).or_else(|| match needed.contains(name) {
            true if addresses.contains(name) => Some(UNSET_ADDRESS.to_owned()),
            true => Some(UNSET.to_owned()),
            false => None,
        })
    })
}

/// The variables that a server needs and that are not set here.
pub(in crate::commands) fn unset(server: &FoundServer) -> Vec<&str> {
    let mut names: Vec<_> = needs(server).collect();
    names.retain(|name| config::placeholder(name).is_none());
    names.dedup();
    names
}

/// The variables without which a server does not start.
fn needs(server: &FoundServer) -> impl Iterator<Item = &str> {
    server.placeholders.iter().filter_map(|placeholder| match placeholder {
        Placeholder::Variable { name, has_default: false } => Some(name.as_str()),
        Placeholder::Asked { variable, .. } => Some(variable.as_str()),
        Placeholder::Home => Some("HOME"),
        Placeholder::Variable { has_default: true, .. }
        | Placeholder::Folder
        | Placeholder::Unfilled { .. } => None,
    })
}

/// The problems of an entry, without the name of a file that does not have it yet.
fn words(fault: &ConfigFault) -> String {
    let details = fault.error.details.as_ref();
    let problems = details.and_then(|details| details["problems"].as_array());
    let problems = problems.into_iter().flatten();
    let words: Vec<_> = problems.filter_map(|problem| problem["message"].as_str()).collect();
    if words.is_empty() { fault.error.message.clone() } else { words.join(". ") }
}

/// The reason for which a server works in its client alone.
pub(in crate::commands) fn needs_client(one: &Planned) -> Option<String> {
    let row = one.origins.first().map(|Origin { client, .. }| *client);
    let client = row.map_or("the client", |row| row.name.as_str());
    let variable = row.and_then(|row| variable_notation(row.shape));
    let reason = one.server.placeholders.iter().find_map(|placeholder| match placeholder {
        Placeholder::Asked { id, .. } => {
            Some((format!("only {client} has the value of `{id}`"), variable))
        }
        Placeholder::Unfilled { place, text } => {
            Some((format!("`{place}` has `{text}`, which {client} does not fill in"), None))
        }
        Placeholder::Variable { .. } | Placeholder::Folder | Placeholder::Home => None,
    });
    if let Some((reason, variable)) = reason {
        let variable = variable.map(|written| format!("`{written}` or ")).unwrap_or_default();
        return Some(format!(
            "{reason}; write {variable}the value itself in its place, then run the command again"
        ));
    }
    let has_folder = one.server.placeholders.contains(&Placeholder::Folder);
    (has_folder || one.server.has_relative_path()).then(|| {
        format!(
            "it depends on the folder in which {client} works; write whole paths, then run the \
             command again"
        )
    })
}

/// The reason for which a server stays whose variables are in a file that only its client reads. It
/// may list its tools without them, and fail at its calls.
pub(in crate::commands) fn needs_env_file(one: &Planned) -> Option<String> {
    let mut left_out = one.server.left_out.iter();
    let client = one.origins.first().map_or("the client", |origin| &*origin.client.name);
    left_out.any(|left| left.field == ENV_FILE).then(|| {
        format!(
            "only {client} reads the file of its `{ENV_FILE}`; write these variables into `env`, \
             remove `{ENV_FILE}`, then run the command again"
        )
    })
}

#[cfg(test)]
mod tests {
    use narthex_client_files::servers::{Text, ToolLists};

    use super::*;

    fn remote(url: &str, header: &str, placeholders: BTreeSet<Placeholder>) -> FoundServer {
        let plain = |text: &str| Text::Plain(text.to_owned());
        let headers = BTreeMap::from([(header.to_owned(), plain("1"))]);
        FoundServer {
            name: "docs".to_owned(),
            target: Target::Remote { is_sse: false, url: plain(url), headers },
            timeout_ms: None,
            start_timeout_ms: None,
            tools: ToolLists::default(),
            is_disabled: false,
            placeholders,
            spelled: BTreeMap::new(),
            left_out: Vec::new(),
        }
    }

    /// A server that narthex would refuse gets its reason and no command.
    #[test]
    fn a_command_is_printed_only_if_narthex_takes_the_server() {
        let way = ways(Path::new("/settings.json"), Path::new("/"));
        let way = |server: &FoundServer| way(server, &Alias::suggest("docs"), &mut BTreeSet::new());
        let url = "https://docs.example.com/mcp";
        assert!(matches!(way(&remote(url, "X-Good", BTreeSet::new())), Way::Add(_)));
        assert!(matches!(way(&remote(url, "X Bad", BTreeSet::new())), Way::Refused(_)));
        let name = "A_VARIABLE_NEVER_SET".to_owned();
        let variable = BTreeSet::from([Placeholder::Variable { name, has_default: false }]);
        let Way::Add(adding) = way(&remote("${env:A_VARIABLE_NEVER_SET}", "X", variable)) else {
            panic!("it is refused")
        };
        assert!(adding.told("adds it").starts_with("set A_VARIABLE_NEVER_SET, which it reads, "));
    }
}
