//! Plays the agent of a recording to a live client.
//!
//! Given what the client sends and the time, it returns what to send. A request that matches a
//! recorded one starts the scene of that request; scenes run side by side, the earliest recorded
//! step first. See `scenes` for the steps of a scene, `scene_index` for the scene of a request,
//! `live_agent` for an agent that handles the rest.

mod cancels;
mod odd;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::borrowed::Borrowed;
use super::ids::{id_of, with_id};
use super::names::{Names, Noun};
use super::normal::matches;
use super::order::{Order, PATIENCE};
use super::plan::Part;
use super::repertoire::Repertoire;
use super::rules::{Match, Rules, Unmatched};
use super::script::{Script, Step};
use super::{Fault, Mishap};
use crate::jsonrpc::reply::{self, Reason};
use crate::jsonrpc::{Envelope, Frame, Id, IdBuf, Kind, Limits, Shape, scan};
use crate::recording::surrogates::tree;

/// Plays the agent.
#[derive(Debug)]
pub struct Actor {
    script: Arc<Script>,
    rules: Rules,
    repertoire: Repertoire,
    running: Vec<Run>,
    /// Requests that the client has to answer: the id it knows, and the step.
    asked: HashMap<IdBuf, usize>,
    /// Invalid lines of the recorded client that the live client has sent, too.
    odd: HashSet<usize>,
    order: Order,
    names: Names,
    borrowed: Borrowed,
    /// Frames that are sent before anything from the recording.
    urgent: VecDeque<Frame>,
    remarks: VecDeque<String>,
    /// Faults that apply at the next opportunity.
    armed: VecDeque<Mishap>,
    /// The number of requests that were sent under a new id.
    renamed: u64,
    closed: bool,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cue {
    /// Send this to the client.
    Say(Frame),
    /// Send this to the live agent.
    Forward(Frame),
    /// Nothing until a frame is received, or until that time.
    Wait(Option<Duration>),
    /// Nothing any more: the agent ends its stream.
    Close,
}

/// A scene that is being played.
#[derive(Debug)]
struct Run {
    scene: usize,
    /// The next part.
    at: usize,
    /// When the previous part ended, and its step.
    since: Duration,
    after: Option<usize>,
    /// The id of the live request.
    id: IdBuf,
    /// The live method.
    method: String,
    answered: bool,
    /// Its requests that the client has not answered: the step, and the id the client knows.
    open: Vec<(usize, IdBuf)>,
    /// The next step is not sent before this time.
    held: Option<Duration>,
}

impl Actor {
    /// Plays `script`.
    #[must_use]
    pub fn new(script: Arc<Script>, rules: Rules) -> Self {
        let mut actor = Self {
            order: Order::of(&script),
            repertoire: Repertoire::new(Arc::clone(&script)),
            script,
            rules,
            running: Vec::new(),
            asked: HashMap::new(),
            odd: HashSet::new(),
            names: Names::default(),
            borrowed: Borrowed::default(),
            urgent: VecDeque::new(),
            remarks: VecDeque::new(),
            armed: VecDeque::new(),
            renamed: 0,
            closed: false,
        };
        actor.strike(0);
        actor.start(0, IdBuf::Absent, String::new(), Duration::ZERO);
        actor
    }

    /// The number of frames waiting to be sent that are not from the recording.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.urgent.len() + self.borrowed.backlog()
    }

    /// The next notice for people, returned once.
    pub fn remark(&mut self) -> Option<String> {
        self.remarks.pop_front()
    }

    /// The client has ended its stream: steps that wait for it are not sent.
    pub fn end(&mut self) {
        self.closed = true;
    }

    /// Handles a frame of the client.
    pub fn hear(&mut self, frame: &Frame, now: Duration) {
        self.order.last = now;
        let at = match scan(frame, &Limits::default()) {
            Shape::One(at) => at,
            Shape::Batch => return self.heard_odd(frame, None, now),
            Shape::Bad(flaw) => return self.heard_odd(frame, Some(&flaw), now),
        };
        let body = at.body(frame).and_then(tree).unwrap_or_default();
        match at.kind {
            Kind::Request => self.asked_for(frame, &at, &body, now),
            Kind::Notification => self.told(frame, &at, &body, now),
            Kind::Result | Kind::Error => self.answered(frame, &at, &body, now),
        }
    }

    /// Handles a frame of the live agent.
    pub fn hear_live(&mut self, frame: &Frame) {
        self.borrowed.hear(frame);
    }

    /// The live agent is gone.
    pub fn lose_live(&mut self) {
        self.borrowed.lose();
    }

