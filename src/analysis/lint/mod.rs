//! Finds violations of the protocol in a conversation, each with a stable id.
//!
//! [`RULES`] lists the checks; [`Linter`] is given the events one by one, so that it can follow a
//! growing recording. The schema check is in `acp`; the pairing of answers and the order of
//! messages are checked here. See `verify` for damaged files.

#![warn(clippy::indexing_slicing)]

mod linter;
mod report;
mod rules;
mod sessions;

pub use linter::Linter;
pub use report::{event_json, event_line, suite};
pub use rules::{Finding, LintRule, RULES, Remedy, Severity};
