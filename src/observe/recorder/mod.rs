//! Records conversations.
//!
//! The message path must not wait for a disk, nor format lines. So a [`Recorder`], the observer,
//! only puts events into its [`queue`]; the [`WriterThread`] empties it every few milliseconds, and
//! [`event_encoder`] makes lines of the events: redacted, paired, checksummed. They are written to
//! a [`SegmentStore`], which is a directory. When the writer is too far behind, the relay reads
//! nothing for a while (`lossless`), or further events are counted and dropped (`lossy`). A
//! [`Pruner`] deletes old recordings, if configured. `crate::recording` defines the format.
//!
//! # Why
//! *A mutex, held for a copy or an exchange of two pointers.* A channel costs a wake-up for each
//! message, and the writer would be woken for each of them; this way it is woken once per batch.
//!
//! *One thread for all conversations*: one thread for each, waking fifty times a second, would cost
//! more than the writing.

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
