//! Secrets of a set-up: stored in the vault under names that say whose they are, and cleared again.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use narthex_audit::{Actor, ActorKind, Audit, AuditEvent, AuditFull, AuditSettings, kind};
use narthex_client_files::{
    journal::{Journal, Step},
    plan::Planned,
    servers::NameableSecret,
};
use narthex_model::{ErrorKind, SecretName, SecretSummary, WorkspaceId};
use narthex_store::{StatementError, Store};
use serde_json::{Value, json};

use super::{daemon::Daemon, place::failed};
use crate::{
    Failure,
    config::Settings,
    daemon_client::{ApiRequest, workspace_path},
    data_dir::DataDir,
    stored::StorePlace,
};

/// The workspace whose secrets a local file names.
const WORKSPACE: &str = "default";
/// The actor of a change that is made without the daemon: its operator.
const BY: &str = "admin";

/// The names of one server's secrets, by the variable or header.
pub(super) type Names = BTreeMap<String, SecretName>;

/// A server, and its secrets that go to the vault.
pub(super) type WithSecrets<'s> = (&'s Planned, Vec<NameableSecret>);

/// Stores the secrets of servers. Gives the names for each server. `needed` are the names that the
/// settings have. A name that a failed set-up has left over is used again.
pub(super) async fn store(
    servers: &[WithSecrets<'_>],
    needed: &BTreeMap<String, String>,
    journal: &mut Journal,
    daemon: &Daemon,
) -> Result<Vec<Names>, Failure> {
    let now = set(daemon).await?;
    let left = left_over(journal.steps(), &now, needed);
    let mut taken: BTreeSet<_> = now.into_keys().filter(|name| !left.contains(name)).collect();
    let mut all = Vec::new();
    for (one, secrets) in servers {
        let mut names = Names::new();
        for secret in secrets {
            let name = SecretName::for_server(&one.alias, &secret.key, |name| taken.contains(name));
            if left.contains(name.as_str()) {
                take_back(name.as_str(), journal, daemon).await?;
            }
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
            names.insert(secret.key.clone(), name);
        }
        all.push(names);
    }
    Ok(all)
}

/// The names of secrets that set-ups have stored and that no server of the settings names, if they
/// have their values still.
fn left_over(
    steps: &[Step],
    now: &BTreeMap<String, Values>,
    needed: &BTreeMap<String, String>,
) -> BTreeSet<String> {
    let mut versions = BTreeMap::new();
    for step in steps {
        if let Step::Secret { name, version } = step {
            versions.insert(name, *version);
        }
    }
    let left = versions.into_iter().filter(|(name, version)| {
        let is_own = now.get(*name).is_some_and(|values| values.is_of(*version));
        is_own && !needed.contains_key(*name)
    });
    left.map(|(name, _)| name.clone()).collect()
}

/// Clears a secret that a set-up stored; false if it has another value since, or none.
pub(super) async fn clear(
    name: &str,
    version: Option<u64>,
    daemon: &Daemon,
) -> Result<Cleared, Failure> {
    let Some(now) = set(daemon).await?.remove(name) else { return Ok(Cleared::Absent) };
    if !now.is_of(version) {
        return Ok(Cleared::Changed);
    }
    daemon.client.api(ApiRequest::new(Method::DELETE, path(name))).await?;
    Ok(Cleared::Done)
}

/// Clears a secret as [`clear`] does, in the store of a daemon that cannot start, and records it.
/// No key of the vault is needed for it. Gives the failure for which there is no record, too.
///
/// # Errors
/// When a daemon has the data directory, or the store cannot be used.
pub(super) async fn clear_stored(
    name: &str,
    version: Option<u64>,
    settings: &Settings,
) -> Result<(Cleared, Option<Failure>), Failure> {
    let data = DataDir::at(&settings.daemon.data);
    // A daemon that starts meanwhile would have the secret, and write to the record.
    let _lock = data.lock()?;
    let store = StorePlace::of(&data, settings).open().await?;
    let (audit, fault) = match Audit::open(&data.audit_dir(), &AuditSettings::default()) {
        Ok(audit) => (audit, None),
        // A record that cannot be written may be the reason for which no daemon starts.
        Err(error) => (Audit::disabled(), Some(Failure::caused(ErrorKind::Unavailable, &error))),
    };
    let cleared = clear_in(&store, &audit, name, version).await;
    audit.close().await;
    store.close().await;
    let (cleared, refused) = cleared.map_err(|error| Failure::caused(error.kind(), &error))?;
    let refused = refused.map(|error| Failure::caused(error.kind(), &error));
    Ok((cleared, fault.or(refused)))
}

async fn clear_in(
    store: &Store,
    audit: &Audit,
    name: &str,
    version: Option<u64>,
) -> Result<(Cleared, Option<AuditFull>), StatementError> {
    let workspace = WorkspaceId::default();
    let all = store.secrets().all(&workspace).await?;
    let mut set = all.into_iter().filter(SecretSummary::is_set);
    let Some(found) = set.find(|one| one.name.as_str() == name) else {
        return Ok((Cleared::Absent, None));
    };
    let newest = found.versions.last().map(|last| last.version.get());
    let now = Values { newest: newest.unwrap_or_default(), count: found.versions.len() };
    if !now.is_of(version) {
        return Ok((Cleared::Changed, None));
    }
    let event = AuditEvent::new(kind::SECRET_CLEARED, Actor::new(ActorKind::LocalAdmin, BY));
    let event = event.in_workspace(&workspace).on("secret", name.to_owned());
    let (noted, refused) = match audit.begin(event).await {
        Ok(noted) => (Some(noted), None),
        Err(full) => (None, Some(full)),
    };
    store.secrets().clear(&workspace, &found.name, BY).await?;
    if let Some(noted) = noted {
        noted.done().await;
    }
    Ok((Cleared::Done, refused))
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

/// The values of a secret that is set.
struct Values {
    /// The newest version.
    newest: u64,
    /// Number of stored values.
    count: usize,
}

impl Values {
    fn of(secret: &Value) -> Self {
        let versions = secret["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let newest = versions.last().and_then(|last| last["version"].as_u64());
        Self { newest: newest.unwrap_or_default(), count: versions.len() }
    }

    /// True if the newest value is the one of this version. A set-up that was killed does not know
    /// the version: it stored the first value, so a second one is another's.
    fn is_of(&self, version: Option<u64>) -> bool {
        version.map_or(self.count <= 1, |version| version == self.newest)
    }
}

/// The secrets that are set.
async fn set(daemon: &Daemon) -> Result<BTreeMap<String, Values>, Failure> {
    let secrets = daemon.client.api_all(&workspace_path(WORKSPACE, "/secrets")).await?;
    let secrets = secrets.iter().filter(|secret| secret["is_set"] == true);
    let secrets = secrets
        .filter_map(|secret| Some((secret["name"].as_str()?.to_owned(), Values::of(secret))));
    Ok(secrets.collect())
}

fn path(name: &str) -> String {
    workspace_path(WORKSPACE, &format!("/secrets/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_value_is_of_another() {
        let of = |versions: &[u64]| {
            let versions: Vec<_> = versions.iter().map(|one| json!({ "version": one })).collect();
            Values::of(&json!({ "name": "A", "versions": versions }))
        };
        assert!(of(&[3]).is_of(Some(3)) && of(&[3]).is_of(None));
        assert!(!of(&[3, 4]).is_of(Some(3)) && !of(&[3, 4]).is_of(None));
    }

    #[test]
    fn only_unchanged_secrets_without_a_server_are_left_over() {
        let step = |name: &str, version| Step::Secret { name: name.to_owned(), version };
        let steps = [
            step("CHANGED", Some(1)),
            step("GONE", Some(1)),
            step("LEFT", Some(3)),
            step("NEEDED", Some(1)),
            step("TWICE", Some(1)),
            step("TWICE", Some(2)),
        ];
        let values = |newest| Values { newest, count: 1 };
        let now = [("CHANGED", 2), ("LEFT", 3), ("NEEDED", 1), ("OTHER", 1), ("TWICE", 2)];
        let now = now.map(|(name, newest)| (name.to_owned(), values(newest))).into();
        let needed = [("NEEDED".to_owned(), "a".to_owned())].into();
        let left = left_over(&steps, &now, &needed);
        assert_eq!(left, BTreeSet::from(["LEFT".to_owned(), "TWICE".to_owned()]));
    }

    #[test]
    fn secrets_that_an_entry_names_are_found() {
        let entry = json!({
            "command": "a", "args": ["${env:B}"],
            "env": { "C": "${secret:C_KEY}", "D": "x ${secret:D_KEY} y" },
        });
        assert_eq!(named(&entry), BTreeSet::from(["C_KEY".to_owned(), "D_KEY".to_owned()]));
        let needed = needed([("a".to_owned(), entry)].into());
        assert_eq!(needed["D_KEY"], "a");
    }
}
