//! Checks a conversation, event by event.
//!
//! Each message is compared with the schema as its sender wrote it. The relay's translation of a
//! message comes later; violations that it repaired become hints. Where the relay converts between
//! ACP v1 and v2, the order of messages is checked at each edge by itself, with what the relay sent
//! there.

use std::collections::HashMap;

use serde_json::Value;

use super::rules::*;
use super::sessions::{Problem, Sessions};
use crate::leaves::find_leaf;
use acp::{self, Schema, Violation, ViolationKind};
use jsonrpc::{Frame, Kind, Side};
use recording::{
    EventKind, Header, Message, RecordedEvent, View, ViewFilter, find_lone, parse_json,
};

/// The largest integer up to which a double holds all integers: 2^53 - 1.
const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// Checks what both sides sent before translation, or the messages of a view.
#[derive(Debug, Default)]
pub struct Linter {
    filter: ViewFilter,
    schema: acp::Checker,
    sessions: Sessions,
    /// The side that speaks v2 while the other speaks v1, and the order there; `sessions` has that
    /// of the other edge.
    converted: Option<(Side, Sessions)>,
    /// The client's capabilities, as the relay last stated them to the agent.
    offered: Value,
    /// Strings were replaced by their lengths, so that types cannot be checked.
    redacted: bool,
    /// Events are missing, possibly answers.
    gaps: bool,
    /// The number of the current segment.
    segment: Option<u64>,
    /// Another segment follows this one, and has not been read (yet).
    rotated: bool,
    findings: Vec<Finding>,
    /// By event: whether it is an answer, and the indices of the findings that violate the schema.
    violations: HashMap<u64, (bool, Vec<usize>)>,
}

impl Linter {
    /// Checks the messages of a view.
    #[must_use]
    pub fn with_filter(filter: ViewFilter) -> Self {
        Self {
            filter,
            ..Self::default()
        }
    }

    /// Adds a header. What was sent in missing segments is assumed to have been correct.
    pub fn begin(&mut self, header: &Header) {
        self.redacted |= header.redaction.mode == "structure";
        self.rotated = false;
        let before = self.segment.replace(header.segment);
        let follows = match before {
            None => header.first <= 1,
            Some(before) => header.segment == before.saturating_add(1),
        };
        if !follows {
            self.gaps = true;
            self.schema.forget_requests();
            self.sessions.forget_past();
            if let Some((_, sessions)) = &mut self.converted {
                sessions.forget_past();
            }
        }
    }

    /// The schema of a side's messages.
    #[must_use]
    pub const fn spoken(&self, side: Side) -> Schema {
        self.schema.spoken(side)
    }

    /// Records that a line cannot be read: it may have been a request or an answer.
    pub const fn skip_line(&mut self) {
        self.gaps = true;
    }

    /// Adds an event; returns its findings and the earlier findings that it changes.
    pub fn add(&mut self, event: &RecordedEvent) -> Vec<Finding> {
        let before = self.findings.len();
        let mut changed = match &event.kind {
            EventKind::Message(message) if !message.is_received() && !message.rules.is_empty() => {
                self.translated(message)
            }
            // A rule removed the message.
            EventKind::Note { name, source, text } if name == "translated" => {
                let removed = source.and_then(|of| self.violations.remove(&of));
                self.repair(removed.unwrap_or_default().1, text, &[])
            }
            // A message that could not be translated, or was rejected for safety, was not repaired.
            EventKind::Note { text, source, .. }
                if text.starts_with("untranslatable ") || text.starts_with("permission ") =>
            {
                source.and_then(|of| self.violations.remove(&of));
                Vec::new()
            }
            _ => Vec::new(),
        };
        match &event.kind {
            EventKind::Message(message) if self.filter.shows(event.n, message) => {
                self.message(event, message);
            }
            EventKind::Message(message) if self.filter.view == View::Received => {
                self.sent(event, message);
            }
            EventKind::Gap { events, .. } => {
                self.gaps = true;
                self.report(&MISSING_EVENTS, event, None, format!("{events} events"));
            }
            EventKind::End { rotated, .. } => self.rotated = *rotated,
            _ => {}
        }
        changed.extend(self.findings.iter().skip(before).cloned());
        changed
    }

