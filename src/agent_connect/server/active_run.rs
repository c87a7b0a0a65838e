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
use uuid::Uuid;

use super::agent_connection::{AgentConnection, LinkId, Turn};
use crate::agent_connect::api::api_error::ApiError;
use crate::agent_connect::api::interrupt::{self, AgentQuestion};
use crate::agent_connect::api::permissions::Permissions;
use crate::agent_connect::api::record::{RunOutcome, RunRecord, RunStatus};
use crate::agent_connect::api::run_request::RunRequest;
use crate::agent_connect::api::timestamp::Timestamp;
use crate::agent_connect::api::turn_output::TurnOutput;

/// Questions of one run that may be open. Further ones get the default answer.
const MAX_QUESTIONS: usize = 64;

/// The version of a run's final state.
const FINAL_VERSION: u64 = u64::MAX;

/// A run that has not ended.
pub(super) struct ActiveRun {
    pub(super) id: Uuid,
    pub(super) agent: Uuid,
    /// The connection to its agent.
    pub(super) conn: Arc<AgentConnection>,
    /// Its owner.
    pub(super) owner: Arc<str>,
    /// Its thread, unless the thread was created for this run alone.
    pub(super) thread: Option<Uuid>,
    pub(super) created: Timestamp,
    pub(super) request: RunRequest,
    /// Cancels the run.
    pub(super) cancel: CancellationToken,
    pub(super) changes: watch::Sender<()>,
    pub(super) stored: watch::Sender<()>,
    /// Maximum bytes of updates in the log.
    max_log_bytes: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    output: TurnOutput,
    log: Log,
    questions: VecDeque<AgentQuestion>,
    /// Number of questions so far.
    question_count: usize,
    /// Counts the changes for the store.
    version: u64,
    ended: Option<RunRecord>,
    /// The session it runs in, and the link.
    session: Option<(LinkId, String)>,
}

/// The log of events for streaming clients.
#[derive(Default)]
struct Log {
    entries: VecDeque<(LogEntry, usize)>,
    /// The number of the first entry that is still in the log.
    first: u64,
    bytes: usize,
    /// Where new clients start: after the last question that was answered.
    start: u64,
}

/// A log entry.
#[derive(Clone, Debug)]
pub(super) enum LogEntry {
    /// An update of the agent, unchanged.
    Update(Arc<Value>),
    /// A question became the open one.
    Interrupt(Arc<Value>),
}

/// The result of reading the log at a position.
pub(super) enum LogRead {
    /// The entry at that position.
    Entry(LogEntry),
    /// The entry was already removed from the log.
    Lost,
    /// No entry yet.
    Pending,
    /// All entries were read, and the run has ended.
    Ended(Box<RunRecord>),
}

