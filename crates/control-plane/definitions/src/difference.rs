//! Differences between two definitions, for people to read before they accept the newer one.

use std::collections::{HashMap, HashSet};

use narthex_model::json::Node;
use serde::Serialize;

use crate::{Definition, harmless, place::Place};

/// Maximum number of reported places.
pub const CHANGES_MAX: usize = 64;

/// Maximum number of reported characters of one side of a change.
pub const SHOWN_MAX: usize = 4000;

/// Number of characters of a text that are reported before and after the changed part.
const AROUND: usize = 40;

/// The differences from one definition to another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The changed places, in the order of the newer definition; removed places come last.
    pub changes: Vec<PlaceChange>,
    /// Number of changed places beyond those reported.
    pub left_out: usize,
}

/// One changed place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlaceChange {
    /// The place as a JSON pointer, made [`harmless()`].
    pub place: String,
    /// The older value; `None` if there was none. A text is shown around the changed part, any
    /// other value as JSON. Harmless, and shortened with the number of left-out characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The newer value, in the same form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

impl Difference {
    /// True if both definitions have the same content.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.left_out == 0
    }

    fn add(&mut self, place: &Place<'_>, old: Option<String>, new: Option<String>) {
        if self.changes.len() < CHANGES_MAX {
            self.changes.push(PlaceChange { place: place.pointer(), old, new });
        } else {
            self.left_out += 1;
        }
    }

    fn is_full(&self) -> bool {
        self.changes.len() >= CHANGES_MAX
    }
}

/// The differences from one definition to another; empty exactly if their digests are equal.
#[must_use]
pub fn difference(old: &Definition, new: &Definition) -> Difference {
    let mut found = Difference::default();
    compare(&old.node, &new.node, &Place::WHOLE, &mut found);
    found
}

fn compare(old: &Node, new: &Node, place: &Place<'_>, found: &mut Difference) {
    match (old, new) {
        (Node::Object(old), Node::Object(new)) if !has_twice(old) && !has_twice(new) => {
            compare_objects(old, new, place, found);
        }
        (Node::List(olds), Node::List(news)) if olds.len() == news.len() => {
            for (index, (old, new)) in olds.iter().zip(news).enumerate() {
                compare(old, new, &place.index(index), found);
            }
        }
        (Node::Text(old), Node::Text(new)) if old != new => {
            if found.is_full() {
                found.left_out += 1;
                return;
            }
            let (old, new) = changed_parts(old, new);
            found.add(place, Some(old), Some(new));
        }
        // The order of keys has no meaning, unless a key occurs twice.
        _ if crate::definition::digest(old) == crate::definition::digest(new) => {}
        _ => found.add(place, Some(as_json(old)), Some(as_json(new))),
    }
}

fn compare_objects(
    old: &[(String, Node)],
    new: &[(String, Node)],
    place: &Place<'_>,
    found: &mut Difference,
) {
    let before = old.iter().map(|(key, node)| (key, node)).collect::<HashMap<_, _>>();
    for (key, node) in new {
        let place = place.key(key);
        match before.get(key) {
            Some(old) => compare(old, node, &place, found),
            None => found.add(&place, None, Some(as_json(node))),
        }
    }
    let after = new.iter().map(|(key, _)| key).collect::<HashSet<_>>();
    for (key, node) in old.iter().filter(|(key, _)| !after.contains(key)) {
        found.add(&place.key(key), Some(as_json(node)), None);
    }
}

fn has_twice(members: &[(String, Node)]) -> bool {
    let mut seen = HashSet::new();
    !members.iter().all(|(key, _)| seen.insert(key))
}

fn as_json(node: &Node) -> String {
    let text = match node {
        // A value tree would drop one of two equal keys, which must be visible.
        Node::Object(members) if has_twice(members) => {
            let members = members.iter().map(|(key, node)| {
                format!("{}:{}", Node::Text(key.clone()).to_value(), node.to_value())
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Node::Null
        | Node::Bool(_)
        | Node::Number(_)
        | Node::Text(_)
        | Node::List(_)
        | Node::Object(_) => node.to_value().to_string(),
    };
    shown(&text)
}

/// Both texts without most of their common beginning and end.
fn changed_parts(old: &str, new: &str) -> (String, String) {
    let alike = old.chars().zip(new.chars()).take_while(|(old, new)| old == new);
    let start = alike.map(|(c, _)| c.len_utf8()).sum::<usize>();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let alike = old_rest.chars().rev().zip(new_rest.chars().rev());
    let alike = alike.take_while(|(old, new)| old == new);
    let end = alike.map(|(c, _)| c.len_utf8()).sum::<usize>();
    (part(old, start, end), part(new, start, end))
}

/// A text from a little before `start` to a little after the place `end` bytes from its end.
fn part(text: &str, start: usize, end: usize) -> String {
    let changed_end = text.len() - end;
    let first = text[..start].char_indices().rev().nth(AROUND - 1).map_or(0, |(at, _)| at);
    let last = text[changed_end..].char_indices().nth(AROUND);
    let last = last.map_or(text.len(), |(at, _)| changed_end + at);
    let before = if first > 0 { "…" } else { "" };
    let after = if last < text.len() { "…" } else { "" };
    format!("{before}{}{after}", shown(&text[first..last]))
}

/// A text made harmless, with a note on the left-out part.
fn shown(text: &str) -> String {
    let whole = text.chars().count();
    let kept = match text.char_indices().nth(SHOWN_MAX) {
        None => text,
        Some((end, _)) => &text[..end],
    };
    // Escapes are longer than the characters that they replace.
    let mut shown = harmless(kept, SHOWN_MAX * 10);
    if kept.len() < text.len() {
        shown.push_str(&format!("… ({} more characters)", whole - SHOWN_MAX));
    }
    shown
}

#[cfg(test)]
mod tests;
