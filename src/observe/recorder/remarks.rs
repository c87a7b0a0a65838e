//! Puts remarks from elsewhere into a recording, beside what its tap sees.
//!
//! Not here: frames (see `tap`), and how a remark is spelled (see `scribe`).

use std::sync::Arc;
use std::time::Instant;

use parking_lot::MutexGuard;

use super::desk::Desk;
use super::queue::{Entry, Policy, Queue, Seen, State};
use super::tally::Tally;
use crate::recording::{Body, What};

/// Puts remarks from elsewhere into a recording: what an agent writes to stderr.
#[derive(Clone, Debug)]
pub struct Remarks {
    pub(super) queue: Arc<Queue>,
    pub(super) desk: Arc<Desk>,
    pub(super) policy: Policy,
    pub(super) began: Instant,
    pub(super) tally: Arc<Tally>,
}

impl Remarks {
    /// The agent has written this to its stderr.
    pub fn stderr(&self, bytes: &[u8]) {
        let bytes = bytes::Bytes::copy_from_slice(bytes);
        let body = match std::str::from_utf8(&bytes) {
            Ok(_) => Body::Text(bytes),
            Err(_) => Body::Bytes(bytes),
        };
        self.event(What::Stderr(body));
    }

    /// Something has happened. It is left out when the recording is over, or far behind.
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

    /// Has the desk look at the queue when it has to know.
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
