//! Layers of configuration: several sources of entries become one ordered list.
//!
//! The laws (E12, E139, E140), for layers from the weakest to the strongest:
//! - no entry is lost: the list has every entry of every layer, layer after layer, each in its
//!   order
//! - of the entries of one name exactly one counts: that of the strongest layer with the name, and
//!   there the first
//! - the entry that counts does so whole: no field of another entry is mixed in
//!
//! The order of strength is the user's settings, then the project's file, then entries that a
//! program adds by a call. A call is the most recent and explicit wish, as a flag of the command
//! line is: no later change of a file may take its names over. A caller that applies sets of files
//! passes that layer each time: an entry missing from a set is removed (E2).
//!
//! A faulty entry of a project counts like a good one (an `error` row that names the fault): the
//! project does not mean to start the settings' server of the same name instead.

mod seed;
mod settings;
mod text;

use std::{collections::HashMap, path::Path, sync::Arc};

use narthex_model::Provenance;

pub use seed::{DefaultServer, Seeding, seed};
pub use settings::{
    EditError, EditLock, Edited, PreparedEdit, SettingsChange, SettingsFile, remove_lock,
};

pub use text::EntryLines;

use crate::config::{self, Entry};

/// One source of entries.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// The source of the entries.
    pub provenance: Provenance,
    /// The file of the entries, if they come from one.
    pub file: Option<Arc<Path>>,
    /// The entries in their order.
    pub entries: Vec<Entry>,
}

/// One entry with its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    /// The entry.
    pub entry: Entry,
    /// The source of the entry.
    pub provenance: Provenance,
    /// The file of the entry, if it comes from one.
    pub file: Option<Arc<Path>>,
    /// True if another entry of the same name counts instead. Such a row is only shown: the server
    /// is never started and no verb applies to it (E140).
    pub is_overridden: bool,
}

impl From<Entry> for Declared {
    /// An entry that a program adds by a call.
    fn from(entry: Entry) -> Self {
        let provenance = Provenance::Programmatic;
        Self { entry, provenance, file: None, is_overridden: false }
    }
}

impl Declared {
    /// The entry's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.entry.name()
    }

    /// The file of the entry, or the words for a source without one, for messages.
    #[must_use]
    pub fn place(&self) -> String {
        place(self.file.as_deref())
    }

    /// True if an operator can edit and remove the entry: only an entry of a settings file can be
    /// (E139, E144).
    #[must_use]
    pub fn is_editable(&self) -> bool {
        self.provenance == Provenance::Settings && self.file.is_some()
    }
}

/// The file of an entry, or the words for a source without one, for messages.
#[must_use]
pub fn place(file: Option<&Path>) -> String {
    match file {
        Some(file) => file.display().to_string(),
        None => "the program that added it".to_owned(),
    }
}

/// Reads a file, and finds the lines of an entry in it. `None` if the file cannot be read or has no
/// such entry. The file may have changed since it was applied.
#[must_use]
pub fn entry_lines(file: &Path, provenance: Provenance, name: &str) -> Option<EntryLines> {
    let text = String::from_utf8(config::read(file).ok()?).ok()?;
    lines_in(&text, provenance, name)
}

fn lines_in(text: &str, provenance: Provenance, name: &str) -> Option<EntryLines> {
    let find = |at: &[&str]| text::lines(text, &[at, &[name]].concat()).ok().flatten();
    match provenance {
        Provenance::Settings => find(&["mcp", "servers"]),
        Provenance::Workspace | Provenance::Programmatic => {
            find(&["servers"]).or_else(|| find(&["mcpServers"]))
        }
    }
}

/// Composes layers, given from the weakest to the strongest, by the laws of [this module](self).
#[must_use]
pub fn compose(layers: &[Layer]) -> Vec<Declared> {
    // Later layers replace earlier ones, but within a layer the first of a name stays.
    let mut counting: HashMap<&str, (usize, usize)> = HashMap::new();
    for (depth, layer) in layers.iter().enumerate() {
        for (index, entry) in layer.entries.iter().enumerate() {
            let place = counting.entry(entry.name()).or_insert((depth, index));
            if place.0 < depth {
                *place = (depth, index);
            }
        }
    }
    let mut list = Vec::with_capacity(layers.iter().map(|layer| layer.entries.len()).sum());
    for (depth, layer) in layers.iter().enumerate() {
        for (index, entry) in layer.entries.iter().enumerate() {
            list.push(Declared {
                entry: entry.clone(),
                provenance: layer.provenance,
                file: layer.file.clone(),
                is_overridden: counting[entry.name()] != (depth, index),
            });
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E139: the lines of an entry and of its keys are those that a person sees, whatever comments
    /// and blank lines are in front of them.
    #[test]
    fn e139_the_lines_of_an_entry_are_found_in_each_document() {
        let text = [
            "{",
            "  // mine",
            "  \"servers\": {",
            "    \"a\": { \"command\": \"x\" },",
            "",
            "    \"b\": {",
            "      \"url\": \"https://b.example.com\",",
            "      \"tools\": []",
            "    }",
            "  }",
            "}",
        ];
        let text = &text.join("\n");
        let found = lines_in(text, Provenance::Workspace, "b").unwrap();
        assert_eq!(found.line, 6);
        assert_eq!(found.keys, [("url".to_owned(), 7), ("tools".to_owned(), 8)]);
        assert_eq!(lines_in(text, Provenance::Workspace, "a").unwrap().line, 4);
        assert_eq!(lines_in(text, Provenance::Settings, "a"), None);
        assert_eq!(lines_in(text, Provenance::Workspace, "c"), None);
        let settings = r#"{"mcp": {"servers": {"a": {"url": "https://a.example.com"}}}}"#;
        assert_eq!(lines_in(settings, Provenance::Settings, "a").unwrap().line, 1);
        let other = r#"{"mcpServers": {"a": {}}}"#;
        assert_eq!(lines_in(other, Provenance::Workspace, "a").unwrap().line, 1);
        assert_eq!(lines_in("no json", Provenance::Workspace, "a"), None);
    }
}
