//! Encodes events as lines of a recording.
//!
//! It numbers the events, redacts them, pairs requests with answers, and detects whether something
//! went wrong. It does no I/O and reads no clock.

use std::borrow::Cow;
use std::sync::Arc;

use super::pairing::{AnswerAt, MessageInfo, Request, RequestTable};
use crate::redact::{HitKind, Hits, Mode, RedactFlows, Redactor};
use crate::write::{self, FrameInfo, Stamp};
use crate::{EventKind, Payload, patch};
use jsonrpc::{Id, Kind, Limits, Scanned, Side, is_json, scan_text};

/// The longest frame from which a patch is made.
const MAX_PATCHED: usize = 256 << 10;

/// The deviation of the wall clock, in microseconds, from which it is recorded.
const CLOCK_JUMP: u64 = 1_000_000;

/// The name of the note of the conversation about a request that is not forwarded because its id is
/// in use.
const REFUSED: &str = "reused_id";

/// Encodes the lines of one recording.
#[derive(Debug)]
pub struct EventEncoder {
    redactor: Arc<Redactor>,
    lanes: RedactFlows,
    requests: RequestTable,
    limits: Limits,
    /// The number and time of the last event.
    n: u64,
    t: u64,
    /// The wall clock at the beginning of the recording, corrected by its present value.
    began: u64,
    /// Something has gone wrong in the conversation that a recording would explain.
    pub has_alarm: bool,
    /// The reasons and counts of redactions.
    pub hits: Hits,
    /// The encoded lines.
    pub out: Vec<u8>,
}

/// The frame that another one was made from.
#[derive(Clone, Copy, Debug)]
pub struct FrameSource<'a> {
    /// Its event, if that is known.
    pub event: Option<u64>,
    /// Its text.
    pub frame: &'a [u8],
    /// The rules that changed it.
    pub rules: &'a [String],
}

impl EventEncoder {
    /// For a recording that began at `began`, in microseconds since 1970.
    #[must_use]
    pub fn new(redactor: Arc<Redactor>, began: u64) -> Self {
        Self {
            redactor,
            lanes: RedactFlows::default(),
            requests: RequestTable::default(),
            limits: Limits::default(),
            n: 0,
            t: 0,
            began,
            has_alarm: false,
            hits: Hits::default(),
            out: Vec::new(),
        }
    }

