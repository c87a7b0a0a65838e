//! Encodes the entries of batches as lines of a recording.

use std::collections::VecDeque;
use std::sync::Arc;

use super::queue::{Batch, Entry, Item, Run};
use jsonrpc::Side;
use recording::encode::{EventEncoder, FrameSource};
use recording::redact::Redactor;
use recording::{EventKind, Passed};

/// Encodes the lines of one recording.
#[derive(Debug)]
pub(super) struct BatchEncoder {
    pub(super) events: EventEncoder,
    /// The events of the received frames that may still be referenced, and the number of the first
    /// of them among the received frames.
    received: VecDeque<u64>,
    first: u64,
}

impl BatchEncoder {
    /// For a recording that began at `began`, in microseconds since 1970.
    pub(super) fn new(redactor: Arc<Redactor>, began: u64) -> Self {
        Self {
            events: EventEncoder::new(redactor, began),
            received: VecDeque::new(),
            first: 0,
        }
    }

    /// Adds an entry of a batch.
    pub(super) fn add_entry(&mut self, batch: &Batch, entry: Entry) {
        let Entry { at, item } = entry;
        match item {
            Item::Received(from, frame, info) => {
                let frame = batch.frame(&frame);
                let n = self.events.frame(at, from, from.other(), None, info, frame);
                self.received.push_back(n);
            }
            Item::Sent(to, origin, frame) => {
                let source = origin.as_ref().map(|origin| FrameSource {
                    event: self.event_number(origin.n),
                    frame: origin.frame.as_bytes(),
                    rules: &origin.rules,
                });
                let frame = batch.frame(&frame);
                self.events.frame(at, to, to, source, None, frame);
            }
            Item::Forwarded(to, run) => self.add_forwarded(at, to, run),
            Item::Event(mut what, cause) => {
                if let EventKind::Note { source, .. } = &mut *what {
                    *source = cause.and_then(|cause| self.event_number(cause));
                }
                self.events.own_event(at, *what);
            }
        }
    }

    /// Adds what follows the last entry of a batch that was taken at `t`.
    pub(super) fn finish_batch(&mut self, t: u64, batch: &Batch) {
        for to in [Side::Client, Side::Agent] {
            if let Some(run) = batch.forwarded[to as usize] {
                self.add_forwarded(t, to, run);
            }
        }
        while self.first < batch.oldest && !self.received.is_empty() {
            self.received.pop_front();
            self.first += 1;
        }
    }

    fn add_forwarded(&mut self, t: u64, to: Side, run: Run) {
        if let (Some(first), Some(last)) =
            (self.event_number(run.first), self.event_number(run.last))
        {
            let count = run.count;
            let passed = Passed {
                to,
                first,
                last,
                count,
            };
            self.events.event(t, &EventKind::Passed(passed));
        }
    }

    /// The event of the received frame with this number.
    fn event_number(&self, received: u64) -> Option<u64> {
        let at = usize::try_from(received.checked_sub(self.first)?).ok()?;
        self.received.get(at).copied()
    }
}
