//! Requests for runs with servers of their own: the document that creates such a run.

use std::{collections::BTreeSet, fmt, path::Path, sync::Arc};

use narthex_model::{ErrorKind, UnknownKey};
use narthex_policy::RunPolicy;
use narthex_registry::{
    Mountable, Sharing, Snapshot,
    config::{self, Entry, Env, LoadContext},
};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{RunError, RunFault, RunWarning, RunsOptions, create::servers::RunServers};

/// The name of the document in messages.
const PLACE: &str = "the request";
/// The member that only entries of a run may have, not entries of a file (D17).
const OPTIONAL: &str = "optional";

/// The servers and tools of a document; other code reads the other members.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    servers: Members,
    #[serde(default)]
    tools: Vec<String>,
}

/// The members of an object in their order, also duplicates.
#[derive(Default)]
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

impl Members {
    fn to_text(&self) -> String {
        let member = |(name, value): &(String, Box<RawValue>)| {
            format!("{}:{}", serde_json::Value::from(name.as_str()), value.get())
        };
        format!("{{{}}}", self.0.iter().map(member).collect::<Vec<_>>().join(","))
    }
}

/// Reads a document, and finds all faults of its entries.
///
/// # Errors
/// Every fault of an entry. `taken` has the shared servers, whose aliases an entry may not have.
/// `taken` is `None` for a run or session that began before: its entries were checked then, and a
/// shared server may have taken an alias since.
pub(crate) fn read(
    text: &str,
    options: &RunsOptions,
    taken: Option<&Snapshot>,
    isolation: u64,
) -> Result<RunServers, RunError> {
    let malformed = |error: serde_json::Error| {
        let text = format!(
            "the request is not of the form {{\"servers\": {{\"NAME\": {{…}}}}, \"tools\": \
             [\"NAME\"]}}: {error}"
        );
        RunError::Malformed(text)
    };
    let Document { servers, tools } = serde_json::from_str(text).map_err(malformed)?;
    let policy = RunPolicy::of(&tools).map_err(|error| RunError::Malformed(error.to_string()))?;
    if servers.0.is_empty() && tools.is_empty() {
        let text = "a run needs `servers` of its own, or `tools`, the names of shared servers";
        return Err(RunError::Malformed(text.to_owned()));
    }
    let mut faults = Vec::new();
    let (plain, optional) = without_optional(servers, &mut faults)?;
    if plain.0.is_empty() {
        return Ok(resolved(Vec::new(), policy, Vec::new()));
    }
    let text = format!("{{\"servers\":{}}}", plain.to_text());
    let context = LoadContext {
        file: Path::new(PLACE),
        workspace_root: &options.workspace_root,
        env: Env::Values(&*options.env),
    };
    let loaded = config::parse(text.as_bytes(), &context)
        .map_err(|error| RunError::Malformed(error.to_string()))?;
    let mut servers = Vec::new();
    for entry in loaded.entries {
        if let Some(fault) = fault(&entry, taken) {
            faults.push(fault);
        }
        if let Entry::Server(definition) = entry {
            let is_optional = optional.contains(definition.alias.as_str());
            // A run's own server gets a connection for this run alone (D12).
            let sharing = Sharing::Only(isolation);
            let one = Mountable::new(Arc::new(definition));
            servers.push(Mountable { is_optional, sharing, ..one });
        }
    }
    match faults.is_empty() {
        true => {
            let warnings = loaded.warnings.iter();
            let warnings = warnings.map(|one| RunWarning::of_operators(one.to_string())).collect();
            Ok(resolved(servers, policy, warnings))
        }
        false => Err(RunError::Entries(faults)),
    }
}

/// The parts of a run whose servers are all its own.
fn resolved(servers: Vec<Mountable>, policy: RunPolicy, warnings: Vec<RunWarning>) -> RunServers {
    RunServers { servers, policy, warnings, ..RunServers::default() }
}

/// Removes the members from the entries that only a run's entries have.
fn without_optional(
    servers: Members,
    faults: &mut Vec<RunFault>,
) -> Result<(Members, BTreeSet<String>), RunError> {
    let mut optional = BTreeSet::new();
    let mut plain = Vec::new();
    for (name, entry) in servers.0 {
        // An entry that is no object is a fault that the reader of entries reports.
        let Ok(Members(mut members)) = serde_json::from_str(entry.get()) else {
            plain.push((name, entry));
            continue;
        };
        // A misspelt member would leave the server required, so it is a fault and no warning.
        for (key, _) in members.iter().filter(|(key, _)| key != OPTIONAL) {
            let unknown = UnknownKey::new(key, &[OPTIONAL]);
            if unknown.meant().is_some() {
                faults.push(RunFault::invalid(name.clone(), unknown.to_string()));
            }
        }
        let at = members.iter().position(|(key, _)| key == OPTIONAL);
        let value = at.map(|at| members.remove(at).1);
        match value.as_deref().map(RawValue::get) {
            None | Some("false" | "null") => {}
            Some("true") => _ = optional.insert(name.clone()),
            Some(_) => faults.push(RunFault {
                server: name.clone(),
                kind: ErrorKind::Invalid.as_str(),
                message: "`optional` must be true or false".to_owned(),
                details: None,
            }),
        }
        let entry = RawValue::from_string(Members(members).to_text());
        plain.push((name, entry.map_err(|error| RunError::Malformed(error.to_string()))?));
    }
    Ok((Members(plain), optional))
}

/// The reason why an entry cannot be a run's own server.
fn fault(entry: &Entry, taken: Option<&Snapshot>) -> Option<RunFault> {
    let (kind, message, details) = match entry {
        Entry::Fault(fault) => {
            let error = &fault.error;
            (ErrorKind::Invalid, error.message.clone(), error.details.clone())
        }
        Entry::Server(definition)
            if taken.is_some_and(|taken| taken.get(definition.alias.as_str()).is_some()) =>
        {
            let text = "a shared server has this name; choose another name, or name the shared \
                        server in `tools`";
            (ErrorKind::Conflict, text.to_owned(), None)
        }
        Entry::Server(definition) if definition.pins_definitions => {
            let text = "`pinDefinitions` is for servers of the live configuration; what a run's \
                        own servers list is frozen with the run, so leave it out";
            (ErrorKind::Invalid, text.to_owned(), None)
        }
        Entry::Server(definition) if !definition.named_secrets.is_empty() => {
            let text = "`${secret:NAME}` works in mcp.json and in the user's settings; put the \
                        server into the catalog, where `${NAME}` names a secret of the workspace";
            (ErrorKind::Invalid, text.to_owned(), None)
        }
        Entry::Server(definition) if definition.is_disabled => {
            let text = "its entry has `disabled`; leave the server out of the run";
            (ErrorKind::Invalid, text.to_owned(), None)
        }
        Entry::Server(_) => return None,
    };
    Some(RunFault { server: entry.name().to_owned(), kind: kind.as_str(), message, details })
}
