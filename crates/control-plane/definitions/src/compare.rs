//! Compares a list of definitions with the accepted one.

use std::collections::{HashMap, HashSet};

use narthex_model::json::Node;

use crate::{
    Definition,
    definition::digest,
    difference::{Difference, difference},
};

/// The shortest description by which a definition is known again.
const DESCRIPTION_MIN: usize = 20;

/// The change of one definition. Unchanged definitions have no change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A new definition, which resembles no older one.
    Added {
        /// Key of the definition.
        key: String,
    },
    /// A definition with another content under the same key.
    Changed {
        /// Key of the definition.
        key: String,
        /// The changed places.
        difference: Difference,
    },
    /// An older definition under another name: the rest of its content, its description or its
    /// parameters are the same.
    Renamed {
        /// Present key of the definition.
        key: String,
        /// Former key of the definition.
        old_key: String,
        /// The changed places, including the name.
        difference: Difference,
    },
    /// A definition that is no longer listed.
    Removed {
        /// Key of the definition.
        key: String,
    },
}

/// Changes of the definitions of one list, in the order of the newer ones; removed definitions come
/// last.
///
/// Of older definitions with one key only the first counts. Of newer ones each counts: a server
/// that lists the accepted definition, and another one of the same name, has changed it.
#[must_use]
pub fn compare(old: &[Definition], new: &[Definition]) -> Vec<Change> {
    let before = old.iter().rev().map(|old| (old.key(), old)).collect::<HashMap<_, _>>();
    let after = new.iter().map(Definition::key).collect::<HashSet<_>>();
    let is_gone =
        |old: &&Definition| !after.contains(old.key()) && std::ptr::eq(before[old.key()], *old);
    let mut gone = Gone::new(old.iter().filter(is_gone).collect());
    let mut told = HashSet::new();
    let mut changes = Vec::new();
    for one in new {
        let known = before.get(one.key());
        let is_same = known.is_some_and(|known| known.digest() == one.digest());
        if is_same || !told.insert(one.key()) {
            continue;
        }
        let key = one.key().to_owned();
        changes.push(match known {
            Some(known) => Change::Changed { key, difference: difference(known, one) },
            None => match gone.take_like(one) {
                None => Change::Added { key },
                Some(known) => Change::Renamed {
                    key,
                    old_key: known.key().to_owned(),
                    difference: difference(known, one),
                },
            },
        });
    }
    changes.extend(gone.left().map(|one| Change::Removed { key: one.key().to_owned() }));
    changes
}

/// Definitions whose names are no longer listed, by the digests that recognize them.
struct Gone<'a> {
    definitions: Vec<&'a Definition>,
    is_taken: Vec<bool>,
    by_trait: HashMap<[u8; 32], Vec<usize>>,
}

impl<'a> Gone<'a> {
    fn new(definitions: Vec<&'a Definition>) -> Self {
        let mut by_trait = HashMap::<_, Vec<_>>::new();
        // The last first: each is taken from the end.
        for (at, definition) in definitions.iter().enumerate().rev() {
            for known_by in traits(definition) {
                by_trait.entry(known_by).or_default().push(at);
            }
        }
        Self { is_taken: vec![false; definitions.len()], definitions, by_trait }
    }

    /// The first one like this that is not taken, and takes it.
    fn take_like(&mut self, definition: &Definition) -> Option<&'a Definition> {
        for known_by in traits(definition) {
            let Some(known) = self.by_trait.get_mut(&known_by) else { continue };
            while let Some(at) = known.pop() {
                if !std::mem::replace(&mut self.is_taken[at], true) {
                    return Some(self.definitions[at]);
                }
            }
        }
        None
    }

    fn left(&self) -> impl Iterator<Item = &'a Definition> {
        let left = self.definitions.iter().zip(&self.is_taken);
        left.filter(|(_, is_taken)| !**is_taken).map(|(definition, _)| *definition)
    }
}

/// Definitions that no run may get, even under another name.
#[derive(Debug, Default)]
pub struct Unwanted(HashMap<[u8; 32], String>);

impl Unwanted {
    /// Builds the set from these definitions; of two equal ones the first counts. A definition that
    /// is still listed (`is_there`) is not recognized by its parameters alone, as many tools have
    /// the same.
    #[must_use]
    pub fn new(all: &[Definition], is_there: impl Fn(&str) -> bool) -> Self {
        let mut by_trait = HashMap::new();
        for one in all {
            let mut known_by = traits(one).collect::<Vec<_>>();
            if is_there(one.key()) {
                known_by.retain(|it| parameters(one).as_ref() != Some(it));
            }
            for it in known_by {
                by_trait.entry(it).or_insert_with(|| one.key().to_owned());
            }
        }
        Self(by_trait)
    }

    /// Key of an unwanted definition with the same content apart from its name, or with the same
    /// description or parameters. `None` if there is none.
    #[must_use]
    pub fn like(&self, definition: &Definition) -> Option<&str> {
        traits(definition).find_map(|it| self.0.get(&it)).map(String::as_str)
    }
}

/// Digests by which a definition is recognized, the surest first.
fn traits(definition: &Definition) -> impl Iterator<Item = [u8; 32]> {
    let is_name = |key: &str| matches!(key, "name" | "title" | "uri" | "uriTemplate");
    let members = definition.members().iter().filter(|(key, _)| !is_name(key));
    let content = members.cloned().collect::<Vec<_>>();
    let content = (!content.is_empty()).then(|| of("content", Node::Object(content)));
    let description = definition.member("description").filter(
        |node| matches!(node, Node::Text(text) if text.trim().chars().count() >= DESCRIPTION_MIN),
    );
    let description = description.map(|node| of("description", node.clone()));
    [content, description, parameters(definition)].into_iter().flatten()
}

fn parameters(definition: &Definition) -> Option<[u8; 32]> {
    let parameters = ["inputSchema", "arguments"].into_iter();
    let parameters = parameters.filter_map(|member| definition.member(member)).find(has_some);
    parameters.map(|node| of("parameters", node.clone()))
}

/// The digest of a trait; no two kinds have the same.
fn of(kind: &str, node: Node) -> [u8; 32] {
    digest(&Node::Object(vec![(kind.to_owned(), node)]))
}

/// True if a schema has properties, or a list of arguments is not empty.
fn has_some(node: &&Node) -> bool {
    match node {
        Node::List(arguments) => !arguments.is_empty(),
        Node::Object(members) => members.iter().any(|(key, node)| {
            key == "properties" && matches!(node, Node::Object(all) if !all.is_empty())
        }),
        Node::Null | Node::Bool(_) | Node::Number(_) | Node::Text(_) => false,
    }
}
