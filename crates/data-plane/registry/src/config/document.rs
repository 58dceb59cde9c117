//! The file as a whole: the kind of document, and its entries in order.

use narthex_model::UnknownKey;

use super::{
    error::{ConfigFileError, FileProblem},
    loaded::{Entry, LoadContext, LoadedConfig},
    node::{Node, Place, field, parse, parse_written, shortened},
    placeholder::Dialect,
    profiles,
    reader::{Fields, Reader},
    strict, tolerant,
};

/// The top-level key of narthex's own document.
const STRICT: &str = "servers";

/// The key of profiles in a settings file.
const PROFILES: &str = "profiles";

/// The top-level key of other programs' document.
const TOLERANT: &str = "mcpServers";

/// Reads an `mcp.json`.
pub(super) fn read(
    text: &[u8],
    context: &LoadContext<'_>,
) -> Result<LoadedConfig, ConfigFileError> {
    let node = parse_written(text, context.file)?;
    let fail = |problem| ConfigFileError::new(context.file, problem);
    let Node::Object(fields) = &node else {
        return Err(fail(FileProblem::NotAnObject { found: node.found() }));
    };
    let has = |key: &str| fields.iter().any(|(name, _)| name == key);
    match (has(STRICT), has(TOLERANT)) {
        (true, true) => Err(fail(FileProblem::TwoDocuments)),
        (false, true) => read_tolerant(fields, context).map_err(fail),
        (true | false, false) => read_strict(fields, context).map_err(fail),
    }
}

fn read_strict(fields: &Fields, context: &LoadContext<'_>) -> Result<LoadedConfig, FileProblem> {
    let unknown: Vec<&str> =
        fields.iter().map(|(key, _)| key.as_str()).filter(|key| *key != STRICT).collect();
    if !unknown.is_empty() {
        return Err(unknown_keys(&unknown, unknown.len() < fields.len()));
    }
    let entries = match fields {
        [] => return Err(FileProblem::MissingServers),
        [(_, Node::Object(entries)), ..] => entries,
        [(_, node), ..] => {
            return Err(FileProblem::ServersNotAnObject { key: STRICT, found: node.found() });
        }
    };
    let mut reader = Reader::new(context, Dialect::Strict);
    let entries = strict_entries(&mut reader, entries, &Place::root(STRICT));
    Ok(LoadedConfig::new(entries, reader.warnings))
}

fn strict_entries(reader: &mut Reader<'_>, fields: &Fields, at: &Place) -> Vec<Entry> {
    fields.iter().map(|(name, node)| strict::entry(reader, name, node, &at.key(name))).collect()
}

fn read_tolerant(fields: &Fields, context: &LoadContext<'_>) -> Result<LoadedConfig, FileProblem> {
    let entries = match fields.iter().find(|(key, _)| key == TOLERANT) {
        Some((_, Node::Object(entries))) => entries,
        other => {
            let found = other.map_or("nothing", |(_, node)| node.found());
            return Err(FileProblem::ServersNotAnObject { key: TOLERANT, found });
        }
    };
    let at = Place::root(TOLERANT);
    let mut reader = Reader::new(context, Dialect::Tolerant);
    let others: Vec<&str> =
        fields.iter().map(|(key, _)| key.as_str()).filter(|key| *key != TOLERANT).collect();
    if !others.is_empty() {
        reader.warn(&at, format!("other top-level keys are ignored: {}", quoted(&others)));
    }
    let entries = tolerant::entries(&mut reader, entries, &at);
    tolerant::tell_foreign_keys(&mut reader, &at);
    Ok(LoadedConfig::new(entries, reader.warnings))
}

