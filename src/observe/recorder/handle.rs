//! Adds events from outside the conversation to a recording.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::MutexGuard;

use super::batch::{Entry, Item};
use super::queue::{OverflowPolicy, State};
use super::stats::RecorderStats;
use super::writer_thread::{WriterSlot, WriterThread};
use recording::{EventKind, Payload};

/// Adds events from outside the conversation to a recording, such as an agent's stderr.
#[derive(Clone, Debug)]
pub struct RecorderHandle {
    pub(super) slot: Arc<WriterSlot>,
    pub(super) thread: Arc<WriterThread>,
    pub(super) policy: OverflowPolicy,
    pub(super) began: Instant,
    pub(super) stats: Arc<RecorderStats>,
}

impl RecorderHandle {
    /// Records output of the agent on stderr.
    pub fn stderr(&self, bytes: &[u8]) {
        let body = bytes::Bytes::copy_from_slice(bytes);
        self.event(EventKind::Stderr(Payload::of_text(body)));
    }

    /// Records an event, unless the recording has ended or is far behind.
    pub fn event(&self, what: EventKind) {
        let at = self.now();
        let mut state = self.lock();
        if !state.has_failed && state.ended.is_none() && state.batch.has_room() {
            let item = Item::Event(Box::new(what), None);
            state.batch.entries.push(Entry { at, item });
            self.notify(state);
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.slot.queue.lock()
    }

    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Reports the queue to the writer thread, if that was not done yet.
    pub(super) fn notify(&self, mut state: MutexGuard<'_, State>) {
        let new = !std::mem::replace(&mut state.is_listed, true);
        let urgent = (state.is_large() || state.ended.is_some()) && !state.is_urgent;
        state.is_urgent |= urgent;
        drop(state);
        if new || urgent {
            self.thread
                .notify(new.then(|| Arc::clone(&self.slot)), urgent);
        }
    }
}
