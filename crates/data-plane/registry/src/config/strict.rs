//! Entries of the document `servers`: narthex's own shape, without guesses (E109–E117).

use narthex_model::{Alias, ServerDefinition};

use super::{
    loaded::Entry,
    node::{Node, Place, field, shortened},
    problem::EntryProblem,
    reader::{Fields, Reader},
    target::{ENTRY_KEYS, Wanted},
};

/// Reads one entry; its name is its key.
pub(super) fn entry(reader: &mut Reader<'_>, name: &str, node: &Node, at: &Place) -> Entry {
    let definition = definition(reader, name, node, at);
    reader.end_entry(name, at, definition)
}

fn definition(
    reader: &mut Reader<'_>,
    name: &str,
    node: &Node,
    at: &Place,
) -> Option<ServerDefinition> {
    let alias = Alias::of_server(name).map_err(|error| reader.fault(at, error)).ok();
    let Node::Object(fields) = node else {
        reader.fault(at, EntryProblem::NotAnObject { found: node.found() });
        return None;
    };
    reader.unknown_keys(fields, at, &ENTRY_KEYS);
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
    let is_disabled = reader.flag(fields, at, "disabled").unwrap_or(false);
    let (pins_definitions, shows_flagged) = reader.pins(fields, at);
    let Some(wanted) = wanted(reader, fields, at) else {
        // The block is checked all the same, so that all faults are reported at once.
        super::auth::read(reader, fields, at);
        return None;
    };
    let target = reader.target(fields, at, wanted, "url")?;
    let server = ServerDefinition::new(alias?, target);
    let server = ServerDefinition { timeout, progress_extends, mount_timeout, ..server };
    let server = ServerDefinition { recovers, output, traffic, ..server };
    let server = ServerDefinition { pins_definitions, shows_flagged, ..server };
    Some(ServerDefinition { exposed, gates, notifications, is_disabled, ..server })
}

fn wanted(reader: &mut Reader<'_>, fields: &Fields, at: &Place) -> Option<Wanted> {
    let place = at.key("transport");
    match field(fields, "transport") {
        Some(Node::Text(text)) => match text.as_str() {
            "stdio" => Some(Wanted::Stdio),
            "http" => Some(Wanted::Http { is_sse: false }),
            "sse" => Some(Wanted::Http { is_sse: true }),
            other => {
                let found = shortened(other);
                reader.fault(&place, EntryProblem::UnknownTransport { found });
                None
            }
        },
        Some(node) => {
            reader.wrong_type(&place, node, "`stdio`, `http` or `sse`");
            None
        }
        None => {
            let is_stdio = field(fields, "command").is_some() || reader.is_misspelt(at, "command");
            let meant = if is_stdio { "stdio" } else { "http" };
            reader.fault(at, EntryProblem::NoTransport { meant });
            None
        }
    }
}

impl Reader<'_> {
    /// Warns of a name inside the entry that differs from the entry's key: the key counts (E120).
    pub(super) fn inner_name(&mut self, fields: &Fields, at: &Place, key: &str) {
        if let Some(node) = field(fields, "name")
            && *node != Node::Text(key.to_owned())
        {
            self.warn(&at.key("name"), format!("ignored: the server's name is its key, `{key}`"));
        }
    }

    /// `pinDefinitions`: true if a server's changed definitions go under review (D10). `onFlagged`:
    /// true if a flagged definition is visible all the same where it was the first of its name
    /// (S22). A wrong value is a fault in both documents: its author wants to be safe.
    pub(super) fn pins(&mut self, fields: &Fields, at: &Place) -> (bool, bool) {
        let keys = ["pinDefinitions", "pin_definitions"];
        // All spellings are read, so that no spelling hides another.
        let pins = keys.map(|key| self.flag(fields, at, key)).contains(&Some(true));
        let choices = ["onFlagged", "on_flagged"].map(|key| self.on_flagged(fields, at, key, pins));
        (pins, pins && choices.contains(&Some(true)) && !choices.contains(&Some(false)))
    }

    /// Reads `onFlagged`: true for `warn`; `None` where the key is absent or faulty.
    fn on_flagged(&mut self, fields: &Fields, at: &Place, key: &str, pins: bool) -> Option<bool> {
        let node = field(fields, key)?;
        let place = at.key(key);
        if !pins {
            self.warn(&place, "ignored: it applies only with `\"pinDefinitions\": true`");
        }
        match node {
            Node::Text(word) if word == "warn" => Some(true),
            Node::Text(word) if word == "quarantine" => Some(false),
            Node::Text(word) => {
                self.fault(&place, EntryProblem::UnknownOnFlagged { found: shortened(word) });
                None
            }
            node => {
                self.wrong_type(&place, node, "`quarantine` or `warn`");
                None
            }
        }
    }

    /// A boolean; any other value is reported and counts as absent.
    pub(super) fn flag(&mut self, fields: &Fields, at: &Place, key: &str) -> Option<bool> {
        match field(fields, key)? {
            Node::Bool(value) => Some(*value),
            node => {
                self.wrong_type(&at.key(key), node, "true or false");
                None
            }
        }
    }
}
