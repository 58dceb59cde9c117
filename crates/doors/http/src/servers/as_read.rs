//! Removes members that are only shown from documents that clients send back as they read them:
//! such a document changes nothing (D39).

use std::{collections::BTreeSet, fmt, sync::LazyLock};

use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use super::outbound::OutboundTarget;
use crate::{
    routes::{AccessTarget, Target},
    shapes::{
        AgentWritten, AttachmentNew, AttachmentWritten, Channel, ChannelNew, EnvBinding,
        EnvBindingSecret, Member, MemberRoles, Rules, RulesNew, Webhook, WebhookNew, members,
    },
};

/// The members of an object in their order. Members with the same name are all present.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

/// The member that contains the definition.
const DEFINITION: &str = "definition";

/// The document to store, without the members that are only shown. The sent text may be a document
/// as the API shows it, or one as its author wrote it.
pub(super) fn to_be_stored(target: Target, text: String) -> String {
    let only_shown: &Names = match target {
        Target::Object(_) => return definition(&text).unwrap_or(text),
        Target::Attachments | Target::Attachment => &ATTACHMENT,
        Target::Policy => &POLICY,
        Target::Outbound(OutboundTarget::Channel) => &CHANNEL,
        Target::Outbound(OutboundTarget::Webhook) => &WEBHOOK,
        Target::EnvBinding => &ENV_BINDING,
        Target::Access(AccessTarget::MemberSet) => &MEMBER,
        _ => return text,
    };
    without(&text, only_shown).unwrap_or(text)
}

/// Names of members, read once from a schema.
type Names = LazyLock<BTreeSet<String>>;

static ATTACHMENT: Names = LazyLock::new(only_shown::<AttachmentWritten, AttachmentNew>);
static POLICY: Names = LazyLock::new(only_shown::<Rules, RulesNew>);
static CHANNEL: Names = LazyLock::new(only_shown::<Channel, ChannelNew>);
static WEBHOOK: Names = LazyLock::new(only_shown::<Webhook, WebhookNew>);
static ENV_BINDING: Names = LazyLock::new(only_shown::<EnvBinding, EnvBindingSecret>);
static MEMBER: Names = LazyLock::new(only_shown::<Member, MemberRoles>);
/// The members of a shown catalog object. An agent has all members that other objects have.
static OBJECT: Names = LazyLock::new(members::<AgentWritten>);

/// The members that the answer has and the body lacks.
fn only_shown<Answer: JsonSchema, Body: JsonSchema>() -> BTreeSet<String> {
    members::<Answer>().difference(&members::<Body>()).cloned().collect()
}

/// The definition in an object that was sent as it was shown. `None` for any other text.
fn definition(text: &str) -> Option<String> {
    let Members(sent) = serde_json::from_str(text).ok()?;
    let is_shown = sent.iter().any(|(name, _)| name == "revision")
        && sent.iter().all(|(name, _)| OBJECT.contains(name));
    let mut found = sent.iter().filter(|(name, _)| name == DEFINITION);
    let (_, definition) = found.next().filter(|_| is_shown)?;
    found.next().is_none().then(|| definition.get().to_owned())
}

/// The text without these members. `None` if it has none of them, or is no object.
fn without(text: &str, names: &BTreeSet<String>) -> Option<String> {
    let Members(mut members) = serde_json::from_str(text).ok()?;
    let before = members.len();
    members.retain(|(name, _)| !names.contains(name));
    if members.len() == before {
        return None;
    }
    let member = |(name, value): &(String, Box<RawValue>)| {
        format!("{}:{}", Value::from(name.as_str()), value.get())
    };
    Some(format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(",")))
}

#[cfg(test)]
mod tests {
    use narthex_model::CatalogKind;

    use super::*;

    /// D39: members that are only shown are removed, and all others stay as they were written.
    #[test]
    fn d39_members_that_are_only_shown_are_not_stored() {
        let channel = Target::Outbound(OutboundTarget::Channel);
        let stored = |target, text: &str| to_be_stored(target, text.to_owned());
        let sent = r#"{"name":"a", "url":"x","updated_at":1,"url":"y"}"#;
        assert_eq!(stored(channel, sent), r#"{"url":"x","url":"y"}"#);
        for text in ["[]", "{", r#"{"provider": "log"}"#] {
            assert_eq!(stored(channel, text), text);
        }
        let agent = Target::Object(CatalogKind::Agent);
        let shown = r#"{"id":"a","revision":3,"definition":{"name": "a"},"etag":"x"}"#;
        assert_eq!(stored(agent, shown), r#"{"name": "a"}"#);
        for text in [r#"{"definition":{}}"#, r#"{"revision":1,"definition":{},"other":1}"#] {
            assert_eq!(stored(agent, text), text);
        }
    }
}
