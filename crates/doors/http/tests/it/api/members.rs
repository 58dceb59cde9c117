//! Checks that the daemon accepts the members of bodies that the document describes, and no others.

use std::collections::BTreeSet;

use narthex_http::openapi;
use serde_json::{Value, json};

/// A member that no object has, and whose name resembles no other.
const UNKNOWN: &str = "qqq-unknown-qqq";

/// Members that the refusal of one operation does not list: a preview reads `skills`, and then the
/// agent that a manifest becomes, whose reader lists its own members.
const UNLISTED: [(&str, &str); 1] = [("agent_preview", "skills")];

/// An object in the example of a body; its schema allows only the described members.
pub(super) struct Described {
    /// The place of the object: a JSON pointer.
    place: String,
    members: BTreeSet<String>,
}

impl Described {
    /// The example, with one unknown member in this object.
    pub(super) fn with_unknown(&self, example: &Value) -> Value {
        let mut body = example.clone();
        body.pointer_mut(&self.place).unwrap()[UNKNOWN] = json!(1);
        body
    }

    /// Compares the described members with those that the refusal of the unknown member lists. An
    /// inner object's kind may permit only some of the described members.
    pub(super) fn check(&self, problem: &Value, of: &str) {
        let (place, mut members) = (&self.place, self.members.clone());
        let read = read(problem).unwrap_or_else(|| panic!("{of} at `{place}`: {problem}"));
        for (_, member) in UNLISTED.iter().filter(|(operation, _)| of == *operation) {
            assert!(members.remove(*member) && !read.contains(*member), "{of}: {member}");
        }
        match place.is_empty() {
            true => assert_eq!(read, members, "{of}: read, and described"),
            false => assert!(read.is_subset(&members), "{of} at `{place}`: {read:?}, {members:?}"),
        }
    }
}

/// The closed objects in an example, the outermost first.
pub(super) fn described(schema: &Value, example: &Value) -> Vec<Described> {
    let mut found = Vec::new();
    add(schema, example, "", &mut found);
    found
}

fn add(schema: &Value, value: &Value, place: &str, found: &mut Vec<Described>) {
    let Some(schema) = one(schema) else { return };
    match value {
        Value::Object(object) => {
            let properties = schema["properties"].as_object();
            if let Some(properties) = properties.filter(|_| schema["additionalProperties"] == false)
            {
                let members = properties.keys().cloned().collect();
                found.push(Described { place: place.to_owned(), members });
            }
            for (name, value) in object {
                let inner = properties.and_then(|all| all.get(name));
                let inner = inner.unwrap_or(&schema["additionalProperties"]);
                let name = name.replace('~', "~0").replace('/', "~1");
                add(inner, value, &format!("{place}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                add(&schema["items"], item, &format!("{place}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// The schema behind references, without null; `None` if there are several.
fn one(schema: &Value) -> Option<&Value> {
    if let Some(place) = schema["$ref"].as_str() {
        return one(openapi().pointer(place.strip_prefix('#')?)?);
    }
    let Some(either) = schema["anyOf"].as_array() else { return Some(schema) };
    let mut either = either.iter().filter(|one| one["type"] != "null");
    match (either.next(), either.next()) {
        (Some(schema), None) => one(schema),
        _ => None,
    }
}

/// The members that the refusal of [`UNKNOWN`] lists.
fn read(problem: &Value) -> Option<BTreeSet<String>> {
    let listed = |text: &Value, before: &str| {
        let (_, names) = text.as_str()?.split_once(before)?;
        Some(names.split('`').skip(1).step_by(2).map(str::to_owned).collect())
    };
    problem["errors"].as_array()?.iter().find_map(|error| {
        // Covers readers that check one member at a time, and derived readers.
        let read = listed(&error["remedy"], "the keys here are ");
        let read = read.or_else(|| listed(&error["remedy"], "the members are "));
        read.or_else(|| listed(&error["message"], &format!("unknown field `{UNKNOWN}`, expected")))
    })
}