    /// What to do now.
    pub fn next(&mut self, now: Duration) -> Cue {
        if let Some(frame) = self
            .urgent
            .pop_front()
            .or_else(|| self.borrowed.for_client())
        {
            return Cue::Say(frame);
        }
        if let Some(frame) = self.borrowed.for_agent() {
            return Cue::Forward(frame);
        }
        loop {
            match self.armed.front() {
                Some(Mishap::Close) => return Cue::Close,
                Some(Mishap::Garbage(text)) => {
                    let frame = Frame::from(text.clone());
                    self.armed.pop_front();
                    return Cue::Say(frame);
                }
                _ => {}
            }
            self.settle(now);
            let due = |run: &Run| self.due(run);
            let ready = self.running.iter().enumerate();
            let ready = ready.filter_map(|(index, run)| {
                let (step, at) = due(run)?;
                (at <= now).then_some((step, index))
            });
            let Some((step, index)) = ready.min() else {
                let next = self.running.iter().filter_map(due).map(|(_, at)| at);
                let next = next.min();
                return match next {
                    None if self.closed && !self.borrowed.owes() => Cue::Close,
                    next => Cue::Wait(next),
                };
            };
            if let Some(Mishap::Delay(by)) = self.armed.front() {
                self.running[index].held = Some(now + *by);
                self.armed.pop_front();
                continue;
            }
            if let Some(frame) = self.say(index, step, now) {
                return Cue::Say(frame);
            }
        }
    }

    /// The next step of a run and its time; `None` while it waits for the client.
    fn due(&self, run: &Run) -> Option<(usize, Duration)> {
        let Some(Part::Say(step)) = self.repertoire.parts(run.scene).get(run.at).copied() else {
            return None;
        };
        let before = run.after.map(|step| self.script.steps[step].at);
        let before = before.unwrap_or_default();
        let gap = self.script.steps[step].at.saturating_sub(before);
        let mut at = run.since + self.rules.pause(Duration::from_micros(gap));
        if self.is_early(run, step) {
            at = at.max(run.since.max(self.order.last) + PATIENCE);
        }
        Some((step, run.held.map_or(at, |held| held.max(at))))
    }

    /// Whether a step has to wait for what the client sent before it in the recording.
    fn is_early(&self, run: &Run, step: usize) -> bool {
        let cause = self.repertoire.scenes[run.scene].cause;
        let is_open = |ask| self.asked.values().any(|open| *open == ask);
        self.order.is_early(&self.script, cause, step, is_open)
    }

    /// Ends finished runs, and advances those whose wait is over.
    fn settle(&mut self, now: Duration) {
        for run in &mut self.running {
            while let Some(Part::Answered { ask, at }) =
                self.repertoire.parts(run.scene).get(run.at)
            {
                if run.open.iter().any(|open| open.0 == *ask) {
                    break;
                }
                // A wait that was over before it was reached takes no time.
                run.after = Some(*at);
                run.since = now;
                run.at += 1;
            }
        }
        let repertoire = &self.repertoire;
        self.running
            .retain(|run| run.at < repertoire.parts(run.scene).len());
    }

    /// Sends a step, unless a fault prevents it.
    fn say(&mut self, index: usize, step: usize, now: Duration) -> Option<Frame> {
        let script = Arc::clone(&self.script);
        let recorded = &script.steps[step];
        if self.is_early(&self.running[index], step) {
            // A wait that timed out is not repeated.
            let cause = self.repertoire.scenes[self.running[index].scene].cause;
            self.order.give_up(cause, step);
        }
        let run = &mut self.running[index];
        (run.at, run.since, run.after, run.held) = (run.at + 1, now, Some(step), None);
        let mut frame = self.names.said(&recorded.frame);
        let is_mine = recorded.is_answer() && !run.answered && {
            let cause = self.repertoire.scenes[run.scene].cause;
            recorded.answers.is_some() && recorded.answers == cause
        };
        if is_mine {
            run.answered = true;
            let id = run.id.clone();
            self.open_session(recorded);
            frame = self.names.said(&recorded.frame);
            frame = with_id(&frame, id.as_id());
            if let Some(Mishap::Error { code, message }) = self.armed.front() {
                frame = reply::plain_error(id.as_id(), *code, message);
                self.armed.pop_front();
            }
        } else if recorded.is_request() {
            frame = self.ask(index, step, frame);
        }
        let dropped = self.armed.front() == Some(&Mishap::Drop);
        if dropped {
            self.armed.pop_front();
            self.forget(index, step);
        }
        self.strike(recorded.n);
        (!dropped).then_some(frame)
    }

    /// A request to the client, under an id that it does not have open.
    fn ask(&mut self, index: usize, step: usize, frame: Frame) -> Frame {
        let mut frame = frame;
        let mut id = id_of(&frame);
        if self.asked.contains_key(&id) || self.borrowed.has_asked(&id) {
            self.renamed += 1;
            let name = format!("\"replay-{}\"", self.renamed);
            frame = with_id(&frame, Id::String(name.as_bytes()));
            id = id_of(&frame);
        }
        self.asked.insert(id.clone(), step);
        self.running[index].open.push((step, id));
        frame
    }

