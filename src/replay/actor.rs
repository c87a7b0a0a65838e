//! Plays the agent of a recording to a live client.
//!
//! Given what the client sends and the time, it returns what to send. A request that matches a
//! recorded one starts the scene of that request; scenes run side by side, the earliest recorded
//! step first. A step waits for what the client sent before it in the recording, with a timeout,
//! because a live client may behave differently.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::live_agent::LiveAgent;
use super::matching::matches;
use super::names::{NameKind, NameMap, with_id};
use super::scenes::{Part, Scenes};
use super::script::{Script, ScriptStep};
use jsonrpc::reply::{self, Reason};
use jsonrpc::{
    Envelope, Frame, FrameError, Id, IdBuf, Kind, Limits, PendingRequests, Rejected, Role, Scanned,
    Side, scan,
};
use recording::parse_json;
use transport::replay::{FaultKind, MatchRule, ReplayRules, Unmatched};

/// How long a step waits while the client sends nothing.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Plays the agent.
#[derive(Debug, Default)]
pub struct Actor {
    script: Arc<Script>,
    rules: ReplayRules,
    scenes: Scenes,
    running: Vec<SceneRun>,
    /// Requests that the client has to answer, under the ids it knows.
    pending: PendingRequests<Asked>,
    /// Invalid lines of the recorded client that the live client has sent, too.
    used_invalid: HashSet<usize>,
    /// The steps of the client that it has not sent yet.
    missing: BTreeSet<usize>,
    /// When the client sent the last frame.
    last_received: Duration,
    names: NameMap,
    live_agent: LiveAgent,
    /// Frames that are sent before anything from the recording.
    urgent: VecDeque<Frame>,
    notices: VecDeque<String>,
    /// Faults that apply at the next opportunity.
    armed: VecDeque<FaultKind>,
    /// The number of requests that were sent under a new id.
    renames: u64,
    /// The number of runs.
    runs: u64,
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

/// A request to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Asked {
    /// That of this step, in the run of this number.
    Step(usize, u64),
    /// One of the live agent, with this id.
    Live(IdBuf),
}

/// A scene that is being played.
#[derive(Debug)]
struct SceneRun {
    number: u64,
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
    /// The next step is not sent before this time.
    not_before: Option<Duration>,
}

impl Actor {
    /// Plays `script`.
    #[must_use]
    pub fn new(script: Arc<Script>, rules: ReplayRules) -> Self {
        let steps = script.steps.iter().enumerate();
        let of_client = steps.filter(|(_, step)| step.from == Side::Client);
        let mut actor = Self {
            missing: of_client.map(|(at, _)| at).collect(),
            scenes: Scenes::new(Arc::clone(&script)),
            pending: PendingRequests::new(script.steps.len() + Limits::default().in_flight),
            script,
            rules,
            ..Self::default()
        };
        actor.arm_faults(0);
        actor.start(0, IdBuf::default(), String::new(), Duration::ZERO);
        actor
    }

