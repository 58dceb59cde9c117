//! Changes one member of an object inside a JSON text. Every other byte stays, also the author's
//! comments.
//!
//! Expects a text that the configuration's reader has accepted, so each key occurs once.

use std::{borrow::Cow, fmt, ops::Range};

use narthex_model::json::without_comments;

use serde::{
    Deserializer as _,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Indentation of one level where the text itself does not show any.
const INDENT: &str = "  ";

/// The reason why a text cannot be changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum TextError {
    /// The text is not the expected JSON. The reader of the whole text gives a better error.
    #[error(transparent)]
    Syntax(#[from] serde_json::Error),
    /// A value other than an object is in an object's place.
    #[error("`{at}` is not an object")]
    NotAnObject {
        /// The place, such as `mcp.servers`.
        at: String,
    },
}

/// The lines of an entry in its file, from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryLines {
    /// The line of the entry's name.
    pub line: usize,
    /// The line of each key of the entry, in the order of the file.
    pub keys: Vec<(String, usize)>,
}

/// One key with its value, as places in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    key: String,
    /// Offset of the quoted key.
    start: usize,
    value: Range<usize>,
}

/// The text of the value at `path`, if there is one.
pub(super) fn get<'t>(text: &'t str, path: &[&str]) -> Result<Option<&'t str>, TextError> {
    Ok(find(text, path)?.map(|value| &text[value]))
}

/// The keys of the object at `path`; empty if there is no such object.
pub(super) fn keys(text: &str, path: &[&str]) -> Result<Vec<String>, TextError> {
    let Some(object) = find(text, path)? else { return Ok(Vec::new()) };
    if !is_object(text, &object) {
        return Err(TextError::NotAnObject { at: path.join(".") });
    }
    Ok(members(&plain(text), &object)?.into_iter().map(|member| member.key).collect())
}

/// The number of the line of the member at `path`, and the lines of the keys of its value. `None`
/// if there is no such member.
pub(super) fn lines(text: &str, path: &[&str]) -> Result<Option<EntryLines>, TextError> {
    let Some((key, parents)) = path.split_last() else { return Ok(None) };
    let Some(object) = find(text, parents)?.filter(|object| is_object(text, object)) else {
        return Ok(None);
    };
    let bare = plain(text);
    let all = members(&bare, &object)?;
    let Some(member) = all.into_iter().find(|member| member.key == *key) else {
        return Ok(None);
    };
    let keys = match is_object(text, &member.value) {
        true => members(&bare, &member.value)?,
        false => Vec::new(),
    };
    let keys = keys.into_iter().map(|one| (one.key, line_of(text, one.start))).collect();
    Ok(Some(EntryLines { line: line_of(text, member.start), keys }))
}

/// The number of the line in which `at` is, from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// The text with `value` at `path`; missing objects on the way are created.
pub(super) fn set(text: &str, path: &[&str], value: &str) -> Result<String, TextError> {
    let Some((key, parents)) = path.split_last() else { return Ok(value.to_owned()) };
    let Some(object) = find(text, parents)? else {
        let text = set(text, parents, "{}")?;
        return set(&text, path, value);
    };
    if !is_object(text, &object) {
        return Err(TextError::NotAnObject { at: parents.join(".") });
    }
    let members = members(&plain(text), &object)?;
    match members.iter().find(|member| member.key == *key) {
        Some(member) => {
            let value = indented(text, value, line_indent(text, member.start));
            Ok(splice(text, member.value.clone(), &value))
        }
        None => Ok(insert(text, &object, &members, key, value)),
    }
}

/// The text without the member at `path`; `None` if there is no such member.
pub(super) fn remove(text: &str, path: &[&str]) -> Result<Option<String>, TextError> {
    let Some((key, parents)) = path.split_last() else { return Ok(None) };
    let Some(object) = find(text, parents)?.filter(|object| is_object(text, object)) else {
        return Ok(None);
    };
    let members = members(&plain(text), &object)?;
    let Some(index) = members.iter().position(|member| member.key == *key) else {
        return Ok(None);
    };
    let member = &members[index];
    let gone = match (index.checked_sub(1), members.get(index + 1)) {
        (Some(before), _) => members[before].value.end..member.value.end,
        (None, Some(after)) => member.start..after.start,
        (None, None) => object.start + 1..object.end - 1,
    };
    Ok(Some(splice(text, gone, "")))
}

