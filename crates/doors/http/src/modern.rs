//! Requests of the modern era: each request is complete in itself, and a call lives as long as its
//! stream.

use std::time::Duration;

use http::{HeaderValue, StatusCode, header};
use narthex_gateway::{Answer, Caller, Step};
use narthex_wire::{
    Message, MessageKind, StampFault, check_stamps,
    headers::check_request,
    method,
    rpc::{self, code},
};

use crate::{
    detached::{Opening, Start, open},
    post::{Post, accepts, prefers_stream, trace_context},
    respond::{Response, empty, event_stream, json},
    stream::CallStream,
};

/// Answers one message. A session header is ignored.
pub(crate) async fn receive(post: Post<'_>, message: Message, version: Option<&str>) -> Response {
    let visit = post.visit;
    let (run, endpoint) = (visit.run.clone(), visit.endpoint.clone());
    let trace = trace_context(&visit.parts.headers);
    let caller = Caller { run, endpoint, session: None, trace };
    if let Err(response) = check(post, &caller, &message, version) {
        return post.refused("modern_request", *response);
    }
    if message.kind() == MessageKind::Notification {
        // Boxed: this rare path must not enlarge the future of every call.
        Box::pin(post.door.gateway.notify(&caller, message)).await;
        return empty(StatusCode::ACCEPTED);
    }
    answer(post, caller, message).await
}

/// Refuses a message whose parts contradict each other or are missing, before it has any effect
/// (S13).
fn check(
    post: Post<'_>,
    caller: &Caller,
    message: &Message,
    version: Option<&str>,
) -> Result<(), Box<Response>> {
    let refuse = |code, text: &str, data: Option<&[u8]>| {
        let error = rpc::error_response(message.id(), code, text, data);
        Err(Box::new(json(StatusCode::BAD_REQUEST, error)))
    };
    if matches!(message.kind(), MessageKind::Result | MessageKind::Error) {
        return refuse(code::INVALID_REQUEST, "clients send no responses in this revision", None);
    }
    let stamps = check_stamps(message, version);
    if let Err(fault @ StampFault::VersionKind) = &stamps {
        return refuse(fault.code(), &fault.to_string(), None);
    }
    let params = match message.method() {
        method::TOOLS_CALL => post.door.gateway.header_params(caller, message),
        _ => None,
    };
    if let Err(fault) = check_request(&post.visit.parts.headers, message, params.as_deref()) {
        return refuse(fault.code(), &fault.to_string(), None);
    }
    match stamps {
        Ok(()) => Ok(()),
        Err(fault) => refuse(fault.code(), &fault.to_string(), fault.data().as_deref()),
    }
}

async fn answer(post: Post<'_>, caller: Caller, message: Message) -> Response {
    let options = &post.door.options;
    let mut opening = open(&post.door.gateway, caller, message);
    if !accepts(&post.visit.parts.headers, "text", "event-stream") {
        return Box::pin(whole_only(opening)).await;
    }
    let start = match tokio::time::timeout(options.quiet, &mut opening).await {
        Ok((_, Some(Step::Answer(answer))))
            if answer.status != 200 || !prefers_stream(&post.visit.parts.headers) =>
        {
            return whole(answer);
        }
        Ok((_, None)) => return empty(StatusCode::INTERNAL_SERVER_ERROR),
        Ok(opened) => Start::Opened(Box::new(opened)),
        Err(_quiet) => Start::Opening(opening),
    };
    let open = post.door.gateway.metrics().stream_opened();
    event_stream(CallStream::new(start, options.keep_alive, open))
}

/// Waits for the answer and returns it as one body, for a client that accepts no stream.
async fn whole_only(opening: Opening) -> Response {
    let (mut answering, mut step) = opening.await;
    loop {
        match step {
            Some(Step::Answer(answer)) => return whole(answer),
            Some(Step::Message(_) | Step::Break { .. }) => step = answering.next().await,
            None => return empty(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}

/// Returns an answer as one body, for a call that sent no message before it.
pub(crate) fn whole(answer: Answer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, answer.payload);
    if let Some(wait) = answer.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, retry_after(wait));
    }
    response
}

/// Number of seconds, at least one, after which another try may succeed.
pub(crate) fn retry_after(wait: Duration) -> HeaderValue {
    let seconds = wait.as_millis().div_ceil(1000).max(1);
    HeaderValue::from_str(&seconds.to_string()).expect("digits are a value")
}
