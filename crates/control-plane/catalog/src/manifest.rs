//! An `agent.yaml` with its servers inside, in `mcp` (R-M4, R-M5, R-M8), or with names of catalog
//! servers (R-E22), or both: split into an agent and the servers that it attaches.
//!
//! `${NAME}` is a secret of the workspace and a whole value. A variable of the daemon is
//! `${env:NAME}`, also inside a longer text, or `env:NAME` as a whole.

mod document;
mod places;
mod server;

use std::collections::BTreeMap;

use narthex_model::{AgentName, Alias, UnknownKey, json::shortened};
use serde_json::{Map, Value, json};

pub use self::document::ManifestDocument;
use self::places::Places;

/// An agent, and the servers that were inside it.
#[derive(Debug, Clone, PartialEq)]
struct TakenApart {
    /// Name of the agent, or [`UNNAMED`].
    name: String,
    /// The agent with its attachments, as far as it can be used.
    agent: Value,
    /// Servers for the catalog, with the ids `AGENT-ALIAS` and the agent as `made_by`. The caller
    /// that stores them checks that no other server has the id.
    servers: Vec<Inside>,
    /// All parts that cannot be used.
    faults: Vec<ManifestFault>,
    /// Notices for a person: rewritten parts, and parts without effect.
    notices: Vec<ManifestFault>,
    /// Places of the agent with another name here than in the written text.
    places: Places,
}

/// A server that was inside an agent.
#[derive(Debug, Clone, PartialEq)]
struct Inside {
    /// The place in the text, such as `mcp.servers.github`.
    at: String,
    server: Value,
    /// Places of the server with another name here than in the written text.
    places: Places,
}

/// A remark on one place of a manifest. It never holds a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFault {
    /// The place, such as `mcp.servers.github.timeout`.
    pub field: String,
    /// The problem, or the notice for a person.
    pub message: String,
    /// The remedy; empty if no action is needed.
    pub remedy: String,
}

/// The name in front of servers inside an agent whose own name cannot be used.
const UNNAMED: &str = "unnamed";

/// Takes out `mcp`, if it is there, and other members that only a manifest has. Parts that cannot
/// be used are left out of the result.
fn take_apart(agent: Value) -> TakenApart {
    let mut reading = Reading::default();
    let Value::Object(mut fields) = agent else {
        // The reader of the agent reports this fault.
        return reading.done(UNNAMED.to_owned(), agent);
    };
    reading.skills(&mut fields);
    let name = fields.get("name").or_else(|| fields.get("id"));
    let name = name.and_then(Value::as_str).unwrap_or_default();
    // The reader of the agent reports a fault of its name, once.
    let name = if AgentName::new(name).is_ok() { name } else { UNNAMED }.to_owned();
    if let Some(mcp) = fields.remove("mcp") {
        reading.mcp(&name, &mcp, &mut fields);
    }
    reading.done(name, fields.into())
}

/// True if an agent is written as a manifest.
fn is_manifest(agent: &Value) -> bool {
    agent.get("mcp").is_some() || agent.get("skills").is_some()
}

#[derive(Default)]
struct Reading {
    faults: Vec<ManifestFault>,
    notices: Vec<ManifestFault>,
    servers: Vec<Inside>,
    places: Places,
}

impl Reading {
    fn done(self, name: String, agent: Value) -> TakenApart {
        let Self { faults, notices, servers, places } = self;
        TakenApart { name, agent, servers, faults, notices, places }
    }

    fn fault(&mut self, field: &str, message: impl Into<String>, remedy: impl Into<String>) {
        let (message, remedy) = (message.into(), remedy.into());
        self.faults.push(ManifestFault { field: field.to_owned(), message, remedy });
    }

    fn notice(&mut self, field: &str, message: impl Into<String>) {
        let (message, remedy) = (message.into(), String::new());
        self.notices.push(ManifestFault { field: field.to_owned(), message, remedy });
    }

    /// Renames `skills` to `capabilities`: manifests use the former word.
    fn skills(&mut self, fields: &mut Map<String, Value>) {
        let Some(skills) = fields.remove("skills") else { return };
        if fields.contains_key("capabilities") {
            self.fault(
                "skills",
                "the agent has `capabilities` too, which mean the same",
                "keep one",
            );
            return;
        }
        self.notice("skills", "they are read as `capabilities` of these names");
        self.places.add("capabilities", "skills".to_owned());
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
                return self.fault(
                    "mcp",
                    "expected servers, or a list of names of servers",
                    remedy,
                );
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
            // A mark that there are none, which is stored (R-M8).
            self.notice(
                "mcp",
                "the manifest names no servers, so the agent is stored as one without servers",
            );
            fields.insert("mcp".to_owned(), json!({}));
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
            let mut places = Places::default();
            let made = self.server((&id, alias), entry, (&at, &mut places));
            let Some((mut server, is_optional)) = made else { continue };
            server["made_by"] = json!({ "agent": agent });
            let mut attachment = json!({ "ref": id });
            if is_optional {
                attachment["optional"] = true.into();
            }
            attached.insert(alias.clone(), (at.clone(), attachment));
            self.servers.push(Inside { at, server, places });
        }
    }

    /// Attaches servers of the catalog, each under its own name (R-E22). If a server of that name
    /// is inside the manifest as well, the latter counts (R-D2).
    fn names(&mut self, at: &str, names: &Value, attached: &mut BTreeMap<String, (String, Value)>) {
        let Value::Array(names) = names else {
            return self.fault(at, "expected a list", "write a list of names of servers");
        };
        let inline: Vec<_> = attached.keys().cloned().collect();
        for (index, name) in names.iter().enumerate() {
            let at = format!("{at}[{index}]");
            let Some(name) = name.as_str() else {
                self.fault(&at, "expected a text", "write the name of a server");
                continue;
            };
            if inline.iter().any(|known| known == name) {
                self.notice(
                    &at,
                    format!(
                        "`{}` is described inside the manifest as well, and that description is \
                         used",
                        shortened(name)
                    ),
                );
                continue;
            }
            let attachment = (at.clone(), json!({ "ref": name }));
            if attached.insert(name.to_owned(), attachment).is_some() {
                self.fault(&at, "the list has this name already", "keep one");
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
            return self.fault(key, "expected an object", "write attachments by their aliases");
        };
        for (alias, (at, attachment)) in attached {
            match own.contains_key(&alias) {
                true => {
                    let remedy = format!("rename it, or remove it from `{key}`");
                    self.fault(&at, "the agent has this alias already", remedy);
                }
                false => {
                    self.places.add(format!("{key}.{alias}.ref"), at.clone());
                    self.places.add(format!("{key}.{alias}"), at);
                    own.extend([(alias, attachment)]);
                }
            }
        }
    }

    fn only(&mut self, fields: &Map<String, Value>, at: &str, known: &[&str]) {
        for key in fields.keys().filter(|key| !known.contains(&key.as_str())) {
            let unknown = UnknownKey::new(key, known);
            let (message, remedy) = (unknown.message(), unknown.remedy());
            self.fault(&format!("{at}.{}", shortened(key)), message, remedy);
        }
    }

    fn object<'v>(&mut self, value: &'v Value, at: &str) -> Option<&'v Map<String, Value>> {
        let found = value.as_object();
        if found.is_none() {
            self.fault(at, "expected an object", "write keys with their values");
        }
        found
    }
}

#[cfg(test)]
mod tests;
