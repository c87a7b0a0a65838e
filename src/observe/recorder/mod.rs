//! Records conversations.
//!
//! The message path must not wait for a disk, nor pay for spelling lines. So a [`Recorder`], the
//! tap, only puts what it sees into its [`queue`]; a thread, the [`Desk`], comes by every few
//! milliseconds, and [`scribe`] makes lines of it: redacted, paired, checksummed. They go to a
//! [`Place`], which is a folder. When the desk is too far behind, the relay hears no more for a
//! while (`lossless`), or what comes is counted and left out (`lossy`). A [`Sweeper`] deletes
//! old ones, when that is asked for. Not here: the format (see `crate::recording`).
//!
//! # Why
//! *A mutex, held for a copy or an exchange of two pointers.* A channel costs a wake-up for each
//! message, and the writer would be woken for each of them; here it is woken once in a while.
//!
//! *One thread for all conversations*: a thread each, waking fifty times a second, would cost more
//! than the writing.

mod desk;
mod durable;
mod facts;
mod folder;
mod prune;
mod queue;
mod remarks;
mod scribe;
mod segment;
mod tally;
mod tap;
mod work;

pub use desk::Desk;
pub use durable::Durability;
pub use folder::{Folder, Place, create, wishes};
pub use prune::{Gone, Keep, Pruned, Sweeper, Why, prune};
pub use queue::Policy;
pub use remarks::Remarks;
pub use tally::Tally;
pub use tap::Recorder;
pub use work::{Outcome, Plan};
