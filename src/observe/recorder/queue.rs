//! The events of one conversation that are not written yet.
//!
//! There are two batches: one is filled by the observer, the other one is emptied by the writer
//! thread.

use std::task::Waker;
use strum::{Display, EnumMessage, IntoStaticStr, VariantArray};

use parking_lot::Mutex;

use super::batch::Batch;

/// Beyond this number of bytes the writer thread is woken early. A wake-up costs as much as
/// recording a hundred messages; the data should still be in the processor's cache.
const URGENT_BYTES: usize = 256 << 10;

/// What happens when the writer is too far behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[derive(Display, EnumMessage, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum OverflowPolicy {
    /// The conversation waits
    #[default]
    Lossless,
    /// Data that does not fit is dropped and counted
    Lossy,
}

/// The queue of one conversation.
pub(super) type Queue = Mutex<State>;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) batch: Batch,
    /// The writer thread was notified that there are events.
    pub(super) is_listed: bool,
    /// The writer thread was asked to write at once.
    pub(super) is_urgent: bool,
    /// The task that waits for room.
    pub(super) waker: Option<Waker>,
    /// Writing has failed; nothing more is written.
    pub(super) has_failed: bool,
    /// The reason why no more events will come.
    pub(super) ended: Option<String>,
}

impl State {
    /// Whether the writer thread should be woken now.
    pub(super) const fn is_large(&self) -> bool {
        self.batch.size() >= URGENT_BYTES
    }
}
