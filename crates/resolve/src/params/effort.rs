//! Bounds the work that a schema can make: whoever writes one must not be able to stop the daemon.
//!
//! A few references to references double the work with each step, and a schema that refers to
//! itself does so with each level of a value. So references lead to places in the same schema,
//! never back to where they stand, and all that they lead to together is limited.

use std::collections::BTreeMap;

use serde_json::Value;

/// The most parts that a schema may have, with each reference counted as what it refers to.
const PARTS_MAX: usize = 10_000;

/// Keywords that refer by other means than a place.
const OTHER_WAYS: [&str; 6] =
    ["$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"];

/// What is against a schema's size or references.
pub(super) fn objection(schema: &Value) -> Option<String> {
    let mut counter = Counter { root: schema, known: BTreeMap::new(), open: Vec::new() };
    match counter.parts(schema) {
        Ok(parts) if parts > PARTS_MAX => {
            Some(format!("with its references it has more than {PARTS_MAX} parts"))
        }
        Ok(_) => None,
        Err(why) => Some(why),
    }
}

struct Counter<'s> {
    root: &'s Value,
    /// The parts of each place that was referred to.
    known: BTreeMap<&'s str, usize>,
    /// The references on the way to here.
    open: Vec<&'s str>,
}

impl<'s> Counter<'s> {
    fn parts(&mut self, value: &'s Value) -> Result<usize, String> {
        let mut parts: usize = 1;
        match value {
            Value::Array(values) => {
                for value in values {
                    parts = parts.saturating_add(self.parts(value)?);
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    let found = match (key.as_str(), value) {
                        ("$ref", Value::String(place)) => self.referred(place)?,
                        (key, Value::String(_) | Value::Bool(_)) if OTHER_WAYS.contains(&key) => {
                            return Err(format!("`{key}` may not stand in it"));
                        }
                        _ => self.parts(value)?,
                    };
                    parts = parts.saturating_add(found);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(parts)
    }

    fn referred(&mut self, place: &'s str) -> Result<usize, String> {
        if let Some(parts) = self.known.get(place) {
            return Ok(*parts);
        }
        let pointer = place.strip_prefix('#').filter(|pointer| pointer.starts_with('/'));
        let Some(value) = pointer.and_then(|pointer| self.root.pointer(pointer)) else {
            return Err("a `$ref` leads to no place in the schema, such as `#/$defs/name`".into());
        };
        if self.open.contains(&place) {
            return Err("a `$ref` leads back to where it stands".into());
        }
        self.open.push(place);
        let parts = self.parts(value)?;
        self.open.pop();
        self.known.insert(place, parts);
        Ok(parts)
    }
}
