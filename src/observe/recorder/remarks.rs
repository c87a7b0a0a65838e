//! Adds events from outside the conversation to a recording.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::MutexGuard;

use super::desk::Desk;
use super::queue::{Entry, Policy, Queue, Seen, State};
use super::tally::Tally;
use crate::recording::{Body, What};

/// Adds events from outside the conversation to a recording, such as an agent's stderr.
#[derive(Clone, Debug)]
pub struct Remarks {
    pub(super) queue: Arc<Queue>,
    pub(super) desk: Arc<Desk>,
    pub(super) policy: Policy,
    pub(super) began: Instant,
    pub(super) tally: Arc<Tally>,
}

impl Remarks {
    /// Records output of the agent on stderr.
    pub fn stderr(&self, bytes: &[u8]) {
        let bytes = bytes::Bytes::copy_from_slice(bytes);
        let body = match std::str::from_utf8(&bytes) {
            Ok(_) => Body::Text(bytes),
            Err(_) => Body::Bytes(bytes),
        };
        self.event(What::Stderr(body));
    }

    /// Records an event, unless the recording has ended or is far behind.
    pub fn event(&self, what: What) {
        let at = self.now();
        let mut state = self.queue.lock();
        if !state.broken && state.over.is_none() && state.batch.has_room() {
            let seen = Seen::Event(Box::new(what), None);
            state.batch.entries.push(Entry { at, seen });
            self.list(state);
        }
    }

    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Tells the writer thread about the queue if it does not know yet.
    pub(super) fn list(&self, mut state: MutexGuard<'_, State>) {
        let new = !std::mem::replace(&mut state.listed, true);
        let hurry = (state.is_worthwhile() || state.over.is_some()) && !state.hurried;
        state.hurried |= hurry;
        drop(state);
        if new || hurry {
            self.desk.tell(new.then(|| Arc::clone(&self.queue)), hurry);
        }
    }
}
