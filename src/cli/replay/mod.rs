//! `acp-relay replay …` and `acp-relay bisect`: recordings played again.
//!
//! [`mod@agent`] answers a client from a recording, [`mod@client`] asks an agent what a recorded
//! client asked and says what is different, [`mod@bisect`] finds the first turn that is. Not here:
//! what is said when (see `recording::replay`), `replay:` as an endpoint (`transport::replay`).

mod agent;
mod bisect;
mod client;
mod command;
mod play;
mod report;
mod until;

pub(super) use bisect::{Bisect, EXAMPLES as BISECT, run as bisect};
pub(super) use command::{Replay, run};
