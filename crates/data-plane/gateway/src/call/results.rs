//! Changes to a result besides its id and its era: answers to the gateway's own tools, results
//! without content, and results that are too long.

use narthex_model::{EVERYTHING, Exposed};
use narthex_wire::{Limits, Message, MessageKind, Raw, Rewrite, cut_result, method, rpc};

use crate::{call::finish::Finish, lists::exposure::hide, refusal::Refusal};

/// The members of a result that describe it and are no part of its data.
const ABOUT: [&str; 4] = ["_meta", "isError", "resultType", "content"];

impl Finish {
    /// The exposure rules of the server.
    pub(crate) fn exposed(&self) -> &Exposed {
        self.request.definition.as_ref().map_or(&EVERYTHING, |definition| &definition.exposed)
    }

    /// The answer for the caller, if it differs from the server's.
    pub(crate) fn changed(&self, message: &Message) -> Result<Option<Message>, Refusal> {
        let own = self.own_answer(message)?;
        let with_content = self.with_content(own.as_ref().unwrap_or(message));
        let changed = with_content.or(own);
        let cut = self.cut(changed.as_ref().unwrap_or(message));
        Ok(cut.or(changed))
    }

    /// The answer to a call of the gateway's own tool.
    fn own_answer(&self, message: &Message) -> Result<Option<Message>, Refusal> {
        let Some(call) = &self.request.own_call else { return Ok(None) };
        let mut rewrite = Rewrite::default();
        let frozen = self.request.frozen.as_deref();
        hide(call.tool.method(), message, &mut rewrite, self.exposed(), frozen);
        let shown = match rewrite.is_empty() {
            true => message.clone(),
            false => parsed(rewrite.apply(message)).unwrap_or_else(|| message.clone()),
        };
        Ok(Some(call.answered(&self.request.item, &shown)?))
    }

    /// The result of a tool whose server left out `content`, which clients of the aggregated
    /// endpoint need. The new result has an empty `content`, and the other data as structured
    /// content (E89).
    fn with_content(&self, message: &Message) -> Option<Message> {
        if !self.request.is_aggregated
            || self.request.method != method::TOOLS_CALL
            || message.kind() != MessageKind::Result
            || is_unfinished(message)
        {
            return None;
        }
        let content = message.get("content").map(Raw::as_bytes);
        if content.is_some_and(|content| content.starts_with(b"[")) {
            return None;
        }
        let raw = message.body_raw()?;
        let Some(body) = message.body() else {
            let result =
                [br#"{"content":[],"structuredContent":{"result":"#, raw.as_bytes(), b"}}"];
            let id = message.id().unwrap_or(Raw::new(b"0"));
            return parsed(rpc::result_response(id, &result.concat().into()));
        };
        let is_about = |key: &[u8]| ABOUT.iter().any(|name| narthex_wire::json::key_is(key, name));
        let brings = body.members.iter().any(|member| !is_about(member.key.of(message.bytes())));
        let mut rewrite = Rewrite::default();
        rewrite.body.set("content", &b"[]"[..]);
        if (brings || content.is_some()) && message.get("structuredContent").is_none() {
            rewrite.body.set("structuredContent", raw.as_bytes().to_vec());
        }
        parsed(rewrite.apply(message))
    }

    /// The shortened result, if it was too long. The cut is in the server's log and counted (D23,
    /// R-E19).
    fn cut(&self, message: &Message) -> Option<Message> {
        let cut = cut_result(&self.request.method, message, &self.request.limits)?;
        let (server, name, summary) = (self.link().name(), self.request.item.name(), cut.summary);
        tracing::warn!(server.name = server, item.name = name, "a result was too long: {summary}");
        self.link().log_note(&format!("[narthex] {} {name}: {summary}", self.request.method));
        self.record.result_cut();
        Some(cut.message)
    }
}

/// True if the message is not yet a result, but a task or a question to the client.
fn is_unfinished(message: &Message) -> bool {
    let kind = message.get("resultType").and_then(Raw::as_str);
    message.get("task").is_some() || kind.is_some_and(|kind| kind != "complete")
}

/// Parses a message made of an accepted one; `None` if it is nested too deeply.
fn parsed(payload: narthex_wire::Payload) -> Option<Message> {
    let bytes = payload.into_bytes();
    let limits = Limits { message_bytes: bytes.len() };
    Message::parse(bytes, &limits).ok()
}