impl ActiveRun {
    pub(super) fn new(
        id: Uuid,
        (agent, conn): (Uuid, Arc<AgentConnection>),
        (owner, thread): (Arc<str>, Option<Uuid>),
        created: Timestamp,
        request: RunRequest,
        max_log_bytes: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            agent,
            conn,
            owner,
            thread,
            created,
            request,
            cancel: CancellationToken::new(),
            changes: watch::Sender::new(()),
            stored: watch::Sender::new(()),
            max_log_bytes,
            state: Mutex::default(),
        })
    }

    /// Sets the session it runs in.
    pub(super) fn set_session(&self, link: LinkId, session: &str) {
        self.state().session = Some((link, session.to_owned()));
    }

    /// The session it runs in.
    pub(super) fn session(&self) -> Option<(LinkId, String)> {
        self.state().session.clone()
    }

    /// The answer to the open question by a resume payload: the id of the agent's request, and the
    /// result for it.
    pub(super) fn resume(&self, body: &Value) -> Result<(Value, Value), ApiError> {
        let mut state = self.state();
        let wrapped = body.get("resume_payload").unwrap_or(body);
        let named = wrapped.get("request_id").filter(|id| !id.is_null());
        let Some(open) = state.questions.front() else {
            return Err(match named {
                Some(id) => not_open(id),
                None => ApiError::conflict("no interrupt is open"),
            });
        };
        match named {
            Some(id) if *id != open.id => return Err(not_open(id)),
            None if state.question_count > 1 => {
                return Err(ApiError::invalid(
                    "\"request_id\" is missing: more than one interrupt has been open in this run",
                ));
            }
            _ => {}
        }
        let answer = open.answer(interrupt::resume_payload(body, open)?)?;
        let id = open.id.clone();
        state.close_question(0, self.max_log_bytes);
        drop(state);
        self.changes.send_replace(());
        Ok((id, answer))
    }

    /// Removes and returns all open questions, when the run is cancelled.
    pub(super) fn cancel_questions(&self) -> Vec<AgentQuestion> {
        let mut state = self.state();
        state.version += 1;
        state.questions.drain(..).collect()
    }

    /// Its current state, and the version of that.
    pub(super) fn snapshot(&self, now: Timestamp) -> (RunRecord, u64) {
        let state = self.state();
        if let Some(run) = &state.ended {
            return (run.clone(), state.version);
        }
        let open = state.interrupt();
        let status = if open.is_some() {
            RunStatus::Interrupted
        } else {
            RunStatus::Pending
        };
        (self.record(status, now, open), state.version)
    }

    /// Ends the run. The final version replaces all others in the store.
    pub(super) fn finish(
        &self,
        status: RunStatus,
        outcome: RunOutcome,
        now: Timestamp,
    ) -> (RunRecord, u64) {
        self.state().questions.clear();
        (self.record(status, now, Some(outcome)), FINAL_VERSION)
    }

    /// Makes the end visible, after it was stored.
    pub(super) fn publish(&self, run: RunRecord) {
        self.state().ended = Some(run);
        self.changes.send_replace(());
        self.stored.send_replace(());
    }

    /// Its result, with the agent's stop reason.
    pub(super) fn result(&self, stop_reason: &str) -> RunOutcome {
        let output = &self.state().output;
        let messages = output.messages();
        let mut values = Map::from_iter([("stopReason".to_owned(), json!(stop_reason))]);
        let modes = self.request.stream_modes;
        let with_messages = self.thread.is_none() && (modes.values || !modes.custom);
        if with_messages && !messages.is_empty() {
            values.insert("messages".to_owned(), json!(messages));
        }
        let text = self.request.input.is_message.then(|| output.text());
        RunOutcome::Result {
            values,
            messages,
            text,
        }
    }

    /// Tool calls and the plan.
    pub(super) fn activity(&self) -> Map<String, Value> {
        self.state().output.activity()
    }

    /// Reads the log at position `at`.
    pub(super) fn read_log(&self, at: u64) -> LogRead {
        let state = self.state();
        if at < state.log.first {
            return LogRead::Lost;
        }
        let behind = usize::try_from(at - state.log.first).unwrap_or(usize::MAX);
        match (state.log.entries.get(behind), &state.ended) {
            (Some((entry, _)), _) => LogRead::Entry(entry.clone()),
            (None, Some(run)) => LogRead::Ended(Box::new(run.clone())),
            (None, None) => LogRead::Pending,
        }
    }

    /// The log position at which a new client starts.
    pub(super) fn log_start(&self) -> u64 {
        let log = &self.state().log;
        log.start.max(log.first)
    }

    fn record(
        &self,
        status: RunStatus,
        updated: Timestamp,
        outcome: Option<RunOutcome>,
    ) -> RunRecord {
        RunRecord {
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

impl Turn for ActiveRun {
    fn apply(&self, update: &Value) {
        let mut state = self.state();
        state.output.apply(update);
        state.log.push(
            LogEntry::Update(Arc::new(update.clone())),
            update.to_string().len(),
            self.max_log_bytes,
        );
        drop(state);
        self.changes.send_replace(());
    }

    fn add_question(&self, question: AgentQuestion, default: Permissions) -> Option<Value> {
        if self.cancel.is_cancelled() {
            return Some(question.cancelled());
        }
        if let Some(rule @ (Permissions::Allow | Permissions::Reject)) =
            self.request.setup.permissions
        {
            return Some(question.by_rule(rule));
        }
        let mut state = self.state();
        if state.questions.len() >= MAX_QUESTIONS {
            return Some(question.by_rule(default));
        }
        state.questions.push_back(question);
        state.question_count += 1;
        state.version += 1;
        if state.questions.len() == 1 {
            state.open_question(self.max_log_bytes);
        }
        drop(state);
        self.changes.send_replace(());
        None
    }

    fn withdraw(&self, id: &Value) -> Option<AgentQuestion> {
        let mut state = self.state();
        let at = state
            .questions
            .iter()
            .position(|question| question.id == *id)?;
        let question = state.close_question(at, self.max_log_bytes);
        drop(state);
        self.changes.send_replace(());
        question
    }
}

impl State {
    fn interrupt(&self) -> Option<RunOutcome> {
        let open = self.questions.front()?;
        Some(RunOutcome::Interrupt {
            name: open.name().to_owned(),
            payload: open.payload(self.questions.len() - 1),
        })
    }

    /// Logs the first question as the open one.
    fn open_question(&mut self, max_bytes: usize) {
        if let Some(RunOutcome::Interrupt { name, payload }) = self.interrupt() {
            let size = payload.to_string().len();
            self.log.push(
                LogEntry::Interrupt(Arc::new(json!({ name: payload }))),
                size,
                max_bytes,
            );
        }
    }

    /// Removes the question at `at`, which was answered.
    fn close_question(&mut self, at: usize, max_bytes: usize) -> Option<AgentQuestion> {
        let question = self.questions.remove(at);
        self.version += 1;
        if at == 0 {
            self.log.start = self.log.end();
            self.open_question(max_bytes);
        }
        question
    }
}

impl Log {
    fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Adds an entry and removes the oldest ones if there are too many bytes.
    fn push(&mut self, entry: LogEntry, size: usize, max_bytes: usize) {
        self.entries.push_back((entry, size));
        self.bytes += size;
        while self.bytes > max_bytes && self.entries.len() > 1 {
            if let Some((_, size)) = self.entries.pop_front() {
                self.bytes -= size;
                self.first += 1;
            }
        }
    }
}

fn not_open(id: &Value) -> ApiError {
    ApiError::conflict(format!("Interrupt {id} is not open"))
}
