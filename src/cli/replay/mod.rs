//! `acp-relay replay …` and `acp-relay bisect`: replays recordings.
//!
//! [`mod@agent`] answers a client from a recording; [`mod@client`] sends a recorded client's
//! requests to a live agent and reports differences; [`mod@bisect`] finds the first turn that
//! differs. `recording::replay` decides what is sent when.

mod agent;
mod bisect;
mod client;
mod command;
mod play;
mod report;

pub(super) use bisect::{Bisect, EXAMPLES as BISECT, run as bisect};
pub(super) use command::{Replay, run};
