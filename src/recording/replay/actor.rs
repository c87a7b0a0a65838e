//! Plays the agent of a recording to a live client.
//!
//! Given what the client sends and the time, it returns what to send. A request that matches a
//! recorded one starts the scene of that request; scenes run side by side, the earliest recorded
//! step first. See `scenes` for the steps of a scene, `scene_index` for the scene of a request,
//! `live_agent` for an agent that handles the rest.

mod cancels;
mod invalid;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::client_order::{ClientOrder, TIMEOUT};
use super::ids::{id_of, with_id};
use super::live_agent::LiveAgent;
use super::matching::matches;
use super::names::{NameKind, NameMap};
use super::rules::{MatchRule, ReplayRules, Unmatched};
use super::scene_index::SceneIndex;
use super::scenes::Part;
use super::script::{Script, ScriptStep};
use super::{FaultKind, InjectedFault};
use crate::jsonrpc::reply::{self, Reason};
use crate::jsonrpc::{Envelope, Frame, Id, IdBuf, Kind, Limits, Scanned, scan};
use crate::recording::surrogates::parse_json;

/// Plays the agent.
#[derive(Debug)]
pub struct Actor {
    script: Arc<Script>,
    rules: ReplayRules,
    scene_index: SceneIndex,
    running: Vec<SceneRun>,
    /// Requests that the client has to answer: the id it knows, and the step.
    pending: HashMap<IdBuf, usize>,
    /// Invalid lines of the recorded client that the live client has sent, too.
    used_invalid: HashSet<usize>,
    order: ClientOrder,
    names: NameMap,
    live_agent: LiveAgent,
    /// Frames that are sent before anything from the recording.
    urgent: VecDeque<Frame>,
    notices: VecDeque<String>,
    /// Faults that apply at the next opportunity.
    armed: VecDeque<FaultKind>,
    /// The number of requests that were sent under a new id.
    renames: u64,
    closed: bool,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActorAction {
    /// Send this to the client.
    Send(Frame),
    /// Send this to the live agent.
    Forward(Frame),
    /// Nothing until a frame is received, or until that time.
    Wait(Option<Duration>),
    /// Nothing any more: the agent ends its stream.
    Close,
}

/// A scene that is being played.
#[derive(Debug)]
struct SceneRun {
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
    not_before: Option<Duration>,
}

impl Actor {
    /// Plays `script`.
    #[must_use]
    pub fn new(script: Arc<Script>, rules: ReplayRules) -> Self {
        let mut actor = Self {
            order: ClientOrder::new(&script),
            scene_index: SceneIndex::new(Arc::clone(&script)),
            script,
            rules,
            running: Vec::new(),
            pending: HashMap::new(),
            used_invalid: HashSet::new(),
            names: NameMap::default(),
            live_agent: LiveAgent::default(),
            urgent: VecDeque::new(),
            notices: VecDeque::new(),
            armed: VecDeque::new(),
            renames: 0,
            closed: false,
        };
        actor.arm_faults(0);
        actor.start(0, IdBuf::Absent, String::new(), Duration::ZERO);
        actor
    }

    /// The number of frames waiting to be sent that are not from the recording.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.urgent.len() + self.live_agent.backlog()
    }

    /// The next notice for people, returned once.
    pub fn notice(&mut self) -> Option<String> {
        self.notices.pop_front()
    }

    /// The client has ended its stream: steps that wait for it are not sent.
    pub fn end(&mut self) {
        self.closed = true;
    }

    /// Handles a frame of the client.
    pub fn receive(&mut self, frame: &Frame, now: Duration) {
        self.order.last_received = now;
        let at = match scan(frame, &Limits::default()) {
            Scanned::Message(at) => at,
            Scanned::Batch => return self.on_invalid(frame, None, now),
            Scanned::Invalid(error) => return self.on_invalid(frame, Some(&error), now),
        };
        let body = at.body(frame).and_then(parse_json).unwrap_or_default();
        match at.kind {
            Kind::Request => self.on_request(frame, &at, &body, now),
            Kind::Notification => self.on_notification(frame, &at, &body, now),
            Kind::Result | Kind::Error => self.on_answer(frame, &at, &body, now),
        }
    }

    /// Handles a frame of the live agent.
    pub fn receive_live(&mut self, frame: &Frame) {
        self.live_agent.receive(frame);
    }

    /// The live agent is gone.
    pub fn lose_live(&mut self) {
        self.live_agent.lose();
    }

