//! Writes the recording of one conversation: takes the waiting events, encodes them, and writes the
//! lines. It is called by the writer thread.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::folder::Place;
use super::queue::{Batch, Policy, Queue};
use super::scribe::Scribe;
use super::segment::Segments;
use super::tally::Tally;
use crate::recording::redact::Redactor;
use crate::recording::{Header, Peer, VERSION, What};

/// Lines are written when there are this many bytes of them: few enough to be still in the
/// processor's cache, and enough for one efficient write. The lines of a batch of `URGENT_BYTES`
/// are fewer, so that no small rest remains, which would cost a second write.
const WRITE: usize = 384 << 10;

/// The interval at which marks are read.
const LOOK: Duration = Duration::from_secs(1);

/// The settings of a recording.
pub struct Plan {
    /// The destination of the segments.
    pub place: Box<dyn Place>,
    /// The recording's id: 32 hexadecimal digits.
    pub id: String,
    /// The names of the two ends.
    pub client: Peer,
    /// The agent.
    pub agent: Peer,
    /// The digest of the mapping tables.
    pub tables: Option<String>,
    /// What happens when the writer is behind.
    pub policy: Policy,
    /// Whether the recording is only kept when something goes wrong.
    pub on_error: bool,
    /// Whether the conversation ends when it cannot be recorded; `on_failure` ends it.
    pub strict: bool,
    /// What is redacted.
    pub redactor: Arc<Redactor>,
    /// The statistics.
    pub tally: Arc<Tally>,
    /// Called once, on the writer thread, when the recording has failed.
    pub on_failure: Box<dyn FnOnce() + Send>,
    /// Called once, on the writer thread, when everything is written, or writing has failed.
    pub on_end: Box<dyn FnOnce(Outcome) + Send>,
}

/// The result of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is at this location.
    Kept(String),
    /// Nothing went wrong, so it was not kept.
    Dropped,
    /// Writing failed, for this reason; the recording ends there.
    Failed(String),
}

/// The writer of one conversation.
pub(super) struct Work {
    began: Instant,
    scribe: Scribe,
    segments: Segments,
    tally: Arc<Tally>,
    /// The batch that is not being filled.
    spare: Batch,
    looked: Instant,
    failed: Option<String>,
    strict: bool,
    on_failure: Option<Box<dyn FnOnce() + Send>>,
    on_end: Box<dyn FnOnce(Outcome) + Send>,
}

impl Work {
    /// Begins the recording.
    pub(super) fn begin(plan: Plan, began: Instant) -> io::Result<Self> {
        let wall = wall();
        let clean = |peer: Peer| Peer {
            name: plan.redactor.remark(&peer.name).into_owned(),
            dialect: peer.dialect,
        };
        let header = Header {
            version: VERSION,
            id: plan.id,
            segment: 0,
            first: 1,
            began: wall,
            by: concat!("acp-relay ", env!("CARGO_PKG_VERSION")).to_owned(),
            client: clean(plan.client),
            agent: clean(plan.agent),
            tables: plan.tables,
            policy: match plan.policy {
                Policy::Lossless => "lossless".to_owned(),
                Policy::Lossy => "lossy".to_owned(),
            },
            redaction: plan.redactor.describe(),
            previous: None,
        };
        Ok(Self {
            began,
            segments: Segments::begin(plan.place, header, plan.on_error)?,
            scribe: Scribe::new(plan.redactor, wall),
            tally: plan.tally,
            spare: Batch::default(),
            looked: began,
            failed: None,
            strict: plan.strict,
            on_failure: Some(plan.on_failure),
            on_end: plan.on_end,
        })
    }

    /// Writes the events in `queue`; `true` when no more will come.
    pub(super) fn turn(&mut self, queue: &Queue) -> bool {
        let mut state = queue.lock();
        std::mem::swap(&mut state.batch, &mut self.spare);
        state.batch.oldest = self.spare.oldest;
        state.listed = false;
        state.hurried = false;
        let waker = state.waker.take();
        let over = state.over.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        let t = self.elapsed();
        if !self.spare.is_empty() {
            self.write(t);
        }
        if let Some(why) = &over {
            self.look();
            self.close(why, t);
        }
        if self.failed.is_some() {
            queue.lock().broken = true;
            if let Some(tell) = self.on_failure.take() {
                tell();
            }
        }
        over.is_some()
    }

