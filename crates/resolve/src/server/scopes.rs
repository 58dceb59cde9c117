//! Scopes of a server: what its tools, resources and prompts require, and what runs have to say.

use std::collections::BTreeMap;

use narthex_model::{
    ToolScope, ToolScopes,
    json::{Node, Place},
};
use serde::Serialize;

use crate::{
    reader::{Object, Reader},
    schema::{ValueType, word},
};

/// What is expected of one key of a run's scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScopeKey {
    /// What values it takes.
    #[serde(rename = "type")]
    pub value_type: ValueType,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether a run that uses the server needs it.
    pub required: bool,
}

/// What requires tool scopes.
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

/// What runs that use a server say in their scope (O94).
pub(super) fn schema(reader: &mut Reader, object: &Object<'_>) -> BTreeMap<String, ScopeKey> {
    let Some(keys) = reader.object(object, "scope_schema") else { return BTreeMap::new() };
    let mut found = BTreeMap::new();
    for (key, node, at) in keys.entries() {
        let Some(object) = reader.as_object(node, &at) else { continue };
        reader.only(&object, &["type", "description", "required"]);
        let scope_key = ScopeKey {
            value_type: word(reader, &object, "type", &ValueType::ALL).unwrap_or(ValueType::String),
            description: reader.owned(&object, "description"),
            required: reader.flag(&object, "required").unwrap_or(false),
        };
        found.insert(key.clone(), scope_key);
    }
    found
}
