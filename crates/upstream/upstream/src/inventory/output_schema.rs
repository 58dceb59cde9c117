//! Checks that clients can compile the output schema of a tool.
//!
//! The official TypeScript SDK (1.x) compiles each schema while it reads a list, and refuses the
//! whole list if one schema fails. The SDK reads all schemas as draft 7, whichever draft they
//! declare.

use std::cell::Cell;

use jsonschema::Draft;
use narthex_wire::Raw;
use serde_json::{Map, Value};

use super::js_pattern::is_js_pattern;

/// Maximum size of a compiled schema in bytes. A longer schema counts as failing.
const SCHEMA_BYTES: usize = 128 * 1024;
/// Maximum total size of the compiled schemas of one page of a list, in bytes. Further schemas
/// count as failing.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Keywords whose value is one schema.
const SCHEMA: [&str; 9] = [
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "additionalProperties",
    "additionalItems",
    "items",
];
/// Keywords whose value is a list of schemas.
const SCHEMAS: [&str; 4] = ["allOf", "anyOf", "oneOf", "items"];
/// Keywords whose value has schemas by names.
const NAMED: [&str; 5] = ["properties", PATTERNS, "definitions", "$defs", "dependencies"];
const PATTERNS: &str = "patternProperties";
/// Keywords that describe a schema and have no effect on its compilation.
const ABOUT: [&str; 11] = [
    "$schema",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
];

/// Compiles the output schemas of one page of a list, within bounds.
#[derive(Debug, Default)]
pub(super) struct SchemaChecker {
    spent: Cell<usize>,
}

impl SchemaChecker {
    /// True if clients can compile a schema. Takes time that grows with the schema's length.
    pub(super) fn compiles(&self, schema: Raw<'_>) -> bool {
        let length = schema.as_bytes().len();
        let spent = self.spent.get().saturating_add(length);
        self.spent.set(spent);
        if length > SCHEMA_BYTES || spent > PAGE_BYTES {
            return false;
        }
        let Ok(mut schema) = schema.parse::<Value>() else { return false };
        if prepare(&mut schema).is_none() {
            return false;
        }
        jsonschema::options().with_draft(Draft::Draft7).offline().build(&schema).is_ok()
    }
}

/// Removes from a schema the parts that no client compiles. Checks and removes its regular
/// expressions. `None` if the schema has a part that the SDK's validator refuses, although others
/// accept the part.
fn prepare(schema: &mut Value) -> Option<()> {
    let Value::Object(schema) = schema else { return Some(()) };
    // Before draft 6, a schema's name was in `id`, which the SDK's validator refuses.
    if schema.contains_key("id") || !is_nullable(schema) {
        return None;
    }
    schema.retain(|key, _| !ABOUT.contains(&key.as_str()));
    match schema.remove("pattern") {
        Some(Value::String(pattern)) if !is_js_pattern(&pattern) => return None,
        Some(Value::String(_)) | None => {}
        Some(_) => return None,
    }
    for (key, value) in schema.iter_mut() {
        match value {
            Value::Object(named) if NAMED.contains(&key.as_str()) => {
                if key == PATTERNS && !named.keys().all(|pattern| is_js_pattern(pattern)) {
                    return None;
                }
                named.values_mut().try_for_each(prepare)?;
            }
            Value::Array(all) if SCHEMAS.contains(&key.as_str()) => {
                all.iter_mut().try_for_each(prepare)?;
            }
            value if SCHEMA.contains(&key.as_str()) => prepare(value)?,
            _ => {}
        }
    }
    by_name(schema)
}

/// Moves schemas under `patternProperties` to `properties`, so that no library compiles the
/// patterns.
fn by_name(schema: &mut Map<String, Value>) -> Option<()> {
    let Some(patterns) = schema.remove(PATTERNS) else { return Some(()) };
    let Value::Object(patterns) = patterns else { return None };
    let properties = schema.entry("properties").or_insert_with(|| Map::new().into());
    let properties = properties.as_object_mut()?;
    for (pattern, schema) in patterns {
        properties.entry(pattern).or_insert(schema);
    }
    Some(())
}

