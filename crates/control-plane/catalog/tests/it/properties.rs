//! Properties that hold for any input.

use std::collections::BTreeMap;

use narthex_catalog::{FaultCode, ServerEntry};
use narthex_model::Target;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::world::{World, agent, capability, server};

const KEYS: [&str; 4] = ["k0", "k1", "k2", "k3"];

/// Text full of characters of placeholders. All of it can travel in a header.
fn tricky() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("${env.CANARY}"),
        Just("${CANARY}"),
        Just("${scope.other}"),
        Just("${params.other}"),
        Just("${runtime.run_id}"),
        Just("${runner.orchestrator_mcp_url}"),
        Just("$${"),
        Just("${"),
        Just("$"),
        Just("{"),
        Just("}"),
        Just("{\"$secret\":\"CANARY\"}"),
        Just("scope."),
        Just("a b"),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

/// The values of one level: absent, null, or a number that identifies the level.
fn level() -> impl Strategy<Value = BTreeMap<&'static str, Option<u8>>> {
    prop::collection::btree_map(
        prop::sample::select(KEYS.as_slice()),
        prop::option::of(0..3_u8),
        0..4,
    )
}

fn json_of(level: &BTreeMap<&'static str, Option<u8>>) -> Value {
    level.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect()
}

fn schema() -> Value {
    KEYS.iter().map(|key| ((*key).to_owned(), json!({ "type": "integer" }))).collect()
}

fn config(world: &World) -> Value {
    world.payload()["resolved_mcp_servers"]["a"]["config"].clone()
}

/// Any JSON without nulls at the top, with tricky texts.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        tricky().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..4)
                .prop_map(|fields| fields.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

/// An object in its normal form.
fn written(object: &impl serde::Serialize) -> Value {
    serde_json::to_value(object).unwrap()
}

/// A value whose placeholders are escaped, so that it resolves to itself.
fn escaped(value: &Value) -> Value {
    match value {
        Value::String(text) => text.replace("${", "$${").into(),
        Value::Array(values) => values.iter().map(escaped).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), escaped(value))).collect()
        }
        other => other.clone(),
    }
}

