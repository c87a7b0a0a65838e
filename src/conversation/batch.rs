//! JSON-RPC batches, between sides that speak different versions of the protocol.
//!
//! Older drafts of v2 allow them. The messages are handled one by one, none is passed on as a batch,
//! and the answers to the requests among them are sent together once the last is there.

use super::batch_state::Batch;
use super::state::Conversation;
use super::{Note, Outbox};
use jsonrpc::reply::{self, Reason};
use jsonrpc::{Frame, Id, Kind, Scanned, Side, scan, text};

/// The most messages in a batch, and batches of a side that wait for answers.
const MAX_ITEMS: usize = 256;

impl Conversation {
    /// Takes a batch of `from`.
    pub(super) fn handle_batch(&mut self, from: Side, frame: &Frame, out: &mut Outbox) {
        let items: Vec<_> = text::items(frame.as_bytes().trim_ascii()).collect();
        let is_full = self.batches[from as usize].len() >= MAX_ITEMS;
        if self.dialects.converted().is_none()
            || items.is_empty()
            || items.len() > MAX_ITEMS
            || is_full
        {
            out.note(Note::Batch { from });
            return self.send(from, reply::batch(), out);
        }
        let frames = items.into_iter().map(|item| Frame::from(item.to_vec()));
        let scanned = frames.map(|frame| (scan(&frame, &self.limits), frame));
        let scanned: Vec<_> = scanned.collect();
        let mut batch = Batch::default();
        for (scanned, frame) in &scanned {
            match scanned {
                Scanned::Message(at) if at.kind == Kind::Request => {
                    batch.waiting.push(at.id(frame).to_owned());
                }
                Scanned::Message(_) => {}
                Scanned::Batch | Scanned::Invalid(_) => {
                    let what = "an entry of a batch is no message";
                    let reason = Reason::new(reply::INVALID_REQUEST, what);
                    batch.answers.push(reply::error(Id::Null, &reason));
                }
            }
        }
        self.batches[from as usize].push(batch);
        for (scanned, frame) in scanned {
            if matches!(scanned, Scanned::Message(_)) {
                self.handle_scanned(from, frame, &scanned, out);
            }
        }
        self.send_batches(from, out);
    }

    /// Keeps an answer that belongs to a batch; `false` if it does not.
    pub(super) fn collect(&mut self, to: Side, frame: &Frame, out: &mut Outbox) -> bool {
        let Scanned::Message(at) = scan(frame, &self.limits) else {
            return false;
        };
        let id = at.id(frame);
        let mut batches = self.batches[to as usize].iter_mut();
        let found = batches.find_map(|batch| {
            let place = batch.waiting.iter().position(|known| known.as_id() == id)?;
            at.kind.is_answer().then(|| {
                batch.waiting.swap_remove(place);
                batch.answers.push(frame.clone());
                batch.bytes += frame.weight();
            })
        });
        if found.is_some() {
            self.send_batches(to, out);
        }
        found.is_some()
    }

    /// Sends the answers of the batches that have them all.
    fn send_batches(&mut self, to: Side, out: &mut Outbox) {
        let batches = &mut self.batches[to as usize];
        let kept: usize = batches.iter().map(|batch| batch.bytes).sum();
        let is_full = kept > self.limits.translation_bytes;
        let done = batches.extract_if(.., |batch| is_full || batch.waiting.is_empty());
        for batch in done.filter(|batch| !batch.answers.is_empty()) {
            let answers: Vec<_> = batch.answers.iter().map(Frame::as_bytes).collect();
            let array = [&b"["[..], &answers.join(&b','), b"]"].concat();
            if array.len() <= self.longest[to as usize] && !is_full {
                out.send(to, Frame::from(array));
                continue;
            }
            // Each alone is within what that side takes. So come those that are missing.
            for answer in batch.answers {
                out.send(to, answer);
            }
        }
    }
}
