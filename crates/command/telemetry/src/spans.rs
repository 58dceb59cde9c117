//! Calls as OpenTelemetry spans, joined to the caller's trace and passed on to the server.

use narthex_gateway::{CallSpan, TracedCall, Tracer};
use opentelemetry::{
    Context, KeyValue, SpanId, TraceFlags, TraceId,
    trace::{
        Span, SpanContext, SpanKind, Status, TraceContextExt, TraceState, Tracer as OtelTracer,
    },
};
use opentelemetry_sdk::trace::{SdkTracer, Span as SdkSpan};

/// Makes spans with the names of OpenTelemetry's conventions for MCP and RPC.
#[derive(Debug)]
pub(super) struct Spans(SdkTracer);

impl Spans {
    pub(super) fn new(tracer: SdkTracer) -> Self {
        Self(tracer)
    }
}

#[derive(Debug)]
struct OpenSpan(SdkSpan);

impl Tracer for Spans {
    fn start(&self, call: &TracedCall<'_>) -> Box<dyn CallSpan> {
        let parent = call.parent.and_then(|parent| remote(parent, call.state));
        let context = match parent {
            Some(parent) => Context::new().with_remote_span_context(parent),
            None => Context::new(),
        };
        let name = match call.item {
            "" => call.method.to_owned(),
            item => format!("{} {item}", call.method),
        };
        let attributes = vec![
            KeyValue::new("rpc.system", "jsonrpc"),
            KeyValue::new("mcp.method.name", call.method.to_owned()),
            KeyValue::new("server.name", call.server.to_string()),
            KeyValue::new("mcp.item.name", call.item.to_owned()),
        ];
        let builder =
            self.0.span_builder(name).with_kind(SpanKind::Server).with_attributes(attributes);
        Box::new(OpenSpan(self.0.build_with_context(builder, &context)))
    }
}

impl CallSpan for OpenSpan {
    fn trace_parent(&self) -> String {
        let context = self.0.span_context();
        let (trace, span) = (context.trace_id(), context.span_id());
        format!("00-{trace}-{span}-{:02x}", context.trace_flags().to_u8())
    }

    fn end(&mut self, outcome: &'static str, is_error: bool) {
        self.0.set_attribute(KeyValue::new("outcome", outcome));
        if is_error {
            self.0.set_status(Status::error(outcome));
        }
        self.0.end();
    }
}

/// The caller's span by its W3C `traceparent`; `None` if the text is none.
fn remote(parent: &str, state: Option<&str>) -> Option<SpanContext> {
    let mut parts = parent.split('-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_version_zero = version == "00";
    let is_hex = |text: &str, length| {
        text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_well_formed = is_hex(version, 2)
        && version != "ff"
        && is_hex(trace, 32)
        && is_hex(span, 16)
        && is_hex(flags, 2)
        && (!is_version_zero || parts.next().is_none());
    if !is_well_formed {
        return None;
    }
    let context = SpanContext::new(
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(span).ok()?,
        TraceFlags::new(u8::from_str_radix(flags, 16).ok()? & 1),
        true,
        state.and_then(|state| state.parse::<TraceState>().ok()).unwrap_or_default(),
    );
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests {
    use narthex_model::Alias;
    use opentelemetry::trace::TracerProvider;
    use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};

    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    /// Protocol 2026-07-28: the gateway's span lies between the caller's and the server's.
    #[test]
    fn spans_join_the_callers_trace() {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
        let spans = Spans::new(provider.tracer("test"));
        let server = Alias::new("git").unwrap();
        let call = TracedCall {
            parent: Some(PARENT),
            state: Some("vendor=1"),
            server: &server,
            method: "tools/call",
            item: "git_log",
        };
        let mut span = spans.start(&call);
        let ours = span.trace_parent();
        assert!(ours.starts_with("00-0af7651916cd43dd8448eb211c80319c-") && ours.ends_with("-01"));
        assert_ne!(ours, PARENT);
        span.end("tool_error", true);
        let finished = exporter.get_finished_spans().unwrap();
        assert_eq!(finished[0].name, "tools/call git_log");
        assert_eq!(finished[0].parent_span_id.to_string(), "b7ad6b7169203331");
        assert!(matches!(finished[0].status, Status::Error { .. }));
    }

    #[test]
    fn malformed_parents_are_ignored() {
        for bad in [
            "",
            "00",
            "00-x-y-01",
            &PARENT.to_uppercase(),
            &format!("{PARENT}-00"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert!(remote(bad, None).is_none(), "{bad}");
        }
        assert!(remote(PARENT, Some("not a state")).is_some());
    }
}
