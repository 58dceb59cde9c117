//! Layers of configuration: several sources of entries become one ordered list.
//!
//! The laws (E12, E139, E140), for layers given from the weakest to the strongest:
//! - nothing is lost: the list has every entry of every layer, layer after layer, each in its order
//! - of the entries of one name exactly one counts: that of the strongest layer which has the name,
//!   and in it the first
//! - the one that counts does so whole: no field of another is mixed in
//!
//! The order of strength is the user's settings, then the project's file, then entries that a
//! program adds by a call. These are the strongest, as a flag of the command line is: they are the
//! most recent and explicit wish, and no file that is changed later may take their names over.
//! A caller that applies sets of files adds that layer each time: an entry missing from a set is
//! removed (E2).
//!
//! A project's faulty entry counts as well as a good one (an `error` row that names the fault): the
//! project does not mean to start the settings' server of the same name instead.

mod seed;
mod settings;
mod text;

use std::{collections::HashMap, path::Path, sync::Arc};

use narthex_model::Provenance;

pub use seed::{DefaultServer, Seeding, seed};
pub use settings::{EditError, Edited, PreparedEdit, SettingsChange, SettingsFile};

use crate::config::Entry;

/// One source of entries.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// The source that declares the entries.
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
    /// The source that declared the entry.
    pub provenance: Provenance,
    /// The file of the entry, if it comes from one.
    pub file: Option<Arc<Path>>,
    /// True if another entry of the same name counts instead. Such a row is only shown: it is never
    /// started and no verb applies to it (E140).
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

    /// True if the entry can be edited and removed here: only an entry of a settings file can
    /// (E139, E144).
    #[must_use]
    pub fn is_editable(&self) -> bool {
        self.provenance == Provenance::Settings && self.file.is_some()
    }
}

/// Puts layers together, given from the weakest to the strongest.
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
