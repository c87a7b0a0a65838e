//! Writes the recording of one conversation: takes the waiting events, encodes them, and writes the
//! lines. It is called by the writer thread.

use std::io;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Instant, SystemTime};

use bytes::Bytes;

use super::batch_encoder::BatchEncoder;
use super::queue::{Batch, OverflowPolicy, Queue, RecorderStats};
use super::segment::{SegmentStore, SegmentWriter};
use jsonrpc::Side;
use recording::redact::{Mode, Redactor};
use recording::{EventKind, Header, PeerInfo, VERSION, parse_line, peer_info, unix_micros};

/// Lines are written when there are this many bytes of them: few enough to be still in the
/// processor's cache, and enough for one efficient write. The lines of a batch of `URGENT_BYTES`
/// are fewer, so that no small rest remains, which would cost a second write.
const WRITE: usize = 384 << 10;

/// How long the first file waits for the client's first message, which names it, in microseconds.
const NAME_WAIT: u64 = 1_000_000;

/// The settings of a recording.
pub struct RecordingPlan {
    /// The destination of the segments.
    pub store: Box<dyn SegmentStore>,
    /// The recording's id: 32 hexadecimal digits.
    pub id: String,
    /// The agent's name in the names of files.
    pub label: String,
    /// The names of the two ends.
    pub client: PeerInfo,
    /// The agent.
    pub agent: PeerInfo,
    /// The digest of the mapping tables.
    pub tables: Option<String>,
    /// What happens when the writer is behind.
    pub policy: OverflowPolicy,
    /// Whether the recording is only kept when something goes wrong.
    pub on_error: bool,
    /// Whether the conversation ends when it cannot be recorded; `on_failure` ends it.
    pub strict: bool,
    /// What is redacted.
    pub redactor: Arc<Redactor>,
    /// The statistics.
    pub stats: Arc<RecorderStats>,
    /// Called once, on the writer thread, when the recording has failed.
    pub on_failure: Box<dyn FnOnce() + Send>,
    /// Called once, on the writer thread, when everything is written, or writing has failed.
    pub on_end: Box<dyn FnOnce(RecordingOutcome) + Send>,
}

/// The result of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingOutcome {
    /// It is at this location.
    Kept(String),
    /// Nothing went wrong, so it was not kept.
    Dropped,
    /// Writing failed, for this reason; the recording ends there.
    Failed(String),
}

/// The writer of one conversation.
pub(super) struct RecordingWriter {
    queue: Arc<Queue>,
    encoder: BatchEncoder,
    segments: SegmentWriter,
    /// The batch that is not being filled.
    spare: Batch,
    failed: Option<String>,
    strict: bool,
    on_error: bool,
    /// The agent's name, until the files have their names.
    label: Option<String>,
    on_failure: Option<Box<dyn FnOnce() + Send>>,
    on_end: Box<dyn FnOnce(RecordingOutcome) + Send>,
}

impl RecordingWriter {
    /// Begins the recording.
    pub(super) fn begin(plan: RecordingPlan, queue: Arc<Queue>) -> io::Result<Self> {
        let wall = unix_micros(SystemTime::now());
        let clean = |peer: PeerInfo| PeerInfo {
            name: plan.redactor.own_text(&peer.name).into_owned(),
            dialect: peer.dialect,
        };
        let header = Header {
            version: VERSION,
            id: plan.id,
            first: 1,
            began: wall,
            by: concat!("acp-relay ", env!("CARGO_PKG_VERSION")).to_owned(),
            client: clean(plan.client),
            agent: clean(plan.agent),
            tables: plan.tables,
            policy: match plan.policy {
                OverflowPolicy::Lossless => "lossless".to_owned(),
                OverflowPolicy::Lossy => "lossy".to_owned(),
            },
            redaction: plan.redactor.describe(),
            ..Header::default()
        };
        let bodies = plan.redactor.mode() <= Mode::Default;
        let mut store = plan.store;
        // With `strict`, no message passes before the file exists.
        let label = match bodies && !plan.strict {
            true => Some(plan.label),
            false => {
                store.name_peers([&plan.label, ""]);
                None
            }
        };
        let wait = plan.on_error || label.is_some();
        Ok(Self {
            queue,
            segments: SegmentWriter::begin(store, header, wait)?,
            on_error: plan.on_error,
            label,
            encoder: BatchEncoder::new(plan.redactor, wall),
            spare: Batch::default(),
            failed: None,
            strict: plan.strict,
            on_failure: Some(plan.on_failure),
            on_end: plan.on_end,
        })
    }

    /// Writes the events in the queue; `true` when no more will come.
    pub(super) fn drain(&mut self) -> bool {
        let mut state = self.queue.lock();
        std::mem::swap(&mut state.batch, &mut self.spare);
        state.batch.oldest = self.spare.oldest;
        state.is_listed = false;
        state.is_urgent = false;
        let waker = state.waker.take();
        let over = state.ended.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        let t = self.queue.now();
        if !self.spare.is_empty() {
            self.write(t);
        }
        if let Some(why) = &over {
            self.take_marks();
            self.close(why, t);
        }
        if self.failed.is_some() {
            self.report_failure();
        }
        over.is_some()
    }

