//! The config keys of one server in one run.

use std::collections::BTreeMap;

use narthex_model::header;
use serde_json::Value;

use super::Resolver;
use crate::{
    carrier::Carrier,
    fault::FaultCode,
    fill::{Unfilled, opened},
    layer::is_empty_optional_secret,
    plan::PlannedKey,
    resolved::{Omitted, ResolvedKey, ResolvedValue, carried},
    template::{ConfigValue, Tree},
};

/// The longest value of a header that servers commonly take.
const HEADER_MAX: usize = 8 << 10;

impl Resolver<'_, '_, '_> {
    /// All keys that have a value.
    pub(super) fn config(&mut self) -> BTreeMap<String, ResolvedKey> {
        let mut config = BTreeMap::new();
        for (name, planned) in &self.planned.keys {
            let is_empty = |schema| is_empty_optional_secret(schema, planned.value);
            let value = match planned.value {
                ConfigValue::Removed => continue,
                ConfigValue::Tree(_) if planned.schema.is_some_and(is_empty) => continue,
                ConfigValue::Secret(secret) => Some(ResolvedValue::Secret(secret.clone())),
                ConfigValue::Tree(tree) => self.tree(name, planned, tree),
            };
            if let (Some(value), Some(carrier)) = (value, &planned.carrier) {
                let key = ResolvedKey {
                    value,
                    value_type: planned.schema.map(|schema| schema.value_type),
                    carrier: carrier.clone(),
                    origin: planned.origin.clone(),
                    is_hidden: planned.is_hidden(),
                };
                config.insert(name.clone(), key);
            }
        }
        config
    }

    /// The value of a key in this run; `None` after a fault, or if it is left out.
    fn tree(&mut self, name: &str, planned: &PlannedKey<'_>, tree: &Tree) -> Option<ResolvedValue> {
        let mut unfilled = Unfilled::default();
        let filled = self.filler.tree(tree, &mut unfilled);
        let at = planned.origin.place(&self.planned.alias, name);
        if unfilled.is_too_long {
            self.too_long(&at, Some(name));
            return None;
        }
        if !unfilled.missing.is_empty() {
            self.missing(name, planned, unfilled);
            return None;
        }
        let env = |name: &str| self.env(name);
        let Ok(value) = opened(&filled, &self.openers(&env)) else {
            // The text depends on the runner, so it is not known here.
            return Some(ResolvedValue::Tree(filled));
        };
        let value = self.checked(name, planned, &filled, value)?;
        Some(ResolvedValue::Tree(match filled {
            Tree::Plain(_) => Tree::Plain(value),
            Tree::Text(_) | Tree::List(_) | Tree::Object(_) => filled,
        }))
    }

    /// O16, O17, O59: a missing required value refuses the run, a missing optional one is left out.
    /// Neither falls back to the value of a lower level.
    fn missing(&mut self, name: &str, planned: &PlannedKey<'_>, unfilled: Unfilled) {
        if !planned.schema.is_some_and(|schema| schema.required) {
            let missing = unfilled.missing.iter().map(ToString::to_string).collect();
            self.omitted.push(Omitted { key: name.to_owned(), missing });
            return;
        }
        let at = planned.origin.place(&self.planned.alias, name);
        for placeholder in unfilled.missing {
            let message = format!("Missing required value: {placeholder} for config key '{name}'");
            let code = FaultCode::MissingRequiredMcpConfig;
            let remedy = self.filler.remedy(&placeholder);
            self.fault(&at, Some(name), code, message, remedy);
        }
    }

    /// The value as its type, if its schema and carrier accept it.
    fn checked(
        &mut self,
        name: &str,
        planned: &PlannedKey<'_>,
        filled: &Tree,
        value: Value,
    ) -> Option<Value> {
        let at = planned.origin.place(&self.planned.alias, name);
        let value = match planned.schema {
            None => value,
            Some(schema) => {
                let Some(value) = taken(schema.value_type, filled, value) else {
                    let message =
                        format!("the value of '{name}' is not {}", schema.value_type.wanted());
                    let remedy = "give a value of the type that the server's schema names";
                    self.fault(&at, Some(name), FaultCode::TypeWrong, message, remedy);
                    return None;
                };
                if let Some(objection) = schema.objection(&value) {
                    let message = format!("the value of '{name}' {objection}");
                    let remedy = "see the server's `config_schema`";
                    self.fault(&at, Some(name), FaultCode::ValueInvalid, message, remedy);
                    return None;
                }
                value
            }
        };
        let value_type = planned.schema.map(|schema| schema.value_type);
        let text = carried(value_type, filled, &value);
        if let Some(why) = planned.carrier.as_ref().and_then(|carrier| objection(carrier, &text)) {
            let message = format!("the value of '{name}' {why}");
            let remedy = "give another value (one read from a file often ends in a line break)";
            self.fault(&at, Some(name), FaultCode::CarrierInvalid, message, remedy);
            return None;
        }
        let is_required = planned.schema.is_some_and(|schema| schema.required);
        // An empty literal is a fault of the plan.
        if text.trim().is_empty() && is_required && !planned.value.is_empty_text() {
            let message = format!("Missing required value for config key '{name}': it is empty");
            let remedy = "give a value that is not empty";
            self.fault(&at, Some(name), FaultCode::MissingRequiredMcpConfig, message, remedy);
            return None;
        }
        Some(value)
    }
}

/// A value as the type of its key. A value of the environment for a JSON key has to be JSON.
pub(crate) fn taken(
    value_type: crate::schema::ValueType,
    filled: &Tree,
    value: Value,
) -> Option<Value> {
    if value_type == crate::schema::ValueType::Json
        && crate::resolved::is_from_env(filled)
        && let Value::String(text) = &value
    {
        return serde_json::from_str(text).ok();
    }
    value_type.take(value, false)
}

/// The reason why a text cannot travel this way (O88).
pub(crate) fn objection(carrier: &Carrier, text: &str) -> Option<&'static str> {
    match carrier {
        Carrier::Header(_) if !header::is_value(text) => {
            Some("cannot be sent in a header: only printable ASCII without line breaks can")
        }
        Carrier::Header(_) if text.len() > HEADER_MAX => {
            Some("is longer than the 8192 bytes that a header may have")
        }
        Carrier::Env(_) if text.contains('\0') => Some("holds a NUL character"),
        Carrier::Header(_) | Carrier::Env(_) => None,
    }
}
