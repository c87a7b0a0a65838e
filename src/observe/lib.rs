//! Observers of conversations.
//!
//! An observer sees every frame received and sent and every note, and can change nothing: it may
//! not wait, fail, or answer. It can report that it is behind, and the relay then reads nothing
//! more until it has caught up. `conversation::note` defines the notes.

mod counts;
pub mod metrics;
mod note_logger;
mod observer;
mod observers;
pub mod recorder;
pub mod traces;

pub use counts::{Counts, RuleCount, Traffic};
pub use note_logger::NoteLogger;
pub use observer::{Event, Observer};
pub use observers::Observers;