    /// What to do now.
    pub fn next(&mut self, now: Duration) -> ActorAction {
        if let Some(frame) = self
            .urgent
            .pop_front()
            .or_else(|| self.live_agent.for_client())
        {
            return ActorAction::Send(frame);
        }
        if let Some(frame) = self.live_agent.for_agent() {
            return ActorAction::Forward(frame);
        }
        loop {
            match self.armed.front() {
                Some(FaultKind::Close) => return ActorAction::Close,
                Some(FaultKind::Garbage(text)) => {
                    let frame = Frame::from(text.clone());
                    self.armed.pop_front();
                    return ActorAction::Send(frame);
                }
                _ => {}
            }
            self.advance(now);
            let due_at = |run: &SceneRun| self.due(run);
            let ready = self.running.iter().enumerate();
            let ready = ready.filter_map(|(index, run)| {
                let (step, at) = due_at(run)?;
                (at <= now).then_some((step, index))
            });
            let Some((step, index)) = ready.min() else {
                let next = self.running.iter().filter_map(due_at).map(|(_, at)| at);
                let next = next.min();
                return match next {
                    None if self.closed && !self.live_agent.has_open() => ActorAction::Close,
                    next => ActorAction::Wait(next),
                };
            };
            if let Some(FaultKind::Delay(by)) = self.armed.front() {
                self.running[index].not_before = Some(now + *by);
                self.armed.pop_front();
                continue;
            }
            if let Some(frame) = self.send(index, step, now) {
                return ActorAction::Send(frame);
            }
        }
    }

    /// The next step of a run and its time; `None` while it waits for the client.
    fn due(&self, run: &SceneRun) -> Option<(usize, Duration)> {
        let Some(Part::Send(step)) = self.scene_index.parts(run.scene).get(run.at).copied() else {
            return None;
        };
        let before = run.after.map(|step| self.script.steps[step].at);
        let before = before.unwrap_or_default();
        let gap = self.script.steps[step].at.saturating_sub(before);
        let mut at = run.since + self.rules.pause(Duration::from_micros(gap));
        if self.is_early(run, step) {
            at = at.max(run.since.max(self.order.last_received) + TIMEOUT);
        }
        Some((step, run.not_before.map_or(at, |held| held.max(at))))
    }

    /// Whether a step has to wait for what the client sent before it in the recording.
    fn is_early(&self, run: &SceneRun, step: usize) -> bool {
        let cause = self.scene_index.scenes[run.scene].cause;
        let is_open = |request| self.pending.values().any(|open| *open == request);
        self.order.is_early(&self.script, cause, step, is_open)
    }

    /// Ends finished runs, and advances those whose wait is over.
    fn advance(&mut self, now: Duration) {
        for run in &mut self.running {
            while let Some(Part::Answered { request: sent, at }) =
                self.scene_index.parts(run.scene).get(run.at)
            {
                if run.open.iter().any(|open| open.0 == *sent) {
                    break;
                }
                // A wait that was over before it was reached takes no time.
                run.after = Some(*at);
                run.since = now;
                run.at += 1;
            }
        }
        let scene_index = &self.scene_index;
        self.running
            .retain(|run| run.at < scene_index.parts(run.scene).len());
    }

    /// Sends a step, unless a fault prevents it.
    fn send(&mut self, index: usize, step: usize, now: Duration) -> Option<Frame> {
        let script = Arc::clone(&self.script);
        let recorded = &script.steps[step];
        if self.is_early(&self.running[index], step) {
            // A wait that timed out is not repeated.
            let cause = self.scene_index.scenes[self.running[index].scene].cause;
            self.order.give_up(cause, step);
        }
        let run = &mut self.running[index];
        (run.at, run.since, run.after, run.not_before) = (run.at + 1, now, Some(step), None);
        let mut frame = self.names.to_live(&recorded.frame);
        let answers_it = recorded.is_answer() && !run.answered && {
            let cause = self.scene_index.scenes[run.scene].cause;
            recorded.answers.is_some() && recorded.answers == cause
        };
        if answers_it {
            run.answered = true;
            let id = run.id.clone();
            self.name_session(recorded);
            frame = self.names.to_live(&recorded.frame);
            frame = with_id(&frame, id.as_id());
            if let Some(FaultKind::Error { code, message }) = self.armed.front() {
                frame = reply::plain_error(id.as_id(), *code, message);
                self.armed.pop_front();
            }
        } else if recorded.is_request() {
            frame = self.send_request(index, step, frame);
        }
        let dropped = self.armed.front() == Some(&FaultKind::Drop);
        if dropped {
            self.armed.pop_front();
            self.drop_request(index, step);
        }
        self.arm_faults(recorded.n);
        (!dropped).then_some(frame)
    }

    /// A request to the client, under an id that it does not have open.
    fn send_request(&mut self, index: usize, step: usize, frame: Frame) -> Frame {
        let mut frame = frame;
        let mut id = id_of(&frame);
        if self.pending.contains_key(&id) || self.live_agent.has_pending(&id) {
            self.renames += 1;
            let name = format!("\"replay-{}\"", self.renames);
            frame = with_id(&frame, Id::String(name.as_bytes()));
            id = id_of(&frame);
        }
        self.pending.insert(id.clone(), step);
        self.running[index].open.push((step, id));
        frame
    }

