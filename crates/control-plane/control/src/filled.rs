//! Secrets that local files name, opened and put into the definitions of their servers (D38).
//!
//! Only entries that count are looked at: an entry of a file that its user has not approved is not
//! among the declarations, so it causes no secret to be opened (D27).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use narthex_model::{
    CallError, CallErrorKind, ConfigFault, NamedSecret, OpenedSecret, SecretId, SecretName,
    SecretReference, SecretSummary, ServerDefinition, WorkspaceId, command::narthex, header,
    with_causes,
};
use narthex_registry::{Declared, config::Entry};
use narthex_vault::{Vault, VaultError};
use serde_json::json;

use crate::keys::secret_key;

/// The declarations that were applied last.
pub(crate) struct Applied {
    /// The declarations of the files.
    pub(crate) declared: Arc<[Declared]>,
    /// The declarations with the values of their secrets.
    pub(crate) filled: Filled,
}

/// Declarations with the values of their secrets.
pub(crate) struct Filled {
    /// The entries, in the order of the declarations. One without a value is a fault.
    pub(crate) entries: Vec<Declared>,
    /// The version of each named secret; `None` for a secret that is not set.
    versions: BTreeMap<SecretName, Option<u64>>,
    /// True if a value could not be read, although it may be set.
    is_unsure: bool,
}

/// The results of opening secrets.
type Opened = BTreeMap<SecretName, Result<OpenedSecret, VaultError>>;

impl Filled {
    /// Opens the secrets that these declarations name, each once.
    pub(crate) async fn of(
        declared: &[Declared],
        vault: Option<&Vault>,
        workspace: &WorkspaceId,
    ) -> Self {
        let opened = open(names(declared), vault, workspace).await;
        let version = |found: &Result<OpenedSecret, _>| found.as_ref().ok().map(|it| it.id.version);
        Self {
            entries: declared.iter().map(|one| with_values(one, &opened)).collect(),
            versions: opened.iter().map(|(name, found)| (name.clone(), version(found))).collect(),
            is_unsure: opened.values().any(
                |found| matches!(found, Err(error) if !matches!(error, VaultError::NotSet(_))),
            ),
        }
    }

    /// True if the declarations name secrets.
    pub(crate) fn names_secrets(&self) -> bool {
        !self.versions.is_empty()
    }

    /// True if the entries may differ by now: a secret has another version, or was not readable.
    pub(crate) fn is_behind(&self, present: &[SecretSummary]) -> bool {
        let newest = |name: &SecretName| {
            let secret = present.iter().find(|secret| secret.name == *name)?;
            secret.versions.last().map(|version| version.version.get())
        };
        self.is_unsure || self.versions.iter().any(|(name, version)| newest(name) != *version)
    }

    /// The entries that differ from those of `before`, which are of the same declarations.
    pub(crate) fn changed_since(&self, before: &Self) -> Vec<Declared> {
        let both = self.entries.iter().zip(&before.entries);
        both.filter(|(now, before)| now != before).map(|(now, _)| now.clone()).collect()
    }
}

/// The places that name secrets, by secret: the file's name, and the key in it.
pub(crate) fn uses(declared: &[Declared]) -> BTreeMap<SecretName, Vec<String>> {
    let mut uses: BTreeMap<SecretName, Vec<String>> = BTreeMap::new();
    for (declared, definition) in counting(declared) {
        let file = declared.file.as_deref().and_then(|file| file.file_name());
        let file = file.map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
        for named in &definition.named_secrets {
            let place = format!("{file}:{}", named.key);
            uses.entry(named.name.clone()).or_default().push(place);
        }
    }
    uses
}

fn names(declared: &[Declared]) -> BTreeSet<SecretName> {
    let named = counting(declared).flat_map(|(_, definition)| &definition.named_secrets);
    named.map(|named| named.name.clone()).collect()
}

/// The servers of the entries that count.
fn counting(declared: &[Declared]) -> impl Iterator<Item = (&Declared, &ServerDefinition)> {
    declared.iter().filter(|declared| !declared.is_overridden).filter_map(
        |declared| match &declared.entry {
            Entry::Server(definition) => Some((declared, definition)),
            Entry::Fault(_) => None,
        },
    )
}

async fn open(
    names: BTreeSet<SecretName>,
    vault: Option<&Vault>,
    workspace: &WorkspaceId,
) -> Opened {
    let mut opened = Opened::new();
    for name in names {
        let found = match vault {
            Some(vault) => {
                vault.open(workspace, &SecretReference::newest(name.clone())).await.map(|found| {
                    let (key, version) = (secret_key(workspace, &name), found.version.get());
                    OpenedSecret { value: found.value, id: SecretId { key, version } }
                })
            }
            None => Err(VaultError::NotSet(name.clone())),
        };
        opened.insert(name, found);
    }
    opened
}

/// The entry with its values, or as a fault that names each secret without a value.
fn with_values(declared: &Declared, opened: &Opened) -> Declared {
    let Entry::Server(definition) = &declared.entry else { return declared.clone() };
    if declared.is_overridden || definition.named_secrets.is_empty() {
        return declared.clone();
    }
    let problems = definition.named_secrets.iter().filter_map(|named| problem(named, opened));
    let problems: Vec<_> = problems.collect();
    // A disabled entry is not started, so its secrets may be absent.
    let entry = if problems.is_empty() || definition.is_disabled {
        let mut definition = definition.clone();
        definition.fill_in(|name| opened.get(name)?.as_ref().ok());
        Entry::Server(definition)
    } else {
        Entry::Fault(fault(declared, &problems))
    };
    Declared { entry, ..declared.clone() }
}

