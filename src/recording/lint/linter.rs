//! Looks at a conversation, event by event.
//!
//! Not here: the parts of what is looked for (each has its file).

use serde_json::Value;

use super::catalogue::*;
use super::requests::Requests;
use super::sessions::Sessions;
use super::spelling;
use crate::canon::{self, Kind};
use crate::recording::{Body, Event, Header, Message, Scene, What, tree};
use crate::wire::Frame;

/// Looks at what both sides said, before anything was translated, or at what a scene shows.
#[derive(Debug)]
pub struct Linter {
    scene: Scene,
    schema: canon::Conversation,
    requests: Requests,
    sessions: Sessions,
    /// Texts were replaced by lengths, so that types cannot be told.
    blurred: bool,
    /// Events are missing, so that answers may be.
    gaps: bool,
    /// The number of the segment that is looked at.
    segment: Option<u64>,
    /// Another segment follows this one, and is not there (yet).
    cut: bool,
    findings: Vec<Finding>,
}

impl Default for Linter {
    fn default() -> Self {
        Self::at(Scene::heard())
    }
}

impl Linter {
    /// Looks at what a scene shows.
    #[must_use]
    pub fn at(scene: Scene) -> Self {
        Self {
            scene,
            schema: canon::Conversation::new(false),
            requests: Requests::default(),
            sessions: Sessions::default(),
            blurred: false,
            gaps: false,
            segment: None,
            cut: false,
            findings: Vec::new(),
        }
    }

    /// Takes a header in. What was said before a beginning that is not here, or in a segment that is
    /// not, is taken to have been in order.
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
            // What was open may have been answered there, and its ids used again.
            self.requests = Requests::default();
            self.schema = canon::Conversation::new(false);
            self.sessions.begin_late();
        }
    }

    /// A line cannot be read: what answers may be for was perhaps in it.
    pub const fn miss(&mut self) {
        self.gaps = true;
    }

    /// Takes an event in; what was found about it now.
    pub fn see(&mut self, event: &Event) -> &[Finding] {
        let before = self.findings.len();
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
        &self.findings[before..]
    }

    /// All findings, in the order of their events. What is still open now will stay so.
    #[must_use]
    pub fn end(mut self) -> Vec<Finding> {
        self.findings.extend(self.rest());
        self.findings.sort_by_key(|finding| finding.n);
        self.findings
    }

    /// What there would be to add if the conversation were over now: the requests without an
    /// answer, in their order.
    #[must_use]
    pub fn rest(&self) -> Vec<Finding> {
        let open = self.requests.unanswered().into_iter();
        // Those of a segment whose next one is missing may be answered there.
        let open = open.filter(|_| !self.cut);
        open.map(|asked| Finding {
            rule: &UNANSWERED,
            n: asked.n,
            t: asked.t,
            side: Some(asked.asker.other()),
            what: String::new(),
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
        let verdict = self.schema.hear(Some(message.to.other()), frame);
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
                (rule, canon::Weight::Refused) => rule,
                (rule, _) if rule == &UNKNOWN_MEMBER => rule,
                (_, canon::Weight::Ignored) => &FORGIVEN,
            };
            let found = deviation.found.unwrap_or_else(|| "nothing".to_owned());
            let what = match deviation.pointer.as_str() {
                "" => found,
                pointer => format!("{pointer}: {found}; wanted: {}", deviation.wants),
            };
            self.find(rule, event, Some(message), what);
        }
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
        });
    }
}
