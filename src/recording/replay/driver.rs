//! Plays the client of a recording to a live agent.
//!
//! Each message waits for what the client had received before it in the recording: answers always,
//! updates as long as some may still come. Requests of the agent get the recorded answers. See
//! `compare` for the comparison with the recording.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::ids::with_id;
use super::names::{Names, Noun};
use super::normal::matches;
use super::permit::{Choice, choose};
use super::rules::Match;
use super::script::{Script, Step};
use crate::jsonrpc::reply::{self, Reason};
use crate::jsonrpc::{Frame, Id, IdBuf, Side};

/// Plays the client.
#[derive(Debug)]
pub struct Driver {
    script: Arc<Script>,
    pace: Pace,
    /// The answer to each request, by step.
    answer_of: HashMap<usize, usize>,
    /// Steps that have happened, or that are no longer waited for.
    done: Vec<bool>,
    /// The first step that is not done.
    cursor: usize,
    /// Our unanswered requests, with their step.
    open: HashMap<IdBuf, usize>,
    /// The agent's unanswered requests: step, id, index of the live step.
    asked: Vec<(usize, IdBuf, usize)>,
    names: Names,
    urgent: VecDeque<Frame>,
    live: Script,
    last: Duration,
    troubles: Vec<String>,
    stuck: bool,
    closed: bool,
    renamed: u64,
}

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Silence after which no further updates are expected.
    pub settle: Duration,
    /// Silence after which an unanswered request fails.
    pub patience: Duration,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// Send this to the agent.
    Say(Frame),
    /// Nothing until a frame is received, or until that time.
    Wait(Duration),
    /// All messages are sent.
    Done,
}

/// Whether a step has to wait.
enum Ready {
    Yes,
    Until(Duration),
}

impl Driver {
    /// Plays `script`.
    #[must_use]
    pub fn new(script: Arc<Script>, pace: Pace) -> Self {
        let answers = script.steps.iter().enumerate();
        Self {
            answer_of: answers
                .filter_map(|(at, step)| Some((step.answers?, at)))
                .collect(),
            done: vec![false; script.steps.len()],
            script,
            pace,
            cursor: 0,
            open: HashMap::new(),
            asked: Vec::new(),
            names: Names::default(),
            urgent: VecDeque::new(),
            live: Script::default(),
            last: Duration::ZERO,
            troubles: Vec::new(),
            stuck: false,
            closed: false,
            renamed: 0,
        }
    }

    /// Replaces the working directory of the client.
    pub fn work_in(&mut self, directory: &str) {
        if let Some(recorded) = self.script.directory() {
            self.names.folder(recorded, directory);
        }
    }

    /// The live conversation so far.
    #[must_use]
    pub const fn live(&self) -> &Script {
        &self.live
    }

    /// The reasons why the conversation could not continue, for people.
    #[must_use]
    pub fn troubles(&self) -> &[String] {
        &self.troubles
    }

    /// All messages are sent and our stream to the agent is ended. Requests without a recorded
    /// answer
    /// may get one now, which does not count.
    pub const fn close(&mut self) {
        self.closed = true;
    }

    /// The agent has ended its stream.
    pub fn end(&mut self) {
        if self.stuck {
            return;
        }
        let open = self.open.values().copied();
        // After the end of our stream, answers that were not recorded are not required.
        let owed = open.filter(|step| !self.closed || self.answer_of.contains_key(step));
        for step in owed.collect::<Vec<_>>() {
            self.give_up(step, "the agent ended its stream before it answered");
        }
        let left = self.said_before(self.script.steps.len()).map(|step| step.n);
        if let Some(n) = left {
            let text = format!("the agent ended its stream before event {n}");
            self.troubles.push(text);
        }
        self.stuck = true;
    }