/// True if `nullable`, a keyword of OpenAPI, is in a place where the SDK's validator allows it.
fn is_nullable(schema: &Map<String, Value>) -> bool {
    let Some(nullable) = schema.get("nullable") else { return true };
    let has_null = match schema.get("type") {
        Some(Value::String(one)) => one == "null",
        Some(Value::Array(types)) => types.iter().any(|one| one == "null"),
        _ => return false,
    };
    nullable.is_boolean() && (!has_null || nullable == &Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compiles(schema: &Value) -> bool {
        SchemaChecker::default().compiles(Raw::new(schema.to_string().as_bytes()))
    }

    /// E81: schemas that the SDK's client compiles, and schemas because of which the client would
    /// refuse the whole list.
    #[test]
    fn e81_a_schema_compiles_as_for_the_client_of_the_sdk() {
        for fine in [
            json!({"items": [{}]}),
            json!({"items": {}, "prefixItems": [{}]}),
            json!({"format": "nonsense", "unknown": {"type": "objekt"}}),
            json!({"title": 7, "description": null, "default": 3, "examples": 1}),
            json!({"type": ["string", "null"], "nullable": true}),
            json!({"pattern": "(?<=x)\\p{L}+\\/"}),
            json!({"patternProperties": {"^x-": {"type": "string"}}}),
            json!({"enum": [1, 1], "const": null, "if": {}}),
            json!({"enum": [{"id": 1, "nullable": 1, "pattern": 7}]}),
            json!({"properties": {"id": {}, "pattern": {}, "title": {}, "nullable": {}}}),
            json!({"additionalProperties": false, "dependentRequired": {"a": "b"}}),
        ] {
            assert!(compiles(&json!({"type": "object", "properties": {"a": fine}})), "{fine}");
        }
        for bad in [
            json!({"$ref": "#/definitions/Nope"}),
            json!({"$ref": "https://example.com/x.json"}),
            json!({"$ref": 7}),
            json!({"pattern": "["}),
            json!({"pattern": 7}),
            json!({"pattern": "\\-"}),
            json!({"patternProperties": {"[": {"type": "string"}}}),
            json!({"patternProperties": 7}),
            json!({"type": "objekt"}),
            json!({"type": null}),
            json!({"minimum": "1"}),
            json!({"exclusiveMinimum": true}),
            json!({"enum": "x"}),
            json!({"nullable": true}),
            json!({"type": ["null"], "nullable": false}),
            json!({"additionalProperties": null}),
            json!({"uniqueItems": "yes"}),
            json!({"id": "x"}),
            json!({"anyOf": [{"allOf": [{"not": {"items": [{"type": "objekt"}]}}]}]}),
        ] {
            assert!(!compiles(&json!({"type": "object", "properties": {"a": bad}})), "{bad}");
        }
        for fine in [
            json!({"$schema": "http://json-schema.org/draft-04/schema#"}),
            json!({"$schema": "https://json-schema.org/draft/2020-12/schema"}),
            json!({"$schema": 7}),
            json!({"$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}}}},
                "properties": {"first": {"$ref": "#/$defs/n"}}}),
        ] {
            assert!(compiles(&fine), "{fine}");
        }
    }

    /// E81, S31: long schemas are not compiled, so a list takes a limited time.
    #[test]
    fn e81_long_schemas_are_not_compiled() {
        let of_length = |length: usize| {
            let text = json!({"description": ""}).to_string();
            json!({"description": "x".repeat(length - text.len())}).to_string()
        };
        let checker = SchemaChecker::default();
        let longest = of_length(SCHEMA_BYTES);
        assert!(!checker.compiles(Raw::new(of_length(SCHEMA_BYTES + 1).as_bytes())));
        for _ in 0..PAGE_BYTES / SCHEMA_BYTES - 2 {
            assert!(checker.compiles(Raw::new(longest.as_bytes())));
        }
        assert!(!checker.compiles(Raw::new(longest.as_bytes())), "the page is used up");
        // Each definition uses the next one twice; the check compiles each definition only once all
        // the same.
        let twice = |name: usize| {
            json!({"allOf": [
            {"$ref": format!("#/definitions/{name}")}, {"$ref": format!("#/definitions/{name}")}]})
        };
        let mut definitions: Map<String, Value> =
            (0..60).map(|name| (name.to_string(), twice(name + 1))).collect();
        definitions.insert("60".to_owned(), json!({"type": "string"}));
        assert!(compiles(
            &json!({"definitions": definitions, "allOf": [{"$ref": "#/definitions/0"}]})
        ));
    }
}
