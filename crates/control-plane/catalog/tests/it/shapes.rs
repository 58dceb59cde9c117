//! Schemas, patterns and documents of any shape: read and checked within the room of a thread.

use narthex_catalog::{Agent, Capability, RunRequest, ServerEntry, document};
use narthex_testkit::shapes::{Grammar, JSON, survives};
use serde_json::json;

const SCHEMAS: Grammar = Grammar {
    brackets: &[
        ("{\"not\":", "}"),
        ("{\"properties\":{\"a\":", "}}"),
        ("{\"items\":", "}"),
        ("{\"allOf\":[", "]}"),
        ("{\"if\":{},\"then\":", "}"),
        ("{\"$defs\":{\"a\":", "},\"$ref\":\"#/$defs/a\"}"),
        ("{\"additionalProperties\":", "}"),
    ],
    prefixes: &["{\"$ref\":\"#\"},"],
    infixes: &[",", ",\"b\":"],
    leaf: "{}",
    around: (
        "{\"name\":\"r\",\"params_schema\":{\"type\":\"object\",\"properties\":{\"p\":",
        "}},\"mcpServers\":{}}",
    ),
};

const PATTERNS: Grammar = Grammar {
    brackets: &[("(", ")"), ("(?:", ")"), ("[", "]"), ("(?=", ")"), ("[^", "]{2}"), ("(", ")*")],
    prefixes: &["^", "(?i)", "\\\\", "\\\\p{L}"],
    infixes: &["|", "*", "{1000}", "+?", "-", "&&"],
    leaf: "a",
    around: ("{\"id\":\"s\",\"command\":\"x\",\"config_schema\":{\"k\":{\"pattern\":\"", "\"}}}"),
};

const PLACEHOLDERS: Grammar = Grammar {
    brackets: &[("${scope.", "}"), ("${", "}"), ("$${", "}"), ("{\\\"$secret\\\":", "}")],
    prefixes: &["$", "${"],
    infixes: &[".", "|", "}"],
    leaf: "a",
    around: ("{\"id\":\"s\",\"url\":\"https://x.test/\",\"default_config\":{\"k\":\"", "\"}}"),
};

fn read_all(text: &str) {
    drop(document(text.as_bytes()));
    drop(ServerEntry::parse(text.as_bytes(), None));
    drop(Capability::parse(text.as_bytes(), None));
    drop(Agent::parse(text.as_bytes(), None));
    drop(RunRequest::parse(text.as_bytes()));
}

/// D9: whatever is saved, reading it ends with an object or with faults.
#[test]
fn d9_objects_of_any_shape_leave_the_process_alive() {
    let test = "shapes::d9_objects_of_any_shape_leave_the_process_alive";
    survives(test, &[JSON, SCHEMAS, PATTERNS, PLACEHOLDERS], chains, 100_000, read_all);
}

/// Schemas in which each place refers to the next one.
fn chains() -> Vec<String> {
    let chain = |length: usize, step: fn(usize) -> serde_json::Value| {
        let all = (0..length).map(|at| (format!("d{at}"), step(at + 1)));
        let mut defs: serde_json::Map<_, _> = all.collect();
        defs.insert(format!("d{length}"), json!({}));
        let schema = json!({ "type": "object", "$defs": defs, "properties": { "p":
            { "$ref": "#/$defs/d0" } } });
        json!({ "name": "r", "params_schema": schema, "mcpServers": {} }).to_string()
    };
    let plain = |at: usize| json!({ "$ref": format!("#/$defs/d{at}") });
    let inside = |at: usize| json!({ "items": { "not": { "$ref": format!("#/$defs/d{at}") } } });
    let mut all = Vec::new();
    for length in [10, 100, 1_000, 10_000] {
        all.extend([chain(length, plain), chain(length, inside)]);
    }
    all
}

/// D9: a chain of references is as deep as its target.
#[test]
fn d9_chains_of_references_beyond_the_depth_limit_are_refused() {
    let refused = |text: &String| match Agent::parse(text.as_bytes(), None) {
        Ok(_) => None,
        Err(faults) => Some(format!("{faults:?}")),
    };
    let chains = chains();
    assert_eq!(refused(&chains[0]), None);
    for chain in &chains[3..] {
        assert!(refused(chain).unwrap().contains("more than 128 levels"), "{}", &chain[..100]);
    }
}