    /// The number of the last event.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.n
    }

    /// The time of the last event.
    #[must_use]
    pub const fn time(&self) -> u64 {
        self.t
    }

    /// Adds an event if the wall clock, which is `w` at `t`, has jumped.
    pub fn check_clock(&mut self, t: u64, w: u64) {
        let should = self.began + t;
        if w.abs_diff(should) > CLOCK_JUMP {
            let jump = i64::try_from(i128::from(w) - i128::from(should)).unwrap_or(0);
            self.event(self.t, &EventKind::Clock { jump });
            self.began = w.saturating_sub(t);
        }
    }

    /// Adds one event of the recorder.
    pub fn event(&mut self, t: u64, what: &EventKind) {
        let stamp = self.stamp(t);
        write::event(&mut self.out, stamp, what);
    }

    /// Adds an event, without the secrets in it.
    pub fn own_event(&mut self, t: u64, mut what: EventKind) {
        match &mut what {
            EventKind::Stderr(body) => {
                let (clean, redacted) = self.redactor.payload(body);
                *body = clean;
                if redacted {
                    self.hits.add_one(self.redactor.text_rule());
                }
            }
            EventKind::Note { name, .. } => {
                if name == REFUSED {
                    self.requests.refuse();
                }
                self.has_alarm |= !matches!(
                    name.as_str(),
                    "restored_id"
                        | "complaint"
                        | "translated"
                        | "dialect"
                        | "link_status"
                        | "held_update"
                        | "late_answer"
                        | "heard"
                );
            }
            EventKind::Process { event, detail } => {
                self.has_alarm |= event == "signal" || (event == "exit" && detail != "exit code 0");
            }
            _ => {}
        }
        // The relay's texts may quote secrets.
        let what = what.map_text(|text| match self.redactor.own_text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(clean) => {
                self.hits.add_one(HitKind::Shape);
                clean
            }
        });
        self.event(t, &what);
    }

    /// Adds a frame that was seen at `hop`, with the facts that are known; returns its number.
    pub fn frame(
        &mut self,
        t: u64,
        hop: Side,
        to: Side,
        origin: Option<FrameSource<'_>>,
        info: Option<MessageInfo>,
        text: &[u8],
    ) -> u64 {
        let stamp = self.stamp(t);
        let mut facts = FrameInfo::new(hop, to);
        if let Some(origin) = origin {
            facts.source = origin.event;
            facts.rules = origin.rules;
        }
        match info.or_else(|| self.message_info(text)) {
            Some(info) => self.add_message(stamp, facts, origin, info, text),
            None => self.add_non_message(stamp, facts, text),
        }
        stamp.n
    }

    fn add_message(
        &mut self,
        stamp: Stamp,
        facts: FrameInfo<'_>,
        origin: Option<FrameSource<'_>>,
        info: MessageInfo,
        text: &[u8],
    ) {
        let (mut facts, hop, to) = (facts, facts.edge, facts.to);
        // The id before redaction.
        let id = Id::at(info.id, text);
        let request = match info.kind {
            Kind::Result | Kind::Error => {
                let at = if hop == to {
                    AnswerAt::Sent(facts.source)
                } else {
                    AnswerAt::Received(stamp.n)
                };
                self.requests.answer(hop, to, id, at)
            }
            _ => None,
        };
        self.has_alarm |= info.kind == Kind::Error;
        let method = request.as_ref().map(|request| &*request.method);
        if let Some(request) = &request {
            let session = request.session.as_deref();
            self.lanes.answered(&request.method, session);
        }
        let lane = self.lanes.lane(hop, to);
        let redacted = self
            .redactor
            .json_streamed(lane, text, Some(info.kind), method);
        if let Some(redacted) = &redacted {
            self.hits.add(redacted.hits);
        }
        let (text, info, places) = match &redacted {
            Some(redacted) => match self.message_info(&redacted.text) {
                Some(info) => (&redacted.text[..], info, &redacted.places[..]),
                // This cannot happen; the body is omitted so that no secret is written.
                None => {
                    let payload = Payload::<&[u8]>::Omitted(text.len() as u64);
                    return write::frame(&mut self.out, stamp, &facts, &payload);
                }
            },
            None => (text, info, &[][..]),
        };
        let session = info.session.map(|span| span.of(text));
        facts.kind = Some(info.kind);
        facts.id = match Id::at(info.id, text) {
            Id::Absent => None,
            Id::Null => Some(b"null"),
            Id::Number(id) | Id::String(id) => Some(id),
        };
        facts.method = info.method.map(|span| span.of(text)).or(method);
        facts.session = session.or_else(|| {
            request
                .as_ref()
                .and_then(|request| request.session.as_deref())
        });
        facts.answers = request.as_ref().map(|request| request.n);
        facts.redacted = places;
        if info.kind == Kind::Request {
            let method = facts.method.unwrap_or_default();
            let request = Request::new(stamp.n, facts.source, method, session);
            self.lanes.add_request(method, text);
            self.requests.insert(hop, to.other(), id, request);
        }
        let meta = self.redactor.mode() == Mode::Meta;
        let patch = match origin {
            Some(origin) if !meta => self.patch_from(origin.frame, method, text),
            _ => None,
        };
        facts.patch = patch.as_deref();
        let payload = self.payload(text, true);
        write::frame(&mut self.out, stamp, &facts, &payload);
    }

    /// The facts of a text, if it is a message.
    fn message_info(&self, text: &[u8]) -> Option<MessageInfo> {
        match scan_text(text, &self.limits) {
            Scanned::Message(envelope) => Some(MessageInfo::of(&envelope, text)),
            _ => None,
        }
    }

    /// Adds a frame that is not a message.
    fn add_non_message(&mut self, stamp: Stamp, facts: FrameInfo<'_>, text: &[u8]) {
        let json = is_json(text, &self.limits);
        let walked = if json {
            self.redactor.json(text, None)
        } else {
            None
        };
        let (text, places) = match walked {
            Some(walked) => {
                self.hits.add(walked.hits);
                (walked.text, walked.places)
            }
            None if json => (text.to_vec(), Vec::new()),
            None => match self.redactor.text(text) {
                Some(text) => {
                    self.hits.add_one(self.redactor.text_rule());
                    (text, vec![String::new()])
                }
                None => (text.to_vec(), Vec::new()),
            },
        };
        let facts = FrameInfo {
            redacted: &places,
            ..facts
        };
        let payload = self.payload(&text, json);
        write::frame(&mut self.out, stamp, &facts, &payload);
    }

    /// A body as it is to be written.
    fn payload<'t>(&self, text: &'t [u8], is_json: bool) -> Payload<&'t [u8]> {
        match self.redactor.mode() {
            Mode::Meta => Payload::Omitted(text.len() as u64),
            _ if is_json && write::fits_line(text) => Payload::Json(text),
            _ => Payload::Bytes(text),
        }
    }

    /// The patch from one message to another, as JSON, unless it is longer than the message.
    fn patch_from(&self, from: &[u8], method: Option<&[u8]>, to: &[u8]) -> Option<Vec<u8>> {
        if from.len().max(to.len()) > MAX_PATCHED {
            return None;
        }
        let clean = self.redactor.json(from, method).map(|clean| clean.text);
        let from = serde_json::from_slice(clean.as_deref().unwrap_or(from)).ok()?;
        let patch = patch::between(&from, &serde_json::from_slice(to).ok()?);
        let patch = patch.to_string().into_bytes();
        (patch.len() <= to.len().max(1 << 10)).then_some(patch)
    }

    fn stamp(&mut self, t: u64) -> Stamp {
        self.n += 1;
        self.t = self.t.max(t);
        Stamp {
            n: self.n,
            t: self.t,
            w: self.began + self.t,
        }
    }
}
