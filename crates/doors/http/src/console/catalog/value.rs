//! Values of an entry as texts of fields, and back.

use narthex_model::{SecretReference, is_unseen, json::Node};
use serde_json::{Map, Value};

/// The member of an entry that runs do not get.
pub(super) const DISABLED: &str = "disabled";

/// True if runs do not get an entry.
pub(super) fn is_disabled(definition: &Value) -> bool {
    definition.get(DISABLED).is_some_and(|flag| *flag == Value::Bool(true))
}

/// The value of a field's text. Text is text, unless the key has another type. JSON is read for a
/// text in quotes, for null, and for a reference in its long form.
pub(super) fn decoded(text: &str, value_type: Option<&str>) -> Value {
    let Ok(value) = json(text) else { return text.into() };
    let is_marked = matches!(value, Value::Null | Value::String(_))
        || SecretReference::from_json(&value).is_ok();
    match value_type {
        Some("string") if !is_marked => text.into(),
        _ => value,
    }
}

/// The text as JSON, without keys that are given twice.
pub(super) fn json(text: &str) -> Result<Value, String> {
    let node = Node::parse(text.as_bytes()).map_err(|problem| problem.to_string())?;
    match node.keys_given_twice().first() {
        Some(place) => Err(format!("`{place}` is given twice; keep one")),
        None => Ok(node.to_value()),
    }
}

/// A value as the text of a field: the opposite of [`decoded`].
pub(super) fn encoded(value: &Value, value_type: Option<&str>) -> String {
    match value {
        Value::String(text) if decoded(text, value_type) == *value => text.clone(),
        other => other.to_string(),
    }
}

/// Members as JSON; empty without any. What cannot be seen is written as an escape.
pub(super) fn written(members: &Map<String, Value>) -> String {
    if members.is_empty() {
        return String::new();
    }
    visible(&format!("{:#}", Value::Object(members.clone())))
}

/// JSON in which each character can be seen.
pub(super) fn visible(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !is_unseen(c) {
            text.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text
}

/// True for a value that is written out: neither empty, nor a reference or another placeholder.
pub(super) fn is_literal(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty() && !text.contains("${"),
        other => SecretReference::from_json(other).is_err(),
    }
}
