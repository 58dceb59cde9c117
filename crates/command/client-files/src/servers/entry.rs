//! A server as an entry of narthex's own configuration.

use std::collections::BTreeMap;

use narthex_model::{Secret, SecretName};
use serde_json::{Map, Value, json};

use super::{FoundServer, Target, Text};

/// A secret of an entry that the entry can name instead of having it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameableSecret {
    /// The variable or the header.
    pub key: String,
    /// The value.
    pub value: Secret,
}

impl FoundServer {
    /// The entry, as JSON text in several lines. It has all secrets of the server, so it is one.
    #[must_use]
    pub fn entry(&self) -> Secret {
        self.entry_naming(&BTreeMap::new())
    }

    /// The secrets that an entry can name: whole values of variables and headers. A text with a
    /// placeholder in it is none, because a secret is no placeholder.
    #[must_use]
    pub fn nameable_secrets(&self) -> Vec<NameableSecret> {
        let texts = match &self.target {
            Target::Stdio { env, .. } => env,
            Target::Remote { headers, .. } => headers,
        };
        let secrets = texts.iter().filter_map(|(key, text)| {
            let value = text.is_secret().then(|| literal(text.expose()))??;
            Some(NameableSecret { key: key.clone(), value: Secret::new(value) })
        });
        secrets.collect()
    }

    /// The entry as of [`FoundServer::entry`], with names of secrets in place of the values of
    /// these variables or headers.
    #[must_use]
    pub fn entry_naming(&self, names: &BTreeMap<String, SecretName>) -> Secret {
        let mut entry = Map::new();
        entry.insert("transport".to_owned(), self.transport().as_str().into());
        let mut put = |key: &str, value: Value| {
            let is_empty = value.as_array().is_some_and(Vec::is_empty)
                || value.as_object().is_some_and(Map::is_empty)
                || value.is_null();
            if !is_empty {
                entry.insert(key.to_owned(), value);
            }
        };
        let map = |texts: &BTreeMap<String, Text>| -> Value {
            let pairs = texts.iter().map(|(key, text)| {
                let value = match names.get(key) {
                    Some(name) => format!("${{secret:{}}}", name.as_str()),
                    None => text.expose().to_owned(),
                };
                (key.clone(), value.into())
            });
            Value::Object(pairs.collect())
        };
        match &self.target {
            Target::Stdio { command, args, env, cwd } => {
                put("command", command.expose().into());
                put("args", args.iter().map(Text::expose).collect());
                put("env", map(env));
                put("cwd", json!(cwd));
            }
            Target::Remote { url, headers, .. } => {
                put("url", url.expose().into());
                put("headers", map(headers));
            }
        }
        put("timeoutMs", json!(self.timeout_ms));
        put("mountTimeout", json!(self.start_timeout_ms.map(|ms| format!("{ms}ms"))));
        let mut tools = Map::new();
        tools.extend(self.tools.allow.iter().map(|allow| ("allow".to_owned(), json!(allow))));
        if !self.tools.deny.is_empty() {
            tools.insert("deny".to_owned(), json!(self.tools.deny));
        }
        put("tools", Value::Object(tools));
        if self.is_disabled {
            put("disabled", Value::Bool(true));
        }
        Secret::new(format!("{:#}", Value::Object(entry)))
    }
}

/// The value of a text in narthex's notation; `None` if it has a placeholder.
fn literal(text: &str) -> Option<String> {
    let mut value = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let before = rest[..at].strip_suffix('$')?;
        value.push_str(before);
        value.push_str("${");
        rest = &rest[at + 2..];
    }
    value.push_str(rest);
    Some(value)
}