/// A reason why a secret cannot be used at its place.
struct Problem<'a> {
    key: &'a str,
    code: &'static str,
    text: String,
}

fn problem<'a>(named: &'a NamedSecret, opened: &Opened) -> Option<Problem<'a>> {
    let name = &named.name;
    let (code, text) = match opened.get(name)? {
        Ok(found) if named.is_in_header() && !header::is_value(found.value.expose()) => {
            let set = narthex("secrets set {}", &[name]);
            let text = format!(
                "secret `{name}` cannot be sent in an HTTP header; set it again with `{set}`, with \
                 printable ASCII without line breaks"
            );
            ("header_value_invalid", text)
        }
        Ok(_) => return None,
        Err(error @ VaultError::NotSet(_)) => ("secret_not_set", error.to_string()),
        Err(error) => ("secret_unreadable", with_causes(error)),
    };
    Some(Problem { key: &named.key, code, text })
}

fn fault(declared: &Declared, problems: &[Problem<'_>]) -> ConfigFault {
    let file = declared.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
    let told = problems.iter().map(|Problem { key, text, .. }| format!("`{key}`: {text}"));
    let message = format!("{file}: {}", told.collect::<Vec<_>>().join(". "));
    let of_problem = |problem: &Problem<'_>| {
        let Problem { key, code, text } = problem;
        json!({ "path": key, "code": code, "message": text })
    };
    let problems: Vec<_> = problems.iter().map(of_problem).collect();
    let details = Some(json!({ "file": file, "problems": problems }));
    let error = CallError { kind: CallErrorKind::AuthUnavailable, message, details };
    ConfigFault { name: declared.name().to_owned(), error }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::SystemTime};

    use narthex_model::{Provenance, SecretVersion, VersionSummary};
    use narthex_registry::{
        Layer,
        config::{Env, LoadContext, parse},
        layers::compose,
    };

    use super::*;

    fn layer(provenance: Provenance, file: &str, servers: &serde_json::Value) -> Layer {
        let file = Path::new(file);
        let context =
            LoadContext { file, workspace_root: Path::new("/w"), env: Env::Values(&|_| None) };
        let text = json!({ "servers": servers }).to_string();
        let entries = parse(text.as_bytes(), &context).unwrap().entries;
        Layer { provenance, file: Some(file.into()), entries }
    }

    fn naming(secret: &str) -> serde_json::Value {
        let env = json!({ "A": format!("${{secret:{secret}}}"), "B": "plain" });
        json!({ "transport": "stdio", "command": "x", "env": env })
    }

    fn declared() -> Vec<Declared> {
        let mut off = naming("OFF");
        off["disabled"] = json!(true);
        let below = json!({ "both": naming("BELOW"), "off": off });
        let above = json!({ "both": naming("ABOVE"), "plain": { "transport": "http",
            "url": "https://a.test" } });
        compose(&[
            layer(Provenance::Settings, "/c/settings.json", &below),
            layer(Provenance::Workspace, "/w/mcp.json", &above),
        ])
    }

    async fn filled() -> Filled {
        Filled::of(&declared(), None, &WorkspaceId::default()).await
    }

    /// D38: an entry without its secret is a fault that names the place and the command. One that
    /// is hidden by another entry opens none, and a disabled one stays disabled.
    #[tokio::test]
    async fn d38_only_entries_that_start_need_their_secrets() {
        let filled = filled().await;
        let told: Vec<_> = filled.entries.iter().map(|one| (one.name(), &one.entry)).collect();
        let [(_, Entry::Server(below)), (_, Entry::Server(off)), (_, fault), (_, plain)] = told[..]
        else {
            panic!("{told:?}")
        };
        assert_eq!((below.unopened_secrets().count(), off.is_disabled), (1, true));
        let Entry::Fault(ConfigFault { name, error }) = fault else { panic!("{fault:?}") };
        assert_eq!((name.as_str(), error.kind), ("both", CallErrorKind::AuthUnavailable));
        let expected = "/w/mcp.json: `servers.both.env.A`: secret `ABOVE` is not set; set it with \
                        `narthex secrets set ABOVE`";
        assert_eq!(error.message, expected);
        let details = error.details.as_ref().unwrap();
        assert_eq!(details["problems"][0]["code"], "secret_not_set");
        assert!(matches!(plain, Entry::Server(_)));
        assert!(filled.names_secrets());
        let uses = uses(&declared());
        let names: Vec<_> = uses.keys().map(SecretName::as_str).collect();
        assert_eq!(names, ["ABOVE", "OFF"]);
        assert_eq!(uses["ABOVE"], ["mcp.json:servers.both.env.A"]);
    }

    /// D38: a secret that another daemon has set is noticed; other secrets are no reason.
    #[tokio::test]
    async fn d38_new_versions_are_noticed() {
        let filled = filled().await;
        let secret = |name: &str| SecretSummary {
            name: SecretName::new(name).unwrap(),
            created_at: SystemTime::UNIX_EPOCH,
            updated_at: SystemTime::UNIX_EPOCH,
            updated_by: "admin".to_owned(),
            versions: vec![VersionSummary {
                version: SecretVersion::FIRST,
                created_at: SystemTime::UNIX_EPOCH,
                key: None,
            }],
        };
        assert!(!filled.is_behind(&[]));
        assert!(!filled.is_behind(&[secret("OTHER"), secret("BELOW")]));
        assert!(filled.is_behind(&[secret("ABOVE")]));
        assert!(filled.changed_since(&filled).is_empty());
    }
}
