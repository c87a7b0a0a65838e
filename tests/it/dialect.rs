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
mod stream;
mod tables;
mod trees;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use acp_relay::conversation::{
    Conversation, DialectChoice, DialectOptions, LinkTraits, Note, Outbox,
};
use acp_relay::dialect::{Library, Translation, Translator, Vector};
use acp_relay::jsonrpc::{Frame, Limits, Side};
use acp_relay::observe::{Event, Observers};
use proptest::prelude::ProptestConfig;
use serde_json::Value;

fn library() -> &'static Arc<Library> {
    static LIBRARY: OnceLock<Arc<Library>> = OnceLock::new();
    LIBRARY.get_or_init(|| Arc::new(Library::builtin()))
}

/// What a translator has made of a message.
struct Passed {
    frame: Frame,
    outcome: Translation,
}

/// Passes a message through a translator: its peer has sent it (`reads`), or receives it.
#[expect(
    clippy::needless_pass_by_value,
    reason = "callers make the message in place"
)]
fn pass(relay: &mut Translator, reads: bool, message: impl ToString) -> Passed {
    let frame = Frame::from(message.to_string());
    let at = line::scanned(&frame);
    let outcome = match reads {
        true => relay.read(&frame, &at),
        false => relay.write(&frame, &at),
    };
    Passed { frame, outcome }
}

impl Passed {
    /// What is forwarded, and what is sent back.
    fn values(&self) -> [Vec<Value>; 2] {
        let forwarded = self.outcome.frames(&self.frame);
        [&forwarded, &self.outcome.replies].map(|all| all.iter().map(line::value).collect())
    }

    /// Both; each has to be a message.
    fn all(&self) -> Vec<Frame> {
        let all = [
            self.outcome.frames(&self.frame),
            self.outcome.replies.clone(),
        ]
        .concat();
        for made in &all {
            line::scanned(made);
        }
        all
    }
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
    pub(crate) fn new(
        library: &Arc<Library>,
        client: &DialectChoice,
        agent: &DialectChoice,
    ) -> Self {
        let dialects = DialectOptions::new(library, client, agent).unwrap();
        let traits = LinkTraits {
            client_half_close: true,
            agent_half_close: true,
            agent_is_child: true,
            ..LinkTraits::default()
        };
        let limits = Limits::default();
        Self {
            out: Outbox::new(&limits),
            core: Conversation::new(Arc::new(limits), traits, dialects, Instant::now()),
            observers: Observers::default(),
            notes: Vec::new(),
        }
    }

    /// One side sends a message; returns what the client and the agent receive.
    pub(crate) fn send(&mut self, from: Side, message: &Value) -> [Vec<Value>; 2] {
        let received = self.send_frame(from, Frame::from(message.to_string()));
        received.map(|all| all.iter().map(line::value).collect())
    }

    /// [`Exchange::send`] for a text.
    pub(crate) fn send_frame(&mut self, from: Side, frame: Frame) -> [Vec<Frame>; 2] {
        let out = &mut self.out;
        self.core.handle_frame(from, frame, Instant::now(), out);
        while let Some(note) = out.pop_note() {
            self.observers.on_event(&Event::Note(&note));
            self.notes.push(note);
        }
        [Side::Client, Side::Agent].map(|side| std::iter::from_fn(|| out.pop(side)).collect())
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
