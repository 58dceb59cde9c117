//! The parts of a tool's arguments that are fields, by the tool's input schema.
//!
//! A [`Part`] is one field. Objects are taken apart, and what cannot be a field is one part that
//! stays JSON. A part is read from its text alone, so that a form works without a script.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Number of objects inside each other that are taken apart.
const DEPTH_MAX: usize = 6;
/// Number of fields of a form. Further parts stay in the JSON alone.
pub(super) const PARTS_MAX: usize = 80;
/// Number of options of a choice.
const OPTIONS_MAX: usize = 200;
/// Number of references that are followed for one part.
const REFERENCES_MAX: usize = 8;
/// Number of bytes of the hash in the name of a field.
const NAME_BYTES: usize = 6;

/// A part of the arguments that is a field.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    /// The keys that lead to the part.
    pub(super) keys: Vec<String>,
    pub(super) kind: Kind,
    pub(super) is_required: bool,
    /// The description in the schema.
    pub(super) about: String,
    /// The value that the server takes without one, as the schema says.
    pub(super) default: Option<Value>,
}

/// The way in which a part is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Text,
    /// A number; a whole one if true.
    Number(bool),
    Bool,
    /// One of these values.
    Options(Vec<Value>),
    /// A list with one item a line.
    Lines(Box<Kind>),
    /// One of several shapes.
    Shapes(Shapes),
    /// JSON, with the reason.
    Json(&'static str),
}

/// The shapes that a part can have.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shapes {
    /// The words of each, and the value that it begins with.
    pub(super) all: Vec<(String, Value)>,
    /// The one that the value has.
    pub(super) has: Option<usize>,
}

/// The shapes that a person has chosen, by the name of the field.
pub(super) type Chosen = BTreeMap<String, String>;

/// The name of the field of a part: other keys have other names.
pub(super) fn name_of(keys: &[String]) -> String {
    let mut hash = Sha256::new();
    for key in keys {
        hash.update(key.len().to_be_bytes());
        hash.update(key);
    }
    let digits = hash.finalize();
    let digits = digits.iter().take(NAME_BYTES).map(|byte| format!("{byte:02x}"));
    format!("v{}", digits.collect::<String>())
}

/// The parts of a value by a schema.
pub(super) fn parts(schema: &Value, value: &Value, chosen: &Chosen) -> Vec<Part> {
    let mut walk = Walk { root: schema, value, chosen, parts: Vec::new() };
    walk.object(schema, &[], 0);
    walk.parts
}

/// The arguments that a form begins with: the defaults of the schema.
pub(super) fn beginning(schema: &Value) -> Value {
    let mut start = Value::Object(Map::new());
    for part in parts(schema, &Value::Null, &Chosen::new()) {
        if let Some(default) = part.default {
            put(&mut start, &part.keys, Some(default));
        }
    }
    start
}

struct Walk<'s> {
    root: &'s Value,
    value: &'s Value,
    chosen: &'s Chosen,
    parts: Vec<Part>,
}

