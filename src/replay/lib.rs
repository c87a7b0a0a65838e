//! Replays recordings: the recorded messages of one side answer or drive a live peer.
//!
//! For tests of editors and agents: a recorded agent needs no model and answers the same each time.
//! [`Script`] is the conversation at one edge; [`scenes`] finds which steps follow from which. The
//! [`Actor`] plays the agent, the [`Driver`] the client; both are given the received frames and the
//! time, and return what to send, without I/O or a clock. `link` makes the actor an agent that
//! `replay:FILE` connects to; [`TRANSPORT`] adds it to the transports. [`play()`] connects the driver
//! with an agent, and compares the conversation with the recorded one.

#![expect(clippy::indexing_slicing, reason = "indices it has made")]

mod actor;
mod compare;
mod driver;
mod level;
mod link;
mod live_agent;
mod matching;
mod names;
mod permission;
mod play;
mod scenes;
mod script;

pub use actor::{Actor, ActorAction};
pub use compare::{Comparison, IgnoreRules, ReplayDifference, compare};
pub use driver::{Driver, DriverAction, Timeouts};
pub use level::CompareLevel;
pub use link::TRANSPORT;
pub use play::{PlayOutcome, PlayRules, PlayTarget, play};
pub use script::{Script, ScriptError, ScriptFault, ScriptStep};
