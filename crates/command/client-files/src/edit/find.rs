//! The search for the container of entries, and for an entry in it.

use serde_json::{Map, Value};

use super::document::Document;
use super::error::EditError;
use super::format::Format;
use super::parent::{Found, Parent};
use super::tree::{ALIAS, Kind, Node, walk};

impl Document {
    /// The container of entries; `None` if it does not exist, or is null in YAML. Each value on the
    /// way must be a map.
    pub(super) fn container(&self, parent: &Parent) -> Result<Option<&Node>, EditError> {
        let found = walk(self.parsed.root.as_ref(), parent.path());
        let Some(node) = found.node else { return Ok(None) };
        if node.is_null() && self.format == Format::Yaml {
            return Ok(None);
        }
        let is_whole = found.depth == parent.path().len();
        let (is_right, expected) = match &node.kind {
            Kind::List(_) => (is_whole && parent.is_list(), "a map of keys"),
            Kind::Map(_) => (!is_whole || !parent.is_list(), "a list"),
            Kind::Scalar(_) | Kind::Alias(..) if is_whole && parent.is_list() => (false, "a list"),
            Kind::Scalar(_) | Kind::Alias(..) => (false, "a map of keys"),
        };
        if is_right {
            return Ok(is_whole.then_some(node));
        }
        let (line, column) = self.position(node.span.start);
        let path = Parent::new(parent.path()[..found.depth].to_vec(), None).to_string();
        Err(EditError::Kind { path, found: node.noun(), expected, line, column })
    }

    /// The one entry with a name.
    pub(super) fn find(&self, parent: &Parent, name: &str) -> Result<Found<'_>, EditError> {
        let (path, own) = (parent.to_string(), name.to_owned());
        let node = self.container(parent)?;
        let indexes = node.map(|node| parent.find(node, name)).unwrap_or_default();
        let (Some(node), [index, more @ ..]) = (node, indexes.as_slice()) else {
            return Err(EditError::Missing { path, name: own });
        };
        let items = parent.items(node);
        if let Some(second) = more.first() {
            let (line, _) = self.position(items[*second].1.span.start);
            return Err(EditError::Ambiguous { path, name: own, line });
        }
        Ok(Found { index: *index, node: items[*index].1 })
    }

    /// The value as it is written: an entry of a list has its name first.
    pub(super) fn checked(
        &self,
        parent: &Parent,
        name: &str,
        value: &Value,
    ) -> Result<Value, EditError> {
        let refused = |reason: &str| {
            Err(EditError::Value { name: name.to_owned(), reason: reason.to_owned() })
        };
        if self.format == Format::Toml && has_null(value) {
            return refused("has a null, which TOML does not have");
        }
        if has_alias(value) {
            return refused("has an alias of YAML");
        }
        let Some(key) = parent.name_key() else { return Ok(value.clone()) };
        let Some(map) = value.as_object() else { return refused("is not a map of keys") };
        let mut entry = Map::from_iter([(key.to_owned(), Value::from(name))]);
        let others = map.iter().filter(|(own, _)| own.as_str() != key);
        entry.extend(others.map(|(key, value)| (key.clone(), value.clone())));
        Ok(Value::Object(entry))
    }
}

/// True for a value from [`Node::shape`] in which an alias is not resolved.
fn has_alias(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_alias),
        Value::Object(map) => map.contains_key(ALIAS) || map.values().any(has_alias),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(map) => map.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
