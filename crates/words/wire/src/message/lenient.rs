//! Repairs envelopes of servers that are nearly JSON-RPC 2.0 and have one meaning only.

use std::borrow::Cow;

use bytes::Bytes;

use super::{Message, MessageError, Raw};
use crate::{Limits, json::encode_string};

impl Message {
    /// As [`Message::parse`], for messages of a server. Also accepts an envelope that lacks
    /// `jsonrpc`, has a null `error` with its result or a null `result` with its error, writes an
    /// integer id as `1.0`, or an error as a text. The returned message is a proper one. A byte
    /// order mark in front is skipped.
    ///
    /// # Errors
    /// The errors of [`Message::parse`].
    pub fn parse_lenient(bytes: Bytes, limits: &Limits) -> Result<Self, MessageError> {
        let bytes = without_mark(bytes);
        match Self::parse(bytes.clone(), limits) {
            Err(error @ MessageError::Envelope(_)) => match proper(Raw::new(&bytes)) {
                Some(text) => Self::parse(text.into(), limits).map_err(|_other| error),
                None => Err(error),
            },
            parsed => parsed,
        }
    }
}

/// A text without the byte order mark with which some programs begin.
pub(super) fn without_mark(bytes: Bytes) -> Bytes {
    match bytes.starts_with(b"\xef\xbb\xbf") {
        true => bytes.slice(3..),
        false => bytes,
    }
}

/// The repaired envelope; `None` if the text has no known form.
fn proper(text: Raw<'_>) -> Option<Vec<u8>> {
    let members = text.entries();
    let is = |name: &str, is_null: bool| {
        members.iter().any(|(key, value)| key == name && (value.as_bytes() == b"null") == is_null)
    };
    let drops_error = is("result", false) && is("error", true);
    let drops_result = is("error", false) && is("result", true);
    let mut out = b"{".to_vec();
    if members.iter().all(|(key, _)| key != "jsonrpc") {
        // A record of a log may have an id and an error, too.
        let is_known = |(key, value): &(Cow<'_, str>, Raw<'_>)| match &**key {
            "error" => value.as_str().is_none(),
            key => matches!(key, "id" | "result" | "method" | "params"),
        };
        if !members.iter().all(is_known) {
            return None;
        }
        out.extend_from_slice(br#""jsonrpc":"2.0","#);
    }
    for (key, value) in &members {
        let value: Cow<'_, [u8]> = match &**key {
            "error" if drops_error => continue,
            "result" if drops_result => continue,
            "id" => integer(value.as_bytes()).map_or(value.as_bytes().into(), Cow::Owned),
            "error" if value.as_str().is_some() => {
                [br#"{"code":-32000,"message":"#, value.as_bytes(), b"}"].concat().into()
            }
            _ => value.as_bytes().into(),
        };
        out.extend_from_slice(&encode_string(key));
        out.push(b':');
        out.extend_from_slice(&value);
        out.push(b',');
    }
    (out.last() == Some(&b',')).then(|| {
        out.pop();
        out.push(b'}');
        out
    })
}

/// An integer that is written with a fraction of zeros.
fn integer(text: &[u8]) -> Option<Vec<u8>> {
    let at = text.iter().position(|byte| *byte == b'.')?;
    let (whole, zeros) = (&text[..at], &text[at + 1..]);
    let is_integer = !whole.is_empty() && zeros.iter().all(|byte| *byte == b'0');
    (is_integer && text[0] != b'"').then(|| whole.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E170: envelopes with one meaning are taken, and nothing that could be read in two ways.
    #[test]
    fn e170_unambiguous_envelopes_of_servers_are_repaired() {
        let parsed = |text: &str| {
            let bytes = Bytes::copy_from_slice(text.as_bytes());
            Message::parse_lenient(bytes, &Limits::default())
        };
        for (odd, proper) in [
            (r#"{"id":1,"result":{"a":1.10}}"#, r#"{"jsonrpc":"2.0","id":1,"result":{"a":1.10}}"#),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#,
                r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":-1,"message":"x"}}"#,
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":7.0,"result":{}}"#,
                r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#,
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}"#,
            ),
            (
                "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
                r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            ),
        ] {
            assert_eq!(parsed(odd).unwrap().bytes(), proper, "{odd}");
        }
        for refused in [
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{},"error":null}"#,
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"message":"hello"}"#,
            r#"{"level":"error","id":1,"error":{"code":1}}"#,
            r#"{"id":1,"error":"cannot read"}"#,
            "{}",
        ] {
            parsed(refused).unwrap_err();
        }
    }
}
