//! The use of a server of the catalog under an alias: `mcpServers` of capabilities and agents.

mod request;

use std::collections::{BTreeMap, BTreeSet};

use narthex_model::{Alias, ServerId, json::Place};
use serde::Serialize;
use serde_json::{Map, Value};

pub use self::request::AttachRequest;
use crate::{
    fault::FaultCode,
    layer::{self, Layer},
    reader::{Object, Reader},
    server::{NameRules, settings},
    template::{ConfigValue, Source},
};

/// The use of one server (O6). Without `config` it sets no restriction (O27).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attachment {
    /// The server's id in the catalog.
    #[serde(rename = "ref")]
    pub reference: ServerId,
    /// The values that this level sets.
    #[serde(skip_serializing_if = "Layer::is_empty")]
    pub(crate) config: Layer,
    /// True if a run works without the server when the server fails (D17); `None` if this level
    /// does not set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
    /// Filter for the server's tools: a level can only hide tools.
    #[serde(skip_serializing_if = "NameRules::is_open")]
    pub tools: NameRules,
}

/// Attachments by alias.
pub type Attachments = BTreeMap<Alias, Attachment>;

/// The kind of object that holds attachments, as rules differ (O12).
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Holder {
    Capability,
    Agent,
}

impl Attachment {
    /// The values of the attachment as its author wrote them (D39). Writing them back unchanged
    /// changes nothing.
    #[must_use]
    pub fn written(&self) -> Map<String, Value> {
        let shown = |value: &ConfigValue| match value {
            ConfigValue::Secret(name) => format!("${{{name}}}").into(),
            ConfigValue::Removed | ConfigValue::Tree(_) => value.written(),
        };
        self.config.iter().map(|(key, value)| (key.clone(), shown(value))).collect()
    }

    /// The keys that the attachment sets or removes.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.config.keys().map(String::as_str)
    }

    /// The keys and members that differ from an earlier attachment.
    #[must_use]
    pub fn changed_from(&self, before: &Self) -> BTreeSet<String> {
        let keys = self.config.keys().chain(before.config.keys());
        let mut changed: BTreeSet<_> =
            keys.filter(|key| self.config.get(*key) != before.config.get(*key)).cloned().collect();
        let members = [
            ("ref", self.reference == before.reference),
            ("optional", self.optional == before.optional),
            ("tools", self.tools == before.tools),
        ];
        changed.extend(
            members.into_iter().filter(|(_, is_same)| !is_same).map(|(name, _)| name.to_owned()),
        );
        changed
    }

    /// True if the attachment sets the key to a secret.
    #[must_use]
    pub fn is_secret(&self, key: &str) -> bool {
        matches!(self.config.get(key), Some(ConfigValue::Secret(_)))
    }
}

/// Reads `mcpServers`, or its other spelling.
pub(crate) fn read(reader: &mut Reader, object: &Object<'_>, holder: Holder) -> Attachments {
    reader.excluding(object, "mcpServers", "mcp_servers");
    let mut found = Attachments::new();
    for key in ["mcpServers", "mcp_servers"] {
        let Some(servers) = reader.object(object, key) else { continue };
        for (name, node, at) in servers.entries() {
            let alias = alias(reader, name, &at);
            let Some(object) = reader.as_object(node, &at) else { continue };
            let attachment = attachment(reader, &object, holder);
            if let (Some(alias), Some(attachment)) = (alias, attachment) {
                found.insert(alias, attachment);
            }
        }
    }
    found
}

fn alias(reader: &mut Reader, text: &str, at: &Place) -> Option<Alias> {
    match Alias::of_server(text) {
        Ok(alias) => Some(alias),
        Err(error) => {
            reader.invalid(at, error.to_string(), "choose another alias");
            None
        }
    }
}

fn attachment(reader: &mut Reader, object: &Object<'_>, holder: Holder) -> Option<Attachment> {
    const INLINE: [&str; 8] =
        ["url", "command", "args", "image", "script", "type", "transport", "headers"];
    let inline: Vec<&str> = INLINE.into_iter().filter(|key| object.get(key).is_some()).collect();
    if !inline.is_empty() {
        let message = format!("a server is described here (`{}`)", inline.join("`, `"));
        let remedy = "add it to the catalog and refer to it by `ref`";
        reader.fault(&object.at, FaultCode::InlineServer, message, remedy);
        return None;
    }
    reader.only(object, &["ref", "config", "optional", "tools"]);
    fields(reader, object, "ref", "config", holder)
}

fn fields(
    reader: &mut Reader,
    object: &Object<'_>,
    reference: &str,
    config: &str,
    holder: Holder,
) -> Option<Attachment> {
    let id = reader.text(object, reference).and_then(|text| {
        let at = object.at.key(reference);
        reader.name(&at, text, ServerId::new)
    });
    if object.get(reference).is_none() {
        reader.missing(object, reference, "the id of a server of the catalog");
    }
    let inner = reader.object(object, config);
    let config = inner.map(|inner| {
        let layer = layer::read(reader, &inner);
        if holder == Holder::Capability {
            refuse_params(reader, &layer, &inner.at);
        }
        layer
    });
    let optional = reader.flag(object, "optional");
    let tools = settings::rules(reader, object, "tools");
    Some(Attachment { reference: id?, config: config.unwrap_or_default(), optional, tools })
}

/// O12: parameters are an agent's own.
fn refuse_params(reader: &mut Reader, layer: &Layer, at: &Place) {
    for (key, value) in layer {
        for placeholder in value.placeholders() {
            if placeholder.source == Source::Params {
                let message = format!("`${{{placeholder}}}` has a value only in an agent");
                let remedy = "set the key in the agent, or use `scope`";
                reader.fault(&at.key(key), FaultCode::PlaceholderNotAllowed, message, remedy);
            }
        }
    }
}