    /// Handles a frame of the agent.
    pub fn hear(&mut self, frame: &Frame, now: Duration) {
        self.last = now;
        let at = self.live.steps.len();
        self.note(Side::Agent, frame, now);
        let step = self.live.steps[at].clone();
        if self.closed && self.is_left_open(&step) {
            self.live.steps.pop();
            return;
        }
        if step.is_answer() && step.answers.is_some() {
            self.answered(&step);
        } else if step.is_request() {
            self.asked(at, &step);
        } else {
            // A notification; or an answer to no request, or an invalid line.
            let told = self.expected(|one| {
                one.kind() == step.kind()
                    && one.answers.is_none()
                    && one.method == step.method
                    && one.update() == step.update()
            });
            if let Some(told) = told {
                self.done[told] = true;
            }
        }
    }

    /// What to do now.
    pub fn next(&mut self, now: Duration) -> Move {
        if let Some(frame) = self.urgent.pop_front() {
            return self.say(frame, now);
        }
        if self.stuck {
            return Move::Done;
        }
        if let Some(frame) = self.reply(now) {
            return self.say(frame, now);
        }
        let script = Arc::clone(&self.script);
        while let Some(step) = script.steps.get(self.cursor) {
            let at = self.cursor;
            if self.done[at] {
                self.cursor += 1;
                continue;
            }
            let ready = match (step.from, step.answers) {
                (Side::Agent, _) => self.came(at, now),
                // The answer is sent when the agent sends the request; otherwise it is skipped.
                (Side::Client, Some(ask)) => self.came(ask, now),
                (Side::Client, None) => Ready::Yes,
            };
            match ready {
                Ready::Until(when) => {
                    let settled = self.last + self.pace.settle;
                    let sooner = !self.asked.is_empty() && settled > now;
                    return Move::Wait(if sooner { when.min(settled) } else { when });
                }
                Ready::Yes if self.stuck => return Move::Done,
                Ready::Yes => {}
            }
            self.done[at] = true;
            self.cursor += 1;
            if step.from == Side::Client && step.answers.is_none() {
                let frame = self.named(at, step);
                return self.say(frame, now);
            }
        }
        Move::Done
    }

    fn say(&mut self, frame: Frame, now: Duration) -> Move {
        self.last = now;
        self.note(Side::Client, &frame, now);
        Move::Say(frame)
    }

    fn note(&mut self, from: Side, frame: &Frame, now: Duration) {
        let n = self.live.steps.len() as u64 + 1;
        let at = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        self.live.push(n, at, from, frame.clone());
    }

    /// The recorded message with the live names, a request under an unused id.
    fn named(&mut self, at: usize, step: &Step) -> Frame {
        let frame = self.names.said(&step.frame);
        if !step.is_request() {
            return frame;
        }
        let envelope = step.envelope.expect("a request is a message");
        let id = envelope.id(&step.frame).to_owned();
        if let Entry::Vacant(free) = self.open.entry(id) {
            free.insert(at);
            return frame;
        }
        self.renamed += 1;
        let name = format!("\"replay-{}\"", self.renamed);
        let id = Id::String(name.as_bytes());
        self.open.insert(id.to_owned(), at);
        with_id(&frame, id)
    }

    /// Whether step `at` of the agent has happened or is no longer waited for.
    fn came(&mut self, at: usize, now: Duration) -> Ready {
        let step = &self.script.steps[at];
        let owed = step
            .answers
            .filter(|asked| self.open.values().any(|open| open == asked));
        if let Some(asked) = owed {
            let until = self.last + self.pace.patience;
            if now < until {
                return Ready::Until(until);
            }
            let patience = self.pace.patience;
            self.give_up(
                asked,
                &format!("there is no answer, and no message for {patience:?}"),
            );
            return Ready::Yes;
        }
        if step.answers.is_some() {
            // Its request was never sent.
            return Ready::Yes;
        }
        // Within a turn an agent may take its time; after it, few messages can come.
        let pause = if self.open.is_empty() {
            self.pace.settle
        } else {
            self.pace.patience
        };
        let until = self.last + pause;
        if now < until {
            Ready::Until(until)
        } else {
            Ready::Yes
        }
    }

    /// Whether it answers a request that has no answer in the recording.
    fn is_left_open(&self, step: &Step) -> bool {
        let id = step.envelope.map(|at| at.id(&step.frame).to_owned());
        let asked = id.and_then(|id| self.open.get(&id));
        step.is_answer() && asked.is_some_and(|asked| !self.answer_of.contains_key(asked))
    }

