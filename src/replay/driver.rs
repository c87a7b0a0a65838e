//! Plays the client of a recording to a live agent.
//!
//! Each message waits for what the client had received before it in the recording: answers always,
//! updates as long as some may still come. Requests of the agent get the recorded answers. See
//! `compare` for the comparison with the recording.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::matching::matches;
use super::names::{NameKind, NameMap, with_id};
use super::permission::{OptionChoice, choose};
use super::script::{Script, ScriptStep};
use jsonrpc::reply::{self, Reason};
use jsonrpc::{Choice, Frame, Id, IdBuf, PendingRequests, Side};
use transport::replay::MatchRule;

/// Plays the client.
#[derive(Debug, Default)]
pub struct Driver {
    script: Arc<Script>,
    timeouts: Timeouts,
    /// The answer to each request, by step.
    answer_of: HashMap<usize, usize>,
    /// Steps that have happened, or that are no longer waited for.
    done: Vec<bool>,
    /// The first step that is not done.
    cursor: usize,
    /// Our unanswered requests, with their step.
    open: PendingRequests<usize>,
    /// The agent's unanswered requests: step, id, index of the live step.
    pending: Vec<(usize, IdBuf, usize)>,
    names: NameMap,
    urgent: VecDeque<Frame>,
    live: Script,
    last: Duration,
    problems: Vec<String>,
    stuck: bool,
    closed: bool,
    renamed: u64,
}

/// How long to wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timeouts {
    /// Silence after which no further updates are expected.
    pub settle: Duration,
    /// Silence after which an unanswered request fails.
    pub response: Duration,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriverAction {
    /// Send this to the agent.
    Send(Frame),
    /// Nothing until a frame is received, or until that time.
    Wait(Duration),
    /// All messages are sent.
    Done,
}

impl Driver {
    /// Plays `script`.
    #[must_use]
    pub fn new(script: Arc<Script>, timeouts: Timeouts) -> Self {
        let answers = script.steps.iter().enumerate();
        Self {
            answer_of: answers
                .filter_map(|(at, step)| Some((step.answers?, at)))
                .collect(),
            done: vec![false; script.steps.len()],
            open: PendingRequests::new(script.steps.len()),
            script,
            timeouts,
            ..Self::default()
        }
    }

    /// Replaces the working directory of the client.
    pub fn set_directory(&mut self, directory: &str) {
        if let Some(recorded) = self.script.directory() {
            self.names.insert_folder(recorded, directory);
        }
    }

    /// The live conversation so far.
    #[must_use]
    pub const fn live(&self) -> &Script {
        &self.live
    }

    /// The reasons why the conversation could not continue, for people.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// All messages are sent and our stream to the agent is ended. Requests without a recorded
    /// answer may get one now, which does not count.
    pub const fn close(&mut self) {
        self.closed = true;
    }

    /// The agent has ended its stream.
    pub fn end(&mut self) {
        if self.stuck {
            return;
        }
        // After the end of our stream, answers that were not recorded are not required.
        let open = self.open.iter().map(|(_, step)| *step);
        let open = open.filter(|step| !self.closed || self.answer_of.contains_key(step));
        for step in open.collect::<Vec<_>>() {
            self.give_up(step, "the agent ended its stream before it answered");
        }
        if let Some(next) = self.unsent_before(self.script.steps.len()) {
            let text = format!("the agent ended its stream before event {}", next.n);
            self.problems.push(text);
        }
        self.stuck = true;
    }

    /// Handles a frame of the agent.
    pub fn receive(&mut self, frame: &Frame, now: Duration) {
        self.last = now;
        let at = self.live.steps.len();
        self.log(Side::Agent, frame, now);
        let step = self.live.steps[at].clone();
        if self.closed && self.is_unrecorded(&step) {
            self.live.steps.pop();
            return;
        }
        if step.is_answer() && step.answers.is_some() {
            self.on_answer(&step);
        } else if step.is_request() {
            self.on_request(at, &step);
        } else {
            // A notification; or an answer to no request, or an invalid line.
            let step_at = self.expected(|one| {
                one.kind() == step.kind()
                    && one.answers.is_none()
                    && one.method == step.method
                    && one.update() == step.update()
            });
            if let Some(at) = step_at {
                self.done[at] = true;
            }
        }
    }

