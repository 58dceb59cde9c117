//! The entry by which a client starts `narthex connect`, made from the row's template.

use serde_json::{Map, Value};

use super::Client;
use crate::edit::{Document, EditError};

/// Signs of the template.
const NAME: &str = "{name}";
const PROGRAM: &str = "{narthex}";
const URL: &str = "{url}";
const TOKEN: &str = "{token_header}";
/// The field by which an entry with a token turns the sign-in off.
const SIGN_IN: &str = "oauth";
/// The first argument of the command, after which further ones follow.
const CONNECT: &str = "connect";

/// The facts of an own entry.
#[derive(Debug, Clone, Copy)]
pub struct OwnEntry<'a> {
    /// The name of the entry: a plain word.
    pub name: &'a str,
    /// The path of the program.
    pub program: &'a str,
    /// Arguments after `connect`.
    pub arguments: &'a [String],
}

impl Client {
    /// The entry by which the client starts `narthex connect`.
    ///
    /// # Errors
    /// When the template of the row is not of the row's format.
    pub fn own_entry(&self, own: &OwnEntry<'_>) -> Result<Value, EditError> {
        // The name is a plain word in each format. Other texts are put in after parsing, so that
        // they need no escapes.
        let text = self.stdio_entry.replace(NAME, own.name);
        let template = Document::parse(self.format, text.as_bytes())?.value(&[])?;
        Ok(filled(template.unwrap_or_default(), own))
    }

    /// The entry with an address and without a token, for a client that signs its human in; `None`
    /// for a client that takes no address.
    ///
    /// # Errors
    /// When the template of the row is not of the row's format.
    pub fn address_entry(&self, name: &str, url: &str) -> Result<Option<Value>, EditError> {
        let Some(template) = &self.http_entry else { return Ok(None) };
        let text = template.replace(NAME, name);
        let template = Document::parse(self.format, text.as_bytes())?.value(&[])?;
        Ok(template.and_then(|template| addressed(template, url)))
    }
}

/// The template with the address, without what has a place for a token, and without what is empty
/// then.
fn addressed(value: Value, url: &str) -> Option<Value> {
    match value {
        Value::String(text) => (!text.contains(TOKEN)).then(|| text.replace(URL, url).into()),
        Value::Array(items) => {
            let had_any = !items.is_empty();
            let items: Vec<_> = items.into_iter().filter_map(|one| addressed(one, url)).collect();
            (!had_any || !items.is_empty()).then(|| items.into())
        }
        Value::Object(fields) => {
            let had_any = !fields.is_empty();
            let is_off = |key: &str, value: &Value| key == SIGN_IN && *value == Value::Bool(false);
            let fields = fields.into_iter().filter(|(key, value)| !is_off(key, value));
            let fields = fields.filter_map(|(key, value)| Some((key, addressed(value, url)?)));
            let fields: Map<_, _> = fields.collect();
            (!had_any || !fields.is_empty()).then_some(Value::Object(fields))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(value),
    }
}

fn filled(value: Value, own: &OwnEntry<'_>) -> Value {
    match value {
        Value::String(text) => text.replace(PROGRAM, own.program).into(),
        Value::Array(items) => {
            let is_command = items.iter().any(|item| item == CONNECT);
            let further = if is_command { own.arguments } else { &[] };
            let items = items.into_iter().map(|item| filled(item, own));
            items.chain(further.iter().map(|text| text.as_str().into())).collect()
        }
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| (key, filled(value, own)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clients::{Scope, clients};

    /// The entry of the user's row of a client.
    fn entry(id: &str) -> Value {
        let mut rows = clients().iter().filter(|row| row.id == id && row.scope == Scope::User);
        let arguments = ["--data".to_owned(), "/srv/a \"b\"".to_owned()];
        let own = OwnEntry { name: "narthex", program: "/opt/{it}\\n", arguments: &arguments };
        rows.next().unwrap().own_entry(&own).unwrap()
    }

    #[test]
    fn each_template_becomes_an_entry_with_its_arguments() {
        let (program, data) = ("/opt/{it}\\n", "/srv/a \"b\"");
        let usual = json!({ "command": program, "args": ["connect", "--data", data] });
        assert_eq!(entry("cursor"), usual);
        assert_eq!(entry("codex"), usual);
        assert_eq!(
            entry("opencode"),
            json!({ "type": "local", "command": [program, "connect", "--data", data] })
        );
        let goose = entry("goose");
        assert_eq!((&goose["name"], &goose["cmd"]), (&json!("narthex"), &json!(program)));
        assert_eq!(goose["args"], json!(["connect", "--data", data]));
        assert_eq!(entry("copilot-cli")["tools"], json!(["*"]));
    }

    /// A client without programs would need an entry with an address.
    #[test]
    fn every_row_can_start_the_program() {
        for row in clients() {
            let own = OwnEntry { name: "narthex", program: "/bin/narthex", arguments: &[] };
            let text = row.own_entry(&own).unwrap().to_string();
            assert!(text.contains("/bin/narthex") && text.contains(CONNECT), "{}", row.label());
            assert!(row.transports.contains(&crate::clients::Transport::Stdio), "{}", row.label());
        }
    }
}
