//! Writes a recording of messages from a capture.

use std::collections::HashMap;

use super::capture::{Capture, Item};
use crate::cli::inspect::scrub::{Flows, redact_message};
use crate::jsonrpc::{Envelope, IdAt, IdBuf, Kind, Limits, Scanned, Side, scan};
use crate::recording::redact::Redactor;
use crate::recording::write::{self, Stamp, fits_line};
use crate::recording::{
    EventKind, Header, Message, MessageKind, Passed, Payload, PeerInfo, VERSION, members,
};

/// A request without an answer so far.
struct ImportedRequest {
    n: u64,
    method: Option<String>,
    session: Option<String>,
}

struct Writer<'a> {
    redactor: &'a Redactor,
    flows: Flows,
    lines: Vec<u8>,
    stamp: Stamp,
    began: u64,
    /// By the side that asked, and the id.
    open: HashMap<(Side, IdBuf), Vec<ImportedRequest>>,
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
        flows: Flows::default(),
        lines: Vec::new(),
        stamp: Stamp::default(),
        began: capture.began,
        open: HashMap::new(),
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
        let message = self.message(n, item);
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

    fn message(&mut self, n: u64, item: &Item) -> Message {
        let frame = item.frame();
        let bytes = frame.as_bytes();
        let mut message = Message {
            edge: item.hop,
            to: item.to,
            id: None,
            method: None,
            session: None,
            kind: None,
            answers: None,
            source: None,
            rules: Vec::new(),
            patch: None,
            redacted: Vec::new(),
            body: body(bytes),
        };
        let Scanned::Message(envelope) = scan(&frame, &Limits::default()) else {
            return message;
        };
        if envelope.id != IdAt::Absent {
            let id = envelope.id(&frame);
            message.id = Some(String::from_utf8_lossy(id.json()).into_owned());
        }
        message.session = session(&envelope, bytes);
        let from = item.to.other();
        let key = |caller: Side| (caller, envelope.id(&frame).to_owned());
        match envelope.kind {
            Kind::Request | Kind::Notification => {
                message.method = Some(envelope.method(&frame).into_owned());
                message.kind = Some(MessageKind::Notification);
                if envelope.kind == Kind::Request {
                    message.kind = Some(MessageKind::Request);
                    let request = ImportedRequest {
                        n,
                        method: message.method.clone(),
                        session: message.session.clone(),
                    };
                    self.open.entry(key(from)).or_default().push(request);
                }
            }
            Kind::Result | Kind::Error => {
                let failed = envelope.kind == Kind::Error;
                message.kind = Some(if failed {
                    MessageKind::Error
                } else {
                    MessageKind::Result
                });
                let open = self.open.get_mut(&key(item.to));
                if let Some(request) = open.and_then(Vec::pop) {
                    message.answers = Some(request.n);
                    message.method = request.method;
                    message.session = message.session.or(request.session);
                }
            }
        }
        message
    }
}

fn body(bytes: &[u8]) -> Payload {
    let own = bytes::Bytes::copy_from_slice(bytes);
    if crate::jsonrpc::is_json(bytes, &Limits::default()) && fits_line(bytes) {
        Payload::Json(own)
    } else if std::str::from_utf8(bytes).is_ok() {
        Payload::Text(own)
    } else {
        Payload::Bytes(own)
    }
}

/// The `sessionId` of the params or the result.
fn session(envelope: &Envelope, bytes: &[u8]) -> Option<String> {
    let body = envelope.body.map(|span| span.of(bytes))?;
    let (_, at) = members(body).find(|(name, _)| *name == b"sessionId")?;
    serde_json::from_slice(&body[at]).ok()
}
