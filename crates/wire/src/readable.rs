//! Definitions that strict clients refuse: repaired where that changes nothing, else named.
//!
//! The clients of the official SDKs check a whole list at once, so one odd definition would take
//! away the tools of all servers of a merged list. Lists of one server stay byte for byte.

use bytes::Bytes;

use crate::{Raw, json::encode_string};

/// A definition as a merged list can have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readable {
    /// The definition as the server wrote it.
    AsItIs,
    /// The definition with meaningless members left out, or written as all clients read them.
    Repaired {
        /// The definition.
        raw: Bytes,
        /// The members that were changed, as paths.
        members: Vec<String>,
    },
    /// Not at all.
    Not {
        /// The member that cannot be repaired, as a path, with what is wrong.
        why: String,
    },
}

/// The lists whose definitions differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionKind {
    /// `tools`.
    Tool,
    /// `prompts`.
    Prompt,
    /// `resources`.
    Resource,
    /// `resourceTemplates`.
    Template,
}

/// Members that are texts in every definition.
const TEXTS: [&str; 3] = ["title", "description", "mimeType"];
/// Members that are objects in every definition.
const OBJECTS: [&str; 3] = ["annotations", "_meta", "execution"];
/// Hints of a tool, which are true or false.
const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/// Looks at one definition as strict clients do.
#[must_use]
pub fn readable(kind: DefinitionKind, raw: &Bytes) -> Readable {
    let mut repair = Repair::default();
    let mut out = match repair
        .object(Raw::new(raw), "", |repair, key, value| repair.member(kind, key, value))
    {
        Ok(out) => out,
        Err(why) => return Readable::Not { why },
    };
    let is_unnamed = kind == DefinitionKind::Resource || kind == DefinitionKind::Template;
    if is_unnamed && Raw::new(raw).get("name").and_then(Raw::as_str).is_none() {
        let key = if kind == DefinitionKind::Resource { "uri" } else { "uriTemplate" };
        if let Some(name) = Raw::new(raw).get(key) {
            repair.members.push("name".to_owned());
            out.pop();
            out.extend_from_slice(b",\"name\":");
            out.extend_from_slice(name.as_bytes());
            out.push(b'}');
        }
    }
    match repair.members.is_empty() {
        true => Readable::AsItIs,
        false => Readable::Repaired { raw: out.into(), members: repair.members },
    }
}

/// The treatment of a member.
enum Kept {
    AsItIs,
    Dropped,
    Changed(Vec<u8>),
}

#[derive(Default)]
struct Repair {
    members: Vec<String>,
}

impl Repair {
    /// An object whose members are looked at. The text is only used if a member was changed.
    fn object<'a>(
        &mut self,
        object: Raw<'a>,
        path: &str,
        mut look: impl FnMut(&mut Self, &str, Raw<'a>) -> Result<Kept, String>,
    ) -> Result<Vec<u8>, String> {
        let mut out = b"{".to_vec();
        for (key, value) in object.entries() {
            let changed;
            let kept = match look(self, &key, value)? {
                Kept::AsItIs => value.as_bytes(),
                Kept::Dropped => {
                    self.members.push(joined(path, &key));
                    continue;
                }
                Kept::Changed(text) => {
                    changed = text;
                    &changed
                }
            };
            if out.len() > 1 {
                out.push(b',');
            }
            out.extend_from_slice(&encode_string(&key));
            out.push(b':');
            out.extend_from_slice(kept);
        }
        out.push(b'}');
        Ok(out)
    }

    fn member(&mut self, kind: DefinitionKind, key: &str, value: Raw<'_>) -> Result<Kept, String> {
        match (kind, key) {
            (DefinitionKind::Resource | DefinitionKind::Template, "name") if !is_text(value) => {
                // The client names a resource without a name after its address.
                Ok(Kept::Dropped)
            }
            (_, "name" | "uri" | "uriTemplate") => Ok(Kept::AsItIs),
            (DefinitionKind::Tool, "inputSchema" | "outputSchema") => self.schema(key, value),
            (DefinitionKind::Prompt, "arguments") => self.arguments(value),
            (_, key) if TEXTS.contains(&key) && !is_text(value) => Ok(Kept::Dropped),
            (_, key) if OBJECTS.contains(&key) && !value.is_object() => Ok(Kept::Dropped),
            (DefinitionKind::Tool, "annotations") => self.annotations(value),
            (_, "icons") if !is_array(value) => Ok(Kept::Dropped),
            (DefinitionKind::Resource, "size") if !is_number(value) => Ok(Kept::Dropped),
            _ => Ok(Kept::AsItIs),
        }
    }

    /// A hint that is neither true nor false is no hint: its default is the careful one.
    fn annotations(&mut self, value: Raw<'_>) -> Result<Kept, String> {
        self.nested(value, "annotations", |_, key, value| {
            let is_odd = match key {
                "title" => !is_text(value),
                key if HINTS.contains(&key) => value.as_bool().is_none(),
                _ => false,
            };
            Ok(if is_odd { Kept::Dropped } else { Kept::AsItIs })
        })
    }

