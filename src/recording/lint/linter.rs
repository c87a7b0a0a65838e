//! Checks a conversation, event by event.
//!
//! Each message is compared with the schema as its sender wrote it. The relay's translation of a
//! message comes later; violations that it repaired become hints.

use std::collections::HashMap;

use serde_json::Value;

use super::catalogue::*;
use super::requests::Requests;
use super::sessions::Sessions;
use super::spelling;
use crate::acp::{self, Deviation, Kind};
use crate::jsonrpc::Frame;
use crate::recording::{Body, Event, Header, Message, MessageKind, Scene, What, tree};

/// Checks what both sides sent before translation, or the messages of a view.
#[derive(Debug)]
pub struct Linter {
    scene: Scene,
    schema: acp::Conversation,
    requests: Requests,
    sessions: Sessions,
    /// Strings were replaced by their lengths, so that types cannot be checked.
    blurred: bool,
    /// Events are missing, possibly answers.
    gaps: bool,
    /// The number of the current segment.
    segment: Option<u64>,
    /// Another segment follows this one, and has not been read (yet).
    cut: bool,
    findings: Vec<Finding>,
    /// By event: whether it is an answer, and its violations of the schema, each with the index of
    /// its
    /// finding.
    deviations: HashMap<u64, (bool, Vec<(usize, Deviation)>)>,
}

impl Default for Linter {
    fn default() -> Self {
        Self::at(Scene::heard())
    }
}

impl Linter {
    /// Checks the messages of a view.
    #[must_use]
    pub fn at(scene: Scene) -> Self {
        Self {
            scene,
            schema: acp::Conversation::new(false),
            requests: Requests::default(),
            sessions: Sessions::default(),
            blurred: false,
            gaps: false,
            segment: None,
            cut: false,
            findings: Vec::new(),
            deviations: HashMap::new(),
        }
    }

    /// Adds a header. What was sent in missing segments is assumed to have been correct.
    pub fn begin(&mut self, header: &Header) {
        self.blurred |= header.redaction.mode == "structure";
        self.cut = false;
        let before = self.segment.replace(header.segment);
        let follows = match before {
            None => header.first <= 1,
            Some(before) => header.segment == before.saturating_add(1),
        };
        if !follows {
            self.gaps = true;
            // Open requests may have been answered there, and their ids reused.
            self.requests = Requests::default();
            self.schema = acp::Conversation::new(false);
            self.sessions.begin_late();
        }
    }

    /// Records that a line cannot be read: it may have been a request or an answer.
    pub const fn miss(&mut self) {
        self.gaps = true;
    }

    /// Adds an event; returns its findings and the earlier findings that it changes.
    pub fn see(&mut self, event: &Event) -> Vec<Finding> {
        let before = self.findings.len();
        let mut changed = match &event.what {
            What::Message(message) if !message.is_heard() && !message.rules.is_empty() => {
                self.translated(message)
            }
            // A rule removed the message.
            What::Note { name, text, of } if name == "translated" => {
                let removed = of.and_then(|of| self.deviations.remove(&of));
                self.repair(removed.unwrap_or_default().1, text, &[])
            }
            // A message that could not be translated, or was rejected for safety, was not repaired.
            What::Note { text, of, .. }
                if text.starts_with("untranslatable ") || text.starts_with("permission ") =>
            {
                of.and_then(|of| self.deviations.remove(&of));
                Vec::new()
            }
            _ => Vec::new(),
        };
        match &event.what {
            What::Message(message) if self.scene.shows(event.n, message) => {
                self.message(event, message);
            }
            What::Gap { events, .. } => {
                self.gaps = true;
                self.find(&MISSING_EVENTS, event, None, format!("{events} events"));
            }
            What::End { rotated, .. } => self.cut = *rotated,
            _ => {}
        }
        changed.extend_from_slice(&self.findings[before..]);
        changed
    }

    /// All findings, in the order of their events. Open requests are unanswered.
    #[must_use]
    pub fn end(mut self) -> Vec<Finding> {
        self.findings.extend(self.rest());
        self.findings.sort_by_key(|finding| finding.n);
        self.findings
    }