    /// After a panic: nothing more is written, nor waited for.
    pub(super) fn fail_after_panic(&mut self) {
        self.fail(&io::Error::other("a fault of this relay"));
        self.report_failure();
    }

    fn report_failure(&mut self) {
        let mut state = self.queue.lock();
        state.has_failed = true;
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        if let Some(report) = self.on_failure.take() {
            report();
        }
    }

    /// Writes the spare batch, which was taken at `t`.
    fn write(&mut self, t: u64) {
        let mut batch = std::mem::take(&mut self.spare);
        let mut entries = std::mem::take(&mut batch.entries);
        let count = entries.len();
        let mut first = self.encoder.events.last() + 1;
        self.encoder
            .events
            .check_clock(t, unix_micros(SystemTime::now()));
        for entry in entries.drain(..) {
            self.encoder.add_entry(&batch, entry);
            if self.encoder.events.out.len() >= WRITE {
                self.flush(first);
                first = self.encoder.events.last() + 1;
            }
        }
        self.encoder.finish_batch(t, &batch);
        self.flush(first);
        batch.entries = entries;
        batch.clear(count);
        self.spare = batch;
    }

    /// Reads marks, and syncs what was written.
    pub(super) fn check(&mut self) {
        let t = self.queue.now();
        if t >= NAME_WAIT {
            self.name_files("", t);
        }
        self.take_marks();
        let synced = self.segments.sync();
        self.check_written(synced);
    }

    /// Reports the result.
    pub(super) fn report(self) {
        (self.on_end)(match self.failed {
            Some(why) => RecordingOutcome::Failed(why),
            None if self.segments.is_open() => RecordingOutcome::Kept(self.segments.name()),
            None => RecordingOutcome::Dropped,
        });
    }

    fn take_marks(&mut self) {
        for mark in self.segments.marks() {
            let first = self.encoder.events.last() + 1;
            let t = self.queue.now();
            self.encoder.events.own_event(t, EventKind::Mark(mark));
            self.flush(first);
        }
    }

    /// Names the files, if they have no names yet, and creates the first.
    fn name_files(&mut self, client: &str, t: u64) {
        let Some(label) = self.label.take() else {
            return;
        };
        self.segments.name_peers([&label, client]);
        if !self.on_error {
            let released = self.segments.release(t);
            self.check_written(released);
        }
    }

    fn close(&mut self, why: &str, t: u64) {
        self.name_files("", t);
        if !self.segments.is_open() {
            return;
        }
        self.end_segment(false, why, t);
    }

    /// Adds the last line of a segment.
    fn end_segment(&mut self, rotated: bool, why: &str, t: u64) {
        let first = self.encoder.events.last() + 1;
        let end = EventKind::End {
            rotated,
            reason: why.to_owned(),
            digest: self.segments.digest(),
        };
        self.encoder.events.event(t, &end);
        self.write_lines(first);
    }

    /// Writes the lines, of which the first is event `first`, and begins a new segment when one is
    /// due.
    fn flush(&mut self, first: u64) {
        // The time of the last line, so that later lines may be earlier than now.
        let t = self.encoder.events.time();
        if self.label.is_some()
            && let Some(client) = first_client(&self.encoder.events.out)
        {
            self.name_files(&client, t);
        }
        if self.encoder.events.has_alarm {
            let released = self.segments.release(t);
            self.check_written(released);
        }
        self.write_lines(first);
        if self.segments.is_full(t) {
            self.end_segment(true, "it is long or old enough", t);
            let rotated = self.segments.rotate(self.encoder.events.last() + 1, t);
            self.check_written(rotated);
        }
    }

    fn write_lines(&mut self, first: u64) {
        let hits = std::mem::take(&mut self.encoder.events.hits);
        if self.failed.is_none() {
            let began = Instant::now();
            match self.segments.write(first, &self.encoder.events.out) {
                Ok(()) => {
                    let events = (self.encoder.events.last() + 1).saturating_sub(first);
                    let took = began.elapsed();
                    let bytes = self.encoder.events.out.len();
                    self.queue.stats.add_written(bytes, events, hits, took);
                }
                Err(error) => self.fail(&error),
            }
        }
        self.encoder.events.out.clear();
        self.encoder.events.out.shrink_to(4 * WRITE);
    }

    fn check_written(&mut self, done: io::Result<()>) {
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
                "the recording stops here, the conversation continues unrecorded: {what}"
            );
        }
        self.failed = Some(what);
    }
}

/// The client's name, if there is a message in the lines of a recording; empty if it has none.
fn first_client(lines: &[u8]) -> Option<String> {
    let mut lines = lines.split_inclusive(|byte| *byte == b'\n');
    let message = lines.find_map(|line| {
        let event = parse_line(&Bytes::copy_from_slice(line)).into_event()?;
        event.message().cloned()
    })?;
    let body = message.body.json().filter(|_| message.edge == Side::Client);
    let name = body.and_then(|body| {
        let name = &peer_info(Side::Client, &body)?["name"];
        name.as_str().map(str::to_owned)
    });
    Some(name.unwrap_or_default())
}

jsonrpc::opaque_debug!(RecordingWriter, RecordingPlan);
