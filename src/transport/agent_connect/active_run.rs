//! A run that has not ended: the agent's output, its open questions, and a log for streaming
//! clients.
//!
//! Changes are signalled twice: `changes` at once, for storing and streaming; `stored` after the
//! store has them, for clients that poll and wait.

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

/// Questions of one run that may be open. Further ones get the default answer.
const QUESTIONS: usize = 64;

/// The version of a run's final state.
const LAST: u64 = u64::MAX;

/// A run that has not ended.
pub(super) struct ActiveRun {
    pub(super) id: Uuid,
    pub(super) agent: Uuid,
    /// The connection to its agent.
    pub(super) line: Arc<Line>,
    /// Its owner.
    pub(super) owner: Arc<str>,
    /// Its thread, unless the thread was created for this run alone.
    pub(super) thread: Option<Uuid>,
    pub(super) created: Moment,
    pub(super) request: RunRequest,
    /// Cancels the run.
    pub(super) cancel: CancellationToken,
    pub(super) news: watch::Sender<()>,
    pub(super) kept: watch::Sender<()>,
    /// Maximum bytes of updates in the log.
    room: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    fold: Fold,
    log: Log,
    questions: VecDeque<Question>,
    /// Number of questions so far.
    asked: usize,
    /// Counts the changes for the store.
    version: u64,
    over: Option<Run>,
    /// The session it runs in, and the link.
    session: Option<(Dial, String)>,
}

/// The log of events for streaming clients.
#[derive(Default)]
struct Log {
    entries: VecDeque<(Entry, usize)>,
    /// The number of the first entry that is still in the log.
    first: u64,
    bytes: usize,
    /// Where new clients start: after the last question that was answered.
    start: u64,
}

/// A log entry.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    /// An update of the agent, unchanged.
    Update(Arc<Value>),
    /// A question became the open one.
    Interrupt(Arc<Value>),
}

/// The result of reading the log at a position.
pub(super) enum Next {
    /// The entry at that position.
    Entry(Entry),
    /// The entry was already removed from the log.
    Lost,
    /// No entry yet.
    Nothing,
    /// All entries were read, and the run has ended.
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

    /// Sets the session it runs in.
    pub(super) fn is_in(&self, dial: Dial, session: &str) {
        self.state().session = Some((dial, session.to_owned()));
    }

    /// The session it runs in.
    pub(super) fn session(&self) -> Option<(Dial, String)> {
        self.state().session.clone()
    }

    /// The link of its session.
    pub(super) fn dial(&self) -> Option<Dial> {
        self.state().session.as_ref().map(|(dial, _)| *dial)
    }

    /// Applies an update of its session.
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

    /// Adds a question of the agent; returns the result if it is answered without the client.
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

    /// Removes a question that the agent has withdrawn.
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

    /// The answer to the open question by a resume payload: the id of the agent's request, and the
    /// result for it.
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

    /// Removes and returns all open questions, when the run is cancelled.
    pub(super) fn give_up(&self) -> Vec<Question> {
        let mut state = self.state();
        state.version += 1;
        state.questions.drain(..).collect()
    }

    /// Its current state, and the version of that.
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

    /// Ends the run. The final version replaces all others in the store.
    pub(super) fn close(&self, status: Status, outcome: Outcome, now: Moment) -> (Run, u64) {
        self.state().questions.clear();
        (self.record(status, now, Some(outcome)), LAST)
    }

    /// Makes the end visible, after it was stored.
    pub(super) fn publish(&self, run: Run) {
        self.state().over = Some(run);
        self.news.send_replace(());
        self.kept.send_replace(());
    }

    /// The output so far.
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

    /// The agent's text.
    pub(super) fn text(&self) -> String {
        self.state().fold.text()
    }

    /// Tool calls and the plan.
    pub(super) fn work(&self) -> Map<String, Value> {
        self.state().fold.work()
    }

    /// Reads the log at position `at`.
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

    /// The log position at which a new client starts.
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
        // The lock is not poisoned by a panic; each update leaves the state consistent.
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

    /// Logs the first question as the open one.
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

    /// Removes the question at `at`, which was answered.
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

    /// Adds an entry and removes the oldest ones if there are too many bytes.
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
