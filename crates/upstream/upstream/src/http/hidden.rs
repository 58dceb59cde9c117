//! Refusals of a credential that a server hides in an error with HTTP 200.

use std::borrow::Cow;

use http::HeaderValue;
use narthex_model::{AuthErrorPattern, AuthErrorTest};
use narthex_wire::{Message, MessageKind, Raw};

/// The longest error that is searched, in bytes.
const SEARCHED_MAX: usize = 64 * 1024;
/// The most texts of an error that are searched.
const TEXTS_MAX: usize = 16;

/// The credential and the operation of a request whose answer is not searched yet.
#[derive(Debug)]
pub(super) struct SentWith {
    pub(super) value: Option<HeaderValue>,
    pub(super) operation: String,
}

/// True if an answer is an error that says so. A long error does not count.
pub(super) fn is_refusal(pattern: &AuthErrorPattern, answer: &Message) -> bool {
    let is_error = match answer.kind() {
        MessageKind::Error => true,
        MessageKind::Result => answer.get("isError").and_then(Raw::as_bool) == Some(true),
        MessageKind::Request | MessageKind::Notification => false,
    };
    if !is_error || answer.bytes().len() > SEARCHED_MAX {
        return false;
    }
    match pattern.test() {
        AuthErrorTest::Text(text) => texts(answer).iter().any(|found| found.contains(text)),
        AuthErrorTest::Member { names, value } => member(answer, &names)
            .is_some_and(|found| value.map_or(!is_null(found), |value| is_value(found, value))),
    }
}

/// The texts of an error: those of its content, or its message.
fn texts(answer: &Message) -> Vec<Cow<'_, str>> {
    if answer.kind() == MessageKind::Error {
        return answer.get("message").and_then(Raw::as_str).into_iter().collect();
    }
    let content = answer.get("content").map(Raw::items).unwrap_or_default();
    let texts = content.into_iter().filter_map(|item| item.get("text").and_then(Raw::as_str));
    texts.take(TEXTS_MAX).collect()
}

/// The member at the end of the names.
fn member<'a>(answer: &'a Message, names: &[&str]) -> Option<Raw<'a>> {
    let (first, rest) = names.split_first()?;
    let mut found = answer.get(first)?;
    for name in rest {
        found = match found.is_object() {
            true => found.get(name)?,
            false => found.items().into_iter().nth(name.parse().ok()?)?,
        };
    }
    Some(found)
}

fn is_null(found: Raw<'_>) -> bool {
    found.as_bytes() == b"null"
}

/// True if a member has a value: a text, or other JSON as it is written.
fn is_value(found: Raw<'_>, value: &str) -> bool {
    match found.as_str() {
        Some(text) => text == value,
        None => found.as_bytes() == value.as_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use narthex_wire::Limits;
    use serde_json::{Value, json};

    use super::*;

    fn is_refused(pattern: &str, body: &Value) -> bool {
        let message = match body.get("code") {
            Some(_) => json!({"jsonrpc": "2.0", "id": 1, "error": body}),
            None => json!({"jsonrpc": "2.0", "id": 1, "result": body}),
        };
        let bytes = Bytes::from(message.to_string());
        let message = Message::parse_lenient(bytes, &Limits::default()).unwrap();
        is_refusal(&AuthErrorPattern::new(pattern).unwrap(), &message)
    }

    fn tool_error(text: &str) -> Value {
        json!({"isError": true, "content": [{"type": "image"}, {"type": "text", "text": text}],
               "structuredContent": {"errors": [{"code": 401, "kind": "auth", "none": null}]}})
    }

    /// Q18: the text counts in errors alone, of tools and of the protocol.
    #[test]
    fn q18_a_text_counts_in_an_error_alone() {
        assert!(is_refused("not logged in", &tool_error("You are not logged in.")));
        assert!(!is_refused("not logged in", &tool_error("You have no such page.")));
        assert!(is_refused("logged \"in", &tool_error("not logged \"in")));
        let mut fine = tool_error("You are not logged in.");
        for is_error in [json!(false), json!("true")] {
            fine["isError"] = is_error;
            assert!(!is_refused("not logged in", &fine), "{fine}");
        }
        assert!(!is_refused("not logged in", &json!({"content": []})));
        assert!(is_refused("HTTP 401", &json!({"code": -32000, "message": "HTTP 401 from wiki"})));
    }

    /// Q18: a path leads through objects and lists to a value.
    #[test]
    fn q18_a_path_leads_to_a_value() {
        let error = tool_error("no");
        let at = |path: &str| is_refused(&format!("$.structuredContent.errors.{path}"), &error);
        assert!(at("0.code=401") && at("0.kind=auth") && at("0.kind"));
        assert!(!at("0.code=40") && !at("0.none") && !at("1.code") && !at("kind") && !at("0.x"));
        assert!(is_refused(
            "$.data.status=401",
            &json!({"code": 1, "message": "",
            "data": {"status": 401}})
        ));
    }

    /// Q18: a long error is not searched.
    #[test]
    fn q18_a_long_error_is_not_searched() {
        assert!(!is_refused("not logged in", &tool_error(&"not logged in ".repeat(5000))));
    }
}
