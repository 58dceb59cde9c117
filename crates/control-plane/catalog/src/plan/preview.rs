//! A preview of a plan for people (O32, O101).

use serde_json::{Map, Value, json};

use super::{Plan, PlannedKey, PlannedServer};
use crate::{carrier::Carrier, origin::Origin, template::ConfigValue};

pub(super) fn preview(plan: &Plan<'_>) -> Value {
    let servers: Map<String, Value> =
        plan.servers.iter().map(|(alias, planned)| (alias.to_string(), server(planned))).collect();
    let mut shown =
        json!({ "agent": plan.agent.name, "mcpServers": servers, "errors": plan.faults });
    if let Some(mark) = plan.agent.no_servers {
        shown["mcp"] = json!(mark);
    }
    shown
}

fn server(planned: &PlannedServer<'_>) -> Value {
    let config: Map<String, Value> =
        planned.keys.iter().map(|(name, key)| (name.clone(), self::key(key))).collect();
    let mut shown = json!({
        "ref": planned.reference,
        "optional": planned.optional,
        "config": config,
        "tools": planned.tools,
        "errors": planned.faults,
        "warnings": planned.warnings,
    });
    if let Some(entry) = planned.entry {
        shown["name"] = json!(entry.name);
        shown["auth"] = json!(entry.auth.mode());
        if let Value::Object(shape) = json!(entry.shape) {
            shown["type"] = shape.get("type").cloned().unwrap_or_default();
        }
    }
    shown
}

fn key(key: &PlannedKey<'_>) -> Value {
    let is_hidden = key.is_hidden()
        || key.overridden.iter().any(|(_, value)| matches!(value, ConfigValue::Secret(_)));
    let said = |(origin, value): &(Origin, &ConfigValue)| {
        let value = shown(value, is_hidden);
        json!({ "origin": origin, "value": value })
    };
    let mut told = json!({
        "value": shown(key.value, is_hidden),
        "origin": key.origin,
        "overrides": key.overridden.iter().map(said).collect::<Vec<_>>(),
        "conflicts": key.disagreeing.iter().map(said).collect::<Vec<_>>(),
        "required": key.schema.is_some_and(|schema| schema.required),
        "hidden": is_hidden,
        "removed": key.is_removed(),
    });
    match &key.carrier {
        Some(Carrier::Header(name)) => told["header"] = json!(name),
        Some(Carrier::Env(name)) => told["env"] = json!(name),
        None => {}
    }
    told
}

/// A value as it is written; of a hidden one only references.
fn shown(value: &ConfigValue, is_hidden: bool) -> Value {
    match value {
        ConfigValue::Tree(tree) if is_hidden && tree.has_literal() => HIDDEN.into(),
        ConfigValue::Removed | ConfigValue::Secret(_) | ConfigValue::Tree(_) => value.written(),
    }
}

/// The text in place of a hidden literal.
pub(crate) const HIDDEN: &str = "(hidden)";
