//! What a panic ends.
//!
//! A panic in what runs by [`confine()`] or [`catch`] ends that and nothing else: a conversation, a
//! connection, a recording, a request of the viewer or of the admin listener. It is counted and
//! logged with its place in the source. Any other panic ends the process (SIGABRT), and so does one
//! while a [`SharedMutex`] is held: nothing goes on with a state that is written by halves. Those
//! are the locks that conversations share; `src/ARCHITECTURE.md` lists them.

mod confine;
mod shared_mutex;

pub use confine::{Place, catch, confine, counts, install, panic_point};
pub use shared_mutex::{SharedGuard, SharedMutex};
