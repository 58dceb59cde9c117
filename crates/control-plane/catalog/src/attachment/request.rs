//! An attachment in the form of an attach request, or in that of `mcpServers` (X-D2).

use narthex_model::{
    Alias, SecretName,
    json::{Node, Place},
};
use serde::Serialize;

use super::{Attachment, Holder, alias, fields};
use crate::{
    fault::{FaultCode, Faults},
    layer::Layer,
    reader::{Object, Parsed, Reader, parse},
    schema::{KeyKind, is_key, word},
    template::ConfigValue,
};

/// An attachment to be added to an agent, or changed there.
#[derive(Debug, Clone, Serialize)]
pub struct AttachRequest {
    /// The alias; the server's id if the request gives none.
    pub alias: Alias,
    /// The attachment.
    #[serde(flatten)]
    pub attachment: Attachment,
    /// The member that names the server, for faults in the words of the request.
    #[serde(skip)]
    pub reference_member: &'static str,
    /// The member with the values.
    #[serde(skip)]
    pub config_member: &'static str,
}

const REFERENCES: [&str; 3] = ["name", "ref", "catalog_entry_id"];
const CONFIGS: [&str; 3] = ["env", "config", TYPED];
/// The member that gives each value with its kind.
const TYPED: &str = "env_json";
/// A member that some systems let an attachment have, and this one never does.
const GRANTED: &str = "tool_scopes_granted";

impl AttachRequest {
    /// Reads `{"name": "linear", "env": {"LINEAR_API_KEY": "${LINEAR_API_KEY}"}}`. The other forms
    /// have `ref`, `alias` and `config` as in `mcpServers`, or `catalog_entry_id` and `env_json`
    /// (X-E19). `wanted` is the alias in the address of the request.
    ///
    /// # Errors
    /// All faults at once, each with its place in the text.
    pub fn parse(text: &[u8], wanted: Option<&Alias>) -> Result<Parsed<Self>, Faults> {
        parse(text, |reader, object| read(reader, object, wanted))
    }
}

impl PartialEq for AttachRequest {
    fn eq(&self, other: &Self) -> bool {
        // Two requests are equal in whatever words they are written.
        self.alias == other.alias && self.attachment == other.attachment
    }
}

fn read(reader: &mut Reader, object: &Object<'_>, wanted: Option<&Alias>) -> Option<AttachRequest> {
    let others = ["alias", "optional", "tools", GRANTED];
    reader.only(object, &[&REFERENCES[..], &CONFIGS, &others].concat());
    if object.get(GRANTED).is_some() {
        let message = "an attachment cannot grant tool scopes";
        let remedy = "leave it out; a human grants tool scopes";
        reader.fault(&object.at.key(GRANTED), FaultCode::ValueInvalid, message, remedy);
    }
    let reference_member = said(reader, object, &REFERENCES);
    let config_member = said(reader, object, &CONFIGS);
    let attachment = match config_member {
        TYPED => {
            let config = reader.object(object, TYPED).map(|inner| typed(reader, &inner));
            let bare = fields(reader, object, reference_member, "", Holder::Agent);
            bare.map(|bare| Attachment { config: config.unwrap_or_default(), ..bare })
        }
        _ => fields(reader, object, reference_member, config_member, Holder::Agent),
    };
    let at = object.at.key("alias");
    let own = reader.text(object, "alias").map(|text| alias(reader, text, &at));
    let alias = match (wanted, own) {
        (Some(wanted), Some(Some(own))) if *wanted != own => {
            let message = "the alias differs from the alias in the path";
            reader.invalid(&at, message, "leave it out, or write to its own address");
            return None;
        }
        (Some(wanted), _) => wanted.clone(),
        (None, Some(own)) => own?,
        (None, None) => {
            let id = attachment.as_ref()?.reference.as_str();
            alias(reader, id, &object.at.key(reference_member))?
        }
    };
    Some(AttachRequest { alias, attachment: attachment?, reference_member, config_member })
}

/// The first of these members that is present, or the first of all.
fn said(reader: &mut Reader, object: &Object<'_>, members: &[&'static str]) -> &'static str {
    let mut there = members.iter().filter(|member| object.get(member).is_some());
    let Some(first) = there.next() else { return members[0] };
    for other in there {
        reader.excluding(object, first, other);
    }
    first
}

/// `{"KEY": {"kind": "value", "value": …}, "OTHER": {"kind": "secret", "ref": "NAME"}}`.
fn typed(reader: &mut Reader, object: &Object<'_>) -> Layer {
    let kinds = [("value", KeyKind::Value), ("secret", KeyKind::Secret)];
    let mut layer = Layer::new();
    for (key, node, at) in object.entries() {
        let is_fine = is_key(reader, key, &at);
        let Some(inner) = reader.as_object(node, &at) else { continue };
        if inner.get("kind").is_none() {
            reader.missing(&inner, "kind", "`\"kind\": \"value\"` or `\"secret\"`");
            continue;
        }
        let Some(kind) = word(reader, &inner, "kind", &kinds) else { continue };
        let member = match kind {
            KeyKind::Value => "value",
            KeyKind::Secret => "ref",
        };
        reader.only(&inner, &["kind", member]);
        let Some(node) = inner.get(member) else {
            reader.missing(&inner, member, "the value of the key");
            continue;
        };
        let at = inner.at.key(member);
        let value = match kind {
            KeyKind::Value => literal(reader, node, &at),
            KeyKind::Secret => secret(reader, node, &at),
        };
        if let Some(value) = value
            && is_fine
        {
            layer.insert(key.clone(), value);
        }
    }
    layer
}

/// X-E22: a value of kind `value` is no secret's reference.
fn literal(reader: &mut Reader, node: &Node, at: &Place) -> Option<ConfigValue> {
    let value = reader.config_value(node, at)?;
    if matches!(value, ConfigValue::Secret(_)) {
        let message = "this is a reference to a secret, but `kind` is `value`";
        let remedy = "write `\"kind\": \"secret\"` and the name as `ref`";
        reader.fault(at, FaultCode::SecretMisplaced, message, remedy);
        return None;
    }
    Some(value)
}

/// A secret's name, bare or as `${NAME}` (X-E20).
fn secret(reader: &mut Reader, node: &Node, at: &Place) -> Option<ConfigValue> {
    let text = reader.as_text(node, at)?;
    let bare = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
    reader.name(at, bare, SecretName::new).map(ConfigValue::Secret)
}
