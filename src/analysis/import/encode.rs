//! Makes a recording of a capture.

use std::sync::Arc;
use std::time::SystemTime;

use super::capture::Capture;
use super::formats::read;
use recording::encode::EventEncoder;
use recording::redact::{Mode, Redactor};
use recording::{EventKind, Header, Passed, PeerInfo, VERSION, unix_micros, write};

/// A recording that was made of a capture.
#[derive(Debug)]
pub struct ImportedRecording {
    /// The capture.
    pub capture: Capture,
    /// The lines of the recording.
    pub lines: Vec<u8>,
    /// The number of its events.
    pub events: u64,
}

/// Makes a recording with this id of the text of a capture, which was `changed` last at a time. Bytes
/// are reported to `advance`, those of the text twice in all.
///
/// # Errors
/// The text has none of the formats.
pub fn import(
    text: &[u8],
    changed: Option<SystemTime>,
    redactor: Redactor,
    id: String,
    advance: fn(u64),
) -> Result<ImportedRecording, String> {
    let mut capture = read(text, advance)?;
    if capture.began == 0 {
        // The file has no time; its modification time is an upper bound.
        capture.began = changed.map_or(0, unix_micros);
    }
    // Names come from bodies, so they are not kept in modes without bodies.
    if matches!(redactor.mode(), Mode::Full | Mode::Default) {
        capture.name_peers();
    }
    let (lines, events) = encode(&capture, redactor, id, advance);
    Ok(ImportedRecording {
        capture,
        lines,
        events,
    })
}

/// The lines of a recording of a capture, and its number of events. The bytes of each message are
/// reported to `advance`.
pub fn encode(
    capture: &Capture,
    redactor: Redactor,
    id: String,
    advance: fn(u64),
) -> (Vec<u8>, u64) {
    let peer = |name: &Option<String>, unknown: &str| PeerInfo {
        name: redactor
            .own_text(name.as_deref().unwrap_or(unknown))
            .into_owned(),
        dialect: "canonical".to_owned(),
    };
    let header = Header {
        version: VERSION,
        id,
        first: 1,
        began: capture.began,
        by: concat!("acp-relay ", env!("CARGO_PKG_VERSION"), " import").to_owned(),
        client: peer(&capture.client, "a client"),
        agent: peer(&capture.agent, "an agent"),
        policy: "lossless".to_owned(),
        redaction: redactor.describe(),
        ..Header::default()
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
        advance(item.bytes.len() as u64);
        let n = encoder.frame(item.t, item.hop, item.to, None, None, &item.bytes);
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
