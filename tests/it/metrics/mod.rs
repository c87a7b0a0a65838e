//! The instruments: every metric against the list of them, what the door counts, traces, the admin
//! listener, who may ask, the files for monitoring systems, and what is in a line of the log.

mod admin;
mod door;
mod log;
mod own;
mod packaging;
mod series;
pub(crate) mod stage;
mod threats;
mod traces;
mod usage;
