//! Writes a recording of messages from a capture.

use super::capture::{Capture, Item};
use crate::cli::inspect::scrub::redact_message;
use crate::jsonrpc::Frame;
use crate::recording::redact::{RedactFlows, Redactor};
use crate::recording::replay::Script;
use crate::recording::write::{self, Stamp};
use crate::recording::{EventKind, Header, Message, Passed, PeerInfo, VERSION};

struct Writer<'a> {
    redactor: &'a Redactor,
    flows: RedactFlows,
    lines: Vec<u8>,
    stamp: Stamp,
    began: u64,
    /// The messages so far, which pairs answers with requests.
    script: Script,
    /// Frames that were forwarded and not yet written as such.
    passed: Option<Passed>,
}

/// The lines of a recording, and its number of events.
pub(super) fn recording(capture: &Capture, redactor: &Redactor, id: String) -> (Vec<u8>, u64) {
    let peer = |name: &Option<String>, unknown: &str| PeerInfo {
        name: redactor
            .own_text(name.as_deref().unwrap_or(unknown))
            .into_owned(),
        dialect: "canonical".to_owned(),
    };
    let header = Header {
        version: VERSION,
        id,
        segment: 0,
        first: 1,
        began: capture.began,
        by: format!("acp-relay {} import", env!("CARGO_PKG_VERSION")),
        client: peer(&capture.client, "a client"),
        agent: peer(&capture.agent, "an agent"),
        tables: None,
        policy: "lossless".to_owned(),
        redaction: redactor.describe(),
        previous: None,
    };
    let mut writer = Writer {
        redactor,
        flows: RedactFlows::default(),
        lines: Vec::new(),
        stamp: Stamp::default(),
        began: capture.began,
        script: Script::default(),
        passed: None,
    };
    write::header(&mut writer.lines, &header);
    writer.event(&EventKind::Note {
        name: "imported".to_owned(),
        text: format!("made of {}", capture.format),
        source: None,
    });
    for item in &capture.items {
        writer.item(item);
    }
    writer.flush_passed();
    let digest = blake3::hash(&writer.lines).to_hex().to_string();
    writer.event(&EventKind::End {
        rotated: false,
        reason: "imported".to_owned(),
        digest,
    });
    (writer.lines, writer.stamp.n)
}

impl Writer<'_> {
    fn event(&mut self, what: &EventKind) {
        self.stamp.n += 1;
        self.stamp.w = self.began + self.stamp.t;
        write::event(&mut self.lines, self.stamp, what);
    }

    fn item(&mut self, item: &Item) {
        if self
            .passed
            .is_some_and(|passed| !item.passed || passed.to != item.to)
        {
            self.flush_passed();
        }
        // Clocks of other programs may go back.
        self.stamp.t = self.stamp.t.max(item.t);
        let n = self.stamp.n + 1;
        self.script
            .push(n, item.t, item.to.other(), Frame::new(item.bytes.clone()));
        let step = self.script.steps.last().expect("it was just added");
        let message = Message {
            edge: item.hop,
            ..self.script.message(step)
        };
        // Only the pairing is needed later.
        self.script.forget_body();
        let message = redact_message(message, self.redactor, &mut self.flows);
        self.event(&EventKind::Message(Box::new(message)));
        if item.passed {
            let passed = self.passed.get_or_insert(Passed {
                to: item.to,
                first: n,
                last: n,
                count: 0,
            });
            passed.last = n;
            passed.count += 1;
        }
    }

    /// Writes that frames were forwarded.
    fn flush_passed(&mut self) {
        if let Some(passed) = self.passed.take() {
            self.event(&EventKind::Passed(passed));
        }
    }
}
