//! An entry of the catalog as the fields of a form, and back. Pure.
//!
//! Nothing is lost: a member that no field can show exactly stays in [`Draft::rest`], as JSON.

use std::collections::BTreeMap;

use narthex_console::parts::form::line_breaks;
use narthex_control::{FieldCode, FieldError};
use narthex_model::{is_secret_name, json::Place};
use serde_json::Value;

use super::value::{DISABLED, decoded, is_disabled, is_literal, json, written};

/// Maximum number of rows of a kind: a form is at most 64 KiB long.
const ROWS_MAX: usize = 400;
/// The types of values.
pub(super) const TYPES: [&str; 5] = ["string", "boolean", "integer", "number", "json"];

/// The fields of the form as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Draft {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) shape: Shape,
    pub(super) url: String,
    /// True for HTTP+SSE of 2024-11-05 alone.
    pub(super) is_sse: bool,
    pub(super) command: String,
    /// One argument a line.
    pub(super) args: String,
    pub(super) cwd: String,
    pub(super) image: String,
    pub(super) script: String,
    pub(super) keys: Vec<KeyRow>,
    /// True if other keys are refused.
    pub(super) is_closed: bool,
    pub(super) values: Vec<ValueRow>,
    /// All other members, as JSON.
    pub(super) rest: String,
}

/// A way in which a server is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Shape {
    #[default]
    Url,
    Command,
    Image,
    Script,
}

/// A key of the schema.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeyRow {
    pub(super) name: String,
    /// One of [`TYPES`]; empty for that of the other members, or text.
    pub(super) value_type: String,
    pub(super) is_secret: bool,
    pub(super) is_required: bool,
    pub(super) description: String,
    /// All other members, as JSON.
    pub(super) more: String,
}

/// A default value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ValueRow {
    pub(super) key: String,
    pub(super) value: String,
    /// True if the stored value is a literal that no page shows. It stays while the field is empty.
    pub(super) is_kept: bool,
}

/// A fault of a field of the form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The name of the field; `None` for the whole form.
    pub(super) field: Option<String>,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn at(field: &str, message: impl Into<String>) -> Self {
        Self { field: Some(field.to_owned()), message: message.into() }
    }
}

impl Shape {
    pub(super) const ALL: [Self; 4] = [Self::Url, Self::Command, Self::Image, Self::Script];

    /// The word in the form, which is the member of an entry as well.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Command => "command",
            Self::Image => "image",
            Self::Script => "script",
        }
    }

    /// The word for people.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Url => "remote address",
            Self::Command => "command",
            Self::Image => "container image",
            Self::Script => "script of the daemon",
        }
    }

    /// The shape of a definition.
    pub(super) fn of(definition: &Value) -> Option<Self> {
        Self::ALL.into_iter().find(|shape| definition.get(shape.word()).is_some())
    }

    /// The shape with this word.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shape| shape.word() == word)
    }
}

impl KeyRow {
    pub(super) fn is_blank(&self) -> bool {
        let texts = [&self.name, &self.description, &self.more];
        texts.iter().all(|text| text.trim().is_empty()) && !self.is_secret && !self.is_required
    }

    /// The type of the key's values.
    pub(super) fn value_type(&self) -> String {
        let more: Option<Value> = serde_json::from_str(&self.more).ok();
        let said = more.as_ref().and_then(|more| more.get("type")).and_then(Value::as_str);
        match (&*self.value_type, said) {
            ("" | "string", Some(said)) => said.to_owned(),
            ("", None) => "string".to_owned(),
            (own, _) => own.to_owned(),
        }
    }

    /// True if the key's values are not shown.
    fn is_hidden(&self) -> bool {
        let more: Option<Value> = serde_json::from_str(&self.more).ok();
        let is = |key: &str, value: &Value| {
            more.as_ref().and_then(|more| more.get(key)).is_some_and(|found| found == value)
        };
        self.is_secret || is("sensitive", &true.into()) || is("kind", &"secret".into())
    }
}

impl ValueRow {
    pub(super) fn is_blank(&self) -> bool {
        self.key.trim().is_empty() && self.value.is_empty() && !self.is_kept
    }
}

