//! The definition of a capability or an agent as its form has it, saved or not.

use narthex_control::{FieldCode, FieldError};
use narthex_model::{CatalogKind, json::Place};
use serde_json::{Map, Value, json};

use super::{
    around::Around,
    values::{KEPT, Kind, is_secret, object},
};
use crate::console::sent::Sent;

/// The longest name of a field.
const NAME_MAX: usize = 100;
/// Most capabilities that have a box each. More are names in a line.
pub(super) const BOXES: usize = 40;

/// A definition that was made from a form.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) definition: Map<String, Value>,
    /// The faults of texts that are no values.
    pub(super) faults: Vec<FieldError>,
}

/// The members of a definition with a field of their own. The others stay as they are.
pub(super) fn members(kind: CatalogKind) -> &'static [&'static str] {
    match kind {
        CatalogKind::Agent => &[
            "name",
            "description",
            "agent_type",
            "active",
            "system_prompt",
            "params_schema",
            "spawnable_agents",
            "executor",
            "capabilities",
            "mcpServers",
        ],
        CatalogKind::Capability | CatalogKind::Server => {
            &["name", "description", "type", "text", "script", "mcpServers"]
        }
    }
}

/// The name of the field for a config key.
pub(super) fn field_of(alias: &str, key: &str) -> String {
    format!("v.{alias}.{key}")
}

/// The place of a config key in a definition, as faults name it.
pub(super) fn place_of(alias: &str, key: &str) -> String {
    let attached = Place::root("mcpServers").key(alias);
    attached.key("config").key(key).to_string()
}

/// True if a key has a field of its own.
pub(super) fn has_field(alias: &str, key: &str) -> bool {
    // The box that removes the key has the longest name.
    field_of(alias, key).len() < NAME_MAX
}

impl Draft {
    /// The stored definition with the fields of a form.
    pub(super) fn of(
        kind: CatalogKind,
        stored: &Map<String, Value>,
        sent: &Sent,
        around: &Around,
    ) -> Self {
        let mut draft = Self { definition: stored.clone(), faults: Vec::new() };
        draft.texts(kind, sent);
        if kind == CatalogKind::Agent {
            draft.agent(sent, around);
        }
        let mut attached = Map::new();
        for (alias, server) in sent.under("at.") {
            let before = stored.get("mcpServers").and_then(|all| all.get(alias));
            let before = before.filter(|one| one["ref"] == server);
            let one = draft.attachment(Named { alias, name: server }, before, sent, around);
            attached.insert(alias.to_owned(), one);
        }
        draft.set("mcpServers", Value::Object(attached));
        draft
    }

    /// Attaches the server that the form names. Returns the alias.
    pub(super) fn attach(&mut self, sent: &Sent) -> Option<String> {
        let server = sent.text("attach.server");
        let alias = match sent.text("attach.alias") {
            alias if alias.is_empty() => server.clone(),
            alias => alias,
        };
        if server.is_empty() {
            self.fault("attach.server", "no server is chosen", "choose one of the catalog");
            return None;
        }
        let all = self.definition.entry("mcpServers").or_insert_with(|| json!({}));
        let all = all.as_object_mut()?;
        if all.contains_key(&alias) {
            let message = "another server has this alias here";
            self.fault("attach.alias", message, "choose another alias");
            return None;
        }
        all.insert(alias.clone(), json!({ "ref": server }));
        Some(alias)
    }

    /// Takes an attachment away.
    pub(super) fn detach(&mut self, alias: &str) {
        if let Some(Value::Object(all)) = self.definition.get_mut("mcpServers") {
            all.remove(alias);
        }
        let is_empty = self.definition.get("mcpServers").is_some_and(|all| *all == json!({}));
        if is_empty {
            self.definition.remove("mcpServers");
        }
    }

    /// The definition as the text of a request.
    pub(super) fn text(&self) -> Vec<u8> {
        Value::Object(self.definition.clone()).to_string().into_bytes()
    }

    fn texts(&mut self, kind: CatalogKind, sent: &Sent) {
        let names: &[&str] = match kind {
            CatalogKind::Agent => &["description", "agent_type", "system_prompt", "executor"],
            CatalogKind::Capability | CatalogKind::Server => {
                &["description", "type", "text", "script"]
            }
        };
        for name in names {
            if let Some(text) = sent.get(name) {
                self.set(name, text.into());
            }
        }
    }

    fn agent(&mut self, sent: &Sent, around: &Around) {
        self.definition.insert("active".to_owned(), sent.is_on("active").into());
        self.set("spawnable_agents", words(&sent.text("spawnable_agents")));
        self.set("capabilities", self.capabilities(sent, around));
        match object(&sent.text("params_schema")) {
            Ok(schema) => self.set("params_schema", Value::Object(schema)),
            Err(why) => self.fault("params_schema", why, "write the parameters and their types"),
        }
    }

