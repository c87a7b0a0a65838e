//! A run that is not over: what the agent has said in it, what it asks, and who follows it.
//!
//! Its news are told twice: `news` as soon as they are there, for those who persist or stream them;
//! `kept` once the store has them, for those who poll and wait. Not here: what makes it go on (see
//! `perform`).

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::line::{Dial, Line};
use crate::agent_connect::fault::Fault;
use crate::agent_connect::fold::Fold;
use crate::agent_connect::interrupt::{self, Question};
use crate::agent_connect::moment::Moment;
use crate::agent_connect::record::{Outcome, Run, Status};
use crate::agent_connect::run_request::{Permissions, RunRequest};
use crate::agent_connect::uuid::Uuid;

/// Questions of one run that may wait for an answer. Beyond it: answered without asking.
const QUESTIONS: usize = 64;

/// The number of the last news of a run.
const LAST: u64 = u64::MAX;

/// A run that is not over.
pub(super) struct ActiveRun {
    pub(super) id: Uuid,
    pub(super) agent: Uuid,
    /// The line to its agent.
    pub(super) line: Arc<Line>,
    /// Whose it is.
    pub(super) owner: Arc<str>,
    /// Its thread, unless it was made for this run alone.
    pub(super) thread: Option<Uuid>,
    pub(super) created: Moment,
    pub(super) request: RunRequest,
    /// Somebody wants it to end.
    pub(super) cancel: CancellationToken,
    pub(super) news: watch::Sender<()>,
    pub(super) kept: watch::Sender<()>,
    /// Bytes of updates that are kept for those who follow.
    room: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    fold: Fold,
    log: Log,
    questions: VecDeque<Question>,
    /// Questions that there have been.
    asked: usize,
    /// What the store is to know counts up with this.
    version: u64,
    over: Option<Run>,
    /// The session it runs in, and the link.
    session: Option<(Dial, String)>,
}

/// What happened, for those who follow.
#[derive(Default)]
struct Log {
    entries: VecDeque<(Entry, usize)>,
    /// The number of the first that is still there.
    first: u64,
    bytes: usize,
    /// Where those begin who come anew: behind the last question that was answered.
    start: u64,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    /// The agent's update, as it came.
    Update(Arc<Value>),
    /// A question became the open one.
    Interrupt(Arc<Value>),
}

/// What there is for somebody who follows.
pub(super) enum Next {
    /// The entry of that number.
    Entry(Entry),
    /// It came too late: what it wants to know is not kept any more.
    Lost,
    /// Nothing yet.
    Nothing,
    /// All is told, and this is what it came to.
    Over(Box<Run>),
}

