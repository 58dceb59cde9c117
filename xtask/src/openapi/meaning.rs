//! Differences of meaning between two OpenAPI documents: texts, orders and spellings may differ.

use serde_json::{Map, Value, json};

/// Members that are for people.
const TEXTS: [&str; 4] = ["description", "summary", "title", "examples"];

/// The places that differ in meaning, each with both values.
pub(super) fn differences(old: &Value, new: &Value) -> Vec<String> {
    let mut found = Vec::new();
    // A schema is compared at every place that refers to it, and by its name.
    for part in ["paths", "components"] {
        let normal = |document: &Value| normal(document, &document[part], &mut Vec::new());
        compare(&normal(old), &normal(new), part, &mut found);
    }
    found
}

fn compare(old: &Value, new: &Value, place: &str, found: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (name, value) in old {
                let place = format!("{place}/{name}");
                compare(value, new.get(name).unwrap_or(&Value::Null), &place, found);
            }
            for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
                compare(&Value::Null, value, &format!("{place}/{name}"), found);
            }
        }
        _ if old == new => {}
        _ => found.push(format!("{place}: {} became {}", short(old), short(new))),
    }
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(200).collect()
}

/// The value in its one normal spelling. References are replaced by what they refer to, but within
/// themselves.
fn normal(document: &Value, value: &Value, within: &mut Vec<String>) -> Value {
    match value {
        Value::Object(members) => match members.get("$ref").and_then(Value::as_str) {
            Some(place) if within.iter().any(|one| one == place) => json!({ "within": place }),
            Some(place) => {
                let target = document.pointer(place.trim_start_matches('#'));
                within.push(place.to_owned());
                let mut resolved = normal(document, target.unwrap_or(&Value::Null), within);
                within.pop();
                let beside = members.iter().filter(|(name, _)| *name != "$ref");
                let beside = normal_members(document, beside, within);
                if let Value::Object(resolved) = &mut resolved {
                    resolved.extend(beside);
                }
                resolved
            }
            None => spelled(normal_members(document, members.iter(), within)),
        },
        Value::Array(items) => items.iter().map(|item| normal(document, item, within)).collect(),
        _ => value.clone(),
    }
}

fn normal_members<'v>(
    document: &Value,
    members: impl Iterator<Item = (&'v String, &'v Value)>,
    within: &mut Vec<String>,
) -> Map<String, Value> {
    // A property may have the name of a text: its value is an object then.
    let is_text = |name: &str, value: &Value| TEXTS.contains(&name) && !value.is_object();
    let kept = members.filter(|(name, value)| !is_text(name, value));
    kept.map(|(name, value)| (name.clone(), normal(document, value, within))).collect()
}

/// A schema in one of its spellings.
fn spelled(mut schema: Map<String, Value>) -> Value {
    let is_any = |value: &Value| *value == json!(true) || *value == json!({});
    let has_type = schema.contains_key("type");
    if schema.get("additionalProperties").is_some_and(is_any) {
        schema.remove("additionalProperties");
    }
    if schema.get("required").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        schema.remove("required");
    }
    // Null among words is a type beside them.
    if let Some(Value::Array(words)) = schema.get_mut("enum").filter(|_| !has_type)
        && words.iter().any(Value::is_null)
    {
        schema.insert("type".to_owned(), json!(["string", "null"]));
    }
    if let Some(word) = schema.remove("const") {
        schema.insert("enum".to_owned(), json!([word]));
    }
    for name in ["anyOf", "oneOf", "required", "enum", "type"] {
        if let Some(Value::Array(items)) = schema.get_mut(name) {
            items.sort_by_key(ToString::to_string);
        }
    }
    if let Some(kinds) = schema.get("type").and_then(Value::as_array).cloned()
        && kinds.iter().any(|kind| kind == "null")
    {
        let mut others: Vec<_> = kinds.into_iter().filter(|kind| kind != "null").collect();
        let other = if others.len() == 1 { others.remove(0) } else { json!(others) };
        schema.insert("type".to_owned(), other);
        if let Some(Value::Array(words)) = schema.get_mut("enum") {
            words.retain(|word| !word.is_null());
        }
        let mut either = [spelled(schema), json!({ "type": "null" })];
        either.sort_by_key(ToString::to_string);
        return json!({ "anyOf": either });
    }
    let words = schema.get("enum").and_then(Value::as_array);
    if words.is_some_and(|words| words.iter().all(Value::is_string)) {
        schema.remove("type");
    }
    Value::Object(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(schema: &Value) -> Value {
        json!({
            "paths": { "/a": { "schema": { "$ref": "#/components/schemas/A" } } },
            "components": { "schemas": { "A": schema } },
        })
    }

    #[test]
    fn spellings_and_texts_do_not_differ() {
        let one = document(&json!({
            "description": "one",
            "properties": {
                "a": { "type": ["string", "null"], "maxLength": 3 },
                "b": { "const": "x" },
                "c": { "enum": ["y", null] },
                "d": { "type": "object", "required": [] },
            },
            "required": ["b", "a"],
        }));
        let other = document(&json!({
            "description": "other",
            "properties": {
                "a": { "anyOf": [{ "type": "null" }, { "type": "string", "maxLength": 3 }] },
                "b": { "type": "string", "enum": ["x"] },
                "c": { "type": ["string", "null"], "enum": ["y", null] },
                "d": { "type": "object" },
            },
            "required": ["a", "b"],
        }));
        assert_eq!(differences(&one, &other), [""; 0]);
    }

    #[test]
    fn meanings_differ_at_each_use_and_by_name() {
        let one = document(&json!({ "properties": { "description": { "type": "string" } } }));
        let other = document(&json!({ "properties": { "description": { "type": "integer" } } }));
        let member = "properties/description/type: \"string\" became \"integer\"";
        let places =
            ["paths//a/schema", "components/schemas/A"].map(|place| format!("{place}/{member}"));
        assert_eq!(differences(&one, &other), places);
    }
}
