//! Tests of the fields of a schema, and of their texts.

use serde_json::json;

use super::*;
use crate::console::play::text::{read, written};

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["path", "filter"],
        "properties": {
            "path": { "type": "string", "description": "A folder" },
            "count": { "type": "integer", "default": 3 },
            "deep": { "type": ["boolean", "null"] },
            "mode": { "enum": ["fast", 2, null] },
            "tags": { "type": "array", "items": { "type": "string" } },
            "rows": { "type": "array", "items": { "type": "object" } },
            "filter": {
                "type": "object",
                "required": ["since"],
                "properties": { "since": { "type": "string" }, "any": {} },
            },
            "target": {
                "oneOf": [
                    { "title": "a user", "type": "object", "required": ["user"],
                      "properties": { "user": { "type": "string" } } },
                    { "title": "a team", "type": "object", "required": ["kind"],
                      "properties": { "kind": { "const": "team" }, "id": { "type": "integer" } } },
                ],
            },
            "maybe": { "anyOf": [{ "$ref": "#/$defs/size" }, { "type": "null" }] },
            "lost": { "$ref": "#/$defs/none" },
        },
        "$defs": { "size": { "type": "number" } },
    })
}

fn names(parts: &[Part]) -> Vec<String> {
    let mut names: Vec<_> = parts.iter().map(|part| part.keys.join(".")).collect();
    names.sort();
    names
}

fn find<'p>(parts: &'p [Part], name: &str) -> &'p Part {
    parts.iter().find(|part| part.keys.join(".") == name).unwrap()
}

/// R8: nested objects, arrays, enums, `oneOf`, references and defaults are fields, and what cannot
/// be one stays JSON and says so.
#[test]
fn r8_a_schema_becomes_fields() {
    let parts = parts(&schema(), &json!({}), &Chosen::new());
    let all = ["count", "deep", "filter.any", "filter.since", "lost", "maybe", "mode", "path"];
    let all = [&all[..], &["rows", "tags", "target"]].concat();
    assert_eq!(names(&parts), all);
    assert_eq!(find(&parts, "path").kind, Kind::Text);
    assert!(find(&parts, "path").is_required && !find(&parts, "count").is_required);
    assert_eq!(find(&parts, "count").kind, Kind::Number(true));
    assert_eq!(find(&parts, "deep").kind, Kind::Bool);
    assert_eq!(find(&parts, "maybe").kind, Kind::Number(false));
    assert_eq!(find(&parts, "tags").kind, Kind::Lines(Box::new(Kind::Text)));
    assert!(matches!(&find(&parts, "mode").kind, Kind::Options(all) if all.len() == 3));
    for name in ["rows", "filter.any", "lost"] {
        assert!(matches!(find(&parts, name).kind, Kind::Json(_)), "{name}");
    }
    assert_eq!(beginning(&schema()), json!({ "count": 3 }));
}

/// The fields of a shape are there once it is chosen, or once the value has it.
#[test]
fn r8_a_shape_has_fields_once_it_is_chosen() {
    let shown = |value: Value, chosen: &Chosen| {
        let parts = parts(&schema(), &value, chosen);
        names(&parts).into_iter().filter(|name| name.starts_with("target.")).collect::<Vec<_>>()
    };
    assert!(shown(json!({}), &Chosen::new()).is_empty());
    let team = json!({ "target": { "kind": "team" } });
    assert_eq!(shown(team, &Chosen::new()), ["target.id", "target.kind"]);
    let chosen = Chosen::from([(name_of(&["target".to_owned()]), "0".to_owned())]);
    assert_eq!(shown(json!({}), &chosen), ["target.user"]);
}

/// A value becomes a text and the same value again.
#[test]
fn a_value_is_read_back_from_its_text() {
    let value = json!({
        "path": "a b", "count": 7, "deep": false, "mode": 2, "tags": ["x", "y z"],
        "rows": [{ "a": 1 }], "maybe": 0.5,
    });
    for part in parts(&schema(), &value, &Chosen::new()) {
        let known = at(&value, &part.keys);
        let text = written(&part, known);
        assert_eq!(read(&part, &text).unwrap().as_ref(), known, "{:?}", part.keys);
    }
    let all = parts(&schema(), &json!({}), &Chosen::new());
    for (name, text) in [("count", "1.5"), ("count", "x"), ("rows", "[{"), ("mode", "slow")] {
        assert!(read(find(&all, name), text).is_err(), "{name} {text}");
    }
}

/// Values are set and removed at their places, with the objects around them.
#[test]
fn values_are_put_at_their_places() {
    let keys = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
    let mut value = json!({ "a": 1 });
    put(&mut value, &keys(&["b", "c"]), Some(json!(2)));
    assert_eq!(value, json!({ "a": 1, "b": { "c": 2 } }));
    put(&mut value, &keys(&["b", "c"]), None);
    assert_eq!(value, json!({ "a": 1, "b": {} }));
    put(&mut value, &keys(&["b", ""]), Some(json!(3)));
    assert_eq!(value, json!({ "a": 1, "b": 3 }));
    assert_ne!(name_of(&keys(&["a", "b"])), name_of(&keys(&["ab"])));
}

/// S12: a schema that is deep, refers to itself or is long ends in JSON, and not in a long walk.
#[test]
fn s12_hostile_schemas_end() {
    let circle = json!({ "type": "object", "properties": { "next": { "$ref": "#" } } });
    let found = parts(&circle, &json!({}), &Chosen::new());
    assert!(matches!(&found[..], [Part { kind: Kind::Json(_), .. }]), "{found:?}");
    let loops = json!({ "properties": { "a": { "$ref": "#/properties/a" } } });
    let found = parts(&loops, &json!({}), &Chosen::new());
    assert!(matches!(&found[..], [Part { kind: Kind::Json(_), .. }]), "{found:?}");
    let many = (0..5_000).map(|n| (n.to_string(), json!({ "type": "string" })));
    let many: Map<_, _> = many.collect();
    let found = parts(&json!({ "properties": many }), &json!({}), &Chosen::new());
    assert_eq!(found.len(), PARTS_MAX);
}
