//! Finds the request for which an unacceptable message is the answer.

use std::fmt;

use serde::{
    Deserialize, Serialize,
    de::{Deserializer, IgnoredAny, MapAccess, Visitor},
};

/// The request that a refused text would answer if the text were acceptable. The check is lenient:
/// no part of the text is passed on, and the caller of the request should not wait in vain. Other
/// JSON, such as a log record with an id, answers no request.
pub(super) fn answered_by(text: &[u8]) -> Option<u64> {
    let (seen, _) = Envelope::read(text);
    match seen.id {
        Some(Id::Number(id)) if seen.is_rpc && seen.is_answer && !seen.has_method => Some(id),
        _ => None,
    }
}

/// The id, as JSON, of the request that a refused text would be if the text were acceptable. `None`
/// for a text that is no complete JSON object.
pub(super) fn asked_by(text: &[u8]) -> Option<String> {
    let (seen, is_whole) = Envelope::read(text);
    if !(is_whole && seen.is_rpc && seen.has_method && !seen.is_answer) {
        return None;
    }
    serde_json::to_string(&seen.id?).ok()
}

/// The facts about a text's members, up to the first syntax error. The values of members are not
/// stored: the text may be as long as the longest message.
#[derive(Default)]
struct Envelope {
    is_rpc: bool,
    /// The first id in the text.
    id: Option<Id>,
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

/// An id that a request may have.
#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum Id {
    Number(u64),
    Signed(i64),
    Text(String),
}

impl Envelope {
    /// Reads the members of a text; `true` if the text is a complete object.
    fn read(text: &[u8]) -> (Self, bool) {
        let mut seen = Self::default();
        let mut json = serde_json::Deserializer::from_slice(text);
        let read = json.deserialize_map(&mut seen).and_then(|()| json.end());
        if let Err(error) = &read {
            tracing::debug!(%error, "a refused text is no whole JSON object of a message");
        }
        (seen, read.is_ok())
    }
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
            // Only the character after a number shows that the number is complete.
            self.id = self.id.take().or(last_id.take());
            match member {
                Member::Id => last_id = Some(members.next_value::<Id>()?),
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
        self.id = self.id.take().or(last_id);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{answered_by, asked_by};

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

    /// S12: a request with a key twice is refused under its id, so that its server does not wait
    /// for an answer.
    #[test]
    fn s12_a_refused_request_names_its_id() {
        for (line, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"x":1,"x":2}}"#, "7"),
            (r#"{"method":"a","method":"b","id":"q","jsonrpc":"2.0"}"#, r#""q""#),
            (r#"{"jsonrpc":"2.0","id":-7,"method":"a","id":8}"#, "-7"),
        ] {
            assert_eq!(asked_by(line.as_bytes()).as_deref(), Some(id), "{line}");
        }
        for line in [
            r#"{"jsonrpc":"2.0","method":"a","params":{"x":1,"x":2}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"a"} x"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"a","result":{}}"#,
            r#"{"id":7,"method":"a"}"#,
        ] {
            assert_eq!(asked_by(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn e133_a_line_that_is_no_answer_has_no_request_id() {
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
