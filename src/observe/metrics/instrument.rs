//! The tap that keeps the figures of one conversation.
//!
//! Not here: the figures themselves (see `figures`, `ledger`).

use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;

use super::agent::How;
use super::figures::{Figures, bucket};
use super::ledger::Ledger;
use super::rules::Known;
use super::spending::Spending;
use super::words::{self, Closing, Decision, Outcome, Wrong};
use crate::conversation::{
    Content, MessageSummary, Method, Note, PermissionOutcome, SessionHash, StopReason,
};
use crate::jsonrpc::{Frame, FrameError, Kind, Side};
use crate::observe::{Event, Observer, Stat};

/// Keeps the figures of one conversation; dropped, it closes the account.
#[derive(Debug)]
pub struct Instrument {
    ledger: Arc<Ledger>,
    figures: Arc<Figures>,
    number: u64,
    known: Known,
    turns: SmallVec<[Turn; 2]>,
    spending: Spending,
    /// Rules were at work since the last time the pace was taken.
    translated: bool,
    /// The agent has answered to initialize.
    ready: bool,
    /// The agent was sent SIGKILL.
    killed: bool,
    /// When anything was heard last.
    last: Instant,
    closing: Closing,
}

/// A turn that goes on.
#[derive(Clone, Copy, Debug)]
struct Turn {
    session: SessionHash,
    /// When it was asked for, or its last update came.
    since: Instant,
    /// An update has come.
    begun: bool,
}

impl Instrument {
    pub(super) fn new(ledger: Arc<Ledger>, figures: Arc<Figures>, number: u64) -> Self {
        Self {
            last: figures.since,
            ledger,
            figures,
            number,
            known: Known::default(),
            turns: SmallVec::new(),
            spending: Spending::default(),
            translated: false,
            ready: false,
            killed: false,
            closing: Closing::Stopped,
        }
    }

    fn passed(&mut self, gist: &MessageSummary) {
        let own = &self.figures;
        let (from, kind) = (gist.from as usize, words::kind(gist.kind));
        let method = gist.topic.method;
        let passed = &own.passed;
        passed.messages.at([from, kind, method as usize]).add(1);
        passed.sizes.at([from, kind, bucket(gist.bytes)]).add(1);
        passed.bytes.at([from, kind]).add(gist.bytes as u64);
        self.last = gist.at;
        match gist.kind {
            Kind::Notification => {
                if method == Method::SessionUpdate && gist.from == Side::Agent {
                    self.updated(gist);
                }
            }
            Kind::Request => {
                own.in_flight.at([from, method as usize]).add(1);
                if method == Method::SessionPrompt && gist.from == Side::Client {
                    own.turns.add(1);
                    self.turns.push(Turn {
                        session: gist.topic.session,
                        since: gist.at,
                        begun: false,
                    });
                }
            }
            Kind::Result | Kind::Error => self.answered(gist),
        }
        self.said(gist);
    }

    /// An update of a turn, perhaps.
    fn updated(&mut self, gist: &MessageSummary) {
        for turn in &mut self.turns {
            if turn.session != gist.topic.session {
                continue;
            }
            let waited = gist.at.saturating_duration_since(turn.since);
            match turn.begun {
                false => self.figures.agent.first_update.observe(waited),
                true => self.figures.gaps.observe(waited),
            }
            turn.begun = true;
            turn.since = gist.at;
        }
    }

    fn answered(&mut self, gist: &MessageSummary) {
        let asker = gist.from.other();
        let method = gist.topic.method;
        let (outcome, code) = match gist.content {
            Content::Failed(-32800) => (Outcome::Cancelled, words::code(-32800)),
            Content::Failed(code) => (Outcome::Error, words::code(code)),
            Content::TurnEnded(StopReason::Cancelled, _)
            | Content::Decided(PermissionOutcome::Cancelled) => {
                (Outcome::Cancelled, words::code(0))
            }
            _ => (Outcome::Ok, words::code(0)),
        };
        self.ledger
            .answered(asker, method, outcome, code, gist.waited);
        self.settle(asker, method, gist.topic.session);
        let agent = &self.figures.agent;
        let done = gist.kind == Kind::Result;
        match method {
            Method::SessionPrompt => {
                let (reason, tokens) = match gist.content {
                    Content::TurnEnded(reason, tokens) => (reason, tokens),
                    _ => (StopReason::Other, None),
                };
                if let Some(tokens) = tokens {
                    agent.spent(&self.spending.report(gist.topic.session, tokens));
                }
                agent.turned(reason, gist.waited.unwrap_or_default());
            }
            Method::SessionRequestPermission => {
                let verdict = match gist.content {
                    Content::Decided(verdict) => verdict,
                    _ => PermissionOutcome::Other,
                };
                let waited = gist.waited.unwrap_or_default();
                self.ledger.permissions[verdict as usize].observe(waited);
            }
            Method::Initialize if done && asker == Side::Client && !self.ready => {
                self.ready = true;
                let took = gist.at.saturating_duration_since(self.figures.since);
                agent.start.observe(took);
            }
            Method::SessionNew if done => self.opened(How::New),
            Method::SessionLoad if done => self.opened(How::Load),
            Method::SessionResume if done => self.opened(How::Resume),
            Method::SessionClose if done => self.figures.sessions.take(1),
            _ => {}
        }
    }

