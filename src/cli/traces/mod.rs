//! Traces: whether they are made, and how they get to a collector.
//!
//! `options` are the flags, their part of the configuration file and the `OTEL_*` variables;
//! `courier` carries what the library has spelled; `exporter` is the thread that does. Not here:
//! the spans (see `observe::traces`).
//!
//! # Why
//!
//! **A thread of its own**, with a runtime of its own: to spell five hundred spans takes a
//! millisecond, and `connect` has one thread alone for its conversation.
//!
//! **Own batches, not the SDK's.** What it leaves out it does not tell, and a collector that is down
//! would be told of with every batch. Here both are figures, and one line.

mod courier;
mod exporter;
mod options;

pub(super) use exporter::Traces;
pub(super) use options::{TracesArgs, TracesPart, collector};
