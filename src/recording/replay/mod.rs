//! Replays recordings: the recorded messages of one side answer or drive a live peer.
//!
//! [`Script`] is the conversation at one edge; [`scenes`] finds which steps follow from which. The
//! [`Actor`] plays the agent, the [`Driver`] the client; both are given the received frames and the
//! time, and return what to send. No I/O and no clock; `transport::replay` has the links.

mod actor;
mod compare;
mod driver;
mod level;
mod live_agent;
mod matching;
mod names;
mod permission;
mod rules;
mod scenes;
mod script;

pub use actor::{Actor, ActorAction};
pub use compare::{Comparison, IgnoreRules, ReplayDifference, compare};
pub use driver::{Driver, DriverAction, Timeouts};
pub use level::CompareLevel;
pub use rules::{FaultKind, InjectedFault, MatchRule, ReplayRules, Speed, Unmatched};
pub use script::{Script, ScriptError, ScriptFault, ScriptStep};
