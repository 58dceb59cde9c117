//! Secrets of a set-up: stored in the vault under names that say whose they are, and cleared again.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use narthex_client_files::{
    journal::{Journal, Step},
    plan::Planned,
};
use narthex_model::SecretName;
use serde_json::{Value, json};

use super::{daemon::Daemon, place::failed};
use crate::{
    Failure,
    daemon_client::{ApiRequest, workspace_path},
};

/// The workspace whose secrets a local file names.
const WORKSPACE: &str = "default";

/// The names of one server's secrets, by the variable or header.
pub(super) type Names = BTreeMap<String, SecretName>;

/// Stores the secrets of servers. Gives the names for each server.
pub(super) async fn store(
    servers: &[&Planned],
    journal: &mut Journal,
    daemon: &Daemon,
) -> Result<Vec<Names>, Failure> {
    let mut taken = set(daemon).await?.into_keys().collect::<BTreeSet<_>>();
    let mut all = Vec::new();
    for one in servers {
        let mut names = Names::new();
        for secret in one.server.nameable_secrets() {
            let name = SecretName::for_server(&one.alias, &secret.key, |name| taken.contains(name));
            journal
                .note(Step::Secret { name: name.as_str().to_owned(), version: None })
                .map_err(|error| failed(&error))?;
            let body = json!({ "value": secret.value.expose() }).to_string();
            let request = ApiRequest::new(Method::PUT, path(name.as_str())).entry(&body);
            let stored = daemon.client.api(request).await?;
            let version = stored["version"].as_u64();
            journal
                .replace_last(Step::Secret { name: name.as_str().to_owned(), version })
                .map_err(|error| failed(&error))?;
            taken.insert(name.as_str().to_owned());
            names.insert(secret.key, name);
        }
        all.push(names);
    }
    Ok(all)
}

/// Clears a secret that a set-up stored; false if it has another value since, or none.
pub(super) async fn clear(
    name: &str,
    version: Option<u64>,
    daemon: &Daemon,
) -> Result<Cleared, Failure> {
    let Some(now) = set(daemon).await?.remove(name) else { return Ok(Cleared::Absent) };
    if version.is_some_and(|version| version != now) {
        return Ok(Cleared::Changed);
    }
    daemon.client.api(ApiRequest::new(Method::DELETE, path(name))).await?;
    Ok(Cleared::Done)
}

/// Clears a secret that set-ups stored, and forgets it. One with another value since stays, as does
/// one of another.
pub(super) async fn take_back(
    name: &str,
    journal: &mut Journal,
    daemon: &Daemon,
) -> Result<(), Failure> {
    let is_it = |step: &Step| matches!(step, Step::Secret { name: own, .. } if own == name);
    let version = journal.steps().iter().rev().find_map(|step| match step {
        Step::Secret { version, .. } if is_it(step) => Some(*version),
        Step::Secret { .. } | Step::Server { .. } | Step::File(_) | Step::Service { .. } => None,
    });
    let Some(version) = version else { return Ok(()) };
    match clear(name, version, daemon).await? {
        Cleared::Done | Cleared::Absent => {
            journal.forget_all(is_it).map_err(|error| failed(&error))
        }
        Cleared::Changed => Ok(()),
    }
}

/// The secrets that servers of the settings name, each with the name of such a server.
pub(super) fn needed(entries: BTreeMap<String, Value>) -> BTreeMap<String, String> {
    let mut needed = BTreeMap::new();
    for (alias, entry) in entries {
        needed.extend(named(&entry).into_iter().map(|name| (name, alias.clone())));
    }
    needed
}

/// The names of the secrets in an entry of the settings.
pub(super) fn named(entry: &Value) -> BTreeSet<String> {
    let text = entry.to_string();
    let names = text.split("${secret:").skip(1).filter_map(|rest| rest.split_once('}'));
    names.map(|(name, _)| name.to_owned()).collect()
}

/// The outcome of a clearing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cleared {
    Done,
    /// There is no such secret.
    Absent,
    /// The secret has another value since.
    Changed,
}

/// The secrets that are set, with their newest versions.
async fn set(daemon: &Daemon) -> Result<BTreeMap<String, u64>, Failure> {
    let secrets = daemon.client.api_all(&workspace_path(WORKSPACE, "/secrets")).await?;
    let version = |secret: &Value| secret["versions"].as_array()?.last()?["version"].as_u64();
    let secrets = secrets.iter().filter(|secret| secret["is_set"] == true).filter_map(|secret| {
        Some((secret["name"].as_str()?.to_owned(), version(secret).unwrap_or_default()))
    });
    Ok(secrets.collect())
}

fn path(name: &str) -> String {
    workspace_path(WORKSPACE, &format!("/secrets/{name}"))
}
