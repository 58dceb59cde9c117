//! A server as an entry of narthex's own configuration.

use narthex_model::Secret;
use serde_json::{Map, Value, json};

use super::{FoundServer, Target, Text};

impl FoundServer {
    /// The entry, as JSON text in several lines. It has all secrets of the server, so it is one.
    #[must_use]
    pub fn entry(&self) -> Secret {
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
        let map = |texts: &std::collections::BTreeMap<String, Text>| -> Value {
            let pairs = texts.iter();
            let pairs = pairs.map(|(name, text)| (name.clone(), text.expose().into()));
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
