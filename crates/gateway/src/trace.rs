//! The port through which calls become spans. Who implements it decides where they go; without an
//! implementation, trace context passes through as it came.

use narthex_model::Alias;

/// Makes spans.
pub trait Tracer: Send + Sync + std::fmt::Debug {
    /// Begins the span of one call.
    fn start(&self, call: &TracedCall<'_>) -> Box<dyn CallSpan>;
}

/// What is known of a call when its span begins.
#[derive(Debug, Clone, Copy)]
pub struct TracedCall<'a> {
    /// The caller's W3C `traceparent`, if it sent one. Not checked.
    pub parent: Option<&'a str>,
    /// The caller's `tracestate`.
    pub state: Option<&'a str>,
    /// The server that the call goes to.
    pub server: &'a Alias,
    /// The method.
    pub method: &'a str,
    /// The server's own name of what it is about; may be empty.
    pub item: &'a str,
}

/// An open span. Dropped without an end, it ends as it is.
pub trait CallSpan: Send + Sync + std::fmt::Debug {
    /// The `traceparent` under which the server's spans belong.
    fn trace_parent(&self) -> String;

    /// Ends the span. `outcome` is one of a fixed set of words.
    fn end(&mut self, outcome: &'static str, is_error: bool);
}
