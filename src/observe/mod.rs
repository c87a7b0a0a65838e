//! Observers of conversations.
//!
//! An observer sees every frame received and sent and every note, and can change nothing: it may
//! not wait, fail, or answer. It can report that it is behind, and the relay then reads nothing
//! more until it has caught up. `conversation::note` defines the notes.

mod journal;
mod meter;
pub mod metrics;
pub mod recorder;
pub mod traces;
mod watch;

pub use journal::Journal;
pub use meter::{Counts, Flow, Meter, Tally};
pub use watch::{Fact, Sight, Tap, Taps};
