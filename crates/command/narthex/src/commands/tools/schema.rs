//! The input schema of a tool, for people: its arguments, and values that fit them.

use std::cell::Cell;

use serde::Serialize;
use serde_json::{Map, Value, json};

/// Maximum number of schemas inside each other: references can lead in a circle.
const DEPTH: usize = 8;
/// Maximum number of schemas that are looked at: references can multiply.
const SCHEMAS_MAX: usize = 10_000;
/// Maximum number of elements or letters that an example repeats for a lower bound.
const REPEATED: u64 = 64;

/// One argument of a tool.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Argument {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) is_required: bool,
    pub(super) description: String,
    pub(super) default: Option<Value>,
}

/// The input schema of a tool.
#[derive(Debug)]
pub(super) struct InputSchema<'s> {
    root: &'s Value,
    /// Number of schemas that may still be looked at.
    left: Cell<usize>,
}

impl<'s> InputSchema<'s> {
    pub(super) fn new(schema: Option<&'s Value>) -> Self {
        Self { root: schema.unwrap_or(&Value::Null), left: Cell::new(SCHEMAS_MAX) }
    }

    /// The arguments, required ones first.
    pub(super) fn arguments(&self) -> Vec<Argument> {
        let schema = self.resolved(self.root);
        let properties = schema.get("properties").and_then(Value::as_object);
        let argument = |(name, property): (&String, &'s Value)| Argument {
            name: name.clone(),
            kind: self.kind(property, DEPTH),
            is_required: is_required(schema, name),
            description: self.member(property, "description").as_str().unwrap_or_default().into(),
            default: Some(self.member(property, "default").clone()).filter(|one| !one.is_null()),
        };
        let mut all: Vec<_> = properties.into_iter().flatten().map(argument).collect();
        all.sort_by_key(|one| !one.is_required);
        all
    }

    /// A value for each required argument.
    pub(super) fn example(&self) -> Map<String, Value> {
        self.required(self.root, DEPTH)
    }

