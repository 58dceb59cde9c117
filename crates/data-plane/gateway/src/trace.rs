//! The port through which calls become spans. Its implementation exports the spans. Without an
//! implementation, trace context passes through unchanged.

use http::HeaderValue;
use narthex_model::Alias;
use narthex_policy::Request;
use narthex_upstream::TraceHeaders;
use narthex_wire::{Raw, json::encode_string, meta_key};

use crate::TraceContext;

/// Makes spans.
pub trait Tracer: Send + Sync + std::fmt::Debug {
    /// Begins the span of one call.
    fn start(&self, call: &TracedCall<'_>) -> Box<dyn CallSpan>;
}

/// The facts about a call when its span begins.
#[derive(Debug, Clone, Copy)]
pub struct TracedCall<'a> {
    /// The caller's W3C `traceparent`, if the caller sent one. Not checked.
    pub parent: Option<&'a str>,
    /// The caller's `tracestate`.
    pub state: Option<&'a str>,
    /// The server that the call goes to.
    pub server: &'a Alias,
    /// The method.
    pub method: &'a str,
    /// The server's own name of the call's item; may be empty.
    pub item: &'a str,
}

/// An open span. A span that is dropped without [`CallSpan::end`] ends without an outcome.
pub trait CallSpan: Send + Sync + std::fmt::Debug {
    /// The `traceparent` for the server: its spans become children of this one.
    fn trace_parent(&self) -> String;

    /// Ends the span. `outcome` is one of a fixed set of words.
    fn end(&mut self, outcome: &'static str, is_error: bool);
}

/// The trace context in the request itself.
pub(crate) fn own_context(request: &Request) -> Option<TraceContext> {
    let text = |key| request.message.meta_value(key).and_then(Raw::as_str).map(Box::<str>::from);
    let parent = text(meta_key::TRACEPARENT)?;
    let (state, baggage) = (text(meta_key::TRACESTATE), text(meta_key::BAGGAGE));
    Some(TraceContext { parent, state, baggage })
}

/// Writes the context into `_meta`; the request's other members stay.
pub(crate) fn write(context: &TraceContext, with_rest: bool, request: &mut Request) {
    let meta = &mut request.rewrite.meta;
    meta.set(meta_key::TRACEPARENT, encode_string(&context.parent));
    let rest = [(meta_key::TRACESTATE, &context.state), (meta_key::BAGGAGE, &context.baggage)];
    for (key, text) in rest {
        if let Some(text) = text.as_deref().filter(|_| with_rest) {
            meta.set(key, encode_string(text));
        }
    }
}

/// The headers; `None` if the context does not fit into headers.
pub(crate) fn headers(context: &TraceContext) -> Option<TraceHeaders> {
    let value = |text: &str| HeaderValue::from_str(text).ok();
    Some(TraceHeaders {
        parent: value(&context.parent)?,
        state: context.state.as_deref().and_then(value),
        baggage: context.baggage.as_deref().and_then(value),
    })
}
