//! Limits the work that a schema can cause: its author must not be able to stop the daemon.
//!
//! A few references to references double the work with each step, and a schema that refers to
//! itself does so with each level of a value. So references must lead to places in the same schema,
//! and never back to themselves. The total of all parts that they lead to is limited.

use std::collections::BTreeMap;

use serde_json::Value;

/// Largest number of parts of a schema, with each reference counted as its target.
const PARTS_MAX: usize = 10_000;
/// Largest depth of nested parts, with each reference counted as its target: compiling and checking
/// call themselves for each level.
const LEVELS_MAX: usize = 128;

/// Keywords that refer by other means than a place.
const OTHER_WAYS: [&str; 6] =
    ["$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"];

/// The objection to a schema's size or references.
pub(super) fn objection(schema: &Value) -> Option<String> {
    let mut counter = Counter { root: schema, known: BTreeMap::new(), open: Vec::new(), level: 0 };
    match counter.size(schema) {
        Ok(size) if size.parts > PARTS_MAX => {
            Some(format!("with its references it has more than {PARTS_MAX} parts"))
        }
        Ok(_) => None,
        Err(why) => Some(why),
    }
}

struct Counter<'s> {
    root: &'s Value,
    /// The sizes of the places that references lead to.
    known: BTreeMap<&'s str, Size>,
    /// The references on the path to this place.
    open: Vec<&'s str>,
    /// Number of levels on the path to this place.
    level: usize,
}

/// Size of a place of a schema, with its references.
#[derive(Debug, Clone, Copy)]
struct Size {
    parts: usize,
    levels: usize,
}

impl<'s> Counter<'s> {
    fn size(&mut self, value: &'s Value) -> Result<Size, String> {
        let mut size = Size { parts: 1, levels: 1 };
        let mut add = |found: Size| {
            size.parts = size.parts.saturating_add(found.parts);
            size.levels = size.levels.max(found.levels + 1);
        };
        self.level += 1;
        self.is_within(0)?;
        match value {
            Value::Array(values) => {
                for value in values {
                    add(self.size(value)?);
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    add(match (key.as_str(), value) {
                        ("$ref", Value::String(place)) => self.referred(place)?,
                        (key, Value::String(_) | Value::Bool(_)) if OTHER_WAYS.contains(&key) => {
                            return Err(format!("it cannot have `{key}`"));
                        }
                        _ => self.size(value)?,
                    });
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        self.level -= 1;
        Ok(size)
    }

    fn referred(&mut self, place: &'s str) -> Result<Size, String> {
        if let Some(size) = self.known.get(place).copied() {
            return self.is_within(size.levels).map(|()| size);
        }
        let pointer = place.strip_prefix('#').filter(|pointer| pointer.starts_with('/'));
        let Some(value) = pointer.and_then(|pointer| self.root.pointer(pointer)) else {
            return Err("a `$ref` refers to no place in the schema, such as `#/$defs/name`".into());
        };
        if self.open.contains(&place) {
            return Err("a `$ref` refers to itself".into());
        }
        self.open.push(place);
        let size = self.size(value)?;
        self.open.pop();
        self.known.insert(place, size);
        Ok(size)
    }

    /// Refuses if `more` levels beyond the present one are too many.
    fn is_within(&self, more: usize) -> Result<(), String> {
        match self.level + more > LEVELS_MAX {
            true => Err(format!("with its references it has more than {LEVELS_MAX} levels")),
            false => Ok(()),
        }
    }
}
