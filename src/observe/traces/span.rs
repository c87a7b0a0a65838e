//! One span, from its beginning to its end.

use std::time::SystemTime;

use opentelemetry::trace::{
    Event, Link, SpanContext, SpanKind, Status, TraceContextExt as _, TraceFlags,
};
use opentelemetry::{Context, InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{Config, IdGenerator as _, RandomIdGenerator, SamplingDecision};
use opentelemetry_sdk::trace::{ShouldSample, SpanData, SpanEvents, SpanLinks};

/// Begins spans: assigns their ids, and samples them as `OTEL_TRACES_SAMPLER` requires.
#[derive(Debug)]
pub struct SpanFactory {
    sampler: Box<dyn ShouldSample>,
    ids: RandomIdGenerator,
    scope: InstrumentationScope,
}

/// A span that is not finished; a parent that is `SpanContext::NONE` begins a trace.
#[derive(Debug)]
pub(super) struct Span(SpanData);

impl SpanFactory {
    /// A factory for spans of the build `version`.
    #[must_use]
    pub fn new(version: &'static str) -> Self {
        let scope = InstrumentationScope::builder("acp-relay");
        Self {
            sampler: Config::default().sampler,
            ids: RandomIdGenerator::default(),
            scope: scope.with_version(version).build(),
        }
    }

    pub(super) fn begin(
        &self,
        (name, kind): (&'static str, SpanKind),
        parent: &SpanContext,
        at: SystemTime,
        mut attributes: Vec<KeyValue>,
    ) -> Span {
        let is_root = !parent.is_valid();
        let trace = match is_root {
            true => self.ids.new_trace_id(),
            false => parent.trace_id(),
        };
        let above = Context::new().with_remote_span_context(parent.clone());
        let above = (!is_root).then_some(&above);
        let sampled = self
            .sampler
            .should_sample(above, trace, name, &kind, &attributes, &[]);
        let flags = match sampled.decision {
            SamplingDecision::RecordAndSample => TraceFlags::SAMPLED,
            SamplingDecision::RecordOnly | SamplingDecision::Drop => TraceFlags::default(),
        };
        attributes.extend(sampled.attributes);
        let id = self.ids.new_span_id();
        Span(SpanData {
            span_context: SpanContext::new(trace, id, flags, false, sampled.trace_state),
            parent_span_id: parent.span_id(),
            parent_span_is_remote: parent.is_remote(),
            span_kind: kind,
            name: name.into(),
            start_time: at,
            end_time: at,
            attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: self.scope.clone(),
        })
    }
}

impl Span {
    pub(super) const fn context(&self) -> &SpanContext {
        &self.0.span_context
    }

    pub(super) fn set(&mut self, name: &'static str, value: impl Into<opentelemetry::Value>) {
        self.0.attributes.push(KeyValue::new(name, value));
    }

    pub(super) fn add_event(&mut self, what: &'static str, at: SystemTime) {
        let event = Event::new(what, at, Vec::new(), 0);
        self.0.events.events.push(event);
    }

    /// Names a related span of another trace.
    pub(super) fn add_link(&mut self, to: SpanContext) {
        self.0.links.links.push(Link::with_context(to));
    }

    /// The data of the finished span; `None` when it is not sampled.
    pub(super) fn end(self, at: SystemTime, status: Status) -> Option<SpanData> {
        let Self(mut span) = self;
        span.end_time = at.max(span.start_time);
        span.status = status;
        span.span_context.is_sampled().then_some(span)
    }
}
