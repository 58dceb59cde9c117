//! Which request a text would answer that is no acceptable message.

use std::fmt;

use serde::{
    Deserialize,
    de::{Deserializer, IgnoredAny, MapAccess, Visitor},
};

/// The request that a refused text would answer if it were acceptable. Read leniently, since
/// nothing of the line is passed on: whoever waits for it should not wait in vain. Other JSON, such
/// as a log record with an id, answers nothing.
pub(super) fn answered_by(text: &[u8]) -> Option<u64> {
    let mut seen = Envelope::default();
    let mut json = serde_json::Deserializer::from_slice(text);
    if let Err(error) = json.deserialize_map(&mut seen) {
        tracing::debug!(%error, "a refused text is no whole JSON object of an answer");
    }
    seen.id.filter(|_| seen.is_rpc && seen.is_answer && !seen.has_method)
}

/// What was seen of a text's members, up to where it breaks. Nothing of their values is kept: the
/// text may be as long as the longest message.
#[derive(Default)]
struct Envelope {
    is_rpc: bool,
    /// The first one.
    id: Option<u64>,
    is_answer: bool,
    has_method: bool,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Member {
    Jsonrpc,
    Id,
    Result,
    Error,
    Method,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
enum Version {
    #[serde(rename = "2.0")]
    Two,
}

impl<'de> Visitor<'de> for &mut Envelope {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut last_id = None;
        while let Some(member) = members.next_key()? {
            // Only what follows a number shows that it was not cut off.
            self.id = self.id.or(last_id.take());
            match member {
                // An id that is no such number is none of ours.
                Member::Id => last_id = Some(members.next_value::<u64>()?),
                Member::Jsonrpc => {
                    let Version::Two = members.next_value()?;
                    self.is_rpc = true;
                }
                Member::Result | Member::Error => {
                    self.is_answer = true;
                    members.next_value::<IgnoredAny>()?;
                }
                Member::Method => {
                    self.has_method = true;
                    members.next_value::<IgnoredAny>()?;
                }
                Member::Other => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        self.id = self.id.or(last_id);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::answered_by;

    #[test]
    fn e133_a_refused_answer_names_its_request() {
        for line in [
            r#"{"jsonrpc":"2.0","id":7,"result":null,"error":{"code":1}}"#,
            r#"{"error":[{"id":8}],"id":7,"jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":7,"id":8,"result":{},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"text":"ends in the mid"#,
            r#"{"jsonrpc":"2.0","id":7,"more":"\ud800","result":{}"#,
        ] {
            assert_eq!(answered_by(line.as_bytes()), Some(7), "{line}");
        }
        let deep = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{}"#, "[".repeat(1 << 20));
        assert_eq!(answered_by(deep.as_bytes()), Some(7));
    }

    #[test]
    fn e133_what_is_no_answer_names_none() {
        for line in [
            r#"{"level":"error","id":7,"error":"cannot read"}"#,
            r#"{"jsonrpc":"1.0","id":7,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"x","error":{}}"#,
            r#"{"jsonrpc":"2.0","id":"7","result":{}}"#,
            r#"{"jsonrpc":"2.0","result":{},"id":7"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{}}"#,
            r#"{"jsonrpc":"2.0","result":{"id":7}}"#,
            r#"[{"jsonrpc":"2.0","id":7}]"#,
            "{broken",
            "",
        ] {
            assert_eq!(answered_by(line.as_bytes()), None, "{line}");
        }
    }
}