    /// What to do now.
    pub fn next(&mut self, now: Duration) -> DriverAction {
        if let Some(frame) = self.urgent.pop_front() {
            return self.send(frame, now);
        }
        if self.stuck {
            return DriverAction::Done;
        }
        if let Some(frame) = self.reply(now) {
            return self.send(frame, now);
        }
        let script = Arc::clone(&self.script);
        while let Some(step) = script.steps.get(self.cursor) {
            let at = self.cursor;
            if self.done[at] {
                self.cursor += 1;
                continue;
            }
            let until = match (step.from, step.answers) {
                (Side::Agent, _) => self.wait_for(at, now),
                // The answer is sent when the agent sends the request; otherwise it is skipped.
                (Side::Client, Some(request)) => self.wait_for(request, now),
                (Side::Client, None) => None,
            };
            if let Some(until) = until {
                let settled = self.last + self.timeouts.settle;
                let sooner = !self.pending.is_empty() && settled > now;
                return DriverAction::Wait(if sooner { until.min(settled) } else { until });
            }
            if self.stuck {
                return DriverAction::Done;
            }
            self.done[at] = true;
            self.cursor += 1;
            if step.from == Side::Client && step.answers.is_none() {
                let frame = self.with_live_names(at, step);
                return self.send(frame, now);
            }
        }
        DriverAction::Done
    }

    fn send(&mut self, frame: Frame, now: Duration) -> DriverAction {
        self.last = now;
        self.log(Side::Client, &frame, now);
        DriverAction::Send(frame)
    }

    fn log(&mut self, from: Side, frame: &Frame, now: Duration) {
        let n = self.live.steps.len() as u64 + 1;
        let at = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        self.live.push(n, at, from, frame.clone());
    }

    /// The recorded message with the live names, a request under an unused id.
    fn with_live_names(&mut self, at: usize, step: &ScriptStep) -> Frame {
        let frame = self.names.to_live(&step.frame);
        let Some(envelope) = step.envelope.filter(|_| step.is_request()) else {
            return frame;
        };
        if self.open.insert(envelope.id(&step.frame), at).is_ok() {
            return frame;
        }
        self.renamed += 1;
        let name = format!("\"replay-{}\"", self.renamed);
        let id = Id::String(name.as_bytes());
        // If that is in use as well, the answer counts for the other request.
        let _ = self.open.insert(id, at);
        with_id(&frame, id)
    }

    /// Until when step `at` of the agent is waited for; `None` if it is not (any more).
    fn wait_for(&mut self, at: usize, now: Duration) -> Option<Duration> {
        let step = &self.script.steps[at];
        if let Some(request) = step.answers {
            let until = self.last + self.timeouts.response;
            let is_sent = self.open.iter().any(|(_, open)| *open == request);
            if is_sent && now < until {
                return Some(until);
            }
            if is_sent {
                let timeout = self.timeouts.response;
                let why = format!("there is no answer, and no message for {timeout:?}");
                self.give_up(request, &why);
            }
            return None;
        }
        // Within a turn an agent may take its time; after it, few messages can come.
        let pause = if self.open.is_empty() {
            self.timeouts.settle
        } else {
            self.timeouts.response
        };
        Some(self.last + pause).filter(|until| now < *until)
    }

    /// Whether it answers a request that has no answer in the recording.
    fn is_unrecorded(&self, step: &ScriptStep) -> bool {
        let request = step
            .envelope
            .and_then(|at| self.open.get(at.id(&step.frame)));
        step.is_answer() && request.is_some_and(|asked| !self.answer_of.contains_key(asked))
    }

    fn give_up(&mut self, request: usize, reason: &str) {
        let step = &self.script.steps[request];
        self.problems
            .push(format!("event {}, {}: {reason}", step.n, step.method));
        self.stuck = true;
    }

