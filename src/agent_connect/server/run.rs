//! A run that has not ended: its record, the agent's output, its open questions, and a log for
//! streaming clients.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::api::content::TurnOutput;
use crate::api::error::{ApiError, ApiResult};
use crate::api::interrupt::{AgentQuestion, Permissions};
use crate::api::run::{RunOutcome, RunRecord, RunStatus, Timestamp};
use crate::api::run_request::RunRequest;
use crate::api::thread::TurnRecord;
use jsonrpc::{Id, PendingRequests};

/// Questions of one run that may be open. Further ones get the default answer.
const MAX_QUESTIONS: usize = 64;

/// The length of a run's output, in bytes, after which it fails.
pub(super) const MAX_OUTPUT: usize = 16 << 20;

/// A run that has not ended.
pub(super) struct Run {
    pub(super) id: Uuid,
    /// Its thread, unless the thread was created for this run alone.
    pub(super) thread: Option<Uuid>,
    pub(super) owner: Arc<str>,
    pub(super) request: RunRequest,
    /// Cancelled when its output is longer than [`MAX_OUTPUT`].
    pub(super) too_long: CancellationToken,
    /// Cancels the run.
    pub(super) cancel: CancellationToken,
    /// Its phase; updates of the agent are signalled as well.
    pub(super) changes: watch::Sender<Phase>,
    /// Maximum bytes of updates in the log.
    max_log_bytes: usize,
    state: Mutex<State>,
}

/// What is stored when it changes. A final status comes after it was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Phase {
    pub(super) status: RunStatus,
    /// Counts the changes of the open questions.
    change: usize,
}

struct State {
    record: RunRecord,
    output: TurnOutput,
    log: Log,
    questions: PendingRequests<AgentQuestion>,
    /// Number of questions so far.
    question_count: usize,
}

/// The agent's updates, for streaming clients, with their sizes.
#[derive(Default)]
struct Log {
    updates: VecDeque<(Arc<Value>, usize)>,
    /// The number of the first update that is still in the log.
    first: u64,
    bytes: usize,
    /// Where new clients start: after the last question that was answered.
    start: u64,
}

/// What a streaming client is sent next.
pub(super) enum Next {
    /// An update of the agent, unchanged.
    Update(Arc<Value>),
    /// The update was already removed from the log.
    Lost,
    /// Nothing yet.
    Pending,
    /// All updates were read; the run waits for an answer, or has ended.
    Settled(Box<RunRecord>),
}

impl Run {
    pub(super) fn new(
        record: RunRecord,
        owner: Arc<str>,
        request: RunRequest,
        max_log_bytes: usize,
    ) -> Arc<Self> {
        let (status, change) = (record.status, 0);
        Arc::new(Self {
            id: record.id,
            thread: record.thread,
            owner,
            request,
            too_long: CancellationToken::new(),
            cancel: CancellationToken::new(),
            changes: watch::Sender::new(Phase { status, change }),
            max_log_bytes,
            state: Mutex::new(State {
                record,
                output: TurnOutput::default(),
                log: Log::default(),
                questions: PendingRequests::new(MAX_QUESTIONS),
                question_count: 0,
            }),
        })
    }

    /// Its current state.
    pub(super) fn record(&self) -> RunRecord {
        self.state.lock().record.clone()
    }

    /// Applies an update of the session.
    pub(super) fn apply(&self, update: &Value) {
        let mut state = self.state.lock();
        if state.output.json_len() > MAX_OUTPUT {
            return self.too_long.cancel();
        }
        state.output.apply(update);
        state.log.push(update, self.max_log_bytes);
        self.changes.send_modify(|_| ());
    }

    /// Adds a question of the agent; returns the result if it is answered without the client.
    pub(super) fn add_question(
        &self,
        question: AgentQuestion,
        default: Permissions,
    ) -> Option<Value> {
        let mut state = self.state.lock();
        if self.cancel.is_cancelled() {
            return Some(question.cancelled());
        }
        let rule = self.request.setup.permissions;
        if let Some(rule @ (Permissions::Allow | Permissions::Reject)) = rule {
            return Some(question.by_rule(rule));
        }
        let (id, answer) = (question.id.to_string(), question.by_rule(default));
        let stored = state.questions.insert(Id::of_json(id.as_bytes()), question);
        if stored.is_err() {
            return Some(answer);
        }
        state.question_count += 1;
        self.set_open(&mut state);
        None
    }

    /// Removes a question that the agent has withdrawn.
    pub(super) fn withdraw(&self, id: &Value) -> Option<AgentQuestion> {
        let mut state = self.state.lock();
        let id = id.to_string();
        let (_, question) = state.questions.remove(Id::of_json(id.as_bytes()))?;
        self.set_open(&mut state);
        Some(question)
    }