/// Reads an array of entries, each with its name inside.
pub(super) fn read_list(
    text: &[u8],
    context: &LoadContext<'_>,
) -> Result<LoadedConfig, ConfigFileError> {
    let node = parse(text, context.file)?;
    let fail = |problem| ConfigFileError::new(context.file, problem);
    let Node::List(nodes) = &node else {
        return Err(fail(FileProblem::NotAList { found: node.found() }));
    };
    let mut reader = Reader::new(context, Dialect::Strict);
    let mut entries = Vec::new();
    let mut names = std::collections::HashSet::new();
    for (index, node) in nodes.iter().enumerate() {
        let at = Place::root(STRICT).index(index);
        let name = match node {
            Node::Object(fields) => match field(fields, "name") {
                Some(Node::Text(name)) => name.as_str(),
                _ => "",
            },
            _ => "",
        };
        if !name.is_empty() && !names.insert(name) {
            let path = format!("{STRICT}[{index}].name");
            return Err(fail(FileProblem::DuplicateKey { path }));
        }
        entries.push(strict::entry(&mut reader, name, node, &at));
    }
    Ok(LoadedConfig::new(entries, reader.warnings))
}

/// Reads a settings file with a block `mcp.servers`.
pub(super) fn read_settings(
    text: &[u8],
    context: &LoadContext<'_>,
) -> Result<LoadedConfig, ConfigFileError> {
    let node = parse_written(text, context.file)?;
    let Node::Object(fields) = &node else {
        let problem = FileProblem::NotAnObject { found: node.found() };
        return Err(ConfigFileError::new(context.file, problem));
    };
    let mut reader = Reader::new(context, Dialect::Strict);
    let (mut entries, mut all) = (Vec::new(), Vec::new());
    let at = Place::root("mcp");
    if let Some(mcp) = block(&mut reader, fields, "mcp", &at) {
        let servers_at = at.key(STRICT);
        if let Some(servers) = block(&mut reader, mcp, STRICT, &servers_at) {
            entries = strict_entries(&mut reader, servers, &servers_at);
        }
        let profiles_at = at.key(PROFILES);
        if let Some(found) = block(&mut reader, mcp, PROFILES, &profiles_at) {
            all = profiles::read(found, &profiles_at);
        }
    }
    Ok(LoadedConfig { entries, warnings: reader.warnings, profiles: all })
}

fn block<'n>(
    reader: &mut Reader<'_>,
    fields: &'n Fields,
    key: &str,
    at: &Place,
) -> Option<&'n Fields> {
    match field(fields, key)? {
        Node::Object(fields) => Some(fields),
        node => {
            let found = node.found();
            reader.warn(at, format!("ignored: expected an object, found {found}"));
            None
        }
    }
}

fn unknown_keys(unknown: &[&str], has_servers: bool) -> FileProblem {
    let remedy = match unknown {
        _ if unknown.iter().any(|key| matches!(*key, "inputs" | "$schema")) => {
            "remove it, or rename `servers` to `mcpServers` in a file shared with other programs"
                .to_owned()
        }
        _ if unknown.contains(&"profiles") => {
            "profiles belong to your settings.json: move them there, to `mcp.profiles`".to_owned()
        }
        ["mcp"] if !has_servers => {
            "this is a settings file: move the content of `mcp` to the top level".to_owned()
        }
        _ => match unknown.iter().find_map(|key| meant(key)) {
            Some(meant) if has_servers => format!("did you mean `{meant}`? Keep only `servers`"),
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "keep only `servers`, with one object per server by name".to_owned(),
        },
    };
    FileProblem::UnknownTopLevelKey { keys: quoted(unknown), remedy }
}

/// The key of a document that a misspelt key was meant to be.
fn meant(key: &str) -> Option<String> {
    UnknownKey::new(key, &[STRICT, TOLERANT]).meant().map(str::to_owned)
}

/// Quotes at most ten names for a message.
fn quoted(keys: &[&str]) -> String {
    let mut text =
        keys.iter().take(10).map(|key| format!("`{}`", shortened(key))).collect::<Vec<_>>();
    if keys.len() > 10 {
        text.push("…".to_owned());
    }
    text.join(", ")
}