    /// The findings so far.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// All findings, in the order of their events. Open requests are unanswered.
    #[must_use]
    pub fn end(mut self) -> Vec<Finding> {
        self.findings.extend(self.unanswered());
        self.findings.sort_by_key(|finding| finding.n);
        self.findings
    }

    /// The findings that would be added if the conversation ended now: the open requests, in order.
    #[must_use]
    pub fn unanswered(&self) -> Vec<Finding> {
        let mut open = self.sessions.unanswered();
        if let Some((v2, sessions)) = &self.converted {
            // The relay's request for that of the other side counts there.
            open.retain(|(requester, _)| requester != v2);
            let own = sessions.unanswered().into_iter();
            open.extend(own.filter(|(requester, _)| requester == v2));
            open.sort_by_key(|(_, request)| request.n);
        }
        // The next segment is missing and may contain the answers.
        let open = open.into_iter().filter(|_| !self.rotated);
        open.map(|(requester, request)| Finding {
            rule: &UNANSWERED,
            n: request.n,
            t: request.t,
            side: Some(requester.other()),
            kind: Some(Kind::Request),
            method: Some(request.method.clone()),
            what: String::new(),
            violation: None,
            remedies: Vec::new(),
            repaired_from: None,
        })
        .collect()
    }

    fn message(&mut self, event: &RecordedEvent, message: &Message) {
        let (mut request, mut twice) = (None, false);
        if message.kind.is_some_and(Kind::is_answer) {
            match self.order_at(message.edge).take_request(message) {
                Ok(own) => request = Some(own),
                Err(second) => twice = second,
            }
        }
        if twice {
            self.report(&ANSWERED_TWICE, event, Some(message), String::new());
        }
        let mut tree = Value::Null;
        if let Some(bytes) = message.body.bytes() {
            let whole = parse_json(bytes);
            for (rule, what) in text_problems(bytes, whole.as_ref()) {
                self.report(rule, event, Some(message), what);
            }
            self.schema(event, message, &Frame::new(bytes.clone()), twice);
            tree = whole.unwrap_or_default();
        }
        let order = self.order_at(message.edge);
        for (rule, what) in order.check(event, message, &tree, request) {
            self.report(rule, event, Some(message), what);
        }
    }

    /// Handles what the relay sent to a side: that side's version, and the order at its edge if
    /// versions are converted.
    fn sent(&mut self, event: &RecordedEvent, message: &Message) {
        let initialize = message.method.as_deref() == Some("initialize");
        if !initialize && self.converted.is_none() {
            return;
        }
        let tree = message.body.bytes().and_then(|bytes| parse_json(bytes));
        let mut tree = tree.unwrap_or_default();
        match (message.edge, message.kind) {
            _ if !initialize => {}
            (Side::Agent, Some(Kind::Request)) => {
                self.sessions.initialize_again(event, message);
                self.offered = take(tree.pointer_mut("/params/clientCapabilities"));
            }
            (Side::Client, Some(Kind::Result)) => {
                let result = tree.get("result").unwrap_or(&Value::Null);
                let schema = Schema::of_initialize(result);
                self.schema.speaks(Side::Client, schema);
                let v2 = match (schema, self.schema.spoken(Side::Agent)) {
                    (Schema::V1, Schema::V2) => Side::Agent,
                    (Schema::V2, Schema::V1) => Side::Client,
                    _ => return,
                };
                self.converted = Some((v2, Sessions::converted()));
                match v2 {
                    Side::Agent => {
                        self.sessions.agent = take(tree.pointer_mut("/result/agentCapabilities"))
                    }
                    Side::Client => self.sessions.client = self.offered.take(),
                }
            }
            _ => {}
        }
        if self.converted.is_some() {
            let order = self.order_at(message.edge);
            let answers = message.kind.is_some_and(Kind::is_answer);
            let request = answers.then(|| order.take_request(message).ok()).flatten();
            drop(order.check(event, message, &tree, request));
        }
    }

    /// The order of the messages of the view at an edge.
    const fn order_at(&mut self, edge: Side) -> &mut Sessions {
        match &mut self.converted {
            Some((v2, sessions)) if *v2 as usize == edge as usize => sessions,
            _ => &mut self.sessions,
        }
    }

