//! Encodes events as lines of a recording.
//!
//! It numbers the events, redacts them, pairs requests with answers, and detects whether something
//! went wrong. It does no I/O and reads no clock.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use super::facts::{Asked, Ledger, Met, Told};
use super::queue::{Batch, Entry, Origin, Run, Seen};
use crate::jsonrpc::{Id, Limits, Shape, Side, is_json, scan_text};
use crate::recording::redact::{Flow, Hits, Mode, Redactor, Rule};
use crate::recording::write::{self, Facts, Kept, Stamp};
use crate::recording::{Body, Lines, MessageKind, Passed, What, patch};

/// The longest frame from which a patch is made.
const PATCHED: usize = 256 << 10;

/// The deviation of the wall clock, in microseconds, from which it is recorded.
const JUMP: u64 = 1_000_000;

/// The name of the note of the conversation about a request that is not forwarded because its id is
/// in use.
const REFUSED: &str = "reused_id";

/// Encodes the lines of one recording.
#[derive(Debug)]
pub(super) struct Scribe {
    redactor: Arc<Redactor>,
    /// By edge; first the frames received there, then those made for the side.
    lanes: [[Lane; 2]; 2],
    ledger: Ledger,
    limits: Limits,
    /// The number and time of the last event.
    n: u64,
    t: u64,
    /// The wall clock at the beginning of the recording, corrected by its present value.
    began: u64,
    /// The events of the received frames that may still be referenced, and the number of the first
    /// of them among the received frames.
    heard: VecDeque<u64>,
    first: u64,
    /// Something went wrong in the conversation.
    alarmed: bool,
    /// What was redacted since the last call of `take_hits`.
    hits: Hits,
    /// The encoded lines.
    pub(super) out: Vec<u8>,
}

/// What is remembered of the frames of one way at one edge, to save work with the next one.
#[derive(Debug, Default)]
struct Lane {
    flow: Flow,
    lines: Lines,
}

impl Scribe {
    pub(super) fn new(redactor: Arc<Redactor>, began: u64) -> Self {
        Self {
            redactor,
            lanes: Default::default(),
            ledger: Ledger::new(),
            limits: Limits::default(),
            n: 0,
            t: 0,
            began,
            heard: VecDeque::new(),
            first: 0,
            alarmed: false,
            hits: Hits::default(),
            out: Vec::new(),
        }
    }

    /// The reasons and counts of redactions since the last call.
    pub(super) fn take_hits(&mut self) -> Hits {
        std::mem::take(&mut self.hits)
    }

    /// The number of the last event.
    pub(super) const fn last(&self) -> u64 {
        self.n
    }

    /// The time of the last event.
    pub(super) const fn time(&self) -> u64 {
        self.t
    }

    /// Whether something has gone wrong that a recording would explain.
    pub(super) const fn is_alarmed(&self) -> bool {
        self.alarmed
    }

    /// Begins a batch that was taken at `t`, when the wall clock was `w`.
    pub(super) fn begin(&mut self, t: u64, w: u64) {
        let should = self.began + t;
        if w.abs_diff(should) > JUMP {
            let jump = i64::try_from(i128::from(w) - i128::from(should)).unwrap_or(0);
            self.event(self.t, &What::Clock { jump });
            self.began = w.saturating_sub(t);
        }
    }

    /// Adds what follows the last entry of a batch that was taken at `t`.
    pub(super) fn finish(&mut self, t: u64, batch: &Batch) {
        for to in [Side::Client, Side::Agent] {
            if let Some(run) = batch.passed[to as usize] {
                self.pass(t, to, run);
            }
        }
        while self.first < batch.oldest && !self.heard.is_empty() {
            self.heard.pop_front();
            self.first += 1;
        }
    }

    /// Adds one event of the recorder.
    pub(super) fn event(&mut self, t: u64, what: &What) {
        let stamp = self.stamp(t);
        write::event(&mut self.out, stamp, what);
    }

