//! Merges the levels of each server (D6, O7, O47).

use std::collections::BTreeMap;

use narthex_model::{Alias, ServerId};

use super::{Catalog, PlannedKey, PlannedServer, oauth};
use crate::{
    agent::Agent,
    attachment::Attachment,
    fault::{Fault, FaultCode},
    origin::{self, Origin},
    server::{ServerEntry, built_in},
    template::ConfigValue,
};

/// One level's use of an alias.
pub(super) type Use<'a> = (Origin, &'a Attachment);

/// All servers of an agent, and the faults that concern no single one.
pub(super) fn merge<'a>(
    catalog: &'a Catalog,
    agent: &'a Agent,
) -> (BTreeMap<Alias, PlannedServer<'a>>, Vec<Fault>) {
    let mut faults = Vec::new();
    let mut uses: BTreeMap<&Alias, Vec<Use<'a>>> = BTreeMap::new();
    for (index, name) in agent.capabilities.iter().enumerate() {
        let Some(capability) = catalog.capabilities.get(name) else {
            let at = origin::agent(&agent.name).key("capabilities").index(index);
            let message = format!(
                "agent `{}` includes capability `{name}`, which does not exist",
                agent.name
            );
            let remedy = "create it, or remove it from the agent";
            faults.push(Fault::new(at, FaultCode::CapabilityMissing, message, remedy));
            continue;
        };
        for (alias, attachment) in &capability.servers {
            uses.entry(alias).or_default().push((Origin::Capability(name.clone()), attachment));
        }
    }
    for (alias, attachment) in &agent.servers {
        uses.entry(alias).or_default().push((Origin::Agent(agent.name.clone()), attachment));
    }
    let mut servers = BTreeMap::new();
    for (alias, uses) in uses {
        let mut server = one(catalog, alias, &uses);
        server.faults.extend(oauth::refused(catalog, agent, &server, &uses));
        servers.insert(alias.clone(), server);
    }
    (servers, faults)
}

