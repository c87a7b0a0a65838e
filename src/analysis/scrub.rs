//! Copies a recording, redacted by the current rules. Values that were redacted before stay redacted.

use std::io::{self, Write};

use jsonrpc::{Choice as _, Kind, Limits, is_json};
use recording::redact::{Mode, RedactFlows, Redactor};
use recording::write;
use recording::{EventKind, Message, Parsed, Payload, RecordedEvent, Recording, Redaction};

/// The content of a copy.
#[derive(Debug, Default)]
pub struct Scrubbed {
    /// How many events it has.
    pub events: u64,
    /// Messages with redacted parts, now or before.
    pub redacted: u64,
    /// The redaction in its header.
    pub redaction: Redaction,
}

/// Writes a copy of a recording, redacted; all segments become one.
///
/// # Errors
/// The recording cannot be read or is damaged, or the copy cannot be written.
pub fn scrub(
    recording: &Recording,
    redactor: &Redactor,
    mut to: impl Write,
) -> io::Result<Scrubbed> {
    let mut copied = Scrubbed::default();
    let mut digest = blake3::Hasher::new();
    let mut first = true;
    let mut flows = RedactFlows::default();
    for entry in recording.entries() {
        let (_, entry) = entry?;
        let mut line = Vec::new();
        match entry.parsed {
            Parsed::Header(mut header) if first => {
                header.redaction = merged_redaction(&header.redaction, redactor);
                copied.redaction = header.redaction.clone();
                for peer in [&mut header.client, &mut header.agent] {
                    peer.name = redactor.own_text(&peer.name).into_owned();
                }
                write::header(&mut line, &header);
            }
            Parsed::Header(_) => {}
            Parsed::Event(event) => {
                let stamp = event.stamp();
                let ended = digest.finalize().to_hex().to_string();
                let what = redact_event(*event, redactor, &mut flows, ended);
                write::event(&mut line, stamp, &what);
                copied.events += 1;
                let left_out = |message: &Message| !message.redacted.is_empty();
                let is_redacted = matches!(&what, EventKind::Message(message) if left_out(message));
                copied.redacted += u64::from(is_redacted);
            }
            Parsed::Invalid(fault) => {
                let what = format!(
                    "byte {}: {fault}; a damaged line cannot be scrubbed",
                    entry.at
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
        first = false;
        digest.update(&line);
        to.write_all(&line)?;
    }
    to.flush()?;
    Ok(copied)
}

/// The redaction of a copy: includes what was redacted before.
fn merged_redaction(before: &Redaction, redactor: &Redactor) -> Redaction {
    let now = redactor.describe();
    match (redactor.mode(), Mode::from_name(&before.mode).ok()) {
        // Nothing more was redacted.
        (Mode::Full, _) if !before.mode.is_empty() => before.clone(),
        (mode, Some(was)) if mode >= was => now,
        (_, None) if before.mode.is_empty() => now,
        _ => Redaction {
            mode: before.mode.clone(),
            ..now
        },
    }
}

fn redact_event(
    event: RecordedEvent,
    redactor: &Redactor,
    flows: &mut RedactFlows,
    ended: String,
) -> EventKind {
    match event
        .kind
        .map_text(|text| redactor.own_text(&text).into_owned())
    {
        EventKind::Message(message) => {
            EventKind::Message(Box::new(redact_message(*message, redactor, flows)))
        }
        EventKind::Stderr(body) => EventKind::Stderr(redactor.payload(&body).0),
        // The copy has one segment.
        EventKind::End {
            rotated: true,
            reason,
            ..
        } => EventKind::Note {
            name: "rotated".to_owned(),
            text: reason,
            source: None,
        },
        EventKind::End {
            rotated, reason, ..
        } => EventKind::End {
            rotated,
            reason,
            digest: ended,
        },
        // Its content is unknown.
        EventKind::Other { kind, .. } => EventKind::Note {
            name: "left_out".to_owned(),
            text: format!("an event of a kind that is not known here: {kind}"),
            source: None,
        },
        other => other,
    }
}

fn redact_message(mut message: Message, redactor: &Redactor, flows: &mut RedactFlows) -> Message {
    let method = message.method.clone().unwrap_or_default();
    if message.kind.is_some_and(Kind::is_answer) {
        let session = message.session.as_deref().map(str::as_bytes);
        flows.answered(method.as_bytes(), session);
    }
    if message.kind == Some(Kind::Request)
        && let Some(text) = message.body.bytes()
    {
        flows.add_request(method.as_bytes(), text);
    }
    let flow = flows.lane(message.edge, message.to);
    let (body, places) = match &message.body {
        Payload::Json(bytes) | Payload::Text(bytes) if is_json(bytes, &Limits::default()) => {
            match redactor.json_streamed(flow, bytes, message.kind, Some(method.as_bytes())) {
                Some(clean) => (Payload::of(clean.text.into()), clean.places),
                None => (message.body.clone(), Vec::new()),
            }
        }
        body => match redactor.payload(body) {
            (clean, true) => (clean, vec![String::new()]),
            (same, false) => (same, Vec::new()),
        },
    };
    if !places.is_empty() {
        // A patch repeats parts of the body.
        message.patch = None;
    }
    if redactor.mode() == Mode::Structure {
        message.session = None;
    }
    for text in [&mut message.id, &mut message.session]
        .into_iter()
        .flatten()
    {
        *text = redactor.own_text(text).into_owned();
    }
    if let Some(method) = &mut message.method {
        *method = redactor.method_name(method).into_owned();
    }
    for place in places {
        if !message.redacted.contains(&place) {
            message.redacted.push(place);
        }
    }
    message.body = match redactor.mode() {
        Mode::Meta => Payload::Omitted(body.len()),
        _ => body,
    };
    message
}
