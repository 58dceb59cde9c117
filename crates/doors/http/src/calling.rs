//! Calls a tool by POST to the tool's own path: the request body is the arguments, the response
//! body is the result.
//!
//! The request becomes a `tools/call` of the modern era and passes the same steps as every call. If
//! the client disconnects, the call is cancelled.

use http::{StatusCode, header};
use narthex_gateway::Caller;
use narthex_model::ErrorKind;
use narthex_wire::{Limits, Message, MessageError, Raw, json::encode_string, method, rpc};
use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;

use crate::devices::{Reply, ask, request};
use crate::{
    body::{self, RequestBody, Room},
    modern::retry_after,
    post::{Post, accepts, is_json, trace_context},
    problem::Problem,
    respond::{Response, closing, json},
    servers::changes::of_body,
};

/// The `clientInfo` of calls through the API, whose clients send none.
const CLIENT: &str =
    concat!(r#"{"name":"narthex-api","version":""#, env!("CARGO_PKG_VERSION"), "\"}");

/// Answers a call of the tool that the last segment of the path names.
pub(crate) async fn call(post: Post<'_>, segment: &str, body: RequestBody) -> Response {
    let message = match read(post, segment, body).await {
        Ok(message) => message,
        Err(problem) => return post.refused("tool_call", closing(problem.answer())),
    };
    let visit = post.visit;
    let (run, endpoint) = (visit.run.clone(), visit.endpoint.clone());
    let trace = trace_context(&visit.parts.headers);
    let caller = Caller { run, endpoint, session: None, trace };
    match ask(&post.door.gateway, caller, message).await {
        Some(reply) => answered(reply),
        None => Problem::new(ErrorKind::Unavailable, "the daemon is stopping").answer(),
    }
}

/// Builds the call after the whole body has been read.
async fn read(post: Post<'_>, segment: &str, body: RequestBody) -> Result<Message, Problem> {
    let headers = &post.visit.parts.headers;
    let invalid = |text: String| Problem::new(ErrorKind::Invalid, text);
    if !is_json(headers) {
        let text = "the content type must be application/json, and the body the arguments";
        return Err(invalid(text.into()).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    if !accepts(headers, "application", "json") {
        let text = "the client must accept application/json";
        return Err(invalid(text.into()).with_status(StatusCode::NOT_ACCEPTABLE));
    }
    if post.visit.parts.uri.query().is_some() {
        return Err(invalid("a call takes no query; put all arguments into the body".into()));
    }
    let name = percent_decode_str(segment).decode_utf8().map_err(|error| {
        invalid(format!(
            "the tool's name in the path is not UTF-8: {error}; percent-encode the name"
        ))
    })?;
    let (limits, within) = (post.door.gateway.limits(), post.door.options.body_timeout);
    let room = Room::Run(&post.door.gateway, &post.visit.run);
    let bytes = body::read_in(body, limits.message_bytes, within, Some(room)).await;
    let bytes = bytes.map_err(|fault| of_body(fault, "the arguments", limits.message_bytes))?;
    // The body must be exactly one value with no text after it, since we build the message around
    // it.
    let arguments: &RawValue = serde_json::from_slice(&bytes)
        .map_err(|error| invalid(format!("the body is not JSON: {error}; send one object")))?;
    message_of(&name, arguments.get(), limits)
}

/// The call of a tool by its own name, with these arguments as JSON.
pub(crate) fn message_of(name: &str, arguments: &str, limits: &Limits) -> Result<Message, Problem> {
    let invalid = |text: String| Problem::new(ErrorKind::Invalid, text);
    if !Raw::new(arguments.as_bytes()).is_object() {
        return Err(invalid("the body is not an object; send the tool's arguments as one".into()));
    }
    let name = encode_string(name);
    let members: [(&str, &[u8]); 2] = [("name", &name), ("arguments", arguments.as_bytes())];
    request(method::TOOLS_CALL, &members, CLIENT, limits).map_err(|error| match error {
        MessageError::TooLarge { .. } => {
            let problem = Problem::new(ErrorKind::Exhausted, format!("the arguments: {error}"));
            problem.with_status(StatusCode::PAYLOAD_TOO_LARGE)
        }
        error => invalid(format!("the arguments cannot be used: {error}; correct them")),
    })
}

/// The answer to a call: the result unchanged, or a protocol error as a problem with the status of
/// the table (D24).
fn answered(reply: Reply) -> Response {
    let error = match reply.outcome {
        Ok(result) => return json(StatusCode::OK, result.into()),
        Err(error) => error,
    };
    let (code, data) = rpc::own_error(error.code, error.data);
    let problem = Problem::new(rpc::kind_of(error.code), error.message).with_protocol(code, data);
    let mut response = problem.answer();
    if let Some(wait) = reply.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, retry_after(wait));
    }
    response
}
