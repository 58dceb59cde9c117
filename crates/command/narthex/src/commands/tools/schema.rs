//! The input schema of a tool, for people: its arguments, and values that fit them.
//!
//! A server can write any schema, so the work and the texts of one are bounded.

mod bounds;
mod fitting;

use std::{collections::HashSet, ptr};

use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::{Map, Value, json};

pub(super) use self::bounds::literal;
use self::{
    bounds::{Bounds, CUT, behind, shortened},
    fitting::{REPEATED, bound, number, text},
};

/// Maximum number of schemas inside each other: references can lead in a circle.
const DEPTH: usize = 8;
/// Maximum number of values or members that one type names.
const SHOWN: usize = 20;
/// The type of a value without a type.
const ANY: &str = "any";
/// Keys by which a schema takes arguments that it does not name.
const OPEN: [&str; 11] = [
    "$dynamicRef",
    "additionalProperties",
    "anyOf",
    "dependentSchemas",
    "if",
    "minProperties",
    "not",
    "oneOf",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
];

/// One argument of a tool.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Argument {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) is_required: bool,
    pub(super) description: String,
    pub(super) default: Option<Value>,
}

/// The input schema of a tool.
#[derive(Debug)]
pub(super) struct InputSchema<'s> {
    root: &'s Value,
    bounds: Bounds,
}

/// Values for the required arguments of a tool.
#[derive(Debug)]
pub(super) struct Example {
    pub(super) values: Map<String, Value>,
    /// False if a value was shortened, or may not fit its schema.
    pub(super) is_fitting: bool,
}

/// A member of an object.
struct Member<'s> {
    name: &'s str,
    schema: &'s Value,
    is_required: bool,
}

impl<'s> InputSchema<'s> {
    pub(super) fn new(schema: Option<&'s Value>) -> Self {
        Self { root: schema.unwrap_or(&Value::Null), bounds: Bounds::default() }
    }

    /// The arguments, required ones first.
    pub(super) fn arguments(&self) -> Vec<Argument> {
        self.bounds.renew();
        let members = members(&self.parts(self.root));
        let mut all: Vec<_> = members.iter().map(|one| self.argument(one)).collect();
        all.sort_by_key(|one| !one.is_required);
        all
    }

    /// True if a tool whose schema names no argument may take some.
    pub(super) fn is_open(&self) -> bool {
        self.bounds.renew();
        let is_set = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
        let leads_nowhere =
            |part: &'s Value| part.get("$ref").is_some() && self.target(part).is_none();
        let parts = self.parts(self.root);
        let is_open = parts.iter().any(|&part| {
            leads_nowhere(part) || OPEN.iter().any(|key| part.get(key).is_some_and(is_set))
        });
        is_open || self.bounds.is_missed()
    }

    /// A value for each required argument.
    pub(super) fn example(&self) -> Example {
        self.bounds.renew();
        let values = self.required(&members(&self.parts(self.root)), DEPTH);
        Example { values, is_fitting: !self.bounds.is_missed() }
    }

    fn argument(&self, member: &Member<'s>) -> Argument {
        let schema = member.schema;
        let description = self.fact(schema, "description").as_str().unwrap_or_default();
        let default = self.fact(schema, "default");
        Argument {
            name: member.name.to_owned(),
            kind: self.kind(schema, DEPTH),
            is_required: member.is_required,
            description: match self.bounds.spend(description.len()) {
                true => description.to_owned(),
                false => shortened(description),
            },
            default: (!default.is_null())
                .then(|| self.copied(default).unwrap_or_else(|| literal(default).into())),
        }
    }

