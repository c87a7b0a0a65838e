//! Finds violations of the protocol in a conversation, each with a stable id.
//!
//! [`RULES`] lists the checks; [`Linter`] is given the events one by one, so that it can follow a
//! growing recording. The schema check is in `acp`; the pairing of answers and the order of
//! messages are checked here. See `verify` for damaged files.

mod catalogue;
mod linter;
mod requests;
mod sessions;
mod spelling;

pub use catalogue::{Finding, RULES, Rule, Weight};
pub use linter::Linter;
