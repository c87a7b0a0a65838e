//! `acp-relay inspect …`: commands that work on recordings, one file per subcommand.
//!
//! They rely on `crate::recording` for the format and the filter language.

mod chunk_run;
mod chunk_search;
mod command;
mod diff;
mod export;
mod follow;
mod grep;
mod hit;
mod import;
mod lint;
mod list;
mod mark;
mod open;
mod paint;
mod printer;
mod prune;
mod recordings;
mod retranslate;
mod scrub;
mod select;
mod show;
mod statistics;
mod stats;
mod summary;
mod units;
mod verify;
mod viewer;

pub(super) use command::{Inspect, run};
