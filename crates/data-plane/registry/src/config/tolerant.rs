//! Entries of the document `mcpServers`, as desktop programs and editors write it. Understandable
//! entries are accepted, with a warning about each deviation.

use std::collections::HashSet;

use narthex_model::{Alias, ServerDefinition};

use super::{
    foreign::{HIDDEN, SHOWN},
    loaded::Entry,
    node::{Node, Place, field, shortened},
    problem::EntryProblem,
    reader::{Fields, Reader},
    target::{ENTRY_KEYS, Wanted},
};

/// Other programs' keys of an entry.
const FOREIGN_KEYS: [&str; 7] = [
    "type",
    "transportType",
    "transport_type",
    "serverUrl",
    "httpUrl",
    "enabled",
    "request_timeout",
];

/// Reads all entries; names become aliases.
pub(super) fn entries(reader: &mut Reader<'_>, fields: &Fields, at: &Place) -> Vec<Entry> {
    // A name that is an alias already keeps it, at any place in the file.
    let mut taken: HashSet<Alias> =
        fields.iter().filter_map(|(name, _)| Alias::new(name).ok()).collect();
    let mut entries = Vec::with_capacity(fields.len());
    for (name, node) in fields {
        let place = at.key(name);
        let alias = Alias::suggest(name);
        if alias.is_built_in() {
            // Such a file is shared with the programs that reach narthex by this entry.
            reader.warn(&place, "ignored: this is narthex itself".to_owned());
            continue;
        }
        if alias.as_str() != name {
            if taken.insert(alias.clone()) {
                reader.warn(&place, format!("this server is called `{alias}` here"));
            } else {
                reader.fault(&place, EntryProblem::SameAlias { alias: alias.to_string() });
            }
        }
        let definition = definition(reader, name, alias, node, &place);
        entries.push(reader.end_entry(name, &place, definition));
    }
    entries
}

fn definition(
    reader: &mut Reader<'_>,
    name: &str,
    alias: Alias,
    node: &Node,
    at: &Place,
) -> Option<ServerDefinition> {
    let Node::Object(fields) = node else {
        reader.fault(at, EntryProblem::NotAnObject { found: node.found() });
        return None;
    };
    let lists = SHOWN.into_iter().chain(HIDDEN);
    let known: Vec<_> = ENTRY_KEYS.into_iter().chain(FOREIGN_KEYS).chain(lists).collect();
    reader.unknown_keys(fields, at, &known);
    reader.inner_name(fields, at, name);
    let timeout = reader.timeout(fields, at);
    let progress_extends = reader.progress_extends(fields, at);
    let mount_timeout = reader.mount_timeout(fields, at);
    let recovers = reader.recovers(fields, at);
    let output = reader.output(fields, at);
    let traffic = reader.traffic(fields, at);
    let exposed = reader.exposed(fields, at).into();
    let gates = reader.gates(fields, at).into();
    let notifications = reader.notifications(fields, at);
    let is_disabled = reader.flag(fields, at, "disabled") == Some(true)
        || reader.flag(fields, at, "enabled") == Some(false);
    if is_disabled {
        reader.warn(at, "disabled by this file; remove `disabled` or `enabled` there to enable it");
    }
    let (pins_definitions, shows_flagged) = reader.pins(fields, at);
    let url_key = ["url", "serverUrl", "httpUrl"]
        .into_iter()
        .find(|key| field(fields, key).is_some())
        .unwrap_or("url");
    let wanted = wanted(reader, fields, at, url_key)?;
    let target = reader.target(fields, at, wanted, url_key)?;
    let server = ServerDefinition::new(alias, target);
    let server = ServerDefinition { timeout, progress_extends, mount_timeout, ..server };
    let server = ServerDefinition { recovers, output, traffic, ..server };
    let server = ServerDefinition { pins_definitions, shows_flagged, ..server };
    Some(ServerDefinition { exposed, gates, notifications, is_disabled, ..server })
}

fn wanted(reader: &mut Reader<'_>, fields: &Fields, at: &Place, url_key: &str) -> Option<Wanted> {
    let named = ["transport", "transportType", "transport_type", "type"]
        .into_iter()
        .find_map(|key| field(fields, key).map(|node| (at.key(key), node)));
    let Some((place, node)) = named else {
        return match (field(fields, "command").is_some(), field(fields, url_key).is_some()) {
            (true, false) => Some(Wanted::Stdio),
            (false, true) => Some(Wanted::Http { is_sse: false }),
            (true, true) => {
                reader.fault(at, EntryProblem::TwoTargets);
                None
            }
            (false, false) => {
                reader.fault(at, EntryProblem::NoTarget);
                None
            }
        };
    };
    let Node::Text(text) = node else {
        reader.wrong_type(&place, node, "`stdio`, `http` or `sse`");
        return None;
    };
    match text.to_ascii_lowercase().as_str() {
        "stdio" | "local" => Some(Wanted::Stdio),
        "http" | "streamable-http" | "streamablehttp" | "streamable_http" | "remote" => {
            Some(Wanted::Http { is_sse: false })
        }
        "sse" | "http+sse" => Some(Wanted::Http { is_sse: true }),
        _ => {
            reader.fault(&place, EntryProblem::UnknownTransport { found: shortened(text) });
            None
        }
    }
}

/// Adds one warning for each key of another program, even if the file has the key many times.
pub(super) fn tell_foreign_keys(reader: &mut Reader<'_>, at: &Place) {
    for (key, places) in std::mem::take(&mut reader.foreign_keys) {
        let first: Vec<&str> = places.iter().take(3).map(String::as_str).collect();
        let more = if places.len() > 3 { " and others" } else { "" };
        let first = first.join("`, `");
        reader.warn(at, format!("`{key}` has no meaning here and is ignored (`{first}`{more})"));
    }
}