    fn give_up(&mut self, asked: usize, why: &str) {
        let step = &self.script.steps[asked];
        self.troubles
            .push(format!("event {}, {}: {why}", step.n, step.method));
        self.stuck = true;
    }

    fn answered(&mut self, live: &Step) {
        let Some(envelope) = live.envelope else {
            return;
        };
        let Some(asked) = self.open.remove(&envelope.id(&live.frame).to_owned()) else {
            return;
        };
        let turn = self.script.steps[asked].session.clone();
        let Some(answer) = self.answer_of.get(&asked).copied() else {
            return;
        };
        self.done[answer] = true;
        self.names.bind(&self.script.steps[answer].body, &live.body);
        // Steps of the turn before its answer do not come any more.
        if turn.is_some() {
            for at in self.cursor..answer {
                let step = &self.script.steps[at];
                let of_agent = step.from == Side::Agent || step.answers.is_some();
                if of_agent && step.session == turn && at > asked {
                    self.done[at] = true;
                }
            }
        }
    }

    fn asked(&mut self, at: usize, live: &Step) {
        let Some(envelope) = live.envelope else {
            return;
        };
        let id = envelope.id(&live.frame).to_owned();
        let body = self.names.heard(&live.body);
        let like = |by| {
            self.expected(|one| {
                one.is_request()
                    && one.method == live.method
                    && matches(by, &live.method, &one.body, &body)
            })
        };
        let found = like(Match::Strict)
            .or_else(|| like(Match::Shape))
            .or_else(|| like(Match::Order));
        if let Some(step) = found {
            self.done[step] = true;
            self.asked.push((step, id, at));
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
    fn expected(&self, is: impl Fn(&Step) -> bool) -> Option<usize> {
        let steps = self.script.steps.iter().enumerate();
        let mut left = steps.filter(|(at, step)| !self.done[*at] && step.from == Side::Agent);
        left.find(|(_, step)| is(step)).map(|(at, _)| at)
    }

    /// The answer to a request of the agent that can be sent now: when everything is sent that the
    /// client sent before it. If the agent sends the request early, the answer is sent when it is
    /// idle.
    fn reply(&mut self, now: Duration) -> Option<Frame> {
        let silent = now >= self.last + self.pace.settle;
        let due = |ask: &usize| {
            let answer = *self.answer_of.get(ask)?;
            let is_due = match self.said_before(answer) {
                Some(step) => silent && !step.method.contains("cancel"),
                None => silent || !self.answers_before(answer),
            };
            is_due.then_some(answer)
        };
        let asked = self.asked.iter().enumerate();
        let due = asked.filter_map(|(at, (ask, ..))| Some((due(ask)?, at)));
        let (_, due) = due.min()?;
        let (ask, id, live) = self.asked.remove(due);
        let answer = self.answer_of[&ask];
        self.done[answer] = true;
        let (asked, step) = (&self.script.steps[ask], &self.script.steps[answer]);
        let mut names = self.names.clone();
        if asked.method == "session/request_permission" {
            match choose(&asked.body, &step.body, &self.live.steps[live].body) {
                Choice::AsRecorded => {}
                Choice::Instead { recorded, live } => names.word(Noun::Choice, recorded, live),
                Choice::None => {
                    let what = "not recorded: no option is like the one that was chosen";
                    let reason = Reason::new(reply::NOT_RECORDED, what);
                    return Some(reply::error(id.as_id(), &reason));
                }
            }
        }
        Some(with_id(&names.said(&step.frame), id.as_id()))
    }

    /// The first message before step `at` that the client has not sent yet.
    fn said_before(&self, at: usize) -> Option<&Step> {
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
    fn left_before(&self, at: usize) -> impl Iterator<Item = &Step> {
        let from = self.cursor.min(at);
        let before = self.script.steps[from..at].iter().zip(&self.done[from..at]);
        let left = before.filter(|(step, done)| !**done && step.from == Side::Client);
        left.map(|(step, _)| step)
    }
}
