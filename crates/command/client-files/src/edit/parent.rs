//! The map or list that holds entries, and the search for an entry in it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::tree::{Kind, Node};

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

    /// The key with the name, if the parent is a list.
    pub(super) fn name_key(&self) -> Option<&str> {
        self.name_key.as_deref()
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