    /// The schema to which the reference of one leads inside of the document.
    fn target(&self, schema: &'s Value) -> Option<&'s Value> {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        let pointer = percent_decode_str(pointer).decode_utf8().ok()?;
        self.root.pointer(&pointer)
    }

    /// The schema at the end of references; any other one as it is. One without an end is empty.
    fn resolved(&self, schema: &'s Value) -> &'s Value {
        let mut last = schema;
        for _ in 0..DEPTH {
            match self.target(last) {
                Some(next) => last = next,
                None => return last,
            }
        }
        &Value::Null
    }

    /// A schema with those that it refers to, and the parts of `allOf` of each.
    fn parts(&self, schema: &'s Value) -> Vec<&'s Value> {
        let mut parts = Vec::new();
        self.collect(schema, DEPTH, &mut parts);
        parts
    }

    fn collect(&self, schema: &'s Value, depth: usize, parts: &mut Vec<&'s Value>) {
        // A reference in a circle leads to a schema that is there already.
        if parts.iter().any(|part| ptr::eq(*part, schema)) {
            return;
        }
        let Some(depth) = self.bounds.deeper(depth) else {
            self.bounds.miss();
            return;
        };
        parts.push(schema);
        let all = schema.get("allOf").and_then(Value::as_array);
        for part in self.target(schema).into_iter().chain(all.into_iter().flatten()) {
            self.collect(part, depth, parts);
        }
    }

    /// The members of an object inside of the schema, which count as work.
    fn members_of(&self, schema: &'s Value) -> Vec<Member<'s>> {
        let parts = self.parts(schema);
        let count = |value: Option<&Value>| match value {
            Some(Value::Array(all)) => all.len(),
            Some(Value::Object(all)) => all.len(),
            _ => 0,
        };
        let counts = parts
            .iter()
            .map(|part| count(part.get("properties")).saturating_add(count(part.get("required"))));
        self.bounds.work(counts.sum());
        members(&parts)
    }

    /// A fact of a schema, or else of the schema that it refers to.
    fn fact(&self, schema: &'s Value, key: &str) -> &'s Value {
        let own = schema.get(key).or_else(|| self.resolved(schema).get(key));
        own.unwrap_or(&Value::Null)
    }

    /// The type of a value, in words.
    fn kind(&self, schema: &'s Value, depth: usize) -> String {
        let Some(depth) = self.bounds.deeper(depth) else { return ANY.to_owned() };
        let schema = self.resolved(schema);
        if let Some(value) = schema.get("const") {
            return self.bounds.word(literal(value));
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let value = |value: &Value| self.bounds.word(literal(value));
            return format!("one of {}", joined(values, ", ", value));
        }
        if let Some(several) = alternatives(schema) {
            return joined(several, " or ", |one| self.kind(one, depth));
        }
        match schema.get("type") {
            Some(Value::Array(several)) => joined(several, " or ", |one| {
                self.bounds.word(shortened(one.as_str().unwrap_or(ANY)))
            }),
            Some(Value::String(one)) if one == "array" => match schema.get("items") {
                Some(items) => format!("array of {}", self.kind(items, depth)),
                None => one.clone(),
            },
            Some(Value::String(one)) if one != "object" => self.bounds.word(shortened(one)),
            _ => self.kind_of_object(schema, depth),
        }
    }

    /// An object with the names and types of its members.
    fn kind_of_object(&self, schema: &'s Value, depth: usize) -> String {
        let members = self.members_of(schema);
        if members.is_empty() {
            return schema.get("type").map_or(ANY, |_object| "object").to_owned();
        }
        let member = |one: &Member<'s>| {
            let mark = if one.is_required { "" } else { "?" };
            let name = self.bounds.word(shortened(one.name));
            format!("{name}{mark}: {}", self.kind(one.schema, depth))
        };
        format!("object {{{}}}", joined(&members, ", ", member))
    }

    /// A value that fits a schema, as far as its type, format and bounds tell.
    fn value(&self, schema: &'s Value, depth: usize) -> Value {
        let Some(depth) = self.bounds.deeper(depth) else { return self.missed(Value::Null) };
        let fact = |key: &str| Some(self.fact(schema, key));
        let first = |key: &str| {
            let all = self.fact(schema, key).as_array();
            all.into_iter().flatten().take(SHOWN).find(|one| !one.is_null())
        };
        let given = [fact("const"), first("examples"), fact("default"), first("enum")];
        if let Some(value) = given.into_iter().flatten().find(|value| !value.is_null()) {
            return self.copied(value).unwrap_or_else(|| self.missed(CUT.into()));
        }
        let schema = self.resolved(schema);
        if let Some(several) = alternatives(schema) {
            let is_value = |one: &&Value| one.get("type") != Some(&json!("null"));
            return several.iter().find(is_value).map_or(Value::Null, |one| self.value(one, depth));
        }
        match kind_of_value(schema) {
            "integer" => number(schema, true).unwrap_or_else(|| self.missed(json!(1))),
            "number" => number(schema, false).unwrap_or_else(|| self.missed(json!(1))),
            "boolean" => json!(true),
            "null" => Value::Null,
            "array" => self.array(schema, depth),
            "string" => self.text(schema),
            "object" => self.object(schema, depth),
            // A schema with members is one of an object, also without a type.
            _ => match self.object(schema, depth) {
                Value::Object(values) if values.is_empty() => self.text(schema),
                value => value,
            },
        }
    }

    fn text(&self, schema: &'s Value) -> Value {
        let (text, is_fitting) = text(schema);
        match is_fitting && self.bounds.spend(text.len()) {
            true => text.into(),
            false => self.missed(text.into()),
        }
    }

    /// As many elements as a list needs, and one where it may have some.
    fn array(&self, schema: &'s Value, depth: usize) -> Value {
        let least = bound(schema, "minItems").unwrap_or(0);
        let most = bound(schema, "maxItems").unwrap_or(u64::MAX);
        let items = schema.get("items").or_else(|| (least > 0).then_some(&Value::Null));
        let Some(items) = items else { return json!([]) };
        let count = least.max(1).min(most);
        let is_alike = count > 1 && schema.get("uniqueItems") == Some(&Value::Bool(true));
        let has_order = items.is_array() || schema.get("prefixItems").is_some();
        let values = (0..count.min(REPEATED)).map(|_| self.value(items, depth)).collect();
        match count < least || count > REPEATED || is_alike || has_order {
            true => self.missed(values),
            false => values,
        }
    }

    /// The required members of an object inside of the schema.
    fn object(&self, schema: &'s Value, depth: usize) -> Value {
        let members = self.members_of(schema);
        let names = members.iter().filter(|one| one.is_required).map(|one| one.name.len());
        match self.bounds.spend(names.sum()) {
            true => Value::Object(self.required(&members, depth)),
            false => self.missed(json!({})),
        }
    }

    /// A value for each required one of these.
    fn required(&self, members: &[Member<'s>], depth: usize) -> Map<String, Value> {
        let required = members.iter().filter(|one| one.is_required);
        required.map(|one| (one.name.to_owned(), self.value(one.schema, depth))).collect()
    }

    /// A copy of a value of the server; `None` if the texts are too long already.
    fn copied(&self, value: &Value) -> Option<Value> {
        let left = self.bounds.text_left();
        let length = left - behind(value, left)?;
        self.bounds.spend(length).then(|| value.clone())
    }

    /// A value that may not fit.
    fn missed(&self, value: Value) -> Value {
        self.bounds.miss();
        value
    }
}

/// The members of an object by the parts of its schema, each name once: those with a schema, then
/// those that are required without one.
fn members<'s>(parts: &[&'s Value]) -> Vec<Member<'s>> {
    let required = parts.iter().filter_map(|part| part.get("required")?.as_array());
    let required: Vec<&'s str> = required.flatten().filter_map(Value::as_str).collect();
    let needed: HashSet<&'s str> = required.iter().copied().collect();
    let named = parts.iter().filter_map(|part| part.get("properties")?.as_object());
    let named = named.flatten().map(|(name, schema)| (name.as_str(), schema));
    let bare = required.into_iter().map(|name| (name, &Value::Null));
    let mut seen = HashSet::new();
    let all = named.chain(bare).filter(|(name, _)| seen.insert(*name));
    let member = |(name, schema)| Member { name, schema, is_required: needed.contains(name) };
    all.map(member).collect()
}

/// The schemas of which a value fits one. The only part of `allOf` is one, too. Beside properties,
/// such schemas are conditions.
fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    if schema.get("properties").is_some() {
        return None;
    }
    let several = |key: &str| schema.get(key).and_then(Value::as_array);
    let only = || several("allOf").filter(|parts| parts.len() == 1);
    several("anyOf").or_else(|| several("oneOf")).or_else(only)
}

/// The type of an example: the first one that is not `null`; empty without one.
fn kind_of_value(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(one)) => one,
        Some(Value::Array(several)) => {
            several.iter().filter_map(Value::as_str).find(|one| *one != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ => "",
    }
}

/// The words of the first values without repetitions, in their order, and the number of the others.
fn joined<'t, T>(all: &'t [T], between: &str, word: impl Fn(&'t T) -> String) -> String {
    let mut words: Vec<String> = Vec::new();
    for one in all.iter().take(SHOWN) {
        let word = word(one);
        if !words.contains(&word) {
            words.push(word);
        }
    }
    let words = words.join(between);
    match all.len().saturating_sub(SHOWN) {
        0 => words,
        more => format!("{words} … and {more} more"),
    }
}

#[cfg(test)]
mod tests;
