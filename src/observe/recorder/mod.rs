//! Records conversations.
//!
//! The message path must not wait for a disk, nor format lines. So a [`Recorder`], the observer,
//! only puts events into its [`queue`]; the [`WriterThread`] empties it every few milliseconds, and
//! [`batch_encoder`] makes lines of the events: redacted, paired, checksummed. They are written to
//! a [`SegmentStore`], which is a directory. When the writer is too far behind, the relay reads
//! nothing for a while (`lossless`), or further events are counted and dropped (`lossy`). A
//! [`Pruner`] deletes old recordings, if configured. `recording` defines the format.
//!
//! # Why
//! *A mutex, held for a copy or an exchange of two pointers.* A channel costs a wake-up for each
//! message, and the writer would be woken for each of them; this way it is woken once per batch.
//!
//! *One thread for all conversations*: one thread for each, waking fifty times a second, would cost
//! more than the writing.

mod batch_encoder;
mod capture;
mod folder;
mod mark;
mod packer;
mod prune;
mod queue;
mod recording_writer;
mod segment;
mod segment_file;
mod writer_thread;

pub use capture::{Recorder, RecorderHandle};
pub use folder::{Folder, file_name_part, marks_path};
pub use mark::mark;
pub use prune::{PruneReason, PruneReport, PrunedRecording, Pruner, Retention, prune};
pub use queue::{OverflowPolicy, RecorderStats, RecorderTotals};
pub use recording_writer::{RecordingOutcome, RecordingPlan};
pub use segment::SegmentStore;
pub use segment_file::{Durability, create};
pub use writer_thread::WriterThread;
