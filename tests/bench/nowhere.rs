//! A recording that is discarded: all that a recorder does except for the disk.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use acp_relay::observe::recorder::{
    OverflowPolicy, Recorder, RecordingOutcome, RecordingPlan, SegmentStore, WriterThread,
};
use acp_relay::recording::PeerInfo;
use acp_relay::recording::redact::{Mode, Redactor};

struct DiscardingStore;

impl SegmentStore for DiscardingStore {
    fn create(&mut self, _number: u64) -> io::Result<Box<dyn Write + Send>> {
        Ok(Box::new(io::sink()))
    }

    fn name(&self) -> String {
        "nowhere".to_owned()
    }
}

/// A recorder, and a channel that reports the end when everything is written.
pub(super) fn recorder(
    thread: &Arc<WriterThread>,
    mode: Mode,
) -> (Recorder, Receiver<RecordingOutcome>) {
    let peer = || PeerInfo {
        name: "bench".to_owned(),
        dialect: "canonical".to_owned(),
    };
    let (end_sender, end) = sync_channel(1);
    let plan = RecordingPlan {
        store: Box::new(DiscardingStore),
        id: "ab".repeat(16),
        label: String::new(),
        client: peer(),
        agent: peer(),
        tables: None,
        policy: OverflowPolicy::Lossless,
        on_error: false,
        strict: false,
        redactor: Arc::new(Redactor::new(mode, Vec::new(), [7; 32])),
        stats: Arc::default(),
        on_failure: Box::new(|| {}),
        on_end: Box::new(move |outcome| end_sender.send(outcome).expect("it is awaited")),
    };
    let (recorder, _) = Recorder::open(thread, plan).expect("the store cannot fail");
    (recorder, end)
}
