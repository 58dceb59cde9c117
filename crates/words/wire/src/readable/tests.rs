//! Tests of the repairs for strict clients.

use super::*;

fn looked(kind: DefinitionKind, text: &str) -> Readable {
    readable(kind, &Bytes::copy_from_slice(text.as_bytes()), |_schema| true)
}

/// E81: meaningless members are left out, and all others stay as they were written.
#[test]
fn e81_meaningless_members_of_definitions_are_removed() {
    use DefinitionKind::{Prompt, Resource, Template, Tool};
    for (kind, odd, fine) in [
        (Tool, r#"{"name":"a","description":null,"x":1.10}"#, r#"{"name":"a","x":1.10}"#),
        (Tool, r#"{"name":"a","title":7}"#, r#"{"name":"a"}"#),
        (
            Tool,
            r#"{"name":"a","annotations":null,"outputSchema":null,"_meta":null,"icons":null}"#,
            r#"{"name":"a"}"#,
        ),
        (
            Tool,
            r#"{"name":"a","annotations":{"readOnlyHint":"yes","title":null,"v": 1}}"#,
            r#"{"name":"a","annotations":{"v":1}}"#,
        ),
        (
            Tool,
            r#"{"name":"a","inputSchema":{"type":"object","required":null,"properties":null}}"#,
            r#"{"name":"a","inputSchema":{"type":"object"}}"#,
        ),
        (
            Tool,
            r#"{"name":"a","inputSchema":{"type":"object","properties":[],"required":true}}"#,
            r#"{"name":"a","inputSchema":{"type":"object"}}"#,
        ),
        (
            Tool,
            r#"{"name":"a","inputSchema":{"properties":{"x":true,"y":false,"z":{"a": [1]}}}}"#,
            concat!(
                r#"{"name":"a","inputSchema":{"properties":"#,
                r#"{"x":{},"y":{"not":{}},"z":{"a": [1]}}}}"#,
            ),
        ),
        (Tool, r#"{"name":"a","outputSchema":true}"#, r#"{"name":"a"}"#),
        (Resource, r#"{"uri":"x:a","size":"1"}"#, r#"{"uri":"x:a","name":"x:a"}"#),
        (
            Template,
            r#"{"uriTemplate":"x:{a}","name":null,"mimeType":null}"#,
            r#"{"uriTemplate":"x:{a}","name":"x:{a}"}"#,
        ),
        (Prompt, r#"{"name":"p","arguments":null}"#, r#"{"name":"p"}"#),
        (
            Prompt,
            r#"{"name":"p","arguments":[{"name":"a","required":null}]}"#,
            r#"{"name":"p","arguments":[{"name":"a"}]}"#,
        ),
    ] {
        let Readable::Repaired { raw, members } = looked(kind, odd) else { panic!("{odd}") };
        assert_eq!(std::str::from_utf8(&raw).unwrap(), fine);
        assert!(!members.is_empty());
        assert_eq!(readable(kind, &raw, |_schema| true), Readable::AsItIs, "{fine}");
    }
}

/// E81: a value whose meaning cannot be known is not guessed.
#[test]
fn e81_a_definition_that_cannot_be_repaired_is_named() {
    for (text, named) in [
        (r#"{"name":"a","inputSchema":{"properties":["x"]}}"#, "inputSchema.properties"),
        (r#"{"name":"a","inputSchema":{"properties":"x"}}"#, "inputSchema.properties"),
        (r#"{"name":"a","inputSchema":{"properties":{"x":7}}}"#, "inputSchema.properties.x"),
    ] {
        let Readable::Not { why } = looked(DefinitionKind::Tool, text) else { panic!("{text}") };
        assert!(why.contains(named), "{why}");
    }
    let prompt = r#"{"name":"p","arguments":[{"description":"x"}]}"#;
    assert!(matches!(looked(DefinitionKind::Prompt, prompt), Readable::Not { .. }));
    let fine = r#"{"name":"a","inputSchema":{"type":"object","required":[]},"zz":null}"#;
    assert_eq!(looked(DefinitionKind::Tool, fine), Readable::AsItIs);
}

/// E81: a member that clients would refuse the list for is left out.
#[test]
fn e81_odd_icons_annotations_and_output_schemas_are_left_out() {
    use DefinitionKind::{Prompt, Resource, Template, Tool};
    for (kind, member, fine) in [
        (Tool, r#""icons":[{"src":null}]"#, ""),
        (Prompt, r#""icons":[{"src":"a:b"},7]"#, ""),
        (
            Template,
            r#""icons":[{"src":"a:b","sizes":"48x48","theme":"red","mimeType":null,"x":1}]"#,
            r#","icons":[{"src":"a:b","x":1}]"#,
        ),
        (Tool, r#""execution":{"taskSupport":"maybe"}"#, r#","execution":{}"#),
        (Resource, r#""annotations":{"audience":["x"],"a":1}"#, r#","annotations":{"a":1}"#),
        (Resource, r#""annotations":{"audience":"user"}"#, r#","annotations":{}"#),
        (Template, r#""annotations":{"priority":5}"#, r#","annotations":{}"#),
        (Resource, r#""annotations":{"priority":-0.1}"#, r#","annotations":{}"#),
        (Resource, r#""annotations":{"priority":"1"}"#, r#","annotations":{}"#),
        (Resource, r#""annotations":{"lastModified":"yesterday"}"#, r#","annotations":{}"#),
        (Resource, r#""annotations":{"lastModified":"2026-01-31"}"#, r#","annotations":{}"#),
        (Resource, r#""annotations":{"lastModified":1769817600}"#, r#","annotations":{}"#),
        (Tool, r#""outputSchema":{"properties":"x"}"#, ""),
        (Tool, r#""outputSchema":{"properties":{"a":true,"b":7}}"#, ""),
    ] {
        let named = r#""uri":"a:b","uriTemplate":"a:{b}","name":"n""#;
        let odd = format!("{{{named},{member}}}");
        let Readable::Repaired { raw, members } = looked(kind, &odd) else { panic!("{odd}") };
        assert_eq!(std::str::from_utf8(&raw).unwrap(), format!("{{{named}{fine}}}"));
        assert!(members.iter().all(|path| path.starts_with(&member[1..5])), "{members:?}");
    }
    let fine = r#"{"uri":"a:b","name":"n","icons":[{"src":"a:b","sizes":["any"],"theme":"dark"}],
        "annotations":{"audience":["user","assistant"],"priority":1,
        "lastModified":"2026-01-31T12:00:00+01:00"}}"#;
    assert_eq!(looked(Resource, fine), Readable::AsItIs);
}

/// E81: an output schema is looked at as clients will see it, and is left out as a whole.
#[test]
fn e81_an_output_schema_that_does_not_compile_is_left_out() {
    let tool = Bytes::from(r#"{"name":"a","outputSchema":{"properties":{"x":true}},"y":1}"#);
    let repaired = |compiles: bool| {
        let readable = readable(DefinitionKind::Tool, &tool, |schema| {
            assert_eq!(schema.as_bytes(), br#"{"properties":{"x":{}}}"#);
            compiles
        });
        let Readable::Repaired { raw, members } = readable else { panic!("it is odd") };
        (String::from_utf8(raw.to_vec()).unwrap(), members)
    };
    let kept = r#"{"name":"a","outputSchema":{"properties":{"x":{}}},"y":1}"#.to_owned();
    assert_eq!(repaired(true), (kept, vec!["outputSchema.properties.x".to_owned()]));
    let without = r#"{"name":"a","y":1}"#.to_owned();
    assert_eq!(repaired(false), (without, vec!["outputSchema".to_owned()]));
}