    /// Writes the spare batch, which was taken at `t`.
    fn write(&mut self, t: u64) {
        let mut batch = std::mem::take(&mut self.spare);
        let mut entries = std::mem::take(&mut batch.entries);
        let count = entries.len();
        let mut first = self.scribe.last() + 1;
        self.scribe.begin(t, wall());
        for entry in entries.drain(..) {
            self.scribe.entry(&batch, entry);
            if self.scribe.out.len() >= WRITE {
                self.put(first);
                first = self.scribe.last() + 1;
            }
        }
        self.scribe.finish(t, &batch);
        self.put(first);
        batch.entries = entries;
        batch.clear(count);
        self.spare = batch;
    }

    /// Reads marks, if the interval has passed.
    pub(super) fn glance(&mut self, now: Instant) {
        if now.duration_since(self.looked) >= LOOK {
            self.looked = now;
            self.look();
        }
    }

    /// Reports the result.
    pub(super) fn end(self) {
        (self.on_end)(match self.failed {
            Some(why) => Outcome::Failed(why),
            None if self.segments.is_open() => Outcome::Kept(self.segments.name()),
            None => Outcome::Dropped,
        });
    }

    fn look(&mut self) {
        for mark in self.segments.marks() {
            let first = self.scribe.last() + 1;
            let t = self.elapsed();
            self.scribe.happened(t, What::Mark(mark), None);
            self.put(first);
        }
    }

    fn close(&mut self, why: &str, t: u64) {
        if !self.segments.is_open() {
            return;
        }
        self.finish(false, why, t);
    }

    /// Adds the last line of a segment.
    fn finish(&mut self, rotated: bool, why: &str, t: u64) {
        let first = self.scribe.last() + 1;
        let end = What::End {
            rotated,
            why: why.to_owned(),
            digest: self.segments.digest(),
        };
        self.scribe.event(t, &end);
        self.put_all(first);
    }

    /// Writes the lines, of which the first is event `first`, and begins a new segment when one is
    /// due.
    fn put(&mut self, first: u64) {
        // The time of the last line, so that later lines may be earlier than now.
        let t = self.scribe.time();
        if self.scribe.is_alarmed() {
            let released = self.segments.release(t);
            self.check(released);
        }
        self.put_all(first);
        if self.segments.is_full(t) {
            self.finish(true, "it is long or old enough", t);
            let rotated = self.segments.rotate(self.scribe.last() + 1, t);
            self.check(rotated);
        }
    }

    fn put_all(&mut self, first: u64) {
        let hits = self.scribe.take_hits();
        if self.failed.is_none() {
            let began = Instant::now();
            match self.segments.write(first, &self.scribe.out) {
                Ok(()) => {
                    let events = (self.scribe.last() + 1).saturating_sub(first);
                    let took = began.elapsed();
                    self.tally.wrote(self.scribe.out.len(), events, took);
                    self.tally.kept_out(hits);
                }
                Err(error) => self.fail(&error),
            }
        }
        self.scribe.out.clear();
        self.scribe.out.shrink_to(4 * WRITE);
    }

    fn check(&mut self, done: io::Result<()>) {
        if let Err(error) = done
            && self.failed.is_none()
        {
            self.fail(&error);
        }
    }

    /// Logs the error once.
    fn fail(&mut self, error: &io::Error) {
        let what = format!("{}: {error}", self.segments.name());
        if self.strict {
            tracing::error!("the recording stops here, and ends the conversation: {what}");
        } else {
            tracing::error!(
                "the recording stops here, the conversation goes on unrecorded: {what}"
            );
        }
        self.failed = Some(what);
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// Microseconds since 1970.
fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(0))
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work")
            .field("scribe", &self.scribe)
            .field("segments", &self.segments)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