impl ActiveRun {
    pub(super) fn new(
        id: Uuid,
        (agent, line): (Uuid, Arc<Line>),
        (owner, thread): (Arc<str>, Option<Uuid>),
        created: Moment,
        request: RunRequest,
        room: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            agent,
            line,
            owner,
            thread,
            created,
            request,
            cancel: CancellationToken::new(),
            news: watch::Sender::new(()),
            kept: watch::Sender::new(()),
            room,
            state: Mutex::default(),
        })
    }

    /// It runs in this session.
    pub(super) fn is_in(&self, dial: Dial, session: &str) {
        self.state().session = Some((dial, session.to_owned()));
    }

    /// The session it runs in.
    pub(super) fn session(&self) -> Option<(Dial, String)> {
        self.state().session.clone()
    }

    /// The link its agent is on.
    pub(super) fn dial(&self) -> Option<Dial> {
        self.state().session.as_ref().map(|(dial, _)| *dial)
    }

    /// Takes an update of its session.
    pub(super) fn hear(&self, update: &Value) {
        let mut state = self.state();
        state.fold.hear(update);
        state.log.push(
            Entry::Update(Arc::new(update.clone())),
            update.to_string().len(),
            self.room,
        );
        drop(state);
        self.news.send_replace(());
    }

    /// The agent asks something; what is answered at once comes back.
    pub(super) fn ask(&self, question: Question, unasked: Permissions) -> Option<Value> {
        if self.cancel.is_cancelled() {
            return Some(question.cancelled());
        }
        match self.request.permissions.unwrap_or(Permissions::Interrupt) {
            Permissions::Interrupt => {}
            rule => return Some(question.by_rule(rule)),
        }
        let mut state = self.state();
        if state.questions.len() >= QUESTIONS {
            return Some(question.by_rule(unasked));
        }
        state.questions.push_back(question);
        state.asked += 1;
        state.version += 1;
        if state.questions.len() == 1 {
            state.open(self.room);
        }
        drop(state);
        self.news.send_replace(());
        None
    }

    /// The agent does not want to know any more.
    pub(super) fn withdraw(&self, id: &Value) -> Option<Question> {
        let mut state = self.state();
        let at = state
            .questions
            .iter()
            .position(|question| question.id == *id)?;
        let question = state.close(at, self.room);
        drop(state);
        self.news.send_replace(());
        question
    }

    /// The answer to the open question that a resume payload is: the id of the agent's request, and
    /// the result for it.
    pub(super) fn resume(&self, body: &Value) -> Result<(Value, Value), Fault> {
        let mut state = self.state();
        let wrapped = body.get("resume_payload").unwrap_or(body);
        let named = wrapped.get("request_id").filter(|id| !id.is_null());
        let Some(open) = state.questions.front() else {
            return Err(match named {
                Some(id) => not_open(id),
                None => Fault::conflict("no interrupt is open"),
            });
        };
        match named {
            Some(id) if *id != open.id => return Err(not_open(id)),
            None if state.asked > 1 => {
                return Err(Fault::invalid(
                    "\"request_id\" is missing: more than one interrupt has been open in this run",
                ));
            }
            _ => {}
        }
        let answer = open.answer(interrupt::resume(body, open)?)?;
        let id = open.id.clone();
        state.close(0, self.room);
        drop(state);
        self.news.send_replace(());
        Ok((id, answer))
    }

    /// All questions that are open, which nobody will answer.
    pub(super) fn give_up(&self) -> Vec<Question> {
        let mut state = self.state();
        state.version += 1;
        state.questions.drain(..).collect()
    }

    /// How it stands now, and the number of that news.
    pub(super) fn snapshot(&self, now: Moment) -> (Run, u64) {
        let state = self.state();
        if let Some(run) = &state.over {
            return (run.clone(), state.version);
        }
        let open = state.interrupt();
        let status = if open.is_some() {
            Status::Interrupted
        } else {
            Status::Pending
        };
        (self.record(status, now, open), state.version)
    }

    /// It ends so. Whatever is still on its way to the store counts for nothing beside that.
    pub(super) fn close(&self, status: Status, outcome: Outcome, now: Moment) -> (Run, u64) {
        self.state().questions.clear();
        (self.record(status, now, Some(outcome)), LAST)
    }

    /// The store knows how it has ended; now all may.
    pub(super) fn publish(&self, run: Run) {
        self.state().over = Some(run);
        self.news.send_replace(());
        self.kept.send_replace(());
    }

    /// What the agent has said so far, as the output shows it.
    pub(super) fn values(&self, stop_reason: Option<&str>) -> (Map<String, Value>, Vec<Value>) {
        let messages = self.state().fold.messages();
        let mut values = Map::new();
        if let Some(reason) = stop_reason {
            values.insert("stopReason".to_owned(), json!(reason));
        }
        let alone =
            self.thread.is_none() && (self.request.modes.values || !self.request.modes.custom);
        if alone && !messages.is_empty() {
            values.insert("messages".to_owned(), json!(messages));
        }
        (values, messages)
    }

    /// The agent's words.
    pub(super) fn text(&self) -> String {
        self.state().fold.text()
    }

    /// What it has done besides.
    pub(super) fn work(&self) -> Map<String, Value> {
        self.state().fold.work()
    }

    /// What a follower is told next, who knows all before the entry of number `at`.
    pub(super) fn next(&self, at: u64) -> Next {
        let state = self.state();
        if at < state.log.first {
            return Next::Lost;
        }
        let behind = usize::try_from(at - state.log.first).unwrap_or(usize::MAX);
        match (state.log.entries.get(behind), &state.over) {
            (Some((entry, _)), _) => Next::Entry(entry.clone()),
            (None, Some(run)) => Next::Over(Box::new(run.clone())),
            (None, None) => Next::Nothing,
        }
    }

    /// Where somebody begins to follow who comes anew.
    pub(super) fn start(&self) -> u64 {
        let log = &self.state().log;
        log.start.max(log.first)
    }

    fn record(&self, status: Status, updated: Moment, outcome: Option<Outcome>) -> Run {
        Run {
            id: self.id,
            agent: self.agent,
            thread: self.thread,
            status,
            created: self.created,
            updated,
            creation: self.request.creation.clone(),
            outcome,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in another task has left nothing half done that the next could not live with.
        self.state.lock()
    }
}

impl State {
    fn interrupt(&self) -> Option<Outcome> {
        let open = self.questions.front()?;
        Some(Outcome::Interrupt {
            name: open.name().to_owned(),
            payload: open.payload(self.questions.len() - 1),
        })
    }

    /// The first question is the open one now.
    fn open(&mut self, room: usize) {
        if let Some(Outcome::Interrupt { name, payload }) = self.interrupt() {
            let size = payload.to_string().len();
            self.log.push(
                Entry::Interrupt(Arc::new(json!({ name: payload }))),
                size,
                room,
            );
        }
    }

    /// The question at `at` has its answer.
    fn close(&mut self, at: usize, room: usize) -> Option<Question> {
        let question = self.questions.remove(at);
        self.version += 1;
        if at == 0 {
            self.log.start = self.log.next();
            self.open(room);
        }
        question
    }
}

impl Log {
    fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// The oldest are forgotten where there is no room.
    fn push(&mut self, entry: Entry, size: usize, room: usize) {
        self.entries.push_back((entry, size));
        self.bytes += size;
        while self.bytes > room && self.entries.len() > 1 {
            if let Some((_, size)) = self.entries.pop_front() {
                self.bytes -= size;
                self.first += 1;
            }
        }
    }
}

fn not_open(id: &Value) -> Fault {
    Fault::conflict(format!("Interrupt {id} is not open"))
}
