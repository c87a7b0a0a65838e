//! One span, from its beginning to its end.

use std::borrow::Cow;
use std::time::SystemTime;

use opentelemetry::trace::{
    Event, Link, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags,
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

/// A span that is not finished.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) context: SpanContext,
    pub(super) attributes: Vec<KeyValue>,
    name: Cow<'static, str>,
    kind: SpanKind,
    parent: SpanId,
    remote: bool,
    began: SystemTime,
    links: Vec<Link>,
    events: Vec<Event>,
    scope: InstrumentationScope,
}

/// The data with which a span begins.
pub(super) struct SpanStart {
    pub(super) name: Cow<'static, str>,
    pub(super) kind: SpanKind,
    /// `SpanContext::NONE` begins a trace.
    pub(super) parent: SpanContext,
    /// A related span of another trace.
    pub(super) link: Option<SpanContext>,
    pub(super) attributes: Vec<KeyValue>,
    pub(super) at: SystemTime,
}

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

    pub(super) fn begin(&self, start: SpanStart) -> Span {
        let SpanStart {
            name,
            kind,
            parent,
            link,
            mut attributes,
            at,
        } = start;
        let is_root = !parent.is_valid();
        let trace = match is_root {
            true => self.ids.new_trace_id(),
            false => parent.trace_id(),
        };
        let links: Vec<_> = link.into_iter().map(Link::with_context).collect();
        let above = Context::new().with_remote_span_context(parent.clone());
        let above = (!is_root).then_some(&above);
        let sampled = self
            .sampler
            .should_sample(above, trace, &name, &kind, &attributes, &links);
        let flags = match sampled.decision {
            SamplingDecision::RecordAndSample => TraceFlags::SAMPLED,
            SamplingDecision::RecordOnly | SamplingDecision::Drop => TraceFlags::default(),
        };
        attributes.extend(sampled.attributes);
        let id = self.ids.new_span_id();
        Span {
            context: SpanContext::new(trace, id, flags, false, sampled.trace_state),
            attributes,
            name,
            kind,
            parent: parent.span_id(),
            remote: parent.is_remote(),
            began: at,
            links,
            events: Vec::new(),
            scope: self.scope.clone(),
        }
    }
}

impl Span {
    pub(super) fn set(&mut self, name: &'static str, value: impl Into<opentelemetry::Value>) {
        self.attributes.push(KeyValue::new(name, value));
    }

    pub(super) fn add_event(&mut self, what: &'static str, at: SystemTime) {
        self.events.push(Event::new(what, at, Vec::new(), 0));
    }

    /// The data of the finished span; `None` when it is not sampled.
    pub(super) fn end(self, at: SystemTime, status: Status) -> Option<SpanData> {
        if !self.context.is_sampled() {
            return None;
        }
        let mut events = SpanEvents::default();
        events.events = self.events;
        let mut links = SpanLinks::default();
        links.links = self.links;
        Some(SpanData {
            span_context: self.context,
            parent_span_id: self.parent,
            parent_span_is_remote: self.remote,
            span_kind: self.kind,
            name: self.name,
            start_time: self.began,
            end_time: at.max(self.began),
            attributes: self.attributes,
            dropped_attributes_count: 0,
            events,
            links,
            status,
            instrumentation_scope: self.scope,
        })
    }
}
