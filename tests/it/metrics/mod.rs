//! Metrics and logs: every metric against the list of them, admission counts, traces, the admin
//! listener, its access, the files for monitoring systems, and the members of a log line.

mod admin;
mod admission;
mod log;
mod own;
mod packaging;
mod series;
pub(crate) mod stage;
mod threats;
mod traces;
mod usage;
