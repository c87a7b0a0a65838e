//! `acp-relay replay …`, `acp-relay test` and `acp-relay bisect`: replays recordings.
//!
//! [`mod@agent`] answers a client from a recording; [`mod@client`] sends a recorded client's
//! requests to a live agent and reports differences, [`mod@test`] those of a folder; [`mod@bisect`] finds the first turn that
//! differs. `replay` decides what is sent when.

mod accept;
mod agent;
mod bisect;
mod client;
mod command;
mod options;
mod report;
mod test;

pub(super) use bisect::{Bisect, EXAMPLES as BISECT, run as bisect};
pub(super) use command::{Replay, run};
pub(super) use test::{EXAMPLES as TEST, Test, run as test};
