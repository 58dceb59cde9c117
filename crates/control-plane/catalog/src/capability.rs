//! A capability: a named bundle of attachments, or of text or a script, which agents include.

use narthex_model::CapabilityName;
use serde::Serialize;

use crate::{
    agent::{refuse_placeholders, wanted_name},
    attachment::{self, Attachments, Holder},
    fault::{FaultCode, Faults},
    reader::{Object, Parsed, Reader, parse, partly},
    schema::word,
};

/// A named bundle that agents include.
///
/// Serializes to its one normal form, which [`Capability::parse`] reads as the same capability.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Capability {
    /// Name of the capability.
    pub name: CapabilityName,
    /// Purpose of the capability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The permitted contents (O49); `None` permits any.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<CapabilityKind>,
    /// Text for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The name of a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// The attached servers.
    #[serde(rename = "mcpServers", skip_serializing_if = "Attachments::is_empty")]
    pub servers: Attachments,
}

/// The permitted contents of a capability (O49).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CapabilityKind {
    /// Text alone.
    Text,
    /// Text and a script.
    Script,
    /// Text and servers.
    Mcp,
}

const KINDS: [(&str, CapabilityKind); 3] = [
    ("text", CapabilityKind::Text),
    ("script", CapabilityKind::Script),
    ("mcp", CapabilityKind::Mcp),
];

impl Capability {
    /// Reads a capability. `name` is the name in the address of the request.
    ///
    /// # Errors
    /// All faults at once, each with its place in the text.
    pub fn parse(text: &[u8], name: Option<&CapabilityName>) -> Result<Parsed<Self>, Faults> {
        parse(text, |reader, object| read(reader, object, name))
    }

    /// Reads the valid part of a faulty text: enough to find further faults.
    #[must_use]
    pub fn partly(text: &[u8]) -> Option<Self> {
        partly(text, |reader, object| read(reader, object, None))
    }
}

fn read(
    reader: &mut Reader,
    object: &Object<'_>,
    wanted: Option<&CapabilityName>,
) -> Option<Capability> {
    reader.only(
        object,
        &["id", "name", "description", "type", "text", "script", "mcpServers", "mcp_servers"],
    );
    let name = wanted_name(reader, object, wanted, CapabilityName::new);
    let kind = word(reader, object, "type", &KINDS);
    let text = reader.owned(object, "text");
    if let Some(text) = &text {
        refuse_placeholders(reader, text, &object.at.key("text"));
    }
    let script = reader.owned(object, "script");
    let servers = attachment::read(reader, object, Holder::Capability);
    let refuse = |reader: &mut Reader, key: &str, word: &str| {
        let message = format!("a capability of the type `{word}` cannot have `{key}`");
        let remedy = "change its `type`, or move this to another capability";
        reader.fault(&object.at.key(key), FaultCode::FieldsExclude, message, remedy);
    };
    let (has_servers, has_script) = (!servers.is_empty(), script.is_some());
    match kind {
        Some(CapabilityKind::Text) => {
            if has_servers {
                refuse(reader, "mcpServers", "text");
            }
            if has_script {
                refuse(reader, "script", "text");
            }
        }
        Some(CapabilityKind::Script) if has_servers => refuse(reader, "mcpServers", "script"),
        Some(CapabilityKind::Mcp) if has_script => refuse(reader, "script", "mcp"),
        Some(CapabilityKind::Script | CapabilityKind::Mcp) | None => {}
    }
    let description = reader.owned(object, "description");
    Some(Capability { name: name?, description, kind, text, script, servers })
}