fn insert(text: &str, object: &Range<usize>, members: &[Member], key: &str, value: &str) -> String {
    let key = serde_json::Value::from(key).to_string();
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let Some(last) = members.last() else {
        let outer = line_indent(text, object.start);
        let inner = format!("{outer}{}", unit(text));
        let value = indented(text, value, &inner);
        let inside = format!("{newline}{inner}{key}: {value}{newline}{outer}");
        // Comments stay.
        let begin = object.start + 1;
        let kept = text[begin..object.end - 1].trim_end().len();
        return splice(text, begin + kept..object.end - 1, &inside);
    };
    let at = last.value.end..last.value.end;
    if starts_its_line(text, last.start) {
        let indent = line_indent(text, last.start);
        let value = indented(text, value, indent);
        return splice(text, at, &format!(",{newline}{indent}{key}: {value}"));
    }
    let value = indented(text, value, line_indent(text, last.start));
    splice(text, at, &format!(", {key}: {value}"))
}

/// The place of the value at `path`; for an empty path, the place of the whole text.
fn find(text: &str, path: &[&str]) -> Result<Option<Range<usize>>, TextError> {
    let text = plain(text);
    let whole: &RawValue = serde_json::from_str(&text)?;
    let mut place = place_of(&text, whole.get());
    for (depth, key) in path.iter().enumerate() {
        if !is_object(&text, &place) {
            return Err(TextError::NotAnObject { at: path[..depth].join(".") });
        }
        let Some(member) = members(&text, &place)?.into_iter().find(|member| member.key == *key)
        else {
            return Ok(None);
        };
        place = member.value;
    }
    Ok(Some(place))
}

/// The text without comments, in which all places are the same.
fn plain(text: &str) -> Cow<'_, str> {
    match without_comments(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        // Only whole characters were replaced by blanks.
        Cow::Owned(plain) => String::from_utf8(plain).map_or(Cow::Borrowed(text), Cow::Owned),
    }
}

fn is_object(text: &str, place: &Range<usize>) -> bool {
    text[place.clone()].starts_with('{')
}

/// The members of the object at `object`, in their order.
fn members(text: &str, object: &Range<usize>) -> Result<Vec<Member>, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(&text[object.clone()]);
    let pairs = reader.deserialize_map(PairsVisitor)?;
    let mut members = Vec::with_capacity(pairs.len());
    let mut end = object.start + 1;
    for (key, value) in pairs {
        let value = place_of(text, value);
        // Between two values are white space, a comma, white space, and the key.
        let skipped = text[end..].find('"').unwrap_or_default();
        members.push(Member { key, start: end + skipped, value: value.clone() });
        end = value.end;
    }
    Ok(members)
}

/// The range of `part`, a slice of `text`, in `text`.
fn place_of(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

fn splice(text: &str, place: Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..place.start], &text[place.end..])
}

/// White space at the start of the line in which `at` is.
fn line_indent(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..];
    let end = line.find(|c: char| !matches!(c, ' ' | '\t')).unwrap_or(line.len());
    &line[..end]
}

fn starts_its_line(text: &str, at: usize) -> bool {
    let before = &text[..at];
    before.rfind('\n').is_some_and(|end| before[end + 1..].trim().is_empty())
}

/// Indentation of one level in this text.
fn unit(text: &str) -> &str {
    let indents = text.lines().map(|line| &line[..line.len() - line.trim_start().len()]);
    indents.filter(|indent| !indent.is_empty()).min_by_key(|indent| indent.len()).unwrap_or(INDENT)
}

/// A value of several lines, indented for its new place. A JSON string never contains a line break,
/// so only white space changes.
fn indented(text: &str, value: &str, indent: &str) -> String {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let lines: Vec<&str> = value.lines().collect();
    lines.join(&format!("{newline}{indent}"))
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Vec<(String, &'de str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
            pairs.push((key, value.get()));
        }
        Ok(pairs)
    }
}

#[cfg(test)]
mod tests;
