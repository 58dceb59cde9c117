//! JSON with everything that a person's text needs and a value tree drops: the order of keys, the
//! keys given twice, and the place of an error.

mod commented;
mod whole_pairs;

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

pub use self::{commented::without_comments, whole_pairs::with_whole_pairs};

/// More text than any honest configuration has.
pub const TEXT_MAX: usize = 4 << 20;

/// One JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number; one that no 64-bit integer holds is the nearest float.
    Number(serde_json::Number),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Node>),
    /// An object, with its keys in the order of the text; a key may be given twice.
    Object(Vec<(String, Node)>),
}

/// A place in a text, such as `servers.billing.args[2]`; by default the text as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(String);

/// Why a text is no JSON that could be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextProblem {
    /// More text than [`TEXT_MAX`].
    #[error("longer than {TEXT_MAX} bytes")]
    TooLong,
    /// No valid JSON.
    #[error("line {line}, column {column}: not valid JSON: {problem}")]
    Syntax {
        /// From 1.
        line: usize,
        /// From 1; 0 at the start of a line.
        column: usize,
        /// The parser's words.
        problem: String,
        /// The change that mends it.
        remedy: &'static str,
    },
}

impl Node {
    /// Reads a whole text.
    ///
    /// # Errors
    /// When it is too long or no JSON. Keys that are given twice are not looked for.
    pub fn parse(text: &[u8]) -> Result<Self, TextProblem> {
        if text.len() > TEXT_MAX {
            return Err(TextProblem::TooLong);
        }
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        serde_json::from_slice(text).map_err(|error| syntax(text, &error))
    }

    /// Reads a whole text of a file that a person has written: it may have comments, and commas
    /// behind the last element. Places of errors are those of the file.
    ///
    /// # Errors
    /// As for [`Node::parse`].
    pub fn parse_written(text: &[u8]) -> Result<Self, TextProblem> {
        if text.len() > TEXT_MAX {
            return Err(TextProblem::TooLong);
        }
        Self::parse(&without_comments(text))
    }

    /// The type of the value, for messages.
    #[must_use]
    pub fn found(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "an array",
            Self::Object(_) => "an object",
        }
    }

    /// The value as text: a string as it is, a number or boolean as it is written, the rest as
    /// JSON (E116).
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Number(number) => match number.as_f64() {
                // `1.0` is the number one; the languages these files come from write it `1`.
                Some(value) if number.is_f64() => value.to_string(),
                _ => number.to_string(),
            },
            Self::Text(text) => text.clone(),
            Self::List(_) | Self::Object(_) => self.to_value().to_string(),
        }
    }

    /// The node as a value tree, whose keys are in the order of their letters, so that equal trees
    /// have equal texts. If a key is given twice, the last value counts.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Number(number) => number.clone().into(),
            Self::Text(text) => text.as_str().into(),
            Self::List(nodes) => nodes.iter().map(Self::to_value).collect(),
            Self::Object(fields) => {
                let members = fields.iter().map(|(key, node)| (key.clone(), node.to_value()));
                // Maps keep the order in which they are filled, where some crate asks for that.
                members.collect::<BTreeMap<_, _>>().into_iter().collect()
            }
        }
    }

    /// The places of all keys that are given twice in one object: readers disagree on which counts.
    #[must_use]
    pub fn keys_given_twice(&self) -> Vec<Place> {
        let mut found = Vec::new();
        self.find_keys_given_twice(&Place::default(), &mut found);
        found
    }

    fn find_keys_given_twice(&self, place: &Place, found: &mut Vec<Place>) {
        match self {
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) => {}
            Self::List(nodes) => {
                for (index, node) in nodes.iter().enumerate() {
                    node.find_keys_given_twice(&place.index(index), found);
                }
            }
            Self::Object(fields) => {
                let mut seen = std::collections::HashSet::new();
                for (key, node) in fields {
                    let inside = place.key(key);
                    if seen.insert(key) {
                        node.find_keys_given_twice(&inside, found);
                    } else {
                        found.push(inside);
                    }
                }
            }
        }
    }
}

/// The value of `key`, where null means absent.
#[must_use]
pub fn field<'n>(fields: &'n [(String, Node)], key: &str) -> Option<&'n Node> {
    let (_, node) = fields.iter().find(|(name, _)| name == key)?;
    (*node != Node::Null).then_some(node)
}

impl Place {
    /// The place of a top-level key, written as it is.
    #[must_use]
    pub fn root(key: &str) -> Self {
        Self(key.to_owned())
    }

    /// The place of `key` in the object at this place.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
        let short = shortened(key);
        if key.is_empty() || !key.chars().all(plain) {
            Self(format!("{}[{short:?}]", self.0))
        } else if self.0.is_empty() {
            Self(short)
        } else {
            Self(format!("{}.{short}", self.0))
        }
    }

    /// True if this place is `outer` or inside it.
    #[must_use]
    pub fn is_within(&self, outer: &Self) -> bool {
        let rest = self.0.strip_prefix(&outer.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }

    /// The place of one element of the array at this place.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// At most the first 100 characters: names in messages come from files of any making.
#[must_use]
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(100) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn syntax(text: &[u8], error: &serde_json::Error) -> TextProblem {
    let (line, column) = (error.line(), error.column());
    let problem = error.to_string();
    let problem = problem.split(" at line ").next().unwrap_or_default().to_owned();
    let remedy = remedy(at(text, line, column), &problem, error.is_eof());
    TextProblem::Syntax { line, column, problem, remedy }
}

/// The byte that the parser stumbled over.
fn at(text: &[u8], line: usize, column: usize) -> Option<u8> {
    let line = text.split(|byte| *byte == b'\n').nth(line.checked_sub(1)?)?;
    line.get(column.checked_sub(1)?).copied()
}

fn remedy(byte: Option<u8>, problem: &str, is_end: bool) -> &'static str {
    match byte {
        _ if is_end => "the text ends too early: close all quotes, brackets and braces",
        Some(b'/' | b'#') => "remove it: JSON has no such comment",
        Some(b'\'') => "write strings in double quotes",
        _ if problem.contains("trailing comma") => "remove the comma after the last element",
        _ if problem.contains("recursion") => "use fewer levels",
        _ if problem.contains("key must be a string") => "write each key in double quotes",
        _ if problem.contains("trailing characters") => "keep one object and nothing after it",
        _ if problem.contains("unicode") => "save the file as UTF-8",
        _ => "correct the text at this place",
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        // The parser itself refuses what no finite number can hold.
        Ok(serde_json::Number::from_f64(value).map_or(Node::Null, Node::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element()? {
            nodes.push(node);
        }
        Ok(Node::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Node::Object(fields))
    }
}

/// Applies a JSON Merge Patch (RFC 7396) to a document: members replace members, and null removes
/// one.
#[must_use]
pub fn merged(target: Value, patch: Value) -> Value {
    let Value::Object(patch) = patch else { return patch };
    let mut fields = match target {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    for (key, change) in patch {
        if change.is_null() {
            fields.remove(&key);
        } else {
            let before = fields.remove(&key).unwrap_or_default();
            fields.insert(key, merged(before, change));
        }
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The examples of RFC 7396, appendix A.
    #[test]
    fn o36_the_examples_of_the_rfc() {
        let table = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ];
        for (target, patch, result) in table {
            assert_eq!(merged(target.clone(), patch.clone()), result, "{target} {patch}");
        }
    }
}
