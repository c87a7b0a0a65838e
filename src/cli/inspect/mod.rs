//! `acp-relay inspect …`: commands that work on recordings, one file per subcommand.
//!
//! They rely on `recording` for the format, and on `analysis` for what it says. `select` opens recordings
//! and visits the selected events, `printer` makes lines of events.

mod command;
mod diff;
mod export;
mod grep;
mod import;
mod lint;
mod list;
mod mark;
mod printer;
mod prune;
mod redact;
mod scrub;
mod select;
mod show;
mod stats;
mod verify;
mod viewer;

pub(super) use command::{Inspect, run};
pub(super) use import::of_capture;
pub(super) use viewer::show;
