//! An `agent.yaml` with its servers inside, in `mcp` (R-M4, R-M5, R-M8), or with the names of some
//! of the catalog (R-E22), or both: taken apart into an agent and servers that it attaches.
//!
//! `${NAME}` is a secret of the workspace and a whole value; a variable of the daemon is
//! `${env:NAME}`, also inside a longer text, or `env:NAME` as a whole.

mod server;

use std::collections::BTreeMap;

use narthex_model::{Alias, json::shortened};
use serde_json::{Map, Value, json};

/// An agent, and what stood inside it.
#[derive(Debug, Clone, PartialEq)]
pub struct TakenApart {
    /// The agent, which attaches them.
    pub agent: Value,
    /// Servers of the catalog, named after the agent, as `AGENT-ALIAS`; each with the place in the
    /// manifest where it stood, such as `mcp.servers.github`. Another server may have that name:
    /// whoever stores them looks.
    pub servers: Vec<(String, Value)>,
    /// What a person should know: what was written in another way, and what counts for nothing.
    pub notices: Vec<ManifestFault>,
}

/// Something about one place of a manifest. Never holds a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFault {
    /// Where, such as `mcp.servers.github.timeout`.
    pub field: String,
    /// What is wrong, or what a person should know.
    pub message: String,
    /// What to do about it; empty if nothing is to be done.
    pub remedy: String,
}

/// Takes out `mcp`, if it is there, and what else only a manifest has.
///
/// # Errors
/// Everything that cannot be used, each with its place.
pub fn take_apart(agent: Value) -> Result<TakenApart, Vec<ManifestFault>> {
    let mut reading = Reading::default();
    let Value::Object(mut fields) = agent else {
        // Whoever reads the agent says so.
        return Ok(TakenApart { agent, servers: Vec::new(), notices: Vec::new() });
    };
    reading.skills(&mut fields);
    let name = fields.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(mcp) = fields.remove("mcp") {
        reading.mcp(&name, &mcp, &mut fields);
    }
    let Reading { faults, notices, servers } = reading;
    match faults.is_empty() {
        true => Ok(TakenApart { agent: fields.into(), servers, notices }),
        false => Err(faults),
    }
}

/// Whether an agent is written as a manifest.
#[must_use]
pub fn is_manifest(agent: &Value) -> bool {
    agent.get("mcp").is_some() || agent.get("skills").is_some()
}

#[derive(Default)]
struct Reading {
    faults: Vec<ManifestFault>,
    notices: Vec<ManifestFault>,
    servers: Vec<(String, Value)>,
}

impl Reading {
    fn fault(&mut self, field: &str, message: impl Into<String>, remedy: impl Into<String>) {
        let (message, remedy) = (message.into(), remedy.into());
        self.faults.push(ManifestFault { field: field.to_owned(), message, remedy });
    }

    fn notice(&mut self, field: &str, message: impl Into<String>) {
        let (message, remedy) = (message.into(), String::new());
        self.notices.push(ManifestFault { field: field.to_owned(), message, remedy });
    }

    /// What manifests call skills are capabilities here.
    fn skills(&mut self, fields: &mut Map<String, Value>) {
        let Some(skills) = fields.remove("skills") else { return };
        if fields.contains_key("capabilities") {
            self.fault("skills", "the agent has `capabilities`, which are the same", "keep one");
            return;
        }
        self.notice("skills", "they are read as `capabilities` of these names");
        fields.insert("capabilities".to_owned(), skills);
    }