    fn on_answer(&mut self, live: &ScriptStep) {
        let request = live
            .envelope
            .and_then(|at| self.open.remove(at.id(&live.frame)));
        let Some((_, request)) = request else { return };
        let Some(answer) = self.answer_of.get(&request).copied() else {
            return;
        };
        let turn = self.script.steps[request].session.clone();
        self.done[answer] = true;
        self.names
            .learn(&self.script.steps[answer].body, &live.body);
        // Steps of the turn before its answer do not come any more.
        if turn.is_some() {
            for at in self.cursor..answer {
                let step = &self.script.steps[at];
                let of_agent = step.from == Side::Agent || step.answers.is_some();
                if of_agent && step.session == turn && at > request {
                    self.done[at] = true;
                }
            }
        }
    }

    fn on_request(&mut self, at: usize, live: &ScriptStep) {
        let Some(envelope) = live.envelope else {
            return;
        };
        let id = envelope.id(&live.frame).to_owned();
        let body = self.names.to_recorded(&live.body);
        let find_by = |by| {
            self.expected(|one| {
                one.is_request()
                    && one.method == live.method
                    && matches(by, &live.method, &one.body, &body)
            })
        };
        let mut rules = MatchRule::ALL.iter();
        if let Some(step) = rules.find_map(|by| find_by(*by)) {
            self.done[step] = true;
            self.pending.push((step, id, at));
        } else {
            let what = format!(
                "not recorded: the agent did not ask {} (again)",
                live.method
            );
            let reason = Reason::new(reply::NOT_RECORDED, what);
            self.urgent.push_back(reply::error(id.as_id(), &reason));
        }
    }

    /// The first step of the agent that has not happened yet and is accepted by `is`.
    fn expected(&self, is: impl Fn(&ScriptStep) -> bool) -> Option<usize> {
        let steps = self.script.steps.iter().enumerate();
        let mut left = steps.filter(|(at, step)| !self.done[*at] && step.from == Side::Agent);
        left.find(|(_, step)| is(step)).map(|(at, _)| at)
    }

    /// The answer to a request of the agent that can be sent now: when everything is sent that the
    /// client sent before it. If the agent sends the request early, the answer is sent when it is
    /// idle.
    fn reply(&mut self, now: Duration) -> Option<Frame> {
        let silent = now >= self.last + self.timeouts.settle;
        let due = |ask: &usize| {
            let answer = *self.answer_of.get(ask)?;
            let is_due = match self.unsent_before(answer) {
                Some(step) => silent && !step.method.contains("cancel"),
                None => silent || !self.answers_before(answer),
            };
            is_due.then_some(answer)
        };
        let pending = self.pending.iter().enumerate();
        let due = pending.filter_map(|(at, (request, ..))| Some((due(request)?, at)));
        let (_, due) = due.min()?;
        let (request, id, live) = self.pending.remove(due);
        let answer = self.answer_of[&request];
        self.done[answer] = true;
        let (question, step) = (&self.script.steps[request], &self.script.steps[answer]);
        let mut names = self.names.clone();
        if question.method == "session/request_permission" {
            match choose(&question.body, &step.body, &self.live.steps[live].body) {
                OptionChoice::AsRecorded => {}
                OptionChoice::Other { recorded, live } => {
                    names.insert(NameKind::PermissionOption, recorded, live)
                }
                OptionChoice::None => {
                    let what = "not recorded: no option is like the one that was chosen";
                    let reason = Reason::new(reply::NOT_RECORDED, what);
                    return Some(reply::error(id.as_id(), &reason));
                }
            }
        }
        Some(with_id(&names.to_live(&step.frame), id.as_id()))
    }

    /// The first message before step `at` that the client has not sent yet.
    fn unsent_before(&self, at: usize) -> Option<&ScriptStep> {
        let mut left = self.left_before(at).filter(|step| step.answers.is_none());
        left.next()
    }

    /// Whether the client has unsent answers before step `at` in the same session.
    fn answers_before(&self, at: usize) -> bool {
        let session = &self.script.steps[at].session;
        let mut left = self.left_before(at).filter(|step| step.answers.is_some());
        left.any(|step| step.session == *session)
    }

    /// The unsent steps of the client before step `at`.
    fn left_before(&self, at: usize) -> impl Iterator<Item = &ScriptStep> {
        let from = self.cursor.min(at);
        let before = self.script.steps[from..at].iter().zip(&self.done[from..at]);
        let left = before.filter(|(step, done)| !**done && step.from == Side::Client);
        left.map(|(step, _)| step)
    }
}