    /// The findings that would be added if the conversation ended now: the open requests, in order.
    #[must_use]
    pub fn rest(&self) -> Vec<Finding> {
        let open = self.requests.unanswered().into_iter();
        // The next segment is missing and may contain the answers.
        let open = open.filter(|_| !self.cut);
        open.map(|asked| Finding {
            rule: &UNANSWERED,
            n: asked.n,
            t: asked.t,
            side: Some(asked.asker.other()),
            what: String::new(),
            was: None,
            method: Some(asked.method.clone()),
        })
        .collect()
    }

    fn message(&mut self, event: &Event, message: &Message) {
        let twice = self.requests.see(event, message);
        if twice {
            self.find(&ANSWERED_TWICE, event, Some(message), String::new());
        }
        if matches!(message.body, Body::Absent(_)) {
            return;
        }
        let bytes = message.body.bytes().cloned().unwrap_or_default();
        let whole = tree(&bytes);
        for (rule, what) in spelling::check(&bytes, whole.as_ref()) {
            self.find(rule, event, Some(message), what);
        }
        self.schema(event, message, &Frame::new(bytes), twice);
        for (rule, what) in self.sessions.see(message, &whole.unwrap_or(Value::Null)) {
            self.find(rule, event, Some(message), what);
        }
    }

    fn schema(&mut self, event: &Event, message: &Message, frame: &Frame, twice: bool) {
        let answers = message.kind.is_some_and(MessageKind::is_answer);
        let asked = message.method.as_deref().filter(|_| answers);
        let from = Some(message.to.other());
        let verdict = self.schema.hear_as(from, frame, asked);
        for deviation in verdict.deviations {
            let known = match deviation.kind {
                Kind::Unreadable => crate::recording::lone(frame.as_bytes()).is_some(),
                Kind::UnmatchedAnswer => twice || self.gaps,
                Kind::NotJson | Kind::NotJsonRpc | Kind::Batch | Kind::ReusedId => false,
                Kind::UnknownMethod | Kind::WrongSide => false,
                _ => self.blurred,
            };
            if known {
                continue;
            }
            let rule = match (of_deviation(deviation.kind), deviation.weight) {
                (rule, acp::Weight::Refused) => rule,
                (rule, _) if rule == &UNKNOWN_MEMBER => rule,
                (_, acp::Weight::Ignored) => &FORGIVEN,
            };
            let found = deviation.found.as_deref().unwrap_or("nothing");
            let what = match deviation.pointer.as_str() {
                "" => found.to_owned(),
                pointer => format!("{pointer}: {found}; wanted: {}", deviation.wants),
            };
            let known = self.deviations.entry(event.n).or_default();
            known.0 = answers;
            known.1.push((self.findings.len(), deviation));
            self.find(rule, event, Some(message), what);
        }
    }

    /// Handles the relay's translation of a message: violations that it no longer has were
    /// repaired.
    fn translated(&mut self, message: &Message) -> Vec<Finding> {
        let answers = message.kind.is_some_and(MessageKind::is_answer);
        let known = message.of.and_then(|of| self.deviations.get(&of));
        let (Some(of), Some(bytes), true) = (
            message.of,
            message.body.bytes(),
            known.is_some_and(|known| known.0 == answers),
        ) else {
            return Vec::new();
        };
        let asked = message.method.as_deref().filter(|_| answers);
        let mut alone = acp::Conversation::new(true);
        let left = alone.hear_as(Some(message.to.other()), &Frame::new(bytes.clone()), asked);
        let (_, known) = self.deviations.remove(&of).unwrap_or_default();
        self.repair(known, &message.rules.join(", "), &left.deviations)
    }

    /// Turns the violations that are not among those left into hints; returns the changed findings.
    fn repair(
        &mut self,
        known: Vec<(usize, Deviation)>,
        rules: &str,
        left: &[Deviation],
    ) -> Vec<Finding> {
        let repaired = known.into_iter().filter(|(_, old)| !old.stays_in(left));
        let change = |(at, _): (usize, _)| {
            let finding = &mut self.findings[at];
            finding.was = Some(std::mem::replace(&mut finding.rule, &REPAIRED));
            finding.what = format!("repaired by {rules}: {}", finding.what);
            finding.clone()
        };
        repaired.map(change).collect()
    }

    fn find(
        &mut self,
        rule: &'static Rule,
        event: &Event,
        message: Option<&Message>,
        what: String,
    ) {
        self.findings.push(Finding {
            rule,
            n: event.n,
            t: event.t,
            side: message.map(|message| message.to.other()),
            method: message.and_then(|message| message.method.clone()),
            what,
            was: None,
        });
    }
}
