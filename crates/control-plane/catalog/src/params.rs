//! The schema of an agent's parameters, which its model sees, and their check.

mod effort;

use std::{fmt, sync::Arc};

use jsonschema::{Validator, error::ValidationErrorKind};
use narthex_model::nearest;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::{
    fault::{Fault, FaultCode},
    fill::meant,
    schema::validator,
};

/// Largest number of reported faults in the parameters of one run.
const FAULTS_MAX: usize = 100;

/// Schema of the parameters of an agent's runs: a JSON Schema, compiled once. Cheap to clone.
#[derive(Clone)]
pub struct ParamsSchema {
    written: Arc<Value>,
    full: Arc<Value>,
    validator: Arc<Validator>,
}

impl ParamsSchema {
    /// Takes a JSON Schema of an object, or the short form in which each key has its own schema,
    /// with `required` as a flag; then no other keys may be given.
    ///
    /// # Errors
    /// The reason why it cannot be used. Validation fetches nothing, and patterns take linear time.
    pub(crate) fn new(written: Value) -> Result<Self, String> {
        let full = match &written {
            Value::Object(fields) if is_short(fields) => from_short(fields),
            _ => written.clone(),
        };
        if let Some(why) = effort::objection(&full) {
            return Err(why);
        }
        let validator = validator(&full)?;
        Ok(Self { written: written.into(), full: full.into(), validator: validator.into() })
    }

    /// The faults of parameters, by places under `run.params` and without values: all of them, up
    /// to 100.
    pub(crate) fn faults(&self, params: &Map<String, Value>) -> Vec<Fault> {
        let params = Value::Object(params.clone());
        let fault = |error: jsonschema::ValidationError<'_>| {
            let place = error.instance_path().to_string().replace('/', ".");
            let message = shortened(error.masked().to_string());
            let remedy = match misspelt_one(&error, self.known(), &params) {
                Some((given, wanted)) => meant(given, wanted, "params"),
                None => "see the agent's `params_schema`".to_owned(),
            };
            Fault::new(format!("run.params{place}"), FaultCode::ParamsInvalid, message, remedy)
        };
        self.validator.iter_errors(&params).take(FAULTS_MAX).map(fault).collect()
    }

    /// The keys that it describes.
    fn known(&self) -> Vec<&str> {
        let properties = self.full["properties"].as_object();
        properties.into_iter().flat_map(|all| all.keys().map(String::as_str)).collect()
    }

    /// True if the schema mentions this key.
    pub(crate) fn names(&self, key: &str) -> bool {
        self.full["properties"].get(key).is_some()
    }
}

/// The misspelt key in place of a required one, with the required one.
fn misspelt_one<'e>(
    error: &'e jsonschema::ValidationError<'_>,
    known: Vec<&str>,
    params: &'e Value,
) -> Option<(&'e str, &'e str)> {
    let ValidationErrorKind::Required { property } = error.kind() else { return None };
    let wanted = property.as_str()?;
    let is_root = error.instance_path().as_str().is_empty();
    let given = params.as_object().filter(|_| is_root)?;
    let others = given.keys().map(String::as_str).filter(|key| !known.contains(key));
    Some((nearest(wanted, others)?, wanted))
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(300) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// The short form has objects only, while a JSON Schema has members about the whole.
fn is_short(fields: &Map<String, Value>) -> bool {
    let has_property_schemas = fields.get("properties").is_some_and(|properties| {
        properties.as_object().is_some_and(|properties| {
            properties.values().all(|schema| schema.is_object() || schema.is_boolean())
        })
    });
    !has_property_schemas && fields.values().all(Value::is_object) && !fields.contains_key("$defs")
}

fn from_short(fields: &Map<String, Value>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (key, schema) in fields {
        let mut schema = schema.clone();
        if let Some(inner) = schema.as_object_mut()
            && let Some(Value::Bool(is_required)) = inner.get("required").cloned()
        {
            inner.remove("required");
            if is_required {
                required.push(key.as_str());
            }
        }
        properties.insert(key.clone(), schema);
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

impl PartialEq for ParamsSchema {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl fmt::Debug for ParamsSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ParamsSchema").field(&self.written).finish()
    }
}

impl Serialize for ParamsSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}
