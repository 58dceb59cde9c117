//! One level of configuration, and the faults of its values by the schema.

use std::collections::BTreeMap;

use crate::{
    fault::FaultCode,
    reader::{Object, Reader},
    schema::{ConfigSchema, KeyKind, KeySchema, is_key, read as read_schema},
    template::{ConfigValue, Source, Tree},
};

/// Values by config key at one level (O7).
pub(crate) type Layer = BTreeMap<String, ConfigValue>;

/// An objection to a value as it is written.
pub(crate) struct Objection {
    pub(crate) code: FaultCode,
    pub(crate) message: String,
    pub(crate) remedy: String,
}

/// Reads an object of config values.
pub(crate) fn read(reader: &mut Reader, object: &Object<'_>) -> Layer {
    let mut layer = Layer::new();
    for (key, node, at) in object.entries() {
        let is_fine = is_key(reader, key, &at);
        if let Some(value) = reader.config_value(node, &at)
            && is_fine
        {
            layer.insert(key.clone(), value);
        }
    }
    layer
}

/// Reads the schema under `key`, if there is one.
pub(crate) fn schema(
    reader: &mut Reader,
    object: &Object<'_>,
    key: &str,
    is_manifest: bool,
) -> Option<ConfigSchema> {
    let inner = reader.object(object, key)?;
    Some(read_schema(reader, &inner, is_manifest))
}

/// The objection of a key's schema to a value before any placeholder is filled in (X-M19, X-M40,
/// O69).
pub(crate) fn objection(schema: &KeySchema, value: &ConfigValue) -> Option<Objection> {
    let object = |code, message: &str, remedy: &str| {
        Some(Objection { code, message: message.to_owned(), remedy: remedy.to_owned() })
    };
    let steered = |placeholder: &&crate::template::Placeholder| {
        placeholder.source == Source::Params && (schema.is_hidden() || schema.internal)
    };
    if value.placeholders().iter().any(steered) {
        let message = "a parameter cannot set a sensitive or internal key, since the model sees \
                       and chooses it";
        return object(FaultCode::PlaceholderNotAllowed, message, "use `scope` or a secret");
    }
    match value {
        ConfigValue::Removed => None,
        ConfigValue::Secret(_) if schema.kind == Some(KeyKind::Value) && !schema.sensitive => {
            let message = "the key takes a plain value, and this is a secret";
            object(FaultCode::SecretMisplaced, message, "write the value itself")
        }
        ConfigValue::Secret(_) => None,
        ConfigValue::Tree(_) if is_empty_optional_secret(schema, value) => None,
        ConfigValue::Tree(_) if schema.kind == Some(KeyKind::Secret) => {
            let message = "the key takes a secret, and this is not a reference to one";
            let remedy = "store the value as a secret of the workspace and write `${NAME}`";
            object(FaultCode::SecretMisplaced, message, remedy)
        }
        ConfigValue::Tree(Tree::Plain(value)) => {
            let Some(value) = schema.value_type.take(value.clone(), true) else {
                let message = format!("the key takes {}", schema.value_type.wanted());
                return object(FaultCode::TypeWrong, &message, "write a value of this type");
            };
            let objection = schema.objection(&value)?;
            let message = format!("the value {objection}");
            object(FaultCode::ValueInvalid, &message, "see the server's `config_schema`")
        }
        ConfigValue::Tree(_) => None,
    }
}

/// X-M38: an empty text in a key for an optional secret means that no secret is given.
pub(crate) fn is_empty_optional_secret(schema: &KeySchema, value: &ConfigValue) -> bool {
    let empty = ConfigValue::Tree(Tree::Plain("".into()));
    schema.kind == Some(KeyKind::Secret) && !schema.required && *value == empty
}
