//! Changes to definitions for clients of an aggregated endpoint.

use crate::{
    Raw,
    json::{Scanner, encode_string},
};
use bytes::Bytes;

/// The schema of a tool that takes nothing.
const EMPTY: &[u8] = br#"{"type":"object","properties":{},"required":[]}"#;

/// Replaces the value of one member of an object by a text; the rest is verbatim.
#[must_use]
pub fn with_member(raw: &Bytes, member: &str, text: &str) -> Bytes {
    let object = Scanner::new(raw, 0, 0).object();
    let Some(span) = object.ok().and_then(|object| object.get(raw, member)) else {
        return raw.clone();
    };
    let range = span.range();
    [&raw[..range.start], &encode_string(text), &raw[range.end..]].concat().into()
}

/// As [`with_member`], and adds the member if the object has none.
#[must_use]
pub fn with_text_member(raw: &Bytes, member: &str, text: &str) -> Bytes {
    match Raw::new(raw).get(member) {
        Some(_) => with_member(raw, member, text),
        None => with_members(raw, &[(member, &encode_string(text))]),
    }
}

/// A tool whose input schema describes an object with `properties`. Any other schema, or none,
/// becomes the empty object schema; fitting schemas stay byte for byte (E81, R-E27).
#[must_use]
pub fn with_object_schema(tool: &Bytes) -> Bytes {
    let Some(schema) = Raw::new(tool).get("inputSchema") else {
        return with_members(tool, &[("inputSchema", EMPTY)]);
    };
    let Some(kept) = object_schema(schema) else {
        let start = schema.as_bytes().as_ptr().addr() - tool.as_ptr().addr();
        return [&tool[..start], EMPTY, &tool[start + schema.as_bytes().len()..]].concat().into();
    };
    if kept == schema.as_bytes() {
        return tool.clone();
    }
    let start = schema.as_bytes().as_ptr().addr() - tool.as_ptr().addr();
    [&tool[..start], &kept[..], &tool[start + schema.as_bytes().len()..]].concat().into()
}

/// The schema with the missing members; `None` if it does not describe an object.
fn object_schema(schema: Raw<'_>) -> Option<Bytes> {
    let text = Bytes::copy_from_slice(schema.as_bytes());
    let object = Scanner::new(&text, 0, 0).object().ok()?;
    let has = |key| object.get(&text, key).is_some();
    let kind = object.get(&text, "type").map(|span| Raw::new(span.of(&text)).as_str());
    if kind.is_some_and(|kind| kind.as_deref() != Some("object")) {
        return None;
    }
    let mut missing: Vec<(&str, &[u8])> = Vec::new();
    if !has("type") {
        missing.push(("type", br#""object""#));
    }
    if !has("properties") {
        missing.push(("properties", b"{}"));
        if !has("required") {
            missing.push(("required", b"[]"));
        }
    }
    Some(with_members(&text, &missing))
}

/// An object with further members at its end.
fn with_members(object: &Bytes, members: &[(&str, &[u8])]) -> Bytes {
    if members.is_empty() {
        return object.clone();
    }
    let Some(end) = object.iter().rposition(|byte| *byte == b'}') else { return object.clone() };
    let inside = &object[..end];
    let mut out = inside.to_vec();
    let mut is_empty = inside.trim_ascii_end().ends_with(b"{");
    for (key, value) in members {
        if !is_empty {
            out.push(b',');
        }
        is_empty = false;
        out.extend_from_slice(format!("\"{key}\":").as_bytes());
        out.extend_from_slice(value);
    }
    out.push(b'}');
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_replaced_or_added_and_the_rest_stays() {
        let with = |raw: &str| {
            let raw = Bytes::copy_from_slice(raw.as_bytes());
            String::from_utf8(with_text_member(&raw, "description", "a \"b\"").to_vec()).unwrap()
        };
        for (raw, expected) in [
            (r#"{"description": "x" , "n":1}"#, r#"{"description": "a \"b\"" , "n":1}"#),
            (r#"{"n":1}"#, r#"{"n":1,"description":"a \"b\""}"#),
            ("{ }", r#"{ "description":"a \"b\""}"#),
            (r#"{"description":null}"#, r#"{"description":"a \"b\""}"#),
        ] {
            assert_eq!(with(raw), expected, "{raw}");
        }
    }

    fn adapted(tool: &str) -> String {
        let tool = with_object_schema(&Bytes::copy_from_slice(tool.as_bytes()));
        serde_json::from_slice::<serde_json::Value>(&tool).unwrap();
        String::from_utf8(tool.to_vec()).unwrap()
    }

    /// E81, R-E27: no schema, or one of something else, becomes the schema of an empty object.
    #[test]
    fn e81_a_missing_or_other_schema_becomes_an_empty_object_schema() {
        let empty = r#"{"type":"object","properties":{},"required":[]}"#;
        for schema in
            ["null", "7", "true", "[]", r#""x""#, r#"{"type":"string"}"#, r#"{"type":["object"]}"#]
        {
            let tool = format!(r#"{{"name":"a","inputSchema": {schema} ,"x":1.10}}"#);
            let expected = format!(r#"{{"name":"a","inputSchema": {empty} ,"x":1.10}}"#);
            assert_eq!(adapted(&tool), expected);
        }
        assert_eq!(adapted(r#"{"name":"a"}"#), format!(r#"{{"name":"a","inputSchema":{empty}}}"#));
    }

    /// E81: an object schema gets its missing members, and does not change otherwise.
    #[test]
    fn e81_an_object_schema_gets_properties_and_required() {
        for (schema, expected) in [
            (r#"{"type":"object"}"#, r#"{"type":"object","properties":{},"required":[]}"#),
            ("{}", r#"{"type":"object","properties":{},"required":[]}"#),
            (
                r#"{"type":"object","required":["a"] }"#,
                r#"{"type":"object","required":["a"] ,"properties":{}}"#,
            ),
            (r#"{"properties":{"a":{}}}"#, r#"{"properties":{"a":{}},"type":"object"}"#),
        ] {
            let tool = |schema: &str| format!(r#"{{"inputSchema":{schema},"name":"a"}}"#);
            assert_eq!(adapted(&tool(schema)), tool(expected));
        }
        for schema in [
            r#"{ "type" : "object", "properties" : {"a" : {"minimum":1.0}} }"#,
            r#"{"type":"object","properties":{},"required":[],"additionalProperties":false}"#,
        ] {
            let tool = format!(r#"{{"name":"a","inputSchema":{schema}}}"#);
            assert_eq!(adapted(&tool), tool);
        }
    }
}
