//! JSON-RPC batches, between sides that speak different versions of the protocol.
//!
//! Older drafts of v2 allow them. The messages are handled one by one, none is passed on as a batch,
//! and the answers to the requests among them are sent together once the last is there.

use jsonrpc::reply::{self, Reason};
use jsonrpc::{Frame, Id, IdBuf, Kind, Limits, Scanned, scan, text};

/// The most messages in a batch, and batches of a side that wait for answers.
const MAX_ITEMS: usize = 256;

/// The batches of a side whose answers are collected.
#[derive(Debug, Default)]
pub(super) struct Batches(Vec<Batch>);

#[derive(Debug, Default)]
struct Batch {
    /// Requests without an answer.
    waiting: Vec<IdBuf>,
    answers: Vec<Frame>,
    /// What the answers weigh.
    bytes: usize,
}

impl Batches {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The messages of a batch, whose answers are collected from now on; `None` if it is empty, or if
    /// it has or there are too many.
    pub(super) fn take_apart(
        &mut self,
        frame: &Frame,
        limits: &Limits,
    ) -> Option<Vec<(Scanned, Frame)>> {
        let items: Vec<_> = text::items(frame.as_bytes().trim_ascii()).collect();
        if items.is_empty() || items.len() > MAX_ITEMS || self.0.len() >= MAX_ITEMS {
            return None;
        }
        let mut batch = Batch::default();
        let mut messages = Vec::new();
        for frame in items.into_iter().map(|item| Frame::from(item.to_vec())) {
            let scanned = scan(&frame, limits);
            let Scanned::Message(at) = &scanned else {
                let what = "an entry of a batch is no message";
                let reason = Reason::new(reply::INVALID_REQUEST, what);
                batch.answers.push(reply::error(Id::Null, &reason));
                continue;
            };
            if at.kind == Kind::Request {
                batch.waiting.push(at.id(&frame).to_owned());
            }
            messages.push((scanned, frame));
        }
        self.0.push(batch);
        Some(messages)
    }

    /// What is to be sent instead of a frame: itself, if it is no answer that belongs to a batch; no
    /// frame while others are missing; then all of them.
    pub(super) fn collect(&mut self, frame: Frame, longest: usize, limits: &Limits) -> Vec<Frame> {
        let Scanned::Message(at) = scan(&frame, limits) else {
            return vec![frame];
        };
        let id = at.id(&frame);
        let mut batches = self.0.iter_mut().filter(|_| at.kind.is_answer());
        let found = batches.find_map(|batch| {
            let place = batch.waiting.iter().position(|known| known.as_id() == id)?;
            Some((batch, place))
        });
        let Some((batch, place)) = found else {
            return vec![frame];
        };
        batch.waiting.swap_remove(place);
        batch.bytes += frame.weight();
        batch.answers.push(frame);
        self.take_complete(longest, limits)
    }

    /// The answers of the batches that have them all, as one message each if none is longer than
    /// `longest`.
    pub(super) fn take_complete(&mut self, longest: usize, limits: &Limits) -> Vec<Frame> {
        let kept: usize = self.0.iter().map(|batch| batch.bytes).sum();
        let is_full = kept > limits.translation_bytes;
        let is_due = |batch: &mut Batch| is_full || batch.waiting.is_empty();
        let mut due = Vec::new();
        for batch in self.0.extract_if(.., is_due) {
            let answers: Vec<_> = batch.answers.iter().map(Frame::as_bytes).collect();
            let array = [&b"["[..], &answers.join(&b','), b"]"].concat();
            match array.len() <= longest && !is_full && !answers.is_empty() {
                true => due.push(Frame::from(array)),
                // Each alone is within what that side takes. So come those that are missing.
                false => due.extend(batch.answers),
            }
        }
        due
    }
}
