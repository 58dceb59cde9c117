//! Drafts of entries: definitions become fields and the same definitions again.

use narthex_control::FieldError;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::console::catalog::value::encoded;

fn round(definition: &Value) -> Value {
    let draft = Draft::of_definition(definition);
    let (again, faults) = draft.definition(definition);
    assert_eq!(faults, []);
    again
}

/// A definition as it is stored survives the form, also where no field fits.
#[test]
fn a_definition_survives_the_form() {
    for definition in [
        json!({ "id": "docs", "name": "Papers", "type": "sse", "url": "https://docs.example.com",
            "config_schema": {
                "context": { "type": "string", "required": true, "pattern": "^a" },
                "api-key": { "type": "string", "kind": "secret", "required": false },
                "shape": { "type": "json", "required": false, "kind": "value",
                           "default": { "a": [1] } } },
            "default_config": { "context": "8080", "api-key": "${DOCS_KEY}",
                                "shape": { "b": null }, "X-Gone": null, "X-Port": 8080 },
            "auth": { "mode": "apiKey", "key": "${KEY}" }, "tool_scopes": { "a": ["b"] } }),
        json!({ "id": "run", "command": "npx", "args": ["-y", "", "run"], "cwd": "/srv" }),
        json!({ "id": "run", "command": "npx", "args": ["two\nlines"] }),
        json!({ "id": "run", "command": "npx", "args": ["\u{202e}evil", "last", ""] }),
        json!({ "id": "pic", "image": "registry.example.com/pic:1", "config_schema": {} }),
        json!({ "id": "of-daemon", "script": "tidy", "default_config": { "TOKEN": "literal" } }),
        json!({ "id": "odd", "url": 7, "config_schema": [], "default_config": 3 }),
    ] {
        let mut again = round(&definition);
        if let Some(members) = definition.get("config_schema").and_then(Value::as_object) {
            for (key, rules) in members {
                // A flag that is off is the same as none.
                if rules.get("required") == Some(&Value::Bool(false)) {
                    again["config_schema"][key]["required"] = false.into();
                }
            }
        }
        assert_eq!(again, definition);
    }
}

/// A form that is sent has the fields of the page.
#[test]
fn fields_become_a_definition() {
    let fields: BTreeMap<String, String> = [
        ("id", "docs"),
        ("shape", "command"),
        ("command", "npx"),
        ("args", "-y\r\ndocs-server\r\n"),
        ("key.0.name", "port"),
        ("key.0.type", "integer"),
        ("key.0.required", "on"),
        ("key.0.description", ""),
        ("key.0.more", ""),
        ("key.1.name", ""),
        ("key.1.type", "string"),
        ("value.0.key", "port"),
        ("value.0.value", "8080"),
        ("value.1.key", ""),
        ("value.1.value", ""),
        ("rest", "{ \"timeoutMs\": 5 }"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    let (definition, faults) = Draft::of_form(&fields).definition(&Value::Null);
    assert_eq!(faults, []);
    let expected = json!({ "id": "docs", "command": "npx", "args": ["-y", "docs-server"],
        "config_schema": { "port": { "type": "integer", "required": true } },
        "default_config": { "port": 8080 }, "timeoutMs": 5 });
    assert_eq!(definition, expected);
}

/// Nothing is dropped: what cannot be stored has a fault at its field.
#[test]
fn faults_of_the_form_are_at_their_fields() {
    let key = |name: &str, more: &str| KeyRow {
        name: name.to_owned(),
        more: more.to_owned(),
        ..KeyRow::default()
    };
    let value = |key: &str, value: &str| ValueRow {
        key: key.to_owned(),
        value: value.to_owned(),
        is_kept: false,
    };
    let draft = Draft {
        url: "https://docs.example.com".to_owned(),
        keys: vec![
            key("a", ""),
            key("a", ""),
            key("", "{}"),
            key("b", "[]"),
            KeyRow { is_secret: true, ..key("c", r#"{"kind": "value"}"#) },
        ],
        values: vec![value("x", "1"), value("x", "2"), value("", "3"), value("c", "canary")],
        rest: r#"{"url": 1, "url": 2}"#.to_owned(),
        ..Draft::default()
    };
    let (_, faults) = draft.definition(&Value::Null);
    let fields: Vec<_> = faults.iter().filter_map(|fault| fault.field.as_deref()).collect();
    let expected = [
        "rest",
        "key.1.name",
        "key.2.name",
        "key.3.more",
        "key.4.more",
        "value.1.key",
        "value.2.key",
        "value.3.value",
    ];
    assert_eq!(fields, expected);
    assert!(faults.iter().all(|fault| !fault.message.contains("canary")), "{faults:?}");
    let twice = Draft { rest: r#"{"url": "x"}"#.to_owned(), ..Draft::default() };
    let twice = Draft { url: "https://docs.example.com".to_owned(), ..twice };
    assert_eq!(twice.definition(&Value::Null).1[0].field.as_deref(), Some("rest"));
}

/// A literal of a hidden key is not shown, and stays as it is stored.
#[test]
fn s27_literals_of_hidden_keys_are_kept_unseen() {
    let stored = json!({ "id": "docs", "command": "x", "default_config": { "API_KEY": "canary" } });
    let draft = Draft::of_definition(&stored);
    assert!(!format!("{draft:?}").contains("canary"), "{draft:?}");
    assert_eq!(draft.definition(&stored).0, stored);
    let (_, faults) = draft.definition(&Value::Null);
    assert_eq!(faults[0].field.as_deref(), Some("value.0.value"));
}

/// Places of the control plane have their field.
#[test]
fn places_are_fields() {
    let draft = Draft::of_definition(&json!({ "command": "x",
        "config_schema": { "a": {}, "a-b": {}, "c.d": {} },
        "default_config": { "a": "1", "a-b": "2" } }));
    for (place, field) in [
        ("args[1]", Some("args")),
        ("type", Some("transport")),
        ("config_schema.a", Some("key.0.name")),
        ("config_schema.a-b.type", Some("key.1.type")),
        ("config_schema[\"c.d\"].pattern", Some("key.2.more")),
        ("config_schema.e", Some("rest")),
        ("default_config.a-b", Some("value.1.value")),
        ("auth.key", Some("rest")),
        ("agents.reader.mcpServers.x", None),
        ("", None),
    ] {
        let fault = draft.fault(&FieldError::invalid(place, "it is wrong", "correct it"));
        assert_eq!(fault.field.as_deref(), field, "{place}");
    }
}

proptest! {
    /// Values survive their field, whatever their type is.
    #[test]
    fn values_survive_their_field(text in ".{0,20}", number in any::<i64>(), which in 0..6_usize) {
        let values = [
            json!(text), json!(number), json!({ "a": text }), json!([number]), json!(null),
            json!(number.to_string()),
        ];
        for value_type in [None, Some("json"), Some("integer")] {
            let shown = encoded(&values[which], value_type);
            prop_assert_eq!(&decoded(&shown, value_type), &values[which]);
        }
        let shown = encoded(&json!(text), Some("string"));
        prop_assert_eq!(decoded(&shown, Some("string")), json!(text));
    }
}
