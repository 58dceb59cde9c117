//! Tests of arguments as people read them, and of schemas of any making.

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
    (argument.kind, schema.example().values["one"].clone())
}

#[test]
fn an_argument_has_its_type_in_words_and_a_value_that_fits() {
    let definitions = json!({
        "Colour": { "enum": ["red", "blue"], "description": "A colour" },
        "Same": { "$ref": "#/$defs/Colour" },
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
        (json!({ "type": "integer", "minimum": 1.5 }), "integer", json!(2)),
        (json!({ "type": "integer", "multipleOf": 10, "maximum": 5 }), "integer", json!(0)),
        (json!({ "type": "number", "maximum": 0.5 }), "number", json!(0.5)),
        (json!({ "type": "number", "exclusiveMinimum": 1.5 }), "number", json!(2)),
        (
            json!({ "exclusiveMinimum": 0, "exclusiveMaximum": 1, "type": "number" }),
            "number",
            json!(0.5),
        ),
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
        (json!({ "$ref": "#/$defs/Same" }), "one of \"red\", \"blue\"", json!("red")),
        (json!({ "$ref": "#/%24defs/Colour" }), "one of \"red\", \"blue\"", json!("red")),
        (json!({ "enum": [null, "a"] }), "one of null, \"a\"", json!("a")),
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
    assert_eq!(schema.example().values.len(), 100);
}

/// Long lists of a server cost no more than their length, and are named in part.
#[test]
fn long_lists_of_values_are_shown_in_part() {
    let values: Vec<_> = (0..80_000).map(|number| format!("value {number}")).collect();
    let schema = json!({ "properties": { "a": { "enum": values }, "b": { "type": "object" } } });
    let arguments = InputSchema::new(Some(&schema)).arguments();
    let kind = &arguments[0].kind;
    assert!(kind.starts_with("one of \"value 0\", \"value 1\", "), "{kind}");
    assert!(kind.ends_with(", \"value 19\" … and 79980 more"), "{kind}");
    let names: Vec<_> = (0..80_000).map(|number| format!("a{number}")).collect();
    let members: Map<String, Value> =
        names.iter().map(|name| (name.clone(), json!({ "type": "boolean" }))).collect();
    let schema = json!({ "type": "object", "properties": members, "required": names });
    let schema = InputSchema::new(Some(&schema));
    assert!(schema.arguments().iter().all(|one| one.is_required));
    let Example { values, is_fitting } = schema.example();
    // Beyond the bounds of the work, a value is a mere place for one.
    assert_eq!((values.len(), is_fitting), (80_000, false));
}

/// References repeat a long text of a server, and what is shown stays short.
#[test]
fn long_texts_are_not_repeated_by_references() {
    let names: Vec<_> = (0..500).map(|number| format!("a{number}")).collect();
    let long = "x".repeat(100_000);
    for definition in [
        json!({ "const": long }),
        json!({ "examples": [long] }),
        json!({ "default": [long] }),
        json!({ "enum": [long] }),
        json!({ "description": long, "type": long }),
        json!({ "properties": { long.as_str(): { "type": "string" } }, "required": [long] }),
        json!({ "type": "array", "minItems": 1_000_000, "items": { "minLength": 1_000_000 } }),
    ] {
        let all: Map<String, Value> =
            names.iter().map(|name| (name.clone(), json!({ "$ref": "#/$defs/One" }))).collect();
        let schema =
            json!({ "properties": all, "required": names, "$defs": { "One": definition } });
        let schema = InputSchema::new(Some(&schema));
        let arguments = serde_json::to_string(&schema.arguments()).unwrap();
        let example = schema.example();
        let values = Value::Object(example.values).to_string();
        assert!(arguments.len() < 300_000, "{}", arguments.len());
        assert!(values.len() < 2_000_000, "{}", values.len());
    }
}

#[test]
fn a_long_value_is_shortened_in_a_type_and_whole_in_a_call() {
    let long = "x".repeat(200);
    let (kind, value) = shown(&json!({ "const": long }), &Value::Null);
    assert_eq!(kind, format!("\"{}\"…", "x".repeat(60)));
    assert_eq!(value, json!(long));
    assert_eq!(literal(&json!([long])), "[…]");
    assert_eq!(literal(&json!({ "a": long })), "{…}");
    assert_eq!(literal(&json!([1, "a"])), "[1,\"a\"]");
}

/// An example is marked where no value is known to fit.
#[test]
fn an_example_tells_if_it_may_not_fit() {
    for (property, is_fitting) in [
        (json!({ "type": "string", "minLength": 64 }), true),
        (json!({ "type": "string", "minLength": 100 }), false),
        (json!({ "type": "string", "format": "date", "minLength": 11 }), false),
        (json!({ "type": "string", "pattern": "^x+$" }), false),
        (json!({ "type": "integer", "minimum": 5, "maximum": 4 }), false),
        (json!({ "type": "array", "minItems": 2 }), true),
        (json!({ "type": "array", "minItems": 65, "items": {} }), false),
        (json!({ "type": "array", "minItems": 2, "uniqueItems": true, "items": {} }), false),
        (json!({ "type": "array", "items": [{ "type": "string" }] }), false),
        (json!({ "$ref": "#/properties/one" }), true),
    ] {
        let schema = json!({ "properties": { "one": property }, "required": ["one"] });
        let example = InputSchema::new(Some(&schema)).example();
        assert_eq!(example.is_fitting, is_fitting, "{property}");
    }
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