impl<'s> Walk<'s> {
    fn object(&mut self, schema: &'s Value, keys: &[String], depth: usize) {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required =
            |key: &str| required.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(key)));
        let members = schema.get("properties").and_then(Value::as_object);
        // An empty key stands for the place itself.
        let members = members.into_iter().flatten().filter(|(key, _)| !key.is_empty());
        for (key, member) in members {
            if self.parts.len() >= PARTS_MAX {
                return;
            }
            let keys = [keys, std::slice::from_ref(key)].concat();
            self.member(member, keys, is_required(key), depth);
        }
    }

    fn member(&mut self, schema: &'s Value, keys: Vec<String>, is_required: bool, depth: usize) {
        let about = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let part = |kind| Part {
            kind,
            is_required,
            about: about.to_owned(),
            default: schema.get("default").cloned(),
            keys: keys.clone(),
        };
        let Some(schema) = self.plain(schema) else {
            return self.parts.push(part(Kind::Json("its reference leads nowhere")));
        };
        if let Some(shapes) = several(schema) {
            return self.shapes(shapes, part(Kind::Text), depth);
        }
        if is_of(schema, "object") && has_members(schema) {
            if depth >= DEPTH_MAX {
                return self.parts.push(part(Kind::Json("it has too many levels for a form")));
            }
            return self.object(schema, &keys, depth + 1);
        }
        let kind = self.kind(schema);
        self.parts.push(part(kind));
    }

    /// A part that has one of several shapes, and the parts of the shape that it has.
    fn shapes(&mut self, shapes: &'s [Value], mut part: Part, depth: usize) {
        let plain: Vec<&'s Value> = shapes.iter().filter_map(|one| self.plain(one)).collect();
        let constants: Option<Vec<_>> = plain.iter().map(|one| one.get("const").cloned()).collect();
        if let Some(constants) = constants.filter(|_| plain.len() == shapes.len()) {
            part.kind = Kind::Options(constants);
            return self.parts.push(part);
        }
        if depth >= DEPTH_MAX || plain.len() != shapes.len() || plain.len() > OPTIONS_MAX {
            part.kind = Kind::Json("it has shapes that cannot be told apart");
            return self.parts.push(part);
        }
        let words = |(index, one): (usize, &&Value)| {
            let title = one.get("title").and_then(Value::as_str).map(str::to_owned);
            let word = title.unwrap_or_else(|| format!("shape {} ({})", index + 1, kind_word(one)));
            (word, start_of(one))
        };
        let all: Vec<_> = plain.iter().enumerate().map(words).collect();
        let (keys, is_required) = (part.keys.clone(), part.is_required);
        let has = at(self.value, &keys).and_then(|value| fitting(&plain, value));
        let chosen = self.chosen.get(&name_of(&keys));
        let chosen = chosen.and_then(|text| text.parse::<usize>().ok()).or(has);
        part.kind = Kind::Shapes(Shapes { all, has });
        self.parts.push(part);
        let Some(shape) = chosen.and_then(|index| plain.get(index).copied()) else { return };
        if is_of(shape, "object") && has_members(shape) {
            self.object(shape, &keys, depth + 1);
        } else if shape.get("const").is_none() {
            // An empty key: the value of the shape stands at the place of the part itself.
            let keys = [keys, vec![String::new()]].concat();
            let kind = self.kind(shape);
            let about = "the value of this shape".to_owned();
            self.parts.push(Part { keys, kind, is_required, about, default: None });
        }
    }

    fn kind(&self, schema: &'s Value) -> Kind {
        if let Some(options) = schema.get("enum").and_then(Value::as_array) {
            return match options.len() {
                0..=OPTIONS_MAX => Kind::Options(options.clone()),
                _ => Kind::Json("it has too many options"),
            };
        }
        if let Some(only) = schema.get("const") {
            return Kind::Options(vec![only.clone()]);
        }
        match kind_word(schema) {
            "string" => Kind::Text,
            "number" => Kind::Number(false),
            "integer" => Kind::Number(true),
            "boolean" => Kind::Bool,
            "array" => self.list(schema),
            "object" => Kind::Json("its members have no names in the schema"),
            _ => Kind::Json("the schema does not say what it is"),
        }
    }

    fn list(&self, schema: &'s Value) -> Kind {
        let items = schema.get("items").and_then(|items| self.plain(items));
        let Some(items) = items.filter(|items| several(items).is_none()) else {
            return Kind::Json("the items of the list have several shapes");
        };
        if is_of(items, "array") {
            return Kind::Json("the items of the list are lists");
        }
        match self.kind(items) {
            Kind::Json(_) | Kind::Lines(_) | Kind::Shapes(_) => {
                Kind::Json("the items of the list have parts of their own")
            }
            item => Kind::Lines(Box::new(item)),
        }
    }

    /// The schema behind references inside of the document, and without a further `null`.
    fn plain(&self, schema: &'s Value) -> Option<&'s Value> {
        let mut schema = schema;
        for _ in 0..REFERENCES_MAX {
            if let Some(place) = schema.get("$ref").and_then(Value::as_str) {
                schema = self.root.pointer(place.strip_prefix('#')?)?;
            } else if let Some(only) = several(schema).and_then(only_but_null) {
                schema = only;
            } else {
                return Some(schema);
            }
        }
        None
    }
}

