//! `acp-relay inspect …`: recordings at a person's hand.
//!
//! One file for each subcommand: [`mod@list`] what there is, [`mod@show`] a conversation,
//! [`mod@grep`] for a text, [`mod@verify`] that nothing was changed or lost, [`mod@mark`] a place,
//! [`mod@scrub`] secrets. Not here: the format (see `crate::recording`).

mod command;
mod fold;
mod grep;
mod list;
mod mark;
mod scrub;
mod show;
mod units;
mod verify;

pub(super) use command::{Inspect, run};
