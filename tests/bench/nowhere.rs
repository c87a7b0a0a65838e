//! A recording that goes nowhere: all that a recorder does but for the disk.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use acp_relay::observe::recorder::{Desk, Outcome, Place, Plan, Policy, Recorder};
use acp_relay::recording::Peer;
use acp_relay::recording::redact::{Mode, Redactor};

struct Nowhere;

impl Place for Nowhere {
    fn begin(&mut self, _number: u64) -> io::Result<Box<dyn Write + Send>> {
        Ok(Box::new(io::sink()))
    }

    fn name(&self) -> String {
        "nowhere".to_owned()
    }
}

/// A recorder, and what tells that all it has seen is put away.
pub(super) fn recorder(desk: &Arc<Desk>, mode: Mode) -> (Recorder, Receiver<Outcome>) {
    let peer = || Peer {
        name: "bench".to_owned(),
        dialect: "canonical".to_owned(),
    };
    let (tell, over) = sync_channel(1);
    let plan = Plan {
        place: Box::new(Nowhere),
        id: "ab".repeat(16),
        client: peer(),
        agent: peer(),
        tables: None,
        policy: Policy::Lossless,
        on_error: false,
        strict: false,
        redactor: Arc::new(Redactor::new(mode, Vec::new(), [7; 32])),
        tally: Arc::default(),
        on_failure: Box::new(|| {}),
        on_end: Box::new(move |outcome| tell.send(outcome).expect("it is awaited")),
    };
    let (recorder, _) = desk.open(plan).expect("nowhere has room");
    (recorder, over)
}