    fn mcp(&mut self, agent: &str, mcp: &Value, fields: &mut Map<String, Value>) {
        let (inline, names) = match mcp {
            Value::Null => (None, None),
            Value::Array(_) => (None, Some(("mcp".to_owned(), mcp))),
            Value::Object(inner) => {
                self.only(inner, "mcp", &["servers", "names"]);
                let servers = inner.get("servers").filter(|servers| !servers.is_null());
                let names = inner.get("names").filter(|names| !names.is_null());
                match (servers, names) {
                    (Some(list @ Value::Array(_)), None) => {
                        (None, Some(("mcp.servers".to_owned(), list)))
                    }
                    (servers, names) => {
                        (servers, names.map(|names| ("mcp.names".to_owned(), names)))
                    }
                }
            }
            _ => {
                let remedy = "write `servers`, or a list of names of servers";
                return self.fault("mcp", "neither servers nor names of some stand here", remedy);
            }
        };
        let mut attached = BTreeMap::new();
        if let Some(inline) = inline {
            self.inline(agent, inline, &mut attached);
        }
        if let Some((at, names)) = names {
            self.names(&at, names, &mut attached);
        }
        if attached.is_empty() && self.faults.is_empty() {
            self.notice("mcp", "the agent has no server there");
            return;
        }
        self.attach(attached, fields);
    }

    fn inline(
        &mut self,
        agent: &str,
        inline: &Value,
        attached: &mut BTreeMap<String, (String, Value)>,
    ) {
        let Some(inline) = self.object(inline, "mcp.servers") else { return };
        for (alias, entry) in inline {
            let at = format!("mcp.servers.{}", shortened(alias));
            if let Err(error) = Alias::new(alias) {
                self.fault(&at, error.to_string(), "rename the server");
                continue;
            }
            let id = format!("{agent}-{alias}");
            let Some((server, is_optional)) = self.server((&id, alias), entry, &at) else {
                continue;
            };
            let mut attachment = json!({ "ref": id });
            if is_optional {
                attachment["optional"] = true.into();
            }
            attached.insert(alias.clone(), (at.clone(), attachment));
            self.servers.push((at, server));
        }
    }

    /// Servers of the catalog, each attached under its own name (R-E22). One that stands inside as
    /// well counts as it is there (R-D2).
    fn names(&mut self, at: &str, names: &Value, attached: &mut BTreeMap<String, (String, Value)>) {
        let Value::Array(names) = names else {
            return self.fault(at, "no list stands here", "write a list of names of servers");
        };
        let inline: Vec<_> = attached.keys().cloned().collect();
        for (index, name) in names.iter().enumerate() {
            let at = format!("{at}[{index}]");
            let Some(name) = name.as_str() else {
                self.fault(&at, "no text stands here", "write the name of a server");
                continue;
            };
            if inline.iter().any(|known| known == name) {
                self.notice(&at, format!("`{}` counts as it stands inside", shortened(name)));
                continue;
            }
            let attachment = (at.clone(), json!({ "ref": name }));
            if attached.insert(name.to_owned(), attachment).is_some() {
                self.fault(&at, "the agent has this name before", "keep one");
            }
        }
    }

    fn attach(
        &mut self,
        attached: BTreeMap<String, (String, Value)>,
        fields: &mut Map<String, Value>,
    ) {
        let key = ["mcpServers", "mcp_servers"].into_iter().find(|key| fields.contains_key(*key));
        let key = key.unwrap_or("mcpServers");
        let own = fields.entry(key).or_insert_with(|| json!({}));
        let Value::Object(own) = own else {
            return self.fault(key, "no object stands here", "write attachments by their aliases");
        };
        for (alias, (at, attachment)) in attached {
            match own.contains_key(&alias) {
                true => {
                    let remedy = format!("rename it, or remove it from `{key}`");
                    self.fault(&at, "the agent has this alias before", remedy);
                }
                false => own.extend([(alias, attachment)]),
            }
        }
    }

    fn only(&mut self, fields: &Map<String, Value>, at: &str, known: &[&str]) {
        for key in fields.keys().filter(|key| !known.contains(&key.as_str())) {
            let remedy = format!("remove it; the keys here are `{}`", known.join("`, `"));
            self.fault(&format!("{at}.{}", shortened(key)), "this is no known key", remedy);
        }
    }

    fn object<'v>(&mut self, value: &'v Value, at: &str) -> Option<&'v Map<String, Value>> {
        let found = value.as_object();
        if found.is_none() {
            self.fault(at, "no object stands here", "write keys with their values");
        }
        found
    }
}

#[cfg(test)]
mod tests;
