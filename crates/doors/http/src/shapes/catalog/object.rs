//! Stored objects of the catalog, and a check of one that is not stored.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::{
    agent::{Agent, Capability},
    server::CatalogServer,
};
use crate::shapes::{
    ids::Time,
    page::Listed,
    part::As,
    problem::{FieldError, FieldWarning},
};

/// The definition of a stored object.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Definition<D> {
    /// The part that a caller sees.
    Part(Box<D>),
    /// The whole as it is stored, or null for a definition without the shape of its kind.
    Stored(Value),
}

impl<D: DeserializeOwned> Definition<D> {
    /// The part that a caller sees of a definition. None of a definition that has not its shape.
    pub(crate) fn part(stored: Value, view: impl FnOnce(D) -> D) -> Self {
        match serde_json::from_value(stored) {
            Ok(whole) => Self::Part(Box::new(view(whole))),
            Err(_other) => Self::Stored(Value::Null),
        }
    }
}

/// The members of a stored object beside its definition.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ObjectMembers {
    pub(crate) id: String,
    /// Number of writes of the object.
    #[schemars(extend("minimum" = 1))]
    pub(crate) revision: u64,
    /// The value of the header `ETag`.
    #[schemars(extend("pattern" = "^\"[^\"]+\"$"))]
    pub(crate) etag: String,
    pub(crate) created_at: Time,
    pub(crate) updated_at: Time,
    pub(crate) updated_by: String,
    /// The faults of a stored form that cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minItems" = 1))]
    pub(crate) errors: Option<Vec<As<FieldError>>>,
}

/// A stored object. Without `errors`, its definition has the schema of `D`.
#[derive(Debug, Serialize)]
pub(crate) struct Stored<D> {
    #[serde(flatten)]
    pub(crate) members: ObjectMembers,
    pub(crate) definition: Definition<D>,
}

impl<D: JsonSchema> JsonSchema for Stored<D> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Stored{}", D::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = ObjectMembers::json_schema(generator);
        let definition = json!({
            "description": "The normal form, which can be sent back. With `errors`, the stored \
                            form, or null if that is no JSON.",
        });
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert("definition".to_owned(), definition);
        }
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.push("definition".into());
        }
        let normal = generator.subschema_for::<D>();
        schema.insert("if".to_owned(), json!({ "required": ["errors"] }));
        schema.insert("else".to_owned(), json!({ "properties": { "definition": normal } }));
        schema
    }
}

/// A stored server of the catalog.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "id": "docs",
    "revision": 1,
    "etag": "\"0a1b\"",
    "created_at": "2026-11-22T13:00:00.000Z",
    "updated_at": "2026-11-22T13:00:00.000Z",
    "updated_by": "admin",
    "definition": {
        "id": "docs",
        "name": "docs",
        "type": "http",
        "url": "https://docs.example/mcp"
    }
}))]
pub(crate) struct ServerObject {
    #[serde(flatten)]
    pub(crate) object: Stored<CatalogServer>,
}

impl Listed for ServerObject {
    const PAGE: &str = "ServerPage";
    const ABOUT: &str = "Servers of the catalog.";
}

/// A server of the catalog that was just written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServerWritten {
    #[serde(flatten)]
    pub(crate) object: Stored<CatalogServer>,
    pub(crate) warnings: Vec<As<FieldWarning>>,
}

/// A stored capability.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "id": "papers",
    "revision": 1,
    "etag": "\"0a1b\"",
    "created_at": "2026-11-22T13:00:00.000Z",
    "updated_at": "2026-11-22T13:00:00.000Z",
    "updated_by": "admin",
    "definition": { "name": "papers" }
}))]
pub(crate) struct CapabilityObject {
    #[serde(flatten)]
    pub(crate) object: Stored<Capability>,
}

impl Listed for CapabilityObject {
    const PAGE: &str = "CapabilityPage";
    const ABOUT: &str = "Capabilities.";
}

/// A capability that was just written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CapabilityWritten {
    #[serde(flatten)]
    pub(crate) object: Stored<Capability>,
    pub(crate) warnings: Vec<As<FieldWarning>>,
}

/// A stored agent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "id": "reader",
    "revision": 1,
    "etag": "\"0a1b\"",
    "created_at": "2026-11-22T13:00:00.000Z",
    "updated_at": "2026-11-22T13:00:00.000Z",
    "updated_by": "admin",
    "definition": { "name": "reader", "active": true }
}))]
pub(crate) struct AgentObject {
    #[serde(flatten)]
    pub(crate) object: Stored<Agent>,
    /// The variables that an operator has bound to secrets for the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_env_names: Option<Vec<String>>,
}

impl Listed for AgentObject {
    const PAGE: &str = "AgentPage";
    const ABOUT: &str = "Agents.";
}

/// An agent that was just written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AgentWritten {
    #[serde(flatten)]
    pub(crate) object: Stored<Agent>,
    /// The variables that an operator has bound to secrets for the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_env_names: Option<Vec<String>>,
    pub(crate) warnings: Vec<As<FieldWarning>>,
}

/// An object of the kind in the query, as the `POST` of that kind takes it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "name": "reader",
    "system_prompt": "You read.",
    "capabilities": ["papers"]
}))]
pub(crate) struct CatalogObjectNew(Map<String, Value>);

/// The result of a check of an object. The object is not stored.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Validated {
    pub(crate) id: String,
    /// The normal form.
    #[schemars(with = "Map<String, Value>")]
    pub(crate) definition: Value,
    pub(crate) warnings: Vec<As<FieldWarning>>,
}

/// A JSON Merge Patch (RFC 7396): a member replaces that of the object, and null removes it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "description": "Reads papers" }))]
pub(crate) struct MergePatch(Map<String, Value>);

#[cfg(test)]
mod tests {
    use super::*;

    /// An author gets the members that attaching takes, and none of a definition without
    /// the shape of a server.
    #[test]
    fn an_author_gets_only_a_part_of_a_definition() {
        let part = |stored: Value| {
            let part = Definition::part(stored, CatalogServer::for_authors);
            serde_json::to_value(part).unwrap()
        };
        let known = json!({ "id": "docs", "name": "Papers", "tool_scopes": { "a": ["b"] } });
        let mut stored = known.clone();
        stored["url"] = json!("https://docs.example/mcp");
        stored["limits"] = json!({ "calls_per_day": 7 });
        stored["of_a_later_version"] = json!(true);
        assert_eq!(part(stored), known);
        for other in [json!({ "url": "https://docs.example/mcp" }), json!("text"), Value::Null] {
            assert_eq!(part(other), Value::Null);
        }
    }
}