    /// The schema at the end of a reference inside of the document; any other one as it is.
    fn resolved(&self, schema: &'s Value) -> &'s Value {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let pointer = reference.and_then(|text| text.strip_prefix('#'));
        pointer.and_then(|pointer| self.root.pointer(pointer)).unwrap_or(schema)
    }

    /// The depth of the schemas inside of one; `None` beyond the bounds.
    fn deeper(&self, depth: usize) -> Option<usize> {
        self.left.set(self.left.get().checked_sub(1)?);
        depth.checked_sub(1)
    }

    /// A member of a schema, or else of the schema that it refers to.
    fn member(&self, schema: &'s Value, member: &str) -> &'s Value {
        let own = schema.get(member).or_else(|| self.resolved(schema).get(member));
        own.unwrap_or(&Value::Null)
    }

    /// The type of a value, in words.
    fn kind(&self, schema: &'s Value, depth: usize) -> String {
        let schema = self.resolved(schema);
        let Some(depth) = self.deeper(depth) else { return "any".to_owned() };
        if let Some(value) = schema.get("const") {
            return value.to_string();
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return format!("one of {}", joined(values.iter().map(Value::to_string), ", "));
        }
        if let Some(several) = alternatives(schema) {
            return joined(several.iter().map(|one| self.kind(one, depth)), " or ");
        }
        match schema.get("type") {
            Some(Value::Array(several)) => {
                joined(several.iter().filter_map(Value::as_str).map(str::to_owned), " or ")
            }
            Some(Value::String(one)) if one == "array" => match schema.get("items") {
                Some(items) => format!("array of {}", self.kind(items, depth)),
                None => one.clone(),
            },
            Some(Value::String(one)) if one != "object" => one.clone(),
            _ => self.kind_of_object(schema, depth),
        }
    }

    /// An object with the names and types of its members.
    fn kind_of_object(&self, schema: &'s Value, depth: usize) -> String {
        let properties = schema.get("properties").and_then(Value::as_object);
        let Some(properties) = properties.filter(|all| !all.is_empty()) else {
            return schema.get("type").map_or("any", |_object| "object").to_owned();
        };
        let member = |(name, property): (&String, &'s Value)| {
            let mark = if is_required(schema, name) { "" } else { "?" };
            format!("{name}{mark}: {}", self.kind(property, depth))
        };
        format!("object {{{}}}", joined(properties.iter().map(member), ", "))
    }

    /// A value that fits a schema, as far as its type, format and bounds tell.
    fn value(&self, schema: &'s Value, depth: usize) -> Value {
        let schema = self.resolved(schema);
        let first = |key: &str| schema.get(key).and_then(|values| values.get(0));
        let given = [schema.get("const"), first("examples"), schema.get("default"), first("enum")];
        if let Some(value) = given.into_iter().flatten().find(|value| !value.is_null()) {
            return value.clone();
        }
        let Some(depth) = self.deeper(depth) else { return Value::Null };
        if let Some(several) = alternatives(schema) {
            let is_value = |one: &&Value| one.get("type") != Some(&json!("null"));
            return several.iter().find(is_value).map_or(Value::Null, |one| self.value(one, depth));
        }
        match kind_of_value(schema) {
            "integer" | "number" => number(schema),
            "boolean" => json!(true),
            "null" => Value::Null,
            "array" => {
                let items = schema.get("items").into_iter();
                let count = bound(schema, "minItems").unwrap_or(1).clamp(1, REPEATED);
                let value = |items| (0..count).map(move |_| self.value(items, depth));
                items.flat_map(value).collect()
            }
            "object" => Value::Object(self.required(schema, depth)),
            _ => text(schema),
        }
    }

    /// A value for each required member of an object.
    fn required(&self, schema: &'s Value, depth: usize) -> Map<String, Value> {
        let schema = self.resolved(schema);
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = properties.into_iter().flatten();
        required
            .filter(|(name, _)| is_required(schema, name))
            .map(|(name, property)| (name.clone(), self.value(property, depth)))
            .collect()
    }
}

fn is_required(schema: &Value, name: &str) -> bool {
    let names = schema.get("required").and_then(Value::as_array);
    names.is_some_and(|names| names.iter().any(|one| one == name))
}

/// The schemas of which a value fits one. The only part of `allOf` is one, too. Beside properties,
/// such schemas are conditions.
fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    if schema.get("properties").is_some() {
        return None;
    }
    let several = |key: &str| schema.get(key).and_then(Value::as_array);
    let only = || several("allOf").filter(|parts| parts.len() == 1);
    several("anyOf").or_else(|| several("oneOf")).or_else(only)
}

/// The type of an example: the first one that is not `null`.
fn kind_of_value(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(one)) => one,
        Some(Value::Array(several)) => {
            several.iter().filter_map(Value::as_str).find(|one| *one != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ => "string",
    }
}

fn bound(schema: &Value, key: &str) -> Option<u64> {
    schema.get(key).and_then(Value::as_u64)
}

/// The number 1, or the nearest one within the bounds.
fn number(schema: &Value) -> Value {
    let bounds = || ["minimum", "maximum"].into_iter().filter_map(|key| schema.get(key));
    if let Some(fraction) = bounds().find(|bound| bound.is_f64()) {
        return fraction.clone();
    }
    let whole = |key: &str| schema.get(key).and_then(Value::as_i64);
    let above = whole("exclusiveMinimum").map(|bound| bound.saturating_add(1));
    let below = whole("exclusiveMaximum").map(|bound| bound.saturating_sub(1));
    let least = [whole("minimum"), above].into_iter().flatten().max();
    let most = [whole("maximum"), below].into_iter().flatten().min();
    let number = 1_i64.max(least.unwrap_or(1)).min(most.unwrap_or(i64::MAX));
    let step = whole("multipleOf").filter(|step| *step > 1).unwrap_or(1);
    let beyond = number.rem_euclid(step);
    json!(if beyond == 0 { number } else { number.saturating_add(step - beyond) })
}

fn text(schema: &Value) -> Value {
    let text = match schema.get("format").and_then(Value::as_str) {
        Some("uri" | "url") => "https://example.com/",
        Some("email") => "user@example.com",
        Some("date-time") => "2026-01-01T12:00:00Z",
        Some("date") => "2026-01-01",
        Some("time") => "12:00:00Z",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        _ => {
            let least = bound(schema, "minLength").unwrap_or(0).min(REPEATED);
            let most = bound(schema, "maxLength").unwrap_or(u64::MAX);
            let count = 4_u64.max(least).min(most);
            let letters = "text".chars().chain(std::iter::repeat('x'));
            return letters.zip(0..count).map(|(letter, _)| letter).collect::<String>().into();
        }
    };
    text.into()
}

/// The words without repetitions, in their order.
fn joined(words: impl Iterator<Item = String>, between: &str) -> String {
    let mut all: Vec<String> = Vec::new();
    for word in words {
        if !all.contains(&word) {
            all.push(word);
        }
    }
    all.join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The type in words and the example of one required argument.
    fn shown(property: &Value, definitions: &Value) -> (String, Value) {
        let schema = json!({
            "type": "object",
            "properties": { "one": property },
            "required": ["one"],
            "$defs": definitions,
        });
        let schema = InputSchema::new(Some(&schema));
        let argument = schema.arguments().remove(0);
        (argument.kind, schema.example()["one"].clone())
    }

    #[test]
    fn an_argument_has_its_type_in_words_and_a_value_that_fits() {
        let definitions = json!({
            "Colour": { "enum": ["red", "blue"], "description": "A colour" },
            "Circle": { "type": "array", "items": { "$ref": "#/$defs/Circle" } },
        });
        let point = json!({
            "type": "object",
            "properties": { "note": { "type": "string" }, "x": { "type": "number" } },
            "required": ["x"],
        });
        for (property, kind, example) in [
            (json!({ "type": "string" }), "string", json!("text")),
            (json!({ "type": "string", "minLength": 6 }), "string", json!("textxx")),
            (json!({ "type": "string", "maxLength": 2 }), "string", json!("te")),
            (json!({ "type": "string", "format": "date" }), "string", json!("2026-01-01")),
            (json!({ "type": "integer" }), "integer", json!(1)),
            (json!({ "type": "integer", "minimum": 5 }), "integer", json!(5)),
            (json!({ "type": "integer", "exclusiveMaximum": 0 }), "integer", json!(-1)),
            (json!({ "type": "integer", "multipleOf": 10 }), "integer", json!(10)),
            (json!({ "type": "number", "maximum": 0.5 }), "number", json!(0.5)),
            (json!({ "type": "boolean" }), "boolean", json!(true)),
            (json!({ "type": ["null", "integer"] }), "null or integer", json!(1)),
            (json!({ "type": "string", "default": "here" }), "string", json!("here")),
            (json!({ "type": "string", "examples": ["a", "b"] }), "string", json!("a")),
            (json!({ "enum": ["low", 1] }), "one of \"low\", 1", json!("low")),
            (json!({ "const": "v1" }), "\"v1\"", json!("v1")),
            (json!({ "type": "array" }), "array", json!([])),
            (
                json!({ "type": "array", "items": { "type": "string" }, "minItems": 2 }),
                "array of string",
                json!(["text", "text"]),
            ),
            (
                json!({ "anyOf": [{ "type": "null" }, { "type": "string" }] }),
                "null or string",
                json!("text"),
            ),
            (json!({ "$ref": "#/$defs/Colour" }), "one of \"red\", \"blue\"", json!("red")),
            (
                json!({ "allOf": [{ "$ref": "#/$defs/Colour" }] }),
                "one of \"red\", \"blue\"",
                json!("red"),
            ),
            (point, "object {note?: string, x: number}", json!({ "x": 1 })),
            (json!({ "type": "object" }), "object", json!({})),
            (json!({}), "any", json!("text")),
        ] {
            let shown = shown(&property, &definitions);
            assert_eq!((shown.0.as_str(), &shown.1), (kind, &example), "{property}");
        }
        // A schema that contains itself ends.
        let (kind, _) = shown(&json!({ "$ref": "#/$defs/Circle" }), &definitions);
        assert!(kind.starts_with("array of array of ") && kind.ends_with("any"), "{kind}");
    }

    /// A server's schema of any making is read in a bounded time.
    #[test]
    fn references_that_multiply_are_bounded() {
        let names: Vec<_> = (0..100).map(|number| format!("a{number}")).collect();
        let all: Map<String, Value> =
            names.iter().map(|name| (name.clone(), json!({ "$ref": "#" }))).collect();
        let schema = json!({ "type": "object", "properties": all, "required": names });
        let schema = InputSchema::new(Some(&schema));
        assert_eq!(schema.arguments().len(), 100);
        assert_eq!(schema.example().len(), 100);
    }

    #[test]
    fn required_arguments_are_first_and_a_tool_without_schema_has_none() {
        let schema = json!({
            "properties": { "a": { "type": "string", "default": "x" }, "b": { "$ref": "#/b" } },
            "required": ["b"],
            "b": { "type": "string", "description": "The second" },
        });
        let arguments = InputSchema::new(Some(&schema)).arguments();
        let told: Vec<_> = arguments.iter().map(|one| (&*one.name, one.is_required)).collect();
        assert_eq!(told, [("b", true), ("a", false)]);
        assert_eq!(arguments[0].description, "The second");
        assert_eq!(arguments[1].default, Some(json!("x")));
        assert!(InputSchema::new(None).arguments().is_empty());
    }
}
