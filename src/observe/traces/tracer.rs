//! The observer that makes spans of a conversation.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::span::SpanFactory;
use super::span_builder::{ConversationInfo, SpanBuilder};
use super::span_sender::SpanSender;
use crate::metrics::Closing;
use crate::{Event, Observer};
use conversation::{MessageSummary, Needs, TraceAssigner};

/// Makes spans of one conversation. Dropping it ends them.
#[derive(Debug)]
pub struct Tracer(Arc<Mutex<SpanBuilder>>);

/// Gives the span of a request as the trace context of requests that have none.
#[derive(Debug)]
pub struct TraceMarker(Arc<Mutex<SpanBuilder>>);

impl Tracer {
    /// A tracer for a conversation that begins now.
    #[must_use]
    pub fn begin(
        sender: SpanSender,
        factory: Arc<SpanFactory>,
        info: ConversationInfo,
        now: Instant,
    ) -> Self {
        let builder = SpanBuilder::begin(sender, factory, info, now);
        Self(Arc::new(Mutex::new(builder)))
    }

    /// The marker of requests with spans of this tracer.
    #[must_use]
    pub fn marker(&self) -> TraceMarker {
        TraceMarker(Arc::clone(&self.0))
    }

    /// The trace id of the connection.
    #[must_use]
    pub fn trace(&self) -> String {
        self.0.lock().trace()
    }
}

impl TraceAssigner for TraceMarker {
    fn parent(&mut self, message: &MessageSummary) -> Option<String> {
        self.0.lock().traceparent(message)
    }
}

impl Observer for Tracer {
    fn on_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Note(note) => self.0.lock().note(note),
            Event::Forwarded(message) => self.0.lock().forwarded(message),
            Event::Ended(cause, now) => {
                self.0.lock().set_closed_by(Closing::of(cause).name(), *now);
            }
            _ => {}
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            summaries: true,
            traces: true,
            envelopes: false,
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.0.lock().end();
    }
}
