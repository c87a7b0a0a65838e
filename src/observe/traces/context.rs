//! The trace context in the `_meta` of a request.
//!
//! The library parses it, in all its versions. The conversation finds it in the message.

use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::{SpanContext, TraceContextExt as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;

use conversation::TraceContext;

/// The trace context of a request, as a carrier for the library.
struct Carrier<'a>(&'a TraceContext);

impl Extractor for Carrier<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => self.0.parent.as_deref(),
            "tracestate" => self.0.state.as_deref(),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

/// The parent span that a request names, if any.
pub(super) fn parent(trace: &TraceContext) -> Option<SpanContext> {
    trace.parent.as_ref()?;
    let none = Context::new();
    let found = TraceContextPropagator::new().extract_with_context(&none, &Carrier(trace));
    let found = found.span().span_context().clone();
    found.is_valid().then_some(found)
}

/// The traceparent that names a span as the parent.
pub(super) fn traceparent(own: &SpanContext) -> String {
    let (trace, span) = (own.trace_id(), own.span_id());
    format!("00-{trace}-{span}-{:02x}", own.trace_flags().to_u8())
}
