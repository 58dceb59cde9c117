//! Sends one request of the modern era and returns its final answer, for callers that speak no MCP.

use std::{pin::Pin, time::Duration};

use bytes::Bytes;
use narthex_gateway::{Answer, Answering, Caller, Gateway, RefusedCall, Step};
use narthex_wire::{Limits, Message, MessageError, MessageKind, Raw, rpc};
use serde_json::Value;

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The result as JSON, or the protocol's error.
    pub outcome: Result<Bytes, ProtocolError>,
    /// The reason for a refusal by the gateway itself, not by a server. A result then carries the
    /// same reason.
    pub refused: Option<RefusedCall>,
    /// The time after which another try may succeed, if a limit was reached.
    pub retry_after: Option<Duration>,
}

/// An error of JSON-RPC.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProtocolError {
    /// The number of the error.
    pub code: i64,
    /// The text for people.
    pub message: String,
    /// The data for programs.
    pub data: Option<Value>,
}

/// Builds a request of a client that declares no capabilities. `members` are the members of the
/// request's parameters: each name with its value as JSON. `client` is a JSON object that describes
/// the client.
///
/// # Errors
/// When the request would be too long, or its members are nested too deeply.
pub(crate) fn request(
    method: &str,
    members: &[(&str, &[u8])],
    client: &str,
    limits: &Limits,
) -> Result<Message, MessageError> {
    let whole = rpc::modern_request(method, members, client.as_bytes());
    Message::parse(whole.into_bytes(), limits)
}

/// Sends a request on the path that all requests take, and waits for its final answer.
///
/// Messages before that answer are discarded. Returns `None` if the daemon stops before there is an
/// answer. Dropping the future cancels the call. Only the time limits of the gateway apply.
pub(crate) async fn ask(gateway: &Gateway, caller: Caller, message: Message) -> Option<Reply> {
    let (mut answering, mut step) = open(gateway.clone(), caller, message).await;
    loop {
        match step? {
            Step::Answer(answer) => return Some(reply(answer)),
            Step::Message(_) | Step::Break { .. } => step = answering.next().await,
        }
    }
}

type Opening = Pin<Box<dyn Future<Output = (Answering, Option<Step>)> + Send>>;

/// Starts a call. The call is boxed, since it is large and the waiting future should stay small.
fn open(gateway: Gateway, caller: Caller, request: Message) -> Opening {
    Box::pin(async move {
        let mut answering = gateway.call(&caller, request).await;
        let first = answering.next().await;
        (answering, first)
    })
}

fn reply(answer: Answer) -> Reply {
    let Answer { payload, retry_after, refused, status: _ } = answer;
    Reply { outcome: outcome(payload.into_bytes()), refused, retry_after }
}

fn outcome(bytes: Bytes) -> Result<Bytes, ProtocolError> {
    let limits = Limits { message_bytes: bytes.len() };
    let Ok(message) = Message::parse(bytes, &limits) else {
        let message = "the server's answer to a call is not a message".to_owned();
        return Err(ProtocolError { code: rpc::code::INTERNAL_ERROR, message, data: None });
    };
    if message.kind() == MessageKind::Result {
        let result = message.body_raw().map_or(&b"{}"[..], Raw::as_bytes);
        return Ok(message.bytes().slice_ref(result));
    }
    let text = message.get("message").and_then(Raw::as_str).unwrap_or_default();
    Err(ProtocolError {
        code: message.error_code().unwrap_or(rpc::code::INTERNAL_ERROR),
        message: text.into_owned(),
        data: message.get("data").and_then(|data| data.parse::<Value>().ok()),
    })
}