    /// Removes and returns all open questions, when the run is cancelled.
    pub(super) fn cancel_questions(&self) -> Vec<AgentQuestion> {
        let mut state = self.state.lock();
        let questions = state.questions.drain().map(|(_, question)| question);
        let questions = questions.collect();
        self.set_open(&mut state);
        questions
    }

    /// Answers the open question by the body of a resume request; returns the id of the agent's
    /// request, and the result for it.
    pub(super) fn resume(&self, body: &Value) -> ApiResult<(Value, Value)> {
        let mut state = self.state.lock();
        let wrapped = body.get("resume_payload").unwrap_or(body);
        let named = wrapped.get("request_id").filter(|id| !id.is_null());
        let open = state.questions.iter().next().map(|(_, open)| open);
        if let Some(id) = named.filter(|id| open.is_none_or(|open| open.id != **id)) {
            return Err(ApiError::conflict(format!("Interrupt {id} is not open")));
        }
        let open = open.ok_or_else(|| ApiError::conflict("no interrupt is open"))?;
        if named.is_none() && state.question_count > 1 {
            let what =
                "\"request_id\" is missing: more than one interrupt has been open in this run";
            return Err(ApiError::invalid(what));
        }
        let answer = (open.id.clone(), open.answer(body)?);
        state.questions.pop_oldest();
        state.log.start = state.log.first + state.log.updates.len() as u64;
        self.set_open(&mut state);
        Ok(answer)
    }

    /// Ends the run. Streaming clients see that after `publish`.
    pub(super) fn finish(&self, status: RunStatus, outcome: RunOutcome) -> RunRecord {
        let mut state = self.state.lock();
        state.questions.drain().for_each(drop);
        state.record.set(status, Some(outcome));
        self.changes
            .send_modify(|phase| phase.status = RunStatus::Pending);
        state.record.clone()
    }

    /// Makes the end visible, after it was stored.
    pub(super) fn publish(&self) {
        let status = self.state.lock().record.status;
        self.changes.send_modify(|phase| phase.status = status);
    }

    /// Its result, with the agent's stop reason.
    pub(super) fn result(&self, stop_reason: &str) -> RunOutcome {
        let output = &self.state.lock().output;
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

    /// The turn that it has added to its thread; `None` if it has failed.
    pub(super) fn turn(&self) -> Option<TurnRecord> {
        let state = self.state.lock();
        let Some(RunOutcome::Result {
            values, messages, ..
        }) = &state.record.outcome
        else {
            return None;
        };
        let mut values = values.clone();
        values.remove("messages");
        values.extend(state.output.activity());
        let mut all = vec![self.request.input.message.clone()];
        all.extend(messages.iter().cloned());
        Some(TurnRecord {
            run: self.id,
            ended: state.record.updated.clone(),
            values,
            messages: all,
        })
    }

    /// What a streaming client is sent after the first `position` updates.
    pub(super) fn next(&self, position: u64) -> Next {
        let state = self.state.lock();
        let Some(behind) = position.checked_sub(state.log.first) else {
            return Next::Lost;
        };
        let behind = usize::try_from(behind).unwrap_or(usize::MAX);
        if let Some((update, _)) = state.log.updates.get(behind) {
            return Next::Update(update.clone());
        }
        match self.changes.borrow().status {
            RunStatus::Pending => Next::Pending,
            _ => Next::Settled(Box::new(state.record.clone())),
        }
    }

    /// The position at which a new streaming client starts.
    pub(super) fn start(&self) -> u64 {
        let log = &self.state.lock().log;
        log.start.max(log.first)
    }

    /// Sets the state that follows from the open questions.
    fn set_open(&self, state: &mut State) {
        let more = state.questions.len().saturating_sub(1);
        let open = state.questions.iter().next();
        let open = open.map(|(_, open)| RunOutcome::Interrupt(open.interrupt(more)));
        let status = match open {
            Some(_) => RunStatus::Interrupted,
            None => RunStatus::Pending,
        };
        state.record.set(status, open);
        self.changes.send_modify(|phase| {
            phase.status = status;
            phase.change += 1;
        });
    }
}

impl RunRecord {
    fn set(&mut self, status: RunStatus, outcome: Option<RunOutcome>) {
        (self.status, self.outcome, self.updated) = (status, outcome, now());
    }
}

impl Log {
    /// Adds an update and removes the oldest ones if there are too many bytes.
    fn push(&mut self, update: &Value, max_bytes: usize) {
        let size = update.to_string().len();
        self.updates.push_back((Arc::new(update.clone()), size));
        self.bytes += size;
        while self.bytes > max_bytes && self.updates.len() > 1 {
            if let Some((_, size)) = self.updates.pop_front() {
                self.bytes -= size;
                self.first += 1;
            }
        }
    }
}

/// The current time.
pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since.map_or(0, |since| since.as_micros());
    Timestamp::of_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}
