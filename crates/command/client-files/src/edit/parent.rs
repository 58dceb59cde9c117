//! The map or list that holds entries, and the search for an entry in it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::tree::{ALIAS, Kind, Node, walk};
use super::{Document, EditError, Format};

/// A map of named entries, or a list of entries that each have their name under a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    path: Vec<String>,
    /// The key with the name, in the entries of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name_key: Option<String>,
}

/// An entry that was found.
pub(super) struct Found<'a> {
    pub(super) index: usize,
    pub(super) node: &'a Node,
}

impl Parent {
    /// The map under keys from the root. No keys: the root itself.
    #[must_use]
    pub fn map<const N: usize>(path: [&str; N]) -> Self {
        Self::new(path.map(str::to_owned).to_vec(), None)
    }

    /// The list under keys from the root, whose entries have their name under `name_key`.
    #[must_use]
    pub fn list<const N: usize>(path: [&str; N], name_key: &str) -> Self {
        Self::new(path.map(str::to_owned).to_vec(), Some(name_key.to_owned()))
    }

    /// The map under keys from the root, or with a `name_key` the list.
    #[must_use]
    pub fn new(path: Vec<String>, name_key: Option<String>) -> Self {
        Self { path, name_key }
    }

    /// Keys from the root.
    #[must_use]
    pub fn path(&self) -> &[String] {
        &self.path
    }

    pub(super) fn is_list(&self) -> bool {
        self.name_key.is_some()
    }

    /// The items of the container, each with its name if it has one.
    pub(super) fn items<'a>(&self, container: &'a Node) -> Vec<(Option<&'a str>, &'a Node)> {
        match (&container.kind, &self.name_key) {
            (Kind::Map(members), None) => {
                let named = members.iter();
                named.map(|member| (Some(member.key.as_str()), &member.value)).collect()
            }
            (Kind::List(items), Some(key)) => {
                items.iter().map(|item| (name_of(item, key), item)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Indexes of the items with a name.
    pub(super) fn find(&self, container: &Node, name: &str) -> Vec<usize> {
        let items = self.items(container).into_iter().enumerate();
        items.filter(|(_, (own, _))| *own == Some(name)).map(|(index, _)| index).collect()
    }

    /// The index of an entry in the shape of a container.
    pub(super) fn index_in(&self, container: &Value, name: &str) -> Option<usize> {
        let key = self.name_key.as_deref()?;
        container.as_array()?.iter().position(|item| item.get(key) == Some(&Value::from(name)))
    }

    /// The key and value to insert below the first `depth` keys, with the parents that do not
    /// exist. Without a key it is an entry of a list.
    pub(super) fn wrapped(
        &self,
        depth: usize,
        name: &str,
        value: &Value,
    ) -> (Option<String>, Value) {
        let (mut key, mut whole) = match self.is_list() {
            true => (None, value.clone()),
            false => (Some(name.to_owned()), value.clone()),
        };
        for parent in self.path[depth..].iter().rev() {
            whole = match key {
                Some(key) => json!({ key: whole }),
                None => json!([whole]),
            };
            key = Some(parent.clone());
        }
        (key, whole)
    }
}

/// A root without keys has no path to print.
impl fmt::Display for Parent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str("the top level");
        }
        f.write_str(&self.path.join("."))
    }
}

fn name_of<'a>(item: &'a Node, key: &str) -> Option<&'a str> {
    match &item.member(key)?.value.kind {
        Kind::Scalar(Value::String(name)) => Some(name),
        Kind::Scalar(_) | Kind::Map(_) | Kind::List(_) | Kind::Alias(..) => None,
    }
}

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
        let Some(key) = &parent.name_key else { return Ok(value.clone()) };
        let Some(map) = value.as_object() else { return refused("is not a map of keys") };
        let mut entry = Map::from_iter([(key.clone(), Value::from(name))]);
        let others = map.iter().filter(|(own, _)| *own != key);
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
