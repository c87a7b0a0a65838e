//! `acp-relay inspect …`: recordings at a person's hand.
//!
//! One file for each subcommand: [`mod@list`] what there is, [`mod@show`] a conversation,
//! [`mod@follow`] one that is going on, [`mod@grep`] for a text, [`mod@stats`] in figures,
//! [`mod@lint`] for faults of the protocol, [`mod@diff`] two, [`mod@verify`] that nothing was
//! changed or lost, [`mod@mark`] a place, [`mod@scrub`] secrets, [`mod@export`] to other programs,
//! [`mod@import`] from them, [`mod@prune`] old ones. Not here: the format and the filter language
//! (see `crate::recording`).

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
