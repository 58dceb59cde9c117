//! Objects for display and export: without hidden literals.

use std::collections::BTreeMap;

use narthex_catalog::fields::CatalogError;
use narthex_catalog::{ConfigSchema, KeySchema};
use narthex_model::{CatalogKind, SecretName, ServerId, is_secret_name};
use serde_json::{Map, Value, json};

use super::{
    checks::{Definition, Stored, Workspace},
    object,
};

/// The text in place of a hidden literal.
const HIDDEN: &str = "(hidden)";
/// The members of `auth` that are credentials.
const CREDENTIALS: [&str; 2] = ["key", "clientSecret"];

/// An object with `(hidden)` in the place of each hidden literal.
pub(super) fn shown(definition: &Definition, workspace: &Workspace) -> Value {
    replaced(definition, workspace, &mut |_owner, _key, _literal| HIDDEN.into())
}

/// All objects of a workspace, in a fixed order; references to secrets replace hidden literals.
pub(super) fn exported(stored: &Stored) -> Result<Value, CatalogError> {
    let workspace = stored.read();
    let mut names = Names::default();
    let mut groups = Map::new();
    groups.insert("version".to_owned(), json!(1));
    for kind in CatalogKind::ALL {
        let mut items = Vec::new();
        for row in stored.rows(kind) {
            let Some(definition) = workspace.definition(kind, &row.id) else {
                let errors = object(kind, row).errors;
                return Err(CatalogError::Unreadable { kind, id: row.id.clone(), errors });
            };
            items.push(replaced(&definition, &workspace, &mut |owner, key, literal| {
                json!({ "$secret": names.of(stored, owner, key, literal) })
            }));
        }
        let group = match kind {
            CatalogKind::Server => "servers",
            CatalogKind::Capability => "capabilities",
            CatalogKind::Agent => "agents",
        };
        groups.insert(group.to_owned(), items.into());
    }
    let mut secrets: BTreeMap<String, bool> =
        stored.secrets.iter().map(|name| (name.to_string(), true)).collect();
    secrets.extend(names.given.into_keys().map(|name| (name, false)));
    let secrets =
        secrets.into_iter().map(|(name, is_set)| json!({ "name": name, "is_set": is_set }));
    groups.insert("secrets".to_owned(), secrets.collect());
    Ok(groups.into())
}

/// Names for literals that become secrets.
#[derive(Default)]
struct Names {
    given: BTreeMap<String, Value>,
}

impl Names {
    /// A name that no secret of the workspace has. Equal literals for the same key get the same
    /// name.
    fn of(&mut self, stored: &Stored, owner: &str, key: &str, literal: &Value) -> String {
        let word = |text: &str| {
            let upper = text.to_ascii_uppercase();
            upper.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
        };
        // Cut so that a number can be appended.
        let stem: String = format!("{}_{}", word(owner), word(key)).chars().take(56).collect();
        let mut names = (1_u32..).map(|number| match number {
            1 => stem.clone(),
            number => format!("{stem}_{number}"),
        });
        let free = names.find(|name| match (SecretName::new(name), self.given.get(name)) {
            (Ok(secret), None) => !stored.secrets.contains(&secret),
            (Ok(_), Some(known)) => known == literal,
            (Err(_), _) => false,
        });
        let name = free.expect("there are more numbers than secrets");
        self.given.insert(name.clone(), literal.clone());
        name
    }
}

/// The normal form with each hidden literal replaced. `replace` returns the new value for a server,
/// a key and a literal.
fn replaced(
    definition: &Definition,
    workspace: &Workspace,
    replace: &mut dyn FnMut(&str, &str, &Value) -> Value,
) -> Value {
    let text = definition.document();
    let mut document: Value = serde_json::from_str(&text).expect("a normal form is JSON");
    match definition {
        Definition::Server(entry) => {
            let id = entry.id.as_str();
            let schema = entry.config_schema.as_ref();
            layer(document.get_mut("default_config"), id, schema, replace);
            for (key, of_key) in schema.into_iter().flatten() {
                let default = document["config_schema"][key].get_mut("default");
                let is_hidden = of_key.is_hidden() || is_secret_name(key);
                if let Some(value) = default.filter(|_| is_hidden) {
                    literal(value, &mut |value| replace(id, key, value));
                }
            }
            if let Some(auth) = document.get_mut("auth").and_then(Value::as_object_mut) {
                credentials(auth, &mut |key, value| replace(id, key, value));
            }
        }
        Definition::Capability(_) | Definition::Agent(_) => {
            let servers = document.get_mut("mcpServers").and_then(Value::as_object_mut);
            for attachment in servers.into_iter().flat_map(Map::values_mut) {
                let id = attachment["ref"].as_str().and_then(|id| ServerId::new(id).ok());
                let Some(id) = id else { continue };
                let schema = workspace.schema(&id);
                layer(attachment.get_mut("config"), id.as_str(), schema, replace);
            }
        }
    }
    document
}

/// Replaces the credentials in `auth`, also in the client inside of it.
fn credentials(fields: &mut Map<String, Value>, replace: &mut dyn FnMut(&str, &Value) -> Value) {
    for (key, value) in fields {
        if CREDENTIALS.contains(&key.as_str()) {
            literal(value, &mut |value| replace(key, value));
        } else if let Value::Object(client) = value {
            credentials(client, replace);
        }
    }
}

fn layer(
    values: Option<&mut Value>,
    owner: &str,
    schema: Option<&ConfigSchema>,
    replace: &mut dyn FnMut(&str, &str, &Value) -> Value,
) {
    let Some(values) = values.and_then(Value::as_object_mut) else { return };
    for (key, value) in values {
        let of_key = schema.and_then(|schema| schema.get(key));
        if is_secret_name(key) || of_key.is_some_and(KeySchema::is_hidden) {
            literal(value, &mut |value| replace(owner, key, value));
        }
    }
}

/// Replaces a value, unless it is empty or a reference.
fn literal(value: &mut Value, replace: &mut dyn FnMut(&Value) -> Value) {
    let is_reference = match &*value {
        Value::Null => true,
        Value::String(text) => {
            let inside = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
            text.is_empty() || inside.is_some_and(|inside| !inside.contains(['{', '}', '$']))
        }
        Value::Object(fields) => fields.len() == 1 && fields.contains_key("$secret"),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => false,
    };
    if !is_reference {
        *value = replace(value);
    }
}