proptest! {
    /// D6, O7, O8, O47: the highest level that sets a key counts, and null removes.
    #[test]
    fn d6_the_highest_level_that_sets_a_key_counts(
        defaults in level(), one in level(), two in level(), own in level(),
    ) {
        let attached = |level| json!({ "a": { "ref": "s", "config": json_of(level) } });
        let world = World::one(schema(), json_of(&defaults), json_of(&own))
            .including("one", attached(&one)).including("two", attached(&two));
        let mut expected = Map::new();
        let mut disagreeing = Vec::new();
        for key in KEYS {
            if one.contains_key(key) && two.contains_key(key) && one[key] != two[key]
                && !own.contains_key(key)
            {
                disagreeing.push(FaultCode::ValueConflict);
            }
            let levels = [own.get(key), two.get(key), one.get(key), defaults.get(key)];
            if let Some(Some(value)) = levels.into_iter().flatten().next() {
                expected.insert(key.to_owned(), json!(value));
            }
        }
        match disagreeing.is_empty() {
            true => prop_assert_eq!(config(&world), Value::Object(expected)),
            false => prop_assert_eq!(world.codes(), disagreeing),
        }

        // The order of capabilities has no effect.
        let mut turned = world.clone();
        turned.agent.capabilities.reverse();
        match world.resolve() {
            Ok(_) => prop_assert_eq!(config(&turned), config(&world)),
            Err(_) => prop_assert_eq!(turned.codes(), world.codes()),
        }
    }

    /// O62, O63, S30, D7: values of a run arrive as they are, and reach no other place.
    #[test]
    fn s30_values_of_runs_are_never_expanded_again(scope in tricky(), param in tricky()) {
        let schema = json!({ "k": {}, "own": {}, "key": { "kind": "secret" } });
        let config = json!({ "k": "<${scope.v}|${params.p}|${scope.v}>", "own": "${env.CANARY}",
                             "key": "${CANARY}" });
        let world = World::one(schema, json!({}), config)
            .env("CANARY", "canary-env")
            .secret("CANARY", "canary-secret")
            .scope(json!({ "v": scope, "other": "canary-scope" }))
            .params(json!({ "p": param, "other": "canary-param" }));
        let carried = world.carried("a");
        prop_assert_eq!(&carried["x-k"], &format!("<{scope}|{param}|{scope}>"));
        prop_assert!(!carried["x-k"].contains("canary"));
        let told = format!("{:?} {}", world.run(), world.run().shown());
        prop_assert!(!told.contains("canary"), "{}", told);
    }

    /// O65, S30, O19: whole values keep their type and content.
    #[test]
    fn o65_whole_values_arrive_unchanged(value in any_json()) {
        let world = World::one(json!({ "k": { "type": "json" } }), json!({}),
                               json!({ "k": { "in": ["${scope.v}"] } }))
            .scope(json!({ "v": value }));
        prop_assert_eq!(&config(&world)["k"]["in"][0], &value);
    }

    /// O63: every value can be written down, by the escape, and has one normal form.
    #[test]
    fn o63_every_value_can_be_written(value in any_json()) {
        let value = json!([value]);
        let world = World::one(json!({ "k": { "type": "json" } }), json!({ "k": escaped(&value) }),
                               json!({}));
        prop_assert_eq!(&config(&world)["k"], &value);
        let entry = world.catalog.servers.values().next().unwrap();
        prop_assert_eq!(&server(&written(entry)), entry);
    }

    /// O59, D6: after an override without a value, no value of a lower level appears.
    #[test]
    fn o59_an_override_without_a_value_reveals_no_lower_level(
        below in any_json(), cap in prop::option::of(any_json()), text in "[a-z ]{0,5}",
        required in any::<bool>(),
    ) {
        let marked = |value: &Value| json!({ "lower": "canary", "value": escaped(value) });
        let schema = json!({ "k": { "type": "json", "required": required,
                                    "default": marked(&below) } });
        let mut world = World::one(schema, json!({ "k": marked(&below) }),
                                   json!({ "k": format!("{text}${{scope.absent}}") }));
        if let Some(cap) = cap {
            let attached = json!({ "a": { "ref": "s", "config": { "k": marked(&cap) } } });
            world = world.including("cap", attached);
        }
        match world.resolve() {
            Ok(_) => {
                prop_assert!(!required);
                prop_assert!(!world.payload().to_string().contains("canary"));
                prop_assert!(world.carried("a").is_empty());
            }
            Err(_) => {
                prop_assert!(required);
                prop_assert_eq!(world.codes(), [FaultCode::MissingRequiredMcpConfig]);
            }
        }
    }

    /// D9, O60: as many faults as there are wrong keys, whatever else is right.
    #[test]
    fn d9_every_wrong_key_is_reported(wrong in prop::collection::vec(any::<bool>(), 1..12)) {
        let keys = wrong.iter().enumerate().map(|(n, is_wrong)| (format!("k{n}"), *is_wrong));
        let keys: Vec<(String, bool)> = keys.collect();
        let required = json!({ "required": true });
        let schema = keys.iter().map(|(key, _)| (key.clone(), required.clone())).collect();
        let config = keys.iter().map(|(key, is_wrong)| {
            (key.clone(), json!(if *is_wrong { "${scope.absent}" } else { "x" }))
        });
        let world = World::one(schema, json!({}), config.collect());
        let expected = wrong.iter().filter(|is_wrong| **is_wrong).count();
        let found = world.resolve().err().map_or(0, |faults| faults.iter().count());
        prop_assert_eq!(found, expected);
    }

    /// The same inputs give the same run, also from the normal forms of the objects.
    #[test]
    fn o53_equal_inputs_give_equal_runs(
        value in any_json(), scope in any_json(), defaults in level(),
    ) {
        let attached = json!({ "a": { "ref": "s", "config": { "j": "${scope.v}" } } });
        let mut schema = schema();
        schema["j"] = json!({ "type": "json" });
        schema["l"] = json!({ "type": "json" });
        let world = World::one(schema, json_of(&defaults), json!({ "l": escaped(&value) }))
            .including("cap", attached)
            .scope(json!({ "v": scope }));
        let before = world.clone();
        let run = world.run();
        prop_assert!(world.run() == run);
        let mut copy = world.clone();
        copy.agent = agent(&written(&world.agent));
        for entry in world.catalog.servers.values() {
            copy.catalog.servers.insert(entry.id.clone(), server(&written(entry)));
        }
        for known in world.catalog.capabilities.values() {
            let read = capability(known.name.as_str(), &written(known));
            copy.catalog.capabilities.insert(known.name.clone(), read);
        }
        prop_assert!(copy.catalog == world.catalog && copy.agent == world.agent);
        prop_assert!(copy.run() == run);
        // O53: the sources are unchanged.
        prop_assert!(before.catalog == world.catalog && before.agent == world.agent);
    }

    /// S4, O69: any value of a scope leaves the host, the depth of the path and the query.
    #[test]
    fn s4_no_scope_value_changes_the_host_or_path_depth(
        value in "[a-zA-Z0-9./?#@:%\\\\ \u{e4}$&={}\r\n-]{0,12}",
    ) {
        let entry = json!({ "id": "s", "url": "https://h.test/t/${scope.v}/mcp?q=${scope.v}&end" });
        let world = World::new(&[entry]).using(json!({ "a": { "ref": "s" } }))
            .scope(json!({ "v": value }));
        if world.resolve().is_err() {
            prop_assert!(matches!(value.as_str(), "" | "." | ".."), "{value:?}");
            return Ok(());
        }
        let Target::Http(target) = world.definition("a").unwrap().target else { panic!("no URL") };
        let url = url::Url::parse(&target.url).unwrap();
        prop_assert_eq!((url.scheme(), url.host_str()), ("https", Some("h.test")));
        prop_assert_eq!(url.path_segments().unwrap().count(), 3);
        prop_assert!(url.path().starts_with("/t/") && url.path().ends_with("/mcp"));
        let query: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        prop_assert_eq!(&query[0], &("q".to_owned(), value));
        prop_assert_eq!((query.len(), url.fragment()), (2, None));
    }

    /// The hosts that a scope can lead to are all below the one in the entry.
    #[test]
    fn s4_a_scope_value_in_a_host_stays_one_label(value in "[a-zA-Z0-9./?#@:%\\\\ \u{e4}-]{0,8}") {
        let entry = json!({ "id": "s", "url": "https://${scope.v}.h.test/mcp" });
        let world = World::new(&[entry]).using(json!({ "a": { "ref": "s" } }))
            .scope(json!({ "v": value }));
        if let Ok(definition) = world.resolve().map(|_| world.definition("a").unwrap()) {
            let Target::Http(target) = definition.target else { panic!("no URL") };
            let url = url::Url::parse(&target.url).unwrap();
            let host = url.host_str().unwrap();
            let label = value.to_lowercase();
            prop_assert_eq!(host.strip_suffix(".h.test"), Some(label.as_str()));
            prop_assert_eq!(url.path(), "/mcp");
        }
    }

    /// D9: any JSON is an entry, or refused with places and remedies.
    #[test]
    fn d9_any_json_is_read(value in any_json()) {
        let entry = json!({ "id": value, "url": value, "config_schema": { "k": value },
                            "default_config": { "k": value }, "auth": value, "tools": value });
        if let Err(faults) = ServerEntry::parse(entry.to_string().as_bytes(), None) {
            for fault in faults.iter() {
                prop_assert!(!fault.path.is_empty() && !fault.remedy.is_empty());
            }
        }
    }
}
