//! Scopes of a server: requirements of its tools, resources and prompts, and the scope of its runs.

use std::collections::BTreeMap;

use narthex_model::{
    ToolScope, ToolScopes,
    json::{Node, Place, shortened},
};
use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::{
    reader::{Object, Reader},
    schema::{ValueType, word},
};

/// The rules for one key of a run's scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScopeKey {
    /// The type of the key's values.
    #[serde(rename = "type")]
    pub value_type: ValueType,
    /// Purpose of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// True if a run that uses the server needs the key.
    pub required: bool,
}

/// The expected scope of runs that use a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScopeSchema {
    /// The keys that the server accepts.
    pub keys: BTreeMap<String, ScopeKey>,
    /// True if a run is refused for other keys, which no server of its agent accepts.
    pub is_closed: bool,
}

/// The member that allows or forbids other keys.
const OTHERS: &str = "additionalProperties";

impl ScopeSchema {
    /// True if no scope is expected.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && !self.is_closed
    }
}

impl Serialize for ScopeSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, schema) in &self.keys {
            map.serialize_entry(key, schema)?;
        }
        if self.is_closed {
            map.serialize_entry(OTHERS, &false)?;
        }
        map.end()
    }
}

/// The members that require tool scopes.
pub(super) const SCOPES: [&str; 3] = ["tool_scopes", "resource_scopes", "prompt_scopes"];

/// Tool scopes by name, each as a text or a list, of which all are required (D14, X-D1).
pub(super) fn required(
    reader: &mut Reader,
    object: &Object<'_>,
    key: &str,
) -> BTreeMap<String, ToolScopes> {
    let Some(tools) = reader.object(object, key) else { return BTreeMap::new() };
    let mut found = BTreeMap::new();
    for (tool, node, at) in tools.entries() {
        let nodes: Vec<(Place, &Node)> = match node {
            Node::List(nodes) => {
                nodes.iter().enumerate().map(|(i, node)| (at.index(i), node)).collect()
            }
            _ => vec![(at, node)],
        };
        let scope = |(at, node): &(Place, &Node)| {
            let text = reader.as_text(node, at)?;
            reader.name(at, text, ToolScope::new)
        };
        found.insert(tool.clone(), nodes.iter().filter_map(scope).collect());
    }
    found
}

/// Reads the schema of the scope for runs that use a server (O94): each key with its rules, and a
/// flag against other keys; or a JSON Schema of an object with the same meaning.
pub(super) fn schema(reader: &mut Reader, object: &Object<'_>) -> ScopeSchema {
    let Some(outer) = reader.object(object, "scope_schema") else { return ScopeSchema::default() };
    let is_said = outer.get("type").is_some_and(|node| *node == Node::Text("object".into()));
    let is_meant = !is_said && is_untyped_schema(&outer);
    if is_meant {
        let message = "this JSON Schema has no `type`";
        reader.invalid(&outer.at, message, r#"add `"type": "object"`"#);
    }
    let is_json_schema = is_said || is_meant;
    let mut required = Vec::new();
    let inner = match is_json_schema {
        true => {
            reader.only(&outer, &["type", "properties", "required", OTHERS]);
            required = reader.texts(&outer, "required");
            reader.object(&outer, "properties")
        }
        false => Some(outer.clone()),
    };
    let is_closed = outer.get(OTHERS).is_some() && reader.flag(&outer, OTHERS) == Some(false);
    let mut keys = BTreeMap::new();
    let entries = inner.iter().flat_map(Object::entries);
    for (key, node, at) in entries.filter(|(key, ..)| is_json_schema || *key != OTHERS) {
        let Some(object) = reader.as_object(node, &at) else { continue };
        reader.only(&object, &["type", "description", "required"]);
        let scope_key = ScopeKey {
            value_type: word(reader, &object, "type", &ValueType::ALL).unwrap_or(ValueType::String),
            description: reader.owned(&object, "description"),
            required: reader.flag(&object, "required").unwrap_or(required.contains(key)),
        };
        keys.insert(key.clone(), scope_key);
    }
    for key in required.iter().filter(|key| !keys.contains_key(*key)) {
        let message = format!("`{}` is required, but is not in `properties`", shortened(key));
        reader.invalid(&outer.at.key("required"), message, "add it to `properties`");
    }
    ScopeSchema { keys, is_closed }
}

/// True if this is a JSON Schema without its type: `properties`, with their schemas by name or with
/// a list of the required ones.
fn is_untyped_schema(outer: &Object<'_>) -> bool {
    let is_object = |node: &Node| matches!(node, Node::Object(_));
    let has_list = matches!(outer.get("required"), Some(Node::List(_)));
    match (outer.get("type"), outer.get("properties")) {
        (None, Some(Node::Object(all))) => {
            has_list || (!all.is_empty() && all.iter().all(|(_, schema)| is_object(schema)))
        }
        _ => false,
    }
}
