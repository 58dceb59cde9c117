//! Lists that differ from the accepted ones (S23).

use narthex_definitions::{Change, compare, difference};
use serde_json::{Value, json};

use crate::{definition, ordinary::listed};

fn tool(name: &str, description: &str, parameter: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": {parameter: {"type": "string"}}},
        "annotations": {"readOnlyHint": true}
    })
}

fn between(old: &[Value], new: &[Value]) -> Vec<Change> {
    let read = |all: &[Value]| all.iter().map(definition).collect::<Vec<_>>();
    compare(&read(old), &read(new))
}

/// The change of each definition, without the differences.
fn told(old: &[Value], new: &[Value]) -> Vec<String> {
    let told = between(old, new).into_iter().map(|change| match change {
        Change::Added { key } => format!("+{key}"),
        Change::Removed { key } => format!("-{key}"),
        Change::Changed { key, .. } => format!("{key}!"),
        Change::Renamed { key, old_key, .. } => format!("{old_key}>{key}"),
    });
    told.collect()
}

#[test]
fn s23_the_same_list_in_another_order_is_no_change() {
    let all = listed();
    let reversed = all.iter().rev().cloned().collect::<Vec<_>>();
    assert_eq!(between(&all, &reversed), []);
}

/// Description, schema, default and hint: every change is reported, with its place.
#[test]
fn s23_every_kind_of_change_is_seen() {
    let old = tool("a", "Reads a file of the project", "path");
    let table = [
        (json!({"description": "Reads a file of yours"}), "/description"),
        (
            json!({"inputSchema": {"properties": {"note": {"type": "string"}}}}),
            "/inputSchema/properties/note",
        ),
        (
            json!({"inputSchema": {"properties": {"path": {"default": "/etc"}}}}),
            "/inputSchema/properties/path/default",
        ),
        (json!({"annotations": {"readOnlyHint": false}}), "/annotations/readOnlyHint"),
        (json!({"title": "Read"}), "/title"),
        (json!({"outputSchema": {"type": "object"}}), "/outputSchema"),
        (json!({"_meta": {"x": 1}}), "/_meta"),
    ];
    for (change, place) in table {
        let new = narthex_model::json::merged(old.clone(), change);
        let changes = between(std::slice::from_ref(&old), std::slice::from_ref(&new));
        let [Change::Changed { key, difference: told }] = changes.as_slice() else {
            panic!("{changes:?}");
        };
        assert_eq!((key.as_str(), told.changes.len()), ("a", 1));
        assert_eq!(told.changes[0].place, place);
        assert_eq!(*told, difference(&definition(&old), &definition(&new)));
    }
}

/// A new name does not make a new definition.
#[test]
fn s23_a_renamed_definition_is_known_again() {
    let old = [tool("a", "Reads a file of the project", "path"), tool("b", "Sends", "to")];
    let same = [tool("c", "Reads a file of the project", "path"), old[1].clone()];
    assert_eq!(told(&old, &same), ["a>c"]);
    let other_schema = [tool("c", "Reads a file of the project", "file"), old[1].clone()];
    assert_eq!(told(&old, &other_schema), ["a>c"]);
    let other_words = [tool("c", "Reads ~/.ssh/id_rsa", "path"), old[1].clone()];
    assert_eq!(told(&old, &other_words), ["a>c"]);
    let all_else = [tool("c", "Reads ~/.ssh/id_rsa", "key"), old[1].clone()];
    assert_eq!(told(&old, &all_else), ["+c", "-a"]);
    // Names that changed places are two that changed.
    let crossed = [tool("b", "Reads a file of the project", "path"), tool("a", "Sends", "to")];
    assert_eq!(told(&old, &crossed), ["b!", "a!"]);
    // A definition that is still listed under its old name, too, is a copy and not renamed.
    let copied = [old[0].clone(), tool("c", "Reads a file of the project", "path")];
    assert_eq!(told(&old, &copied), ["+c", "-b"]);
    // A removed definition is matched once.
    let twice = [
        tool("c", "Reads a file of the project", "path"),
        tool("d", "Reads a file of the project", "path"),
    ];
    assert_eq!(told(&old[..1], &twice), ["a>c", "+d"]);
}

#[test]
fn s23_prompts_and_templates_are_known_again() {
    let prompt = |name: &str| json!({"name": name, "arguments": [{"name": "city"}]});
    assert_eq!(told(&[prompt("a")], &[prompt("b")]), ["a>b"]);
    let template =
        |uri: &str| json!({"uriTemplate": uri, "name": "n", "description": "All rows of a table"});
    assert_eq!(told(&[template("db://{t}")], &[template("db2://{t}")]), ["db://{t}>db2://{t}"]);
    let schema = json!({"type": "object", "properties": {}});
    let bare = |name: &str| json!({"name": name, "inputSchema": schema, "x": name});
    assert_eq!(told(&[bare("a")], &[bare("b")]), ["+b", "-a"], "an empty schema is anybody's");
}

/// The acceptance of a definition does not cover another definition that is listed under its name.
#[test]
fn s23_a_second_definition_under_an_accepted_name_is_a_change() {
    let (good, evil) = (tool("a", "Reads", "path"), tool("a", "Sends", "to"));
    let one = std::slice::from_ref(&good);
    assert_eq!(told(one, &[good.clone(), evil.clone()]), ["a!"]);
    assert_eq!(told(one, &[evil.clone(), good.clone()]), ["a!"]);
    assert_eq!(told(one, &[good.clone(), good.clone()]), Vec::<String>::new());
    // Callers used the first definition of the former list.
    assert_eq!(told(&[good.clone(), evil.clone()], one), Vec::<String>::new());
    assert_eq!(told(&[evil, good.clone()], one), ["a!"]);
    assert_eq!(told(&[good.clone(), good], &[]), ["-a"]);
}
