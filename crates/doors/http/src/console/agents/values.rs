//! Values of configurations as texts of a form, and back.

use narthex_console::{pages::agents::Piece, parts::Words};
use narthex_model::is_secret_name;
use serde_json::{Map, Value};

/// Stands for a stored literal that is never shown.
pub(super) const KEPT: &str = "(kept)";

/// The type of a key's values, as its schema names it. Keys without a schema take any text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Flag,
    Json,
}

impl Kind {
    /// The kind of a schema: of a config key, or of a parameter.
    pub(super) fn of(schema: &Value) -> Self {
        match schema["type"].as_str() {
            Some("number" | "integer") => Self::Number,
            Some("boolean") => Self::Flag,
            Some("json" | "object" | "array") => Self::Json,
            _ => Self::Text,
        }
    }

    /// The text of a value in a field of this kind.
    pub(super) fn text(self, value: &Value) -> String {
        match (self, value) {
            (_, Value::Null) => String::new(),
            (Self::Json, Value::String(text)) if is_placeholder(text) => text.clone(),
            (Self::Json, value) => serde_json::to_string_pretty(value).unwrap_or_default(),
            (_, Value::String(text)) => text.clone(),
            (_, value) => value.to_string(),
        }
    }

    /// The value of a text. A text that does not fit stays a text, which the catalog refuses with a
    /// fault of its own.
    pub(super) fn value(self, text: &str) -> Result<Value, &'static str> {
        let parsed = || serde_json::from_str::<Value>(text).ok();
        let as_text = || Value::from(text);
        Ok(match self {
            Self::Text => as_text(),
            Self::Number => parsed().filter(Value::is_number).unwrap_or_else(as_text),
            Self::Flag => parsed().filter(Value::is_boolean).unwrap_or_else(as_text),
            Self::Json if is_placeholder(text.trim()) => text.trim().into(),
            Self::Json => parsed().ok_or("this is no JSON; texts need quotes")?,
        })
    }
}

/// True if a key takes a reference to a secret, or has a name that suggests one.
pub(super) fn is_secret(key: &str, schema: &Value) -> bool {
    let carrier = |member: &str| schema[member].as_str().is_some_and(is_secret_name);
    schema["kind"] == "secret"
        || schema["sensitive"] == true
        || is_secret_name(key)
        || carrier("header")
        || carrier("env")
}

/// True for one whole placeholder, or one whole reference to a secret.
pub(super) fn is_placeholder(text: &str) -> bool {
    let inside = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    inside.is_some_and(|inside| !inside.is_empty() && !inside.contains(['{', '}', '$']))
}

/// The name of the secret that a whole value refers to, as `${NAME}`.
pub(super) fn reference(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if is_placeholder(text) => Some(text.clone()),
        value => value.get("$secret").and_then(Value::as_str).map(|name| format!("${{{name}}}")),
    }
}

/// A value as people read it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "removed".to_owned(),
        Value::String(text) => text.clone(),
        value => reference(value).unwrap_or_else(|| value.to_string()),
    }
}

/// The pieces of a value: placeholders and the texts between them.
pub(super) fn pieces(value: &Value) -> Vec<Piece> {
    let text = shown(value);
    let mut found = Vec::new();
    let mut push = |text: &str, is_source| {
        if !text.is_empty() {
            found.push(Piece { text: Words::new(text), is_source });
        }
    };
    let (mut rest, mut from) = (text.as_str(), 0);
    while let Some(start) = rest.get(from..).and_then(|tail| tail.find("${")) {
        let (before, tail) = rest.split_at(from + start);
        let end = tail.find('}');
        match end {
            _ if before.ends_with('$') => from += start + 2,
            None => break,
            Some(end) => {
                let (placeholder, after) = tail.split_at(end + 1);
                push(before, false);
                push(placeholder, true);
                (rest, from) = (after, 0);
            }
        }
    }
    push(rest, false);
    found
}

/// The keys of the scope that texts inside of a value name.
pub(super) fn scope_keys(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            for part in text.split("${scope.").skip(1) {
                if let Some((key, _)) = part.split_once('}')
                    && !found.iter().any(|known| known == key)
                {
                    found.push(key.to_owned());
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| scope_keys(item, found)),
        Value::Object(members) => members.values().for_each(|item| scope_keys(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// An object of JSON in a text; an empty text is an empty one.
pub(super) fn object(text: &str) -> Result<Map<String, Value>, &'static str> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) | Err(_) => Err("this is no object of JSON, such as {\"key\": \"value\"}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_survives_its_field() {
        let table = [
            (Kind::Text, json!("12")),
            (Kind::Text, json!("${scope.a}/x")),
            (Kind::Number, json!(12)),
            (Kind::Number, json!("${params.limit}")),
            (Kind::Flag, json!(false)),
            (Kind::Json, json!({ "a": [1, "b"] })),
            (Kind::Json, json!("a text")),
            (Kind::Json, json!("${scope.filter}")),
        ];
        for (kind, value) in table {
            assert_eq!(kind.value(&kind.text(&value)), Ok(value), "{kind:?}");
        }
        assert_eq!(Kind::Number.value("many"), Ok(json!("many")), "the catalog refuses it");
        Kind::Json.value("{").unwrap_err();
    }

    #[test]
    fn placeholders_are_pieces_of_their_own() {
        let pieces = |value: Value| {
            let all = pieces(&value);
            let text =
                |one: &Piece| format!("{}{}", one.text, if one.is_source { "!" } else { "" });
            all.iter().map(text).collect::<Vec<_>>()
        };
        assert_eq!(pieces(json!("a/${scope.b}/c")), ["a/", "${scope.b}!", "/c"]);
        assert_eq!(pieces(json!("$${x} ${env.Y}")), ["$${x} ", "${env.Y}!"]);
        assert_eq!(pieces(json!({ "$secret": "KEY" })), ["${KEY}!"]);
        assert_eq!(pieces(json!("${open")), ["${open"]);
        assert_eq!(pieces(json!(7)), ["7"]);
    }

    #[test]
    fn keys_that_suggest_a_secret_take_references() {
        for (key, schema) in [
            ("api_key", json!({})),
            ("id", json!({ "kind": "secret" })),
            ("id", json!({ "sensitive": true })),
            ("id", json!({ "header": "Authorization" })),
        ] {
            assert!(is_secret(key, &schema), "{key} {schema}");
        }
        assert!(!is_secret("context_id", &json!({ "type": "string" })));
    }

    #[test]
    fn scope_keys_are_found_once() {
        let mut found = Vec::new();
        scope_keys(
            &json!({ "a": ["${scope.x}-${scope.y}", "${params.z} ${scope.x}"] }),
            &mut found,
        );
        assert_eq!(found, ["x", "y"]);
    }
}
