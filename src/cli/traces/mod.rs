//! Traces: their options, and the export to a collector.
//!
//! `options` are the flags, their part of the configuration file and the `OTEL_*` variables;
//! `exporter` is the thread that sends spans, by `http_client`. `observe::traces` makes the spans.
//!
//! # Why
//!
//! **A separate thread**, with its own runtime: encoding five hundred spans takes a millisecond,
//! and `connect` has only one thread for its conversation.
//!
//! **Own batches, not the SDK's.** The SDK does not report the spans that it drops, and would log
//! an unavailable collector with every batch. Here both are metrics, and one log line.

mod exporter;
mod http_client;
mod options;

pub(super) use exporter::Traces;
pub(super) use options::TracesArgs;