    /// A schema that is none of an object is made one where lists are merged; see
    /// [`crate::with_object_schema`].
    fn schema(&mut self, path: &str, value: Raw<'_>) -> Result<Kept, String> {
        if !value.is_object() {
            return Ok(Kept::Dropped);
        }
        self.nested(value, path, |repair, key, value| match key {
            "required" if !is_array_of(value, is_text) => Ok(Kept::Dropped),
            "properties" if value.is_object() => repair.properties(path, value),
            // Some languages write an empty object as an empty array.
            "properties" if is_null(value) || is_empty_array(value) => Ok(Kept::Dropped),
            "properties" => Err(format!("`{path}.properties` is no object")),
            _ => Ok(Kept::AsItIs),
        })
    }

    fn properties(&mut self, path: &str, value: Raw<'_>) -> Result<Kept, String> {
        let path = joined(path, "properties");
        self.nested(value, &path.clone(), |repair, key, value| {
            let schema: &[u8] = match value.as_bytes() {
                _ if value.is_object() => return Ok(Kept::AsItIs),
                b"true" | b"null" => b"{}",
                b"false" => br#"{"not":{}}"#,
                _ if is_empty_array(value) => b"{}",
                _ => return Err(format!("`{}` is no schema", joined(&path, key))),
            };
            repair.members.push(joined(&path, key));
            Ok(Kept::Changed(schema.to_vec()))
        })
    }

    fn arguments(&mut self, value: Raw<'_>) -> Result<Kept, String> {
        if is_null(value) || (value.is_object() && value.entries().is_empty()) {
            return Ok(Kept::Dropped);
        }
        if !is_array(value) {
            return Err("`arguments` is no array".to_owned());
        }
        let before = self.members.len();
        let mut items = Vec::new();
        for (index, item) in value.items().into_iter().enumerate() {
            let path = format!("arguments[{index}]");
            if item.get("name").and_then(Raw::as_str).is_none() {
                return Err(format!("`{path}` has no name"));
            }
            items.push(self.object(item, &path, |_, key, value| {
                let is_odd = match key {
                    "title" | "description" => !is_text(value),
                    "required" => value.as_bool().is_none(),
                    _ => false,
                };
                Ok(if is_odd { Kept::Dropped } else { Kept::AsItIs })
            })?);
        }
        if self.members.len() == before {
            return Ok(Kept::AsItIs);
        }
        Ok(Kept::Changed([&b"["[..], &items.join(&b","[..]), b"]"].concat()))
    }

    /// An object inside a definition, which stays byte for byte if no member of it was changed.
    fn nested<'a>(
        &mut self,
        object: Raw<'a>,
        path: &str,
        look: impl FnMut(&mut Self, &str, Raw<'a>) -> Result<Kept, String>,
    ) -> Result<Kept, String> {
        let before = self.members.len();
        let text = self.object(object, path, look)?;
        Ok(if self.members.len() == before { Kept::AsItIs } else { Kept::Changed(text) })
    }
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn is_null(value: Raw<'_>) -> bool {
    value.as_bytes() == b"null"
}

fn is_text(value: Raw<'_>) -> bool {
    value.as_bytes().first() == Some(&b'"')
}

fn is_number(value: Raw<'_>) -> bool {
    value.as_bytes().first().is_some_and(|first| first.is_ascii_digit() || *first == b'-')
}

fn is_array(value: Raw<'_>) -> bool {
    value.as_bytes().first() == Some(&b'[')
}

fn is_empty_array(value: Raw<'_>) -> bool {
    is_array(value) && value.items().is_empty()
}

fn is_array_of(value: Raw<'_>, is_one: fn(Raw<'_>) -> bool) -> bool {
    is_array(value) && value.items().into_iter().all(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(kind: DefinitionKind, text: &str) -> Readable {
        readable(kind, &Bytes::copy_from_slice(text.as_bytes()))
    }

    /// E81: meaningless members are left out, and all others stay as they were written.
    #[test]
    fn e81_odd_definitions_are_repaired_where_that_changes_nothing() {
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
            assert_eq!(readable(kind, &raw), Readable::AsItIs, "{fine}");
        }
    }

    /// E81: what has a meaning that cannot be known is not guessed.
    #[test]
    fn e81_a_definition_that_cannot_be_repaired_is_named() {
        for (text, named) in [
            (r#"{"name":"a","inputSchema":{"properties":["x"]}}"#, "inputSchema.properties"),
            (r#"{"name":"a","inputSchema":{"properties":"x"}}"#, "inputSchema.properties"),
            (r#"{"name":"a","inputSchema":{"properties":{"x":7}}}"#, "inputSchema.properties.x"),
        ] {
            let Readable::Not { why } = looked(DefinitionKind::Tool, text) else {
                panic!("{text}")
            };
            assert!(why.contains(named), "{why}");
        }
        let prompt = r#"{"name":"p","arguments":[{"description":"x"}]}"#;
        assert!(matches!(looked(DefinitionKind::Prompt, prompt), Readable::Not { .. }));
        let fine = r#"{"name":"a","inputSchema":{"type":"object","required":[]},"zz":null}"#;
        assert_eq!(looked(DefinitionKind::Tool, fine), Readable::AsItIs);
    }
}