    /// Removes a dropped request, so that no answer is expected.
    fn drop_request(&mut self, index: usize, step: usize) {
        let open = &mut self.running[index].open;
        if let Some(at) = open.iter().position(|open| open.0 == step) {
            self.pending.remove(&open.remove(at).1);
        }
    }

    /// Handles the session id in an answer. If the client has a session of that id, it gets
    /// another.
    fn name_session(&mut self, answer: &ScriptStep) {
        let Some(recorded) = answer.body.get("sessionId").and_then(Value::as_str) else {
            return;
        };
        let requested = answer
            .answers
            .and_then(|request| self.script.steps[request].session.as_ref());
        if requested.is_some() {
            return;
        }
        let mut live = recorded.to_owned();
        let mut count = 1;
        while self.names.has_live(&live) {
            count += 1;
            live = format!("{recorded}~{count}");
        }
        self.names
            .insert(NameKind::Session, recorded.to_owned(), live);
    }

    /// Arms the faults that apply after event `n`.
    fn arm_faults(&mut self, n: u64) {
        let armed = &mut self.armed;
        self.rules
            .faults
            .retain(|InjectedFault { after, kind: what }| {
                let now = *after <= n;
                if now {
                    armed.push_back(what.clone());
                }
                !now
            });
    }

    fn start(&mut self, scene: usize, id: IdBuf, method: String, now: Duration) {
        self.scene_index.played[scene] = true;
        let cause = self.scene_index.scenes[scene].cause;
        if let Some(cause) = cause {
            self.order.receive(cause);
        }
        self.running.push(SceneRun {
            scene,
            at: 0,
            since: now,
            after: cause,
            id,
            method,
            answered: false,
            open: Vec::new(),
            not_before: None,
        });
        if let Some(cause) = cause {
            self.arm_faults(self.script.steps[cause].n);
        }
    }

    fn on_request(&mut self, frame: &Frame, at: &Envelope, body: &Value, now: Duration) {
        let method = at.method(frame).into_owned();
        let id = at.id(frame).to_owned();
        let forwards = self.rules.unmatched == Unmatched::Forward;
        if forwards && method == "initialize" {
            self.live_agent.set_initialize(frame);
        }
        if forwards && self.live_agent.owns(body) {
            self.live_agent.forward(frame, at);
            return;
        }
        let known = self.names.to_recorded(body);
        let by = self.rules.matching;
        let found = self.scene_index.find(by, &method, &known, Kind::Request);
        let found = found.or_else(|| {
            let nearest = self.rules.unmatched == Unmatched::Nearest;
            nearest
                .then(|| self.scene_index.nearest(&method, &known))
                .flatten()
        });
        if let Some(scene) = found {
            if let Some(cause) = self.scene_index.scenes[scene].cause {
                let script = Arc::clone(&self.script);
                self.names.learn(&script.steps[cause].body, body);
            }
            self.start(scene, id, method, now);
        } else if forwards {
            self.notices.push_back(format!(
                "{method} was not recorded, so it is sent to the live agent"
            ));
            self.live_agent.forward(frame, at);
        } else {
            let what = self.scene_index.why_not_found(by, &method);
            self.notices.push_back(what.clone());
            let reason = Reason::new(reply::NOT_RECORDED, what);
            self.urgent.push_back(reply::error(id.as_id(), &reason));
        }
    }

    fn on_notification(&mut self, frame: &Frame, at: &Envelope, body: &Value, now: Duration) {
        let method = at.method(frame).into_owned();
        if self.live_agent.owns(body) {
            self.live_agent.forward(frame, at);
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
        let (by, known) = (self.rules.matching, self.names.to_recorded(body));
        let found = self
            .scene_index
            .find(by, &method, &known, Kind::Notification);
        if let Some(scene) = found {
            self.start(scene, IdBuf::Absent, method, now);
        }
    }

    fn on_answer(&mut self, frame: &Frame, at: &Envelope, body: &Value, now: Duration) {
        let id = at.id(frame).to_owned();
        if self.live_agent.answer(&id, frame, at) {
            return;
        }
        // An answer to no request, or to a turn that is over.
        let Some(step) = self.pending.remove(&id) else {
            return;
        };
        let script = Arc::clone(&self.script);
        let mut answers = script.steps.iter().enumerate();
        if let Some((at_step, recorded)) = answers.find(|(_, one)| one.answers == Some(step)) {
            self.names.learn(&recorded.body, body);
            if recorded.kind() != Some(at.kind)
                || !matches(
                    MatchRule::Strict,
                    &recorded.method,
                    &recorded.body,
                    &self.names.to_recorded(body),
                )
            {
                self.notices.push_back(format!(
                    "the client answers {} otherwise than in event {}; the replay continues as recorded",
                    recorded.method, recorded.n
                ));
            }
            let n = recorded.n;
            self.order.receive(at_step);
            self.arm_faults(n);
        }
        self.release(&id, now);
    }
}