    /// Removes a dropped request, so that no answer is expected.
    fn forget(&mut self, index: usize, step: usize) {
        let open = &mut self.running[index].open;
        if let Some(at) = open.iter().position(|open| open.0 == step) {
            self.asked.remove(&open.remove(at).1);
        }
    }

    /// Handles the session id in an answer. If the client has a session of that id, it gets
    /// another.
    fn open_session(&mut self, answer: &Step) {
        let Some(recorded) = answer.body.get("sessionId").and_then(Value::as_str) else {
            return;
        };
        let asked_for = answer
            .answers
            .and_then(|asked| self.script.steps[asked].session.as_ref());
        if asked_for.is_some() {
            return;
        }
        let mut live = recorded.to_owned();
        let mut count = 1;
        while self.names.knows(&live) {
            count += 1;
            live = format!("{recorded}~{count}");
        }
        self.names.word(Noun::Session, recorded.to_owned(), live);
    }

    /// Arms the faults that apply after event `n`.
    fn strike(&mut self, n: u64) {
        let armed = &mut self.armed;
        self.rules.faults.retain(|Fault { after, what }| {
            let now = *after <= n;
            if now {
                armed.push_back(what.clone());
            }
            !now
        });
    }

    fn start(&mut self, scene: usize, id: IdBuf, method: String, now: Duration) {
        self.repertoire.played[scene] = true;
        let cause = self.repertoire.scenes[scene].cause;
        if let Some(cause) = cause {
            self.order.heard(cause);
        }
        self.running.push(Run {
            scene,
            at: 0,
            since: now,
            after: cause,
            id,
            method,
            answered: false,
            open: Vec::new(),
            held: None,
        });
        if let Some(cause) = cause {
            self.strike(self.script.steps[cause].n);
        }
    }

    fn asked_for(&mut self, frame: &Frame, at: &Envelope, body: &Value, now: Duration) {
        let method = at.method(frame).into_owned();
        let id = at.id(frame).to_owned();
        let forwards = self.rules.unmatched == Unmatched::Forward;
        if forwards && method == "initialize" {
            self.borrowed.introduce(frame);
        }
        if forwards && self.borrowed.owns(body) {
            self.borrowed.forward(frame, at);
            return;
        }
        let known = self.names.heard(body);
        let by = self.rules.matching;
        let found = self.repertoire.find(by, &method, &known, Kind::Request);
        let found = found.or_else(|| {
            let nearest = self.rules.unmatched == Unmatched::Nearest;
            nearest
                .then(|| self.repertoire.nearest(&method, &known))
                .flatten()
        });
        if let Some(scene) = found {
            if let Some(cause) = self.repertoire.scenes[scene].cause {
                let script = Arc::clone(&self.script);
                self.names.bind(&script.steps[cause].body, body);
            }
            self.start(scene, id, method, now);
        } else if forwards {
            self.remarks.push_back(format!(
                "{method} was not recorded, so it is sent to the live agent"
            ));
            self.borrowed.forward(frame, at);
        } else {
            let what = self.repertoire.explain(by, &method);
            self.remarks.push_back(what.clone());
            let reason = Reason::new(reply::NOT_RECORDED, what);
            self.urgent.push_back(reply::error(id.as_id(), &reason));
        }
    }

    fn told(&mut self, frame: &Frame, at: &Envelope, body: &Value, now: Duration) {
        let method = at.method(frame).into_owned();
        if self.borrowed.owns(body) {
            self.borrowed.forward(frame, at);
            return;
        }
        let cancelled = match method.as_str() {
            "session/cancel" => self.cancelled_turn(body),
            "$/cancel_request" => self.cancelled_request(body),
            _ => None,
        };
        if let Some(index) = cancelled {
            self.cancel(index, now);
            return;
        }
        let (by, known) = (self.rules.matching, self.names.heard(body));
        let found = self
            .repertoire
            .find(by, &method, &known, Kind::Notification);
        if let Some(scene) = found {
            self.start(scene, IdBuf::Absent, method, now);
        }
    }

    fn answered(&mut self, frame: &Frame, at: &Envelope, body: &Value, now: Duration) {
        let id = at.id(frame).to_owned();
        if self.borrowed.answered(&id, frame, at) {
            return;
        }
        // An answer to no request, or to a turn that is over.
        let Some(step) = self.asked.remove(&id) else {
            return;
        };
        let script = Arc::clone(&self.script);
        let mut answers = script.steps.iter().enumerate();
        if let Some((at_step, recorded)) = answers.find(|(_, one)| one.answers == Some(step)) {
            self.names.bind(&recorded.body, body);
            if recorded.kind() != Some(at.kind)
                || !matches(
                    Match::Strict,
                    &recorded.method,
                    &recorded.body,
                    &self.names.heard(body),
                )
            {
                self.remarks.push_back(format!(
                    "the client answers {} otherwise than in event {}; it goes on as recorded",
                    recorded.method, recorded.n
                ));
            }
            let n = recorded.n;
            self.order.heard(at_step);
            self.strike(n);
        }
        self.release(&id, now);
    }
}