    fn schema(&mut self, event: &RecordedEvent, message: &Message, frame: &Frame, twice: bool) {
        let answers = message.kind.is_some_and(Kind::is_answer);
        let request_method = message.method.as_deref().filter(|_| answers);
        let from = Some(message.to.other());
        let mut verdict = self.schema.check_as(from, frame, request_method);
        if request_method == Some("initialize") && self.converted.is_none() {
            // Only to an agent of v2.
            self.sessions.v2 = self.schema.spoken(Side::Client) == Schema::V2;
        }
        for violation in std::mem::take(&mut verdict.violations) {
            let known = match violation.kind {
                ViolationKind::Unreadable => find_lone(frame.as_bytes()).is_some(),
                ViolationKind::UnmatchedAnswer => twice || self.gaps,
                ViolationKind::NotJson
                | ViolationKind::NotJsonRpc
                | ViolationKind::Batch
                | ViolationKind::ReusedId
                | ViolationKind::UnknownMethod
                | ViolationKind::WrongSide => false,
                _ => self.redacted,
            };
            if known {
                continue;
            }
            let known = self.violations.entry(event.n).or_default();
            known.0 = answers;
            known.1.push(self.findings.len());
            self.findings.push(Finding {
                t: event.t,
                method: message.method.clone(),
                ..Finding::of_violation(event.n, &verdict, violation)
            });
        }
    }

    /// Handles the relay's translation of a message: violations that it no longer has were
    /// repaired.
    fn translated(&mut self, message: &Message) -> Vec<Finding> {
        let answers = message.kind.is_some_and(Kind::is_answer);
        let known = message.source.and_then(|of| self.violations.get(&of));
        let (Some(of), Some(bytes), true) = (
            message.source,
            message.body.bytes(),
            known.is_some_and(|known| known.0 == answers),
        ) else {
            return Vec::new();
        };
        let request_method = message.method.as_deref().filter(|_| answers);
        let mut alone = acp::Checker::new(true);
        alone.speaks(message.to.other(), self.schema.spoken(message.edge));
        let left = alone.check_as(
            Some(message.to.other()),
            &Frame::new(bytes.clone()),
            request_method,
        );
        let (_, known) = self.violations.remove(&of).unwrap_or_default();
        self.repair(known, &message.rules.join(", "), &left.violations)
    }

    /// Turns the violations that are not among those left into hints; returns the changed findings.
    fn repair(&mut self, known: Vec<usize>, rules: &str, left: &[Violation]) -> Vec<Finding> {
        let change = |at: usize| {
            let finding = self.findings.get_mut(at)?;
            if finding.violation.as_ref()?.remains_in(left) {
                return None;
            }
            finding.repaired_from = Some(std::mem::replace(&mut finding.rule, &REPAIRED));
            finding.what = format!("repaired by {rules}: {}", finding.what);
            Some(finding.clone())
        };
        known.into_iter().filter_map(change).collect()
    }

    fn report(
        &mut self,
        rule: &'static LintRule,
        event: &RecordedEvent,
        message: Option<&Message>,
        what: String,
    ) {
        self.findings.push(Finding {
            rule,
            n: event.n,
            t: event.t,
            side: message.map(|message| message.to.other()),
            kind: message.and_then(|message| message.kind),
            method: message.and_then(|message| message.method.clone()),
            what,
            violation: None,
            remedies: Vec::new(),
            repaired_from: None,
        });
    }
}

fn take(value: Option<&mut Value>) -> Value {
    value.map(Value::take).unwrap_or_default()
}

/// The problems of a text, whose tree is `tree`.
fn text_problems(text: &[u8], tree: Option<&Value>) -> Vec<Problem> {
    let mut found = Vec::new();
    if let Some(at) = find_lone(text) {
        let escape = String::from_utf8_lossy(text.get(at..at + 6).unwrap_or_default());
        found.push((&LONE_SURROGATE, format!("{escape} at byte {at}")));
    }
    if let Some(big) = tree.and_then(find_big) {
        found.push((&BIG_NUMBER, big));
    }
    found
}

/// The first number that is too big, and its JSON Pointer.
fn find_big(tree: &Value) -> Option<String> {
    find_leaf(tree, |pointer, leaf| {
        let value = leaf.as_f64()?;
        let is_big = value.abs() > MAX_SAFE && value.fract() == 0.0;
        is_big.then(|| format!("{leaf} at {pointer}"))
    })
}
