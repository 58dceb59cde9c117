//! The configuration that a server accepts: `config_schema`, and the `env` of manifests, alike.

use std::{collections::BTreeMap, sync::Arc};

use jsonschema::{PatternOptions, Validator};
use narthex_model::{
    did_you_mean, header, is_secret_name,
    json::{Node, Place},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    fault::FaultCode,
    reader::{Object, Reader},
    template::{ConfigValue, Tree, is_variable},
};

/// The keys that a server accepts.
pub type ConfigSchema = BTreeMap<String, KeySchema>;

/// The longest name of a config key.
const KEY_MAX: usize = 128;

/// The rules for one config key (O4, O44, X-M17).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeySchema {
    /// The type of the key's values.
    #[serde(rename = "type")]
    pub value_type: ValueType,
    /// Requires or excludes a secret's reference; `None` allows both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<KeyKind>,
    /// A short name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Purpose of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// True if a run needs the key.
    pub required: bool,
    /// True if the value is hidden and never logged (O29).
    pub sensitive: bool,
    /// True if only the platform sets the key, by the server's own configuration. Authors of
    /// attachments may not (O28).
    pub internal: bool,
    /// An example value for documentation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
    /// The only permitted values.
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<Value>>,
    /// A regular expression that must match a part of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Its value where no level gives one (O43).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) default: Option<ConfigValue>,
    /// The header for the key, if not the one by rule (D8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The variable for the key, if not its own name (D8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    #[serde(skip)]
    check: Check,
}

/// The type of a config key's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueType {
    /// Text.
    String,
    /// Any JSON, sent as JSON text.
    Json,
    /// `true` or `false`.
    Boolean,
    /// Any number.
    Number,
    /// A number without a fraction.
    Integer,
}

/// The kind of a config key: for secrets or for other values (X-M17).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyKind {
    /// Any value except a secret's reference.
    Value,
    /// Only a secret's reference.
    Secret,
}

/// `enum` and `pattern` as one check, compiled from these two fields.
#[derive(Debug, Clone, Default)]
struct Check(Option<Arc<Validator>>);

impl PartialEq for Check {
    fn eq(&self, _: &Self) -> bool {
        // The check follows from `enum` and `pattern`, which are compared as well.
        true
    }
}

impl ValueType {
    pub(crate) const ALL: [(&'static str, Self); 5] = [
        ("string", Self::String),
        ("json", Self::Json),
        ("boolean", Self::Boolean),
        ("number", Self::Number),
        ("integer", Self::Integer),
    ];

    /// The expected type, in words.
    pub(crate) fn wanted(self) -> &'static str {
        match self {
            Self::String => "a string",
            Self::Json => "JSON",
            Self::Boolean => "true or false",
            Self::Number => "a number",
            Self::Integer => "a whole number",
        }
    }

    /// The value as this type: exactly that type where a person wrote it, or a text or number from
    /// elsewhere that converts without loss.
    pub(crate) fn take(self, value: Value, is_written: bool) -> Option<Value> {
        match (self, &value) {
            (Self::String, Value::String(_))
            | (Self::Json, _)
            | (Self::Boolean, Value::Bool(_))
            | (Self::Number, Value::Number(_)) => Some(value),
            (Self::Integer, Value::Number(number)) if !number.is_f64() => Some(value),
            _ if is_written => None,
            (Self::String, Value::Number(_) | Value::Bool(_)) => Some(value.to_string().into()),
            (Self::Boolean | Self::Number | Self::Integer, Value::String(text)) => {
                self.take(serde_json::from_str(text).ok()?, true)
            }
            _ => None,
        }
    }
}

impl KeySchema {
    /// True if the value is never shown.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.sensitive || self.kind == Some(KeyKind::Secret)
    }

    /// The objection of `enum` or `pattern` to a value, in words that do not show it.
    pub(crate) fn objection(&self, value: &Value) -> Option<&'static str> {
        let validator = self.check.0.as_ref()?;
        if validator.is_valid(value) {
            return None;
        }
        Some(match &self.allowed {
            Some(allowed) if !allowed.contains(value) => "is not one of the values in `enum`",
            Some(_) | None => "does not match `pattern`",
        })
    }
}

/// A validator that fetches nothing, and whose patterns take linear time.
pub(crate) fn validator(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .offline()
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .map_err(|error| error.masked().to_string())
}

const KEYS: [&str; 14] = [
    "type",
    "kind",
    "label",
    "description",
    "required",
    "sensitive",
    "internal",
    "example",
    "enum",
    "pattern",
    "regex",
    "default",
    "header",
    "env",
];

/// Reads a schema. In a manifest keys are variables' names, `kind` must be given, and `required` is
/// true by default (X-E9).
pub(crate) fn read(reader: &mut Reader, object: &Object<'_>, is_manifest: bool) -> ConfigSchema {
    let mut schema = ConfigSchema::new();
    for (key, node, at) in object.entries() {
        if is_manifest && narthex_model::SecretName::new(key).is_err() {
            let message = "the key is not a name of a variable in the form of manifests";
            reader.invalid(&at, message, "use A-Z, 0-9 and `_`, at most 64 of them");
        }
        is_key(reader, key, &at);
        let Some(object) = reader.as_object(node, &at) else { continue };
        if is_manifest && object.get("kind").is_none() {
            reader.missing(&object, "kind", "`\"kind\": \"value\"` or `\"secret\"`");
        }
        let of_key = key_schema(reader, &object, is_manifest);
        literal_default(reader, &object, key, &of_key);
        schema.insert(key.clone(), of_key);
    }
    schema
}

