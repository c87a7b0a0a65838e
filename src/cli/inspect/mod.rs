//! `acp-relay inspect …`: commands that work on recordings, one file per subcommand.
//!
//! They rely on `crate::recording` for the format and the filter language.

mod command;
mod summary;
mod diff;
mod export;
mod stats_report;
mod chunk_run;
mod follow;
mod grep;
mod import;
mod lint;
mod list;
mod mark;
mod printer;
mod paint;
mod prune;
mod retranslate;
mod recordings;
mod chunk_search;
mod scrub;
mod select;
mod show;
mod stats;
mod units;
mod verify;

pub(super) use command::{Inspect, report_unusable, run};
