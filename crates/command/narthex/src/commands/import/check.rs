//! Entries checked as the daemon will read them, before one of them is stored.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use narthex_client_files::{
    plan::{Outcome, Plan},
    servers::{FoundServer, Placeholder, Target},
};
use narthex_model::ConfigFault;
use narthex_registry::config::{Entry, Env, LoadContext, Variables, parse};
use serde_json::{Value, json};

use crate::config;

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
    let refused = servers.filter(|(_, one)| one.outcome == Outcome::Add).filter_map(|(at, one)| {
        let entry: Value = serde_json::from_str(one.server.entry().expose()).ok()?;
        let document = json!({ "servers": { one.alias.as_str(): entry } }).to_string();
        let reason = match parse(document.as_bytes(), &context) {
            Err(error) => Some(error.to_string()),
            Ok(loaded) => loaded.entries.iter().find_map(|entry| match entry {
                Entry::Fault(fault) => Some(words(fault)),
                Entry::Server(_) => None,
            }),
        };
        reason.map(|reason| (at, reason))
    });
    refused.collect()
}

/// The variables of this process, with values for those that a server needs and that are not set.
pub(in crate::commands) fn assumed(plan: &Plan) -> Variables {
    let mut needed = BTreeSet::new();
    let mut addresses = BTreeSet::new();
    for one in &plan.servers {
        needed.extend(needs(&one.server).map(str::to_owned));
        if let Target::Remote { url, .. } = &one.server.target {
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

/// The variables without which a server does not start.
pub(in crate::commands) fn needs(server: &FoundServer) -> impl Iterator<Item = &str> {
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
