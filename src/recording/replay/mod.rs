//! Replays recordings: the recorded messages of one side answer or drive a live peer.
//!
//! [`Script`] is the conversation at one edge; [`scenes`] finds which steps follow from which. The
//! [`Actor`] plays the agent, the [`Driver`] the client; both are given the received frames and the
//! time, and return what to send. No I/O and no clock; `transport::replay` has the links.

mod actor;
mod borrowed;
mod compare;
mod driver;
mod fault;
mod ids;
mod names;
mod normal;
mod order;
mod permit;
mod places;
mod plan;
mod read;
mod repertoire;
mod rules;
mod script;

pub use actor::{Actor, Cue};
pub use compare::{Compared, Difference, Ignored, compare};
pub use driver::{Driver, Move, Pace};
pub use fault::{Fault, Mishap, duration};
pub use rules::{Match, Rules, Speed, Unmatched};
pub use script::{Edge, Script, ScriptError, Step};