    /// Adds an entry of a batch.
    pub(super) fn entry(&mut self, batch: &Batch, entry: Entry) {
        let Entry { at, seen } = entry;
        match seen {
            Seen::Heard(from, kept, told) => {
                self.frame(at, from, from.other(), None, told, batch.frame(&kept));
                self.heard.push_back(self.n);
            }
            Seen::Said(to, origin, kept) => {
                self.frame(at, to, to, origin.as_deref(), None, batch.frame(&kept));
            }
            Seen::Passed(to, run) => self.pass(at, to, run),
            Seen::Event(what, cause) => self.happened(at, *what, cause),
        }
    }

    fn pass(&mut self, t: u64, to: Side, run: Run) {
        let (Some(first), Some(last)) = (self.number(run.first), self.number(run.last)) else {
            return;
        };
        let passed = Passed {
            to,
            first,
            last,
            count: run.count,
        };
        self.event(t, &What::Passed(passed));
    }

    /// Adds an event, without the secrets in it.
    pub(super) fn happened(&mut self, t: u64, what: What, cause: Option<u64>) {
        let what = match what {
            What::Stderr(body) => What::Stderr(self.stderr(&body)),
            What::Note { name, text, .. } => {
                if name == REFUSED {
                    self.ledger.refuse();
                }
                self.alarmed |=
                    !["restored_id", "complaint", "translated", "dialect"].contains(&name.as_str());
                What::Note {
                    name,
                    text: self.clean(text),
                    of: cause.and_then(|cause| self.number(cause)),
                }
            }
            What::Process { event, what } => {
                self.alarmed |= event == "signal" || (event == "exit" && what != "exit code 0");
                let what = self.clean(what);
                What::Process { event, what }
            }
            What::Link { side, event, what } => {
                let what = self.clean(what);
                What::Link { side, event, what }
            }
            What::Mark(text) => What::Mark(self.clean(text)),
            other => other,
        };
        self.event(t, &what);
    }

    /// Redacts a text of the relay, which may quote secrets.
    fn clean(&mut self, text: String) -> String {
        let clean = match self.redactor.remark(&text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => Some(clean),
        };
        clean.map_or(text, |clean| {
            self.hits.hit(Rule::Shape);
            clean
        })
    }

    fn stderr(&mut self, body: &Body) -> Body {
        let Some(bytes) = body.bytes() else {
            return body.clone();
        };
        match (self.redactor.mode(), self.redactor.text(bytes)) {
            (Mode::Meta, _) => Body::Absent(bytes.len() as u64),
            (_, Some(text)) => {
                self.hits.hit(self.redactor.rule_of_text());
                match String::from_utf8(text) {
                    Ok(text) => Body::Text(text.into()),
                    Err(error) => Body::Bytes(error.into_bytes().into()),
                }
            }
            (_, None) => body.clone(),
        }
    }

