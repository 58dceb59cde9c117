//! The definition for the fields.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    draft::{Draft, Fault, KeyRow},
    value::{decoded, json},
};

impl Draft {
    /// The definition for the fields, and the faults that the form itself has. `stored` is the
    /// definition whose literal values stay.
    pub(super) fn definition(&self, stored: &Value) -> (Value, Vec<Fault>) {
        let mut making = Making::default();
        if let Some(rest) = making.members("rest", &self.rest) {
            making.object = rest;
        }
        let lines = [
            ("id", &self.id),
            ("name", &self.name),
            ("description", &self.description),
            ("url", &self.url),
            ("command", &self.command),
            ("cwd", &self.cwd),
            ("image", &self.image),
            ("script", &self.script),
        ];
        for (key, text) in lines.into_iter().filter(|(_, text)| !text.is_empty()) {
            making.put(key, text.as_str().into());
        }
        if !self.args.is_empty() {
            making.put("args", self.args.split('\n').map(Value::from).collect());
        }
        if !self.url.is_empty() && self.is_sse {
            making.put("type", "sse".into());
        }
        self.schema(&mut making);
        self.config(&mut making, stored);
        (making.object.into(), making.faults)
    }

    fn schema(&self, making: &mut Making) {
        let mut schema = Map::new();
        let mut seen = BTreeSet::new();
        for (n, row) in self.keys.iter().enumerate().filter(|(_, row)| !row.is_blank()) {
            let name = format!("key.{n}.name");
            if row.name.is_empty() {
                making
                    .faults
                    .push(Fault::at(&name, "the name is missing; write it, or remove the row"));
            } else if !seen.insert(&row.name) {
                making.faults.push(Fault::at(&name, "this key is above already; keep one of both"));
            } else {
                let key = key_of(making, n, row);
                schema.insert(row.name.clone(), key.into());
            }
        }
        if self.is_closed || !schema.is_empty() {
            making.put("config_schema", schema.into());
        }
    }

    fn config(&self, making: &mut Making, stored: &Value) {
        let mut config = Map::new();
        let mut seen = BTreeSet::new();
        for (n, row) in self.values.iter().enumerate().filter(|(_, row)| !row.is_blank()) {
            let (key, field) = (format!("value.{n}.key"), format!("value.{n}.value"));
            if row.key.is_empty() {
                making
                    .faults
                    .push(Fault::at(&key, "the key is missing; write it, or remove the row"));
                continue;
            }
            if !seen.insert(&row.key) {
                making.faults.push(Fault::at(&key, "this key is above already; keep one of both"));
                continue;
            }
            if self.has_literal(row) {
                let text = "a secret is named here, and not written: use `${NAME}`, and store its \
                            value on the page Secrets. What was sent is not shown again. Declare \
                            the key above if it is no secret";
                making.faults.push(Fault::at(&field, text));
                continue;
            }
            let kept = stored.get("default_config").and_then(|config| config.get(&row.key));
            let value = match (row.is_kept && row.value.is_empty(), kept) {
                (true, Some(kept)) => kept.clone(),
                (true, None) => {
                    let text = "the stored value belongs to another key; write a reference";
                    making.faults.push(Fault::at(&field, text));
                    continue;
                }
                (false, _) => decoded(&row.value, self.type_of(&row.key).as_deref()),
            };
            config.insert(row.key.clone(), value);
        }
        if !config.is_empty() {
            making.put("default_config", config.into());
        }
    }
}

/// A definition in the making.
#[derive(Default)]
struct Making {
    object: Map<String, Value>,
    faults: Vec<Fault>,
}

impl Making {
    /// Adds a member of a field; a fault if it is among the other members, too.
    fn put(&mut self, key: &str, value: Value) {
        if self.object.contains_key(key) {
            let text = format!("`{key}` has a value in its own field as well; keep one of both");
            self.faults.push(Fault::at("rest", text));
        } else {
            self.object.insert(key.to_owned(), value);
        }
    }

    /// The members that a field has as JSON.
    fn members(&mut self, field: &str, text: &str) -> Option<Map<String, Value>> {
        if text.trim().is_empty() {
            return Some(Map::new());
        }
        match json(text) {
            Ok(Value::Object(members)) => Some(members),
            Ok(_) => {
                self.faults.push(Fault::at(field, "an object belongs here, such as `{}`"));
                None
            }
            Err(fault) => {
                self.faults.push(Fault::at(field, fault));
                None
            }
        }
    }
}

/// The schema of a key.
fn key_of(making: &mut Making, n: usize, row: &KeyRow) -> Map<String, Value> {
    let field = format!("key.{n}.more");
    let mut key = making.members(&field, &row.more).unwrap_or_default();
    let own: [(&str, Option<Value>); 4] = [
        ("type", Some(row.value_type.as_str()).filter(|word| !word.is_empty()).map(Value::from)),
        ("kind", row.is_secret.then(|| "secret".into())),
        ("required", row.is_required.then_some(Value::Bool(true))),
        (
            "description",
            Some(&row.description).filter(|text| !text.is_empty()).map(|text| text.as_str().into()),
        ),
    ];
    for (member, value) in own.into_iter().filter_map(|(member, value)| Some((member, value?))) {
        match key.get(member) {
            None => drop(key.insert(member.to_owned(), value)),
            // The choice of the type always has a value.
            Some(_) if member == "type" && row.value_type == "string" => {}
            Some(_) => {
                let text = format!("`{member}` has a field of its own; leave it out here");
                making.faults.push(Fault::at(&field, text));
            }
        }
    }
    key
}
