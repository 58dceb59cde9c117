//! Repairs or names definitions that strict clients refuse. A repair never changes the meaning.
//!
//! Clients of the official SDKs check a whole list at once: one odd definition would hide the tools
//! of all servers of a merged list. Lists of one server stay byte for byte.

use bytes::Bytes;
use narthex_model::Timestamp;

use crate::{Raw, json::encode_string};

/// A definition in the form for a merged list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readable {
    /// The server's own text can be used.
    AsItIs,
    /// The definition, repaired: meaningless members are left out, or written in the common form.
    Repaired {
        /// The definition.
        raw: Bytes,
        /// Paths of the changed members.
        members: Vec<String>,
    },
    /// The definition cannot be used.
    Not {
        /// Path of the member that cannot be repaired, and its fault.
        why: String,
    },
}

/// The kind of a definition, by the list that it is in.
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

/// Checks one definition as strict clients do. `compiles` returns true if a client can compile an
/// output schema; other schemas are left out.
#[must_use]
pub fn readable(kind: DefinitionKind, raw: &Bytes, compiles: impl Fn(Raw<'_>) -> bool) -> Readable {
    let mut repair = Repair::default();
    let repaired = repair.object(Raw::new(raw), "", |repair, key, value| match (kind, key) {
        (DefinitionKind::Tool, "outputSchema") => Ok(repair.output(value, &compiles)),
        _ => repair.member(kind, key, value),
    });
    let mut out = match repaired {
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
            (DefinitionKind::Tool, "inputSchema") => self.schema(key, value),
            (DefinitionKind::Prompt, "arguments") => self.arguments(value),
            (_, key) if TEXTS.contains(&key) && !is_text(value) => Ok(Kept::Dropped),
            (_, key) if OBJECTS.contains(&key) && !value.is_object() => Ok(Kept::Dropped),
            (DefinitionKind::Tool, "annotations") => self.without(value, key, is_odd_hint),
            (DefinitionKind::Tool, "execution") => self.without(value, key, |key, value| {
                key == "taskSupport" && !is_one_of(value, &["required", "optional", "forbidden"])
            }),
            (DefinitionKind::Resource | DefinitionKind::Template, "annotations") => {
                self.without(value, key, is_odd_annotation)
            }
            (_, "icons") => self.icons(value),
            (DefinitionKind::Resource, "size") if !is_number(value) => Ok(Kept::Dropped),
            _ => Ok(Kept::AsItIs),
        }
    }

    /// An object without the members that are odd.
    fn without(
        &mut self,
        value: Raw<'_>,
        path: &str,
        is_odd: fn(&str, Raw<'_>) -> bool,
    ) -> Result<Kept, String> {
        self.nested(value, path, |_, key, value| {
            Ok(if is_odd(key, value) { Kept::Dropped } else { Kept::AsItIs })
        })
    }

    /// Icons are for people: without an address in each there are none.
    fn icons(&mut self, value: Raw<'_>) -> Result<Kept, String> {
        let icons = if is_array(value) { value.items() } else { return Ok(Kept::Dropped) };
        if !icons.iter().all(|icon| icon.get("src").is_some_and(is_text)) {
            return Ok(Kept::Dropped);
        }
        self.array("icons", icons, |key, value| match key {
            "mimeType" => !is_text(value),
            "sizes" => !is_array_of(value, is_text),
            "theme" => !is_one_of(value, &["light", "dark"]),
            _ => false,
        })
    }

    /// An output schema that clients cannot compile is left out: they then check no result.
    fn output(&mut self, value: Raw<'_>, compiles: &dyn Fn(Raw<'_>) -> bool) -> Kept {
        let before = self.members.len();
        let kept = match self.schema("outputSchema", value) {
            Ok(Kept::AsItIs) if compiles(value) => return Kept::AsItIs,
            Ok(Kept::Changed(text)) if compiles(Raw::new(&text)) => return Kept::Changed(text),
            Ok(_) | Err(_) => Kept::Dropped,
        };
        self.members.truncate(before);
        kept
    }

    /// A schema that does not describe an object is replaced in merged lists; see
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
            "properties" => Err(format!("`{path}.properties` is not an object")),
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
                _ => return Err(format!("`{}` is not a schema", joined(&path, key))),
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
            return Err("`arguments` is not an array".to_owned());
        }
        let arguments = value.items();
        let is_unnamed = |item: &Raw<'_>| item.get("name").and_then(Raw::as_str).is_none();
        if let Some(index) = arguments.iter().position(is_unnamed) {
            return Err(format!("`arguments[{index}]` has no name"));
        }
        self.array("arguments", arguments, |key, value| match key {
            "title" | "description" => !is_text(value),
            "required" => value.as_bool().is_none(),
            _ => false,
        })
    }

    /// An array of objects, each without the members that are odd.
    fn array(
        &mut self,
        path: &str,
        items: Vec<Raw<'_>>,
        is_odd: fn(&str, Raw<'_>) -> bool,
    ) -> Result<Kept, String> {
        let before = self.members.len();
        let mut kept = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            kept.push(self.object(item, &format!("{path}[{index}]"), |_, key, value| {
                Ok(if is_odd(key, value) { Kept::Dropped } else { Kept::AsItIs })
            })?);
        }
        if self.members.len() == before {
            return Ok(Kept::AsItIs);
        }
        Ok(Kept::Changed([&b"["[..], &kept.join(&b","[..]), b"]"].concat()))
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

/// A hint that is neither true nor false is no hint: its default is the careful one.
fn is_odd_hint(key: &str, value: Raw<'_>) -> bool {
    match key {
        "title" => !is_text(value),
        key if HINTS.contains(&key) => value.as_bool().is_none(),
        _ => false,
    }
}

/// True if clients refuse an annotation of a resource or a template.
fn is_odd_annotation(key: &str, value: Raw<'_>) -> bool {
    match key {
        "audience" => !is_array_of(value, |one| is_one_of(one, &["user", "assistant"])),
        "priority" => !is_fraction(value),
        "lastModified" => value.as_str().is_none_or(|text| Timestamp::parse(&text).is_none()),
        _ => false,
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

/// True if a value is a number from 0 to 1.
fn is_fraction(value: Raw<'_>) -> bool {
    is_number(value) && value.parse::<f64>().is_ok_and(|number| (0.0..=1.0).contains(&number))
}

fn is_one_of(value: Raw<'_>, words: &[&str]) -> bool {
    value.as_str().is_some_and(|word| words.contains(&&*word))
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
mod tests;
