//! Changes to one plain message when client and server use different eras.
//!
//! Pure edits only. Handshakes, sessions, subscriptions, embedded requests and tasks need several
//! messages, and are in other crates. So are ids and progress tokens, which change on every hop.

use std::borrow::Cow;

use crate::{
    Message, MessageKind, Raw, Revision, Rewrite, json::encode_string, meta_key, method, rpc::code,
};

/// The members of modern results apart from their content: their type, and how long clients may
/// cache them.
const RESULT_TYPE: &str = "resultType";
const CACHE_HINTS: [&str; 2] = ["ttlMs", "cacheScope"];

/// Facts about the client of a legacy session, which a modern server needs on each request.
#[derive(Debug, Clone)]
pub struct ClientStamp<'a> {
    /// `clientInfo` as JSON.
    pub info: Option<Cow<'a, [u8]>>,
    /// Capabilities as JSON, from [`capabilities_to_modern`].
    pub capabilities: Cow<'a, [u8]>,
    /// The level of `logging/setLevel` as JSON; `None` asks for no log messages.
    pub log_level: Option<Cow<'a, [u8]>>,
}

/// Changes a legacy request for a modern server: adds the client facts of the session.
///
/// The facts replace the request's own values of the same members.
#[must_use]
pub fn request_to_modern(stamp: ClientStamp<'_>) -> Rewrite<'_> {
    let ClientStamp { info, capabilities, log_level } = stamp;
    let mut rewrite = Rewrite::default();
    let version = encode_string(Revision::LATEST.as_str());
    rewrite.meta.set(meta_key::PROTOCOL_VERSION, version);
    rewrite.meta.set(meta_key::CLIENT_CAPABILITIES, capabilities);
    for (key, value) in [(meta_key::CLIENT_INFO, info), (meta_key::LOG_LEVEL, log_level)] {
        match value {
            Some(value) => rewrite.meta.set(key, value),
            None => rewrite.meta.remove(key),
        }
    }
    rewrite
}

/// Changes a question from a modern server's answer for a legacy client of `revision`.
///
/// The members that only modern requests carry are removed. For clients before 2025-11-25 an
/// elicitation has no mode, and a message for a model has one block of content: further ones become
/// messages.
#[must_use]
pub fn question_to_legacy<'a>(question: &Message, revision: Revision) -> Rewrite<'a> {
    let mut rewrite = Rewrite::default();
    if question.meta().is_some() {
        meta_key::MODERN_REQUEST.into_iter().for_each(|key| rewrite.meta.remove(key));
    }
    if revision >= Revision::V2025_11_25 {
        return rewrite;
    }
    match question.method() {
        method::ELICITATION_CREATE => rewrite.body.remove("mode"),
        method::SAMPLING_CREATE_MESSAGE => {
            let messages = question.get("messages").and_then(single_blocks);
            messages.into_iter().for_each(|all| rewrite.body.set("messages", all));
        }
        _ => {}
    }
    rewrite
}

/// Messages of a sampling with one block of content each; `None` if they are so already.
fn single_blocks(messages: Raw<'_>) -> Option<Vec<u8>> {
    let messages = messages.items();
    let is_list = |content: Raw<'_>| content.as_bytes().first() == Some(&b'[');
    if !messages.iter().any(|message| message.get("content").is_some_and(is_list)) {
        return None;
    }
    let mut all: Vec<Cow<'_, [u8]>> = Vec::with_capacity(messages.len());
    for message in messages {
        match message.get("content").filter(|content| is_list(*content)) {
            None => all.push(message.as_bytes().into()),
            Some(blocks) => all.extend(blocks.items().into_iter().map(|block| {
                let single = edited(message, |key, value| {
                    Some(if key == "content" { block } else { value }.as_bytes().into())
                });
                Cow::Owned(single)
            })),
        }
    }
    Some([&b"["[..], &all.join(&b","[..]), b"]"].concat())
}

/// Changes a modern request for a legacy server: removes the members that only modern servers read.
#[must_use]
pub fn request_to_legacy<'a>() -> Rewrite<'a> {
    let mut rewrite = Rewrite::default();
    for key in meta_key::MODERN_REQUEST {
        rewrite.meta.remove(key);
    }
    for key in ["inputResponses", "requestState"] {
        rewrite.body.remove(key);
    }
    rewrite
}

/// Changes a modern server's complete result of `method` for a legacy client.
///
/// Structured content that is no object has no legacy form and is dropped; the text in `content`
/// stays.
#[must_use]
pub fn result_to_legacy<'a>(method: &str, result: &Message) -> Rewrite<'a> {
    let mut rewrite = Rewrite::default();
    rewrite.body.remove(RESULT_TYPE);
    for key in meta_key::MODERN_ANSWER {
        rewrite.meta.remove(key);
    }
    if is_cacheable(method) {
        CACHE_HINTS.into_iter().for_each(|key| rewrite.body.remove(key));
    }
    let structured = result.get("structuredContent");
    if method == method::TOOLS_CALL && structured.is_some_and(|content| !content.is_object()) {
        rewrite.body.remove("structuredContent");
    }
    set_tools(&mut rewrite, method, result, tool_to_legacy);
    rewrite
}

/// Changes the tools of a list that need it.
fn set_tools(
    rewrite: &mut Rewrite<'_>,
    method: &str,
    result: &Message,
    change: fn(Raw<'_>) -> Cow<'_, [u8]>,
) {
    if method != method::TOOLS_LIST {
        return;
    }
    let tools = result.get("tools").map(Raw::items).unwrap_or_default();
    let changed: Vec<Cow<'_, [u8]>> = tools.into_iter().map(change).collect();
    if changed.iter().any(|tool| matches!(tool, Cow::Owned(_))) {
        rewrite.body.set("tools", [&b"["[..], &changed.join(&b","[..]), b"]"].concat());
    }
}

/// Changes a legacy server's result of `method` for a modern client.
///
/// The result's own values of these members are overwritten: a legacy server cannot ask for input
/// or hand out a task this way. Cacheable results are stale at once and private.
#[must_use]
pub fn result_to_modern<'a>(
    method: &str,
    result: &Message,
    server_info: Option<&'a [u8]>,
) -> Rewrite<'a> {
    let mut rewrite = Rewrite::default();
    rewrite.body.set(RESULT_TYPE, br#""complete""#);
    if is_cacheable(method) {
        let [ttl, scope] = CACHE_HINTS;
        rewrite.body.set(ttl, b"0");
        rewrite.body.set(scope, br#""private""#);
    }
    if let Some(info) = server_info {
        rewrite.meta.set(meta_key::SERVER_INFO, info);
    }
    // Some legacy servers spell the end of a list so, which is a cursor like any other here.
    if result.get("nextCursor").is_some_and(|next| next.as_bytes() == br#""""#) {
        rewrite.body.remove("nextCursor");
    }
    set_tools(&mut rewrite, method, result, tool_to_modern);
    rewrite
}

/// Changes a modern server's error in answer to `method` for a legacy client.
///
/// Codes that legacy clients do not know become internal errors, which name the code in `data`.
#[must_use]
pub fn error_to_legacy<'a>(method: &str, error: &Message) -> Rewrite<'a> {
    let mut rewrite = Rewrite::default();
    let data = error.get("data");
    match error.error_code() {
        // The URI distinguishes an absent resource from other bad parameters.
        Some(code::INVALID_PARAMS)
            if method == method::RESOURCES_READ
                && data.is_some_and(|data| data.get("uri").is_some()) =>
        {
            rewrite.body.set("code", number(code::LEGACY_RESOURCE_NOT_FOUND));
        }
        Some(own @ code::MISSING_CLIENT_CAPABILITY) => {
            let required = data.and_then(|data| data.get("requiredCapabilities"));
            set_internal(&mut rewrite, own, data);
            rewrite.body.set("message", encode_string(&missing_message(required)));
        }
        Some(own @ (code::HEADER_MISMATCH | code::UNSUPPORTED_VERSION)) => {
            set_internal(&mut rewrite, own, data);
        }
        _ => {}
    }
    rewrite
}

fn missing_message(required: Option<Raw<'_>>) -> String {
    let entries = required.map(Raw::entries).unwrap_or_default();
    let names: Vec<_> = entries.iter().take(8).map(|(name, _)| &**name).collect();
    format!(
        "the server requires capabilities that this client has not declared, or that another \
         protocol era does not have: {}",
        if names.is_empty() {
            "the server does not name them".to_owned()
        } else {
            names.join(", ")
        }
    )
}

/// Changes a legacy server's error for a modern client.
///
/// Codes with another meaning in the modern protocol become internal errors, which name the code in
/// `data`.
#[must_use]
pub fn error_to_modern<'a>(error: &Message) -> Rewrite<'a> {
    let mut rewrite = Rewrite::default();
    match error.error_code() {
        Some(code::LEGACY_RESOURCE_NOT_FOUND) => {
            rewrite.body.set("code", number(code::INVALID_PARAMS));
        }
        Some(code::LEGACY_URL_ELICITATION_REQUIRED) => {
            rewrite.body.set("code", number(code::MISSING_CLIENT_CAPABILITY));
            let required = br#"{"requiredCapabilities":{"elicitation":{"url":{}}}}"#;
            rewrite.body.set("data", &required[..]);
        }
        Some(own @ -32099..=-32020) => {
            set_internal(&mut rewrite, own, error.get("data"));
        }
        _ => {}
    }
    rewrite
}

/// Makes an error an internal one, since its code has another meaning for its reader. `data` then
/// has the code and the server's own data: [`own_error`](crate::rpc::own_error) reads both.
fn set_internal(rewrite: &mut Rewrite<'_>, own: i64, data: Option<Raw<'_>>) {
    let mut kept = format!(r#"{{"kind":"server_error","details":{{"code":{own}"#).into_bytes();
    if let Some(data) = data {
        kept.extend_from_slice(br#","data":"#);
        kept.extend_from_slice(data.as_bytes());
    }
    kept.extend_from_slice(b"}}");
    rewrite.body.set("code", number(code::INTERNAL_ERROR));
    rewrite.body.set("data", kept);
}

/// The rewrite that a modern server's answer to `method` needs for a legacy client.
#[must_use]
pub fn answer_to_legacy<'a>(method: &str, answer: &Message) -> Rewrite<'a> {
    match answer.kind() {
        MessageKind::Result => result_to_legacy(method, answer),
        MessageKind::Error => error_to_legacy(method, answer),
        MessageKind::Request | MessageKind::Notification => Rewrite::default(),
    }
}

/// The rewrite that a legacy server's answer to `method` needs for a modern client.
#[must_use]
pub fn answer_to_modern<'a>(
    method: &str,
    answer: &Message,
    server_info: Option<&'a [u8]>,
) -> Rewrite<'a> {
    match answer.kind() {
        MessageKind::Result => result_to_modern(method, answer, server_info),
        MessageKind::Error => error_to_modern(answer),
        MessageKind::Request | MessageKind::Notification => Rewrite::default(),
    }
}

/// True if complete modern results of `method` declare how long clients may cache them.
#[must_use]
pub fn is_cacheable(method: &str) -> bool {
    matches!(
        method,
        method::SERVER_DISCOVER
            | method::TOOLS_LIST
            | method::PROMPTS_LIST
            | method::RESOURCES_LIST
            | method::RESOURCES_TEMPLATES_LIST
            | method::RESOURCES_READ
    )
}

/// The capabilities of a legacy client in the form for a modern server.
///
/// These are sampling, elicitation and roots, as far as the client has declared them. Left out are
/// notices about roots, and for clients before 2025-11-25 elicitation by URL. Tasks and other
/// extensions are left out, too: a legacy client could not follow a task.
#[must_use]
pub fn capabilities_to_modern(capabilities: Raw<'_>, revision: Revision) -> Vec<u8> {
    edited(capabilities, |key, value| match key {
        _ if !value.is_object() => None,
        "roots" => Some(without(value, "listChanged").into()),
        "elicitation" if revision < Revision::V2025_11_25 => Some(without(value, "url").into()),
        "sampling" | "elicitation" => Some(value.as_bytes().into()),
        _ => None,
    })
}

/// A modern server's tool for a legacy client. An output schema that does not describe an object
/// has no legacy form, and is left out.
#[must_use]
pub fn tool_to_legacy(tool: Raw<'_>) -> Cow<'_, [u8]> {
    let is_object = |schema: Raw<'_>| {
        schema.get("type").and_then(Raw::as_str).is_some_and(|kind| kind == "object")
    };
    match tool.get("outputSchema") {
        Some(schema) if !is_object(schema) => without(tool, "outputSchema").into(),
        _ => tool.as_bytes().into(),
    }
}

/// A legacy server's tool for a modern client, without members about legacy tasks.
#[must_use]
pub fn tool_to_modern(tool: Raw<'_>) -> Cow<'_, [u8]> {
    if tool.get("execution").is_none_or(|execution| execution.get("taskSupport").is_none()) {
        return tool.as_bytes().into();
    }
    let changed = edited(tool, |key, value| match key {
        "execution" => {
            Some(without(value, "taskSupport")).filter(|rest| rest != b"{}").map(Cow::Owned)
        }
        _ => Some(value.as_bytes().into()),
    });
    changed.into()
}

fn number(code: i64) -> Vec<u8> {
    code.to_string().into_bytes()
}

/// An object without one member; anything else becomes an empty object.
fn without(object: Raw<'_>, name: &str) -> Vec<u8> {
    edited(object, |key, value| (key != name).then(|| value.as_bytes().into()))
}

/// An object with the values that `change` gives, and without the members it gives none for.
pub(crate) fn edited<'a>(
    object: Raw<'a>,
    change: impl Fn(&str, Raw<'a>) -> Option<Cow<'a, [u8]>>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(object.as_bytes().len());
    out.push(b'{');
    for (key, value) in object.entries() {
        let Some(value) = change(&key, value) else { continue };
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(&encode_string(&key));
        out.push(b':');
        out.extend_from_slice(&value);
    }
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests;
