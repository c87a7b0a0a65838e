//! Dialects: the built-in tables are valid, their examples hold, and the vectors pass.

mod auto;
mod bounds;
mod captures;
mod detect;
mod first_protocol;
mod golden;
mod inverse;
mod properties;
mod line;
mod hostile_tables;
mod newer;
mod permission;
mod renamed;
mod roundtrip;
mod official_types;
mod spelling;
mod tables;
mod trees;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use acp_relay::conversation::{
    Conversation, DialectChoice, DialectOptions, LinkTraits, Note, Outbox,
};
use acp_relay::dialect::{Library, Vector};
use acp_relay::jsonrpc::{Frame, Limits, Side};
use acp_relay::observe::{Event, Observers};
use proptest::prelude::ProptestConfig;
use serde_json::Value;

fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(Library::builtin)
}

/// So many cases, or `PROPTEST_CASES` if that is more. A failure prints its input; there are no
/// seed files.
fn cases(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let raised = std::env::var_os("PROPTEST_CASES").map_or(0, |_| default.cases);
    ProptestConfig {
        cases: cases.max(raised),
        failure_persistence: None,
        ..default
    }
}

/// A conversation of two peers with its notes.
pub(crate) struct Exchange {
    core: Conversation,
    out: Outbox,
    pub(crate) observers: Observers,
    pub(crate) notes: Vec<Note>,
}

impl Exchange {
    pub(crate) fn new(library: Library, client: &DialectChoice, agent: &DialectChoice) -> Self {
        let dialects = DialectOptions::new(&Arc::new(library), client, agent).unwrap();
        let traits = LinkTraits {
            client_half_close: true,
            agent_half_close: true,
            agent_is_child: true,
            ..LinkTraits::default()
        };
        let limits = Limits::default();
        Self {
            out: Outbox::new(&limits),
            core: Conversation::new(Arc::new(limits), traits, dialects),
            observers: Observers::default(),
            notes: Vec::new(),
        }
    }

    /// One side sends a message; returns what the client and the agent receive.
    pub(crate) fn send(&mut self, from: Side, message: &Value) -> [Vec<Value>; 2] {
        let frame = Frame::from(message.to_string());
        let out = &mut self.out;
        self.core.handle_frame(from, frame, Instant::now(), out);
        while let Some(note) = out.pop_note() {
            self.observers.on_event(&Event::Note(&note));
            self.notes.push(note);
        }
        [Side::Client, Side::Agent].map(|side| {
            let received = std::iter::from_fn(|| out.pop(side));
            received.map(|frame| line::value(&frame)).collect()
        })
    }
}

#[test]
fn every_vector_passes_in_its_directions() {
    let (mut failed, mut run) = (Vec::new(), 0);
    for vector in golden::vectors() {
        let vector = Vector::parse(&vector.to_string()).unwrap();
        for report in vector.run(library()) {
            run += usize::from(report.skipped.is_none());
            let (name, way) = (&report.name, report.way);
            failed.extend(report.fault.map(|fault| format!("{name} {way}: {fault}")));
        }
    }
    assert!(run > 200, "only {run} were run");
    assert!(failed.is_empty(), "{}\n{}", failed.len(), failed.join("\n"));
}
