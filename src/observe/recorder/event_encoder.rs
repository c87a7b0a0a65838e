//! Encodes events as lines of a recording.
//!
//! It numbers the events, redacts them, pairs requests with answers, and detects whether something
//! went wrong. It does no I/O and reads no clock.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use super::pairing::{AnswerAt, MessageInfo, Request, RequestTable};
use super::queue::{Batch, Entry, Item, Origin, Run};
use jsonrpc::{Id, Kind, Limits, Scanned, Side, is_json, scan_text};
use recording::redact::{HitKind, Hits, Mode, RedactFlows, Redactor};
use recording::write::{self, FrameInfo, Stamp};
use recording::{EventKind, Passed, Payload, patch};

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
    /// The events of the received frames that may still be referenced, and the number of the first
    /// of them among the received frames.
    received: VecDeque<u64>,
    first: u64,
    /// Something went wrong in the conversation.
    has_alarm: bool,
    /// What was redacted since the last call of `take_hits`.
    hits: Hits,
    /// The encoded lines.
    pub out: Vec<u8>,
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
            received: VecDeque::new(),
            first: 0,
            has_alarm: false,
            hits: Hits::default(),
            out: Vec::new(),
        }
    }

    /// The reasons and counts of redactions since the last call.
    pub(super) fn take_hits(&mut self) -> Hits {
        std::mem::take(&mut self.hits)
    }

    /// The number of the last event.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.n
    }

    /// The time of the last event.
    pub(super) const fn time(&self) -> u64 {
        self.t
    }

    /// Whether something has gone wrong that a recording would explain.
    pub(super) const fn has_alarm(&self) -> bool {
        self.has_alarm
    }

    /// Begins a batch that was taken at `t`, when the wall clock was `w`.
    pub(super) fn begin_batch(&mut self, t: u64, w: u64) {
        let should = self.began + t;
        if w.abs_diff(should) > CLOCK_JUMP {
            let jump = i64::try_from(i128::from(w) - i128::from(should)).unwrap_or(0);
            self.event(self.t, &EventKind::Clock { jump });
            self.began = w.saturating_sub(t);
        }
    }

    /// Adds what follows the last entry of a batch that was taken at `t`.
    pub(super) fn finish_batch(&mut self, t: u64, batch: &Batch) {
        for to in [Side::Client, Side::Agent] {
            if let Some(run) = batch.forwarded[to as usize] {
                self.add_forwarded(t, to, run);
            }
        }
        while self.first < batch.oldest && !self.received.is_empty() {
            self.received.pop_front();
            self.first += 1;
        }
    }

    /// Adds one event of the recorder.
    pub fn event(&mut self, t: u64, what: &EventKind) {
        let stamp = self.stamp(t);
        write::event(&mut self.out, stamp, what);
    }

    /// Adds a frame that another program has captured at `edge`, and returns its number.
    pub fn add_captured(&mut self, t: u64, edge: Side, to: Side, text: &[u8]) -> u64 {
        self.add_frame(t, edge, to, None, None, text);
        self.n
    }

    /// Adds an entry of a batch.
    pub(super) fn add_entry(&mut self, batch: &Batch, entry: Entry) {
        let Entry { at, item } = entry;
        match item {
            Item::Received(from, frame, info) => {
                self.add_frame(at, from, from.other(), None, info, batch.frame(&frame));
                self.received.push_back(self.n);
            }
            Item::Sent(to, origin, frame) => {
                self.add_frame(at, to, to, origin.as_deref(), None, batch.frame(&frame));
            }
            Item::Forwarded(to, run) => self.add_forwarded(at, to, run),
            Item::Event(what, cause) => self.add_event(at, *what, cause),
        }
    }

    fn add_forwarded(&mut self, t: u64, to: Side, run: Run) {
        let (Some(first), Some(last)) = (self.event_number(run.first), self.event_number(run.last))
        else {
            return;
        };
        let passed = Passed {
            to,
            first,
            last,
            count: run.count,
        };
        self.event(t, &EventKind::Passed(passed));
    }

    /// Adds an event, without the secrets in it.
    pub(super) fn add_event(&mut self, t: u64, mut what: EventKind, cause: Option<u64>) {
        match &mut what {
            EventKind::Stderr(body) => {
                let (clean, redacted) = self.redactor.payload(body);
                *body = clean;
                if redacted {
                    self.hits.add_one(self.redactor.text_rule());
                }
            }
            EventKind::Note { name, source, .. } => {
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
                );
                *source = cause.and_then(|cause| self.event_number(cause));
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

    /// Adds a frame, with the facts that are known.
    fn add_frame(
        &mut self,
        t: u64,
        hop: Side,
        to: Side,
        origin: Option<&Origin>,
        info: Option<MessageInfo>,
        text: &[u8],
    ) {
        let stamp = self.stamp(t);
        let mut facts = FrameInfo::new(hop, to);
        if let Some(origin) = origin {
            facts.source = self.event_number(origin.n);
            facts.rules = &origin.rules;
        }
        let Some(info) = info.or_else(|| self.message_info(text)) else {
            return self.add_non_message(stamp, facts, text);
        };
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
            Some(origin) if !meta => self.patch_from(origin.frame.as_bytes(), method, text),
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

    /// The event of the received frame with this number.
    fn event_number(&self, received: u64) -> Option<u64> {
        let at = usize::try_from(received.checked_sub(self.first)?).ok()?;
        self.received.get(at).copied()
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