fn one<'a>(catalog: &'a Catalog, alias: &Alias, uses: &[Use<'a>]) -> PlannedServer<'a> {
    let mut faults = Vec::new();
    let entry = entry(catalog, alias, uses, &mut faults);
    let keys = entry.map_or_else(BTreeMap::new, |entry| keys(entry, alias, uses, &mut faults));
    if entry.is_some_and(ServerEntry::is_built_in) {
        for (origin, _) in uses.iter().filter(|(_, attachment)| !attachment.tools.is_open()) {
            let at = attachment_place(origin, alias).key("tools");
            let fault =
                Fault::new(at, FaultCode::ValueInvalid, built_in::MESSAGE, built_in::REMEDY);
            faults.push(fault.of(alias, None));
        }
    }
    PlannedServer {
        alias: alias.clone(),
        reference: uses.last().map(|(_, last)| last.reference.clone()).expect("a use made it"),
        entry,
        optional: is_optional(uses),
        tools: uses.iter().map(|(_, one)| &one.tools).filter(|rules| !rules.is_open()).collect(),
        keys,
        faults,
        warnings: Vec::new(),
    }
}

/// The agent's setting counts; without one, all capabilities must agree.
fn is_optional(uses: &[Use<'_>]) -> bool {
    let of_agent = uses.iter().find(|(origin, _)| matches!(origin, Origin::Agent(_)));
    match of_agent.and_then(|(_, attachment)| attachment.optional) {
        Some(is_optional) => is_optional,
        None => {
            let mut capabilities = uses
                .iter()
                .filter(|(origin, _)| matches!(origin, Origin::Capability(_)))
                .peekable();
            capabilities.peek().is_some()
                && capabilities.all(|(_, attachment)| attachment.optional == Some(true))
        }
    }
}

/// The server that all levels mean.
fn entry<'a>(
    catalog: &'a Catalog,
    alias: &Alias,
    uses: &[Use<'a>],
    faults: &mut Vec<Fault>,
) -> Option<&'a ServerEntry> {
    let mut first: Option<(&Origin, &ServerId)> = None;
    let mut is_one = true;
    for (origin, attachment) in uses {
        let at = reference_place(origin, alias);
        let id = &attachment.reference;
        match first {
            None => first = Some((origin, id)),
            Some((_, known)) if known == id => continue,
            Some((other, known)) => {
                is_one = false;
                let message = format!(
                    "alias `{alias}` is the server `{known}` in {other} and `{id}` in {origin}"
                );
                let remedy = "give one of the two another alias";
                let fault = Fault::new(&at, FaultCode::AliasConflict, message, remedy);
                faults.push(fault.of(alias, None));
            }
        }
        if !catalog.servers.contains_key(id) {
            let message = format!("MCP server '{alias}' refers to unknown registry entry '{id}'");
            let known = catalog.servers.keys().map(ServerId::as_str);
            let remedy = narthex_model::did_you_mean(id.as_str(), known)
                .unwrap_or_else(|| "add the server to the catalog, or correct `ref`".to_owned());
            let fault = Fault::new(at, FaultCode::McpRefResolutionFailed, message, remedy);
            faults.push(Fault { reference: Some(id.clone()), ..fault.of(alias, None) });
        }
    }
    let (_, id) = first.filter(|_| is_one)?;
    catalog.servers.get(id)
}

pub(super) fn reference_place(origin: &Origin, alias: &Alias) -> narthex_model::json::Place {
    match origin {
        Origin::Capability(_) | Origin::Agent(_) => attachment_place(origin, alias).key("ref"),
        Origin::SchemaDefault(id) | Origin::DefaultConfig(id) => origin::server(id),
    }
}

fn attachment_place(origin: &Origin, alias: &Alias) -> narthex_model::json::Place {
    let of = |place: narthex_model::json::Place| place.key("mcpServers").key(alias.as_str());
    match origin {
        Origin::Capability(name) => of(origin::capability(name)),
        Origin::Agent(name) => of(origin::agent(name)),
        Origin::SchemaDefault(id) | Origin::DefaultConfig(id) => origin::server(id),
    }
}

fn keys<'a>(
    entry: &'a ServerEntry,
    alias: &Alias,
    uses: &[Use<'a>],
    faults: &mut Vec<Fault>,
) -> BTreeMap<String, PlannedKey<'a>> {
    let mut keys: BTreeMap<String, PlannedKey<'a>> = BTreeMap::new();
    for (key, schema) in entry.config_schema.iter().flatten() {
        if let Some(value) = &schema.default {
            set(&mut keys, key, Origin::SchemaDefault(entry.id.clone()), value);
        }
    }
    for (key, value) in &entry.default_config {
        set(&mut keys, key, Origin::DefaultConfig(entry.id.clone()), value);
    }
    for (origin, attachment) in uses {
        for (key, value) in &attachment.config {
            set(&mut keys, key, origin.clone(), value);
        }
    }
    for (key, planned) in &mut keys {
        planned.schema = entry.config_schema.as_ref().and_then(|schema| schema.get(key));
        let is_settled = matches!(planned.origin, Origin::Agent(_));
        if !planned.disagreeing.is_empty() && !is_settled {
            let sources: Vec<String> =
                planned.disagreeing.iter().map(|(origin, _)| origin.to_string()).collect();
            let message =
                format!("`{key}` of `{alias}` has different values in {}", sources.join(" and "));
            let remedy = "set the key in the agent: its value is used";
            let at = planned.origin.place(alias, key);
            let fault = Fault::new(at, FaultCode::ValueConflict, message, remedy);
            faults.push(fault.of(alias, Some(key)));
        }
    }
    keys
}

/// Sets a key at one level. Capabilities are of equal rank: the same value twice is one, and
/// different ones disagree.
fn set<'a>(
    keys: &mut BTreeMap<String, PlannedKey<'a>>,
    key: &str,
    origin: Origin,
    value: &'a ConfigValue,
) {
    let Some(planned) = keys.get_mut(key) else {
        let planned = PlannedKey {
            value,
            origin,
            overridden: Vec::new(),
            disagreeing: Vec::new(),
            schema: None,
            carrier: None,
        };
        keys.insert(key.to_owned(), planned);
        return;
    };
    let is_beside =
        matches!(origin, Origin::Capability(_)) && matches!(planned.origin, Origin::Capability(_));
    if is_beside {
        let is_known =
            planned.value == value || planned.disagreeing.iter().any(|(_, known)| *known == value);
        if planned.disagreeing.is_empty() && !is_known {
            planned.disagreeing.push((planned.origin.clone(), planned.value));
        }
        if !is_known || !planned.disagreeing.is_empty() {
            planned.disagreeing.push((origin, value));
        }
        return;
    }
    let below = std::mem::replace(&mut planned.origin, origin);
    planned.overridden.insert(0, (below, planned.value));
    planned.value = value;
}
