//! Figures of all conversations, for a monitoring system.
//!
//! [`catalogue`] lists every metric there is, with its labels and what it means; the documentation
//! is made from it. A [`Ledger`] holds the figures of the process, [`figures`] are those of one
//! conversation, and the tap in [`instrument`] keeps them. [`scrape`] spells them for Prometheus.
//! Not here: who may see them (see `cli::admin`).
//!
//! # Why
//!
//! **Every conversation counts for itself.** What changes with each message is a number that only
//! the conversation's own task writes: a load and a store, without a lock and without a cache line
//! that processors pull from each other. A scrape adds up those that live and those that are over.
//! The same numbers are what `status` and `top` show of a conversation.
//!
//! **What is rare is shared.** Answers, turns, starts of agents and the like go to atomics of the
//! whole process, which keeps histograms out of the memory of every conversation.
//!
//! **No registry of handles.** With names known when the program is built, an array and a closed
//! list of words is all that a family of series takes, and no peer can add one. The library spells
//! the exposition format, nothing more. Refused: `metrics` with its exporter, whose histograms keep
//! every value until somebody empties them; the `prometheus` crate, whose last release is old.
//!
//! **`connections_open` and not `connections`.** In OpenMetrics the family of the counter
//! `connections_total` is called `connections`, and a gauge of that name would be another family
//! under it.

mod agent;
mod around;
mod catalogue;
mod cells;
mod figures;
mod instrument;
mod ledger;
mod own;
mod pace;
mod per_agent;
mod process;
mod rules;
mod scrape;
mod series;
mod spending;
mod words;

pub use agent::{AgentFigures, How};
pub use around::{Moored, Moorings, Pulse, Surroundings};
pub use catalogue::{CATALOGUE, Metric, PREFIX, Type};
pub(in crate::observe) use cells::{Histogram, Reading};
pub use figures::{Figures, Glimpse};
pub use instrument::Instrument;
pub use ledger::{Ledger, Parties};
pub use words::{
    Closing, Come, Decision, Judged, Proof, Recorded, Rejection, Reloaded, Transport, Unwanted,
};
