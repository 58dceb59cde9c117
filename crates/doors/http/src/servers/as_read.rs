//! Documents that clients send back as they were read: these change nothing (D39).

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use super::outbound::OutboundTarget;
use crate::routes::Target;

/// The members of an object in their order, also those of one name.
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

/// The members that answers show of an object beside its definition.
const AROUND: [&str; 9] = [
    "id",
    "revision",
    "etag",
    "created_at",
    "updated_at",
    "updated_by",
    "warnings",
    "errors",
    "agent_env_names",
];
/// The member that has the definition.
const DEFINITION: &str = "definition";

/// The document to store, from one as it was read or as its author writes it: without the members
/// that are only shown.
pub(super) fn to_be_stored(target: Target, text: String) -> String {
    let only_shown: &[&str] = match target {
        Target::Object(_) => return definition(&text).unwrap_or(text),
        Target::Attachments | Target::Attachment => &["warnings"],
        Target::Policy => &["ids", "faults", "revision", "updated_at", "updated_by", "warnings"],
        Target::Outbound(OutboundTarget::Channel) => &["name", "updated_at", "updated_by"],
        Target::Outbound(OutboundTarget::Webhook) => {
            &["name", "attempts", "next_attempt_at", "updated_at", "updated_by"]
        }
        Target::EnvBinding => {
            &["id", "scope", "scope_id", "name", "created_at", "updated_at", "updated_by"]
        }
        Target::MemberSet => &["id", "kind", "name", "is_disabled"],
        _ => return text,
    };
    without(&text, only_shown).unwrap_or(text)
}

/// The definition of an object that is sent as it was shown. `None` if the text is another.
fn definition(text: &str) -> Option<String> {
    let Members(members) = serde_json::from_str(text).ok()?;
    let is_around = |name: &str| AROUND.contains(&name);
    let is_shown = members.iter().any(|(name, _)| name == "revision")
        && members.iter().all(|(name, _)| name == DEFINITION || is_around(name));
    let mut found = members.iter().filter(|(name, _)| name == DEFINITION);
    let (_, definition) = found.next().filter(|_| is_shown)?;
    found.next().is_none().then(|| definition.get().to_owned())
}

/// The text without these members. `None` if it has none of them, or is no object.
fn without(text: &str, names: &[&str]) -> Option<String> {
    let Members(mut members) = serde_json::from_str(text).ok()?;
    let before = members.len();
    members.retain(|(name, _)| !names.contains(&name.as_str()));
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

    /// D39: members that are only shown go, and all others stay as they are written.
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