/// The shapes of a schema that has several.
fn several(schema: &Value) -> Option<&[Value]> {
    let all = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array)?;
    (!all.is_empty()).then_some(all.as_slice())
}

/// The only shape beside `null`.
fn only_but_null(all: &[Value]) -> Option<&Value> {
    let mut rest = all.iter().filter(|one| kind_word(one) != "null");
    let first = rest.next()?;
    rest.next().is_none().then_some(first)
}

/// The first type of a schema that is not `null`, or that of its constant.
fn kind_word(schema: &Value) -> &str {
    let of_value = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    match schema.get("type") {
        Some(Value::String(word)) => word,
        Some(Value::Array(words)) => {
            let mut words = words.iter().filter_map(Value::as_str);
            words.find(|word| *word != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ if schema.get("items").is_some() => "array",
        _ => schema.get("const").map_or("", of_value),
    }
}

fn is_of(schema: &Value, word: &str) -> bool {
    kind_word(schema) == word
}

fn has_members(schema: &Value) -> bool {
    let members = schema.get("properties").and_then(Value::as_object);
    members.is_some_and(|members| !members.is_empty())
}

/// The value that a chosen shape begins with: the members that tell it from the others.
fn start_of(schema: &Value) -> Value {
    if let Some(only) = schema.get("const") {
        return only.clone();
    }
    if !is_of(schema, "object") {
        return Value::Null;
    }
    let members = schema.get("properties").and_then(Value::as_object);
    let fixed = members.into_iter().flatten();
    let fixed = fixed.filter_map(|(key, one)| Some((key.clone(), one.get("const")?.clone())));
    Value::Object(fixed.collect())
}

/// The number of the first shape that a value may have.
fn fitting(shapes: &[&Value], value: &Value) -> Option<usize> {
    shapes.iter().position(|shape| match value {
        Value::Object(members) => {
            let required = shape.get("required").and_then(Value::as_array);
            let has = |key: &Value| key.as_str().is_some_and(|key| members.contains_key(key));
            let Value::Object(fixed) = start_of(shape) else { return false };
            required.is_none_or(|all| all.iter().all(has))
                && fixed.iter().all(|(key, value)| members.get(key) == Some(value))
        }
        Value::Number(_) => matches!(kind_word(shape), "number" | "integer"),
        Value::String(_) => is_of(shape, "string"),
        Value::Bool(_) => is_of(shape, "boolean"),
        Value::Array(_) => is_of(shape, "array"),
        Value::Null => is_of(shape, "null"),
    })
}

/// The value at a place. An empty key stands for the place itself.
pub(super) fn at<'v>(value: &'v Value, keys: &[String]) -> Option<&'v Value> {
    let mut found = value;
    for key in keys.iter().filter(|key| !key.is_empty()) {
        found = found.get(key)?;
    }
    Some(found)
}

/// Sets or removes the value at a place, with the objects around it.
pub(super) fn put(value: &mut Value, keys: &[String], new: Option<Value>) {
    let keys: Vec<_> = keys.iter().filter(|key| !key.is_empty()).collect();
    let Some((last, path)) = keys.split_last() else { return };
    let mut place = value;
    for key in path {
        if !place.is_object() {
            if new.is_none() {
                return;
            }
            *place = Value::Object(Map::new());
        }
        let Value::Object(members) = place else { return };
        place = members.entry((*key).clone()).or_insert(Value::Null);
    }
    if !place.is_object() {
        *place = Value::Object(Map::new());
    }
    let Value::Object(members) = place else { return };
    match new {
        Some(new) => drop(members.insert((*last).clone(), new)),
        None => drop(members.remove(*last)),
    }
}

#[cfg(test)]
mod tests;
