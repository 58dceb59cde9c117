//! The expected value of a text after an edit, to compare the edited text with.

use serde_json::{Map, Value};

use super::parent::Parent;

/// Inserts a member, or without a key an entry, below keys that exist.
pub(super) fn insert(shape: &mut Value, path: &[String], key: Option<&str>, value: &Value) {
    let Some(container) = at(shape, path) else { return };
    match key {
        Some(key) => {
            if !container.is_object() {
                *container = Value::Object(Map::new());
            }
            container[key] = value.clone();
        }
        None => match container.as_array_mut() {
            Some(items) => items.push(value.clone()),
            None => *container = Value::Array(vec![value.clone()]),
        },
    }
}

/// Removes an entry.
pub(super) fn remove(shape: &mut Value, parent: &Parent, name: &str) -> Option<Value> {
    let container = at(shape, parent.path())?;
    if parent.is_list() {
        let index = parent.index_in(container, name)?;
        return Some(container.as_array_mut()?.remove(index));
    }
    container.as_object_mut()?.remove(name)
}

/// Replaces the value of an entry.
pub(super) fn replace(shape: &mut Value, parent: &Parent, name: &str, value: &Value) {
    let Some(container) = at(shape, parent.path()) else { return };
    let entry = match parent.is_list() {
        true => parent.index_in(container, name).and_then(|index| container.get_mut(index)),
        false => container.get_mut(name),
    };
    if let Some(entry) = entry {
        *entry = value.clone();
    }
}

/// Removes empty containers below the first `from` keys of a path, from the innermost outwards.
pub(super) fn prune(shape: &mut Value, path: &[String], from: usize) {
    for depth in (from..path.len()).rev() {
        let Some(container) = at(shape, &path[..depth]) else { continue };
        let is_empty = container.get(&path[depth]).is_some_and(is_empty);
        if let Some(map) = container.as_object_mut().filter(|_| is_empty) {
            map.remove(&path[depth]);
        }
    }
}

/// True for null, and for a container without content.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn at<'a>(shape: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(shape, |value, key| value.get_mut(key))
}
