//! Writes a recording of messages from a capture.

use std::sync::Arc;

use super::capture::Capture;
use crate::observe::recorder::EventEncoder;
use crate::recording::redact::Redactor;
use crate::recording::write;
use crate::recording::{EventKind, Header, Passed, PeerInfo, VERSION};

/// The lines of a recording, and its number of events.
pub(super) fn recording(capture: &Capture, redactor: Redactor, id: String) -> (Vec<u8>, u64) {
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
    let mut encoder = EventEncoder::new(Arc::new(redactor), capture.began);
    write::header(&mut encoder.out, &header);
    let imported = EventKind::Note {
        name: "imported".to_owned(),
        text: format!("made of {}", capture.format),
        source: None,
    };
    encoder.event(0, &imported);
    // Frames that were forwarded, which is not written yet.
    let mut passed: Option<Passed> = None;
    for item in &capture.items {
        if let Some(run) = passed.take_if(|run| !item.passed || run.to != item.to) {
            encoder.event(0, &EventKind::Passed(run));
        }
        let n = encoder.add_captured(item.t, item.hop, item.to, &item.bytes);
        if item.passed {
            let run = passed.get_or_insert(Passed {
                to: item.to,
                first: n,
                last: n,
                count: 0,
            });
            run.last = n;
            run.count += 1;
        }
    }
    if let Some(run) = passed {
        encoder.event(0, &EventKind::Passed(run));
    }
    let end = EventKind::End {
        rotated: false,
        reason: "imported".to_owned(),
        digest: blake3::hash(&encoder.out).to_hex().to_string(),
    };
    encoder.event(0, &end);
    let events = encoder.last();
    (encoder.out, events)
}
