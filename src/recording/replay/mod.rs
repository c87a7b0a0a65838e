//! Recordings played again: what was recorded of one side answers or asks a live peer.
//!
//! [`Script`] is the conversation at one edge, [`Plan`](plan) what follows from what in it. The
//! [`Actor`] plays the agent, the [`Driver`] the client; both are told what is heard and what the
//! time is, and say what is to be said. No I/O and no clock. Not here: links (see
//! `transport::replay`), what a person is shown of it (`cli::replay`).

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