    /// Adds a frame, with the facts that are known.
    fn frame(
        &mut self,
        t: u64,
        hop: Side,
        to: Side,
        origin: Option<&Origin>,
        told: Option<Told>,
        text: &[u8],
    ) {
        let stamp = self.stamp(t);
        let mut facts = Facts::new(hop, to);
        if let Some(origin) = origin {
            facts.of = self.number(origin.n);
            facts.rules = &origin.rules;
        }
        let Some(told) = told.or_else(|| self.read(text)) else {
            return self.odd(stamp, facts, text);
        };
        // The id before redaction.
        let id = told.id.of(text);
        let asked = match told.kind {
            MessageKind::Result | MessageKind::Error => {
                let met = if hop == to {
                    Met::Said(facts.of)
                } else {
                    Met::Heard(stamp.n)
                };
                self.ledger.answer(hop, to, id, met)
            }
            _ => None,
        };
        self.alarmed |= told.kind == MessageKind::Error;
        let method = asked.as_ref().map(|asked| &*asked.method);
        if let Some(asked) = &asked {
            let session = asked.session.as_deref();
            for lane in self.lanes.iter_mut().flatten() {
                lane.flow.streams.answer(&asked.method, session);
            }
        }
        let lane = &mut self.lanes[hop as usize][usize::from(hop == to)];
        let redacted = self
            .redactor
            .json_in(&mut lane.flow, text, Some(told.kind), method);
        if let Some(redacted) = &redacted {
            self.hits.add(redacted.hits);
        }
        let (text, told, places) = match &redacted {
            Some(redacted) => match self.read(&redacted.text) {
                Some(told) => (&redacted.text[..], told, &redacted.places[..]),
                // This cannot happen; the body is omitted so that no secret is written.
                None => {
                    let kept = Kept::Not(text.len() as u64);
                    return write::frame(&mut self.out, stamp, &facts, kept);
                }
            },
            None => (text, told, &[][..]),
        };
        let session = told.session.map(|span| span.of(text));
        facts.kind = Some(told.kind);
        facts.id = match told.id.of(text) {
            Id::Absent => None,
            Id::Null => Some(b"null"),
            Id::Number(id) | Id::String(id) => Some(id),
        };
        facts.method = told.method.map(|span| span.of(text)).or(method);
        facts.session =
            session.or_else(|| asked.as_ref().and_then(|asked| asked.session.as_deref()));
        facts.answers = asked.as_ref().map(|asked| asked.n);
        facts.redacted = places;
        if told.kind == MessageKind::Request {
            let method = facts.method.unwrap_or_default();
            let asked = Asked::new(stamp.n, facts.of, method, session);
            for lane in self.lanes.iter_mut().flatten() {
                lane.flow.forms.ask(method, text);
            }
            self.ledger.ask(hop, to.other(), id, asked);
        }
        let meta = self.redactor.mode() == Mode::Meta;
        let patch = match origin {
            Some(origin) if !meta => self.difference(origin.frame.as_bytes(), method, text),
            _ => None,
        };
        facts.patch = patch.as_deref();
        let kept = match self.redactor.mode() {
            Mode::Meta => Kept::Not(text.len() as u64),
            _ if write::fits_line(text) => Kept::Line(text),
            _ => Kept::Any(text),
        };
        let lane = &mut self.lanes[hop as usize][usize::from(hop == to)];
        lane.lines.frame(&mut self.out, stamp, &facts, kept);
    }

    /// The facts of a text, if it is a message.
    fn read(&self, text: &[u8]) -> Option<Told> {
        match scan_text(text, &self.limits) {
            Shape::One(envelope) => Some(self.ledger.read(&envelope, text)),
            _ => None,
        }
    }

    /// Adds a frame that is not a message.
    fn odd(&mut self, stamp: Stamp, facts: Facts<'_>, text: &[u8]) {
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
                    self.hits.hit(self.redactor.rule_of_text());
                    (text, vec![String::new()])
                }
                None => (text.to_vec(), Vec::new()),
            },
        };
        let facts = Facts {
            redacted: &places,
            ..facts
        };
        let kept = match self.redactor.mode() {
            Mode::Meta => Kept::Not(text.len() as u64),
            _ if json && write::fits_line(&text) => Kept::Line(&text),
            _ => Kept::Any(&text),
        };
        write::frame(&mut self.out, stamp, &facts, kept);
    }

    /// The patch from one message to another, as JSON, unless it is longer than the message.
    fn difference(&self, from: &[u8], method: Option<&[u8]>, to: &[u8]) -> Option<Vec<u8>> {
        if from.len().max(to.len()) > PATCHED {
            return None;
        }
        let clean = self.redactor.json(from, method).map(|clean| clean.text);
        let from = serde_json::from_slice(clean.as_deref().unwrap_or(from)).ok()?;
        let patch = patch::between(&from, &serde_json::from_slice(to).ok()?);
        let patch = patch.to_string().into_bytes();
        (patch.len() <= to.len().max(1 << 10)).then_some(patch)
    }

    /// The event of the received frame with this number.
    fn number(&self, heard: u64) -> Option<u64> {
        let at = usize::try_from(heard.checked_sub(self.first)?).ok()?;
        self.heard.get(at).copied()
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
