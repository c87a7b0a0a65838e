//! A recorder on a conversation in memory, and the recording as bytes.

use std::io::{self, Cursor, Write};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use acp_relay::conversation::Note;
use acp_relay::jsonrpc::{Frame, Limits, Scanned, Side, scan};
use acp_relay::observe::recorder::{
    OverflowPolicy, Recorder, RecorderHandle, RecorderStats, RecordingOutcome, RecordingPlan,
    SegmentStore, WriterThread,
};
use acp_relay::observe::{Event, Observer};
use acp_relay::recording::redact::{Mode, PointerPattern, Redactor};
use acp_relay::recording::{Message, PeerInfo, RecordedEvent, SegmentReader};

/// A test that waits longer fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a recording is made.
pub(super) struct RecorderSetup {
    pub(super) mode: Mode,
    pub(super) patterns: Vec<PointerPattern>,
    pub(super) policy: OverflowPolicy,
    pub(super) on_error: bool,
    pub(super) dialect: &'static str,
    /// Bytes after which the disk is full.
    pub(super) room: usize,
}

/// A recording in progress.
pub(super) struct TestRecording {
    pub(super) recorder: Recorder,
    pub(super) handle: RecorderHandle,
    pub(super) written: WrittenLines,
    pub(super) stats: Arc<RecorderStats>,
    end: Receiver<RecordingOutcome>,
    failed: Receiver<()>,
}

/// What was written, segment by segment.
#[derive(Clone, Debug, Default)]
pub(super) struct WrittenLines(pub(super) Arc<Mutex<Vec<Vec<u8>>>>);

/// Writes segments into memory.
struct MemoryStore {
    written: WrittenLines,
    room: usize,
}

impl Default for RecorderSetup {
    fn default() -> Self {
        Self {
            mode: Mode::Default,
            patterns: Vec::new(),
            policy: OverflowPolicy::Lossless,
            on_error: false,
            dialect: "canonical",
            room: usize::MAX,
        }
    }
}

impl RecorderSetup {
    pub(super) fn start(self) -> TestRecording {
        let (end_sender, end) = sync_channel(1);
        let (failure_sender, failed) = sync_channel(1);
        let written = WrittenLines::default();
        let stats = Arc::<RecorderStats>::default();
        let peer = |name: &str| PeerInfo {
            name: name.to_owned(),
            dialect: self.dialect.to_owned(),
        };
        let plan = RecordingPlan {
            store: Box::new(MemoryStore {
                written: written.clone(),
                room: self.room,
            }),
            id: "ab".repeat(16),
            label: "x".to_owned(),
            client: peer("stdio:"),
            agent: peer("process 1 (x)"),
            tables: None,
            policy: self.policy,
            on_error: self.on_error,
            strict: false,
            redactor: Arc::new(Redactor::new(self.mode, self.patterns, [7; 32])),
            stats: Arc::clone(&stats),
            on_failure: Box::new(move || failure_sender.send(()).unwrap()),
            on_end: Box::new(move |outcome| end_sender.send(outcome).unwrap()),
        };
        let (recorder, handle) = Recorder::open(writer_thread(), plan).unwrap();
        TestRecording {
            recorder,
            handle,
            written,
            stats,
            end,
            failed,
        }
    }
}

/// The writer thread of all tests.
fn writer_thread() -> &'static Arc<WriterThread> {
    static THREAD: OnceLock<Arc<WriterThread>> = OnceLock::new();
    THREAD.get_or_init(|| WriterThread::start().unwrap())
}

impl TestRecording {
    /// `from` sends a message, and the relay forwards it unchanged.
    pub(super) fn forward(&mut self, from: Side, text: &[u8]) {
        let frame = Frame::new(text.to_vec());
        self.translate(from, &frame, &[], &frame.clone());
    }

    /// `from` sends a message, and the relay sends `sent` to the other side.
    pub(super) fn translate(&mut self, from: Side, received: &Frame, notes: &[Note], sent: &Frame) {
        self.recorder.on_event(&Event::Received(from, received));
        if let Scanned::Message(envelope) = scan(received, &Limits::default()) {
            self.recorder.on_event(&Event::Parsed(&envelope));
        }
        for note in notes {
            self.recorder.on_event(&Event::Note(note));
        }
        let mut waiting = [0; 2];
        waiting[from.other() as usize] = 1;
        self.recorder.on_event(&Event::Settled(waiting));
        self.recorder.on_event(&Event::Sent(from.other(), sent));
        self.recorder.on_event(&Event::Settled([0; 2]));
        self.recorder.flush();
    }

    /// Ends the recording; returns its outcome, and what was written.
    pub(super) fn end(self) -> (RecordingOutcome, Vec<Vec<u8>>) {
        drop(self.recorder);
        let outcome = self.end.recv_timeout(PATIENCE).expect("it is ended");
        let failed = self.failed.try_recv().is_ok();
        assert_eq!(failed, matches!(outcome, RecordingOutcome::Failed(_)));
        let segments = self.written.0.lock().unwrap().clone();
        (outcome, segments)
    }

    /// Ends the recording; returns its events.
    pub(super) fn events(self) -> Vec<RecordedEvent> {
        let (_, segments) = self.end();
        let all = segments.into_iter().flat_map(events);
        all.collect()
    }
}

/// The events of a segment.
pub(super) fn events(segment: Vec<u8>) -> Vec<RecordedEvent> {
    let events = SegmentReader::new(Cursor::new(segment)).events();
    events.collect::<io::Result<_>>().unwrap()
}

/// The frames of a recording, with their side and direction.
pub(super) fn frames(events: &[RecordedEvent]) -> Vec<(Side, Side, Vec<u8>)> {
    let messages = events.iter().filter_map(RecordedEvent::message);
    let frame = |message: &Message| {
        let bytes = message.body.bytes().unwrap().to_vec();
        (message.edge, message.to, bytes)
    };
    messages.map(frame).collect()
}

impl SegmentStore for MemoryStore {
    fn create(&mut self, number: u64) -> io::Result<Box<dyn Write + Send>> {
        let mut segments = self.written.0.lock().unwrap();
        assert_eq!(segments.len() as u64, number);
        segments.push(Vec::new());
        Ok(Box::new(Self {
            written: self.written.clone(),
            room: self.room,
        }))
    }

    fn name(&self) -> String {
        "memory".to_owned()
    }
}

impl Write for MemoryStore {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.room);
        if count == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room -= count;
        let mut segments = self.written.0.lock().unwrap();
        segments
            .last_mut()
            .unwrap()
            .extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