    fn capabilities(&self, sent: &Sent, around: &Around) -> Value {
        if around.capabilities.len() > BOXES {
            return words(&sent.text("capabilities"));
        }
        let before = self.definition.get("capabilities").and_then(Value::as_array);
        let before = before.into_iter().flatten().filter_map(Value::as_str);
        let mut chosen: Vec<&str> =
            before.filter(|name| sent.is_on(&format!("cap.{name}"))).collect();
        for (name, _) in sent.under("cap.") {
            if !chosen.contains(&name) {
                chosen.push(name);
            }
        }
        json!(chosen)
    }

    fn attachment(
        &mut self,
        named: Named<'_>,
        before: Option<&Value>,
        sent: &Sent,
        around: &Around,
    ) -> Value {
        let Named { alias, name: server } = named;
        let mut one = before.and_then(Value::as_object).cloned().unwrap_or_default();
        let stored = one.remove("config").unwrap_or_default();
        let mut config = self.others(alias, &stored, sent);
        for (key, schema) in around.keys(server) {
            if let Some(value) = self.value(Named { alias, name: key }, schema, &stored, sent) {
                config.insert(key.clone(), value);
            }
        }
        one.insert("ref".to_owned(), server.into());
        match sent.get(&format!("opt.{alias}")).as_deref() {
            Some("yes") => drop(one.insert("optional".to_owned(), true.into())),
            Some("no") => drop(one.insert("optional".to_owned(), false.into())),
            Some(_) => drop(one.remove("optional")),
            None => {}
        }
        if !config.is_empty() {
            one.insert("config".to_owned(), Value::Object(config));
        }
        Value::Object(one)
    }

    /// The value of a key with a schema, at this level; `None` if this level does not set it.
    fn value(
        &mut self,
        named: Named<'_>,
        schema: &Value,
        stored: &Value,
        sent: &Sent,
    ) -> Option<Value> {
        let Named { alias, name: key } = named;
        let before = stored.get(key).cloned();
        if !has_field(alias, key) {
            return before;
        }
        if sent.is_on(&format!("no.{alias}.{key}")) {
            return Some(Value::Null);
        }
        let field = field_of(alias, key);
        let Some(text) = sent.get(&field) else { return before };
        if text.is_empty() {
            // A form cannot tell an empty text from none.
            return before.filter(|before| *before == "");
        }
        if is_secret(key, schema) {
            return if text == KEPT { before } else { Some(text.into()) };
        }
        match Kind::of(schema).value(&text) {
            Ok(value) => Some(value),
            Err(why) => {
                self.fault(&place_of(alias, key), why, "write JSON, or one placeholder");
                before
            }
        }
    }

    /// The values of keys without a schema.
    fn others(&mut self, alias: &str, stored: &Value, sent: &Sent) -> Map<String, Value> {
        let stored = stored.as_object().cloned().unwrap_or_default();
        let Some(text) = sent.get(&format!("more.{alias}")) else {
            // The keys with fields are read after this.
            return stored.into_iter().filter(|(key, _)| !has_sent(sent, alias, key)).collect();
        };
        match object(&text) {
            Ok(members) => {
                let kept = |(key, value): (String, Value)| match value == KEPT {
                    true => stored.get(&key).cloned().map(|value| (key, value)),
                    false => Some((key, value)),
                };
                members.into_iter().filter_map(kept).collect()
            }
            Err(why) => {
                let place = Place::root("mcpServers").key(alias).key("config").to_string();
                self.fault(&place, why, "write the keys and their values");
                Map::new()
            }
        }
    }

    /// Sets a member; an empty value takes it away.
    fn set(&mut self, name: &str, value: Value) {
        let is_empty = match &value {
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            Value::Null => true,
            Value::Bool(_) | Value::Number(_) => false,
        };
        match is_empty {
            true => drop(self.definition.remove(name)),
            false => drop(self.definition.insert(name.to_owned(), value)),
        }
    }

    fn fault(&mut self, field: &str, message: &str, remedy: &str) {
        self.faults.push(FieldError::new(field, FieldCode::Own("form"), message, remedy));
    }
}

/// An attachment by its alias and its server, or a key by the alias and its name.
#[derive(Clone, Copy)]
struct Named<'a> {
    alias: &'a str,
    name: &'a str,
}

fn has_sent(sent: &Sent, alias: &str, key: &str) -> bool {
    sent.is_on(&field_of(alias, key)) || sent.is_on(&format!("no.{alias}.{key}"))
}

/// Names with spaces or commas between them.
fn words(text: &str) -> Value {
    let all = text.split([' ', ',', '\n', '\t']).filter(|name| !name.is_empty());
    json!(all.collect::<Vec<_>>())
}