/// Reports a text that cannot name a config key; true if it can.
pub(crate) fn is_key(reader: &mut Reader, key: &str, at: &Place) -> bool {
    let is_fine = !key.is_empty() && key.len() <= KEY_MAX && header::is_name(key);
    if !is_fine {
        let message = "the key cannot become a header or a variable";
        reader.invalid(at, message, "use at most 128 letters, digits, `_` and `-`");
    }
    is_fine
}

fn key_schema(reader: &mut Reader, object: &Object<'_>, is_manifest: bool) -> KeySchema {
    reader.only(object, &KEYS);
    reader.excluding(object, "pattern", "regex");
    let kind =
        word(reader, object, "kind", &[("value", KeyKind::Value), ("secret", KeyKind::Secret)]);
    let key = KeySchema {
        value_type: word(reader, object, "type", &ValueType::ALL).unwrap_or(ValueType::String),
        kind,
        label: reader.owned(object, "label"),
        description: reader.owned(object, "description"),
        required: reader.flag(object, "required").unwrap_or(is_manifest),
        sensitive: reader.flag(object, "sensitive").unwrap_or(kind == Some(KeyKind::Secret)),
        internal: reader.flag(object, "internal").unwrap_or(false),
        example: object.get("example").map(Node::to_value),
        allowed: reader
            .list(object, "enum")
            .map(|nodes| nodes.iter().map(|(_, node)| node.to_value()).collect()),
        pattern: reader.owned(object, pattern_field(object)),
        default: object
            .get("default")
            .and_then(|node| reader.config_value(node, &object.at.key("default"))),
        header: reader.owned(object, "header"),
        env: reader.owned(object, "env"),
        check: Check::default(),
    };
    let check = check(reader, object, &key);
    carriers(reader, object, &key);
    KeySchema { check, ..key }
}

/// Reads a text that must be one of the known words; returns its value.
pub(crate) fn word<T: Copy>(
    reader: &mut Reader,
    object: &Object<'_>,
    key: &str,
    known: &[(&str, T)],
) -> Option<T> {
    let text = reader.text(object, key)?;
    if let Some((_, value)) = known.iter().find(|(word, _)| *word == text) {
        return Some(*value);
    }
    let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
    let remedy = did_you_mean(text, words.iter().copied())
        .unwrap_or_else(|| format!("use one of `{}`", words.join("`, `")));
    let found = narthex_model::json::shortened(text);
    reader.invalid(&object.at.key(key), format!("`{found}` is not a possible {key}"), remedy);
    None
}

/// The member in which the pattern was written.
fn pattern_field(object: &Object<'_>) -> &'static str {
    if object.get("regex").is_some() { "regex" } else { "pattern" }
}

fn check(reader: &mut Reader, object: &Object<'_>, key: &KeySchema) -> Check {
    let mut schema = json!({});
    if let Some(allowed) = &key.allowed {
        schema["enum"] = json!(allowed);
    }
    if let Some(pattern) = &key.pattern {
        if key.value_type != ValueType::String {
            let at = object.at.key(pattern_field(object));
            let message = "only a string can match a pattern";
            reader.invalid(&at, message, "remove it, or make the type `string`");
        }
        schema["pattern"] = json!(pattern);
    }
    if key.allowed.is_none() && key.pattern.is_none() {
        return Check(None);
    }
    if key.kind == Some(KeyKind::Secret) {
        let message = "a secret's value cannot be checked";
        reader.invalid(&object.at, message, "remove `enum` and `pattern`");
    }
    match validator(&schema) {
        Ok(validator) => Check(Some(Arc::new(validator))),
        Err(_) => {
            let field = if key.pattern.is_some() { pattern_field(object) } else { "enum" };
            let (message, remedy) = match field {
                "enum" => ("`enum` cannot be used".to_owned(), "write each value once"),
                field => (
                    format!("`{field}` is not a usable regular expression"),
                    "write a valid one, without look-around and back-references",
                ),
            };
            reader.invalid(&object.at.key(field), message, remedy);
            Check(None)
        }
    }
}

/// Warns of a literal credential in the server: of a key that is hidden, or has such a name.
fn literal_default(reader: &mut Reader, object: &Object<'_>, name: &str, key: &KeySchema) {
    if (key.is_hidden() || is_secret_name(name))
        && let Some(ConfigValue::Tree(Tree::Plain(_))) = key.default
    {
        let message =
            "a sensitive key has a literal default, which every reader of the server can see";
        reader.warn(&object.at.key("default"), format!("{message}; refer to a secret"));
    }
}

fn carriers(reader: &mut Reader, object: &Object<'_>, key: &KeySchema) {
    if let Some(name) = &key.header
        && !header::is_name(name)
    {
        let remedy = "use letters, digits and `-`";
        reader.invalid(&object.at.key("header"), "this is not a name of an HTTP header", remedy);
    }
    if let Some(name) = &key.env
        && !is_variable(name)
    {
        let remedy = "use a letter or `_`, then letters, digits and `_`";
        reader.invalid(&object.at.key("env"), "this is not a name of a variable", remedy);
    }
    let at = object.at.key("default");
    let is_params = |placeholder: &&crate::template::Placeholder| {
        placeholder.source == crate::template::Source::Params
    };
    if key.default.iter().flat_map(ConfigValue::placeholders).any(|p| is_params(&p)) {
        let message = "`params` has a value only in an agent";
        let remedy = "set the key in the agent";
        reader.fault(&at, FaultCode::PlaceholderNotAllowed, message, remedy);
    }
}