impl Draft {
    /// The fields of a form.
    pub(super) fn of_form(fields: &BTreeMap<String, String>) -> Self {
        let text = |name: &str| fields.get(name).map(|text| line_breaks(text)).unwrap_or_default();
        let line = |name: &str| text(name).trim().to_owned();
        let is_on = |name: &str| fields.contains_key(name);
        let count = |name: &str, field: &str| {
            let is_there = |n: &usize| fields.contains_key(&format!("{name}.{n}.{field}"));
            (0..ROWS_MAX).take_while(is_there).count()
        };
        let key = |n: usize| KeyRow {
            name: line(&format!("key.{n}.name")),
            value_type: line(&format!("key.{n}.type")),
            is_secret: is_on(&format!("key.{n}.secret")),
            is_required: is_on(&format!("key.{n}.required")),
            description: text(&format!("key.{n}.description")),
            more: text(&format!("key.{n}.more")),
        };
        let value = |n: usize| ValueRow {
            key: line(&format!("value.{n}.key")),
            value: text(&format!("value.{n}.value")),
            is_kept: is_on(&format!("value.{n}.kept")),
        };
        Self {
            id: line("id"),
            name: text("name"),
            description: text("description"),
            shape: Shape::of_word(&line("shape")).unwrap_or_default(),
            url: line("url"),
            is_sse: line("transport") == "sse",
            command: line("command"),
            args: text("args").trim_end_matches('\n').to_owned(),
            cwd: line("cwd"),
            image: line("image"),
            script: line("script"),
            keys: (0..count("key", "name")).map(key).collect(),
            is_closed: is_on("closed"),
            values: (0..count("value", "key")).map(value).collect(),
            rest: text("rest"),
        }
    }

    /// True if runs do not get the entry.
    pub(super) fn is_disabled(&self) -> bool {
        json(&self.rest).is_ok_and(|rest| is_disabled(&rest))
    }

    /// Takes out that the entry is disabled. Members that cannot be read stay as they are.
    pub(super) fn enable(&mut self) {
        if let Ok(Value::Object(mut rest)) = json(&self.rest)
            && rest.remove(DISABLED).is_some()
        {
            self.rest = written(&rest);
        }
    }

    /// The type of a key's values, if the key is declared.
    pub(super) fn type_of(&self, key: &str) -> Option<String> {
        self.keys.iter().find(|row| row.name == key).map(KeyRow::value_type)
    }

    /// True if values of a key are not shown: it is declared so, or undeclared with such a name.
    pub(super) fn is_hidden(&self, key: &str) -> bool {
        match self.keys.iter().find(|row| row.name == key) {
            Some(row) => row.is_hidden(),
            None => is_secret_name(key),
        }
    }

    /// True if a row has a literal value that no page shows.
    pub(super) fn has_literal(&self, row: &ValueRow) -> bool {
        let value = decoded(&row.value, self.type_of(&row.key).as_deref());
        self.is_hidden(&row.key) && is_literal(&value)
    }

    /// The fault of the control plane at the field of the form that it is about.
    pub(super) fn fault(&self, error: &FieldError) -> Fault {
        let told = format!("{}; {}", error.message, error.remedy);
        let at = &*error.field;
        if at.is_empty() {
            let is_missing =
                matches!(error.code, FieldCode::Fault(narthex_catalog::FaultCode::FieldMissing));
            let field = is_missing.then(|| self.shape.word().to_owned());
            return Fault { field, message: told };
        }
        let (field, is_exact) = match self.place(at) {
            Some((field, is_exact)) => (Some(field), is_exact),
            None => (None, false),
        };
        let message = if is_exact { told } else { format!("`{at}`: {told}") };
        Fault { field, message }
    }

    /// The field for a place in the definition, and whether the place is the whole field.
    fn place(&self, at: &str) -> Option<(String, bool)> {
        let (head, rest) = match at.find(['.', '[']) {
            Some(end) => at.split_at(end),
            None => (at, ""),
        };
        let is_whole = rest.is_empty();
        match head {
            "id" | "name" | "description" | "url" | "command" | "args" | "cwd" | "image"
            | "script" => Some((head.to_owned(), is_whole)),
            "type" => Some(("transport".to_owned(), true)),
            "config_schema" => Some(self.place_of_key(at).unwrap_or(("rest".to_owned(), false))),
            "default_config" => Some(self.place_of_value(at).unwrap_or(("rest".to_owned(), false))),
            // Places in other objects have no field here.
            "agents" | "capabilities" | "servers" => None,
            _ => Some(("rest".to_owned(), false)),
        }
    }

    fn place_of_key(&self, at: &str) -> Option<(String, bool)> {
        let schema = Place::root("config_schema");
        self.keys.iter().enumerate().find_map(|(n, row)| {
            let rest = below(at, &schema.key(&row.name))?;
            let (field, is_whole) = match rest {
                "" => ("name", true),
                ".type" => ("type", true),
                ".kind" => ("secret", true),
                ".required" => ("required", true),
                ".description" => ("description", true),
                _ => ("more", false),
            };
            Some((format!("key.{n}.{field}"), is_whole))
        })
    }

    fn place_of_value(&self, at: &str) -> Option<(String, bool)> {
        let config = Place::root("default_config");
        self.values.iter().enumerate().find_map(|(n, row)| {
            let rest = below(at, &config.key(&row.key))?;
            Some((format!("value.{n}.value"), rest.is_empty()))
        })
    }
}

/// The part of a place behind an outer one.
fn below<'p>(at: &'p str, outer: &Place) -> Option<&'p str> {
    let rest = at.strip_prefix(&outer.to_string())?;
    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
}

#[cfg(test)]
mod tests;
