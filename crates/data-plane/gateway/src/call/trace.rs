//! The port through which calls become spans. Its implementation exports the spans. Without an
//! implementation, trace context passes through unchanged.

use http::HeaderValue;
use narthex_model::Alias;
use narthex_policy::Request;
use narthex_upstream::{Hop, Link, TraceHeaders};
use narthex_wire::{Raw, json::encode_string, meta_key};

use crate::{Caller, TraceContext, call::record::CallRecord, gateway::Shared};

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

impl Shared {
    /// Begins the call's span and sends its context to the server, in `_meta` and as headers.
    /// Without a tracer, the caller's context passes unchanged; a context in headers also goes into
    /// `_meta` if `_meta` has none.
    pub(crate) fn trace(
        &self,
        caller: &Caller,
        link: &Link,
        request: &mut Request,
        hop: &mut Hop,
        record: &mut CallRecord,
    ) {
        let own = own_context(request);
        let is_own = own.is_some();
        let mut context = own.or_else(|| caller.trace.as_deref().cloned());
        let mut in_meta = !is_own && link.is_one_channel();
        if let Some(tracer) = &self.options.tracer {
            let item = self.clean_found(caller, &request.item);
            let span = tracer.start(&TracedCall {
                parent: context.as_ref().map(|context| &*context.parent),
                state: context.as_ref().and_then(|context| context.state.as_deref()),
                server: &request.alias,
                method: request.message.method(),
                item: item.name(),
            });
            let parent = span.trace_parent().into();
            let (state, baggage) =
                context.map(|context| (context.state, context.baggage)).unwrap_or_default();
            context = Some(TraceContext { parent, state, baggage });
            in_meta = true;
            record.trace(span);
        }
        let Some(context) = context else { return };
        if in_meta {
            write(&context, !is_own, request);
        }
        hop.trace = headers(&context).map(Box::new);
    }
}

/// The trace context in the request itself.
fn own_context(request: &Request) -> Option<TraceContext> {
    let text = |key| request.message.meta_value(key).and_then(Raw::as_str).map(Box::<str>::from);
    let parent = text(meta_key::TRACEPARENT)?;
    let (state, baggage) = (text(meta_key::TRACESTATE), text(meta_key::BAGGAGE));
    Some(TraceContext { parent, state, baggage })
}

/// Writes the context into `_meta`; the request's other members stay.
fn write(context: &TraceContext, with_rest: bool, request: &mut Request) {
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
fn headers(context: &TraceContext) -> Option<TraceHeaders> {
    let value = |text: &str| HeaderValue::from_str(text).ok();
    Some(TraceHeaders {
        parent: value(&context.parent)?,
        state: context.state.as_deref().and_then(value),
        baggage: context.baggage.as_deref().and_then(value),
    })
}
