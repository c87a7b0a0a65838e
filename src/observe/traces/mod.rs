//! Makes OpenTelemetry spans of a conversation.
//!
//! A [`Tracer`] is the observer: one span for the connection, one for each session, one for each
//! request of either side, of which a prompt's is the turn, and one for each tool call. Finished
//! spans go into a [`SpanSender`], which never waits. `cli::traces` exports them.
//!
//! # Why
//!
//! **A request is one span, of the kind SERVER.** A second span for the relay as a client of the
//! other peer would begin and end at the same time and contain nothing more.
//!
//! **A request with a trace context stays in that trace**, with a link to the relay's. One without
//! is a child of the turn it came in, else of its session, else of the connection.
//!
//! **Nothing is written into messages unless it is configured**, because it changes their bytes
//! (`--trace-context insert`); a context that a peer has written is never replaced.
//!
//! **The SDK's tracer is not used**, only its model, samplers and ids. Its spans are bound to the
//! contexts of threads, and a conversation is not bound to a thread.

mod context;
mod span;
mod span_builder;
mod span_sender;
mod tracer;

pub use span::SpanFactory;
pub use span_builder::ConversationInfo;
pub use span_sender::{ExportStats, SpanSender};
pub use tracer::{TraceMarker, Tracer};