    /// The number of frames waiting to be sent that are not from the recording.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.urgent.len() + self.live_agent.queue.len()
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
        self.last_received = now;
        let at = match scan(frame, &Limits::default()) {
            Scanned::Message(at) => at,
            Scanned::Batch => return self.on_invalid(frame, None),
            Scanned::Invalid(error) => return self.on_invalid(frame, Some(&error)),
        };
        let body = at.body(frame).and_then(parse_json).unwrap_or_default();
        match at.kind {
            Kind::Request => self.on_request(frame, &at, &body, now),
            Kind::Notification => self.on_notification(frame, &at, &body, now),
            Kind::Result | Kind::Error => self.on_answer(frame, &at, &body),
        }
    }

    /// Handles a frame of the live agent.
    pub fn receive_live(&mut self, frame: &Frame) {
        let at = match scan(frame, &Limits::default()) {
            Scanned::Message(at) => at,
            Scanned::Batch => return self.live_agent.queue.push_back(reply::batch()),
            // Without an answer the client, or the agent, would wait for ever.
            Scanned::Invalid(error) => match error.role {
                Some(Role::Answer) => {
                    if let Some((id, ())) = self.live_agent.open.remove(error.id.as_id()) {
                        let reason = Reason::of_fault(&error.fault);
                        self.urgent.push_back(reply::error(id.as_id(), &reason));
                    }
                    return;
                }
                Some(Role::Call) if error.id != IdBuf::default() => {
                    return self.live_agent.queue.push_back(reply::frame_error(&error));
                }
                _ => return,
            },
        };
        let id = at.id(frame);
        match at.kind {
            Kind::Notification => self.urgent.push_back(frame.clone()),
            Kind::Request => match self.ask(frame, &at, &Asked::Live(id.to_owned())) {
                Some(request) => self.urgent.push_back(request),
                None => {
                    let reason = Reason::new(reply::OVERLOADED, "too many requests are open");
                    self.live_agent.queue.push_back(reply::error(id, &reason));
                }
            },
            // Else the answer to our `initialize`, or to no request.
            Kind::Result | Kind::Error if self.live_agent.open.remove(id).is_some() => {
                let body = at.body(frame).and_then(parse_json).unwrap_or_default();
                if let Some(session) = body.get("sessionId").and_then(Value::as_str) {
                    self.live_agent.sessions.insert(session.to_owned());
                }
                self.urgent.push_back(frame.clone());
            }
            Kind::Result | Kind::Error => {}
        }
    }

    /// The live agent is gone.
    pub fn lose_live(&mut self) {
        self.urgent.extend(self.live_agent.lose());
        self.pending
            .retain(|_, asked| matches!(asked, Asked::Step(..)));
    }

    /// What to do now.
    pub fn next(&mut self, now: Duration) -> ActorAction {
        if let Some(frame) = self.urgent.pop_front() {
            return ActorAction::Send(frame);
        }
        if let Some(frame) = self.live_agent.queue.pop_front() {
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
            let due = self.running.iter().enumerate();
            let due = due.filter_map(|(index, run)| Some((index, self.due(run)?)));
            let due: Vec<(usize, (usize, Duration))> = due.collect();
            let ready = due.iter().filter(|(_, (_, at))| *at <= now);
            let Some((step, index)) = ready.map(|(index, (step, _))| (*step, *index)).min() else {
                let next = due.iter().map(|(_, (_, at))| *at).min();
                return match next {
                    None if self.closed && self.live_agent.open.is_empty() => ActorAction::Close,
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
        let step = match self.scenes.list[run.scene].parts.get(run.at)? {
            Part::Send(step) => *step,
            Part::Cancelled(step) if !self.ends_by_cancel(run) => {
                return Some((*step, self.cancel_timeout(run)));
            }
            _ => return None,
        };
        let before = run.after.map_or(0, |step| self.script.steps[step].at);
        let gap = self.script.steps[step].at.saturating_sub(before);
        let mut at = run.since + self.rules.pause(Duration::from_micros(gap));
        if self.is_early(run, step) {
            at = at.max(run.since.max(self.last_received) + TIMEOUT);
        }
        Some((step, run.not_before.map_or(at, |held| held.max(at))))
    }

    /// Whether the recorded cancellation ended the turn. If not, the agent was done without it, so a
    /// live client may send it too late.
    fn ends_by_cancel(&self, run: &SceneRun) -> bool {
        let cause = self.scenes.list[run.scene].cause;
        let mut steps = self.script.steps.iter();
        let answer = steps.find(|step| step.answers.is_some() && step.answers == cause);
        answer.is_none_or(|answer| {
            let reason = answer.body.get("stopReason");
            answer.kind() == Some(Kind::Error) || reason.is_some_and(|reason| reason == "cancelled")
        })
    }

    /// Until when a cancellation is waited for that did not end its turn.
    fn cancel_timeout(&self, run: &SceneRun) -> Duration {
        run.since.max(self.last_received) + TIMEOUT
    }

    /// Whether a step has to wait for what the client sent between its cause and it in the
    /// recording. Answers count only if the client has their request.
    fn is_early(&self, run: &SceneRun, step: usize) -> bool {
        let mut before = self.missing.range(self.before(run, step));
        before.any(|at| {
            let step = &self.script.steps[*at];
            match step.answers {
                Some(request) => self.is_pending(request, None),
                None => step.is_request() || step.is_notification(),
            }
        })
    }

    /// The steps between the cause of a step and it.
    fn before(&self, run: &SceneRun, step: usize) -> Range<usize> {
        let cause = self.scenes.list[run.scene].cause;
        cause.map_or(0, |at| at + 1)..step
    }

    /// Whether the client has to answer the request of this step, of that run or of any.
    fn is_pending(&self, step: usize, run: Option<u64>) -> bool {
        let is_it = |asked: &Asked| match asked {
            Asked::Step(own, number) => *own == step && run.is_none_or(|run| run == *number),
            Asked::Live(_) => false,
        };
        self.pending.iter().any(|(_, asked)| is_it(asked))
    }

    /// Ends finished runs, and advances those whose wait is over.
    fn advance(&mut self, now: Duration) {
        let mut running = std::mem::take(&mut self.running);
        running.retain_mut(|run| {
            let parts = &self.scenes.list[run.scene].parts;
            while let Some(part) = parts.get(run.at) {
                let is_over = match part {
                    Part::Answered { request, .. } => !self.is_pending(*request, Some(run.number)),
                    Part::Cancelled(_) => {
                        !self.ends_by_cancel(run) && self.cancel_timeout(run) <= now
                    }
                    Part::Send(_) => false,
                };
                if !is_over {
                    break;
                }
                (run.at, run.after) = (run.at + 1, Some(part.step()));
                if matches!(part, Part::Answered { .. }) {
                    // A wait that was over before it was reached takes no time.
                    run.since = now;
                }
            }
            run.at < parts.len()
        });
        self.running = running;
    }

    /// Sends a step, unless a fault prevents it.
    fn send(&mut self, index: usize, step: usize, now: Duration) -> Option<Frame> {
        let script = Arc::clone(&self.script);
        let recorded = &script.steps[step];
        if self.is_early(&self.running[index], step) {
            // A wait that timed out is not repeated.
            let before = self.before(&self.running[index], step);
            self.missing.retain(|at| !before.contains(at));
        }
        let run = &mut self.running[index];
        let number = run.number;
        (run.at, run.since, run.after, run.not_before) = (run.at + 1, now, Some(step), None);
        let cause = self.scenes.list[run.scene].cause;
        let answers_it = recorded.is_answer() && recorded.answers.is_some();
        let mut frame = None;
        if answers_it && recorded.answers == cause && !run.answered {
            run.answered = true;
            let id = run.id.clone();
            self.name_session(recorded);
            frame = if let Some(FaultKind::Error { code, message }) = self.armed.front() {
                let error = reply::plain_error(id.as_id(), *code, message);
                self.armed.pop_front();
                Some(error)
            } else {
                Some(with_id(&self.names.to_live(&recorded.frame), id.as_id()))
            };
        } else if recorded.is_request() {
            let request = self.names.to_live(&recorded.frame);
            if let Scanned::Message(at) = scan(&request, &Limits::default()) {
                frame = self.ask(&request, &at, &Asked::Step(step, number));
            }
        }
        let frame = frame.unwrap_or_else(|| self.names.to_live(&recorded.frame));
        let dropped = self.armed.front() == Some(&FaultKind::Drop);
        if dropped {
            self.armed.pop_front();
            // No answer is expected.
            self.pending
                .retain(|_, asked| *asked != Asked::Step(step, number));
        }
        self.arm_faults(recorded.n);
        (!dropped).then_some(frame)
    }

    /// A request to the client, under an id that it does not have open; `None` if it has too many.
    fn ask(&mut self, frame: &Frame, at: &Envelope, asked: &Asked) -> Option<Frame> {
        let mut result = self.pending.insert(at.id(frame), asked.clone());
        let mut frame = frame.clone();
        while result == Err(Rejected::Reused) {
            self.renames += 1;
            let name = format!("\"replay-{}\"", self.renames);
            let id = Id::String(name.as_bytes());
            result = self.pending.insert(id, asked.clone());
            frame = with_id(&frame, id);
        }
        result.ok().map(|()| frame)
    }

    /// Handles the session id in an answer. If the client has a session of that id, it gets
    /// another.
    fn name_session(&mut self, answer: &ScriptStep) {
        let Some(recorded) = answer.body.get("sessionId").and_then(Value::as_str) else {
            return;
        };
        let request = answer.answers.map(|request| &self.script.steps[request]);
        if request.is_some_and(|request| request.session.is_some()) {
            return;
        }
        let others = (2..).map(|count| format!("{recorded}~{count}"));
        let mut names = std::iter::once(recorded.to_owned()).chain(others);
        let live = names.find(|name| self.names.recorded_session(name).is_none());
        let live = live.unwrap_or_default();
        self.names
            .insert(NameKind::Session, recorded.to_owned(), live);
    }

    /// Arms the faults that apply after event `n`.
    fn arm_faults(&mut self, n: u64) {
        let now = self.rules.faults.extract_if(.., |fault| fault.after <= n);
        self.armed.extend(now.map(|fault| fault.kind));
    }

    /// The client has sent the message of this step.
    fn received_step(&mut self, step: usize) {
        self.missing.remove(&step);
        self.arm_faults(self.script.steps[step].n);
    }

    fn start(&mut self, scene: usize, id: IdBuf, method: String, now: Duration) {
        self.scenes.list[scene].played = true;
        let cause = self.scenes.list[scene].cause;
        self.runs += 1;
        self.running.push(SceneRun {
            number: self.runs,
            scene,
            at: 0,
            since: now,
            after: cause,
            id,
            method,
            answered: false,
            not_before: None,
        });
        if let Some(cause) = cause {
            self.received_step(cause);
        }
    }

    fn on_request(&mut self, frame: &Frame, at: &Envelope, body: &Value, now: Duration) {
        let method = at.method(frame).into_owned();
        let forwards = self.rules.unmatched == Unmatched::Forward;
        if forwards && method == "initialize" {
            self.live_agent.initialize = Some(frame.clone());
        }
        if forwards && self.live_agent.owns(body) {
            self.urgent.extend(self.live_agent.forward(frame, at));
            return;
        }
        let known = self.names.to_recorded(body);
        let by = self.rules.matching;
        let mut found = self.scenes.find(by, &method, &known, Kind::Request);
        if self.rules.unmatched == Unmatched::Nearest {
            found = found.or_else(|| self.scenes.nearest(&method, &known));
        }
        if let Some(scene) = found {
            if let Some(cause) = self.scenes.cause(scene) {
                self.names.learn(&cause.body, body);
            }
            self.start(scene, at.id(frame).to_owned(), method, now);
        } else if forwards {
            self.notices.push_back(format!(
                "{method} was not recorded, so it is sent to the live agent"
            ));
            self.urgent.extend(self.live_agent.forward(frame, at));
        } else {
            let what = self.scenes.why_not_found(by, &method);
            self.notices.push_back(what.clone());
            let reason = Reason::new(reply::NOT_RECORDED, what);
            self.urgent.push_back(reply::error(at.id(frame), &reason));
        }
    }

    fn on_notification(&mut self, frame: &Frame, at: &Envelope, body: &Value, now: Duration) {
        let method = at.method(frame).into_owned();
        if self.live_agent.owns(body) {
            self.urgent.extend(self.live_agent.forward(frame, at));
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
        let found = self.scenes.find(by, &method, &known, Kind::Notification);
        if let Some(scene) = found {
            self.start(scene, IdBuf::default(), method, now);
        }
    }

    fn on_answer(&mut self, frame: &Frame, at: &Envelope, body: &Value) {
        let step = match self.pending.remove(at.id(frame)) {
            Some((_, Asked::Step(step, _))) => step,
            Some((_, Asked::Live(id))) => {
                let answer = at.with_id(frame, id.as_id());
                return self.live_agent.queue.push_back(answer);
            }
            // An answer to no request, or to a turn that is over.
            None => return,
        };
        let script = Arc::clone(&self.script);
        let mut answers = script.steps.iter().enumerate();
        let Some((answer, recorded)) = answers.find(|(_, one)| one.answers == Some(step)) else {
            return;
        };
        self.names.learn(&recorded.body, body);
        let known = self.names.to_recorded(body);
        let method = &recorded.method;
        if recorded.kind() != Some(at.kind)
            || !matches(MatchRule::Strict, method, &recorded.body, &known)
        {
            self.notices.push_back(format!(
                "the client answers {method} otherwise than in event {}; the replay continues as \
                 recorded",
                recorded.n
            ));
        }
        self.received_step(answer);
    }

    /// The run of the turn that a `session/cancel` is about.
    fn cancelled_turn(&self, body: &Value) -> Option<usize> {
        let session = body.get("sessionId")?.as_str()?;
        let recorded = self.names.recorded_session(session).unwrap_or(session);
        self.running.iter().rposition(|run| {
            let cause = self.scenes.cause(run.scene);
            !run.answered && cause.is_some_and(|step| step.session.as_deref() == Some(recorded))
        })
    }

    /// The run of the request that a `$/cancel_request` is about.
    fn cancelled_request(&self, body: &Value) -> Option<usize> {
        let id = body.get("requestId")?.to_string();
        let mut running = self.running.iter();
        running.position(|run| !run.answered && run.id.as_id() == Id::of_json(id.as_bytes()))
    }

    /// Continues after the recorded cancellation; if there is none, ends the turn here.
    fn cancel(&mut self, index: usize, now: Duration) {
        let run = &mut self.running[index];
        let parts = &self.scenes.list[run.scene].parts;
        let rest = parts.iter().enumerate().skip(run.at);
        let mut cancelled = rest.filter(|(_, part)| matches!(part, Part::Cancelled(_)));
        if let Some((at, part)) = cancelled.next() {
            let step = part.step();
            (run.at, run.since, run.after) = (at + 1, now, Some(step));
            self.received_step(step);
            return;
        }
        let run = self.running.remove(index);
        self.pending
            .retain(|_, asked| !matches!(asked, Asked::Step(_, number) if *number == run.number));
        self.urgent.push_back(if run.method == "session/prompt" {
            reply::cancelled_turn(run.id.as_id())
        } else {
            reply::cancelled_request(run.id.as_id())
        });
    }

    /// Handles a frame of the client that is no message; without an `error` it is a batch. It gets
    /// the error that the relay would send, unless the recorded client sent such a line, too: then
    /// the recorded reaction is replayed.
    fn on_invalid(&mut self, frame: &Frame, error: Option<&FrameError>) {
        self.notices
            .push_back("received a line that is not a message".to_owned());
        // An unreadable answer still counts as the answer: there will be no other.
        let answer = error.filter(|error| error.role == Some(Role::Answer));
        let asked = answer.and_then(|error| Some((error, self.pending.remove(error.id.as_id())?)));
        match asked {
            Some((error, (_, Asked::Live(id)))) => {
                let reason = Reason::of_fault(&error.fault);
                let answer = reply::error(id.as_id(), &reason);
                self.live_agent.queue.push_back(answer);
            }
            Some((_, (_, Asked::Step(..)))) => {}
            None if self.was_recorded(frame) => {}
            None => self
                .urgent
                .push_back(error.map_or_else(reply::batch, reply::frame_error)),
        }
    }

    /// Whether the recorded client sent such a line; each line counts once.
    fn was_recorded(&mut self, frame: &Frame) -> bool {
        let text = |frame: &Frame| {
            let text = String::from_utf8_lossy(frame.as_bytes());
            Value::from(text.trim())
        };
        let live = self.names.to_recorded(&text(frame));
        let steps = self.script.steps.iter().enumerate();
        let mut unused = steps.filter(|(at, step)| {
            step.from == Side::Client && step.envelope.is_none() && !self.used_invalid.contains(at)
        });
        let found =
            unused.find(|(_, step)| matches(MatchRule::Strict, "", &text(&step.frame), &live));
        let found = found.map(|(at, _)| at);
        self.used_invalid.extend(found);
        found.is_some()
    }
}
