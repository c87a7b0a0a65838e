//! `acp-relay inspect …`: commands that work on recordings, one file per subcommand.
//!
//! They rely on `crate::recording` for the format and the filter language.

mod command;
mod detail;
mod diff;
mod export;
mod figures;
mod fold;
mod follow;
mod grep;
mod import;
mod lint;
mod list;
mod mark;
mod page;
mod paint;
mod prune;
mod retell;
mod round;
mod runs;
mod scrub;
mod select;
mod show;
mod stats;
mod units;
mod verify;

pub(super) use command::{Inspect, misfitting, run};