    fn opened(&self, how: How) {
        self.figures.sessions.add(1);
        self.figures.agent.opened(how);
    }

    /// A request is open no more.
    fn settle(&mut self, asker: Side, method: Method, session: SessionHash) {
        self.figures
            .in_flight
            .at([asker as usize, method as usize])
            .take(1);
        if method != Method::SessionPrompt || asker != Side::Client {
            return;
        }
        self.figures.turns.take(1);
        // An answer of ours does not say whose turn it was.
        let at = self.turns.iter().position(|turn| turn.session == session);
        if let Some(at) = at.or_else(|| self.turns.len().checked_sub(1)) {
            self.turns.swap_remove(at);
        }
    }

    fn said(&self, gist: &MessageSummary) {
        let agent = &self.figures.agent;
        match gist.content {
            Content::ToolCalled(kind, status) if gist.from == Side::Agent => {
                agent.called(kind);
                if let Some(status) = status {
                    agent.became(status);
                }
            }
            Content::ToolUpdated(status) if gist.from == Side::Agent => agent.became(status),
            Content::ContextUsed(used, size) if gist.from == Side::Agent => {
                self.figures.filled(used, size);
            }
            _ => {}
        }
    }

    fn note(&mut self, note: &Note) {
        let ledger = &self.ledger;
        self.figures.notes.add(1);
        ledger.notes.at([note.index()]).add(1);
        match note {
            Note::Stray { .. } => self.figures.agent.noise.add(1),
            Note::Refused { from, error: flaw } => self.refused(*from, flaw),
            Note::Batch { from } => ledger.faults.at([*from as usize, Wrong::BATCH]).add(1),
            Note::ReusedId { from, .. } => {
                ledger.faults.at([*from as usize, Wrong::REUSED]).add(1);
            }
            Note::Overloaded { from } => {
                ledger.bounds.at([*from as usize, Wrong::IN_FLIGHT]).add(1);
            }
            Note::UnknownAnswer { from, .. } => ledger.orphans[*from as usize].add(1),
            Note::Undeliverable { to } => ledger.undeliverable[to.other() as usize].add(1),
            Note::Answered {
                to, method, code, ..
            } => {
                let code = words::code(i64::from(*code));
                let method = Method::named(method.as_bytes());
                ledger.synthesised.at([*to as usize, code]).add(1);
                ledger.answered(*to, method, Outcome::ProxyError, code, None);
                self.settle(*to, method, SessionHash::default());
            }
            Note::Stopping { signal } => self.killed |= *signal == "SIGKILL",
            Note::AgentExited { exit } => self.figures.agent.exited(*exit, self.killed),
            Note::Translated { side, rules, .. } => {
                self.translated = true;
                for rule in rules {
                    self.known.fired(&ledger.rules, *side, rule);
                }
            }
            Note::Dialect {
                side,
                what,
                dialect,
                ..
            } => self
                .known
                .happened(&ledger.rules, *side, what.name(), dialect),
            Note::Denied { method, .. } => self.decided(method, Decision::Denied),
            Note::Adjusted { method, .. } => self.decided(method, Decision::Adjusted),
            _ => {}
        }
    }

    fn decided(&self, method: &str, what: Decision) {
        let method = Method::named(method.as_bytes());
        let decisions = &self.ledger.decisions;
        decisions.at([method as usize, what as usize]).add(1);
    }

    fn refused(&self, from: Side, flaw: &FrameError) {
        match Wrong::of(&flaw.fault) {
            Wrong::Fault(at) => self.ledger.faults.at([from as usize, at]).add(1),
            Wrong::Bound(at) => self.ledger.bounds.at([from as usize, at]).add(1),
        }
    }

    fn count(&self, side: Side, flow: usize, frame: &Frame) {
        self.figures.frames[side as usize][flow].add(1);
        self.figures.bytes[side as usize][flow].add(frame.len() as u64);
    }
}

impl Observer for Instrument {
    fn on_event(&mut self, sight: &Event<'_>) {
        match sight {
            Event::Received(from, frame) => self.count(*from, 0, frame),
            Event::Sent(to, frame) => self.count(*to, 1, frame),
            Event::Note(note) => self.note(note),
            Event::Parsed(_) | Event::Settled(_) => {}
        }
    }

    fn wants_stats(&self) -> bool {
        true
    }

    fn on_stat(&mut self, fact: &Stat<'_>) {
        match fact {
            Stat::Forwarded(gist) => self.passed(gist),
            Stat::Paused(side, took) => {
                let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
                self.ledger.paused[*side as usize].add(nanos);
                self.ledger.pauses[*side as usize].add(1);
            }
            Stat::Processed {
                from,
                messages,
                took,
            } => {
                let translated = std::mem::take(&mut self.translated);
                let pace = &self.figures.passed.pace;
                pace.took(*from as usize, translated, *messages, *took);
            }
            Stat::Queued(bytes) => {
                for (cell, bytes) in self.figures.waiting.iter().zip(bytes) {
                    cell.set(*bytes as u64);
                }
            }
            Stat::Ended(cause, now) => {
                self.closing = Closing::of(cause);
                self.last = *now;
            }
        }
    }
}

impl Drop for Instrument {
    fn drop(&mut self) {
        let lasted = self.last.saturating_duration_since(self.figures.since);
        self.ledger
            .close(self.number, &self.figures, lasted, self.closing);
    }
}
