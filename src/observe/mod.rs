//! Those who watch.
//!
//! A tap sees every frame heard and said and every note, and can change nothing: it may not wait,
//! fail, or answer. It may say that it is behind, and the relay then hears no more until it is
//! not. Not here: what is worth a note (see `conversation::note`).

mod journal;
mod meter;
pub mod metrics;
pub mod recorder;
pub mod traces;
mod watch;

pub use journal::Journal;
pub use meter::{Counts, Flow, Meter, Tally};
pub use watch::{Fact, Sight, Tap, Taps};
