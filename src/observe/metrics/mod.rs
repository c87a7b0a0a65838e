//! Metrics of all conversations, for a monitoring system.
//!
//! [`CATALOGUE`] lists every metric with its labels and its meaning; the documentation is made from
//! it. [`Metrics`] holds the handles of the `metrics` crate and
//! `metrics-exporter-prometheus`, which renders them;
//! [`ConversationMetrics`] is the observer of one conversation.
//!
//! # Why
//!
//! **A conversation counts in plain integers.** A handle costs two atomic operations, and a message
//! changes several figures. A scrape collects what the open conversations have counted, and adds it
//! to the handles; a conversation that ends does so itself.
//!
//! **Histograms are counted by bucket** ([`Buckets`]) and appended to the exporter's text. A
//! histogram of the crate takes one sample at a time, and the exporter keeps each until its upkeep:
//! 1.5 KiB for 64 requests, on the message path. Without samples there is nothing for an upkeep to do.
//!
//! **Gauges of conversations are sums.** They are computed for each scrape from the conversations
//! that are open, so none is left when one ends. The same numbers are what `status` and `top` show.
//!
//! **Series are bounded.** All labels have closed lists of values, apart from names in the
//! configuration and in mapping tables. A peer cannot add a series. Series with two such labels and
//! more are registered when they are first used, since most of them never are.

mod agent;
mod buckets;
mod catalogue;
mod conversation;
mod labels;
mod metric;
mod open_conversation;
mod pending;
mod process;
mod registry;
mod scrape;
mod shared;
mod sources;
mod stats;
mod tokens;

pub use agent::AgentMetrics;
pub(crate) use buckets::Buckets;
pub use catalogue::CATALOGUE;
pub use conversation::ConversationMetrics;
pub use labels::{
    AdminRefusal, Closing, PolicyEffect, RecordingResult, ReloadOutcome, SessionStart, Transport,
};
pub use metric::{Metric, PREFIX, Type};
pub use shared::Metrics;
pub use sources::{GaugeSource, RuntimeStats};
pub use stats::{ConversationStats, Parties};
